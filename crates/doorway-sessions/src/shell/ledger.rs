//! The ledger: a file of all sessions that hold something, for the process that starts after a
//! crash.
//!
//! The file has records of equal size: one for every session that holds something, and one for
//! every grant. A record is written before the client is told of the grant, and erased when the
//! grant or the session ends. The ledger survives a crash of the process. A crash of the machine
//! loses what was not synced to disk. The marker at the beginning is always synced, and the other
//! records only for grants that must outlive the machine. The marker says in which boot of the
//! machine the service ran, whether it served clients of other machines, the longest time to live
//! of sessions, whether it stopped gracefully, and which session numbers may have been used. After
//! a graceful stop the sessions keep their locks, as after a crash.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use doorway_protocol::fnv::fnv1a_32;
use doorway_protocol::{DirectoryId, Fence, Life, Name, Secret};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::clock::ms;
use crate::identity;

/// The size of a record with its head, in bytes. It divides a page, so that a crash of the process
/// tears no record. A crash of the machine may do so, and then the checksum is wrong.
const RECORD: usize = 512;

/// Marks a record, in its length, whose checksum is a CRC-32. Records of version 0.1.0 have an
/// FNV-1a and no mark. That version takes a marked record for damaged, which is safe.
const CRC: u16 = 1 << 15;

/// How many bytes behind the last record a probe writes, so that it needs another page.
const PROBE: usize = 4096;

/// How many numbers of sessions belong to one start.
const NUMBERS: u64 = 1 << 32;

/// Why the ledger cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// Another service uses the directory.
    #[error("another service uses {}; stop it, or use a directory of your own", .0.display())]
    InUse(PathBuf),
    /// The system refused to read or write a file.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// The contents of the ledger that the former process left.
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Clone, Debug, Default)]
pub struct LedgerContents {
    /// Whether the machine has not been restarted since.
    pub same_boot: bool,
    /// Whether some of it cannot be read.
    pub damaged: bool,
    /// Whether it has all grants. Ledgers of version 0.1.0 lack those of sessions with a
    /// connection.
    pub complete: bool,
    /// Whether sessions that held something may be missing: the ledger is damaged, the machine was
    /// restarted before the sessions of other machines were on disk, or a grant that a client
    /// claimed could not be written.
    pub lacking: bool,
    /// The longest time to live of a session that may be missing.
    pub ttl: Duration,
    /// The highest number that a former session can have.
    pub last: u64,
    /// The records, with their places.
    pub records: Vec<(u32, Record)>,
}

impl LedgerContents {
    /// What the bytes of a ledger mean in this boot of the machine. `seconds` are those since the
    /// beginning of 2026.
    pub fn read(bytes: &[u8], boot: &str, seconds: u64) -> Self {
        let mut records = bytes.chunks(RECORD).map(decode).zip(0..);
        if bytes.is_empty() {
            return Self { complete: true, ..Self::default() };
        }
        let first = records.next().and_then(|(record, _)| record);
        let records = records.filter_map(|(record, place)| Some((place, record?)));
        let records: Vec<(u32, Record)> = records.collect();
        let Some((marker, complete)) = first.and_then(|record| match record {
            Record::Marker(marker) => Some((marker, false)),
            Record::Start(marker) => Some((marker, true)),
            Record::Session(_) | Record::Grant(_) | Record::Holder(_) | Record::Standing(_) => None,
        }) else {
            // The machine may have crashed while this record was written. The others are intact, or
            // they are not on disk yet, so the worst is assumed. Session numbers begin where no
            // former process can have got since the first release, and after those in the ledger.
            let known = || records.iter().filter_map(|(_, record)| record.session());
            let last = known().map(|it| it.number).fold(seconds << 20, u64::max);
            // Leases that are longer than sessions with heartbeats may be were synced, so none of
            // them is missing.
            let beats = |it: &&SessionRecord| it.life != Life::Lease && it.ttl_ms != u32::MAX;
            let ttl = known().filter(beats).map(|it| it.ttl_ms).max().unwrap_or_default();
            let ttl = Duration::from_millis(ttl.into());
            return Self { damaged: true, lacking: true, ttl, last, records, ..Self::default() };
        };
        let Marker { boot: of, clean, tcp, lacking, ttl_ms, last } = marker;
        let same_boot = of == boot;
        // After a restart of the machine, records that were not on disk yet are not damage.
        let damaged = same_boot && bytes.chunks(RECORD).any(is_damaged);
        let lacking = lacking || damaged || tcp && !same_boot && !clean;
        let ttl = Duration::from_millis(ttl_ms);
        Self { same_boot, damaged, complete, lacking, ttl, last, records }
    }

