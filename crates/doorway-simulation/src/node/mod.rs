//! A node with its service: the simulated shell around shipped state machines.
//!
//! This takes the place of `doorway-daemon/src/service`, of `native.rs`, and of the shell of
//! `doorway-node`. Everything that is decided is decided by the shipped [`Sessions`],
//! [`ViewChange`](doorway_node::views::ViewChange) or
//! [`AgreedViews`](doorway_node::views::AgreedViews) with a
//! [`Keeper`](doorway_node::members::Keeper), [`Shard`](doorway_node::locks::Shard), `Inbox`,
//! `Outbox` and [`Ledger`].

mod breaking;
mod calls;
mod door;
mod group;
mod links;
mod locks;
mod members;
mod perform;
mod start;

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use doorway_node::members::{GroupState, PutId};
use doorway_node::views::{EpochFile, StoreError};
use doorway_protocol::{Code, Fence, Name, Refusal};
use doorway_sessions::ledger::{Ledger, LedgerContents};
use doorway_sessions::principal::Rights;
use doorway_sessions::{Answer, AskId, Connection, Evidence, Input, Sessions};

use crate::clock::{Clock, Drift};
use crate::context::{Context, Event};
use crate::disk::{Disk, DiskDirectory, DiskFile};
use crate::network::{End, Wire};
use crate::story::Lane;
use breaking::PendingBreak;
use calls::{LeaseWatch, OpenCall};
use door::Door;
use group::Group;
use locks::{Guard, WaitingTask};

/// The seconds since the beginning of 2026 at which every run begins.
const SECONDS: u64 = 20_000_000;

/// Something that happens to the process of a node.
#[derive(Clone, Debug)]
pub(crate) enum NodeEvent {
    /// Time has passed for the sessions.
    Tick,
    /// A task that waits for a lock was woken.
    Wake(AskId),
    /// A request has waited for as long as its client wanted.
    TimedOut(AskId),
    /// Locks have lingered long enough.
    EndLingers,
    /// A grant was lost.
    Lost(u64, Name, Fence),
    /// Somebody else wants a lock that a client keeps.
    Wanted(Name),
    /// The processes of a session have ended.
    ProcessEnded(u64),
    /// Write what connections have to write.
    Flush,
    /// Try to connect to a peer.
    Dial(usize),
    /// The connection to a peer is made, or cannot be made.
    Dialled(usize),
    /// The time for a handshake on this connection is over.
    Late(Wire),
    /// A heartbeat of a link is due.
    Beat(usize, u64),
    /// The epoch is on disk.
    Raised(u64),
    /// The process stops: it was drained, and nothing is held any more or the time that clients had
    /// to leave is over.
    Stop,
    /// A call over HTTP has waited for as long as its client wanted.
    CallTimedOut(Wire),
    /// Look whether the processes of a session exist.
    Look(u64),
    /// The task of the keeper looks what it was told.
    Keeper,
    /// Time has passed for the keeper.
    KeeperTick,
    /// The store does not know what became of a command.
    PutTimedOut(PutId),
    /// The lease of the node was renewed, or has ended.
    LeaseChanged,
    /// Something waits for the sessions.
    Inputs,
    /// The ledger is synced, because a grant is to outlive the machine.
    SyncHold(AskId, Duration),
    /// The ledger is synced, because such a grant has ended.
    SyncDrop(Name, Fence),
    /// The group has let the process go, or the process has waited long enough for that.
    Left,
}

/// A machine with a node.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) id: usize,
    /// The clock of the sessions, and the two clocks of the machine of which it is made.
    pub(crate) clock: Clock,
    boot: Clock,
    raw: Clock,
    /// For how long the machine has slept in all, and its last sleep: from when, until when.
    slept: u64,
    sleep: (u64, u64),
    /// The newest state that the store of the node has, with its version.
    seen: Option<(u64, GroupState)>,
    pub(crate) disk: Rc<RefCell<Disk>>,
    pub(crate) process: Option<Process>,
    /// How many processes the node has had.
    pub(crate) starts: u64,
    /// How many times the machine was started.
    boots: u64,
    /// Until when the process is suspended.
    pub(crate) paused: u64,
    /// Until when the machine is off.
    pub(crate) off: u64,
    /// Until when a fault keeps the process from being started.
    pub(crate) down: u64,
}

