//! Writes the files of an authority.

use std::fs::{self, DirBuilder, File};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::{CaError, failed};

pub(super) fn make_directory(path: &Path) -> Result<(), CaError> {
    let made = DirBuilder::new().mode(0o700).recursive(true).create(path);
    made.map_err(failed("make", path))
}

/// Write a file that does not exist yet.
pub(super) fn write_new(path: &Path, bytes: &[u8], mode: u32) -> Result<(), CaError> {
    let file = File::options().write(true).create_new(true).mode(mode).open(path);
    let mut file = file.map_err(failed("create", path))?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(failed("write", path))
}

/// Replace a file atomically: a reader finds the old one or the new one, whole.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<(), CaError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let new = PathBuf::from(name);
    let _ = fs::remove_file(&new); // It is left over if an earlier attempt was interrupted.
    write_new(&new, bytes, 0o644)?;
    fs::rename(&new, path).map_err(failed("replace", path))
}