    /// How many grants belong to leases, which have no connection.
    pub fn leases(&self) -> usize {
        let leases: BTreeSet<u64> = self
            .records
            .iter()
            .filter_map(|(_, record)| match record {
                Record::Session(it) | Record::Standing(it) if it.life == Life::Lease => {
                    Some(it.number)
                }
                _ => None,
            })
            .collect();
        self.grants().filter(|(session, ..)| leases.contains(session)).count()
    }

    /// The grants in the ledger whose sessions are in it too: the number of the session, the lock
    /// and the fence of each.
    pub fn grants(&self) -> impl Iterator<Item = (u64, &Name, Fence)> {
        let sessions: BTreeSet<u64> =
            self.records.iter().filter_map(|(_, record)| Some(record.session()?.number)).collect();
        self.records.iter().filter_map(move |(_, record)| match record {
            Record::Grant(grant) if sessions.contains(&grant.session) => {
                Some((grant.session, &grant.lock, grant.fence))
            }
            _ => None,
        })
    }
}

/// A record of the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Record {
    /// The first record of a ledger of version 0.1.0.
    Marker(Marker),
    /// A session that holds something.
    Session(Box<SessionRecord>),
    /// A grant.
    Grant(GrantRecord),
    /// The first record of a ledger that has all grants.
    Start(Marker),
    /// A session whose processes hold a socket: see [`Secret::holder`].
    Holder(Box<SessionRecord>),
    /// A lease that may hold several locks. A version that does not know this kind takes the
    /// record for damaged, which is safe.
    Standing(Box<SessionRecord>),
}

impl Record {
    /// The session, if this is the record of one.
    fn session(&self) -> Option<&SessionRecord> {
        match self {
            Self::Session(it) | Self::Holder(it) | Self::Standing(it) => Some(it),
            Self::Marker(_) | Self::Grant(_) | Self::Start(_) => None,
        }
    }
}

/// A session.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SessionRecord {
    pub(crate) number: u64,
    pub(crate) secret: Secret,
    pub(crate) ttl_ms: u32,
    pub(crate) life: Life,
    pub(crate) remote: bool,
    /// The process that the session lives with, or that opened its connection.
    pub(crate) pid: Option<u32>,
    /// When that process was started.
    pub(crate) started: Option<u64>,
    pub(crate) uid: Option<u32>,
    pub(crate) principal: String,
    pub(crate) client: String,
}

/// A grant.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GrantRecord {
    pub(crate) session: u64,
    pub(crate) lock: Name,
    pub(crate) shared: bool,
    pub(crate) permits: Option<u32>,
    pub(crate) fence: Fence,
    pub(crate) request: u64,
}

/// The first record of the file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Marker {
    boot: String,
    /// The process has stopped gracefully: every session that may hold something is in the ledger.
    clean: bool,
    tcp: bool,
    /// Sessions were missing when this process started, and it has not waited for all of them yet,
    /// or could not write what one of them claimed.
    lacking: bool,
    /// The longest time to live of a session.
    ttl_ms: u64,
    /// The highest number that a session may have.
    last: u64,
}

/// The file in which a ledger is kept: one of this machine, or one of a simulation.
pub trait LedgerFile {
    /// Everything that is in the file.
    fn read(&self) -> io::Result<Vec<u8>>;

