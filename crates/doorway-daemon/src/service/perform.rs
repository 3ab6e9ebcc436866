//! Doing what the sessions say.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use doorway_protocol::{Code, Fence, Mode, Moment, Name, SessionId};
use doorway_sessions::ledger::{Ledger, Record};
use doorway_sessions::outbox::Outbox;
use doorway_sessions::refusals::refusal;
use doorway_sessions::{
    AskId, Connection, EventKind, Evidence, Input, News, NodeLease, Output, UNLIMITED, WaitNews,
};
use tokio::time::{sleep, timeout};

use super::acquire::NodeRequest;
use super::description::Description;
use super::{Core, Event, Service, ServiceShell, process};
use crate::directory;
use crate::log_limit::LogLimit;
use crate::service;

/// How long a client that ends a grant, or an operator who breaks it, waits for the group and the
/// disk, if they kept the grant.
pub(super) const DROPPING: Duration = Duration::from_secs(30);

/// After how long the ledger is synced again, if that has failed and a client or an operator waits
/// for it.
const SYNC_AGAIN: Duration = Duration::from_secs(1);

/// What to do if the ledger cannot be written.
pub(super) const REMEDY: &str = "make room on its file system, or make it writable; the node tries \
                                 again every second";

/// Limits the lines about grants that could not be held again.
static UNCLAIMED: LogLimit = LogLimit::new();

impl ServiceShell {
    /// Pass on all that happened, and do what the sessions say.
    pub(super) fn run(self: &Arc<Self>, core: &mut Core) {
        let now = Moment::now_at_node();
        // The lease of the node runs by another clock than the sessions, so it is looked at anew
        // before anything is promised.
        if let Some(left) = self.node.lease_left() {
            let length = Duration::from_millis(self.lease_ms.load(Ordering::Relaxed).into());
            let lease = NodeLease { until: now.after(left), length };
            core.inputs.push_front(Input::Lease(lease));
        }
        while let Some(input) = core.inputs.pop_front() {
            let mut outputs = std::mem::take(&mut core.outputs);
            core.sessions.step(now, input, &mut outputs);
            for output in outputs.drain(..) {
                self.perform(core, output);
            }
            core.outputs = outputs;
        }
        // By now the group was asked to keep what former holders were promised.
        if std::mem::take(&mut core.serve) && !self.serving.send_replace(true) {
            self.node.serve();
            tracing::info!(held = core.sessions.held(), "serving again");
        }
    }

    fn perform(self: &Arc<Self>, core: &mut Core, output: Output) {
        match output {
            Output::Tell(connection, reply) => {
                core.with_outbox(connection, |outbox| outbox.tell(&reply));
            }
            Output::Acquire { ask, session, name, mode, wait, numbers } => {
                self.acquire(core, ask, name, NodeRequest { session, mode, wait, numbers });
            }
            Output::Release(ask) => drop(core.guards.remove(&ask)),
            Output::Announce(news) => self.announce(news),
            Output::AnnounceWait(WaitNews { waits, lock, session, client }) => {
                let (waiting, gave_up) = (service::EventKind::Waiting, service::EventKind::GaveUp);
                let kind = if waits { waiting } else { gave_up };
                self.publish(kind, lock, None, session, client);
            }
            Output::Write(ask, records) => self.write(core, ask, &records),
            Output::Erase(place) => self.erase(core, place),
            Output::Probe => self.probe(core),
            Output::LedgerTrouble(trouble) => log_trouble(trouble.as_deref()),
            Output::Rewrite(session, place, record) => {
                self.rewrite(core, session, place, &record);
            }
            Output::Greet(connection, greeting, then) => {
                core.with_outbox(connection, |outbox| outbox.greet(&greeting, &then));
            }
            Output::Close(connection) => core.with_outbox(connection, Outbox::close),
            Output::Answer(connection, answer) => {
                if let Some(call) = core.calls.remove(&connection) {
                    let _ = call.send(answer); // A client that has gone away may ask again.
                }
            }
            Output::TurnAway(connection, refusal) => {
                core.outboxes.remove(&connection);
                core.turned_away = Some(refusal);
            }
            Output::Hold { ask, name, fence, length } => self.hold(ask, &name, fence, length),
            Output::DropHold { name, fence } => self.drop_hold(name, fence),
            Output::Abandon(ask) => {
                core.tasks.remove(&ask).as_ref().inspect(|task| task.abort());
            }
            Output::Reclaim { ask, session, name, mode, fence } => {
                self.reclaim(core, ask, session, &name, mode, fence);
            }
            Output::Watch(session, evidence) => self.watch(core, session, evidence),
            Output::Unwatch(session) => {
                core.watchers.remove(&session).as_ref().inspect(|task| task.abort());
            }
            Output::Settled => {
                self.ledger.as_ref().inspect(|ledger| ledger.settled());
            }
            Output::Serve => core.serve = true,
            Output::Opened(session, client, process) => {
                self.clients.lock().insert(session, Description { client, process });
                self.changed.notify_waiters();
            }
            Output::Ended(session) => {
                self.clients.lock().remove(&session);
                self.changed.notify_waiters();
            }
            Output::Drained => {
                self.drained.notify_waiters();
                self.leaving.notify_one();
            }
        }
    }

