//! A program that uses locks: the shipped session machine, its driver, and what the program does.

use std::collections::BTreeMap;
use std::rc::Rc;

use doorway_client::machine::{Event as SessionEvent, SessionMachine, Setup, State};
use doorway_protocol::{Ask, Backoff, ClientInfo, Fence, Mode, Name, Wait};

use crate::clock::{Clock, MS};
use crate::context::{Context, log};
use crate::network::{End, Wire};
use crate::settings::{ClientSetting, Kind, LifeSetting};

/// Something that happens to the process of a client.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ClientEvent {
    /// Something is due for the machine.
    Tick,
    /// An attempt to connect has come to its end.
    Dialled,
    /// The program goes on.
    Work,
    /// A lease is to be renewed.
    Renew,
}

/// A client.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) id: usize,
    pub(crate) setting: ClientSetting,
    /// The number of its machine.
    pub(crate) machine: usize,
    /// The clock of its own machine; a local client uses that of its node.
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
    machine: SessionMachine,
    pub(crate) wire: Option<Wire>,
    dialling: bool,
    backoff: Backoff,
    /// When the next tick is planned.
    tick: u64,
    /// The requests that have no answer, by number.
    asked: BTreeMap<u64, Asked>,
    /// What the program believes to hold.
    pub(crate) held: Vec<Held>,
    /// A step of the program is planned.
    working: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Asked {
    /// A lock, by its number; made after the faults ended or not.
    Acquire {
        lock: usize,
        healed: bool,
    },
    Release {
        lock: usize,
        fence: Fence,
    },
    Renew,
}

/// A grant that the program has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub(crate) lock: usize,
    pub(crate) fence: Fence,
    pub(crate) shared: bool,
}

/// What the rest of the world has to know about a step of a client.
#[derive(Debug)]
pub(crate) enum Report {
    Entered(Held),
    Left { lock: usize, fence: Fence },
}

/// What the program is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Go on for ever.
    Compete,
    /// Faults have ended: go on, and wait for locks for as long as it takes.
    Healed,
    /// Leave everything.
    Leave,
}

impl Client {
    pub(crate) fn new(id: usize, setting: ClientSetting, machine: usize, drift: i64) -> Self {
        Self {
            id,
            setting,
            machine,
            clock: Clock::new(drift),
            process: None,
            starts: 0,
            paused: 0,
            entered: false,
        }
    }

    pub(crate) fn end(&self) -> End {
        End::Client { client: self.id, start: self.starts }
    }

    pub(crate) fn start(&mut self, context: &mut Context, clock: Clock) {
        self.starts += 1;
        self.clock = clock;
        let pid = (self.id as u32 + 1) * 100_000 + self.starts as u32;
        let now = clock.read(context.now);
        let setting = &self.setting;
        let setup = Setup {
            who: ClientInfo { label: format!("c{}", self.id), host: String::new(), pid },
            token: None,
            session: Some((setting.ttl, setting.life.life(pid))),
            patience: setting.patience,
            network: !setting.local,
            nodes: 1,
        };
        let backoff = Backoff::with_seed(
            std::time::Duration::from_millis(5),
            std::time::Duration::from_millis(500),
            context.random.next(),
        );
        self.process = Some(Process {
            pid,
            machine: SessionMachine::new(setup, now),
            wire: None,
            dialling: false,
            backoff,
            tick: u64::MAX,
            asked: BTreeMap::new(),
            held: Vec::new(),
            working: false,
        });
        log!(context, "c{} starts", self.id);
        self.work_after(context, self.setting.thinks);
        self.settle(context, &mut Vec::new());
    }

