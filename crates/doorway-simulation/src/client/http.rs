//! A program that uses locks over HTTP: one call at a time, each over a connection of its own.
//!
//! It repeats a call that got no answer. A request with a key is repeated with the same key, or
//! withdrawn. One without a key is forgotten, because nothing could find it again.

use std::rc::Rc;
use std::time::Duration;

use doorway_protocol::{Ask, Code, Mode, Moment, Secret, Wait};
use doorway_sessions::{Answer, Call, LeaseAnswer, LeaseAsk, LeaseKey, UNLIMITED};

use super::program::{LockChoice, wish};
use super::{Client, ClientEvent, HeldGrant, Plan, Process, Report, Way};
use crate::clock::MS;
use crate::context::{Context, Post, log};
use crate::network::Wire;
use crate::story::Lane;

/// How many bytes a call and an answer have on the network.
pub(crate) const LENGTH: usize = 8;

/// What a program has to do with its calls.
#[derive(Debug, Default)]
pub(super) struct Http {
    job: Job,
    pub(super) wire: Option<Wire>,
    dialling: bool,
    /// When the last call was sent.
    sent: Moment,
    /// How many bytes of the answer have come.
    heard: usize,
    lease: Option<Lease>,
    /// How many requests the program has made.
    requests: u64,
}

/// What the next call is about, until it is answered.
#[derive(Clone, Debug, Default)]
pub(super) enum Job {
    #[default]
    Nothing,
    Acquire(Request),
    Renew,
    Release(HeldGrant),
    Withdraw(Request),
}

/// The longest time that a call waits for its lock, in nanoseconds.
const LONGEST: u64 = 30_000 * MS;

/// How long a program holds a lock without end on average while faults happen.
const LONG: u64 = 8000 * MS;

/// A request for a lock.
#[derive(Clone, Debug)]
pub(super) struct Request {
    lock: usize,
    ask: Ask,
    key: Option<String>,
    /// How long a call waits for the lock, in nanoseconds.
    wait: u64,
    healed: bool,
    /// [`UNLIMITED`] if the lock is to be held until it is released or broken.
    ttl: Duration,
}

/// A lease that the program has.
#[derive(Clone, Debug)]
struct Lease {
    held: HeldGrant,
    ttl: Duration,
    /// When the last call was sent that proved it.
    proven: Moment,
    /// Whether the program has entered.
    entered: bool,
    healed: bool,
}

impl Lease {
    /// When the program must not rely on the lease any more. The node counts the TTL from a later
    /// moment, and clocks differ by less than a twentieth.
    fn lost_at(&self) -> Moment {
        if self.held.endless {
            return Moment::NEVER;
        }
        self.proven.after(self.ttl.saturating_sub(self.ttl / 20))
    }
}

impl Http {
    pub(super) fn believes(&self, held: HeldGrant, now: Moment) -> bool {
        let lease = self.lease.as_ref().filter(|lease| lease.held == held);
        lease.is_some_and(|lease| lease.entered && now < lease.lost_at())
    }

    pub(super) fn is_idle(&self) -> bool {
        matches!(self.job, Job::Nothing) && self.lease.is_none()
    }

    pub(super) fn job(&self) -> &Job {
        &self.job
    }

    /// The grant that the program has, or is about to release.
    pub(super) fn known(&self) -> Option<HeldGrant> {
        match &self.job {
            Job::Release(held) => Some(*held),
            _ => self.lease.as_ref().map(|lease| lease.held),
        }
    }
}

impl Client {
    fn http(&mut self) -> Option<&mut Http> {
        match &mut self.process {
            Some(Process { way: Way::Http(http), .. }) => Some(http),
            _ => None,
        }
    }

