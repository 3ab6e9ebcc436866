//! The store of a node: the list of members, and the epoch of the node.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use doorway_protocol::Fence;
use parking_lot::Mutex;

/// The members of a group, and the durable epoch of this node.
///
/// The list of members never changes. A store by which nodes agree on their members would be
/// another trait, beside this one.
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

/// A directory with the epoch of a node: one of this machine, or one of a simulation.
pub trait EpochDirectory {
    /// Read a file.
    fn read(&self, name: &str) -> io::Result<Vec<u8>>;

    /// Make a file with these contents, which need not be on disk yet.
    fn write(&self, name: &str, contents: &[u8]) -> io::Result<()>;

    /// Wait until the contents of a file are on disk.
    fn sync(&self, name: &str) -> io::Result<()>;

    /// Give a file another name, which replaces the file of that name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Wait until the names of the files are on disk.
    fn sync_names(&self) -> io::Result<()>;
}

/// The durable epoch of a node, in a file of its directory.
#[derive(Debug)]
pub struct EpochFile<D> {
    directory: D,
    /// The name of the directory in messages.
    path: PathBuf,
}

impl<D: EpochDirectory> EpochFile<D> {
    /// The epoch in this directory, which has this name in messages.
    pub fn new(directory: D, path: PathBuf) -> Self {
        Self { directory, path }
    }

    /// Raise the epoch above its last one and above the given one. When this returns, the new epoch
    /// is durable.
    pub fn raise(&self, above: u64) -> Result<u64, StoreError> {
        // Read the file each time: an earlier attempt that failed late may have left its epoch
        // behind.
        let epoch = next(self.read()?.max(above))?;
        self.write(epoch)?;
        Ok(epoch)
    }

    /// The epoch on disk; 0 if this node has never started.
    pub fn read(&self) -> Result<u64, StoreError> {
        let path = self.path.join("epoch");
        match self.directory.read("epoch") {
            Ok(bytes) => parse(&bytes).ok_or(StoreError::Damaged(path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(failed("read", &path)(error)),
        }
    }

    /// Write the epoch atomically: after a crash at any time the file holds either the old epoch or
    /// the new one.
    fn write(&self, epoch: u64) -> Result<(), StoreError> {
        let (path, new) = (self.path.join("epoch"), self.path.join("epoch.new"));
        let text = format!("epoch {epoch}\n");
        let written = self.directory.write("epoch.new", text.as_bytes());
        written.and_then(|()| self.directory.sync("epoch.new")).map_err(failed("write", &new))?;
        self.directory.rename("epoch.new", "epoch").map_err(failed("replace", &path))?;
        self.directory.sync_names().map_err(failed("sync", &self.path))
    }
}

/// A directory of this machine.
#[derive(Debug)]
struct RealDirectory(PathBuf);

impl EpochDirectory for RealDirectory {
    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        fs::read(self.0.join(name))
    }

    fn write(&self, name: &str, contents: &[u8]) -> io::Result<()> {
        fs::write(self.0.join(name), contents)
    }

    fn sync(&self, name: &str) -> io::Result<()> {
        File::options().write(true).open(self.0.join(name))?.sync_all()
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.0.join(from), self.0.join(to))
    }

    fn sync_names(&self) -> io::Result<()> {
        sync_names(&self.0)
    }
}

/// The last epoch of a node of a fixed group that used this directory; 0 if there was none.
pub fn last_epoch(directory: &Path) -> Result<u64, StoreError> {
    EpochFile::new(RealDirectory(directory.to_owned()), directory.to_owned()).read()
}

/// A fixed list of members, and an epoch in a directory of this node alone.
#[derive(Debug)]
pub struct DirectoryEpochStore {
    members: Vec<String>,
    epoch: EpochFile<RealDirectory>,
    /// The lock file, open and locked while this store lives. The mutex lets one thread raise the
    /// epoch at a time.
    lock: Mutex<File>,
}

impl DirectoryEpochStore {
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
        let parent = directory.join("..");
        sync_names(&parent).map_err(failed("sync", &parent))?;
        let path = directory.join("lock");
        let lock = File::options().create(true).truncate(false).write(true).open(&path);
        let lock = lock.map_err(failed("open", &path))?;
        match lock.try_lock() {
            Ok(()) => {
                let epoch = EpochFile::new(RealDirectory(directory.clone()), directory);
                Ok(Self { members, epoch, lock: Mutex::new(lock) })
            }
            Err(TryLockError::WouldBlock) => Err(StoreError::InUse(directory)),
            Err(TryLockError::Error(error)) => Err(failed("lock", &path)(error)),
        }
    }
}

impl EpochStore for DirectoryEpochStore {
    fn members(&self) -> &[String] {
        &self.members
    }

    fn raise(&self, above: u64) -> Result<u64, StoreError> {
        let _alone = self.lock.lock();
        self.epoch.raise(above)
    }
}

/// A store in memory, for a node without peers. Fences grow only while the process lives; for
/// fences that keep growing after a restart, use a directory.
///
/// In a group a node must not forget its epoch, so this store is for a single member.
#[derive(Debug)]
pub struct MemoryEpochStore {
    member: [String; 1],
    epoch: Mutex<u64>,
}

impl MemoryEpochStore {
    /// Make a store for this single member.
    pub fn new(member: String) -> Self {
        Self { member: [member], epoch: Mutex::new(0) }
    }
}

impl EpochStore for MemoryEpochStore {
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

/// Make the names of the files of a directory durable, on systems that have a call for it.
fn sync_names(directory: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(directory)?.sync_all() } else { Ok(()) }
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::Io { what, path, source }
}
