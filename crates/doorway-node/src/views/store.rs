//! Where a node keeps its epoch, and learns who the members are.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use doorway_protocol::Fence;
use parking_lot::Mutex;

/// Who the members are, and the epoch of this node.
///
/// This is where groups whose members change will come in: a store that agrees on them with others
/// implements this trait, and what a view does with its members stays as it is.
pub trait ViewStore: Send + Sync {
    /// The names of the members. A member's number is its place.
    fn members(&self) -> &[String];

    /// Raise the epoch of this node above its last one and above the one given. It is durable when
    /// this returns, so no later start can come to it again. This waits for the disk.
    fn raise(&self, above: u64) -> Result<u64, StoreError>;
}

/// Why the epoch could not be raised.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another process has the directory.
    #[error(
        "another node, of this or another process, uses the directory {}; stop it, or give each \
         node a directory of its own",
        .0.display()
    )]
    InUse(PathBuf),
    /// The epoch cannot be told.
    #[error(
        "{} is damaged. Fences must not go back, so this node starts only when the file holds one \
         line, `epoch N`, with N at least as high as ever before: a member that runs tells the \
         epoch that it knows. If no member has ever served a lock, remove the file",
        .0.display()
    )]
    Damaged(PathBuf),
    /// Fences would be full.
    #[error("epochs end at {limit}", limit = Fence::VIEW_LIMIT - 1)]
    Full,
    /// The disk refused.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// With which file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Members that never change, and an epoch in a directory of this node alone.
#[derive(Debug)]
pub struct Fixed {
    members: Vec<String>,
    directory: PathBuf,
    /// Open and locked while this lives. One thread raises at a time.
    lock: Mutex<File>,
}

impl Fixed {
    /// Take the directory for this process; it is made if only it is missing, not its parent.
    pub fn open(members: Vec<String>, directory: &Path) -> Result<Self, StoreError> {
        let directory = directory.to_owned();
        match fs::create_dir(&directory) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed("create", &directory)(error)),
        }
        // A directory whose entry is lost with the power would take the epoch with it. Whoever made
        // it may have been killed before this.
        sync_directory(&directory.join(".."))?;
        let path = directory.join("lock");
        let lock = File::options().create(true).truncate(false).write(true).open(&path);
        let lock = lock.map_err(failed("open", &path))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { members, directory, lock: Mutex::new(lock) }),
            Err(TryLockError::WouldBlock) => Err(StoreError::InUse(directory)),
            Err(TryLockError::Error(error)) => Err(failed("lock", &path)(error)),
        }
    }

    /// The epoch on disk: 0 if this node has never started.
    fn read(&self) -> Result<u64, StoreError> {
        let path = self.directory.join("epoch");
        match fs::read(&path) {
            Ok(bytes) => parse(&bytes).ok_or(StoreError::Damaged(path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(failed("read", &path)(error)),
        }
    }

    /// Whenever this is cut short, the file holds the old epoch or the new one, whole.
    fn write(&self, epoch: u64) -> Result<(), StoreError> {
        let (path, new) = (self.directory.join("epoch"), self.directory.join("epoch.new"));
        let mut file = File::create(&new).map_err(failed("create", &new))?;
        let written = file.write_all(format!("epoch {epoch}\n").as_bytes());
        written.and_then(|()| file.sync_all()).map_err(failed("write", &new))?;
        fs::rename(&new, &path).map_err(failed("replace", &path))?;
        sync_directory(&self.directory)
    }
}

impl ViewStore for Fixed {
    fn members(&self) -> &[String] {
        &self.members
    }

    fn raise(&self, above: u64) -> Result<u64, StoreError> {
        let _alone = self.lock.lock();
        // Read again each time: an attempt that failed late may have left the new epoch behind.
        let epoch = next(self.read()?.max(above))?;
        self.write(epoch)?;
        Ok(epoch)
    }
}

/// A node without others that keeps nothing. Its fences grow only while it lives: whoever compares
/// them beyond its end needs a directory.
///
/// In a group a node must not forget its epoch, so this is for a single member.
#[derive(Debug)]
pub struct Volatile {
    member: [String; 1],
    epoch: Mutex<u64>,
}

impl Volatile {
    /// The only member.
    pub fn new(member: String) -> Self {
        Self { member: [member], epoch: Mutex::new(0) }
    }
}

impl ViewStore for Volatile {
    fn members(&self) -> &[String] {
        &self.member
    }

    fn raise(&self, above: u64) -> Result<u64, StoreError> {
        let mut epoch = self.epoch.lock();
        *epoch = next(above.max(*epoch))?;
        Ok(*epoch)
    }
}

fn next(epoch: u64) -> Result<u64, StoreError> {
    if epoch < Fence::VIEW_LIMIT - 1 { Ok(epoch + 1) } else { Err(StoreError::Full) }
}

/// Exactly what was written, or nothing: no other spelling, no missing end.
fn parse(bytes: &[u8]) -> Option<u64> {
    let number = std::str::from_utf8(bytes).ok()?.strip_prefix("epoch ")?.strip_suffix('\n')?;
    let epoch: u64 = number.parse().ok()?;
    let canonical = number == epoch.to_string() && (1..Fence::VIEW_LIMIT).contains(&epoch);
    canonical.then_some(epoch)
}

/// Make the entries of a directory durable, where the system has a call for it.
fn sync_directory(path: &Path) -> Result<(), StoreError> {
    if cfg!(unix) {
        let synced = File::open(path).and_then(|directory| directory.sync_all());
        synced.map_err(failed("sync", path))?;
    }
    Ok(())
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::Io { what, path, source }
}
