//! What the machine did in random schedules, in a file that clients in other languages repeat.
//!
//! Each line that begins with a moment, in nanoseconds, is an input. `=` follows with what came of
//! it: when the machine is due, whether it wants a connection, must close it, talks, is bound and
//! is turned away, its state, its deadline, and what it sends. Then `!` stands before each event.
//!
//! A machine with the word `keep` keeps locks until somebody else wants them.

#![expect(clippy::unwrap_used, reason = "a text takes every line, and the names are valid")]

use std::fmt::Write as _;
use std::fs;
use std::time::Duration;

use doorway_client::machine::{Answer, Event, SessionMachine, Setup, State, UNLIMITED};
use doorway_protocol::{
    Ask, Claim, ClientInfo, Code, DirectoryId, Fence, Frames, Greeting, Hello, Life, LockReport,
    Mode, Moment, Name, NodeStatus, Opening, Refusal, Reply, Request, Scope, Secret, SessionId,
    Wait, Welcome, put,
};

const MS: u64 = 1_000_000;

/// The names of locks.
const LOCKS: [&str; 3] = ["a", "b", "ü"];

/// The versions of nodes.
const VERSIONS: [u16; 6] = [1, 2, 3, 3, 3, 3];

/// The TTLs of sessions, in milliseconds.
const TTLS: [u32; 4] = [u32::MAX, 500, 3000, 10_000];

/// The versions of nodes of clients that keep locks, which version 5 understands.
const OF_KEEPERS: [u16; 6] = [4, 5, 5, 5, 5, 5];

const CODES: [Code; 9] = [
    Code::Invalid,
    Code::Forbidden,
    Code::Busy,
    Code::NotFree,
    Code::NotServed,
    Code::Gone,
    Code::Unavailable,
    Code::Broken,
    Code::Elsewhere,
];

/// A generator of random numbers that is the same everywhere.
struct Dice(u64);

impl Dice {
    /// A number below `count`.
    fn below(&mut self, count: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % count
    }

    /// True once in `count` times.
    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        self.pick_one(all)
    }

    fn pick_one<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize].clone()
    }
}

/// A machine in a random schedule, and the node that it talks to.
struct Run {
    dice: Dice,
    machine: SessionMachine,
    now: u64,
    /// What the machine has sent on this connection and the node has not read.
    frames: Frames,
    /// What was said so far on this connection.
    said: GreetingStage,
    /// The requests on this connection that have no answer.
    asked: Vec<Request>,
    /// What the client claimed when it resumed its session.
    claimed: Vec<Claim>,
    resumes: bool,
    /// All requests that were made.
    numbers: u64,
    held: Vec<(Name, Fence)>,
    /// Whether the client keeps locks.
    keep: bool,
    /// The grants that the client may keep, as the node knows them.
    kept: Vec<(Name, Fence)>,
    /// What was released, if the client keeps locks: a program may release it again.
    released: Vec<(Name, Fence)>,
    /// How many times the client has entered a kept lock again.
    entered_again: usize,
    /// How many times the client was inside a lock that was wanted.
    in_use: usize,
    clock: u64,
    text: String,
}

/// How far the greeting on a connection has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum GreetingStage {
    Nothing,
    Magic,
    /// The client has greeted.
    Hello,
    /// The node has greeted, too.
    Greeted,
}

impl Run {
    fn new(seed: u64, keep: bool) -> Self {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..8 {
            dice.below(2);
        }
        let ttl = dice.pick(&[u64::from(u32::MAX), 500, 3000, 10_000]);
        let patience = dice.pick(&[1000, 10_000]);
        let nodes = dice.pick(&[1, 2]);
        let who = ClientInfo { label: "x".to_owned(), host: "h".to_owned(), pid: 7 };
        let ttl_time = Duration::from_millis(ttl);
        assert!(ttl_time <= UNLIMITED);
        let setup = Setup {
            who,
            token: None,
            session: Some((ttl_time, Life::Connection { inherited: false })),
            patience: Duration::from_millis(patience),
            network: false,
            keep,
            nodes,
        };
        let keeps = if keep { " keep" } else { "" };
        Self {
            dice,
            machine: SessionMachine::new(setup, Moment(0)),
            now: 0,
            frames: Frames::default(),
            said: GreetingStage::Nothing,
            asked: Vec::new(),
            claimed: Vec::new(),
            resumes: false,
            numbers: 0,
            held: Vec::new(),
            keep,
            kept: Vec::new(),
            released: Vec::new(),
            entered_again: 0,
            in_use: 0,
            clock: 1,
            text: format!("machine {ttl} {patience} {nodes}{keeps}\n"),
        }
    }

