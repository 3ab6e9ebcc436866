//! Handling what the node sends.

use std::time::Duration;

use doorway_protocol::{
    Code, Fence, FrameError, Greeting, Life, Moment, Name, NodeIdentity, Refusal, Reply, Request,
    VERSIONS, Welcome, put,
};

use super::lease::OpenSession;
use super::{Answer, Event, Grant, KeptLock, Phase, SessionMachine};

/// The version of the protocol since which nodes look for the holders of sessions.
const HOLDERS: u16 = 2;

impl SessionMachine {
    /// The name of the socket that the processes of the session must hold open, once after each
    /// welcome to a session without a TTL: see
    /// [`Secret::holder`](doorway_protocol::Secret::holder). When the socket is bound, call
    /// [`SessionMachine::show_holder`].
    pub fn take_holder(&mut self) -> Option<String> {
        let due = std::mem::take(&mut self.holder_due);
        self.session.as_ref().filter(|_| due).map(|session| session.secret.holder())
    }

    /// Let the node look for the socket that the processes of the session hold open.
    pub fn show_holder(&mut self, now: Moment) {
        let number = self.ask(now, Request::Evidence);
        self.quiet(number);
    }

    /// Handle bytes that were read from the connection.
    pub fn receive(&mut self, now: Moment, bytes: &[u8]) {
        if matches!(self.phase, Phase::Greeting { .. })
            && let Some(what) = foreign_protocol(bytes)
        {
            return self.not_a_node(what);
        }
        self.frames.feed(bytes);
        self.heard = now;
        loop {
            // An answer that comes after the session has expired proves nothing, and a welcome may
            // come too late as well.
            self.expire(now);
            let more = match self.phase {
                Phase::Greeting { said, resume } => self.greeting(now, said, resume),
                Phase::Talking => self.reply(now),
                Phase::Disconnected | Phase::Broken | Phase::Closed => Ok(false),
            };
            match more {
                Ok(true) => self.settle_doubtful(now),
                Ok(false) => return,
                Err(wrong) => return self.garbled(&wrong),
            }
        }
    }

    fn greeting(&mut self, now: Moment, said: Moment, resume: bool) -> Result<bool, FrameError> {
        let Some(greeting) = self.frames.take::<Greeting>()? else { return Ok(false) };
        match greeting {
            Ok(welcome) => self.welcome(now, said, resume, welcome)?,
            Err(refusal) if resume => self.not_resumed(refusal),
            Err(Refusal { code: Code::Busy | Code::Unavailable, text }) if self.setup.nodes > 1 => {
                self.turn_away(&text);
                self.phase = Phase::Broken;
            }
            Err(refusal) => self.close(refusal),
        }
        Ok(true)
    }

    fn welcome(
        &mut self,
        now: Moment,
        said: Moment,
        resume: bool,
        welcome: Welcome,
    ) -> Result<(), FrameError> {
        let Welcome { version, node, scope, session, ttl_ms, lost, directory } = welcome;
        if !(VERSIONS.0..=VERSIONS.1).contains(&version) {
            return Err(FrameError::Garbled);
        }
        let ttl = Duration::from_millis(ttl_ms.into());
        let by = directory.map(|directory| NodeIdentity { name: node.clone(), directory });
        match (&mut self.session, session, self.setup.session) {
            (Some(known), Some((id, secret)), _) => {
                let proven = known.proven.max(said);
                *known = OpenSession { id, secret, node: by, ttl, proven, ..known.clone() };
            }
            (None, Some((id, secret)), Some((asked, life))) => {
                self.session = Some(OpenSession {
                    id,
                    secret,
                    node: by,
                    place: self.place.clone(),
                    ttl,
                    // A session over a network, or one that keeps locks, does not live with its
                    // processes. A lease may be without end everywhere.
                    asked: match life {
                        Life::Lease => asked,
                        _ if self.setup.network || self.setup.keep => ttl,
                        _ => asked,
                    },
                    life,
                    proven: said,
                    grace: Moment(0),
                });
            }
            (None, None, None) => {}
            _ => return Err(FrameError::Garbled),
        }
        self.given_up = None;
        let waited = !self.may_send();
        self.phase = Phase::Talking;
        self.version = version;
        self.asked = said;
        self.unreachable_since = None;
        self.troubles.clear();
        self.holder_due = self.lives_with_processes() && version >= HOLDERS && !self.setup.network;
        let session = session.map(|(id, _)| id);
        self.events.push_back(Event::Welcome {
            node,
            version,
            scope,
            session,
            ttl,
            resumed: resume,
        });
        for claim in lost {
            let reason = "the node does not hold it for this client any more";
            self.lost(now, claim.lock, claim.fence, reason);
        }
        if waited {
            self.send_pending(now);
        }
        self.recount();
        Ok(())
    }