/// The process of a node.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) start: u64,
    /// When the process began.
    began: u64,
    /// For how long the machine had slept by then.
    slept: u64,
    group: Group,
    pub(crate) sessions: Sessions,
    inputs: VecDeque<Input>,
    doors: BTreeMap<Connection, Door>,
    guards: BTreeMap<AskId, Guard>,
    tasks: BTreeMap<AskId, WaitingTask>,
    /// The processes that sessions live with.
    pub(crate) watched: BTreeMap<u64, Evidence>,
    ledger: Ledger<DiskFile>,
    serving: bool,
    /// When the next tick of the sessions is planned.
    tick: u64,
    /// The node does not serve any more.
    stopping: bool,
    /// The process goes on when it was drained and nothing is held any more.
    stays: bool,
    secrets: u64,
    /// The calls over HTTP that have no answer.
    calls: BTreeMap<Wire, OpenCall>,
    /// The answers that are to be written.
    answers: Vec<(Wire, Answer)>,
    /// The leases of requests that may be repeated, by key.
    leases: BTreeMap<String, LeaseWatch>,
    /// The locks that are being broken, by call.
    breaks: BTreeMap<Connection, PendingBreak>,
}

impl Node {
    pub(crate) fn new(id: usize, drift: Drift) -> Self {
        Self {
            id,
            clock: drift.node(),
            boot: drift.boot(),
            raw: drift.raw(),
            slept: 0,
            sleep: (0, 0),
            seen: None,
            disk: Rc::default(),
            process: None,
            starts: 0,
            boots: 1,
            paused: 0,
            off: 0,
            down: 0,
        }
    }

    /// The machine sleeps until this time.
    pub(crate) fn fall_asleep(&mut self, now: u64, until: u64) {
        self.slept = self.slept_until(now);
        self.sleep = (now, until.max(now));
    }

    /// For how long the machine has slept until this time.
    fn slept_until(&self, now: u64) -> u64 {
        self.slept + self.sleep.1.min(now).saturating_sub(self.sleep.0)
    }

    fn boot(&self) -> String {
        format!("boot {}", self.boots)
    }

    /// What the ledger says now, to a process of this boot.
    pub(crate) fn ledger(&self) -> LedgerContents {
        LedgerContents::read(&self.disk.borrow().seen, &self.boot(), SECONDS)
    }

    pub(crate) fn end(&self) -> End {
        End::Node { node: self.id, start: self.starts }
    }

    fn later(&self, context: &mut Context, after: u64, what: NodeEvent) {
        context.node(after, self.id, self.starts, what);
    }

    /// Raise the epoch of the node above this one, on disk.
    fn raise_epoch(&self, above: u64) -> Result<u64, StoreError> {
        let directory = DiskDirectory(Rc::clone(&self.disk));
        EpochFile::new(directory, PathBuf::from("node")).raise(above)
    }

    /// An epoch that was being written when the process ended may have been written or not.
    fn interrupt_raise(&self, process: &Process, context: &mut Context) {
        if process.group.raising && context.random.percent(50) {
            let _ = self.raise_epoch(0);
        }
    }

    /// The process is killed.
    pub(crate) fn kill(&mut self, context: &mut Context) {
        let Some(process) = self.process.take() else { return };
        self.fall_asleep(context.now, 0);
        self.interrupt_raise(&process, context);
        context.close_all(self.end());
        self.paused = 0;
        self.stopped(context);
    }

    /// Note for the picture that the process has ended.
    fn stopped(&self, context: &mut Context) {
        if let Some(story) = &mut context.story {
            story.stop(context.now, Lane::Node(self.id));
        }
    }

