//! A node without IO: the shipped sessions, and a shell that does what they say as the shipped one
//! does. Connections are bytes, the ledger is a table in memory, and the locks are those of a node
//! without peers.

mod locks;
mod wire;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use doorway_protocol::{
    Code, DirectoryId, Hello, Life, Moment, NodeIdentity, Reply, Request, Scope, Secret,
};
use doorway_sessions::ledger::{LedgerContents, Record};
use doorway_sessions::principal::{Principal, Rights};
use doorway_sessions::settings::{ClientSettings, Limits};
use doorway_sessions::{
    Answer, Call, Connection, Evidence, Input, NodeLease, Opening, Output, ProcessId, Sessions,
    Setup,
};

use locks::refusal;
pub(crate) use locks::{Locks, not_free};
use wire::{ClientMessage, Wire};

/// How many numbers of sessions belong to one start of the node.
const NUMBERS: u64 = 1000;

/// The call by which a client breaks a lock. It is answered at once.
const BREAK: Connection = Connection(u64::MAX);

/// A node with its connections.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Shell {
    pub(crate) sessions: Sessions,
    pub(crate) locks: Locks,
    /// What survives a crash.
    pub(crate) ledger: BTreeMap<u32, Record>,
    identity: NodeIdentity,
    wires: BTreeMap<Connection, Wire>,
    /// The sessions whose processes are watched.
    watched: BTreeMap<u64, Evidence>,
    now: Moment,
    ttl: Duration,
    /// Whether clients come over a network.
    remote: bool,
    /// The lease of the node, if it is a member of a group. It is renewed all the time.
    lease: Option<Duration>,
    is_up: bool,
    starts: u64,
    /// How many heartbeats have been received.
    pub(crate) heartbeats: usize,
    /// How many grants were just broken.
    broken: usize,
    mistake: Option<Mistake>,
    /// Records that a mistaken shell has yet to write.
    unwritten: Vec<(u32, Record)>,
}

/// A mistake that a shell could make, for searches that have to find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Mistake {
    /// A record is written only before the next input, and the sessions hear that it was.
    WritesLate,
    /// No record is erased, and the sessions hear that it was.
    ErasesNothing,
    /// The ledger is empty after a crash.
    ForgetsLedger,
    /// A ledger of version 0.1.0 passes for one that has all grants.
    TrustsOldLedger,
    /// The node grants locks although former holders may come back.
    ServesAtOnce,
    /// The fences of the next process begin where those of the first one began.
    RepeatsFences,
    /// The numbers of sessions begin anew after a crash.
    RepeatsNumbers,
    /// A heartbeat is answered, and counts for nothing.
    HearsNothing,
    /// Grants that are given back stay where they are.
    ReleasesNothing,
    /// The machine counts as restarted after every crash.
    TakesBootForAnother,
    /// The end of a connection is not noticed.
    MissesHangUp,
    /// The end of a process is not noticed.
    MissesProcessEnd,
    /// Every process counts as ended after a crash.
    MistakesProcesses,
    /// The clock of the node is ahead by half a TTL whenever it looks for silent sessions.
    TicksEarly,
    /// Another node believes that the sessions of this one are its own.
    SharesIdentity,
    /// A client that keeps a lock is not told that somebody else wants it.
    HidesWishes,
    /// The numbers that a client keeps are given to others as well.
    RepeatsNumbersOfKeepers,
}

impl Shell {
    /// A node that has just been started for the first time.
    pub(crate) fn new(now: Moment, ttl: Duration, remote: bool, mistake: Option<Mistake>) -> Self {
        let mut shell = Self::down(now, ttl, remote, mistake);
        shell.start(false);
        shell
    }

    /// A node with this lease, which has just been started for the first time.
    pub(crate) fn member(now: Moment, ttl: Duration, lease: Duration) -> Self {
        let mut shell = Self { lease: Some(lease), ..Self::down(now, ttl, false, None) };
        shell.start(false);
        shell
    }

    /// Another node than the one of [`Shell::new`], which has lost its ledger and grants nothing
    /// yet: the sessions of its former process had a long TTL.
    pub(crate) fn bereft(now: Moment, ttl: Duration, mistake: Option<Mistake>) -> Self {
        let mut shell = Self::down(now, ttl, true, mistake);
        if mistake != Some(Mistake::SharesIdentity) {
            let (name, directory) = ("two".to_owned(), DirectoryId([2; 16]));
            shell.identity = NodeIdentity { name, directory };
        }
        let former = LedgerContents {
            same_boot: true,
            complete: true,
            lacking: true,
            ttl: Duration::from_secs(1_000_000),
            last: NUMBERS * NUMBERS,
            ..LedgerContents::default()
        };
        shell.begin(former);
        shell
    }

