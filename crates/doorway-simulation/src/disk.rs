//! The disk of a machine, with the ledger and the epoch of its node. What was written and not
//! synced may be lost or torn when the machine crashes, but not when a process does.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::rc::Rc;

use doorway_node::views::EpochDirectory;
use doorway_sessions::ledger::LedgerFile;

use crate::random::Random;

/// The unit that a disk writes at once.
const SECTOR: usize = 512;

/// What may be wrong with a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiskTrouble {
    /// Files cannot grow.
    Full,
    /// Nothing can be written, erased or synced. The system keeps what it could not write.
    ReadOnly,
    /// Nothing gets to the disk. The system takes what is written, and drops it if a sync fails:
    /// from then on, processes read what is on disk.
    Failing,
}

/// The disk of a machine.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    /// The file of the ledger as processes see it.
    pub(crate) seen: Vec<u8>,
    /// The file as it would be found after a crash of the machine.
    durable: Vec<u8>,
    /// The sectors in which `seen` and `durable` may differ.
    dirty: BTreeSet<usize>,
    /// The directory with the epoch of the node.
    files: Files,
    /// What is wrong with the disk.
    pub(crate) trouble: Option<DiskTrouble>,
    /// What is wrong with the disk from the next sync of the ledger on.
    pub(crate) trouble_in_sync: Option<DiskTrouble>,
    /// A sync of the ledger has failed.
    pub(crate) sync_failed: bool,
    /// Writing takes this long until further notice.
    pub(crate) stall: u64,
    /// The process has to wait this long for what it has just written.
    pub(crate) waited: u64,
    /// The machine crashes in the next sync.
    pub(crate) crash_in_sync: bool,
}

impl Disk {
    /// Lose what was not synced, or parts of it.
    pub(crate) fn crash(&mut self, random: &mut Random) {
        for sector in std::mem::take(&mut self.dirty) {
            let begin = sector * SECTOR;
            let end = (begin + SECTOR).min(self.seen.len());
            if begin >= end {
                continue;
            }
            let kept = match random.below(4) {
                0 => 0,
                1 => random.between(0, SECTOR as u64) as usize,
                _ => SECTOR,
            };
            let end = end.min(begin + kept);
            if end > begin {
                if self.durable.len() < end {
                    self.durable.resize(end, 0);
                }
                self.durable[begin..end].copy_from_slice(&self.seen[begin..end]);
            }
        }
        self.seen = self.durable.clone();
        self.files.crash(random);
        (self.waited, self.crash_in_sync) = (0, false);
    }

    /// The disk works again.
    pub(crate) fn mend(&mut self) {
        (self.trouble, self.trouble_in_sync, self.stall) = (None, None, 0);
    }

    fn check_syncable(&self) -> io::Result<()> {
        match self.trouble {
            Some(DiskTrouble::Failing) => Err(io::ErrorKind::Other.into()),
            _ => self.check_writable(),
        }
    }

    fn check_writable(&self) -> io::Result<()> {
        match self.trouble {
            Some(DiskTrouble::ReadOnly) => Err(io::ErrorKind::ReadOnlyFilesystem.into()),
            _ => Ok(()),
        }
    }

    /// Change a bit of a record that has been written. The last one may have been torn by a crash.
    pub(crate) fn damage(&mut self, random: &mut Random) {
        let records = self.seen.chunks(SECTOR).enumerate().skip(1);
        let has_value = |(_, it): &(usize, &[u8])| it.len() > 6 && it[..2] != [0, 0];
        let written: Vec<_> = records.filter(has_value).map(|it| it.0).collect();
        if written.is_empty() {
            return;
        }
        let record = *random.pick(&written) * SECTOR;
        let length = usize::from(u16::from_le_bytes([self.seen[record], self.seen[record + 1]]));
        let most = (self.seen.len() - record).min(SECTOR) - 6;
        let length = (length & 0x7fff).clamp(1, most) as u64;
        let at = record + 6 + random.below(length) as usize;
        self.seen[at] ^= 1 << random.below(8);
        self.dirty.insert(record / SECTOR);
    }
}

/// The file of a ledger on a simulated disk.
#[derive(Clone, Debug)]
pub(crate) struct DiskFile(pub(crate) Rc<RefCell<Disk>>);