    /// The node refused to resume the session, for now or for good.
    fn not_resumed(&mut self, refusal: Refusal) {
        match refusal.code {
            Code::Busy | Code::Unavailable => {
                self.turn_away(&refusal.text);
                self.phase = Phase::Broken;
            }
            // Our node may still keep what we hold, and may be found at this place again. Our clock
            // says when it is lost.
            Code::Elsewhere if self.is_bound() && self.deadline().is_some() => {
                self.turn_away(&refusal.text);
                self.phase = Phase::Broken;
            }
            Code::Gone | Code::Elsewhere => self.lose_all(&refusal.text),
            _ => {
                self.lose_all(&refusal.text);
                self.close(refusal);
            }
        }
    }

    /// Give up the connection because the node does not serve this client, or because it cannot be
    /// trusted. All requests are refused with this reason, and the connection must be closed.
    pub fn close(&mut self, refusal: Refusal) {
        self.break_connection(&refusal.text);
        let numbers: Vec<u64> = self.pending.keys().copied().collect();
        for number in numbers {
            self.refuse(number, &refusal);
        }
        self.events.push_back(Event::Closed(refusal));
    }

    /// End the session because its driver is gone. Everything that it holds is lost, and all
    /// requests are refused, now and later.
    #[cfg(feature = "tokio")]
    pub(crate) fn end(&mut self, why: &str) {
        self.lose_all(why);
        self.close(Refusal { code: Code::Unavailable, text: why.to_owned() });
        self.phase = Phase::Closed;
    }

    /// What came cannot be decoded. If it is the answer to our greeting, the other side is not a
    /// node.
    fn garbled(&mut self, wrong: &FrameError) {
        if matches!(self.phase, Phase::Greeting { .. }) {
            return self.not_a_node(&wrong.to_string());
        }
        self.break_connection(&format!("cannot understand the node any more: {wrong}"));
    }

    /// The process at the other end answers our greeting, but not as a node does.
    pub(crate) fn not_a_node(&mut self, why: &str) {
        let place = if self.place.is_empty() { "that place" } else { &self.place };
        let text = format!("the process at {place} is not a compatible node: {why}");
        self.close(Refusal { code: Code::Invalid, text });
    }

    /// The connection cannot be used any more. What ends with the connection is lost from now on,
    /// because the node gives it to other clients as soon as the connection is closed.
    pub(crate) fn break_connection(&mut self, why: &str) {
        if self.phase == Phase::Closed {
            return;
        }
        if self.ends_with_connection() {
            self.lose_all(why);
        }
        self.phase = Phase::Broken;
        self.outgoing.clear();
    }

    fn reply(&mut self, now: Moment) -> Result<bool, FrameError> {
        let Some(reply) = self.frames.take::<Reply>()? else { return Ok(false) };
        match reply {
            Reply::Granted(number, fence) => self.told_grant(now, number, fence, 0),
            Reply::Kept { number, fence, more } => self.told_grant(now, number, fence, more),
            Reply::Wanted(lock, fence) => self.wanted(now, &lock, fence),
            Reply::Refused(number, refusal) if self.moves_on(number, &refusal) => {
                self.turn_away(&refusal.text);
                self.break_connection(&refusal.text);
            }
            Reply::Refused(number, refusal) => {
                if let Some(pending) = self.answered(number)
                    && pending.is_reported()
                {
                    self.events.push_back(Event::Refused { number, refusal });
                }
            }
            Reply::Released(number, held) => {
                if let Some(pending) = self.answered(number)
                    && pending.is_reported()
                {
                    // If the request was sent twice, the first one may have released the lock, and
                    // only its answer is missing.
                    let held = held || (pending.own.is_some() && pending.again);
                    self.events.push_back(Event::Released { number, held });
                }
            }
            Reply::Lost(lock, fence, reason) => self.lost(now, lock, fence, &reason),
            Reply::Stopping(ms) => {
                self.give_back_all(now);
                self.events.push_back(Event::Stopping { within: Duration::from_millis(ms) });
            }
            other => {
                if let Some((number, answer)) = Answer::of(other)
                    && self.answered(number).is_some_and(|pending| pending.is_reported())
                {
                    self.events.push_back(Event::Answer { number, answer });
                }
            }
        }
        Ok(true)
    }