    /// Write bytes at a position. The file grows if they end behind its end.
    fn write_at(&self, bytes: &[u8], position: u64) -> io::Result<()>;

    /// Make the file this long.
    fn set_length(&self, length: u64) -> io::Result<()>;

    /// Wait until everything that was written is on disk. If that fails, what was written since the
    /// last success may be lost, also for this process, and no later sync tells that.
    fn sync(&self) -> io::Result<()>;
}

impl LedgerFile for File {
    fn read(&self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; self.metadata()?.len() as usize];
        self.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    }

    fn write_at(&self, bytes: &[u8], position: u64) -> io::Result<()> {
        self.write_all_at(bytes, position)
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_all()
    }
}

/// The circumstances under which a service opens its ledger.
#[derive(Clone, Debug)]
pub struct LedgerStart {
    /// The id of this boot of the machine.
    pub boot: String,
    /// Whether clients of other machines will be served.
    pub tcp: bool,
    /// The longest time to live of sessions.
    pub ttl: Duration,
    /// The seconds since the beginning of 2026.
    pub seconds: u64,
    /// The directory in which the ledger is.
    pub directory: DirectoryId,
}

/// The open ledger of a service. While it is open, no other process can open it.
#[derive(Debug)]
pub struct Ledger<F = File> {
    file: F,
    path: PathBuf,
    directory: DirectoryId,
    /// The marker as it is in the file.
    marker: Mutex<Marker>,
    extent: Mutex<Extent>,
    /// What is being synced or, after a sync that failed, what has to be written again. One thread
    /// syncs at a time.
    unsynced: Mutex<Contents>,
}

/// What stands at places of the file.
type Contents = BTreeMap<u32, Vec<u8>>;

/// What a ledger knows about the places in its file.
#[derive(Debug)]
struct Extent {
    /// No record has been written at this place or behind it.
    end: u32,
    /// The places with a record.
    used: BTreeSet<u32>,
    /// The places whose records have ended and could not be erased.
    unerased: BTreeSet<u32>,
    /// What was written since the last sync began.
    written: Contents,
}

impl Extent {
    /// Write a record, or what erases one, at a place.
    fn write(&mut self, file: &impl LedgerFile, place: u32, bytes: &[u8]) -> io::Result<()> {
        file.write_at(bytes, position(place))?;
        let written = self.written.entry(place).or_default();
        written.clear();
        written.extend_from_slice(bytes);
        self.unerased.remove(&place);
        Ok(())
    }

    /// Erase the record at a place.
    fn erase(&mut self, file: &impl LedgerFile, place: u32) -> io::Result<()> {
        self.write(file, place, &[0; 2])?;
        self.used.remove(&place);
        Ok(())
    }
}

/// Where in the file a place begins.
fn position(place: u32) -> u64 {
    u64::from(place) * RECORD as u64
}

impl Ledger {
    /// Open the ledger in a directory, and read what the former process left. The directory is made
    /// if it is missing, but not its parent. `tcp` says whether clients of other machines will be
    /// served, `ttl` is the longest time to live of sessions.
    pub fn open(
        directory: &Path,
        tcp: bool,
        ttl: Duration,
    ) -> Result<(Self, LedgerContents), LedgerError> {
        match fs::DirBuilder::new().mode(0o700).create(directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(failed("create", directory)(error));
            }
            _ => {}
        }
        let path = directory.join("sessions");
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(&path).map_err(failed("open", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LedgerError::InUse(directory.into())),
            Err(TryLockError::Error(error)) => return Err(failed("lock", &path)(error)),
        }
        let identity = directory.join(identity::FILE);
        let start = LedgerStart {
            boot: boot_id(),
            tcp,
            ttl,
            seconds: seconds_since_2026(),
            directory: identity::of_directory(directory).map_err(failed("use", &identity))?,
        };
        let (ledger, former) = Self::begin(file, path, start)?;
        if former.damaged {
            tracing::error!(
                path = %ledger.path.display(),
                "the ledger of sessions is damaged: holders of locks may be missing, so nothing is \
                 granted until the longest time to live is over"
            );
        }
        Ok((ledger, former))
    }
}

