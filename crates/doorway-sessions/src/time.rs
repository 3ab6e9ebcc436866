//! What happens as time passes, and when the service drains or stops.

use std::time::Duration;

use doorway_protocol::{Life, Moment, Refusal, Reply};

use super::acquire::{PendingAcquire, Progress};
use super::event::{AskId, Output};
use super::open::End;
use super::refusals::{drained, stopping};
use super::{Sessions, Stage};

/// The longest time between two ticks. No time to live is shorter, so a session that is heard after
/// a tick cannot end before the next one.
pub(super) const OFTEN: Duration = Duration::from_millis(500);

/// If a tick comes this much too late, the process itself was stopped for a while.
const STOPPED: Duration = Duration::from_millis(250);

impl Sessions {
    /// When [`Input::Tick`](super::Input::Tick) is due.
    pub fn due(&self) -> Moment {
        self.due
    }

    /// End the sessions whose clients were silent for too long, and plan the next tick.
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
                let seen = !session.remote && session.process.is_some();
                !(inherited && seen && session.orphan && session.connection.is_some())
            })
            .map(|session| session.number)
            .collect();
        for number in late {
            self.end(number, End::Silent, out);
        }
        self.forget_leases(now);
        self.forget_lost(now, out);
        self.refuse_unkept(now, out);
        self.serve_if_due(now, out);
        self.settle_ledger(out);
        self.probe_in_trouble(now, out);
        let deadlines = self.open.values().filter_map(super::session::Session::deadline);
        let next = deadlines.chain(self.former.awaited_until).min().unwrap_or(Moment::NEVER);
        self.due = next.clamp(now.after(Duration::from_millis(2)), now.after(OFTEN));
    }

    /// Refuse a request for a lock if the service drains or stops.
    pub fn check_grants(&self) -> Result<(), Refusal> {
        match self.stage {
            Stage::Draining { .. } => Err(drained()),
            Stage::Stopped => Err(stopping()),
            Stage::Serving => Ok(()),
        }
    }

    /// Grant nothing any more, tell all clients to leave, and wait until no lock is held. A lock is
    /// free only when its holder has released it, or when the time of its session is over.
    pub(super) fn drain(&mut self, time: Duration, out: &mut Vec<Output>) {
        if self.is_stopping() {
            return;
        }
        self.stage = Stage::Draining { told: false };
        let time = time.as_millis() as u64;
        let all = self.connections.keys().copied();
        out.extend(all.map(|connection| Output::Tell(connection, Reply::Stopping(time))));
        let asks: Vec<_> = self.asks.keys().copied().collect();
        for ask in asks {
            let Some(asking) = self.asks.get(&ask) else { continue };
            let (number, request) = (asking.session, asking.request);
            self.abandon(ask, out);
            self.answer(number, request, Err(drained()), out);
            self.end_if_idle(number, out);
        }
    }

    /// Say once that a service that drains holds nothing any more. A former holder that may still
    /// claim its lock is a holder. A grant whose record could not be erased is held, and so is one
    /// that the group still keeps: if the node ended now, its lock would stay closed.
    pub(super) fn report_drained(&mut self, out: &mut Vec<Output>) {
        let awaits = self.former.awaited_until.is_some() || self.withholds();
        let Stage::Draining { told: told @ false } = &mut self.stage else { return };
        if self.counters.in_use() == 0 && !awaits {
            *told = true;
            out.push(Output::Drained);
        }
    }

    /// The process ends: close all connections, and leave everything else to the next process.
    pub(super) fn stop(&mut self, out: &mut Vec<Output>) {
        self.stage = Stage::Stopped;
        // What is granted and was not told is given back. Without a time to live, the next process
        // would keep a lock for ever of which nobody knows.
        let untold = |asking: &PendingAcquire| matches!(asking.state, Progress::Holding(..));
        let untold: Vec<AskId> =
            self.asks.iter().filter(|(_, it)| untold(it)).map(|(ask, _)| *ask).collect();
        for ask in untold {
            self.abandon(ask, out);
        }
        out.extend(self.connections.keys().map(|connection| Output::Close(*connection)));
        let calls: Vec<_> = self.leases.calls.keys().copied().collect();
        for caller in calls {
            let refused = super::Answer::Refused(stopping());
            out.push(Output::Answer(caller, refused));
        }
        self.leases.calls.clear();
    }
}
