//! Gates: how a resource refuses writers that have lost their lock.
//!
//! No lock can stop a holder that was paused: it is stopped for a minute, loses the lock, wakes up,
//! and writes. So a resource that must stay consistent remembers the highest fence it has seen, and
//! refuses lower ones.
//!
//! ```
//! use doorway_client::{Fence, Gate};
//!
//! let gate = Gate::default();
//! let (paused, next) = (Fence::new(1, 33), Fence::new(1, 34));
//!
//! gate.pass(paused)?; // The holder writes, and is paused.
//! gate.pass(next)?; // The lock is granted to the next holder, which writes as well.
//! let stale = gate.pass(paused).unwrap_err(); // The paused holder wakes up, and is refused.
//! assert_eq!(stale.to_string(), format!("fence {paused} is stale: {next} was here before"));
//! # Ok::<(), doorway_client::StaleFence>(())
//! ```

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use doorway_protocol::Fence;
use rustix::fs::OFlags;

/// A fence was refused because a higher one has passed the gate before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("fence {given} is stale: {seen} was here before")]
pub struct StaleFence {
    /// The highest fence that has passed.
    pub seen: Fence,
    /// The fence that was refused.
    pub given: Fence,
}

/// A gate in memory, for a resource that lives in one process.
///
/// A holder may pass any number of times, until a newer holder has passed. Gates work for exclusive
/// grants, and for readers and writers. They do not work for locks with several permits, whose
/// fences have no order.
#[derive(Debug, Default)]
pub struct Gate {
    highest: Mutex<Option<Fence>>,
}

impl Gate {
    /// A gate that a fence has passed already, for instance before a restart.
    pub fn new(highest: Option<Fence>) -> Self {
        Self { highest: Mutex::new(highest) }
    }

    /// The highest fence that has passed.
    pub fn highest(&self) -> Option<Fence> {
        *self.highest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Pass, unless a newer holder has passed.
    pub fn pass(&self, fence: Fence) -> Result<(), StaleFence> {
        self.pass_and(fence, || ())
    }

    /// Pass, unless a newer holder has passed, and call `act` before anyone else may pass.
    pub fn pass_and<T>(&self, fence: Fence, act: impl FnOnce() -> T) -> Result<T, StaleFence> {
        let mut highest = self.highest.lock().unwrap_or_else(PoisonError::into_inner);
        check(*highest, fence)?;
        *highest = Some(fence);
        Ok(act())
    }
}

/// A gate in a file, for a resource that several processes on one machine use.
///
/// ```no_run
/// use doorway_client::FileGate;
///
/// let fence = std::env::var("DOORWAY_FENCE")?.parse()?; // Set by `doorway run` for its command.
/// let passage = FileGate::new("/var/lib/backup/fence").pass(fence)?;
/// // Write here: nobody else passes until `passage` is dropped.
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The file is created with permissions for its owner only, because every user who can open the
/// file can lock it, and so lock all others out. For several users, create an empty file
/// beforehand, with the permissions that they need.
#[derive(Clone, Debug)]
pub struct FileGate {
    path: PathBuf,
}

/// Why a fence did not pass a [`FileGate`].
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    /// A newer holder has passed.
    #[error(transparent)]
    Stale(#[from] StaleFence),
    /// The file cannot be opened, locked, read or written.
    #[error("cannot use the fence file {path}: {why}")]
    File {
        /// The path of the file.
        path: PathBuf,
        /// What went wrong.
        #[source]
        why: io::Error,
    },
    /// The file at this path holds something else than a fence.
    #[error("{0} is not a fence file; a fence file is empty or holds one fence")]
    Foreign(PathBuf),
}

/// The exclusive use of a [`FileGate`], until it is dropped or its process ends.
///
/// A holder that is stopped meanwhile keeps all others out until it continues or is killed. That is
/// the price for knowing that it never writes after a newer holder.
#[derive(Debug)]
#[must_use = "others may pass as soon as it is dropped"]
pub struct Passage {
    _locked: File,
}

impl FileGate {
    /// The number of digits of a fence in a file. It is fixed, so that one fence overwrites another
    /// completely.
    const DIGITS: usize = 20;

    /// The gate in this file, which is created when the first fence passes.
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self { path: path.as_ref().to_owned() }
    }

