//! The sessions of a service, as a value: the server's half of the protocol.
//!
//! [`Sessions`] is a state machine with one entry point, [`Sessions::step`]. The caller says what
//! happened and what time it is, and gets a list of what is to be done. `Sessions` reads no clock,
//! opens no file and starts no task. The shell, which is in `doorway-daemon`, does what the list
//! says. It answers [`Output::Acquire`], [`Output::Reclaim`], [`Output::Write`],
//! [`Output::Rewrite`], [`Output::Erase`] and [`Output::Probe`] before it passes on anything else
//! that happened. So a simulation can take the place of the shell, and every order of events can be
//! tried.
//!
//! - `connections`: connections, and the sessions that they belong to.
//! - `hello`: the first message of a client, and how a session goes on.
//! - `open`: how sessions begin and end.
//! - `processes`: what shows that the processes of a session exist.
//! - `acquire`: requests for locks, from the client to the node and back.
//! - `release`: how grants and requests end.
//! - `leases`: clients over HTTP and of the Redis protocol, whose locks outlive their connections.
//! - `standing`: leases that may hold several locks, which are those of etcd clients.
//! - `restore`: what the former process left.
//! - `rewrite`: changes of sessions that the ledger must know.
//! - `writable`: whether the ledger can be written.
//! - `time`: what happens as time passes, and when the service drains or stops.
//! - `promise`: what may be promised if the membership of the node can end.
//! - `holds`: leases that are longer than that, which the group keeps.
//! - `kept`: grants that clients keep until somebody else wants the lock.
//! - `limits`: how much of everything one client may have, and `tally`, which counts it.
//! - `names`: which names are in use, and with how many permits.
//! - `event`: what happens to the sessions, and what is to be done.
//! - `session`: what is known about one session.
//! - `refusals`: why requests are refused, in words.
//! - `questions`: what the shell may ask, and `counters`, which it reports.
//! - `principal`, `settings`: a client with its rights, and the limits of all.
//!
//! Beside the machine, in `shell`, are the [`ledger`], in which the grants outlive the process, the
//! [`identity`] of its directory, the [`outbox`] of a connection, and [`secret`]s. [`clock`] has a
//! function for times.

mod acquire;
pub mod clock;
mod connections;
mod counters;
mod event;
mod hello;
mod holds;
mod kept;
mod leases;
mod limits;
pub mod names;
mod open;
pub mod principal;
mod processes;
mod promise;
mod questions;
pub mod refusals;
mod release;
mod restore;
mod rewrite;
mod session;
pub mod settings;
mod shell;
pub mod standing;
mod tally;
mod time;
mod writable;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use doorway_protocol::{
    DirectoryId, Fence, Moment, Name, NamePattern, Refusal, Reply, Request, Scope,
};

use crate::principal::{Principal, Right};
use crate::settings::{ClientSettings, Limits};
use acquire::PendingAcquire;
use connections::{AttachedSession, ConnectionState};
use holds::HeldLeases;
use kept::Keeper;
use leases::Leases;
use limits::Shares;
use names::Names;
use promise::Promise;
use refusals::refusal;
use restore::FormerProcess;
use session::Session;
use writable::LedgerState;

pub use hello::common_version;
pub use promise::NodeLease;
pub use session::UNLIMITED;
pub use shell::{identity, ledger, outbox, secret};

pub use counters::{Counters, WAITS};
pub use event::{
    Answer, AskId, Call, Connection, EventKind, Evidence, Input, LeaseAnswer, LeaseAsk, LeaseKey,
    LeaseOpening, LeaseTime, News, Opening, Output, ProcessId, StandingAsk, WaitNews,
};

