//! Sessions step by step, in virtual time. The test plays the shell and the node.

mod endless;
mod kept;
mod leases;
mod limits;
mod promise;
mod random;
mod restarts;
mod standing;
mod time;
mod writes;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use doorway_protocol::{
    Ask, Claim, ClientInfo, Fence, Hello, Life, Mode, Moment, Name, NodeIdentity, Refusal, Reply,
    Request, Secret, SessionId, VERSIONS, Wait, Welcome,
};
use doorway_sessions::ledger::{LedgerContents, Record};
use doorway_sessions::principal::{Principal, Rights};
use doorway_sessions::{
    Answer, AskId, Call, Connection, Input, LeaseAsk, LeaseKey, Opening, Output, ProcessId,
    Sessions, Setup,
};

use super::shell;

/// The longest TTL that these nodes allow, in milliseconds.
const TTL: u32 = 2000;

const CONNECTION: Life = Life::Connection { inherited: false };

const PROCESS: ProcessId = ProcessId { pid: 42, started: Some(7) };

/// The sessions of a node, and what they had written into their ledger.
struct TestNode {
    sessions: Sessions,
    ledger: BTreeMap<u32, Record>,
    connections: u64,
}

/// Where a client is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    /// On another machine, with this number.
    Network(u8),
    /// On this machine, in a process that the node sees.
    Here,
    /// On this machine, in a process that the node does not see.
    Hidden,
}

impl From {
    fn is_remote(self) -> bool {
        matches!(self, Self::Network(_))
    }
}

impl TestNode {
    fn new() -> Self {
        Self::with(setup())
    }

    fn with(setup: Setup) -> Self {
        let mut node =
            Self { sessions: Sessions::new(setup, at(0)), ledger: BTreeMap::new(), connections: 0 };
        node.step(0, Input::Restored(Box::new(contents(BTreeMap::new()))));
        node
    }

    /// The next process, after a crash or a stop at this time. `change` makes the ledger what it
    /// is.
    fn restart(self, ms: u64, change: impl FnOnce(&mut LedgerContents)) -> (Self, Vec<Output>) {
        let (sessions, ledger) = (Sessions::new(setup(), at(ms)), self.ledger);
        let mut node = Self { sessions, ledger, connections: 1000 };
        let mut former = contents(node.ledger.clone());
        former.last = 1000;
        change(&mut former);
        let out = node.step(ms, Input::Restored(Box::new(former)));
        (node, out)
    }

    /// Tell the sessions what happened at this time, and write and erase what they want. They hear
    /// at once that a record was erased.
    fn step(&mut self, ms: u64, input: Input) -> Vec<Output> {
        let mut out = self.step_unerased(ms, input);
        let mut done = 0;
        while let Some(output) = out.get(done) {
            done += 1;
            if let Output::Erase(place) = *output {
                self.ledger.remove(&place);
                out.extend(self.step_unerased(ms, Input::Erased(place, Ok(()))));
            }
        }
        out
    }

    /// Tell the sessions what happened at this time, and write what they want written. The test
    /// says what becomes of records that are to be erased.
    fn step_unerased(&mut self, ms: u64, input: Input) -> Vec<Output> {
        let mut out = Vec::new();
        self.sessions.step(at(ms), input, &mut out);
        for output in &out {
            match output {
                Output::Write(_, records) => self.ledger.extend(records.clone()),
                Output::Rewrite(_, place, record) => {
                    drop(self.ledger.insert(*place, record.clone()));
                }
                _ => {}
            }
        }
        out
    }

    /// Let time pass until this time, and tick whenever that is due.
    fn pass(&mut self, ms: u64) -> Vec<Output> {
        let mut out = Vec::new();
        while self.sessions.due() <= at(ms) {
            let due = self.sessions.due().0.div_ceil(1_000_000);
            out.extend(self.step(due, Input::Tick));
        }
        out
    }

    fn connect(&mut self, ms: u64, from: From) -> Connection {
        self.connections += 1;
        let connection = Connection(self.connections);
        let remote = from.is_remote();
        let out = self.step(ms, Input::Connect { connection, remote });
        assert!(out.is_empty(), "{out:?}");
        connection
    }