    /// The next step of the program.
    pub(super) fn call_next(
        &mut self,
        context: &mut Context,
        plan: Plan,
        reports: &mut Vec<Report>,
    ) {
        let (thinks, holds) = (self.setting.thinks, self.setting.holds);
        let Some(http) = self.http() else { return };
        if plan == Plan::Leave {
            http.job = Job::Nothing;
            return self.close_call(context);
        }
        if http.wire.is_some() {
            return self.work_after(context, thinks + holds);
        }
        match (&http.job, &http.lease) {
            (Job::Nothing, Some(lease)) if lease.entered => {
                let held = lease.held;
                (http.job, http.lease) = (Job::Release(held), None);
                if let Some(process) = &mut self.process {
                    process.held.retain(|it| *it != held);
                }
                reports.push(Report::Left { lock: held.lock, fence: held.fence, lost: false });
                log!(context, "c{} releases {:?} by a call", self.id, held.fence);
            }
            (Job::Nothing, Some(_)) => http.job = Job::Renew,
            (Job::Nothing, None) if plan == Plan::Finish => return,
            (Job::Nothing, None) => self.want(context, plan),
            (Job::Acquire(request), _)
                if request.key.is_some() && plan == Plan::Compete && context.random.percent(20) =>
            {
                http.job = Job::Withdraw(request.clone());
            }
            _ => {} // The same once more.
        }
        self.dial_call(context);
    }

    /// Choose what to ask for next.
    fn want(&mut self, context: &mut Context, plan: Plan) {
        let settings = Rc::clone(&context.settings);
        let (id, start, ttl) = (self.id, self.starts, self.setting.ttl);
        let LockChoice { lock, name, mode, permits } =
            wish(context, &settings, self.setting.favourite);
        let keyed = plan != Plan::Compete || context.random.percent(70);
        let waits = plan != Plan::Compete || context.random.percent(80);
        let wait = if waits { context.random.magnitude(MS, 8000 * MS) } else { 0 };
        let endless = self.setting.endless && context.random.percent(40);
        let ttl = if endless { UNLIMITED } else { ttl };
        let Some(http) = self.http() else { return };
        http.requests += 1;
        let request = Request {
            lock,
            ask: Ask {
                lock: name,
                mode,
                permits,
                wait: if waits { Wait::Forever } else { Wait::No },
            },
            key: keyed.then(|| format!("c{id}.{start}.{}", http.requests)),
            wait,
            healed: plan == Plan::Healed,
            ttl,
        };
        http.job = Job::Acquire(request);
    }

    fn dial_call(&mut self, context: &mut Context) {
        let Some(http) = self.http() else { return };
        if http.wire.is_none() && !std::mem::replace(&mut http.dialling, true) {
            let takes =
                context.network.latency(context.now, self.setting.local, &mut context.random);
            self.later(context, context.now + takes, ClientEvent::Dialled);
        }
    }

    /// The connection for a call is made, or there is no node.
    pub(super) fn call(&mut self, context: &mut Context, wire: Option<Wire>) {
        let now = self.clock.read(context.now);
        let (id, patience) = (self.id, self.setting.patience.as_nanos() as u64);
        let (thinks, remote) = (self.setting.thinks, !self.setting.local);
        let settings = Rc::clone(&context.settings);
        let Some(http) = self.http() else { return };
        http.dialling = false;
        let Some(wire) = wire else { return self.work_after(context, 500 * MS + thinks) };
        let name = |held: HeldGrant| settings.locks[held.lock].name.clone();
        let (call, wait) = match &http.job {
            Job::Nothing => return context.close(wire, 0),
            Job::Acquire(request) => {
                let label = request.key.as_ref().map(|key| format!("http {key}"));
                let lease = LeaseAsk {
                    ask: request.ask.clone(),
                    key: request.key.clone().map(LeaseKey::Request),
                    ttl_ms: (request.ttl != UNLIMITED).then_some(request.ttl.as_millis() as u32),
                    unattended: false,
                    label: label.unwrap_or_else(|| format!("c{id}")),
                    remote,
                    secret: Secret([0; 16]),
                };
                (Call::Acquire(Box::new(lease)), request.wait)
            }
            Job::Renew => {
                let Some(lease) = &mut http.lease else { return context.close(wire, 0) };
                let other = Duration::from_millis(context.random.magnitude(1000, 20_000));
                let other = context.random.percent(10).then_some(other);
                // A shorter TTL counts from now on: perhaps only the answer gets lost. A lock
                // without end stays without end.
                if !lease.held.endless {
                    lease.ttl = other.map_or(lease.ttl, |other| lease.ttl.min(other));
                }
                (Call::Renew(name(lease.held), lease.held.fence, other), 0)
            }
            Job::Release(held) => (Call::Release(name(*held), held.fence), 0),
            Job::Withdraw(request) => {
                let key = request.key.clone().unwrap_or_default();
                (Call::Withdraw(request.ask.lock.clone(), key), 0)
            }
        };
        log!(context, "c{id} calls over {wire}: {call:?}");
        (http.wire, http.sent, http.heard) = (Some(wire), now, 0);
        context.posts.insert(wire, Post { call, wait });
        context.send(wire, 0, vec![1; LENGTH]);
        let mut time = wait + patience;
        if wait > 0 && context.now < settings.heals && context.random.percent(15) {
            time = context.random.between(0, wait); // It does not want to wait any longer.
        }
        let ends = http.lease.as_ref().filter(|lease| !lease.held.endless);
        let lost_at = ends.map(Lease::lost_at);
        self.later(context, context.now + time, ClientEvent::TimedOut(wire));
        if let Some(lost_at) = lost_at {
            self.later(context, self.clock.when(lost_at), ClientEvent::Tick);
        }
    }