    /// A node before its first start.
    fn down(now: Moment, ttl: Duration, remote: bool, mistake: Option<Mistake>) -> Self {
        Self {
            sessions: Sessions::new(setup(ttl), now),
            locks: Locks::default(),
            ledger: BTreeMap::new(),
            identity: identity(),
            wires: BTreeMap::new(),
            watched: BTreeMap::new(),
            now,
            ttl,
            remote,
            lease: None,
            is_up: false,
            starts: 0,
            heartbeats: 0,
            broken: 0,
            mistake,
            unwritten: Vec::new(),
        }
    }

    /// The process is gone. Only the ledger stays.
    pub(crate) fn kill(&mut self) {
        self.wires.clear();
        self.watched.clear();
        self.unwritten.clear();
        self.sessions = Sessions::new(setup(self.ttl), self.now);
        self.locks = Locks::default();
        self.is_up = false;
    }

    /// Start the next process. `old` says that the ledger is one of version 0.1.0, which lacks the
    /// grants of sessions with a connection.
    pub(crate) fn start(&mut self, old: bool) {
        let mistaken = |mistake| self.mistake == Some(mistake);
        if mistaken(Mistake::ForgetsLedger) {
            self.ledger.clear();
        }
        if old {
            self.ledger.retain(|_, record| !matches!(record, Record::Grant(_)));
        }
        let last = self.starts * NUMBERS;
        let contents = LedgerContents {
            same_boot: !mistaken(Mistake::TakesBootForAnother),
            damaged: false,
            complete: !old || mistaken(Mistake::TrustsOldLedger),
            lacking: false,
            ttl: self.ttl,
            last: if mistaken(Mistake::RepeatsNumbers) { 0 } else { last },
            records: self.ledger.iter().map(|(place, record)| (*place, record.clone())).collect(),
        };
        let first = if mistaken(Mistake::RepeatsFences) { 1 } else { self.starts + 1 };
        let serves = mistaken(Mistake::ServesAtOnce);
        self.starts += 1;
        self.locks = Locks::new(first, mistaken(Mistake::RepeatsNumbersOfKeepers));
        if serves {
            self.locks.serve();
        }
        self.begin(contents);
    }

    /// Serve clients, with what the former process left.
    fn begin(&mut self, former: LedgerContents) {
        let NodeIdentity { name: node, directory } = self.identity.clone();
        let setup = Setup { node, directory, agreed: self.lease.is_some(), ..setup(self.ttl) };
        self.sessions = Sessions::new(setup, self.now);
        self.is_up = true;
        self.run(Input::Restored(Box::new(former)));
        self.renew();
    }