    fn moment(&self) -> Moment {
        Moment(self.now)
    }

    fn name(&mut self) -> Name {
        Name::new(self.dice.pick(&LOCKS)).unwrap()
    }

    /// Let some time pass.
    fn wait(&mut self) {
        let due = self.machine.next_due();
        self.now = match self.dice.below(8) {
            0..4 => self.now + self.dice.below(30) * MS,
            4 => self.now + self.dice.below(2000) * MS,
            5 if due != Moment::NEVER => self.now.max(due.0) + self.dice.below(600) * MS,
            _ if due != Moment::NEVER => self.now.max(due.0),
            _ => self.now + self.dice.below(500) * MS,
        };
    }

    /// Write down an input.
    fn input(&mut self, what: &str) {
        writeln!(self.text, "{} {what}", self.now).unwrap();
    }

    /// Do something that is possible now.
    fn act(&mut self) {
        if self.keep && self.machine.is_talking() && !self.dice.one_in(8) {
            return self.use_locks();
        }
        self.wait();
        match self.dice.below(16) {
            0..4 if self.machine.wants_connection() => self.connect(),
            0 if self.dice.one_in(3) => self.disconnect(),
            0..8 if !self.machine.wants_connection() => self.answer(),
            8..11 => self.acquire(),
            11 => self.withdraw(),
            12 | 13 if !self.held.is_empty() => {
                let at = self.dice.below(self.held.len() as u64) as usize;
                self.release(at);
            }
            12 => self.question(),
            _ => {
                self.input("tick");
                self.machine.tick(Moment(self.now));
            }
        }
        self.outcome();
        if self.machine.must_close() {
            self.disconnect();
            self.outcome();
        }
    }

    /// Acquire and release locks, as a program does that enters them again and again.
    fn use_locks(&mut self) {
        self.now += self.dice.below(30) * MS;
        let lock = self.name();
        let asks = |request: &Request| matches!(request, Request::Keep(_, ask) if ask.lock == lock);
        if self.dice.one_in(24) {
            self.disconnect();
        } else if self.asked.iter().any(asks) || self.dice.one_in(4) {
            self.answer();
        } else if let Some(at) = self.held.iter().position(|(held, _)| *held == lock) {
            self.release(at);
        } else {
            let (mode, permits, wait) = (Mode::Exclusive, None, Wait::Forever);
            self.ask(Ask { lock, mode, permits, wait });
        }
        self.outcome();
        if self.machine.must_close() {
            self.disconnect();
            self.outcome();
        }
    }

    fn connect(&mut self) {
        if self.dice.one_in(6) {
            self.input("cannot @a nobody listens");
            self.machine.cannot_connect("@a", "nobody listens");
            return;
        }
        let place = if self.dice.one_in(6) { "@b" } else { "@a" };
        let network = self.dice.one_in(2);
        self.input(&format!("connect {place} {network}"));
        self.machine.connected_to(self.moment(), place, network);
    }

    fn disconnect(&mut self) {
        self.input("disconnect");
        self.machine.disconnected(self.moment());
        self.frames = Frames::default();
        self.said = GreetingStage::Nothing;
        self.asked.clear();
    }

    fn acquire(&mut self) {
        let (lock, mode) = (self.name(), self.dice.pick(&[Mode::Exclusive, Mode::Shared]));
        let permits = self.dice.pick(&[None, Some(3)]);
        let ms = self.dice.below(3000);
        let wait = self.dice.pick(&[Wait::No, Wait::Forever, Wait::Ms(ms)]);
        self.ask(Ask { lock, mode, permits, wait });
    }

