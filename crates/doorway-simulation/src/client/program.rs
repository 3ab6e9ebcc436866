//! What a program does with its session: it asks, holds, releases, withdraws and leaves.

use std::rc::Rc;

use doorway_client::machine::Event as SessionEvent;
use doorway_protocol::{Ask, Fence, Mode, Name, Wait};

use super::{Client, ClientEvent, HeldGrant, Plan, Process, Report, Way};
use crate::clock::{MS, SECOND};
use crate::context::{Context, log};
use crate::settings::{Kind, LifeSetting, Settings};
use crate::story::Lane;

/// The longest mean time after which a program looks again at a request that waits.
const PATIENCE: u64 = 4 * SECOND;

/// A request that has no answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Call {
    /// A lock, by its number; made after the faults ended or not.
    Acquire {
        lock: usize,
        healed: bool,
    },
    Release {
        lock: usize,
    },
    Renew {
        lock: usize,
    },
    Break,
}

impl Call {
    /// The number of the lock, unless the program breaks one.
    fn lock(self) -> Option<usize> {
        match self {
            Self::Acquire { lock, .. } | Self::Release { lock } | Self::Renew { lock } => {
                Some(lock)
            }
            Self::Break => None,
        }
    }
}

/// How a program asks for a lock.
pub(super) struct LockChoice {
    pub(super) lock: usize,
    pub(super) name: Name,
    pub(super) mode: Mode,
    pub(super) permits: Option<u32>,
}

/// What a program asks for next. If it has a favourite lock, it asks for another one rarely.
pub(super) fn wish(
    context: &mut Context,
    settings: &Settings,
    favourite: Option<usize>,
) -> LockChoice {
    let any = context.random.below(settings.locks.len() as u64) as usize;
    let lock = favourite.filter(|_| context.random.percent(80)).unwrap_or(any);
    let kind = settings.locks[lock].kind;
    let mode = match kind {
        Kind::Shared if context.random.percent(60) => Mode::Shared,
        _ => Mode::Exclusive,
    };
    let permits = match kind {
        Kind::Permits(permits) if settings.alone() => Some(permits),
        _ => None,
    };
    LockChoice { lock, name: settings.locks[lock].name.clone(), mode, permits }
}

impl Client {
    /// The machine reports something.
    pub(super) fn event(
        &mut self,
        context: &mut Context,
        event: SessionEvent,
        reports: &mut Vec<Report>,
    ) {
        log!(context, "c{} {event:?}", self.id);
        let settings = Rc::clone(&context.settings);
        let (holds, thinks) = (self.setting.holds, self.setting.thinks);
        let id = self.id;
        let Some(session) = self.session() else { return };
        let asked_lock = |number: &u64| session.asked.get(number).and_then(|it| it.lock());
        let about = match &event {
            SessionEvent::Refused { number, .. } | SessionEvent::Released { number, .. } => {
                asked_lock(number).map(|lock| &settings.locks[lock].name)
            }
            SessionEvent::Granted { lock, .. } | SessionEvent::Lost { lock, .. } => Some(lock),
            _ => None,
        };
        let label = || format!("{event:?}").split([' ', '(']).next().unwrap_or("").to_lowercase();
        if !matches!(event, SessionEvent::Answer { .. }) {
            context.arrow(Lane::Client(id), label, about);
        }
        let (number, answered) = match &event {
            SessionEvent::Granted { number, .. }
            | SessionEvent::Refused { number, .. }
            | SessionEvent::Unknown { number, .. }
            | SessionEvent::Released { number, .. }
            | SessionEvent::Answer { number, .. } => (*number, session.asked.remove(number)),
            SessionEvent::Lost { lock, fence, .. } => {
                let at = settings.locks.iter().position(|it| it.name == *lock).unwrap_or(0);
                self.lose(context, at, *fence, reports);
                return self.work_after(context, thinks);
            }
            SessionEvent::Welcome { .. } => {
                return reports.push(Report::Welcomed { connected: session.connected });
            }
            SessionEvent::Closed(_) | SessionEvent::Stopping { .. } => return,
        };
        let Some(asked) = answered else {
            return context.violate(format!("c{}: an answer to no request: {event:?}", self.id));
        };
        match (asked, event) {
            (Call::Acquire { lock, healed }, SessionEvent::Granted { lock: name, fence, .. }) => {
                let shared = session.machine.held().any(|claim| {
                    claim.lock == name && claim.fence == fence && claim.mode == Mode::Shared
                });
                let first = session.machine.first_fence(&name, fence).unwrap_or(fence);
                if first != fence {
                    context.counts.kept += 1;
                }
                if settings.locks[lock].name != name {
                    context.violate(format!("c{}: request {number} got {name}", self.id));
                }
                self.entered |= healed;
                let held = HeldGrant { lock, fence, first, shared, endless: false };
                self.enter(context, held, reports);
                if self.setting.life == LifeSetting::Lease {
                    self.later(context, context.now, ClientEvent::Renew);
                }
                self.work_after(context, holds);
            }
            (Call::Acquire { .. }, SessionEvent::Refused { .. }) => {
                context.counts.refused += 1;
                self.work_after(context, thinks);
            }
            (
                Call::Release { .. } | Call::Renew { .. } | Call::Break,
                SessionEvent::Refused { .. } | SessionEvent::Unknown { .. },
            )
            | (Call::Renew { .. } | Call::Break, SessionEvent::Answer { .. })
            | (Call::Release { .. }, SessionEvent::Released { .. }) => {}
            (asked, event) => {
                context.violate(format!("c{}: {event:?} answers {asked:?}", self.id));
            }
        }
    }

