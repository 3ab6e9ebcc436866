//! The file that keeps a search between the runs that work on it.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use super::{KeptError, Scope, Search};
use crate::model::Model;

/// The file of a search that is continued where an earlier run has stopped.
#[derive(Debug)]
pub struct KeptSearch<'a> {
    path: &'a Path,
    title: String,
}

impl<'a> KeptSearch<'a> {
    /// The file of the search with this title, which says in one line what is searched. A file with
    /// another title is refused.
    pub fn new(path: &'a Path, title: String) -> Self {
        Self { path, title }
    }

    /// The search that was kept, or a new one.
    pub fn open<'m>(&self, model: &'m dyn Model, scope: Scope) -> Result<Search<'m>, KeptError> {
        match File::open(self.path) {
            Ok(file) => Search::continued(model, scope, &self.title, &mut BufReader::new(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Search::new(model, scope)),
            Err(error) => Err(error.into()),
        }
    }

    /// Keep a search that has stopped. The file is complete or as it was.
    pub fn keep(&self, search: &Search<'_>) -> io::Result<()> {
        let mut name = self.path.as_os_str().to_owned();
        name.push(".new");
        let new = PathBuf::from(name);
        let mut file = BufWriter::new(File::create(&new)?);
        let written = search.keep(&self.title, &mut file).and_then(|()| file.flush());
        if let Err(error) = written.and_then(|()| fs::rename(&new, self.path)) {
            let _ = fs::remove_file(&new);
            return Err(error);
        }
        Ok(())
    }

    /// Remove the file: the search has ended.
    pub fn remove(&self) -> io::Result<()> {
        match fs::remove_file(self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}