    fn ask(&mut self, ask: Ask) {
        let Ask { lock, mode, permits, wait } = &ask;
        let shared = *mode == Mode::Shared;
        let permits_text = permits.map_or("-".to_owned(), |permits: u32| permits.to_string());
        let wait_text = match wait {
            Wait::No => "no".to_owned(),
            Wait::Forever => "forever".to_owned(),
            Wait::Ms(ms) => ms.to_string(),
        };
        self.input(&format!("acquire {lock} {shared} {permits_text} {wait_text}"));
        self.numbers = self.machine.acquire(self.moment(), ask);
    }

    fn withdraw(&mut self) {
        let number = 1 + self.dice.below(self.numbers.max(1));
        self.input(&format!("withdraw {number}"));
        self.machine.withdraw(number);
    }

    /// Release one of the grants that are held.
    fn release(&mut self, at: usize) {
        let (lock, fence) = if !self.released.is_empty() && self.dice.one_in(8) {
            self.dice.pick_one(&self.released)
        } else {
            self.held.swap_remove(at)
        };
        if self.keep {
            self.released.push((lock.clone(), fence));
        }
        self.input(&format!("release {lock} {fence}"));
        self.numbers = self.machine.release(self.moment(), &lock, fence);
    }

    fn question(&mut self) {
        let now = self.moment();
        if self.dice.one_in(30) {
            self.input("bye");
            self.machine.bye();
        } else if self.dice.one_in(2) {
            let name = self.name();
            self.input(&format!("inspect {name}"));
            self.numbers = self.machine.inspect(now, &name);
        } else {
            self.input("status");
            self.numbers = self.machine.status(now);
        }
    }

    /// The node sends something.
    fn answer(&mut self) {
        let mut bytes = Vec::new();
        match self.said {
            GreetingStage::Hello => {
                put(&self.greeting(), &mut bytes);
                self.said = GreetingStage::Greeted;
            }
            GreetingStage::Greeted => {
                let count = 1 + self.dice.below(2);
                for _ in 0..count {
                    let reply = self.reply();
                    put(&reply, &mut bytes);
                }
            }
            GreetingStage::Nothing | GreetingStage::Magic => {}
        }
        if self.dice.one_in(60) {
            let garbage: [&[u8]; 4] =
                [b"HTTP/1.1 400", &[21, 3, 3, 0, 2, 2], &[255; 9], &[2, 0, 0, 0, 99, 1]];
            bytes = self.dice.pick(&garbage).to_vec();
        }
        // The bytes may come in two pieces.
        let cut = if self.dice.one_in(4) { self.dice.below(1 + bytes.len() as u64) } else { 0 };
        let (first, second) = bytes.split_at(cut as usize);
        for part in [first, second] {
            if !part.is_empty() {
                self.input(&format!("receive {}", hex(part)));
                self.machine.receive(self.moment(), part);
                self.outcome();
            }
        }
        self.input("holder");
        if self.machine.take_holder().is_some() {
            self.machine.show_holder(self.moment());
        }
    }

    fn greeting(&mut self) -> Greeting {
        if self.dice.one_in(if self.resumes { 3 } else { 8 }) {
            return Err(self.refusal());
        }
        let lost = self.claimed.clone().into_iter().filter(|_| self.dice.one_in(3)).collect();
        Ok(Welcome {
            version: self.dice.pick(if self.keep { &OF_KEEPERS } else { &VERSIONS }),
            node: "n".to_owned(),
            scope: self.dice.pick(&[Scope::User, Scope::Machine, Scope::Cluster]),
            session: (!self.dice.one_in(40)).then_some((SessionId(5), Secret([7; 16]))),
            ttl_ms: self.dice.pick(if self.keep { &[500, 3000, 10_000, 10_000] } else { &TTLS }),
            lost,
            directory: None,
        })
        .map(|welcome: Welcome| {
            let directory = (welcome.version >= 3).then_some(DirectoryId([9; 16]));
            Welcome { directory, ..welcome }
        })
    }

    fn refusal(&mut self) -> Refusal {
        Refusal { code: self.dice.pick(&CODES), text: "why".to_owned() }
    }