    /// The next step of the program.
    pub(super) fn work(&mut self, context: &mut Context, plan: Plan, reports: &mut Vec<Report>) {
        let now = self.clock.read(context.now);
        let (thinks, holds) = (self.setting.thinks, self.setting.holds);
        if plan == Plan::Leave {
            return self.leave(context, reports);
        }
        let Some(Process { way: Way::Session(session), held, .. }) = &mut self.process else {
            return;
        };
        let mut waiting =
            session.asked.iter().filter(|(_, asked)| matches!(asked, Call::Acquire { .. }));
        let first = waiting.next().map(|(number, _)| *number);
        if let Some(number) = first
            && plan == Plan::Compete
            && context.random.percent(15)
        {
            log!(context, "c{} withdraws {number}", self.id);
            session.asked.remove(&number);
            session.machine.withdraw(number);
            return self.work_after(context, thinks);
        }
        let more = plan != Plan::Finish && first.is_none() && context.random.percent(20);
        if !held.is_empty() && !more {
            let given = held.remove(0);
            let name = &context.settings.locks[given.lock].name;
            reports.push(Report::Left { lock: given.lock, fence: given.fence, lost: false });
            let number = session.machine.release(now, name, given.fence);
            log!(context, "c{} releases {name} {:?} as {number}", self.id, given.fence);
            session.asked.insert(number, Call::Release { lock: given.lock });
            let next = if held.is_empty() { thinks } else { holds };
            return self.work_after(context, next);
        }
        if first.is_some() {
            // Look again later: the request may be withdrawn then.
            return self.work_after(context, (20 * thinks).min(PATIENCE) + holds);
        }
        if plan != Plan::Finish {
            self.ask(context, plan);
        }
    }

    /// Ask for a lock.
    fn ask(&mut self, context: &mut Context, plan: Plan) {
        let now = self.clock.read(context.now);
        let settings = Rc::clone(&context.settings);
        let (thinks, holds) = (self.setting.thinks, self.setting.holds);
        let favourite = self.setting.favourite;
        let Some(Process { way: Way::Session(session), held, .. }) = &mut self.process else {
            return;
        };
        let LockChoice { lock, name, mode, permits } = wish(context, &settings, favourite);
        let holding = !held.is_empty();
        if held.iter().any(|held| held.lock == lock) {
            return self.work_after(context, holds); // A program never waits for itself.
        }
        // A program that holds something does not wait forever: two such could wait for each
        // other.
        let wait = match context.random.below(10) {
            0 if plan == Plan::Compete => Wait::No,
            1..5 if plan == Plan::Compete => Wait::Ms(context.random.magnitude(1, 5000)),
            _ if holding => Wait::Ms(context.random.magnitude(1, 1000)),
            _ => Wait::Forever,
        };
        let ask = Ask { lock: name, mode, permits, wait };
        let number = session.machine.acquire(now, ask.clone());
        log!(context, "c{} asks {number}: {ask:?}", self.id);
        session.asked.insert(number, Call::Acquire { lock, healed: plan == Plan::Healed });
        self.work_after(context, if holding { holds } else { (20 * thinks).min(PATIENCE) + holds });
    }

    /// Release everything, and say goodbye.
    fn leave(&mut self, context: &mut Context, reports: &mut Vec<Report>) {
        let now = self.clock.read(context.now);
        log!(context, "c{} says bye", self.id);
        let Some(Process { way: Way::Session(session), held, .. }) = &mut self.process else {
            return;
        };
        for held in std::mem::take(held) {
            reports.push(Report::Left { lock: held.lock, fence: held.fence, lost: false });
        }
        session.asked.clear();
        let claims: Vec<_> = session.machine.held().collect();
        for claim in claims {
            session.machine.release(now, &claim.lock, claim.fence);
        }
        session.machine.bye();
    }

    /// Renew the lease, as its owner does.
    pub(super) fn renew(&mut self, context: &mut Context) {
        let now = self.clock.read(context.now);
        let settings = Rc::clone(&context.settings);
        let Some(Process { way: Way::Session(session), held, .. }) = &mut self.process else {
            return;
        };
        let Some(held) = held.first() else { return };
        let number = session.machine.renew(now, &settings.locks[held.lock].name, held.fence);
        session.asked.insert(number, Call::Renew { lock: held.lock });
        let pause = self.setting.ttl.as_nanos() as u64 / 4;
        self.later(context, context.now + pause.max(50 * MS), ClientEvent::Renew);
    }

    /// Take a lock away from another client.
    pub(crate) fn break_lock(
        &mut self,
        context: &mut Context,
        lock: &Name,
        fence: Fence,
        reports: &mut Vec<Report>,
    ) {
        let now = self.clock.read(context.now);
        let id = self.id;
        let Some(session) = self.session() else { return };
        let number = session.machine.break_lock(now, lock, fence);
        log!(context, "c{id} breaks {lock} {fence:?} as {number}");
        session.asked.insert(number, Call::Break);
        self.settle(context, reports);
    }
}
