//! The store of a node: the list of members, and the epoch of the node.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use doorway_protocol::Fence;
use parking_lot::Mutex;

/// The members of a group, and the durable epoch of this node.
///
/// Groups whose members change can be added here: a store that agrees on the members with other
/// nodes implements this trait, and views stay as they are.
pub trait EpochStore: Send + Sync {
    /// The names of the members. The number of a member is its index.
    fn members(&self) -> &[String];

    /// Raise the epoch of this node above its last one and above the given one. When this returns,
    /// the new epoch is durable, so no later start can use it again. This waits for the disk.
    fn raise(&self, above: u64) -> Result<u64, StoreError>;
}

/// Why the epoch could not be raised.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another node uses the directory.
    #[error(
        "another node, of this or another process, uses the directory {}; stop it, or give each \
         node a directory of its own",
        .0.display()
    )]
    InUse(PathBuf),
    /// The file with the epoch cannot be read.
    #[error(
        "{} is damaged. Fences must never go back, so the node starts only if the file holds one \
         line, `epoch N`, with N at least as high as ever before. A running member tells the \
         epoch that it knows. If no member has ever served a lock, remove the file",
        .0.display()
    )]
    Damaged(PathBuf),
    /// The epoch has reached its limit, because fences have no room for a higher one.
    #[error("the epoch cannot be raised above its limit, {limit}", limit = Fence::VIEW_LIMIT - 1)]
    Full,
    /// A file operation failed.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// The operation.
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// A fixed list of members, and an epoch in a directory of this node alone.
#[derive(Debug)]
pub struct Fixed {
    members: Vec<String>,
    directory: PathBuf,
    /// The lock file, open and locked while this store lives. The mutex lets one thread raise the
    /// epoch at a time.
    lock: Mutex<File>,
}

impl Fixed {
    /// Lock the directory for this store. The directory is created if it is missing, but its parent
    /// is not.
    pub fn open(members: Vec<String>, directory: &Path) -> Result<Self, StoreError> {
        let directory = directory.to_owned();
        match fs::create_dir(&directory) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed("create", &directory)(error)),
        }
        // Make the directory itself durable: if its entry were lost in a power failure, the epoch
        // would be lost with it. This is done at every start, because the process that created the
        // directory may have been killed before it.
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

    /// The epoch on disk; 0 if this node has never started.
    fn read(&self) -> Result<u64, StoreError> {
        let path = self.directory.join("epoch");
        match fs::read(&path) {
            Ok(bytes) => parse(&bytes).ok_or(StoreError::Damaged(path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(failed("read", &path)(error)),
        }
    }

    /// Write the epoch atomically: after a crash at any time the file holds either the old epoch or
    /// the new one.
    fn write(&self, epoch: u64) -> Result<(), StoreError> {
        let (path, new) = (self.directory.join("epoch"), self.directory.join("epoch.new"));
        let mut file = File::create(&new).map_err(failed("create", &new))?;
        let written = file.write_all(format!("epoch {epoch}\n").as_bytes());
        written.and_then(|()| file.sync_all()).map_err(failed("write", &new))?;
        fs::rename(&new, &path).map_err(failed("replace", &path))?;
        sync_directory(&self.directory)
    }
}

impl EpochStore for Fixed {
    fn members(&self) -> &[String] {
        &self.members
    }

    fn raise(&self, above: u64) -> Result<u64, StoreError> {
        let _alone = self.lock.lock();
        // Read the file each time: an earlier attempt that failed late may have left its epoch
        // behind.
        let epoch = next(self.read()?.max(above))?;
        self.write(epoch)?;
        Ok(epoch)
    }
}

/// A store in memory, for a node without peers. Fences grow only while the process lives; for
/// fences that keep growing after a restart, use a directory.
///
/// In a group a node must not forget its epoch, so this store is for a single member.
#[derive(Debug)]
pub struct Volatile {
    member: [String; 1],
    epoch: Mutex<u64>,
}

impl Volatile {
    /// Make a store for this single member.
    pub fn new(member: String) -> Self {
        Self { member: [member], epoch: Mutex::new(0) }
    }
}

impl EpochStore for Volatile {
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

/// Parse the file. Only the exact text that `write` produces is accepted.
fn parse(bytes: &[u8]) -> Option<u64> {
    let number = std::str::from_utf8(bytes).ok()?.strip_prefix("epoch ")?.strip_suffix('\n')?;
    let epoch: u64 = number.parse().ok()?;
    let canonical = number == epoch.to_string() && (1..Fence::VIEW_LIMIT).contains(&epoch);
    canonical.then_some(epoch)
}

/// Make the entries of a directory durable, on systems that have a call for it.
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
