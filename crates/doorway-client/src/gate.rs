//! Gates: what a resource compares fences with.
//!
//! A lock cannot undo what a paused holder does later: it is stopped for a minute, loses the lock,
//! wakes up, and writes. So a resource that matters remembers the highest fence it has seen, and
//! refuses lower ones.
//!
//! ```
//! use doorway_client::{Fence, Gate};
//!
//! let gate = Gate::default();
//! let (paused, next) = (Fence::new(1, 33), Fence::new(1, 34));
//!
//! gate.pass(paused)?; // The holder writes, and is paused.
//! gate.pass(next)?; // Its lock is given to the next one, which writes as well.
//! let stale = gate.pass(paused).unwrap_err(); // The paused holder wakes up, and is refused.
//! assert_eq!(stale.to_string(), format!("fence {paused} is stale: {next} was here before"));
//! # Ok::<(), doorway_client::Stale>(())
//! ```

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use doorway_protocol::Fence;
use rustix::fs::OFlags;

/// A fence that is lower than one that was here before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("fence {given} is stale: {seen} was here before")]
pub struct Stale {
    /// The highest fence that has passed.
    pub seen: Fence,
    /// The one that was refused.
    pub given: Fence,
}

/// A gate in memory, for a resource that lives in one process.
///
/// Whoever holds a lock may pass any number of times; nobody passes after a newer holder has. For
/// exclusive grants, and for readers and writers; the fences of permits have no order.
#[derive(Debug, Default)]
pub struct Gate {
    highest: Mutex<Option<Fence>>,
}

impl Gate {
    /// A gate through which this fence has passed, for instance before a restart.
    pub fn new(highest: Option<Fence>) -> Self {
        Self { highest: Mutex::new(highest) }
    }

    /// The highest fence that has passed.
    pub fn highest(&self) -> Option<Fence> {
        *self.highest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Pass, unless a newer holder has passed.
    pub fn pass(&self, fence: Fence) -> Result<(), Stale> {
        self.pass_and(fence, || ())
    }

    /// Pass and do something before anyone else may pass: a newer holder cannot come in between.
    pub fn pass_and<T>(&self, fence: Fence, act: impl FnOnce() -> T) -> Result<T, Stale> {
        let mut highest = self.highest.lock().unwrap_or_else(PoisonError::into_inner);
        check(*highest, fence)?;
        *highest = Some(fence);
        Ok(act())
    }
}

/// A gate that is kept in a file, for a resource that many processes of one machine use.
///
/// ```no_run
/// use doorway_client::FileGate;
///
/// let fence = std::env::var("DOORWAY_FENCE")?.parse()?; // As `doorway run` tells its command.
/// let passage = FileGate::new("/var/lib/backup/fence").pass(fence)?;
/// // Write here: until `passage` is dropped nobody else passes.
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Only the user that makes the file may use it: whoever can open a file can lock it, and with it
/// everyone out. For several users, make an empty file beforehand with the rights that they need.
#[derive(Clone, Debug)]
pub struct FileGate {
    path: PathBuf,
}

/// Why a fence did not pass a gate in a file.
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    /// A newer holder has passed.
    #[error(transparent)]
    Stale(#[from] Stale),
    /// The file cannot be used.
    #[error("cannot use the fence file {path}: {why}")]
    File {
        /// The file.
        path: PathBuf,
        /// What happened.
        #[source]
        why: io::Error,
    },
    /// The file holds something else.
    #[error("{0} is no fence file: it must be empty or hold one fence")]
    Foreign(PathBuf),
}

/// The time in which only this one may pass: it ends when it is dropped, or with its process.
///
/// A holder that is stopped in between keeps all others out until it goes on or is killed: that is
/// the price of knowing that nobody writes behind a newer one.
#[derive(Debug)]
#[must_use = "others may pass as soon as it is dropped"]
pub struct Passage {
    _locked: File,
}

impl FileGate {
    /// So many digits has every fence in a file, so that writing one replaces the other.
    const DIGITS: usize = 20;

    /// The gate that is kept in this file, which is made when the first one passes.
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
            // The file may be new. Its name must be on the disk before anyone relies on what it
            // holds, or it would be gone after a power cut, and the fence with it.
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

    /// Open the file, which is made if there is none. Anything but a file might keep whoever reads
    /// it waiting, and holds no fence.
    fn open(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        options.custom_flags((OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed());
        let file = options.open(&self.path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
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

/// Wait until nobody else is passing. A signal that a program handles does not end that.
fn lock(file: &File) -> io::Result<()> {
    loop {
        match file.lock() {
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            locked => return locked,
        }
    }
}

fn check(highest: Option<Fence>, given: Fence) -> Result<(), Stale> {
    match highest {
        Some(seen) if given < seen => Err(Stale { seen, given }),
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
    fn a_gate_refuses_what_is_older() {
        let gate = Gate::default();
        assert_eq!(gate.highest(), None);
        assert_eq!(gate.pass(fence(5)), Ok(()));
        assert_eq!(gate.pass(fence(5)), Ok(()), "a holder may pass again");
        assert_eq!(gate.pass_and(fence(7), || 42), Ok(42));
        let stale = Stale { seen: fence(7), given: fence(6) };
        assert_eq!(gate.pass_and(fence(6), || panic!("it acts")), Err(stale));
        assert_eq!(gate.highest(), Some(fence(7)));
        assert!(Gate::new(Some(fence(7))).pass(fence(6)).is_err());
    }

    #[test]
    fn a_gate_in_a_file_remembers() {
        let path = std::env::temp_dir().join(format!("doorway-gate-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let gate = FileGate::new(&path);
        drop(gate.pass(fence(5)).unwrap());
        drop(gate.pass(Fence::new(2, 1)).unwrap());
        let refused = FileGate::new(&path).pass(fence(6)).unwrap_err();
        assert!(matches!(refused, GateError::Stale(Stale { given, .. }) if given == fence(6)));
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
    fn what_is_no_file_is_refused_at_once() {
        let path = std::env::temp_dir().join(format!("doorway-fifo-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, mode).unwrap();
        for path in [path.as_path(), Path::new("/dev/null"), Path::new("/dev/zero")] {
            let error = FileGate::new(path).pass(fence(1)).unwrap_err().to_string();
            assert!(error.ends_with("it is no regular file"), "{error}");
        }
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_gate_is_its_makers() {
        let path = std::env::temp_dir().join(format!("doorway-mode-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        drop(FileGate::new(&path).pass(fence(1)).unwrap());
        let mode = std::fs::metadata(&path).unwrap().permissions();
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o600);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn nobody_passes_while_another_acts() {
        let path = std::env::temp_dir().join(format!("doorway-passage-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let gate = FileGate::new(&path);
        let passage = gate.pass(fence(1)).unwrap();
        let other = File::open(&path).unwrap();
        assert!(other.try_lock().is_err(), "the file is locked while someone acts");
        drop(passage);
        assert!(other.try_lock().is_ok());
        std::fs::remove_file(&path).unwrap();
    }
}