    fn close_call(&mut self, context: &mut Context) {
        let Some(http) = self.http() else { return };
        if let Some(wire) = http.wire.take() {
            context.posts.remove(&wire);
            context.answers.remove(&wire);
            context.close(wire, 0);
        }
    }

    /// There will be no answer to the call: the connection has ended, or the program has given up.
    pub(super) fn unanswered_call(&mut self, context: &mut Context) {
        let thinks = self.setting.thinks;
        log!(context, "c{} gets no answer", self.id);
        self.close_call(context);
        let Some(http) = self.http() else { return };
        if matches!(&http.job, Job::Acquire(request) if request.key.is_none()) {
            http.job = Job::Nothing;
        }
        self.work_after(context, 100 * MS + thinks);
    }

    /// The answer to the call has come, or a part of it.
    pub(super) fn answered(
        &mut self,
        context: &mut Context,
        wire: Wire,
        bytes: usize,
        reports: &mut Vec<Report>,
    ) {
        let id = self.id;
        let Some(http) = self.http().filter(|http| http.wire == Some(wire)) else { return };
        http.heard += bytes;
        if http.heard < LENGTH {
            return;
        }
        let Some(answer) = context.answers.remove(&wire) else { return };
        let job = std::mem::take(&mut http.job);
        log!(context, "c{id} is answered: {answer:?}");
        let label = || format!("{answer:?}").split('(').next().unwrap_or("").to_lowercase();
        let lock = match &job {
            Job::Acquire(request) | Job::Withdraw(request) => Some(request.lock),
            Job::Release(held) => Some(held.lock),
            Job::Renew | Job::Nothing => None,
        };
        let settings = Rc::clone(&context.settings);
        context.arrow(Lane::Client(id), label, lock.map(|lock| &settings.locks[lock].name));
        self.close_call(context);
        match (job, answer) {
            (Job::Acquire(request), Answer::Leased(lease)) => {
                let shared = request.ask.mode == Mode::Shared;
                let (lock, fence) = (request.lock, lease.fence);
                let endless = request.ttl == UNLIMITED;
                let held = HeldGrant { lock, fence, first: fence, shared, endless };
                self.leased(context, held, &lease, request.healed, reports);
            }
            (Job::Renew, Answer::Leased(lease)) => {
                let known = self.http().and_then(|http| http.lease.clone());
                let Some(known) = known else { return self.work_after(context, MS) };
                if known.held.fence != lease.fence {
                    context.violate(format!("c{id}: {:?} renews {known:?}", lease.fence));
                }
                self.leased(context, known.held, &lease, known.healed, reports);
            }
            (job, Answer::Refused(refusal)) => self.refused(context, job, refusal.code, reports),
            (Job::Release(held), Answer::Released(true)) if held.endless => {
                let name = settings.locks[held.lock].name.clone();
                context.ended.push((name, held.fence, id));
                self.work_after(context, self.setting.thinks);
            }
            (Job::Release(_), Answer::Released(_)) | (Job::Withdraw(_), Answer::Withdrawn(_)) => {
                self.work_after(context, self.setting.thinks);
            }
            (job, answer) => context.violate(format!("c{id}: {answer:?} answers {job:?}")),
        }
    }

