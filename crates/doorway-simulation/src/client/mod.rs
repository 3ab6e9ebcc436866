//! Programs that use locks, each over a session or over HTTP.

mod http;
mod program;
mod session;

use doorway_protocol::{Fence, Name};

use crate::clock::Clock;
use crate::context::{Context, log};
use crate::network::{End, Wire};
use crate::settings::{ClientSetting, LifeSetting, Settings};
use http::Http;
use session::Session;

pub(crate) use http::LENGTH;

/// Something that happens to the process of a client.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ClientEvent {
    /// Something is due: a heartbeat, or the end of a lease.
    Tick,
    /// An attempt to connect has come to its end.
    Dialled,
    /// The program goes on.
    Work,
    /// A lease is to be renewed.
    Renew,
    /// The time for a call over HTTP is over.
    TimedOut(Wire),
    /// The program writes to the store that its lock protects.
    Write(HeldGrant),
}

/// A client.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) id: usize,
    pub(crate) setting: ClientSetting,
    /// The number of its machine.
    pub(crate) machine: usize,
    /// The clock of its machine.
    pub(crate) clock: Clock,
    pub(crate) process: Option<Process>,
    pub(crate) starts: u64,
    pub(crate) paused: u64,
    /// Whether it has entered, with a request that was made after the faults ended.
    pub(crate) entered: bool,
}

/// The process of a client.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    /// What the program believes that it holds.
    pub(crate) held: Vec<HeldGrant>,
    /// What the program knows that it has lost.
    lost: Vec<HeldGrant>,
    /// A step of the program is planned.
    working: bool,
    way: Way,
}

/// How a program talks to its node.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there are few clients")]
enum Way {
    Session(Session),
    Http(Http),
}

/// A grant that the program has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeldGrant {
    pub(crate) lock: usize,
    pub(crate) fence: Fence,
    /// The fence by which the node knows the grant. It is another one if the program has kept the
    /// lock.
    pub(crate) first: Fence,
    pub(crate) shared: bool,
    /// Whether it is held until it is released or broken.
    pub(crate) endless: bool,
}

/// What the rest of the world has to know about a step of a client.
#[derive(Debug)]
pub(crate) enum Report {
    /// The program holds a lock from now on.
    Entered(HeldGrant),
    /// The program does not hold a lock any more, and knows it: it has given it up or lost it.
    Left { lock: usize, fence: Fence, lost: bool },
    /// The program writes, and believes or does not believe that it holds the lock.
    Wrote { held: HeldGrant, believes: bool },
    /// A node has welcomed the client, over a connection that was made at this time.
    Welcomed { connected: u64 },
}

/// What the program is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Ask for locks, hold them and release them, while faults happen.
    Compete,
    /// Faults have ended: go on, and wait for locks for as long as it takes.
    Healed,
    /// Make no new request, and wait for the answers to all others.
    Finish,
    /// Leave everything.
    Leave,
}

impl Client {
    pub(crate) fn new(id: usize, setting: ClientSetting, machine: usize, clock: Clock) -> Self {
        Self { id, setting, machine, clock, process: None, starts: 0, paused: 0, entered: false }
    }

    pub(crate) fn end(&self) -> End {
        End::Client { client: self.id, start: self.starts }
    }

    pub(crate) fn start(&mut self, context: &mut Context, clock: Clock) {
        self.starts += 1;
        self.clock = clock;
        let pid = (self.id as u32 + 1) * 100_000 + self.starts as u32;
        let way = if self.setting.life == LifeSetting::Http {
            Way::Http(Http::default())
        } else {
            Way::Session(Session::new(context, &self.setting, self.id, pid, clock))
        };
        let (held, lost) = (Vec::new(), Vec::new());
        self.process = Some(Process { pid, held, lost, working: false, way });
        log!(context, "c{} starts", self.id);
        self.work_after(context, self.setting.thinks);
        self.settle(context, &mut Vec::new());
    }

    /// The process is gone. Returns what it believed that it held.
    pub(crate) fn kill(&mut self) -> Vec<HeldGrant> {
        self.paused = 0;
        self.process.take().map_or_else(Vec::new, |process| process.held)
    }

    /// The node to which the client connects next.
    pub(crate) fn target(&self) -> usize {
        match self.process.as_ref().map(|process| &process.way) {
            Some(Way::Session(session)) => session.target(),
            _ => self.setting.nodes[0],
        }
    }

    fn later(&self, context: &mut Context, at: u64, what: ClientEvent) {
        context.client(at, self.id, self.starts, what);
    }

    fn work_after(&mut self, context: &mut Context, mean: u64) {
        let Some(process) = &mut self.process else { return };
        if !std::mem::replace(&mut process.working, true) {
            let at = context.now + context.random.exponential(mean);
            self.later(context, at, ClientEvent::Work);
        }
    }

    /// Whether the program has reason to believe that it holds a lock.
    pub(crate) fn believes(&self, now: u64, lock: &Name, held: HeldGrant) -> bool {
        let now = self.clock.read(now);
        self.process.as_ref().is_some_and(|process| match &process.way {
            Way::Session(session) => session.believes(lock, held.fence, now),
            Way::Http(http) => http.believes(held, now),
        })
    }

