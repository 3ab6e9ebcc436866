//! The files that a user names. A file that cannot be read or written is a failure (exit code 1); a
//! file with the wrong contents is a usage error (exit code 2).

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _};
use std::path::Path;

use anyhow::Context as _;

use crate::failure::Usage;

/// The largest file of requests, delays or recorded steps, in bytes.
pub(crate) const MAX_DATA: u64 = 1 << 30;

/// The text of a file of at most `most` bytes. A device such as `/dev/zero` has no end, so there
/// must be a limit.
pub(crate) fn read(path: &Path, most: u64) -> anyhow::Result<String> {
    let cannot_read = || format!("cannot read {}", path.display());
    let file = File::open(path).with_context(cannot_read)?;
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).with_context(cannot_read)?;
    if bytes.len() as u64 > most {
        let reason =
            format!("{} is too large: at most {} MiB are read", path.display(), most >> 20);
        return Err(Usage(reason).into());
    }
    let no_text = |_| Usage(format!("{} is not text (UTF-8)", path.display()));
    Ok(String::from_utf8(bytes).map_err(no_text)?)
}

/// Refuse a file for a picture whose name does not end in `.svg`; `what` names the picture.
pub(crate) fn ensure_svg(path: &Path, what: &str) -> Result<(), Usage> {
    if path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("svg")) {
        return Ok(());
    }
    let shown = path.display();
    Err(Usage(format!("{what} is drawn as SVG: the name '{shown}' must end in .svg")))
}

/// Write a file with this text.
pub(crate) fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| cannot_write(path))
}

/// Find out before long work whether its result can be written. A file that is created for this is
/// removed again.
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