    /// A call has proved a lease. If that was long ago, the program renews the lease first.
    fn leased(
        &mut self,
        context: &mut Context,
        held: HeldGrant,
        answer: &LeaseAnswer,
        healed: bool,
        reports: &mut Vec<Report>,
    ) {
        let now = self.clock.read(context.now);
        let (clock, ttl) = (self.clock, answer.ttl);
        if held.endless && ttl != UNLIMITED {
            context
                .violate(format!("c{}: {:?} was to have no end: {answer:?}", self.id, held.fence));
        }
        let Some(http) = self.http() else { return };
        let entered = http.lease.as_ref().is_some_and(|lease| lease.entered);
        let mut lease = Lease { held, ttl, proven: http.sent, entered, healed };
        let lost_at = lease.lost_at();
        let valid = now < lost_at;
        let enters = valid && !entered;
        lease.entered |= enters;
        http.lease = Some(lease);
        if enters {
            self.entered |= healed;
            self.enter(context, held, reports);
        }
        if held.endless {
            // It outlives nodes and machines, and some programs renew it all the same.
            let holds = if healed { self.setting.holds } else { LONG };
            if context.random.percent(30) {
                let pause = context.random.exponential(holds);
                self.later(context, context.now + pause, ClientEvent::Renew);
            }
            return self.work_after(context, holds);
        }
        self.work_after(context, self.setting.holds);
        if valid {
            let pause = ttl.as_nanos() as u64 / 4;
            self.later(context, context.now + pause, ClientEvent::Renew);
            self.later(context, clock.when(lost_at), ClientEvent::Tick);
        } else {
            self.renew_by_call(context);
        }
    }

    /// The node has refused a call.
    fn refused(&mut self, context: &mut Context, job: Job, code: Code, reports: &mut Vec<Report>) {
        context.counts.refused += 1;
        let gone = code == Code::Gone;
        match job {
            Job::Renew if gone => self.give_up_lease(context, reports),
            // A request that waits keeps its place if it can be repeated.
            Job::Acquire(mut request)
                if request.key.is_some()
                    && !gone
                    && (request.wait > 0 || code != Code::NotFree) =>
            {
                // The next call waits longer, and comes before the place is given up. A call whose
                // node is gone may get no answer at all, so no call waits for very long.
                if code == Code::NotFree {
                    request.wait = (request.wait * 2).min(LONGEST);
                }
                if let Some(http) = self.http() {
                    http.job = Job::Acquire(request);
                }
            }
            Job::Release(_) | Job::Withdraw(_) if !gone => {
                if let Some(http) = self.http() {
                    http.job = job;
                }
            }
            _ => {}
        }
        let soon = self.setting.ttl.as_nanos() as u64 / 20;
        self.work_after(context, (50 * MS + self.setting.thinks).min(soon));
    }

    /// Renew the lease, unless the program is busy with another call.
    pub(super) fn renew_by_call(&mut self, context: &mut Context) {
        let Some(http) = self.http() else { return };
        if http.lease.is_some() && matches!(http.job, Job::Nothing) && http.wire.is_none() {
            http.job = Job::Renew;
            self.dial_call(context);
        }
    }

    /// The lease may have run out.
    pub(super) fn expire(&mut self, context: &mut Context, reports: &mut Vec<Report>) {
        let now = self.clock.read(context.now);
        let Some(http) = self.http() else { return };
        let over = http.lease.as_ref().is_some_and(|it| it.entered && now >= it.lost_at());
        if over {
            http.job = Job::Nothing; // It was to be renewed.
            log!(context, "c{} counts its lease as lost", self.id);
            self.close_call(context);
            self.give_up_lease(context, reports);
            self.work_after(context, self.setting.thinks);
        }
    }

    fn give_up_lease(&mut self, context: &mut Context, reports: &mut Vec<Report>) {
        let lease = self.http().and_then(|http| http.lease.take());
        if let Some(Lease { held, entered: true, .. }) = lease {
            self.lose(context, held.lock, held.fence, reports);
        }
    }
}
