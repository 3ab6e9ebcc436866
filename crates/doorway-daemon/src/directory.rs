//! The directory in which a node keeps what must survive a restart: can it be used?

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, FlockOperation, Mode, OFlags, flock};

/// A directory with less free space than this many bytes counts as full.
const ROOM: u64 = 1 << 16;

/// Why a directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DirectoryError {
    #[error("{} is not a directory", .0.display())]
    NotADirectory(PathBuf),
    #[error("{} belongs to uid {owner}, not to uid {user}", path.display())]
    Foreign { path: PathBuf, owner: u32, user: u32 },
    #[error("uid {user} may not write to {}, which belongs to uid {owner}", path.display())]
    Denied { path: PathBuf, owner: u32, user: u32 },
    #[error("no space is left in {}", .0.display())]
    Full(PathBuf),
}

/// The user who runs this process.
pub(crate) fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Whether files can be made in a directory, or the directory itself can be made if it is missing;
/// true if it exists. Nothing is changed. A `private` directory must belong to this user.
pub(crate) fn examine(directory: &Path, private: bool) -> Result<bool, DirectoryError> {
    let exists = fs::symlink_metadata(directory).is_ok();
    let parent = directory.parent().filter(|parent| !parent.as_os_str().is_empty());
    let place = if exists { directory } else { parent.unwrap_or(Path::new(".")) };
    let about = fs::metadata(place).ok().filter(fs::Metadata::is_dir);
    let about = about.ok_or_else(|| DirectoryError::NotADirectory(place.to_owned()))?;
    let (path, owner, user) = (place.to_owned(), about.uid(), user());
    if exists && private && owner != user {
        return Err(DirectoryError::Foreign { path, owner, user });
    }
    if rustix::fs::access(place, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        return Err(DirectoryError::Denied { path, owner, user });
    }
    match rustix::fs::statvfs(place) {
        // Some file systems have no blocks, and tell nothing.
        Ok(about)
            if about.f_blocks > 0
                && about.f_bavail.saturating_mul(about.f_frsize) < ROOM
                && user != 0 =>
        {
            Err(DirectoryError::Full(path))
        }
        Ok(about) if about.f_blocks > 0 && about.f_bfree * about.f_frsize < ROOM => {
            Err(DirectoryError::Full(path))
        }
        _ => Ok(exists),
    }
}

/// Take the directory of one user, in a place where others may write too: make it if it is missing,
/// and make sure that it is that user's own. While what is returned lives, programs that clean up
/// such places leave the directory alone.
pub(crate) fn take_private(directory: &Path) -> Result<fs::File, String> {
    let failed = |error: io::Error| error.to_string();
    match fs::DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(failed(error)),
        _ => {}
    }
    // A symbolic link is not followed: what is checked is what is used.
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::open(directory, flags, Mode::empty());
    let opened = fs::File::from(opened.map_err(|error| failed(error.into()))?);
    let about = opened.metadata().map_err(failed)?;
    if about.uid() != user() {
        return Err(format!("it belongs to uid {}, not to uid {}", about.uid(), user()));
    }
    if about.mode() & 0o077 != 0 {
        opened.set_permissions(fs::Permissions::from_mode(0o700)).map_err(failed)?;
    }
    flock(&opened, FlockOperation::NonBlockingLockShared).map_err(|error| failed(error.into()))?;
    Ok(opened)
}