    fn write(&self, core: &mut Core, ask: AskId, records: &[(u32, Record)]) {
        let written = self.in_ledger(|ledger| {
            records.iter().try_for_each(|(place, it)| ledger.write(*place, it))
        });
        core.inputs.push_back(Input::Written(ask, written));
    }

    fn rewrite(&self, core: &mut Core, session: u64, place: u32, record: &Record) {
        let written = self.in_ledger(|ledger| ledger.write(place, record));
        core.inputs.push_back(Input::Rewritten(session, written));
    }

    /// Do something with the ledger, if there is one. The error names its file.
    pub(super) fn in_ledger(
        &self,
        act: impl FnOnce(&Ledger) -> io::Result<()>,
    ) -> Result<(), String> {
        let Some(ledger) = &self.ledger else { return Ok(()) };
        act(ledger).map_err(|error| format!("{}: {error}", ledger.path().display()))
    }

    fn erase(&self, core: &mut Core, place: u32) {
        let erased = self.in_ledger(|ledger| ledger.erase(place));
        core.inputs.push_back(Input::Erased(place, erased));
    }

    /// Do what could not be done before with the ledger, and find out whether it can be written. A
    /// full disk still takes what makes no file longer, so records are erased first.
    fn probe(&self, core: &mut Core) {
        let done = self.in_ledger(Ledger::catch_up);
        if done.is_ok() {
            core.inputs.push_back(Input::AllErased);
        }
        core.inputs.push_back(Input::Probed(done.and_then(|()| self.try_disk())));
    }

    /// Find out whether the directory of the ledger and the ledger itself can be written. This
    /// takes as long as the disk does.
    pub(super) fn try_disk(&self) -> Result<(), String> {
        let directory = self.ledger.as_ref().and_then(|ledger| ledger.path().parent());
        let usable = directory.map_or(Ok(true), |directory| directory::examine(directory, false));
        usable.map_err(|error| error.to_string())?;
        self.in_ledger(Ledger::probe)
    }

    /// Hold a lock again that was held before the node was started.
    fn reclaim(
        &self,
        core: &mut Core,
        ask: AskId,
        session: u64,
        name: &Name,
        mode: Mode,
        fence: Fence,
    ) {
        let session = doorway_node::Session::new(session);
        let input = match self.node.reclaim(name.as_str(), mode, fence, session) {
            Ok(guard) => {
                core.guards.insert(ask, guard);
                Input::Granted(ask, fence)
            }
            Err(error) => {
                UNCLAIMED.then(|| {
                    tracing::warn!(%name, %fence, "a lock is not held again: {error}");
                });
                Input::Refused(ask, refusal(Code::Gone, error.to_string()))
            }
        };
        core.inputs.push_back(input);
    }