/// The settings of the sessions.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The name of the node.
    pub node: String,
    /// The data directory of the node. Together with the name, it tells which sessions are its own.
    pub directory: DirectoryId,
    /// Who shares the locks of the node.
    pub scope: Scope,
    /// The limits of clients.
    pub limits: Limits,
    /// How many requests may wait at the node.
    pub outstanding: usize,
    /// The patterns of the rules for locks, each with the number of permits of its locks.
    pub rules: Vec<(NamePattern, u32)>,
    /// The clients that may connect over TCP.
    pub clients: Vec<ClientSettings>,
    /// Whether the node has no peers.
    pub alone: bool,
    /// Whether there is a ledger.
    pub ledger: bool,
    /// Whether the group agrees on its members, so that the membership of the node can end.
    pub agreed: bool,
}

/// All sessions of a service.
#[derive(Clone, Debug)]
pub struct Sessions {
    setup: Arc<Setup>,
    stage: Stage,
    open: BTreeMap<u64, Session>,
    connections: BTreeMap<Connection, ConnectionState>,
    /// The requests for locks that have no answer yet.
    asks: BTreeMap<AskId, PendingAcquire>,
    /// The grants of sessions that can live without a connection, with the numbers of these
    /// sessions. Other sessions of the same client may release and renew these grants.
    detached: BTreeMap<(Name, Fence), BTreeSet<u64>>,
    names: Names,
    shares: Shares,
    leases: Leases,
    /// The sessions of leases that may hold several locks, by the numbers of these leases.
    standing: BTreeMap<u64, u64>,
    former: FormerProcess,
    places: Places,
    ledger: LedgerState,
    /// Present if the membership of the node can end.
    promise: Option<Promise>,
    held: HeldLeases,
    /// The clients that keep a lock, by lock.
    kept: BTreeMap<Name, Keeper>,
    /// The requests that wait only for the answer of such a client.
    tries: BTreeSet<AskId>,
    /// The numbers of the last session and of the last request.
    last_session: u64,
    last_ask: u64,
    /// When the next tick is due.
    due: Moment,
    counters: Counters,
}

/// Whether locks are granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    /// Locks are granted, unless former holders are awaited: see `FormerProcess`.
    Serving,
    /// Nothing is granted any more; the service ends when nothing is held. `told` if the shell was
    /// told that this is so.
    Draining { told: bool },
    /// Everything is left to the next process.
    Stopped,
}

/// The places of records in the ledger.
#[derive(Clone, Debug, Default, Hash)]
struct Places {
    /// All places from this one on are free. Place 0 is the marker.
    end: u32,
    free: Vec<u32>,
}

impl Places {
    fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.end = self.end.max(1) + 1;
            self.end - 1
        })
    }
}

/// Hashes everything that decides what happens next, so that a search can compare states. Within
/// a search the settings do not change. The counters are for reports, except the number of held
/// grants, which follows from the grants of the sessions.
impl Hash for Sessions {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self {
            setup: _,
            stage,
            open,
            connections,
            asks,
            detached,
            names,
            shares,
            leases,
            standing,
            former,
            places,
            ledger,
            promise,
            held,
            kept,
            tries,
            last_session,
            last_ask,
            due,
            counters: _,
        } = self;
        (stage, open, connections, asks, detached).hash(state);
        (names, shares, leases, standing, former, places, held, kept, tries).hash(state);
        ledger.hash(state);
        (last_session, last_ask, due, promise.as_ref().map(Promise::key)).hash(state);
    }
}

impl Sessions {
    /// The sessions of a service that has just been started. If there is a ledger,
    /// [`Input::Restored`] comes next.
    pub fn new(setup: Setup, now: Moment) -> Self {
        Self {
            promise: setup.agreed.then(Promise::new),
            setup: Arc::new(setup),
            stage: Stage::Serving,
            open: BTreeMap::new(),
            connections: BTreeMap::new(),
            asks: BTreeMap::new(),
            detached: BTreeMap::new(),
            names: Names::default(),
            shares: Shares::default(),
            leases: Leases::default(),
            standing: BTreeMap::new(),
            former: FormerProcess::default(),
            places: Places::default(),
            ledger: LedgerState::default(),
            held: HeldLeases::default(),
            kept: BTreeMap::new(),
            tries: BTreeSet::new(),
            last_session: 0,
            last_ask: 0,
            due: now.after(time::OFTEN),
            counters: Counters::default(),
        }
    }

