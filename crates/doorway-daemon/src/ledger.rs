//! The ledger: which sessions there are, for the process that comes after a crash of this one.
//!
//! A file of records of equal size, each written at its place when a session first holds something
//! and erased when it ends. It survives the process, not the machine: nothing waits for the disk
//! but the marker at the beginning, which says when the machine was started, whether clients of
//! other machines were served, for how long sessions could live, whether the service stopped as it
//! should, and which numbers sessions have had. One that stopped as it should has left the records
//! of those who could not be told, and go on.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use doorway_protocol::{Fence, Life, Name, Secret};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::clock::ms;

/// How long a record is, with what surrounds it. So many divide a page, so that none is ever torn.
const RECORD: usize = 512;

/// Marks a record, in its length, whose checksum is a CRC-32. Records of version 0.1.0 have an
/// FNV-1a and no mark. That version takes a marked record for damaged, which is safe.
const CRC: u16 = 1 << 15;

/// How many numbers of sessions belong to one start.
const NUMBERS: u64 = 1 << 32;

/// Why there is no ledger.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// Another service has the directory.
    #[error("another service uses {}; stop it, or use a directory of your own", .0.display())]
    InUse(PathBuf),
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

/// What was found in the ledger.
#[derive(Debug, Default)]
pub struct Former {
    /// The machine has run since.
    pub same_boot: bool,
    /// Some of it cannot be read.
    pub damaged: bool,
    /// It may lack sessions that held something: it is damaged, or the machine was started anew
    /// before the disk knew of sessions of other machines.
    pub lacking: bool,
    /// Sessions that it may lack lived no longer than this without being heard of.
    pub ttl: Duration,
    /// No session before this start had a higher number.
    pub last: u64,
    /// The records that were there, with their places.
    pub(crate) records: Vec<(u32, Record)>,
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Record {
    Marker(Marker),
    Session(SessionRecord),
    Grant(GrantRecord),
}

/// What is known of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SessionRecord {
    pub(crate) number: u64,
    pub(crate) secret: Secret,
    pub(crate) ttl_ms: u32,
    pub(crate) life: Life,
    pub(crate) remote: bool,
    /// The process that it lives with, or that opened its connection.
    pub(crate) pid: Option<u32>,
    /// When that was started.
    pub(crate) started: Option<u64>,
    pub(crate) uid: Option<u32>,
    pub(crate) principal: String,
    pub(crate) client: String,
}

/// What a session without a connection holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GrantRecord {
    pub(crate) session: u64,
    pub(crate) lock: Name,
    pub(crate) shared: bool,
    pub(crate) permits: Option<u32>,
    pub(crate) fence: Fence,
    pub(crate) request: u64,
}

/// The first record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Marker {
    boot: String,
    /// The process has stopped, and all who may hold something are in the ledger.
    clean: bool,
    tcp: bool,
    /// It lacked sessions when this process started, which has not waited for all of them yet.
    lacking: bool,
    /// The longest that a session could live without being heard of.
    ttl_ms: u64,
    /// Sessions up to this number may have been.
    last: u64,
}

/// The ledger of a service. The directory is this process' while it lives.
#[derive(Debug)]
pub struct Ledger {
    file: File,
    path: PathBuf,
    marker: Marker,
    first: u64,
    places: Mutex<Places>,
}

#[derive(Debug)]
struct Places {
    /// All from this one on are free.
    end: u32,
    free: Vec<u32>,
}