    /// What the node says about a lock that the client keeps.
    fn news_of_kept(&mut self) -> Reply {
        let at = self.dice.below(self.kept.len() as u64) as usize;
        let (lock, fence) = self.kept.swap_remove(at);
        if self.dice.one_in(4) {
            return Reply::Lost(lock, fence, "broken".to_owned());
        }
        Reply::Wanted(lock, fence)
    }

    fn reply(&mut self) -> Reply {
        if !self.kept.is_empty() && self.dice.one_in(8) {
            return self.news_of_kept();
        }
        if self.asked.is_empty() || self.dice.one_in(6) {
            return match self.dice.below(4) {
                0 => Reply::Stopping(1000),
                1 if !self.held.is_empty() => {
                    let (lock, fence) = self.held.swap_remove(0);
                    let fence = self.machine.first_fence(&lock, fence).unwrap_or(fence);
                    Reply::Lost(lock, fence, "broken".to_owned())
                }
                2 => Reply::Granted(1 + self.dice.below(self.numbers.max(1)), self.fence()),
                _ => Reply::Alive(1 + self.dice.below(self.numbers.max(1))),
            };
        }
        let at = self.dice.below(self.asked.len() as u64) as usize;
        let request = self.asked.swap_remove(at);
        let number = number(&request);
        if self.dice.one_in(5) {
            return Reply::Refused(number, self.refusal());
        }
        match request {
            Request::Acquire(..) => Reply::Granted(number, self.fence()),
            Request::Keep(_, ask) => {
                let (fence, more) = (self.fence(), self.dice.below(7) as u32);
                if more == 0 {
                    return Reply::Granted(number, fence);
                }
                self.clock += u64::from(more);
                self.kept.push((ask.lock, fence));
                Reply::Kept { number, fence, more }
            }
            Request::Release(..) => Reply::Released(number, !self.dice.one_in(4)),
            Request::Inspect(..) => Reply::Lock(number, Box::new(lock_report())),
            Request::Status(_) => Reply::Status(number, Box::new(status())),
            Request::Alive(_) => Reply::Alive(number),
            _ => Reply::Done(number),
        }
    }

    fn fence(&mut self) -> Fence {
        self.clock += 1 + self.dice.below(2);
        Fence::new(1, self.clock)
    }

    /// Write down what came of the last input, and let the node read what was sent.
    fn outcome(&mut self) {
        let machine = &mut self.machine;
        let sent = std::mem::take(machine.outgoing());
        let flags = [
            machine.wants_connection(),
            machine.must_close(),
            machine.is_talking(),
            machine.is_bound(),
            machine.is_turned_away(),
        ];
        let flags: String = flags.iter().map(|flag| if *flag { '1' } else { '0' }).collect();
        let state = match machine.state(Moment(self.now)) {
            State::Held => "held",
            State::Unsure => "unsure",
            State::Lost => "lost",
        };
        let deadline = machine.deadline().map_or("-".to_owned(), |at| at.0.to_string());
        let due = machine.next_due().0;
        writeln!(self.text, "= {due} {flags} {state} {deadline} {}", hex(&sent)).unwrap();
        while let Some(event) = self.machine.event() {
            if let Event::Granted { lock, fence, .. } = &event {
                self.held.push((lock.clone(), *fence));
                let first = self.machine.first_fence(lock, *fence);
                self.entered_again += usize::from(first.is_some_and(|first| first != *fence));
            }
            if let Event::Lost { lock, fence, .. } = &event {
                self.held.retain(|held| held != &(lock.clone(), *fence));
            }
            writeln!(self.text, "! {}", line(&event)).unwrap();
        }
        self.frames.feed(&sent);
        self.read();
    }

    /// Let the node read what was sent.
    fn read(&mut self) {
        if self.said == GreetingStage::Nothing && self.frames.magic().expect("magic") {
            self.said = GreetingStage::Magic;
        }
        if self.said == GreetingStage::Magic
            && let Some(hello) = self.frames.take::<Hello>().expect("a greeting")
        {
            self.said = GreetingStage::Hello;
            self.resumes = false;
            self.claimed.clear();
            if let Opening::Resume { held, .. } = hello.opening {
                (self.resumes, self.claimed) = (true, held);
            }
        }
        while matches!(self.said, GreetingStage::Hello | GreetingStage::Greeted)
            && let Some(request) = self.frames.take::<Request>().expect("a request")
        {
            match request {
                Request::Bye | Request::Withdraw(_) => {}
                Request::InUse(..) => self.in_use += 1,
                request => self.asked.push(request),
            }
        }
    }
}