impl<F: LedgerFile> Ledger<F> {
    /// Go on with a file. `path` is its name in messages.
    pub fn begin(
        file: F,
        path: PathBuf,
        start: LedgerStart,
    ) -> Result<(Self, LedgerContents), LedgerError> {
        let LedgerStart { boot, tcp, ttl, seconds, directory } = start;
        let contents = file.read().map_err(failed("read", &path))?;
        let former = LedgerContents::read(&contents, &boot, seconds);
        let read: BTreeSet<u32> = former.records.iter().map(|(place, _)| *place).collect();
        let end = read.last().map_or(1, |last| last + 1);
        let places = || contents.chunks(RECORD).zip(0..end).skip(1);
        let used = places().filter(|(bytes, _)| !is_erased(bytes)).map(|(_, place)| place);
        let used: BTreeSet<u32> = used.collect();
        let unreadable: Vec<u32> = used.difference(&read).copied().collect();
        let last = former.last + NUMBERS;
        // While missing sessions and grants are waited for, another crash must change nothing.
        let lacking = former.lacking || !former.complete;
        let ttl = if lacking { ttl.max(former.ttl) } else { ttl };
        let marker = Marker { boot, clean: false, tcp, lacking, ttl_ms: ms(ttl), last };
        // The former process may have been unable to sync, so all of it is written again.
        let unsynced = places().map(|(bytes, place)| (place, bytes.to_vec())).collect();
        let extent = Extent { end, used, unerased: BTreeSet::new(), written: Contents::new() };
        let ledger = Self {
            file,
            path,
            directory,
            marker: Mutex::new(marker.clone()),
            extent: Mutex::new(extent),
            unsynced: Mutex::new(unsynced),
        };
        ledger.mark(&mut ledger.marker.lock(), marker)?;
        // Cut off erased and unreadable records at the end.
        ledger.file.set_length(position(end)).map_err(failed("shorten", &ledger.path))?;
        for place in unreadable {
            let _ = ledger.erase(place); // It is tried again with the next sync.
        }
        Ok((ledger, former))
    }

    /// The file, by its name in messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory in which the ledger is.
    pub fn directory(&self) -> DirectoryId {
        self.directory
    }

    /// Note that missing sessions are not waited for any more: all that hold something are in the
    /// ledger.
    pub fn settled(&self) {
        let mut current = self.marker.lock();
        let marker = Marker { lacking: false, ..current.clone() };
        if current.lacking
            && let Err(error) = self.mark(&mut current, marker)
        {
            tracing::error!("{error}"); // The next start waits longer than necessary.
        }
    }

    /// Note a longer time to live before a session may get it. If sessions are missing at the next
    /// start, their clients are waited for as long as that.
    pub fn allow_ttl(&self, ttl: Duration) -> Result<(), LedgerError> {
        let mut current = self.marker.lock();
        if ms(ttl) <= current.ttl_ms {
            return Ok(());
        }
        let marker = Marker { ttl_ms: ms(ttl), ..current.clone() };
        self.mark(&mut current, marker)
    }

    /// Write a record at a place.
    pub fn write(&self, place: u32, record: &Record) -> io::Result<()> {
        let (bytes, length) = encode(record);
        let mut extent = self.extent.lock();
        extent.write(&self.file, place, &bytes[..length])?;
        extent.used.insert(place);
        extent.end = extent.end.max(place + 1);
        Ok(())
    }

    /// Wait until all records are on disk, and those that were erased are not. Without this the
    /// ledger survives a crash of the process, but perhaps not one of the machine. An error means
    /// that the next process may find a session or a grant that has ended.
    pub fn sync(&self) -> io::Result<()> {
        self.erase_rest()?;
        self.sync_file()
    }

