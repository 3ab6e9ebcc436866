//! The recording of a node: what its locks do, in the format of [`doorway_protocol::recording`].
//!
//! The lines are written by a thread of their own. The locks put their events into a queue and
//! never wait for the file.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Read as _, Seek as _, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use doorway_core::{Holder, Mode};
use doorway_protocol::recording::{self, End, EndLine, Event, Header, LockLine};
use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::locks::{LockEvent, Record};
use crate::mode::to_client;
use crate::seating::Seating;

/// How many records may wait to be written.
const QUEUE: usize = 1 << 16;

/// How long a node that stops waits for a slow disk.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The recording of a running node.
pub(crate) struct Recorder {
    /// None when the recording has ended.
    queue: Mutex<Option<SyncSender<Record>>>,
    overflowed: Arc<AtomicBool>,
    /// Closed when the writer thread has ended.
    written: watch::Receiver<()>,
}

impl Recorder {
    /// Append to a recording. If the file cannot be opened, the node logs the error and runs
    /// without a recording.
    pub(crate) fn start(
        path: &Path,
        group: &str,
        seating: &Arc<Seating>,
        began: SystemTime,
    ) -> Option<Self> {
        match Self::open(path, group, seating, began) {
            Ok(recorder) => Some(recorder),
            Err(error) => {
                let path = path.display();
                tracing::error!(%path, %error, "cannot open the recording, running without it");
                None
            }
        }
    }

    fn open(
        path: &Path,
        group: &str,
        seating: &Arc<Seating>,
        began: SystemTime,
    ) -> io::Result<Self> {
        let file = open(path)?;
        let header = Header {
            recording: recording::VERSION,
            group: group.to_owned(),
            node: seating.name(seating.me).to_owned(),
            members: seating.members.clone(),
            began: micros(began.duration_since(UNIX_EPOCH).unwrap_or_default()),
            partial: false,
        };
        let mut out = BufWriter::new(file);
        line(&mut out, &header)?;
        let (queue, records) = sync_channel(QUEUE);
        let overflowed = Arc::new(AtomicBool::new(false));
        let writer =
            Writer { out, seating: Arc::clone(seating), overflowed: Arc::clone(&overflowed) };
        let path = path.display().to_string();
        let (writing, written) = watch::channel(());
        thread::Builder::new().name("doorway-record".to_owned()).spawn(move || {
            if let Err(error) = writer.run(&records) {
                tracing::error!(path, %error, "the recording ends: the file cannot be written");
            }
            drop(writing);
        })?;
        Ok(Self { queue: Mutex::new(Some(queue)), overflowed, written })
    }

    /// Record what a lock did. This never waits: if the file is too slow, the recording ends.
    pub(crate) fn record(&self, record: Record) {
        let mut queue = self.queue.lock();
        let Some(sender) = queue.as_ref() else { return };
        match sender.try_send(record) {
            Ok(()) => return,
            Err(TrySendError::Full(_)) => {
                self.overflowed.store(true, Ordering::Release);
                tracing::error!(
                    "the recording ends: the locks do more than can be written in time"
                );
            }
            // The writer has ended and has logged why.
            Err(TrySendError::Disconnected(_)) => {}
        }
        *queue = None;
    }

    /// End the recording, and wait a limited time until all of it is in the file. Any number of
    /// callers may wait.
    pub(crate) async fn close(&self) {
        *self.queue.lock() = None;
        let mut written = self.written.clone();
        // No value is ever sent; the channel is closed when the writer ends.
        let _ = timeout(TIMEOUT, async { while written.changed().await.is_ok() {} }).await;
    }
}

/// Open a file to append to it. If a crash left an unfinished line, end that line first.
fn open(path: &Path) -> io::Result<File> {
    let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
    if file.metadata()?.len() > 0 {
        let mut last = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            file.write_all(b"\n")?;
        }
    }
    Ok(file)
}

/// The state of the writer thread.
struct Writer {
    out: BufWriter<File>,
    seating: Arc<Seating>,
    overflowed: Arc<AtomicBool>,
}

impl Writer {
    fn run(mut self, records: &Receiver<Record>) -> io::Result<()> {
        loop {
            match records.try_recv() {
                Ok(record) => self.write(record)?,
                Err(TryRecvError::Disconnected) => break,
                Err(TryRecvError::Empty) => {
                    // The queue is empty: flush, so that the file is complete for everyone who
                    // reads it now.
                    self.out.flush()?;
                    let Ok(record) = records.recv() else { break };
                    self.write(record)?;
                }
            }
        }
        let overflowed = self.overflowed.load(Ordering::Acquire);
        let end = if overflowed { End::Overflow } else { End::Stop };
        line(&mut self.out, &EndLine { end })?;
        self.out.flush()
    }

    fn write(&mut self, record: Record) -> io::Result<()> {
        let (at, view) = (micros(record.at), record.view);
        for event in record.events {
            let event = line_of(&self.seating, record.rule, event);
            let lock = record.lock.to_string();
            line(&mut self.out, &LockLine { at, view, lock, event })?;
        }
        Ok(())
    }
}

/// An event of a lock as it is written, with names instead of numbers.
pub(crate) fn line_of(seating: &Seating, rule: usize, event: LockEvent) -> Event {
    let (name, rule) = (|node| seating.name(node).to_owned(), &seating.rules[rule]);
    let begin = |holders: Vec<Holder>, floor, standing, waiting: Option<Mode>| {
        let holder = |Holder { node, mode, permits }: Holder| recording::Holder {
            node: name(node),
            mode: to_client(mode),
            permits,
        };
        let holders = holders.into_iter().map(holder).collect();
        let (algorithm, permits) = (rule.info.name.to_owned(), rule.group.permits());
        let waiting = waiting.map(to_client);
        Event::Begin { algorithm, permits, holders, floor, standing, waiting }
    };
    match event {
        LockEvent::Begin(start) => begin(start.holders, start.floor, false, None),
        LockEvent::Stand { holder, waiting } => begin(Vec::from_iter(holder), 0, true, waiting),
        LockEvent::Acquire(mode) => Event::Acquire { mode: to_client(mode) },
        LockEvent::Enter => Event::Enter,
        LockEvent::Release => Event::Release,
        LockEvent::Withdraw => Event::Withdraw,
        LockEvent::Send { to, message } => Event::Send { to: name(to), message },
        LockEvent::Receive { from } => Event::Receive { from: name(from), early: false },
        LockEvent::Refuse(fault) => Event::Refuse { why: fault.to_string() },
        LockEvent::Break(fault) => Event::Break { why: fault.to_string() },
    }
}

pub(crate) fn line(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}

pub(crate) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
