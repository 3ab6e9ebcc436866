//! What happens as time passes, and at the end; counters and questions.

use std::time::Duration;

use doorway_protocol::{Fence, Life, Moment, Name, Reply};

use super::event::{EventKind, Output};
use super::open::End;
use super::refusals::stopping;
use super::{Sessions, Stage};

/// No session ends sooner than this after it was heard, so nobody has to look more often.
pub(super) const OFTEN: Duration = Duration::from_millis(500);

/// If a tick comes this much too late, the process itself was stopped for a while.
const STOPPED: Duration = Duration::from_millis(250);

/// The upper bounds of the buckets in which waits are counted, in seconds.
pub(crate) const WAITS: [f64; 10] = [0.0001, 0.001, 0.01, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 600.0];

/// What the sessions have counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters {
    /// Grants that are held now.
    pub(crate) held: u64,
    /// Requests that wait now.
    pub(crate) waiting: u64,
    /// All grants.
    pub(crate) grants: u64,
    pub(crate) released: u64,
    pub(crate) lost: u64,
    /// Grants that had to wait, by how long; the last for those that took longest.
    pub(crate) waited: [u64; WAITS.len() + 1],
    /// All those waits together, in microseconds.
    pub(crate) waited_us: u64,
}

impl Counters {
    /// A grant has ended.
    pub(super) fn ended(&mut self, kind: EventKind) {
        self.held -= 1;
        match kind {
            EventKind::Granted => {}
            EventKind::Released => self.released += 1,
            EventKind::Lost => self.lost += 1,
        }
    }

    /// A grant was made after this time.
    pub(super) fn waited(&mut self, time: Duration) {
        let seconds = time.as_secs_f64();
        let bucket = WAITS.iter().position(|end| seconds <= *end).unwrap_or(WAITS.len());
        self.waited[bucket] += 1;
        self.waited_us += time.as_micros() as u64;
    }
}

impl Sessions {
    /// When [`Input::Tick`](super::Input::Tick) is due.
    pub fn due(&self) -> Moment {
        self.due
    }

    /// Time has passed: sessions whose client is silent for too long end.
    pub(super) fn tick(&mut self, now: Moment, out: &mut Vec<Output>) {
        if self.stage == Stage::Stopped {
            return self.due = now.after(OFTEN);
        }
        if now.since(self.due) > STOPPED {
            // The messages that came meanwhile have not been read yet. To wait longer is always
            // safe: clients count from an earlier moment.
            return self.due = now.after(STOPPED);
        }
        let late: Vec<u64> = self
            .open
            .values()
            .filter(|session| session.deadline().is_some_and(|deadline| deadline <= now))
            // Other processes have the connection of a process that is gone. They do not know of
            // the session, and keep it by keeping the connection open.
            .filter(|session| {
                let inherited = session.life == Life::Connection { inherited: true };
                !(inherited && !session.remote && session.orphan && session.connection.is_some())
            })
            .map(|session| session.number)
            .collect();
        for number in late {
            self.end(number, End::Silent, out);
        }
        self.forget_leases(now);
        self.serve_if_due(now, out);
        let until = match self.stage {
            Stage::Reclaiming(until) => Some(until),
            _ => None,
        };
        let deadlines = self.open.values().filter_map(super::session::Session::deadline);
        let next = deadlines.chain(until).min().unwrap_or(Moment::NEVER);
        self.due = next.clamp(now.after(Duration::from_millis(2)), now.after(OFTEN));
    }

    /// Grant nothing any more, tell all clients to leave, and wait until no lock is held. A lock is
    /// free only when its holder has released it, or when the time of its session is over.
    pub(super) fn drain(&mut self, time: Duration, out: &mut Vec<Output>) {
        if matches!(self.stage, Stage::Draining | Stage::Stopped) {
            return;
        }
        self.stage = Stage::Draining;
        let time = time.as_millis() as u64;
        let all = self.connections.keys().copied();
        out.extend(all.map(|connection| Output::Tell(connection, Reply::Stopping(time))));
        let asks: Vec<_> = self.asks.keys().copied().collect();
        for ask in asks {
            let Some(asking) = self.asks.get(&ask) else { continue };
            let (number, request) = (asking.session, asking.request);
            self.abandon(ask, out);
            self.answer(number, request, Err(stopping()), out);
            self.end_if_idle(number, out);
        }
        if self.counters.held == 0 {
            out.push(Output::Drained);
        }
    }

    /// The process ends: close all connections, and leave everything else to the next process.
    pub(super) fn stop(&mut self, out: &mut Vec<Output>) {
        self.stage = Stage::Stopped;
        out.extend(self.connections.keys().map(|connection| Output::Close(*connection)));
        let calls: Vec<_> = self.leases.calls.keys().copied().collect();
        for caller in calls {
            let refused = super::Answer::Refused(stopping());
            out.push(Output::Answer(caller, refused));
        }
        self.leases.calls.clear();
    }

    /// How many sessions are open.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether no session is open.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// How many connections are open.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// How many grants are held.
    pub fn held(&self) -> u64 {
        self.counters.held
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Until when former holders may claim what they held.
    pub fn reclaiming(&self) -> Option<Moment> {
        match self.stage {
            Stage::Reclaiming(until) => Some(until),
            _ => None,
        }
    }

    /// Whether nothing is granted any more.
    pub fn is_stopping(&self) -> bool {
        matches!(self.stage, Stage::Draining | Stage::Stopped)
    }

    /// The lock at the node behind a name, and its number of permits.
    pub(crate) fn behind(&self, lock: &Name) -> (Name, u32) {
        let permits = self.names.permits(lock).unwrap_or_else(|| self.configured(lock));
        (self.names.behind(lock), permits)
    }

    /// The names that are used with a number of permits that is not configured, in order.
    pub(crate) fn names_with_permits(&self) -> impl Iterator<Item = &Name> {
        self.names.with_permits()
    }

    /// All grants: the session, the lock and the fence of each. For tests and simulations.
    pub fn grants(&self) -> impl Iterator<Item = (u64, &Name, Fence)> {
        self.open.values().flat_map(|session| {
            session.grants.keys().map(|(lock, fence, _)| (session.number, lock, *fence))
        })
    }

    /// Whether nothing is left of any client: no session, no request, no count.
    pub fn is_clean(&self) -> bool {
        self.open.is_empty()
            && self.asks.is_empty()
            && self.detached.is_empty()
            && self.names.is_empty()
            && self.shares.is_empty()
            && self.leases.calls.is_empty()
    }
}