    /// Let a task ask the group to keep a grant, or sync the ledger if no group does that.
    fn hold(self: &Arc<Self>, ask: AskId, name: &Name, fence: Fence, length: Duration) {
        let ends = (length != UNLIMITED).then_some(length);
        let held = self.node.hold(name, fence, ends);
        let (shell, name) = (Arc::clone(self), name.clone());
        self.runtime.spawn(async move {
            let mut kept = held.await.map_err(|error| {
                let time = ends.map(|ends| format!("for {} s", ends.as_secs_f64()));
                let time = time.unwrap_or_else(|| "without end".to_owned());
                let text = format!("the group does not keep `{name}` {time}: {error}");
                refusal(Code::Unavailable, text)
            });
            if shell.keeps_alone() {
                kept = Service(Arc::clone(&shell)).sync_ledger().await;
            }
            let mut core = shell.core.lock();
            // The membership of the node may have ended in the meantime, and the lock with it.
            let lost = core.guards.get(&ask).is_none_or(doorway_node::LockGuard::is_lost);
            let kept = kept.and_then(|()| {
                let text = "the lock was granted and lost in the same moment; ask again";
                if lost { Err(refusal(Code::Broken, text)) } else { Ok(()) }
            });
            core.inputs.push_back(Input::Held { ask, length, kept });
            shell.run(&mut core);
        });
    }

    /// Let a task tell the group that it need not keep a grant any more, and sync the ledger, so
    /// that no later process holds it again.
    fn drop_hold(self: &Arc<Self>, name: Name, fence: Fence) {
        let dropped = self.node.drop_hold(&name, fence);
        let shell = Arc::clone(self);
        self.runtime.spawn(async move {
            let tell = |done: Result<(), String>| {
                let done = done.map_err(|why| {
                    tracing::warn!(%name, %fence, "a lock that has ended may be held again: {why}");
                    refusal(Code::Unavailable, why)
                });
                shell.input(Input::Dropped(name.clone(), fence, done));
            };
            let durable = async {
                dropped.await.map_err(|ended| ended.to_string())?;
                let service = Service(Arc::clone(&shell));
                loop {
                    match service.sync_ledger().await {
                        Ok(()) => return Ok(()),
                        Err(error) if service.is_stopping() => return Err(error.text),
                        Err(_) => sleep(SYNC_AGAIN).await,
                    }
                }
            };
            let mut durable = pin!(durable);
            let Ok(done) = timeout(DROPPING, &mut durable).await else {
                let time = DROPPING.as_secs();
                tell(Err(format!("the group and the disk did not confirm it within {time} s")));
                // The grant has ended in any case, and the node goes on trying.
                return tell(durable.await);
            };
            tell(done);
        });
    }

    /// Whether only the ledger of this node keeps what is to outlive the node.
    fn keeps_alone(&self) -> bool {
        self.node.lease_left().is_none()
    }

    /// Let a task wait for the end of the processes of a session.
    fn watch(self: &Arc<Self>, core: &mut Core, session: u64, evidence: Evidence) {
        let shell = Arc::downgrade(self);
        let proven = core.proven.take_if(|process| evidence.is_process(process.pid()));
        let task = self.runtime.spawn(async move {
            process::wait(evidence, proven).await;
            if let Some(shell) = shell.upgrade() {
                shell.input(Input::ProcessEnded(session));
            }
        });
        core.watchers.insert(session, task.abort_handle());
    }

    /// Tell listeners and the log what happened to a grant.
    fn announce(&self, news: News) {
        let News { kind, lock, fence, session, client, why } = news;
        if let Some(why) = &why
            && kind == EventKind::Lost
        {
            tracing::warn!(%lock, %fence, session, client = &*client, "a lock is lost: {why}");
        }
        self.publish(kind.into(), lock, Some(fence), session, client);
    }

    fn publish(
        &self,
        kind: service::EventKind,
        lock: Name,
        fence: Option<Fence>,
        session: u64,
        client: Arc<str>,
    ) {
        if self.events.receiver_count() > 0 {
            let (session, at) = (SessionId(session), SystemTime::now());
            let _ = self.events.send(Event { kind, lock, fence, session, client, at });
        }
    }
}

impl Core {
    fn with_outbox(&self, connection: Connection, act: impl FnOnce(&Outbox)) {
        if let Some(outbox) = self.outboxes.get(&connection) {
            act(outbox);
        }
    }
}

/// Log that the ledger cannot be written, or that it can be again.
fn log_trouble(trouble: Option<&str>) {
    if let Some(error) = trouble {
        let what = "the ledger of sessions cannot be written, so locks are refused";
        tracing::warn!("{what}: {error}; {REMEDY}");
    } else {
        tracing::warn!("the ledger of sessions can be written again");
    }
}