    /// The machine crashes, and is off until this time.
    pub(crate) fn crash(&mut self, context: &mut Context, off: u64) {
        for (wire, side) in context.network.of(self.end()) {
            context.network.vanish(wire, side);
        }
        if let Some(process) = self.process.take() {
            self.interrupt_raise(&process, context);
        }
        self.disk.borrow_mut().crash(&mut context.random);
        self.boots += 1;
        for clock in [&mut self.clock, &mut self.boot, &mut self.raw] {
            clock.restart(context.now);
        }
        (self.slept, self.sleep) = (0, (0, 0));
        (self.paused, self.off) = (0, off);
        self.stopped(context);
    }

    /// The process is told to end.
    pub(crate) fn stop(&mut self, context: &mut Context) {
        let Some(process) = &mut self.process else { return };
        if std::mem::replace(&mut process.stopping, true) {
            return;
        }
        self.input(context, Input::Stop);
        self.flush(context);
        let Some(process) = &self.process else { return };
        if !(process.sessions.leaves_nothing() && self.leave_group(context)) {
            self.halt(context);
        }
    }

    /// The process ends, and leaves everything to the next one.
    fn halt(&mut self, context: &mut Context) {
        self.end_views(context);
        let Some(process) = &mut self.process else { return };
        process.ledger.close(process.sessions.is_settled());
        self.settle(context);
        self.kill(context);
    }

    /// The process is told to let its clients leave. It ends when nothing is held any more, and in
    /// half of all cases after this time at the latest.
    pub(crate) fn drain(&mut self, context: &mut Context, time: u64) {
        self.input(context, Input::Drain(Duration::from_nanos(time)));
        self.settle(context);
        if context.random.percent(50) {
            self.later(context, time, NodeEvent::Stop);
        }
    }

    /// The process is told to let its clients leave, and to end after this time, although a shipped
    /// node ends as soon as nothing is held. Members with votes may still lend them to requests
    /// that this node has withdrawn. If it never comes back, they wait for these votes for ever.
    pub(crate) fn drain_for_good(&mut self, context: &mut Context, time: u64) {
        if let Some(process) = &mut self.process {
            process.stays = true;
        }
        self.input(context, Input::Drain(Duration::from_nanos(time)));
        self.settle(context);
        self.later(context, time, NodeEvent::Stop);
    }

    /// Something happens to the process.
    pub(crate) fn happen(&mut self, context: &mut Context, what: NodeEvent) {
        match what {
            NodeEvent::Tick => {
                if let Some(process) = &mut self.process {
                    process.tick = u64::MAX;
                }
                self.input(context, Input::Tick);
            }
            NodeEvent::Wake(ask) => self.woken(context, ask),
            NodeEvent::TimedOut(ask) => self.timed_out(context, ask),
            NodeEvent::EndLingers => self.end_lingers(context),
            NodeEvent::Lost(session, name, fence) => {
                self.input(context, Input::Lost { session, name, fence });
            }
            NodeEvent::Wanted(name) => self.input(context, Input::Wanted(name)),
            NodeEvent::ProcessEnded(session) => self.input(context, Input::ProcessEnded(session)),
            NodeEvent::CallTimedOut(wire) => self.call_timed_out(context, wire),
            // The world knows whether a peer can be reached and which processes exist, and handles
            // that.
            NodeEvent::Flush | NodeEvent::Dialled(_) | NodeEvent::Look(_) => {}
            NodeEvent::Dial(peer) => self.dial(context, peer),
            NodeEvent::Late(wire) => self.late(context, wire),
            NodeEvent::Beat(peer, number) => self.beat(context, peer, number),
            NodeEvent::Raised(above) => self.raised(context, above),
            NodeEvent::Stop => return self.stop(context),
            NodeEvent::Left => return self.halt(context),
            NodeEvent::Keeper => self.keeper_told(context),
            NodeEvent::KeeperTick => self.keeper_ticks(context),
            NodeEvent::PutTimedOut(put) => self.answered(context, put, None),
            NodeEvent::LeaseChanged => self.lease_changed(context),
            NodeEvent::Inputs => self.inputs(context),
            NodeEvent::SyncHold(ask, length) => self.sync_hold(context, ask, length),
            NodeEvent::SyncDrop(name, fence) => self.sync_drop(context, name, fence),
        }
        self.settle(context);
    }