    fn hello(
        &mut self,
        ms: u64,
        connection: Connection,
        from: From,
        opening: doorway_protocol::Opening,
    ) -> Vec<Output> {
        self.step(
            ms,
            Input::Hello(Box::new(Opening {
                connection,
                principal: principal(from),
                remote: from.is_remote(),
                process: (from == From::Here).then_some(PROCESS),
                hello: Hello {
                    versions: VERSIONS,
                    who: ClientInfo::default(),
                    token: None,
                    opening,
                },
                claims: Vec::new(),
                secret: Secret([7; 16]),
            })),
        )
    }

    /// Open a session over a connection of its own.
    fn open(&mut self, ms: u64, from: From, ttl_ms: u32, life: Life) -> (Connection, u64) {
        let connection = self.connect(ms, from);
        let new = doorway_protocol::Opening::New { ttl_ms, life };
        let out = self.hello(ms, connection, from, new);
        let (SessionId(session), _) = welcome(&out).session.expect("a session");
        (connection, session)
    }

    /// Go on with a session that held these locks, over a connection of its own.
    fn resume(&mut self, ms: u64, from: From, session: u64, held: Vec<Claim>) -> Vec<Output> {
        let connection = self.connect(ms, from);
        self.resume_over(ms, connection, from, session, held, Vec::new())
    }

    /// Go on with a session over this connection. It held these locks, and these requests of its
    /// client waited.
    fn resume_over(
        &mut self,
        ms: u64,
        connection: Connection,
        from: From,
        session: u64,
        held: Vec<Claim>,
        waiting: Vec<u64>,
    ) -> Vec<Output> {
        let node = Some(shell::identity());
        self.resume_named(ms, connection, from, node, session, (held, waiting))
    }

    /// Go on with a session of this node over this connection.
    fn resume_named(
        &mut self,
        ms: u64,
        connection: Connection,
        from: From,
        node: Option<NodeIdentity>,
        session: u64,
        (held, waiting): (Vec<Claim>, Vec<u64>),
    ) -> Vec<Output> {
        let resume = doorway_protocol::Opening::Resume {
            node,
            session: SessionId(session),
            secret: Secret([7; 16]),
            ttl_ms: TTL,
            life: CONNECTION,
            held,
            waiting,
            more: false,
        };
        self.hello(ms, connection, from, resume)
    }

    fn request(&mut self, ms: u64, connection: Connection, request: Request) -> Vec<Output> {
        self.step(ms, Input::Request(connection, request))
    }

    /// Ask for a lock: the number of the request at the node.
    fn acquire(&mut self, ms: u64, connection: Connection, number: u64, lock: &str) -> AskId {
        let out = self.request(ms, connection, Request::Acquire(number, ask(lock)));
        asked(&out).expect("the node is asked")
    }

    /// The node grants a request, and the grant is written.
    fn grant(&mut self, ms: u64, ask: AskId, fence: u64) -> Vec<Output> {
        let out = self.step(ms, Input::Granted(ask, Fence::new(1, fence)));
        assert!(matches!(out[..], [Output::Write(..)]), "{out:?}");
        self.step(ms, Input::Written(ask, Ok(())))
    }

    /// Hold a lock.
    fn hold(&mut self, ms: u64, connection: Connection, lock: &str, fence: u64) -> AskId {
        let ask = self.acquire(ms, connection, fence, lock);
        let out = self.grant(ms, ask, fence);
        assert_eq!(told(&out), [(connection, Reply::Granted(fence, Fence::new(1, fence)))]);
        ask
    }

    fn call(&mut self, ms: u64, call: Call) -> (Connection, Vec<Output>) {
        self.connections += 1;
        let connection = Connection(self.connections);
        let input = Input::Call(connection, principal(From::Network(1)), call);
        (connection, self.step(ms, input))
    }

    /// An operator on this machine breaks a lock.
    fn break_lock(&mut self, ms: u64, lock: &str, fence: Fence) -> (Connection, Vec<Output>) {
        self.connections += 1;
        let connection = Connection(self.connections);
        let call = Call::Break(name(lock), fence);
        (connection, self.step(ms, Input::Call(connection, principal(From::Here), call)))
    }