    /// Wait until everything that was written is on disk. The system may drop what it could not
    /// write, and tells that only once. So if the sync fails, everything since the last success is
    /// written again from memory: the file may have older contents.
    fn sync_file(&self) -> io::Result<()> {
        let mut unsynced = self.unsynced.lock();
        self.write_again(&mut unsynced)?;
        *unsynced = std::mem::take(&mut self.extent.lock().written);
        let synced = self.file.sync();
        match synced {
            Ok(()) => unsynced.clear(),
            Err(_) => drop(self.write_again(&mut unsynced)), // If it fails, it is tried again.
        }
        synced
    }

    /// Write again what a sync that failed may have lost, and what was written meanwhile.
    fn write_again(&self, unsynced: &mut Contents) -> io::Result<()> {
        if unsynced.is_empty() {
            return Ok(());
        }
        // Until this is done, no other thread may write.
        let mut extent = self.extent.lock();
        unsynced.append(&mut extent.written);
        for (place, bytes) in &*unsynced {
            self.file.write_at(bytes, position(*place))?;
        }
        extent.written = std::mem::take(unsynced);
        Ok(())
    }

    /// Do what could not be done before: erase records that have ended, and write again what a sync
    /// that failed may have lost.
    pub fn catch_up(&self) -> io::Result<()> {
        self.erase_rest()?;
        // A sync that is under way does it by itself.
        self.unsynced.try_lock().map_or(Ok(()), |mut unsynced| self.write_again(&mut unsynced))
    }

    /// Find out whether more records can be written: write empty ones behind the last record.
    pub fn probe(&self) -> io::Result<()> {
        // Until this is done, no other thread may write a record there.
        let extent = self.extent.lock();
        self.file.write_at(&[0; PROBE], position(extent.end))
    }

    /// Erase the record at a place, if there is one. If that fails, [`Ledger::sync`] and
    /// [`Ledger::catch_up`] try it again. Until then, the next process would find a session or a
    /// grant that has ended.
    pub fn erase(&self, place: u32) -> io::Result<()> {
        let mut extent = self.extent.lock();
        match extent.erase(&self.file, place) {
            Err(error) if extent.used.contains(&place) => {
                extent.unerased.insert(place);
                Err(error)
            }
            _ => Ok(()),
        }
    }

    /// Erase the records that could not be erased before.
    fn erase_rest(&self) -> io::Result<()> {
        let mut extent = self.extent.lock();
        while let Some(place) = extent.unerased.first().copied() {
            extent.erase(&self.file, place)?;
        }
        Ok(())
    }

    /// Note that the service has stopped gracefully: only sessions with a record hold anything and,
    /// unless `settled`, those that were missing from the beginning.
    pub fn close(&self, settled: bool) {
        let mut current = self.marker.lock();
        let lacking = current.lacking && !settled;
        let marker = Marker { clean: true, lacking, ..current.clone() };
        if let Err(error) = self.mark(&mut current, marker) {
            tracing::error!("{error}");
        }
    }

    /// Write the marker, and wait until it is on disk.
    fn mark(&self, current: &mut Marker, marker: Marker) -> Result<(), LedgerError> {
        let written = self.write(0, &Record::Start(marker.clone()));
        let synced = written.and_then(|()| self.sync_file());
        synced.map_err(failed("write", &self.path))?;
        *current = marker;
        Ok(())
    }
}

/// A record as it stands in the file: its length with the mark of the checksum, the checksum, and
/// the value. Returned beside it is how many bytes that takes; those behind it have no meaning.
fn encode(record: &Record) -> ([u8; RECORD], usize) {
    let mut bytes = [0; RECORD];
    let length = postcard::to_slice(record, &mut bytes[6..])
        .expect("limits on everything that goes into a record keep it short")
        .len();
    let sum = crc32fast::hash(&bytes[6..6 + length]);
    bytes[..2].copy_from_slice(&(length as u16 | CRC).to_le_bytes());
    bytes[2..6].copy_from_slice(&sum.to_le_bytes());
    (bytes, 6 + length)
}

