//! The requests of a client.

use std::time::Duration;

use doorway_protocol::text::cut;
use doorway_protocol::{Ask, Fence, MembersRequest, Moment, Name, Request, put};

use super::pending::Interest;
use super::{Grant, Phase, SessionMachine};

impl SessionMachine {
    /// Ask for a lock. Answered by [`Event::Granted`](super::Event::Granted) or
    /// [`Event::Refused`](super::Event::Refused). If the lock is kept, it is entered without the
    /// node: see [`Setup::keep`](super::Setup::keep).
    pub fn acquire(&mut self, now: Moment, ask: Ask) -> u64 {
        if let Some(fence) = self.reenter(now, &ask) {
            let number = self.take_number();
            self.events.push_back(super::Event::Granted { number, lock: ask.lock, fence });
            return number;
        }
        self.ask(now, |number| Request::Acquire(number, ask))
    }

    /// Withdraw a request. No event answers it, and if the lock was granted, it is released.
    pub fn withdraw(&mut self, number: u64) {
        let may_send = self.may_send();
        let connected = may_send || matches!(self.phase, Phase::Greeting { .. });
        let Some(pending) = self.pending.get_mut(&number) else { return };
        let acquire = pending.is_acquire();
        if pending.is_withdrawn() {
            return;
        }
        if !(acquire || matches!(pending.request, Request::AwaitFree(..))) {
            return self.quiet(number);
        }
        if may_send {
            put(&Request::Withdraw(number), &mut self.outgoing);
        }
        if connected && acquire {
            // The grant may be on its way, and then this entry tells which lock to release. If we
            // have just claimed in a greeting to wait for it, the withdrawal follows the welcome.
            pending.interest = Interest::Withdrawn;
        } else {
            self.acquiring -= usize::from(acquire);
            self.pending.remove(&number);
        }
    }

    /// Ignore the answer to a request. No event reports it, but the request is carried out.
    pub fn quiet(&mut self, number: u64) {
        if let Some(pending) = self.pending.get_mut(&number) {
            pending.interest = Interest::Ignored;
        }
    }

    /// Release the grant with this fence, which belongs to this session or to a session without a
    /// connection that the same client opened. Answered by
    /// [`Event::Released`](super::Event::Released).
    pub fn release(&mut self, now: Moment, lock: &Name, fence: Fence) -> u64 {
        self.expire(now);
        if self.leave_kept(now, lock, fence) {
            let number = self.take_number();
            self.events.push_back(super::Event::Released { number, held: true });
            return number;
        }
        let own = self.grants.remove(&(fence, lock.clone()));
        if own.is_none() && self.is_first_of_later_entry(lock, fence) {
            let number = self.take_number();
            self.events.push_back(super::Event::Released { number, held: false });
            return number;
        }
        if own.is_some_and(|own| self.kept.get(lock).is_some_and(|it| it.grant.base == own.base)) {
            self.forget_kept(lock);
        }
        self.release_own(now, lock, own.map_or(fence, |own| own.base), own)
    }

    /// Release a grant; `own` is what this session knows of it, if it belongs to this session.
    pub(super) fn release_own(
        &mut self,
        now: Moment,
        lock: &Name,
        fence: Fence,
        own: Option<Grant>,
    ) -> u64 {
        let number = self.ask(now, |number| Request::Release(number, lock.clone(), fence));
        if let Some(pending) = self.pending.get_mut(&number) {
            pending.own = own;
        }
        number
    }

    /// Send a heartbeat now. The machine sends heartbeats by itself for most sessions. Like all
    /// questions, this is answered by [`Event::Answer`](super::Event::Answer) or by
    /// [`Event::Refused`](super::Event::Refused).
    pub fn alive(&mut self, now: Moment) -> u64 {
        self.ask(now, Request::Alive)
    }