    fn hang_up(&mut self, ms: u64, connection: Connection) -> Vec<Output> {
        self.step(ms, Input::HangUp { connection, closed: true })
    }
}

fn setup() -> Setup {
    shell::setup(Duration::from_millis(TTL.into()))
}

fn contents(ledger: BTreeMap<u32, Record>) -> LedgerContents {
    LedgerContents {
        same_boot: true,
        complete: true,
        records: ledger.into_iter().collect(),
        ..LedgerContents::default()
    }
}

fn at(ms: u64) -> Moment {
    Moment(ms * 1_000_000)
}

fn name(lock: &str) -> Name {
    Name::new(lock).expect("a name")
}

fn ask(lock: &str) -> Ask {
    Ask { lock: name(lock), mode: Mode::Exclusive, permits: None, wait: Wait::Forever }
}

fn claim(lock: &str, fence: u64) -> Claim {
    let Ask { lock, mode, permits, .. } = ask(lock);
    Claim { lock, mode, permits, fence: Fence::new(1, fence), request: fence }
}

/// A request for a lock with a lease.
fn lease(lock: &str, key: Option<&str>, ttl_ms: u32) -> Call {
    Call::Acquire(Box::new(LeaseAsk {
        ask: ask(lock),
        key: key.map(|key| LeaseKey::Request(key.to_owned())),
        ttl_ms: Some(ttl_ms),
        unattended: false,
        label: String::new(),
        remote: true,
        secret: Secret([7; 16]),
    }))
}

fn principal(from: From) -> Arc<Principal> {
    let rights = Rights::all();
    Arc::new(match from {
        From::Network(number) => Principal { name: format!("client {number}"), uid: None, rights },
        From::Here | From::Hidden => {
            Principal { name: "uid 1000".to_owned(), uid: Some(1000), rights }
        }
    })
}

fn welcome(out: &[Output]) -> Welcome {
    let greeting = out.iter().find_map(|output| match output {
        Output::Greet(_, greeting, _) => Some(greeting.as_ref().clone()),
        _ => None,
    });
    greeting.expect("a greeting").expect("a welcome")
}

/// Why a hello was refused.
fn refused(out: &[Output]) -> Option<Refusal> {
    out.iter().find_map(|output| match output {
        Output::Greet(_, greeting, _) => greeting.as_ref().as_ref().err().cloned(),
        Output::TurnAway(_, refusal) => Some(refusal.clone()),
        _ => None,
    })
}

/// What clients are told.
fn told(out: &[Output]) -> Vec<(Connection, Reply)> {
    let tell = |output: &Output| match output {
        Output::Tell(connection, reply) => Some((*connection, reply.clone())),
        _ => None,
    };
    out.iter().filter_map(tell).collect()
}

fn answers(out: &[Output]) -> Vec<(Connection, Answer)> {
    let answer = |output: &Output| match output {
        Output::Answer(connection, answer) => Some((*connection, answer.clone())),
        _ => None,
    };
    out.iter().filter_map(answer).collect()
}

/// The request that the node is asked to grant.
fn asked(out: &[Output]) -> Option<AskId> {
    out.iter().find_map(|output| match output {
        Output::Acquire { ask, .. } | Output::Reclaim { ask, .. } => Some(*ask),
        _ => None,
    })
}

/// The grants that the node gets back.
fn released(out: &[Output]) -> Vec<AskId> {
    let release = |output: &Output| match output {
        Output::Release(ask) => Some(*ask),
        _ => None,
    };
    out.iter().filter_map(release).collect()
}

fn drained(out: &[Output]) -> bool {
    out.iter().any(|output| matches!(output, Output::Drained))
}

fn serves(out: &[Output]) -> bool {
    out.iter().any(|output| matches!(output, Output::Serve))
}

/// The code of a refusal.
macro_rules! assert_refused {
    ($replies:expr, $code:expr) => {
        let replies = $replies;
        let [(_, Reply::Refused(_, refusal))] = &replies[..] else { panic!("{replies:?}") };
        assert_eq!(refusal.code, $code, "{refusal}");
    };
}
use assert_refused;
