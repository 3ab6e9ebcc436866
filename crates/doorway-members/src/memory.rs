//! A disk in memory, for simulations: it can stall, be full, fail and lose power.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use redb::StorageBackend;

/// A disk in memory. Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub struct MemoryDisk(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    bytes: Vec<u8>,
    /// What undoes the writes since the last sync, oldest first.
    undo: Vec<Undo>,
    /// How many times the disk was opened. A process that was killed cannot write any more.
    opened: u64,
    delay: Duration,
    full: bool,
    broken: bool,
}

#[derive(Debug)]
enum Undo {
    Bytes { at: usize, before: Vec<u8> },
    Length { before: usize, tail: Vec<u8> },
}

impl MemoryDisk {
    /// From now on, each write takes this long.
    pub fn set_delay(&self, delay: Duration) {
        self.0.lock().delay = delay;
    }

    /// From now on, the disk has no room, or has room again.
    pub fn set_full(&self, full: bool) {
        self.0.lock().full = full;
    }

    /// From now on, every write fails, or none does.
    pub fn set_broken(&self, broken: bool) {
        self.0.lock().broken = broken;
    }

    /// Lose what was not synced, and cut off the process that has the disk open: its machine has
    /// lost power.
    pub fn lose_power(&self) {
        let mut state = self.0.lock();
        state.opened += 1;
        for undo in std::mem::take(&mut state.undo).into_iter().rev() {
            match undo {
                Undo::Bytes { at, before } => {
                    state.bytes[at..at + before.len()].copy_from_slice(&before);
                }
                Undo::Length { before, tail } => {
                    state.bytes.resize(before - tail.len(), 0);
                    state.bytes.extend(tail);
                }
            }
        }
    }

    /// Change one byte, as a failing disk does.
    pub fn damage(&self, at: usize) {
        let mut state = self.0.lock();
        let length = state.bytes.len().max(1);
        if let Some(byte) = state.bytes.get_mut(at % length) {
            *byte ^= 0xff;
        }
    }

    /// Another disk with the same content.
    pub fn copy(&self) -> Self {
        let bytes = self.0.lock().bytes.clone();
        Self(Arc::new(Mutex::new(State { bytes, ..State::default() })))
    }

    /// How many bytes are on the disk.
    pub fn size(&self) -> usize {
        self.0.lock().bytes.len()
    }

    pub(crate) fn delay(&self) -> Option<Duration> {
        Some(self.0.lock().delay).filter(|delay| !delay.is_zero())
    }

    pub(crate) fn backend(&self) -> impl StorageBackend {
        let mut state = self.0.lock();
        state.opened += 1;
        Backend { disk: self.clone(), opened: state.opened }
    }
}

/// The disk as one process sees it.
#[derive(Debug)]
struct Backend {
    disk: MemoryDisk,
    opened: u64,
}

impl Backend {
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> io::Result<T> {
        let mut state = self.disk.0.lock();
        if state.broken || state.opened != self.opened {
            return Err(io::Error::from_raw_os_error(5)); // EIO
        }
        if state.full {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(change(&mut state))
    }
}

impl StorageBackend for Backend {
    fn len(&self) -> io::Result<u64> {
        Ok(self.disk.0.lock().bytes.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.disk.0.lock();
        let at = offset as usize;
        let bytes = state.bytes.get(at..at + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(bytes);
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.change(|state| {
            let (before, length) = (state.bytes.len(), length as usize);
            let tail = state.bytes.get(length..).unwrap_or_default().to_vec();
            state.undo.push(Undo::Length { before, tail });
            state.bytes.resize(length, 0);
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        self.change(|state| state.undo.clear())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.change(|state| {
            let at = offset as usize;
            let place = state.bytes.get_mut(at..at + data.len())?;
            let before = place.to_vec();
            place.copy_from_slice(data);
            state.undo.push(Undo::Bytes { at, before });
            Some(())
        })?
        .ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}