    /// Is this refusal a reason to ask another node? Only if the node does not serve now, if the
    /// session holds nothing, and if not every node has refused the request.
    fn moves_on(&mut self, number: u64, refusal: &Refusal) -> bool {
        if refusal.code != Code::Unavailable || self.is_bound() {
            return false;
        }
        let nodes = self.setup.nodes;
        self.pending.get_mut(&number).is_some_and(|pending| {
            pending.refused += 1;
            pending.is_acquire() && pending.is_reported() && pending.refused < nodes
        })
    }

    /// Does the session only count as alive because the node has yet to be asked? Then a grant may
    /// have waited in the socket while this process was stopped, and may be lost by now.
    fn is_doubtful(&self, now: Moment) -> bool {
        self.session.as_ref().is_some_and(|session| session.is_doubtful(now))
    }

    /// Handle the grants that have waited until the session is known to be alive.
    fn settle_doubtful(&mut self, now: Moment) {
        while !self.is_doubtful(now)
            && let Some((number, fence)) = self.doubtful.pop_first()
        {
            self.granted(now, number, fence, 0);
        }
    }

    /// The node says that a lock was granted. If it may be kept, `spare` numbers after the fence
    /// belong to it.
    fn told_grant(&mut self, now: Moment, number: u64, fence: Fence, spare: u32) {
        self.prove(number);
        if self.is_doubtful(now) {
            self.doubtful.insert(number, fence);
        } else {
            self.granted(now, number, fence, spare);
        }
    }

    /// A lock was granted. If it may be kept, `spare` numbers after the fence belong to it. If the
    /// request was withdrawn, the lock is released at once.
    fn granted(&mut self, now: Moment, number: u64, fence: Fence, spare: u32) {
        let Some(pending) = self.answered(number) else { return self.unwanted(number) };
        let withdrawn = pending.is_withdrawn();
        let Request::Acquire(_, ask) = pending.request else { return };
        let (mode, permits) = (ask.mode, ask.permits);
        let grant = Grant { mode, permits, request: number, base: fence, fence };
        if withdrawn {
            let release = self.release_own(now, &ask.lock, fence, Some(grant));
            return self.quiet(release);
        }
        self.grants.insert((fence, ask.lock.clone()), grant);
        if spare > 0 {
            self.kept.insert(ask.lock.clone(), KeptLock::new(grant, spare));
        }
        self.events.push_back(Event::Granted { number, lock: ask.lock, fence });
    }

    /// A lock was granted for a request that does not wait. If we hold the grant, the node has only
    /// repeated itself. Otherwise the node refused the request at the moment when we sent it again,
    /// and took the second one for a new request.
    fn unwanted(&mut self, number: u64) {
        let kept = self.kept.values().map(|kept| &kept.grant);
        if self.grants.values().chain(kept).all(|grant| grant.request != number) {
            put(&Request::Withdraw(number), &mut self.outgoing);
        }
    }

    /// The node says that a grant was lost.
    fn lost(&mut self, now: Moment, lock: Name, fence: Fence, reason: &str) {
        let asks = |number: &u64| self.pending.get(number).is_some_and(|one| one.asks_for(&lock));
        let mut doubtful = self.doubtful.iter();
        let granted = doubtful.find(|(number, granted)| **granted == fence && asks(number));
        if let Some(number) = granted.map(|(number, _)| *number) {
            // The request has its answer, and the loss follows.
            self.doubtful.remove(&number);
            self.granted(now, number, fence, 0);
        }
        if self.kept.get(&lock).is_some_and(|kept| kept.grant.base == fence) {
            self.forget_kept(&lock);
        }
        // A grant that is being released was held until now, and the answer to the release will
        // only say that it is gone.
        let leaving = self.pending.values().find(|pending| pending.releases_own(&lock, fence));
        let leaving = leaving.and_then(|pending| pending.own);
        let mut key = (fence, lock.clone());
        if self.setup.keep
            && let Some(fence) = self.entry_of(&lock, fence)
        {
            key.0 = fence;
        }
        let held = self.grants.remove(&key);
        if let Some(Grant { fence, .. }) = held.or(leaving) {
            self.events.push_back(Event::Lost { lock, fence, reason: reason.to_owned() });
        }
    }
}

/// What a process that begins its answer with these bytes seems to be, if it is not a node.
pub(crate) fn foreign_protocol(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [b'H', b'T', b'T', b'P', b'/', ..] => {
            Some("this looks like the HTTP port; sessions have a port of their own")
        }
        // An alert, as a server sends it that expected TLS.
        [21, 3, 1..=3, 0, 2, ..] => Some("TLS is expected there"),
        _ => None,
    }
}
