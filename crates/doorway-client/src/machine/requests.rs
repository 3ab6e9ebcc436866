//! What a client asks for.

use doorway_protocol::{Ask, Fence, Moment, Name, Request, put};

use super::pending::Interest;
use super::{Grant, Phase, SessionMachine};

impl SessionMachine {
    /// Ask for a lock. Answered by [`Event::Granted`](super::Event::Granted) or
    /// [`Event::Refused`](super::Event::Refused).
    pub fn acquire(&mut self, now: Moment, ask: Ask) -> u64 {
        self.ask(now, |number| Request::Acquire(number, ask))
    }

    /// The answer to that request is not wanted any more: no event tells it, and if it was a grant
    /// it is released.
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
            // A grant may be on its way, and then this tells which lock to release. Where we have
            // just claimed to wait for it, the withdrawal follows the welcome.
            pending.interest = Interest::Withdrawn;
        } else {
            self.acquiring -= usize::from(acquire);
            self.pending.remove(&number);
        }
    }

    /// The answer to that request is of no interest: no event tells it. It is done all the same.
    pub fn quiet(&mut self, number: u64) {
        if let Some(pending) = self.pending.get_mut(&number) {
            pending.interest = Interest::Ignored;
        }
    }

    /// Release the grant with this fence, of this session or of another one of the same client that
    /// needs no connection. Answered by [`Event::Released`](super::Event::Released).
    pub fn release(&mut self, now: Moment, lock: &Name, fence: Fence) -> u64 {
        self.expire(now);
        let own = self.grants.remove(&(fence, lock.clone()));
        self.release_own(now, lock, fence, own)
    }

    /// Release a grant that this session has, or has not.
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

    /// A sign of life now. Most sessions give them by themselves. Like all questions it is answered
    /// by [`Event::Answer`](super::Event::Answer) or by [`Event::Refused`](super::Event::Refused).
    pub fn alive(&mut self, now: Moment) -> u64 {
        self.ask(now, Request::Alive)
    }

    /// A sign of life for the session without a connection that holds this grant.
    pub fn renew(&mut self, now: Moment, lock: &Name, fence: Fence) -> u64 {
        self.ask(now, |number| Request::Renew(number, lock.clone(), fence))
    }

    /// Ask about a lock.
    pub fn inspect(&mut self, now: Moment, lock: &Name) -> u64 {
        self.ask(now, |number| Request::Inspect(number, lock.clone()))
    }

    /// Ask for the locks whose names begin like this, after that one.
    pub fn list(&mut self, now: Moment, prefix: &str, after: Option<&Name>) -> u64 {
        let mut prefix = prefix.to_owned();
        super::truncate(&mut prefix, Self::TEXT); // No name is that long, so it still fits none.
        let after = after.cloned();
        self.ask(now, |number| Request::List { number, prefix, after })
    }

    /// Ask about the node.
    pub fn status(&mut self, now: Moment) -> u64 {
        self.ask(now, Request::Status)
    }

    /// Take the lock from whoever holds it with this fence.
    pub fn break_lock(&mut self, now: Moment, lock: &Name, fence: Fence) -> u64 {
        self.ask(now, |number| Request::Break(number, lock.clone(), fence))
    }

    /// Wait until nobody is inside or waits any more, without entering.
    pub fn await_free(&mut self, now: Moment, lock: &Name) -> u64 {
        self.ask(now, |number| Request::AwaitFree(number, lock.clone()))
    }

    /// The session is over, and with it all that it holds, unless it lives without a connection.
    ///
    /// The node hears so only if it talks to us now and what is outgoing is sent before the
    /// connection is closed. Elsewhere it finds the connection closed, or waits for the TTL.
    pub fn bye(&mut self) {
        if self.may_send() {
            put(&Request::Bye, &mut self.outgoing);
        }
        self.grants.clear();
        self.pending.clear();
        self.session = None;
        self.phase = Phase::Closed;
        self.recount();
    }
}
