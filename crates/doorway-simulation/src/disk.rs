//! The disk of a machine: what was written and not synced may be lost or torn when the machine
//! crashes, but not when a process does.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::rc::Rc;

use doorway_daemon::ledger::LedgerFile;

use crate::random::Random;

/// The unit that a disk writes at once.
const SECTOR: usize = 512;

/// The disk of a machine, with the file of the ledger and the epoch of the node.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    /// The file as processes see it.
    pub(crate) seen: Vec<u8>,
    /// The file as it would be found after a crash of the machine.
    durable: Vec<u8>,
    /// The sectors in which the two may differ.
    dirty: BTreeSet<usize>,
    /// The durable epoch of the node.
    pub(crate) epoch: u64,
    /// Files cannot grow.
    pub(crate) full: bool,
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
        (self.waited, self.crash_in_sync) = (0, false);
    }
}

/// The file of a ledger on a simulated disk.
#[derive(Clone, Debug)]
pub(crate) struct DiskFile(pub(crate) Rc<RefCell<Disk>>);

impl LedgerFile for DiskFile {
    fn write_at(&self, bytes: &[u8], position: u64) -> io::Result<()> {
        let mut disk = self.0.borrow_mut();
        let begin = position as usize;
        let end = begin + bytes.len();
        if end > disk.seen.len() {
            if disk.full {
                return Err(io::ErrorKind::StorageFull.into());
            }
            disk.seen.resize(end, 0);
        }
        disk.seen[begin..end].copy_from_slice(bytes);
        disk.dirty.insert(begin / SECTOR);
        disk.waited += disk.stall;
        Ok(())
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        let mut disk = self.0.borrow_mut();
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
        disk.waited += 2 * disk.stall;
        let Disk { seen, durable, .. } = &mut *disk;
        durable.clone_from(seen);
        disk.dirty.clear();
        Ok(())
    }
}