    /// Do what is left after something has happened: write, and plan the next tick. A disk that
    /// stalls holds up the process.
    fn settle(&mut self, context: &mut Context) {
        let waited = std::mem::take(&mut self.disk.borrow_mut().waited);
        if waited > 0 {
            self.paused = self.paused.max(context.now + waited);
            self.later(context, waited, NodeEvent::Flush);
        } else {
            self.flush(context);
        }
        let Some(process) = &mut self.process else { return };
        let due = self.clock.when(process.sessions.due()).max(context.now);
        if due < process.tick {
            process.tick = due;
            let start = process.start;
            context.queue.push(due, Event::Node { node: self.id, start, what: NodeEvent::Tick });
        }
    }

    /// The time since the process began, as the node counts it.
    fn uptime(&self, context: &Context) -> Duration {
        self.uptime_at(context.now)
    }

    fn uptime_at(&self, now: u64) -> Duration {
        let began = self.process.as_ref().map_or(now, |process| process.began);
        self.boot.read(now).since(self.boot.read(began))
    }

    /// The time since the process began in which the machine did not sleep.
    fn awake_at(&self, now: u64) -> Duration {
        let began = self.process.as_ref().map_or(now, |process| process.began);
        let began = began - self.process.as_ref().map_or(0, |process| process.slept);
        self.raw.read(now - self.slept_until(now)).since(self.raw.read(began))
    }

    /// What is left of clients at this node, in words; none if nothing is left.
    pub(crate) fn remains(&self) -> Option<String> {
        let process = self.process.as_ref()?;
        let records = self.ledger().records.len();
        let busy = process.group.busy();
        let clean = process.sessions.is_clean()
            && process.guards.is_empty()
            && process.tasks.is_empty()
            && process.watched.is_empty()
            && process.calls.is_empty();
        (!clean || records > 0 || busy > 0).then(|| {
            format!(
                "n{}: {} sessions, {} grants, {} guards, {} tasks, {} calls, {records} records \
                 in the ledger, {busy} busy locks",
                self.id,
                process.sessions.len(),
                process.sessions.held(),
                process.guards.len(),
                process.tasks.len(),
                process.calls.len(),
            )
        })
    }
}

pub(crate) fn refusal(code: Code, text: &str) -> Refusal {
    Refusal { code, text: text.to_owned() }
}

/// A mode as the algorithms call it.
fn core_mode(mode: doorway_protocol::Mode) -> doorway_core::Mode {
    match mode {
        doorway_protocol::Mode::Exclusive => doorway_core::Mode::Exclusive,
        doorway_protocol::Mode::Shared => doorway_core::Mode::Shared,
    }
}

/// The shard to which a lock belongs.
pub(super) fn place(settings: &crate::settings::Settings, name: &Name) -> usize {
    let bytes = name.as_str().bytes();
    let sum = bytes.fold(7_u64, |sum, byte| sum.wrapping_mul(31) + u64::from(byte));
    (sum % settings.shards as u64) as usize
}

/// The secret of a new session.
pub(super) fn secret(number: u64) -> doorway_protocol::Secret {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    doorway_protocol::Secret(bytes)
}

/// A principal as the doors would prove it.
pub(super) fn principal(client: usize, local: bool) -> Arc<doorway_sessions::principal::Principal> {
    let name = if local { "uid 1000".to_owned() } else { format!("client c{client}") };
    let (uid, rights) = (local.then_some(1000), Rights::all());
    Arc::new(doorway_sessions::principal::Principal { name, uid, rights })
}