fn number(request: &Request) -> u64 {
    match request {
        Request::Acquire(number, _)
        | Request::Keep(number, _)
        | Request::Release(number, ..)
        | Request::Alive(number)
        | Request::Inspect(number, _)
        | Request::Status(number)
        | Request::Evidence(number) => *number,
        other => panic!("the run does not make {other:?}"),
    }
}

fn lock_report() -> LockReport {
    LockReport {
        lock: "a".to_owned(),
        algorithm: "lamport".to_owned(),
        permits: 1,
        view: Some(1),
        holders: vec![],
        waiters: vec![],
        away: vec![],
        silent: vec![],
    }
}

fn status() -> NodeStatus {
    NodeStatus {
        node: "n".to_owned(),
        group: "g".to_owned(),
        version: "1".to_owned(),
        scope: Scope::User,
        pid: 1,
        up_ms: 1,
        view: None,
        members: vec![],
        away: vec![],
        reclaiming_ms: None,
        sessions: 1,
        held: 0,
        waiting: 0,
        grants: 0,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    })
}

/// An event in one line.
fn line(event: &Event) -> String {
    let why = |refusal: &Refusal| format!("{:?} {}", refusal.code, refusal.text);
    match event {
        Event::Welcome { node, version, scope, session, ttl, resumed } => {
            let session = session.map_or(0, |session| session.0);
            let ttl = ttl.as_millis();
            format!("welcomed {node} {version} {scope:?} {session} {ttl} {resumed}")
        }
        Event::Granted { number, lock, fence } => format!("granted {number} {lock} {fence}"),
        Event::Refused { number, refusal } => format!("refused {number} {}", why(refusal)),
        Event::Unknown { number, refusal } => format!("unknown {number} {}", why(refusal)),
        Event::Released { number, held } => format!("released {number} {held}"),
        Event::Answer { number, answer } => match answer {
            Answer::Lock(report) => format!("answer {number} lock {}", report.lock),
            Answer::Status(status) => format!("answer {number} status {}", status.node),
            _ => format!("answer {number}"),
        },
        Event::Lost { lock, fence, reason } => format!("lost {lock} {fence} {reason}"),
        Event::Stopping { within } => format!("stopping {}", within.as_millis()),
        Event::Closed(refusal) => format!("closed {}", why(refusal)),
    }
}

/// The machine still does what it did when the file was written, and so does every client that
/// repeats it. `UPDATE=1` writes the file again.
#[test]
fn the_machine_does_what_other_languages_repeat() {
    let mut text = String::new();
    for seed in 1..=40 {
        let mut run = Run::new(seed, false);
        for _ in 0..50 {
            run.act();
        }
        text += &run.text;
    }
    let (mut entered_again, mut in_use) = (0, 0);
    for seed in 41..=52 {
        let mut run = Run::new(seed, true);
        for _ in 0..120 {
            run.act();
        }
        entered_again += run.entered_again;
        in_use += run.in_use;
        text += &run.text;
    }
    assert!(entered_again >= 30 && in_use >= 5, "{entered_again} entries, {in_use} in use");
    for what in [
        "welcomed n 3 User 5 3000 true",
        "unknown ",
        "granted ",
        "released ",
        " false",
        "closed ",
        "stopping ",
        "lost ",
        "nothing was heard of the node",
        "the client uses another node now",
        "no node answered within",
        "not free in time",
        "is not a compatible node",
        "bye",
        "unsure",
    ] {
        assert!(text.contains(what), "no run has shown {what:?}");
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/machine.txt");
    if std::env::var_os("UPDATE").is_some() {
        fs::create_dir_all(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden")).unwrap();
        fs::write(path, &text).unwrap();
    }
    let golden = fs::read_to_string(path).unwrap();
    for (number, (ours, theirs)) in text.lines().zip(golden.lines()).enumerate() {
        assert_eq!(ours, theirs, "line {} of machine.txt", number + 1);
    }
    assert_eq!(text.len(), golden.len());
}
