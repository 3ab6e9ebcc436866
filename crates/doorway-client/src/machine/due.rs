//! What is due: signs of life, and noticing what is over.

use doorway_protocol::{Moment, Request};

use super::lease::OpenSession;
use super::{Phase, SessionMachine, State};

impl SessionMachine {
    /// When [`SessionMachine::tick`] is to be called at the latest.
    pub fn next_due(&self) -> Moment {
        let lost = self.session.as_ref().map_or(Moment::NEVER, OpenSession::lost_at);
        self.overdue.min(lost).min(self.dead_at()).min(self.heartbeat_at())
    }

    /// The time is now: give signs of life, and notice what is over.
    pub fn tick(&mut self, now: Moment) {
        self.expire(now);
        self.refuse_overdue(now);
        if self.dead_at() <= now {
            self.break_connection("the node does not answer");
        } else if self.heartbeat_at() <= now {
            self.asked = now;
            let number = self.ask(now, Request::Alive);
            self.quiet(number);
        }
    }

    /// If the session's time is over, all that it held is lost.
    pub(super) fn expire(&mut self, now: Moment) {
        let Some(session) = &self.session else { return };
        if session.state(now) == State::Lost {
            let silent = now.since(session.proven).as_secs_f64();
            self.lose_all(&format!("nothing was heard of the node for {silent:.1} s"));
        }
    }

    /// When the next sign of life is due. Where no session needs one, it finds out whether the node
    /// is still there, as long as someone waits for an answer.
    fn heartbeat_at(&self) -> Moment {
        if self.phase != Phase::Talking {
            return Moment::NEVER;
        }
        match self.session.as_ref().filter(|session| session.expires()) {
            Some(lease) if lease.sends_heartbeats(self.acquiring > 0) => {
                lease.proven.max(self.asked).after(lease.ttl / 4)
            }
            Some(_) => Moment::NEVER,
            None => self.unanswered_since().max(self.asked).after(self.setup.patience / 4),
        }
    }

    /// When the connection is taken for dead unless something is heard, so that the next one finds
    /// another way or nobody. That never costs a session: one that ends with its connection waits
    /// for its own end.
    fn dead_at(&self) -> Moment {
        let patience = self.setup.patience;
        let lease = self.session.as_ref().filter(|session| session.expires());
        match (self.phase, lease) {
            _ if self.ends_with_connection() => Moment::NEVER,
            (Phase::Greeting { said, .. }, Some(lease)) => said.after(patience.min(lease.ttl / 4)),
            (Phase::Greeting { said, .. }, None) => said.after(patience),
            // A sign of life without an answer, and not only a lease that nobody renews.
            (Phase::Talking, Some(lease)) if self.setup.network && self.asked > lease.proven => {
                lease.unsure_at().max(self.asked.after(lease.ttl / 4))
            }
            // It was asked, and had time to answer: whoever slept meanwhile has heard nothing.
            (Phase::Talking, None) if self.asked > self.heard => {
                self.unanswered_since().after(patience).max(self.asked.after(patience / 4))
            }
            _ => Moment::NEVER,
        }
    }

    /// Since when someone waits for a node that says nothing.
    fn unanswered_since(&self) -> Moment {
        let first = self.pending.first_key_value();
        first.map_or(Moment::NEVER, |(_, pending)| self.heard.max(pending.since))
    }
}