    /// Whether the program has this grant, or is about to release it.
    pub(crate) fn knows(&self, lock: &Name, fence: Fence, settings: &Settings) -> bool {
        let held = match self.process.as_ref().map(|process| &process.way) {
            Some(Way::Http(http)) => http.known(),
            _ => None,
        };
        held.is_some_and(|it| it.fence == fence && settings.locks[it.lock].name == *lock)
    }

    /// Whether the program has a session over a connection, as far as it knows.
    pub(crate) fn is_connected(&self) -> bool {
        let way = self.process.as_ref().map(|process| &process.way);
        matches!(way, Some(Way::Session(session)) if session.wire.is_some())
    }

    /// Whether the program holds nothing, and has an answer to every request.
    pub(crate) fn is_idle(&self) -> bool {
        self.process.as_ref().is_some_and(|process| {
            process.held.is_empty()
                && match &process.way {
                    Way::Session(session) => session.unanswered().is_empty(),
                    Way::Http(http) => http.is_idle(),
                }
        })
    }

    /// The requests that have no answer, in words.
    pub(crate) fn unanswered(&self) -> String {
        match self.process.as_ref().map(|process| &process.way) {
            Some(Way::Session(session)) => format!("requests {:?}", session.unanswered()),
            Some(Way::Http(http)) => format!("call {:?}", http.job()),
            None => "not running".to_owned(),
        }
    }

    pub(crate) fn happen(
        &mut self,
        context: &mut Context,
        what: ClientEvent,
        plan: Plan,
        reports: &mut Vec<Report>,
    ) {
        let Some(process) = &mut self.process else { return };
        let over_http = matches!(process.way, Way::Http(_));
        match what {
            ClientEvent::Work => {
                process.working = false;
                if over_http {
                    self.call_next(context, plan, reports);
                } else {
                    self.work(context, plan, reports);
                }
            }
            ClientEvent::Write(held) => self.write(context, held, reports),
            ClientEvent::Renew if over_http => self.renew_by_call(context),
            ClientEvent::Renew => self.renew(context),
            ClientEvent::Tick if over_http => self.expire(context, reports),
            ClientEvent::Tick => self.tick(context),
            ClientEvent::TimedOut(wire) => self.hang_up(context, wire, reports),
            // The world knows whether a node can be reached, and handles that.
            ClientEvent::Dialled => {}
        }
        self.settle(context, reports);
    }

    /// The connection is made, or there is no node.
    pub(crate) fn dialled(
        &mut self,
        context: &mut Context,
        wire: Option<Wire>,
        reports: &mut Vec<Report>,
    ) {
        match self.process.as_ref().map(|process| &process.way) {
            Some(Way::Session(_)) => self.connected(context, wire),
            Some(Way::Http(_)) => self.call(context, wire),
            None => {}
        }
        self.settle(context, reports);
    }

    pub(crate) fn receive(
        &mut self,
        context: &mut Context,
        wire: Wire,
        bytes: &[u8],
        reports: &mut Vec<Report>,
    ) {
        match self.process.as_ref().map(|process| &process.way) {
            Some(Way::Session(_)) => self.hear(context, wire, bytes),
            Some(Way::Http(_)) => self.answered(context, wire, bytes.len(), reports),
            None => {}
        }
        self.settle(context, reports);
    }

    /// The connection has ended.
    pub(crate) fn hang_up(&mut self, context: &mut Context, wire: Wire, reports: &mut Vec<Report>) {
        match self.process.as_ref().map(|process| &process.way) {
            Some(Way::Session(session)) if session.wire == Some(wire) => self.disconnect(context),
            Some(Way::Http(http)) if http.wire == Some(wire) => self.unanswered_call(context),
            _ => {}
        }
        self.settle(context, reports);
    }

    fn settle(&mut self, context: &mut Context, reports: &mut Vec<Report>) {
        if let Some(Process { way: Way::Session(_), .. }) = &self.process {
            self.settle_session(context, reports);
        }
    }

    /// The program holds a lock from now on. It will write sooner or later.
    fn enter(&mut self, context: &mut Context, held: HeldGrant, reports: &mut Vec<Report>) {
        let mean = if context.random.percent(20) {
            self.setting.ttl.as_nanos().min(10_000_000_000) as u64
        } else {
            self.setting.holds
        };
        let Some(process) = &mut self.process else { return };
        process.held.push(held);
        context.counts.entries += 1;
        reports.push(Report::Entered(held));
        let at = context.now + context.random.exponential(mean);
        self.later(context, at, ClientEvent::Write(held));
    }

    /// The program learns that it has lost a lock.
    fn lose(
        &mut self,
        context: &mut Context,
        lock: usize,
        fence: Fence,
        reports: &mut Vec<Report>,
    ) {
        let Some(process) = &mut self.process else { return };
        let Some(at) = process.held.iter().position(|it| (it.lock, it.fence) == (lock, fence))
        else {
            return;
        };
        let held = process.held.remove(at);
        process.lost.push(held);
        context.counts.lost += 1;
        reports.push(Report::Left { lock, fence, lost: true });
    }

    /// The program writes to the store. A careless program does so although it was told that its
    /// lock is lost, but none does after it has released the lock.
    fn write(&mut self, context: &mut Context, held: HeldGrant, reports: &mut Vec<Report>) {
        let name = &context.settings.locks[held.lock].name;
        let believes = self.believes(context.now, name, held);
        let Some(process) = &mut self.process else { return };
        if process.held.contains(&held) || process.lost.contains(&held) {
            reports.push(Report::Wrote { held, believes });
        }
    }
}