    /// Process what happened, and add to `out` what is to be done, in the order in which it must be
    /// done.
    pub fn step(&mut self, now: Moment, input: Input, out: &mut Vec<Output>) {
        let first = out.len();
        self.process(now, input, out);
        self.report_drained(out);
        self.await_drops(first, out);
        self.withhold(now, first, out);
        self.note_informed(&out[first..]);
    }

    fn process(&mut self, now: Moment, input: Input, out: &mut Vec<Output>) {
        match input {
            Input::Request(connection, request) => self.request(now, connection, request, out),
            Input::Granted(ask, fence) => self.granted(now, ask, fence, 0, out),
            Input::GrantedToKeep(ask, fence, more) => self.granted(now, ask, fence, more, out),
            Input::Wanted(name) => self.wanted(&names::visible_name(&name), out),
            Input::Refused(ask, refusal) => self.refused(ask, refusal, out),
            Input::Queued(ask) => self.queued(now, ask, out),
            Input::Written(ask, written) => {
                self.note_failure(now, &written, out);
                self.written(now, ask, written, out);
            }
            Input::Rewritten(session, written) => {
                self.note_failure(now, &written, out);
                self.rewritten(session, written, out);
            }
            Input::Erased(place, erased) => self.erased(now, place, &erased, out),
            Input::AllErased => self.all_erased(out),
            Input::LedgerFailed(error) => self.note_failure(now, &Err(error), out),
            Input::Probed(written) => self.probed(now, &written, out),
            Input::Held { ask, length, kept } => self.held_by_group(now, ask, length, kept, out),
            Input::Dropped(name, fence, done) => self.dropped(name, fence, &done, out),
            Input::Heard(connection) => self.heard(now, connection),
            Input::Connect { connection, remote } => self.connect(connection, remote, out),
            Input::Identify { connection, principal } => {
                if let Err(refusal) = self.identify(connection, &principal) {
                    out.push(Output::TurnAway(connection, refusal));
                }
            }
            Input::Hello(opening) => self.hello(now, *opening, out),
            Input::Call(connection, principal, call) => {
                self.call(now, connection, &principal, call, out);
            }
            Input::CallTimedOut(connection) => self.call_timed_out(now, connection, out),
            Input::HangUp { connection, closed } => self.hang_up(now, connection, closed, out),
            Input::Lost { session, name, fence } => self.lose(session, &name, fence, out),
            Input::HolderSeen(connection, request) => {
                self.holder_seen(connection, request, out);
            }
            Input::ProcessEnded(session) => self.process_ended(now, session, out),
            Input::Configure(limits, clients) => self.configure(*limits, clients),
            Input::Rules(rules) => Arc::make_mut(&mut self.setup).rules = rules,
            Input::Lease(lease) => self.set_lease(now, lease, out),
            Input::Tick => self.tick(now, out),
            Input::Restored(contents) => self.restore(now, *contents, out),
            Input::Drain(time) => self.drain(time, out),
            Input::Stop => self.stop(out),
        }
    }

