//! The files that a person names. One that cannot be read or written is a failure, one with the
//! wrong contents a misuse.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::Path;

use anyhow::Context as _;

use crate::failure::Usage;

/// The text of a file.
pub(crate) fn read(path: &Path) -> anyhow::Result<String> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let no_text = |_| Usage(format!("{} is no text", path.display()));
    Ok(String::from_utf8(bytes).map_err(no_text)?)
}

/// Make this the text of a file.
pub(crate) fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| cannot_write(path))
}

/// Find out before long work whether its result can be kept, and leave no trace of having asked.
pub(crate) fn ensure_writable(path: &Path) -> anyhow::Result<()> {
    try_to_write(path).with_context(|| cannot_write(path))
}

fn try_to_write(path: &Path) -> io::Result<()> {
    match File::create_new(path) {
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            OpenOptions::new().append(true).open(path).map(drop)
        }
        Err(error) => Err(error),
    }
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}
