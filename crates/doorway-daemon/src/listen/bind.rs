//! Binds the Unix socket of a service.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net as unix;
use std::path::{Path, PathBuf};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};
use tokio::net::UnixListener;

use crate::settings::Socket;

/// How many connections may wait to be accepted; the system may allow fewer.
const BACKLOG: i32 = 4096;

/// The file of a socket. Dropping this value removes the file, unless another file has replaced it.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
    /// While the socket is open, no other file gets its inode number.
    _socket: unix::UnixListener,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let there = fs::symlink_metadata(&self.path);
        if there.is_ok_and(|there| (there.dev(), there.ino()) == (self.device, self.inode)) {
            // If that fails, the next service replaces the file.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// An abstract Unix socket that has its name, and does not listen yet.
#[derive(Debug)]
pub struct ReservedSocket(OwnedFd);

/// Take the name of an abstract Unix socket.
pub fn reserve(name: &str) -> io::Result<ReservedSocket> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::bind(&socket, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
    Ok(ReservedSocket(socket))
}

impl ReservedSocket {
    /// Listen from now on. To be called on a runtime.
    pub fn listen(self) -> io::Result<UnixListener> {
        rustix::net::listen(&self.0, BACKLOG)?;
        UnixListener::from_std(self.0.into())
    }
}

/// Listen on a Unix socket. A file on which nobody listens is replaced, so the caller must hold the
/// ledger of the service before. To be called on a runtime.
pub fn bind_unix(socket: &Socket) -> io::Result<(UnixListener, Option<SocketFile>)> {
    let (listener, file) = match socket {
        Socket::Abstract(name) => (reserve(name)?.listen()?, None),
        Socket::File(path, mode) => {
            let (listener, file) = bind_file(path, *mode)?;
            listener.set_nonblocking(true)?;
            (UnixListener::from_std(listener)?, Some(file))
        }
    };
    Ok((listener, file))
}

fn bind_file(path: &Path, mode: u32) -> io::Result<(unix::UnixListener, SocketFile)> {
    match fs::symlink_metadata(path) {
        Ok(about) if about.file_type().is_socket() => {
            if unix::UnixStream::connect(path).is_ok() {
                return Err(io::ErrorKind::AddrInUse.into());
            }
            fs::remove_file(path)?;
        }
        Ok(_) => return Err(io::Error::other("a file that is not a socket is in its place")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = fs::File::open(parent.unwrap_or(Path::new(".")))?;
    // The socket has another name until its permissions are right, so that nobody connects before.
    // The name of a socket must be short, so the directory is named by its descriptor.
    let new = format!("/proc/self/fd/{}/.new{}", directory.as_raw_fd(), std::process::id());
    let _ = fs::remove_file(&new); // Left over from a dead process with the same id.
    let listener = unix::UnixListener::bind(&new)?;
    fs::set_permissions(&new, fs::Permissions::from_mode(mode))?;
    let about = fs::symlink_metadata(&new)?;
    fs::rename(&new, path)?;
    let (device, inode) = (about.dev(), about.ino());
    let same = listener.try_clone()?;
    Ok((listener, SocketFile { path: path.to_owned(), device, inode, _socket: same }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path of exactly this many bytes, in an empty directory.
    fn path(bytes: usize, name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("doorway-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        let filling = "x".repeat(bytes - directory.as_os_str().len() - "//s".len());
        let directory = directory.join(filling);
        fs::create_dir_all(&directory).unwrap();
        directory.join("s")
    }

    #[tokio::test]
    async fn the_longest_path_that_clients_can_use_is_served_and_nothing_else_left() {
        let path = path(107, "bind");
        let (listener, file) = bind_unix(&Socket::File(path.clone(), 0o640)).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o640);
        assert!(unix::UnixStream::connect(&path).is_ok());
        let again = bind_unix(&Socket::File(path.clone(), 0o640)).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AddrInUse);
        let directory = path.parent().unwrap();
        assert_eq!(fs::read_dir(directory).unwrap().count(), 1);
        drop((listener, file));
        assert_eq!(fs::read_dir(directory).unwrap().count(), 0);
        fs::remove_dir_all(directory.parent().unwrap()).unwrap();
    }

    #[tokio::test]
    async fn the_socket_of_another_is_not_removed() {
        let path = path(100, "other");
        let socket = Socket::File(path.clone(), 0o600);
        let (listener, file) = bind_unix(&socket).unwrap();
        fs::remove_file(&path).unwrap();
        let (_listener, _other) = bind_unix(&socket).unwrap();
        drop((listener, file));
        assert!(unix::UnixStream::connect(&path).is_ok());
        fs::remove_dir_all(path.parent().unwrap().parent().unwrap()).unwrap();
    }
}
