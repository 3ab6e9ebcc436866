//! A check that goes on where an earlier one has stopped.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use doorway_core::algorithms::ALL;
use doorway_search::{KeptError, Model, Scope, Search, fingerprint};

use super::Case;

/// The file of a search, and what is searched in it.
pub(super) struct KeptSearch<'a> {
    path: &'a Path,
    title: String,
}

impl<'a> KeptSearch<'a> {
    /// The file of this case. Its title tells the case from all others, and the algorithm's code of
    /// today from that of yesterday.
    pub(super) fn new(path: &'a Path, case: &Case) -> Self {
        let name = case.algorithm.info().name;
        // Algorithms share code.
        let source: Vec<&str> = ALL.iter().map(|entry| entry.source).collect();
        let Case { group, channel, withdrawing, targets, waiting, history, .. } = case;
        let details = format!(
            "{source:?} {group:?} {channel:?} {withdrawing} {targets:?} {waiting} {history:?} {:?} {}",
            case.world(),
            env!("CARGO_PKG_VERSION")
        );
        let words: Vec<u32> = details.bytes().map(u32::from).collect();
        let (nodes, print) = (group.size(), fingerprint(&words));
        Self { path, title: format!("{name}, {nodes} nodes, case {print:016x}") }
    }

    /// The search that was kept, or a new one.
    pub(super) fn open<'m>(
        &self,
        model: &'m dyn Model,
        scope: Scope,
    ) -> Result<Search<'m>, KeptError> {
        match File::open(self.path) {
            Ok(file) => Search::continued(model, scope, &self.title, &mut BufReader::new(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Search::new(model, scope)),
            Err(error) => Err(error.into()),
        }
    }

    /// Keep a search that has stopped. The file is complete or as it was.
    pub(super) fn keep(&self, search: &Search<'_>) -> io::Result<()> {
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
    pub(super) fn remove(&self) -> io::Result<()> {
        match fs::remove_file(self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}