    fn request(
        &mut self,
        now: Moment,
        connection: Connection,
        request: Request,
        out: &mut Vec<Output>,
    ) {
        self.heard(now, connection);
        let Some(conn) = self.connections.get(&connection) else { return };
        let session = match conn.session {
            AttachedSession::Over => return,
            AttachedSession::None => None,
            AttachedSession::Open(number) => Some(number),
        };
        let Some(principal) = conn.principal.clone() else { return };
        let reply = match request {
            Request::Acquire(number, ref ask) | Request::Keep(number, ref ask) => {
                let Some(session) = session else {
                    let text = "this connection has no session: open one to acquire locks";
                    let refusal = refusal(doorway_protocol::Code::Invalid, text);
                    return out.push(Output::Tell(connection, Reply::Refused(number, refusal)));
                };
                let keeps = matches!(request, Request::Keep(..));
                let numbers = if keeps { self.numbers_for(session, ask) } else { 0 };
                return self.acquire(session, number, ask.clone(), numbers, out);
            }
            Request::InUse(lock, fence) => {
                let Some(session) = session else { return };
                return self.in_use(session, &lock, fence, out);
            }
            Request::Withdraw(number) => {
                let Some(session) = session else { return };
                match self.withdraw(session, number, out) {
                    Ok(()) => return,
                    Err(refusal) => Reply::Refused(number, refusal),
                }
            }
            Request::Release(number, lock, fence) => {
                Reply::Released(number, self.release(&principal, session, &lock, fence, out))
            }
            Request::Renew(number, lock, fence) => {
                match self.renew(now, &principal, &lock, fence) {
                    Ok(renewed) if !self.covers(now, renewed) => {
                        Reply::Refused(number, promise::not_covered())
                    }
                    Ok(_) => Reply::Done(number),
                    Err(refusal) => Reply::Refused(number, refusal),
                }
            }
            Request::Alive(number) => Reply::Alive(number),
            Request::Bye => {
                if let Some(session) = session {
                    self.end(session, open::End::Left, out);
                }
                return out.push(Output::Close(connection));
            }
            // The shell carries these out: they need the node, or a task that waits.
            Request::Inspect(..)
            | Request::List { .. }
            | Request::Status(_)
            | Request::Break(..)
            | Request::AwaitFree(..)
            | Request::Drain(..)
            | Request::Evidence(_)
            | Request::Members(..)
            | Request::Once { .. }
            | Request::Windows(..)
            | Request::Ledger(_)
            | Request::LastHolders(..) => return,
        };
        out.push(Output::Tell(connection, reply));
    }

    /// Apply new limits and clients. Open sessions and connections get the new rights of their
    /// clients at once.
    fn configure(&mut self, limits: Limits, clients: Vec<ClientSettings>) {
        let setup = Arc::make_mut(&mut self.setup);
        (setup.limits, setup.clients) = (limits, clients);
        let clients = &self.setup.clients;
        let open = self.open.values_mut().map(|session| &mut session.principal);
        let connected = self.connections.values_mut().filter_map(|conn| conn.principal.as_mut());
        for principal in open.chain(connected).filter(|principal| principal.uid.is_none()) {
            let rights = restore::rights_of(clients, &principal.name);
            if principal.rights != rights {
                *principal = Arc::new(Principal { rights, ..(**principal).clone() });
            }
        }
    }

    /// Tell the client of a session something, if it is connected.
    fn tell(&self, session: u64, reply: Reply, out: &mut Vec<Output>) {
        let connection = self.open.get(&session).and_then(|session| session.connection);
        if let Some(connection) = connection {
            out.push(Output::Tell(connection, reply));
        }
    }
}

/// Refuse what a client has no right to do.
pub fn allowed(principal: &Principal, right: Right, lock: &Name) -> Result<(), Refusal> {
    refusals::check_name(lock)?;
    if principal.rights.may(right, lock) {
        return Ok(());
    }
    let word = match right {
        Right::Acquire => "acquire",
        Right::Inspect => "inspect",
        Right::Break => "break",
    };
    let text = format!("{} may not {word} `{lock}`", principal.name);
    Err(refusal(doorway_protocol::Code::Forbidden, text))
}

/// Whether two principals are the same client. Over a Unix socket that is the user; root may act
/// for everyone.
fn same_client(owner: &Principal, other: &Principal) -> bool {
    match (owner.uid, other.uid) {
        (Some(owner), Some(other)) => owner == other || other == 0,
        (None, None) => owner.name == other.name,
        (None, Some(other)) => other == 0,
        (Some(_), None) => false,
    }
}