    /// Tell the node to leave for good: to grant nothing any more, and to end when no lock is held.
    /// If locks are still held after this time, or after the `drain` of the node's settings, the
    /// request is refused.
    pub fn drain(&mut self, now: Moment, within: Option<Duration>) -> u64 {
        let within = within.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1));
        let ms = within.unwrap_or(0);
        self.ask(now, |number| Request::Drain(number, ms))
    }

    /// Ask for a report about the members of the node's group, or for a change of them.
    pub fn members(&mut self, now: Moment, request: MembersRequest) -> u64 {
        self.ask(now, |number| Request::Members(number, request))
    }

    /// Take the window of time that is current by the clock of the node, if nobody has taken it.
    /// Only nodes that speak version 4 of the protocol understand this. A request that is repeated
    /// with the same key, which is random, takes the window only once. Answered by
    /// [`Answer::Window`](super::Answer::Window), or by [`Event::Refused`](super::Event::Refused)
    /// with [`Code::NotFree`](doorway_protocol::Code::NotFree).
    pub fn once(&mut self, now: Moment, lock: &Name, period: Duration, key: [u8; 16]) -> u64 {
        let (lock, who) = (lock.clone(), self.setup.who.clone());
        let period_ms = u64::try_from(period.as_millis()).unwrap_or(u64::MAX);
        self.ask(now, |number| Request::Once { number, lock, period_ms, key, who })
    }

    /// List the windows of a lock that were taken. Only nodes that speak version 4 of the protocol
    /// understand this.
    pub fn windows(&mut self, now: Moment, lock: &Name) -> u64 {
        self.ask(now, |number| Request::Windows(number, lock.clone()))
    }

    /// Ask whether the node can write its ledger. Only nodes that speak version 6 of the protocol
    /// understand this.
    pub fn ledger(&mut self, now: Moment) -> u64 {
        self.ask(now, Request::Ledger)
    }

    /// Ask for the last known holders of a lock at members that do not answer. Only nodes that
    /// speak version 6 of the protocol understand this.
    pub fn last_holders(&mut self, now: Moment, lock: &Name) -> u64 {
        self.ask(now, |number| Request::LastHolders(number, lock.clone()))
    }

    /// Renew the lease of the session without a connection that holds this grant.
    pub fn renew(&mut self, now: Moment, lock: &Name, fence: Fence) -> u64 {
        self.ask(now, |number| Request::Renew(number, lock.clone(), fence))
    }

    /// Ask for a report about a lock.
    pub fn inspect(&mut self, now: Moment, lock: &Name) -> u64 {
        self.ask(now, |number| Request::Inspect(number, lock.clone()))
    }

    /// Ask for a page of the locks whose names begin with `prefix`, after the lock `after`.
    pub fn list(&mut self, now: Moment, prefix: &str, after: Option<&Name>) -> u64 {
        // Names are shorter than this, so a prefix that is cut still matches none.
        let prefix = cut(prefix, Self::TEXT).to_owned();
        let after = after.cloned();
        self.ask(now, |number| Request::List { number, prefix, after })
    }

    /// Ask for a report about the node.
    pub fn status(&mut self, now: Moment) -> u64 {
        self.ask(now, Request::Status)
    }

    /// Take a lock away from the client that holds it with this fence.
    pub fn break_lock(&mut self, now: Moment, lock: &Name, fence: Fence) -> u64 {
        self.ask(now, |number| Request::Break(number, lock.clone(), fence))
    }

    /// Wait until no client holds the lock or waits for it, without acquiring it.
    pub fn await_free(&mut self, now: Moment, lock: &Name) -> u64 {
        self.ask(now, |number| Request::AwaitFree(number, lock.clone()))
    }

    /// End the session, and release everything that it holds.
    ///
    /// The node learns of this only if it has welcomed us and what is outgoing is written before
    /// the connection is closed. Otherwise it finds the connection closed, or waits for the TTL to
    /// pass.
    pub fn bye(&mut self) {
        if self.may_send() {
            put(&Request::Bye, &mut self.outgoing);
        }
        self.grants.clear();
        self.forget_all_kept();
        self.doubtful.clear();
        self.pending.clear();
        (self.session, self.given_up) = (None, None);
        self.phase = Phase::Closed;
        self.recount();
    }
}