impl Ledger {
    /// Take a directory, which is made if only it is missing, and find what was left in it. `tcp`:
    /// will clients of other machines be served? `ttl`: how long may sessions live unheard?
    pub fn open(directory: &Path, tcp: bool, ttl: Duration) -> Result<(Self, Former), LedgerError> {
        match fs::DirBuilder::new().mode(0o700).create(directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(failed("create", directory)(error));
            }
            _ => {}
        }
        let path = directory.join("sessions");
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut file = options.open(&path).map_err(failed("open", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LedgerError::InUse(directory.into())),
            Err(TryLockError::Error(error)) => return Err(failed("lock", &path)(error)),
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed("read", &path))?;
        let boot = boot_id();
        let former = read(&bytes, &boot);
        if former.damaged {
            tracing::error!(
                path = %path.display(),
                "the ledger of sessions is damaged: whoever held a lock may be unknown, so nothing \
                 is granted before the longest time to live is over"
            );
        }
        let used: BTreeSet<u32> = former.records.iter().map(|(place, _)| *place).collect();
        let end = used.last().map_or(1, |last| last + 1);
        let free: Vec<u32> = (1..end).filter(|place| !used.contains(place)).collect();
        let (first, last, lacking) = (former.last, former.last + NUMBERS, former.lacking);
        // While some are waited for whom nobody knows, another crash must not shorten their time.
        let ttl = if lacking { ttl.max(former.ttl) } else { ttl };
        let marker = Marker { boot, clean: false, tcp, lacking, ttl_ms: ms(ttl), last };
        let places = Mutex::new(Places { end, free: Vec::new() });
        let ledger = Self { file, path, marker, first, places };
        ledger.mark(false, lacking)?;
        // What lies behind nobody needs, or nobody can read.
        let length = u64::from(end) * RECORD as u64;
        ledger.file.set_len(length).map_err(failed("shorten", &ledger.path))?;
        if former.damaged {
            for place in &free {
                ledger.erase(*place);
            }
        } else {
            ledger.places.lock().free = free;
        }
        Ok((ledger, former))
    }

    /// Nobody is waited for any more, and all who hold something are in the ledger.
    pub(crate) fn settled(&self) {
        if self.marker.lacking
            && let Err(error) = self.mark(false, false)
        {
            tracing::error!("{error}"); // The next start waits for longer than it need.
        }
    }

    /// Sessions of this start have higher numbers.
    pub(crate) fn first_session(&self) -> u64 {
        self.first
    }

    /// Write a record; where?
    pub(crate) fn write(&self, record: &Record) -> io::Result<u32> {
        let place = {
            let mut places = self.places.lock();
            places.free.pop().unwrap_or_else(|| {
                places.end += 1;
                places.end - 1
            })
        };
        let written = self.put(place, record);
        if written.is_err() {
            self.places.lock().free.push(place);
        }
        written.map(|()| place)
    }

    /// Write another record at a place.
    pub(crate) fn rewrite(&self, place: u32, record: &Record) -> io::Result<()> {
        self.put(place, record)
    }

    /// Erase a record.
    pub(crate) fn erase(&self, place: u32) {
        let at = u64::from(place) * RECORD as u64;
        match self.file.write_all_at(&[0; 2], at) {
            Ok(()) => self.places.lock().free.push(place),
            // The place stays taken: after a crash somebody is waited for who does not come.
            Err(error) => tracing::error!(path = %self.path.display(), "cannot write: {error}"),
        }
    }

    /// The service has stopped as it should: nobody holds anything but those whose records are
    /// left, and, unless it is `settled`, those whom the ledger lacked from the beginning.
    pub fn close(&self, settled: bool) {
        if let Err(error) = self.mark(true, self.marker.lacking && !settled) {
            tracing::error!("{error}");
        }
    }

    fn mark(&self, clean: bool, lacking: bool) -> Result<(), LedgerError> {
        let marker = Marker { clean, lacking, ..self.marker.clone() };
        let written = self.put(0, &Record::Marker(marker));
        let synced = written.and_then(|()| self.file.sync_all());
        synced.map_err(failed("write", &self.path))
    }

    fn put(&self, place: u32, record: &Record) -> io::Result<()> {
        self.file.write_all_at(&encode(record), u64::from(place) * RECORD as u64)
    }
}

