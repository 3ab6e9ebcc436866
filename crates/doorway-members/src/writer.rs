//! The queue of changes to the file, and the thread that writes them.
//!
//! The writer takes all changes that wait, writes them in one transaction, and then tells their
//! senders, in the order of the queue. In this way several senders share the cost of one sync.
//!
//! A full disk is a slow disk: the writer keeps the changes and tries again, and meanwhile this
//! member neither votes nor accepts entries. Any other error ends the store. After it nobody knows
//! what is on the disk, and a member that has forgotten a vote or an entry can make two leaders.

use std::sync::Arc;
use std::time::Duration;

use doorway_node::members::{Histogram, TimeCounts};
use openraft::storage::LogFlushed;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep};

use crate::disk::{Change, Disk, is_full};
use crate::encoding::Place;
use crate::ending::Ending;
use crate::types::TypeConfig;

/// How long the writer waits before it tries again to write to a full disk.
const RETRY: Duration = Duration::from_millis(500);

/// The sending end of the queue.
#[derive(Clone, Debug)]
pub(crate) struct Writer {
    jobs: mpsc::UnboundedSender<Job>,
    deferred: Arc<Mutex<DeferredChanges>>,
    syncs: Arc<Histogram>,
}

#[derive(Debug)]
enum Job {
    Write(Change, Completion),
    /// Close the file, and say so.
    Close(oneshot::Sender<()>),
}

/// Whom to tell that a change is on disk.
enum Completion {
    Nobody,
    Saved(oneshot::Sender<Result<(), String>>),
    Flushed(LogFlushed<TypeConfig>),
}

impl std::fmt::Debug for Completion {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Nobody => "Nobody",
            Self::Saved(_) => "Saved",
            Self::Flushed(_) => "Flushed",
        })
    }
}

/// Changes that nobody waits for. They are written together with the next change.
#[derive(Debug, Default)]
struct DeferredChanges {
    committed: Option<Place>,
    cluster: Option<u128>,
}

/// The receiving end of the queue.
pub(crate) struct Queue {
    jobs: mpsc::UnboundedReceiver<Job>,
    deferred: Arc<Mutex<DeferredChanges>>,
    syncs: Arc<Histogram>,
    ending: Ending,
}

/// A queue. If it cannot be written, the store ends.
pub(crate) fn queue(ending: Ending) -> (Writer, Queue) {
    let (sender, jobs) = mpsc::unbounded_channel();
    let (deferred, syncs) = (Arc::<Mutex<DeferredChanges>>::default(), Arc::<Histogram>::default());
    let writer =
        Writer { jobs: sender, deferred: Arc::clone(&deferred), syncs: Arc::clone(&syncs) };
    (writer, Queue { jobs, deferred, syncs, ending })
}

impl Writer {
    /// Put a change into the queue. The future ends when it is on disk.
    pub(crate) fn save(&self, change: Change) -> impl Future<Output = Result<(), String>> + use<> {
        let (done, saved) = oneshot::channel();
        self.send(change, Completion::Saved(done));
        async { saved.await.unwrap_or_else(|_| Err(CLOSED.to_owned())) }
    }

    /// Write a change before all later ones.
    pub(crate) fn write(&self, change: Change) {
        self.send(change, Completion::Nobody);
    }

    /// Write a change, and tell openraft when it is on disk.
    pub(crate) fn flush(&self, change: Change, flushed: LogFlushed<TypeConfig>) {
        self.send(change, Completion::Flushed(flushed));
    }

    /// Note how much of the log is committed. After a restart, a member then need not wait for the
    /// leader to apply it.
    pub(crate) fn note_committed(&self, committed: Place) {
        self.deferred.lock().committed = Some(committed);
    }

    /// Note the group to which this node belongs. The vote or entry that makes it belong there is
    /// the next change, so both are on disk or none.
    pub(crate) fn note_cluster(&self, cluster: Option<u128>) {
        self.deferred.lock().cluster = cluster;
    }

    /// How long it took to write changes, each time.
    pub(crate) fn syncs(&self) -> TimeCounts {
        self.syncs.counts()
    }

    /// Write what is in the queue, and close the file.
    pub(crate) async fn close(&self) {
        let (done, closed) = oneshot::channel();
        if self.jobs.send(Job::Close(done)).is_ok() {
            let _ = closed.await;
        }
    }

    fn send(&self, change: Change, done: Completion) {
        if let Err(error) = self.jobs.send(Job::Write(change, done))
            && let Job::Write(_, done) = error.0
        {
            done.tell(&Err(CLOSED.to_owned()));
        }
    }
}

const CLOSED: &str = "the file is closed";

impl Completion {
    fn tell(self, result: &Result<(), String>) {
        match self {
            Self::Nobody => {}
            Self::Saved(done) => {
                let _ = done.send(result.clone());
            }
            Self::Flushed(flushed) => {
                flushed.log_io_completed(result.clone().map_err(std::io::Error::other));
            }
        }
    }
}

impl Queue {
    /// Write what comes, until the file is closed.
    pub(crate) async fn run(mut self, mut disk: Disk) {
        while let Some(first) = self.jobs.recv().await {
            let (mut changes, mut waiting, mut close) = (Vec::new(), Vec::new(), None);
            let mut next = Some(first);
            while let Some(job) = next {
                match job {
                    Job::Write(change, done) => {
                        changes.push(change);
                        waiting.push(done);
                    }
                    Job::Close(done) => {
                        close = Some(done);
                        break;
                    }
                }
                next = self.jobs.try_recv().ok();
            }
            if !changes.is_empty() {
                let result = self.write(&mut disk, changes).await;
                for done in waiting {
                    done.tell(&result);
                }
                if let Err(why) = result {
                    self.ending.end(&why);
                    return;
                }
                disk.keep_reserve();
            }
            if let Some(done) = close {
                drop(disk);
                let _ = done.send(());
                return;
            }
        }
    }

    /// Write changes, if need be after waiting for room on the disk.
    async fn write(&self, disk: &mut Disk, mut changes: Vec<Change>) -> Result<(), String> {
        let DeferredChanges { committed, cluster } = std::mem::take(&mut *self.deferred.lock());
        changes.extend(committed.map(Change::Committed));
        changes.extend(cluster.map(Change::Cluster));
        let mut waited = false;
        loop {
            let began = Instant::now();
            if let Some(delay) = disk.delay() {
                sleep(delay).await;
            }
            let error = match disk.write(&changes) {
                Ok(()) => {
                    self.syncs.count(began.elapsed());
                    break;
                }
                Err(error) => error,
            };
            let path = disk.path();
            if !is_full(&error) {
                return Err(format!("{}: {error}", path.display()));
            }
            if !waited {
                waited = true;
                let why = "until there is room, this node takes no part in votes of its group";
                tracing::error!("{}: {error}: make room; {why}", path.display());
            }
            if !disk.give_up_reserve() {
                sleep(RETRY).await;
            }
        }
        if waited {
            tracing::info!("{}: the disk has room again", disk.path().display());
        }
        Ok(())
    }
}
