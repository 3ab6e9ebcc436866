//! What is due: heartbeats, timeouts and the end of the session.

use std::time::Duration;

use doorway_protocol::{Moment, Request, put};

use super::lease::OpenSession;
use super::{Phase, SessionMachine, State};

/// If a tick comes this much too late, the process was stopped for a while.
const STOPPED: Duration = Duration::from_millis(250);

impl SessionMachine {
    /// When [`SessionMachine::tick`] must be called next, at the latest.
    pub fn next_due(&self) -> Moment {
        let lost = self.session.as_ref().map_or(Moment::NEVER, OpenSession::lost_at);
        let rested = self.rests_until.unwrap_or(Moment::NEVER);
        let silent = self.silent_at();
        self.overdue.min(lost).min(self.dead_at()).min(silent).min(self.heartbeat_at()).min(rested)
    }

    /// Do what is due at this moment: send a heartbeat, refuse requests that have waited for too
    /// long, and notice that the session or the connection is lost.
    pub fn tick(&mut self, now: Moment) {
        self.wake(now);
        self.expire(now);
        self.rests_until.take_if(|until| *until <= now);
        self.refuse_overdue(now);
        if self.dead_at() <= now {
            return self.give_up_connection();
        }
        if self.silent_at() <= now {
            self.refuse_unanswered(now);
        }
        if self.heartbeat_at() <= now {
            self.asked = now;
            let number = self.ask(now, Request::Alive);
            self.quiet(number);
        }
    }

    /// The node does not answer on this connection.
    fn give_up_connection(&mut self) {
        let Phase::Greeting { resume, .. } = self.phase else {
            return self.break_connection("the node does not answer");
        };
        self.turn_away(Self::SILENT);
        if resume {
            return self.break_connection("the node does not answer");
        }
        // A node that was stopped reads our greeting and our requests when it goes on. The session
        // may need no connection, so it must also read that nobody wants it any more.
        put(&Request::Bye, &mut self.outgoing);
        self.phase = Phase::Broken;
    }

    /// If something is due since long, this process was stopped for a while.
    fn wake(&mut self, now: Moment) {
        if now.since(self.next_due()) > STOPPED
            && let Some(session) = &mut self.session
        {
            session.woke(now);
        }
    }

    /// If the session has expired, everything that it held is lost.
    ///
    /// If the node frees what the session holds as soon as it hears from us, the rest of the TTL
    /// passes first: the program has this time to stop what needs the locks.
    pub(super) fn expire(&mut self, now: Moment) {
        if self.session.as_ref().is_some_and(|session| session.state(now) == State::Lost) {
            self.wake(now);
        }
        let (held, ends_with_connection) = (self.is_bound(), self.ends_with_connection());
        let is_lost = |session: &mut OpenSession| session.state(now) == State::Lost;
        let Some(session) = self.session.take_if(is_lost) else { return };
        let end = session.proven.after(session.ttl);
        if held && session.lives_with_processes() {
            self.rests_until = Some(now.after(session.margin()));
        } else if held && ends_with_connection && end > now {
            self.rests_until = Some(end);
        }
        let silent = now.since(session.proven).as_secs_f64();
        self.lose_all(&format!("nothing was heard of the node for {silent:.1} s"));
        // The node does not know our clock. It keeps this session as long as our processes exist.
        self.given_up = Some(session).filter(OpenSession::lives_with_processes);
    }

    /// When the next heartbeat is due. Without a session that needs heartbeats, one is sent only
    /// while a request has no answer, to find out whether the node is still there.
    fn heartbeat_at(&self) -> Moment {
        if self.phase != Phase::Talking {
            return Moment::NEVER;
        }
        let ends = |session: &&OpenSession| session.expires() || session.is_endless();
        match self.session.as_ref().filter(ends) {
            Some(lease) if lease.sends_heartbeats(self.acquiring > 0) => {
                lease.proven.max(self.asked).after(lease.ttl / 4)
            }
            Some(_) => Moment::NEVER,
            None => self.unanswered_since().max(self.asked).after(self.setup.patience / 4),
        }
    }

    /// When the connection counts as dead, unless the node sends something before. The next
    /// connection may take another way through the network. This never costs a session: a session
    /// that ends with its connection is kept until it expires.
    fn dead_at(&self) -> Moment {
        let patience = self.setup.patience;
        // If there are several nodes, another one may answer in time.
        let greeting = patience / u32::try_from(self.setup.nodes.max(1)).unwrap_or(u32::MAX);
        let lease = self.session.as_ref().filter(|session| session.expires());
        match (self.phase, lease) {
            _ if self.ends_with_connection() => Moment::NEVER,
            (Phase::Greeting { said, .. }, Some(lease)) => said.after(greeting.min(lease.ttl / 4)),
            (Phase::Greeting { said, .. }, None) => said.after(greeting),
            // Only if a heartbeat has no answer: a lease that nobody renews is silent as well.
            (Phase::Talking, Some(lease)) if self.setup.network && self.asked > lease.proven => {
                lease.unsure_at().max(self.asked.after(lease.ttl / 4))
            }
            (Phase::Talking, None) => self.no_answer_at(self.unanswered_since()),
            _ => Moment::NEVER,
        }
    }

    /// When the node counts as silent, although its connection must not be closed, because the
    /// session would end with it. Then requests are refused that a node answers at once.
    fn silent_at(&self) -> Moment {
        let kept = self.phase == Phase::Talking && self.ends_with_connection();
        if !kept || self.session.as_ref().is_some_and(OpenSession::expires) {
            return Moment::NEVER;
        }
        match self.first_at_once() {
            Some(pending) => self.no_answer_at(self.heard.max(pending.since)),
            None => Moment::NEVER,
        }
    }

    /// When patience with a node ends that has been silent since then. Only if the node was asked
    /// and has had time to answer: a client that was suspended has heard nothing, and must ask
    /// before it gives up.
    fn no_answer_at(&self, since: Moment) -> Moment {
        let patience = self.setup.patience;
        if self.asked <= self.heard {
            return Moment::NEVER;
        }
        since.after(patience).max(self.asked.after(patience / 4))
    }

    /// Since when a request has been waiting for a node that is silent.
    fn unanswered_since(&self) -> Moment {
        let first = self.pending.first_key_value();
        first.map_or(Moment::NEVER, |(_, pending)| self.heard.max(pending.since))
    }
}