    /// The lease of the node is renewed.
    fn renew(&mut self) {
        if let Some(length) = self.lease {
            self.run(Input::Lease(NodeLease { until: self.now.after(length), length }));
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.is_up
    }

    pub(crate) fn now(&self) -> Moment {
        self.now
    }

    /// Let time pass until this moment: the node does what is due.
    pub(crate) fn pass(&mut self, now: Moment) {
        while self.is_up {
            let due = self.sessions.due().min(self.locks.due());
            if due > now {
                break;
            }
            self.now = self.now.max(due);
            while let Some(input) = self.locks.time_out(self.now) {
                self.run(input);
            }
            if self.sessions.due() <= self.now {
                self.run(Input::Tick);
            }
        }
        self.now = now;
        if self.is_up {
            self.renew();
        }
    }

    /// A client has connected, whose process has this number.
    pub(crate) fn connect(&mut self, connection: Connection, pid: u32) {
        self.wires.insert(connection, Wire::new(pid));
        self.run(Input::Connect { connection, remote: self.remote });
    }

    /// The connection has ended.
    pub(crate) fn hang_up(&mut self, connection: Connection) {
        if self.wires.remove(&connection).is_some() && self.mistake != Some(Mistake::MissesHangUp) {
            self.run(Input::HangUp { connection, closed: true });
        }
    }

    /// Whether the node has the connection open.
    pub(crate) fn is_connected(&self, connection: Connection) -> bool {
        self.wires.contains_key(&connection)
    }

    /// Whether the node closes the connection when everything is written.
    pub(crate) fn is_closing(&self, connection: Connection) -> bool {
        self.wires.get(&connection).is_some_and(|wire| wire.closing)
    }

    /// Whether the node has something to write to a connection.
    pub(crate) fn has_written(&self, connection: Connection) -> bool {
        self.wires.get(&connection).is_some_and(|wire| wire.greeted && !wire.out.is_empty())
    }

    /// The bytes that the node has to write to a connection.
    pub(crate) fn outgoing(&mut self, connection: Connection) -> Option<&mut Vec<u8>> {
        self.wires.get_mut(&connection).filter(|wire| wire.greeted).map(|wire| &mut wire.out)
    }

    /// Bytes have come from a client.
    pub(crate) fn receive(&mut self, connection: Connection, bytes: &[u8]) {
        let Some(wire) = self.wires.get_mut(&connection) else { return };
        wire.feed(bytes);
        let hears = self.mistake != Some(Mistake::HearsNothing);
        if wire.greeted && hears {
            self.run(Input::Heard(connection));
        }
        while let Some(said) = self.wires.get_mut(&connection).and_then(Wire::next) {
            match said {
                ClientMessage::Hello(hello, claims) => {
                    let principal = Arc::new(self.principal());
                    self.run(Input::Identify { connection, principal: Arc::clone(&principal) });
                    let process = self.evidence(connection, &hello);
                    self.run(Input::Hello(Box::new(Opening {
                        connection,
                        principal,
                        remote: self.remote,
                        process,
                        hello: *hello,
                        claims,
                        secret: Secret([connection.0 as u8; 16]),
                    })));
                }
                ClientMessage::Request(Request::Alive(number)) if !hears => {
                    self.tell(connection, &Reply::Alive(number));
                }
                ClientMessage::Request(request) => self.request(connection, request),
            }
        }
    }

    /// The sessions whose process has this number, and is watched.
    pub(crate) fn watches(&self, pid: u32) -> bool {
        self.watched.values().any(|evidence| evidence.is_process(pid))
    }

    /// The process with this number has ended.
    pub(crate) fn process_ended(&mut self, pid: u32) {
        let of =
            |(session, evidence): (&u64, &Evidence)| evidence.is_process(pid).then_some(*session);
        let sessions: Vec<u64> = self.watched.iter().filter_map(of).collect();
        for session in sessions {
            self.run(Input::ProcessEnded(session));
        }
    }

    /// Whether the shell takes processes for ended that run.
    pub(crate) fn mistakes_processes(&self) -> bool {
        self.mistake == Some(Mistake::MistakesProcesses) && self.starts > 1
    }

    /// Tell the sessions what happened, and do what they say.
    pub(crate) fn run(&mut self, input: Input) {
        for (place, record) in std::mem::take(&mut self.unwritten) {
            self.ledger.insert(place, record);
        }
        let (mut inputs, mut outputs) = (VecDeque::from([input]), Vec::new());
        // Requests that waited are granted one after another, when all else is done.
        while let Some(input) = inputs.pop_front().or_else(|| self.locks.next_grant()) {
            let early = self.mistake == Some(Mistake::TicksEarly) && matches!(input, Input::Tick);
            let now = if early { self.now.after(self.ttl / 2) } else { self.now };
            self.sessions.step(now, input, &mut outputs);
            for output in outputs.drain(..) {
                self.perform(output, &mut inputs);
            }
        }
        let Self { wires, locks, .. } = self;
        for wire in wires.values_mut() {
            wire.answer_questions(|lock| locks.is_free(lock));
        }
    }

    fn perform(&mut self, output: Output, inputs: &mut VecDeque<Input>) {
        let mistake = self.mistake;
        match output {
            Output::Tell(_, Reply::Wanted(..)) if mistake == Some(Mistake::HidesWishes) => {}
            Output::Tell(connection, reply) => self.tell(connection, &reply),
            Output::Greet(connection, greeting, then) => {
                if let Some(wire) = self.wires.get_mut(&connection) {
                    wire.greet(&greeting, &then);
                }
            }
            Output::Close(connection) => {
                self.wires.get_mut(&connection).into_iter().for_each(|wire| wire.closing = true);
            }
            Output::TurnAway(connection, _) => drop(self.wires.remove(&connection)),
            Output::Acquire { ask, name, wait, numbers, .. } => {
                inputs.push_back(self.locks.acquire(self.now, ask, &name, wait, numbers));
            }
            Output::Reclaim { ask, name, fence, .. } => {
                inputs.push_back(self.locks.reclaim(ask, name, fence));
            }
            // The group agrees at once.
            Output::Hold { ask, length, .. } => {
                inputs.push_back(Input::Held { ask, length, kept: Ok(()) });
            }
            Output::DropHold { name, fence } => {
                inputs.push_back(Input::Dropped(name, fence, Ok(())));
            }
            Output::Abandon(ask) => self.locks.abandon(ask),
            Output::Release(..) if mistake == Some(Mistake::ReleasesNothing) => {}
            Output::Release(ask) => self.locks.release(ask),
            Output::Write(ask, records) => {
                if mistake == Some(Mistake::WritesLate) {
                    self.unwritten.extend(records);
                } else {
                    self.ledger.extend(records);
                }
                inputs.push_back(Input::Written(ask, Ok(())));
            }
            Output::Rewrite(session, place, record) => {
                self.ledger.insert(place, record);
                inputs.push_back(Input::Rewritten(session, Ok(())));
            }
            Output::Probe => inputs.push_back(Input::Probed(Ok(()))),
            Output::Erase(place) => {
                if mistake != Some(Mistake::ErasesNothing) {
                    self.unwritten.retain(|(at, _)| *at != place);
                    self.ledger.remove(&place);
                }
                inputs.push_back(Input::Erased(place, Ok(())));
            }
            Output::Watch(session, evidence) => {
                if mistake != Some(Mistake::MissesProcessEnd) {
                    self.watched.insert(session, evidence);
                }
            }
            Output::Unwatch(session) => drop(self.watched.remove(&session)),
            Output::Serve => self.locks.serve(),
            Output::Answer(_, Answer::Broken(count)) => self.broken = count,
            Output::Answer(..)
            | Output::Settled
            | Output::LedgerTrouble(_)
            | Output::Opened(..)
            | Output::Ended(_)
            | Output::Announce(_)
            | Output::AnnounceWait(_)
            | Output::Drained => {}
        }
    }

    fn tell(&mut self, connection: Connection, reply: &Reply) {
        self.wires.get_mut(&connection).into_iter().for_each(|wire| wire.tell(reply));
    }

    /// Carry out a request of a connection that was greeted.
    fn request(&mut self, connection: Connection, request: Request) {
        let Some(wire) = self.wires.get_mut(&connection) else { return };
        match request {
            Request::AwaitFree(number, lock) => {
                wire.questions.insert(number, lock);
                let Self { wires, locks, .. } = self;
                for wire in wires.values_mut() {
                    wire.answer_questions(|lock| locks.is_free(lock));
                }
            }
            Request::Withdraw(number) if wire.questions.remove(&number).is_some() => {
                let refusal = refusal(Code::Gone, "the question was withdrawn");
                self.tell(connection, &Reply::Refused(number, refusal));
            }
            Request::Break(number, lock, fence) => {
                let principal = Arc::new(self.principal());
                self.broken = 0;
                let call = Call::Break(lock, fence);
                self.run(Input::Call(BREAK, principal, call));
                let reply = match self.broken {
                    0 => Reply::Refused(number, refusal(Code::Gone, "it is not held")),
                    _ => Reply::Done(number),
                };
                self.tell(connection, &reply);
            }
            other => {
                self.heartbeats += usize::from(matches!(other, Request::Alive(_)));
                self.run(Input::Request(connection, other));
            }
        }
    }

    fn principal(&self) -> Principal {
        let (name, uid) = if self.remote { ("client ci", None) } else { ("uid 1000", Some(1000)) };
        Principal { name: name.to_owned(), uid, rights: Rights::all() }
    }

    fn evidence(&self, connection: Connection, hello: &Hello) -> Option<ProcessId> {
        use doorway_protocol::Opening::{New, Resume};
        let (New { life, .. } | Resume { life, .. }) = hello.opening else { return None };
        let pid = self.wires.get(&connection)?.pid;
        let seen = !self.remote && matches!(life, Life::Connection { .. });
        seen.then_some(ProcessId { pid, started: Some(1) })
    }
}

/// The settings of the sessions of a node without peers.
pub(crate) fn setup(ttl: Duration) -> Setup {
    let limits = Limits {
        sessions: 100,
        connections: 100,
        grants: 100,
        waiting: 100,
        queue: 100,
        ttl,
        terraform_ttl: 10 * ttl,
        endless: true,
        files: 1000,
    };
    let NodeIdentity { name: node, directory } = identity();
    Setup {
        node,
        directory,
        scope: Scope::User,
        limits,
        outstanding: 100,
        rules: Vec::new(),
        clients: ["ci", "1", "2", "3"].map(client).to_vec(),
        alone: true,
        ledger: true,
        agreed: false,
    }
}

/// Which node the sessions of [`setup`] belong to.
pub(crate) fn identity() -> NodeIdentity {
    NodeIdentity { name: "one".to_owned(), directory: DirectoryId([1; 16]) }
}

fn client(name: &str) -> ClientSettings {
    ClientSettings { name: name.to_owned(), token: None, rights: Rights::all() }
}