/// The record in these bytes, if its checksum is right.
fn decode(bytes: &[u8]) -> Option<Record> {
    let head = u16::from_le_bytes(bytes.get(..2)?.try_into().ok()?);
    let told = u32::from_le_bytes(bytes.get(2..6)?.try_into().ok()?);
    let length = usize::from(head & !CRC);
    let value = bytes.get(6..6 + length)?;
    let sum =
        if head & CRC != 0 { crc32fast::hash(value) } else { fnv1a_32(value.iter().copied()) };
    (length > 0 && sum == told).then(|| postcard::from_bytes(value).ok())?
}

/// Whether there is no record. An erased record has the length 0.
fn is_erased(bytes: &[u8]) -> bool {
    bytes.iter().take(2).all(|byte| *byte == 0)
}

/// Whether there is a record that cannot be read.
fn is_damaged(bytes: &[u8]) -> bool {
    !is_erased(bytes) && decode(bytes).is_none()
}

/// The id of this boot of the machine.
fn boot_id() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

/// The seconds since the beginning of 2026. They grow, unless the clock is set back.
pub fn seconds_since_2026() -> u64 {
    const BEGINNING: u64 = 1_767_225_600; // 2026-01-01T00:00:00Z
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_secs().saturating_sub(BEGINNING)
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> LedgerError {
    let path = path.to_owned();
    move |source| LedgerError::Io { what, path, source }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// A file that version 0.1.0 wrote: a marker, a lease, an erased record and its grant.
    const OLD: &[u8] = include_bytes!("../../tests/data/sessions-0.1.0");

    #[test]
    fn a_ledger_of_version_0_1_0_is_read() {
        let former = LedgerContents::read(OLD, "9b0f8a52-0000-4000-8000-000000000001", 0);
        assert!(former.same_boot && !former.damaged && !former.lacking, "{former:?}");
        assert_eq!((former.ttl, former.last), (Duration::from_mins(1), 2 << 32));
        let [(1, Record::Session(session)), (3, Record::Grant(grant))] = &former.records[..] else {
            panic!("{former:?}");
        };
        assert_eq!((session.number, session.client.as_str()), ((1 << 32) + 7, "nightly backup"));
        assert_eq!((session.secret, session.life), (Secret([7; 16]), Life::Lease));
        assert_eq!((grant.session, grant.lock.as_str()), (session.number, "deploy/web"));
        assert_eq!(former.leases(), 1);
        assert_eq!(grant.fence.to_string(), "3298534883333");
        assert!(
            LedgerContents::read(OLD, "another boot", 0).lacking,
            "clients of other machines were served"
        );
    }

    #[test]
    fn until_an_old_ledger_is_complete_its_claims_are_believed_after_another_crash_too() {
        let directory = std::env::temp_dir().join(format!("doorway-old-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("sessions");
        fs::write(&path, OLD).unwrap();
        let lacking = || {
            let left = LedgerContents::read(&fs::read(&path).unwrap(), &boot_id(), 0);
            (left.complete, left.lacking)
        };
        let (ledger, former) = Ledger::open(&directory, false, Duration::from_mins(1)).unwrap();
        assert!(!former.complete);
        assert_eq!(lacking(), (true, true));
        ledger.settled();
        assert_eq!(lacking(), (true, false));
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_longer_ttl_is_in_the_marker_before_it_is_used() {
        let directory = std::env::temp_dir().join(format!("doorway-ttl-{}", std::process::id()));
        let (ledger, _) = Ledger::open(&directory, true, Duration::from_secs(2)).unwrap();
        for (ttl, expected) in [(60, 60), (5, 60), (90, 90)] {
            ledger.allow_ttl(Duration::from_secs(ttl)).unwrap();
            let bytes = fs::read(directory.join("sessions")).unwrap();
            let left = LedgerContents::read(&bytes, "another boot", 0);
            assert_eq!((left.lacking, left.ttl), (true, Duration::from_secs(expected)));
        }
        fs::remove_dir_all(directory).unwrap();
    }

    /// Found by the simulation: a lock without end was lost with the first record.
    #[test]
    fn grants_outlive_a_first_record_that_cannot_be_read() {
        let mut torn = OLD.to_vec();
        torn[..RECORD].fill(0);
        let left = LedgerContents::read(&torn, "another boot", 5000);
        assert!(left.damaged && left.lacking && !left.complete, "{left:?}");
        assert_eq!((left.leases(), left.last), (1, 5000 << 20));
    }

    /// The clock may be wrong, and sessions may have had a longer time to live than the settings
    /// allow now.
    #[test]
    fn without_a_first_record_the_other_records_tell_the_last_session_and_the_longest_ttl() {
        let Some(Record::Session(lease)) = decode(&OLD[RECORD..2 * RECORD]) else { panic!() };
        let with = |number, ttl_ms, life| {
            Record::Session(Box::new(SessionRecord { number, ttl_ms, life, ..(*lease).clone() }))
        };
        let connected = Life::Connection { inherited: false };
        let records = [
            with(7 << 32, 90_000, connected),
            with(9 << 32, 60_000, connected),
            with(8 << 32, u32::MAX, connected),
            with(6 << 32, 86_400_000, Life::Lease),
        ];
        let mut bytes = vec![0; RECORD];
        bytes.extend(records.iter().flat_map(|record| encode(record).0));
        let left = LedgerContents::read(&bytes, "another boot", 50);
        assert_eq!((left.last, left.ttl), (9 << 32, Duration::from_secs(90)));
    }

    /// A file that can be made to fail. If it cannot be synced, it drops what is not on disk yet,
    /// and processes see the older contents again.
    #[derive(Debug, Default)]
    struct FailingFile {
        seen: Mutex<Vec<u8>>,
        disk: Mutex<Vec<u8>>,
        writes_fail: AtomicBool,
        syncs_fail: AtomicBool,
    }

    fn put(file: &mut Vec<u8>, at: usize, bytes: &[u8]) {
        file.resize(file.len().max(at + bytes.len()), 0);
        file[at..at + bytes.len()].copy_from_slice(bytes);
    }

    impl LedgerFile for &FailingFile {
        fn read(&self) -> io::Result<Vec<u8>> {
            Ok(self.seen.lock().clone())
        }

        fn write_at(&self, bytes: &[u8], position: u64) -> io::Result<()> {
            if self.writes_fail.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            put(&mut self.seen.lock(), position as usize, bytes);
            Ok(())
        }

        fn set_length(&self, length: u64) -> io::Result<()> {
            self.seen.lock().resize(length as usize, 0);
            Ok(())
        }

        fn sync(&self) -> io::Result<()> {
            let (mut seen, mut disk) = (self.seen.lock(), self.disk.lock());
            if self.syncs_fail.load(Ordering::Relaxed) {
                seen.clone_from(&disk);
                return Err(io::ErrorKind::Other.into());
            }
            disk.clone_from(&seen);
            Ok(())
        }
    }

    fn open(file: &FailingFile) -> Result<Ledger<&FailingFile>, LedgerError> {
        let start = LedgerStart {
            boot: "boot".to_owned(),
            tcp: false,
            ttl: Duration::from_secs(1),
            seconds: 0,
            directory: DirectoryId([0; 16]),
        };
        Ok(Ledger::begin(file, PathBuf::new(), start)?.0)
    }

    /// The places with a record.
    fn places(file: &Mutex<Vec<u8>>) -> Vec<u32> {
        let left = LedgerContents::read(&file.lock(), "boot", 0);
        left.records.iter().map(|(place, _)| *place).collect()
    }

    #[test]
    fn after_a_sync_that_failed_everything_is_written_again() {
        let file = FailingFile::default();
        let fails = |fails| file.syncs_fail.store(fails, Ordering::Relaxed);
        let ledger = open(&file).unwrap();
        let record = decode(&OLD[RECORD..2 * RECORD]).unwrap();
        ledger.write(1, &record).unwrap();
        ledger.write(2, &record).unwrap();
        ledger.sync().unwrap();
        ledger.write(3, &record).unwrap();
        ledger.erase(1).unwrap();
        fails(true);
        ledger.sync().unwrap_err();
        ledger.write(4, &record).unwrap();
        ledger.sync().unwrap_err();
        // A process that starts now finds everything.
        assert_eq!((places(&file.seen), places(&file.disk)), (vec![2, 3, 4], vec![1, 2]));
        fails(false);
        ledger.sync().unwrap();
        assert_eq!(places(&file.disk), [2, 3, 4]);
    }

    #[test]
    fn what_a_sync_lost_is_written_again_as_soon_as_the_file_can_be_written() {
        let file = FailingFile::default();
        let fails = |fails| {
            file.syncs_fail.store(fails, Ordering::Relaxed);
            file.writes_fail.store(fails, Ordering::Relaxed);
        };
        let ledger = open(&file).unwrap();
        ledger.write(1, &decode(&OLD[RECORD..2 * RECORD]).unwrap()).unwrap();
        fails(true);
        ledger.sync().unwrap_err();
        ledger.catch_up().unwrap_err();
        assert_eq!(places(&file.seen), [0; 0]);
        fails(false);
        ledger.catch_up().unwrap();
        assert_eq!((places(&file.seen), places(&file.disk)), (vec![1], vec![]));
        ledger.sync().unwrap();
        assert_eq!(places(&file.disk), [1]);
    }

    #[test]
    fn what_a_former_process_could_not_sync_is_written_again() {
        let file = FailingFile::default();
        let ledger = open(&file).unwrap();
        ledger.write(1, &decode(&OLD[RECORD..2 * RECORD]).unwrap()).unwrap();
        drop(ledger);
        file.syncs_fail.store(true, Ordering::Relaxed);
        open(&file).unwrap_err();
        assert_eq!((places(&file.seen), places(&file.disk)), (vec![1], vec![]));
        file.syncs_fail.store(false, Ordering::Relaxed);
        open(&file).unwrap();
        assert_eq!(places(&file.disk), [1]);
    }

    #[test]
    fn a_record_that_could_not_be_erased_is_erased_later() {
        let file = FailingFile::default();
        let fails = |fails| file.writes_fail.store(fails, Ordering::Relaxed);
        let ledger = open(&file).unwrap();
        let places = || places(&file.seen);
        let record = decode(&OLD[RECORD..2 * RECORD]).unwrap();
        for place in 1..=3 {
            ledger.write(place, &record).unwrap();
        }
        fails(true);
        ledger.erase(1).unwrap_err();
        ledger.erase(2).unwrap_err();
        ledger.write(4, &record).unwrap_err();
        ledger.erase(4).unwrap(); // The file has nothing at this place.
        ledger.sync().unwrap_err();
        assert_eq!(places(), [1, 2, 3]);
        fails(false);
        ledger.write(2, &record).unwrap();
        ledger.sync().unwrap();
        assert_eq!(places(), [2, 3], "the record that was written later stays");
        fails(true);
        ledger.erase(1).unwrap(); // It was erased before.
        ledger.sync().unwrap();
        ledger.erase(2).unwrap_err();
        ledger.catch_up().unwrap_err();
        ledger.probe().unwrap_err();
        fails(false);
        ledger.catch_up().unwrap();
        ledger.probe().unwrap();
        assert_eq!(places(), [3]);
        ledger.write(4, &record).unwrap();
        assert_eq!(places(), [3, 4], "a probe leaves places for records");
    }

    #[test]
    fn damage_is_noticed_in_records_of_both_versions() {
        let record = decode(&OLD[RECORD..2 * RECORD]).unwrap();
        for bytes in [OLD[RECORD..2 * RECORD].to_vec(), encode(&record).0.to_vec()] {
            assert_eq!(decode(&bytes), Some(record.clone()));
            for byte in [0, 1, 3, 6, 20] {
                let mut damaged = bytes.clone();
                damaged[byte] ^= 4;
                assert!(is_damaged(&damaged), "byte {byte}");
            }
        }
    }
}