/// A record as it stands in the file: its length with the mark of the checksum, the checksum, and
/// the value.
fn encode(record: &Record) -> [u8; RECORD] {
    let mut bytes = [0; RECORD];
    let length = postcard::to_slice(record, &mut bytes[6..])
        .expect("limits on everything that goes into a record keep it short")
        .len();
    let sum = crc32fast::hash(&bytes[6..6 + length]);
    bytes[..2].copy_from_slice(&(length as u16 | CRC).to_le_bytes());
    bytes[2..6].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// The record in these bytes, if its checksum is right.
fn decode(bytes: &[u8]) -> Option<Record> {
    let head = u16::from_le_bytes(bytes.get(..2)?.try_into().ok()?);
    let told = u32::from_le_bytes(bytes.get(2..6)?.try_into().ok()?);
    let length = usize::from(head & !CRC);
    let value = bytes.get(6..6 + length)?;
    let sum = if head & CRC != 0 { crc32fast::hash(value) } else { fnv1a(value) };
    (length > 0 && sum == told).then(|| postcard::from_bytes(value).ok())?
}

/// The checksum of version 0.1.0.
fn fnv1a(bytes: &[u8]) -> u32 {
    let step = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    bytes.iter().fold(0x811c_9dc5, step)
}

fn read(bytes: &[u8], boot: &str) -> Former {
    let mut records = bytes.chunks(RECORD).map(decode).zip(0..);
    if bytes.is_empty() {
        return Former::default();
    }
    let Some((Some(Record::Marker(marker)), _)) = records.next() else {
        // Nobody knows what was before, so it is taken to be the worst. The numbers of sessions
        // begin where none can have got in the time since the first start that could have been.
        let last = seconds_since_2026() << 20;
        return Former { damaged: true, lacking: true, last, ..Former::default() };
    };
    let Marker { boot: of, clean, tcp, lacking, ttl_ms, last } = marker;
    let same_boot = of == boot;
    // Another start of the machine may have come before the disk knew: that is no damage.
    let damaged = same_boot && bytes.chunks(RECORD).any(is_damaged);
    let lacking = lacking || damaged || tcp && !same_boot && !clean;
    let ttl = Duration::from_millis(ttl_ms);
    let records = records.filter_map(|(record, place)| Some((place, record?))).collect();
    Former { same_boot, damaged, lacking, ttl, last, records }
}

/// Was there a record that cannot be read any more? What was erased has no length.
fn is_damaged(bytes: &[u8]) -> bool {
    bytes.iter().take(2).any(|byte| *byte != 0) && decode(bytes).is_none()
}

/// The marker as it would be if the machine had been started since.
#[cfg(test)]
pub(crate) fn of_another_boot(bytes: &mut [u8]) {
    if let Some(Record::Marker(marker)) = bytes.get(..RECORD).and_then(decode) {
        let marker = Record::Marker(Marker { boot: "another".to_owned(), ..marker });
        bytes[..RECORD].copy_from_slice(&encode(&marker));
    }
}

/// Another one at every start of the machine.
fn boot_id() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

/// Never less than before, unless somebody sets the clock back.
pub(crate) fn seconds_since_2026() -> u64 {
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
    use super::*;

    /// A file that version 0.1.0 wrote: a marker, a lease, an erased record and its grant.
    const OLD: &[u8] = include_bytes!("../tests/data/sessions-0.1.0");

    #[test]
    fn a_ledger_of_version_0_1_0_is_read() {
        let former = read(OLD, "9b0f8a52-0000-4000-8000-000000000001");
        assert!(former.same_boot && !former.damaged && !former.lacking, "{former:?}");
        assert_eq!((former.ttl, former.last), (Duration::from_mins(1), 2 << 32));
        let [(1, Record::Session(session)), (3, Record::Grant(grant))] = &former.records[..] else {
            panic!("{former:?}");
        };
        assert_eq!((session.number, session.client.as_str()), ((1 << 32) + 7, "nightly backup"));
        assert_eq!((session.secret, session.life), (Secret([7; 16]), Life::Lease));
        assert_eq!((grant.session, grant.lock.as_str()), (session.number, "deploy/web"));
        assert_eq!(grant.fence.to_string(), "3298534883333");
        assert!(read(OLD, "another boot").lacking, "clients of other machines were served");
    }

    #[test]
    fn damage_is_noticed_in_records_of_both_versions() {
        let record = decode(&OLD[RECORD..2 * RECORD]).unwrap();
        for bytes in [OLD[RECORD..2 * RECORD].to_vec(), encode(&record).to_vec()] {
            assert_eq!(decode(&bytes), Some(record.clone()));
            for byte in [0, 1, 3, 6, 20] {
                let mut damaged = bytes.clone();
                damaged[byte] ^= 4;
                assert!(is_damaged(&damaged), "byte {byte}");
            }
        }
    }
}