    /// The process is gone. What it believed to hold.
    pub(crate) fn kill(&mut self, context: &mut Context) -> Vec<Held> {
        context.close_all(self.end());
        self.paused = 0;
        self.process.take().map_or_else(Vec::new, |process| process.held)
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
    pub(crate) fn believes(&self, now: u64, lock: &Name, fence: Fence) -> bool {
        let now = self.clock.read(now);
        let process = self.process.as_ref();
        process.is_some_and(|it| it.machine.grant_state(lock, fence, now) != State::Lost)
    }

    pub(crate) fn happen(
        &mut self,
        context: &mut Context,
        what: ClientEvent,
        plan: Plan,
        reports: &mut Vec<Report>,
    ) {
        let now = self.clock.read(context.now);
        let Some(process) = &mut self.process else { return };
        match what {
            ClientEvent::Tick => {
                process.tick = u64::MAX;
                process.machine.tick(now);
            }
            ClientEvent::Dialled => process.dialling = false,
            ClientEvent::Work => {
                process.working = false;
                self.work(context, plan, reports);
            }
            ClientEvent::Renew => self.renew(context),
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
        let now = self.clock.read(context.now);
        let Some(process) = &mut self.process else { return };
        process.dialling = false;
        if let Some(wire) = wire {
            process.wire = Some(wire);
            process.machine.connected(now);
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
        let now = self.clock.read(context.now);
        let Some(process) = &mut self.process else { return };
        if process.wire == Some(wire) {
            process.machine.receive(now, bytes);
            self.settle(context, reports);
        }
    }

    /// The connection has ended.
    pub(crate) fn hang_up(&mut self, context: &mut Context, wire: Wire, reports: &mut Vec<Report>) {
        let Some(process) = &mut self.process else { return };
        if process.wire == Some(wire) {
            self.disconnect(context);
            self.settle(context, reports);
        }
    }

    fn disconnect(&mut self, context: &mut Context) {
        let now = self.clock.read(context.now);
        let Some(process) = &mut self.process else { return };
        if let Some(wire) = process.wire.take() {
            context.close(wire, 0);
            process.machine.disconnected(now);
        }
    }

    /// Send what is to be sent, handle events, and plan what is due.
    fn settle(&mut self, context: &mut Context, reports: &mut Vec<Report>) {
        loop {
            let Some(process) = &mut self.process else { return };
            if let Some(wire) = process.wire {
                let bytes = std::mem::take(process.machine.outgoing());
                context.send(wire, 0, bytes);
            }
            let mut events = Vec::new();
            while let Some(event) = process.machine.event() {
                events.push(event);
            }
            let closes = process.wire.is_some() && process.machine.must_close();
            if events.is_empty() && !closes {
                break;
            }
            for event in events {
                self.event(context, event, reports);
            }
            if closes {
                self.disconnect(context);
            }
        }
        let Some(process) = &mut self.process else { return };
        if process.machine.is_talking() {
            process.backoff.reset();
        }
        let due = self.clock.when(process.machine.next_due());
        let (tick, dial) = (process.tick, process.machine.wants_connection() && !process.dialling);
        if due < tick {
            process.tick = due.max(context.now);
        }
        let pause = dial.then(|| {
            process.dialling = true;
            process.backoff.next_delay().as_nanos() as u64
        });
        if due < tick {
            self.later(context, due, ClientEvent::Tick);
        }
        if let Some(pause) = pause {
            self.later(context, context.now + pause, ClientEvent::Dialled);
        }
    }

    fn event(&mut self, context: &mut Context, event: SessionEvent, reports: &mut Vec<Report>) {
        log!(context, "c{} {event:?}", self.id);
        let settings = Rc::clone(&context.settings);
        let (holds, thinks) = (self.setting.holds, self.setting.thinks);
        let Some(process) = &mut self.process else { return };
        let (number, answered) = match &event {
            SessionEvent::Granted { number, .. }
            | SessionEvent::Refused { number, .. }
            | SessionEvent::Unknown { number, .. }
            | SessionEvent::Released { number, .. }
            | SessionEvent::Answer { number, .. } => (*number, process.asked.remove(number)),
            SessionEvent::Lost { lock, fence, .. } => {
                let at = settings.locks.iter().position(|it| it.name == *lock).unwrap_or(0);
                process.held.retain(|held| (held.lock, held.fence) != (at, *fence));
                context.counts.lost += 1;
                reports.push(Report::Left { lock: at, fence: *fence });
                return self.work_after(context, thinks);
            }
            SessionEvent::Welcome { .. }
            | SessionEvent::Closed(_)
            | SessionEvent::Stopping { .. } => {
                return;
            }
        };
        let Some(asked) = answered else {
            return context.violate(format!("c{}: an answer to no request: {event:?}", self.id));
        };
        match (asked, event) {
            (Asked::Acquire { lock, healed }, SessionEvent::Granted { lock: name, fence, .. }) => {
                if settings.locks[lock].name != name {
                    context.violate(format!("c{}: request {number} got {name}", self.id));
                }
                let shared = process.machine.held().any(|claim| {
                    claim.lock == name && claim.fence == fence && claim.mode == Mode::Shared
                });
                let held = Held { lock, fence, shared };
                process.held.push(held);
                self.entered |= healed;
                context.counts.entries += 1;
                reports.push(Report::Entered(held));
                if self.setting.life == LifeSetting::Lease {
                    self.later(context, context.now, ClientEvent::Renew);
                }
                self.work_after(context, holds);
            }
            (Asked::Acquire { .. }, SessionEvent::Refused { .. }) => {
                context.counts.refused += 1;
                self.work_after(context, thinks);
            }
            (
                Asked::Release { .. } | Asked::Renew,
                SessionEvent::Refused { .. } | SessionEvent::Unknown { .. },
            )
            | (Asked::Renew, SessionEvent::Answer { .. })
            | (Asked::Release { .. }, SessionEvent::Released { .. }) => {}
            (asked, event) => {
                context.violate(format!("c{}: {event:?} answers {asked:?}", self.id));
            }
        }
    }

    /// The next step of the program.
    #[expect(clippy::too_many_lines, reason = "one arm for each case")]
    fn work(&mut self, context: &mut Context, plan: Plan, reports: &mut Vec<Report>) {
        let now = self.clock.read(context.now);
        let settings = Rc::clone(&context.settings);
        let (thinks, holds) = (self.setting.thinks, self.setting.holds);
        let Some(process) = &mut self.process else { return };
        let waiting: Vec<u64> = process
            .asked
            .iter()
            .filter(|(_, asked)| matches!(asked, Asked::Acquire { .. }))
            .map(|(number, _)| *number)
            .collect();
        if plan == Plan::Leave {
            for held in std::mem::take(&mut process.held) {
                reports.push(Report::Left { lock: held.lock, fence: held.fence });
            }
            log!(context, "c{} says bye", self.id);
            process.asked.clear();
            let held: Vec<_> = process.machine.held().collect();
            for claim in held {
                process.machine.release(now, &claim.lock, claim.fence);
            }
            process.machine.bye();
            return;
        }
        if let Some(number) = waiting.first()
            && plan == Plan::Compete
            && context.random.percent(15)
        {
            log!(context, "c{} withdraws {number}", self.id);
            process.asked.remove(number);
            process.machine.withdraw(*number);
            return self.work_after(context, thinks);
        }
        let more = waiting.is_empty() && context.random.percent(20);
        if !process.held.is_empty() && !more {
            let held = process.held.remove(0);
            let name = &settings.locks[held.lock].name;
            reports.push(Report::Left { lock: held.lock, fence: held.fence });
            let number = process.machine.release(now, name, held.fence);
            log!(context, "c{} releases {name} {:?} as {number}", self.id, held.fence);
            let asked = Asked::Release { lock: held.lock, fence: held.fence };
            process.asked.insert(number, asked);
            return self.work_after(context, if process_is_empty(self) { thinks } else { holds });
        }
        if !waiting.is_empty() {
            // Look again later: the request may be withdrawn then.
            return self.work_after(context, 20 * thinks + holds);
        }
        let lock = context.random.below(settings.locks.len() as u64) as usize;
        let kind = settings.locks[lock].kind;
        let alone = settings.nodes == 1;
        let holding = !process.held.is_empty();
        if process.held.iter().any(|held| held.lock == lock) {
            return self.work_after(context, holds); // A program never waits for itself.
        }
        let wanted = match kind {
            Kind::Shared if context.random.percent(60) => Mode::Shared,
            _ => Mode::Exclusive,
        };
        let permits = match kind {
            Kind::Permits(permits) if alone => Some(permits),
            _ => None,
        };
        // A program that holds something does not wait for ever: two such could wait for each
        // other.
        let wait = match context.random.below(10) {
            0 if plan == Plan::Compete => Wait::No,
            1..5 if plan == Plan::Compete => Wait::Ms(context.random.magnitude(1, 5000)),
            _ if holding => Wait::Ms(context.random.magnitude(1, 1000)),
            _ => Wait::Forever,
        };
        let name = settings.locks[lock].name.clone();
        let ask = Ask { lock: name, mode: wanted, permits, wait };
        let number = process.machine.acquire(now, ask.clone());
        log!(context, "c{} asks {number}: {ask:?}", self.id);
        let healed = plan == Plan::Healed;
        process.asked.insert(number, Asked::Acquire { lock, healed });
        self.work_after(context, if holding { holds } else { 20 * thinks + holds });
    }

    /// Renew the lease, as its owner does.
    fn renew(&mut self, context: &mut Context) {
        let now = self.clock.read(context.now);
        let settings = Rc::clone(&context.settings);
        let Some(process) = &mut self.process else { return };
        let Some(held) = process.held.first().copied() else { return };
        let name = &settings.locks[held.lock].name;
        let number = process.machine.renew(now, name, held.fence);
        process.asked.insert(number, Asked::Renew);
        let pause = self.setting.ttl.as_nanos() as u64 / 4;
        self.later(context, context.now + pause.max(50 * MS), ClientEvent::Renew);
    }

    /// Requests for locks that still have no answer.
    pub(crate) fn unanswered(&self) -> Vec<u64> {
        self.process.iter().flat_map(|process| process.asked.keys().copied()).collect()
    }
}

fn process_is_empty(client: &Client) -> bool {
    client.process.as_ref().is_none_or(|process| process.held.is_empty())
}