impl LedgerFile for DiskFile {
    fn read(&self) -> io::Result<Vec<u8>> {
        Ok(self.0.borrow().seen.clone())
    }

    fn write_at(&self, bytes: &[u8], position: u64) -> io::Result<()> {
        let mut disk = self.0.borrow_mut();
        disk.check_writable()?;
        let begin = position as usize;
        let end = begin + bytes.len();
        if end > disk.seen.len() {
            if disk.trouble == Some(DiskTrouble::Full) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            disk.seen.resize(end, 0);
        }
        disk.seen[begin..end].copy_from_slice(bytes);
        disk.dirty.extend(begin / SECTOR..end.div_ceil(SECTOR));
        disk.waited += disk.stall;
        Ok(())
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        let mut disk = self.0.borrow_mut();
        disk.check_writable()?;
        // Taken for durable at once: what is cut off was erased or unreadable.
        disk.seen.resize(length as usize, 0);
        disk.durable.truncate(length as usize);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut disk = self.0.borrow_mut();
        if disk.crash_in_sync {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if let Some(trouble) = disk.trouble_in_sync.take() {
            disk.trouble = Some(trouble);
        }
        let written = disk.check_syncable();
        disk.sync_failed |= written.is_err();
        if written.is_ok() {
            disk.waited += 2 * disk.stall;
        }
        let failing = disk.trouble == Some(DiskTrouble::Failing);
        let Disk { seen, durable, dirty, .. } = &mut *disk;
        // The system does not try again to write what it could not write, and tells that only once.
        for sector in std::mem::take(dirty) {
            let begin = sector * SECTOR;
            let end = (begin + SECTOR).min(seen.len());
            if begin >= end || written.is_err() && !failing {
                continue;
            }
            durable.resize(durable.len().max(end), 0);
            if failing {
                seen[begin..end].copy_from_slice(&durable[begin..end]);
            } else {
                durable[begin..end].copy_from_slice(&seen[begin..end]);
            }
        }
        written
    }
}

/// The files of a directory. A name leads to contents, and both are on disk only after a sync.
#[derive(Debug, Default)]
struct Files {
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    contents: Vec<Contents>,
}

#[derive(Debug, Default)]
struct Contents {
    seen: Vec<u8>,
    durable: Vec<u8>,
}

impl Files {
    /// Lose what was not synced, or keep it.
    fn crash(&mut self, random: &mut Random) {
        for contents in &mut self.contents {
            if contents.seen != contents.durable && random.percent(50) {
                contents.seen.clone_from(&contents.durable);
            }
            contents.durable.clone_from(&contents.seen);
        }
        if self.names != self.durable_names && random.percent(50) {
            self.names.clone_from(&self.durable_names);
        }
        self.durable_names.clone_from(&self.names);
    }
}

/// The directory of a node on a simulated disk.
#[derive(Clone, Debug)]
pub(crate) struct DiskDirectory(pub(crate) Rc<RefCell<Disk>>);

impl EpochDirectory for DiskDirectory {
    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let files = &self.0.borrow().files;
        let at = files.names.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(files.contents[*at].seen.clone())
    }

    fn write(&self, name: &str, contents: &[u8]) -> io::Result<()> {
        let mut disk = self.0.borrow_mut();
        disk.check_writable()?;
        if disk.trouble == Some(DiskTrouble::Full) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let Files { names, contents: all, .. } = &mut disk.files;
        names.insert(name.to_owned(), all.len());
        all.push(Contents { seen: contents.to_vec(), durable: Vec::new() });
        Ok(())
    }

    fn sync(&self, name: &str) -> io::Result<()> {
        let mut disk = self.0.borrow_mut();
        disk.check_syncable()?;
        let Files { names, contents, .. } = &mut disk.files;
        let at = names.get(name).ok_or(io::ErrorKind::NotFound)?;
        let Contents { seen, durable } = &mut contents[*at];
        durable.clone_from(seen);
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut disk = self.0.borrow_mut();
        disk.check_writable()?;
        let names = &mut disk.files.names;
        let at = names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        names.insert(to.to_owned(), at);
        Ok(())
    }

    fn sync_names(&self) -> io::Result<()> {
        let mut disk = self.0.borrow_mut();
        disk.check_syncable()?;
        let Files { names, durable_names, .. } = &mut disk.files;
        durable_names.clone_from(names);
        Ok(())
    }
}