    /// Pass, unless a newer holder has passed. A higher fence is on the disk before this returns.
    pub fn pass(&self, fence: Fence) -> Result<Passage, GateError> {
        let wrong = |why| GateError::File { path: self.path.clone(), why };
        let mut file = self.open().map_err(wrong)?;
        lock(&file).map_err(wrong)?;
        let mut bytes = Vec::new();
        file.by_ref().take(64).read_to_end(&mut bytes).map_err(wrong)?;
        let highest = self.read(&bytes)?;
        check(highest, fence)?;
        if highest.is_none() {
            // The file may be new. Its name must be on the disk before anyone relies on the fence
            // in it, or both would be gone after a power failure.
            self.sync_directory().map_err(wrong)?;
        }
        if highest != Some(fence) {
            let text = format!("{fence:0digits$}\n", digits = Self::DIGITS);
            file.write_all_at(text.as_bytes(), 0).map_err(wrong)?;
            file.set_len(text.len() as u64).map_err(wrong)?;
            file.sync_data().map_err(wrong)?;
        }
        Ok(Passage { _locked: file })
    }

    /// Open the file, and create it if it does not exist. Anything but a regular file is refused:
    /// reading from it might block, and it holds no fence.
    fn open(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        options.custom_flags((OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed());
        let file = options.open(&self.path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        Ok(file)
    }

    fn sync_directory(&self) -> io::Result<()> {
        let directory = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
    }

    fn read(&self, bytes: &[u8]) -> Result<Option<Fence>, GateError> {
        let foreign = || GateError::Foreign(self.path.clone());
        let text = std::str::from_utf8(bytes).map_err(|_| foreign())?.trim();
        if text.is_empty() {
            return Ok(None);
        }
        text.parse().map(Some).map_err(|_| foreign())
    }
}

/// Lock the file, and wait while another process has it locked. A signal that the program handles
/// does not end the wait.
fn lock(file: &File) -> io::Result<()> {
    loop {
        match file.lock() {
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            locked => return locked,
        }
    }
}

fn check(highest: Option<Fence>, given: Fence) -> Result<(), StaleFence> {
    match highest {
        Some(seen) if given < seen => Err(StaleFence { seen, given }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fence(clock: u64) -> Fence {
        Fence::new(1, clock)
    }

    #[test]
    fn a_gate_refuses_older_fences() {
        let gate = Gate::default();
        assert_eq!(gate.highest(), None);
        assert_eq!(gate.pass(fence(5)), Ok(()));
        assert_eq!(gate.pass(fence(5)), Ok(()), "a holder may pass again");
        assert_eq!(gate.pass_and(fence(7), || 42), Ok(42));
        let stale = StaleFence { seen: fence(7), given: fence(6) };
        assert_eq!(
            gate.pass_and(fence(6), || panic!("the gate let an old fence pass")),
            Err(stale)
        );
        assert_eq!(gate.highest(), Some(fence(7)));
        assert!(Gate::new(Some(fence(7))).pass(fence(6)).is_err());
    }

    #[test]
    fn a_gate_in_a_file_remembers_the_highest_fence() {
        let path = std::env::temp_dir().join(format!("doorway-gate-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let gate = FileGate::new(&path);
        drop(gate.pass(fence(5)).unwrap());
        drop(gate.pass(Fence::new(2, 1)).unwrap());
        let refused = FileGate::new(&path).pass(fence(6)).unwrap_err();
        assert!(matches!(refused, GateError::Stale(StaleFence { given, .. }) if given == fence(6)));
        drop(gate.pass(Fence::new(2, 1)).unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{:020}\n", Fence::new(2, 1)));
        std::fs::write(&path, "something else\n").unwrap();
        assert!(matches!(gate.pass(fence(9)).unwrap_err(), GateError::Foreign(_)));
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(
            FileGate::new("/nowhere/at/all").pass(fence(1)).unwrap_err(),
            GateError::File { .. }
        ));
    }

    #[test]
    fn a_gate_must_be_a_regular_file() {
        let path = std::env::temp_dir().join(format!("doorway-fifo-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, mode).unwrap();
        for path in [path.as_path(), Path::new("/dev/null"), Path::new("/dev/zero")] {
            let error = FileGate::new(path).pass(fence(1)).unwrap_err().to_string();
            assert!(error.ends_with("it is not a regular file"), "{error}");
        }
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn the_file_of_a_gate_is_for_its_owner_only() {
        let path = std::env::temp_dir().join(format!("doorway-mode-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        drop(FileGate::new(&path).pass(fence(1)).unwrap());
        let mode = std::fs::metadata(&path).unwrap().permissions();
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o600);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn the_file_is_locked_during_a_passage() {
        let path = std::env::temp_dir().join(format!("doorway-passage-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let gate = FileGate::new(&path);
        let passage = gate.pass(fence(1)).unwrap();
        let other = File::open(&path).unwrap();
        assert!(other.try_lock().is_err(), "the passage holds the lock");
        drop(passage);
        assert!(other.try_lock().is_ok());
        std::fs::remove_file(&path).unwrap();
    }
}
