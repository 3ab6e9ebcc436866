//! Requests that have no answer yet.

use std::time::Duration;

use doorway_protocol::{Ask, Code, Fence, Moment, Name, Refusal, Request, Wait, put};

use super::{Event, Grant, Phase, SessionMachine};

/// A request that has no answer yet.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) request: Request,
    /// When it was first sent, or made if it was not sent yet.
    pub(super) since: Moment,
    /// Until when its lock is wanted.
    pub(super) until: Moment,
    /// It releases this, which the session held.
    pub(super) own: Option<Grant>,
    /// It was sent.
    pub(super) sent: bool,
    /// It was sent more than once.
    pub(super) again: bool,
    pub(super) interest: Interest,
}

/// Who cares for the answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interest {
    /// It is told.
    Reported,
    /// Nobody wants to know it.
    Ignored,
    /// What was asked for is not wanted any more.
    Withdrawn,
}

impl Pending {
    pub(super) fn is_reported(&self) -> bool {
        self.interest == Interest::Reported
    }

    pub(super) fn is_withdrawn(&self) -> bool {
        self.interest == Interest::Withdrawn
    }

    pub(super) fn is_acquire(&self) -> bool {
        matches!(self.request, Request::Acquire(..))
    }

    /// Is it a sign of life that the machine gave by itself?
    pub(super) fn is_heartbeat(&self) -> bool {
        self.interest == Interest::Ignored && matches!(self.request, Request::Alive(_))
    }

    /// Was it sent, and does it change something that cannot be taken back?
    fn may_be_done(&self) -> bool {
        use Request::{Break, Release, Renew};
        self.sent && matches!(self.request, Release(..) | Break(..) | Renew(..))
    }

    /// Does it release this grant, which the session held?
    pub(super) fn releases_own(&self, name: &Name, grant: Fence) -> bool {
        let Request::Release(_, lock, fence) = &self.request else { return false };
        self.own.is_some() && (lock, *fence) == (name, grant)
    }

    /// What to tell if the node does not answer any more.
    pub(super) fn no_answer(&self, refusal: &Refusal) -> Event {
        let (number, refusal) = (self.number(), refusal.clone());
        if self.may_be_done() {
            Event::Unknown { number, refusal }
        } else {
            Event::Refused { number, refusal }
        }
    }

    pub(super) fn number(&self) -> u64 {
        match &self.request {
            Request::Acquire(number, _)
            | Request::Withdraw(number)
            | Request::Release(number, ..)
            | Request::Alive(number)
            | Request::Inspect(number, _)
            | Request::List { number, .. }
            | Request::Status(number)
            | Request::Break(number, ..)
            | Request::AwaitFree(number, _)
            | Request::Renew(number, ..) => *number,
            Request::Bye => 0,
        }
    }

    /// From when on it is refused here, without the node: a while after its time, for the answer
    /// may be on its way; at its time, or when patience ends, if nobody can answer.
    fn overdue_at(&self, unreachable_since: Option<Moment>, patience: Duration) -> Moment {
        let of_no_interest = self.own.is_some() && !self.is_reported();
        if self.is_withdrawn() || of_no_interest {
            return Moment::NEVER;
        }
        match unreachable_since {
            Some(unreachable_since) => {
                self.until.min(unreachable_since.max(self.since).after(patience))
            }
            None => self.until.after(patience / 10),
        }
    }
}

impl SessionMachine {
    /// Make a request, and send it as soon as someone listens.
    pub(super) fn ask(&mut self, now: Moment, make: impl FnOnce(u64) -> Request) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        let request = make(number);
        if self.phase == Phase::Closed {
            let refusal =
                Refusal { code: Code::Unavailable, text: "the session is over".to_owned() };
            self.events.push_back(Event::Refused { number, refusal });
            return number;
        }
        if self.may_send() {
            put(&request, &mut self.outgoing);
        }
        let mut pending = Pending {
            request,
            since: now,
            until: Moment::NEVER,
            own: None,
            sent: self.may_send(),
            again: false,
            interest: Interest::Reported,
        };
        if let Request::Acquire(_, Ask { wait, .. }) = &pending.request {
            pending.until = match wait {
                Wait::Ms(ms) => now.after(Duration::from_millis(*ms)),
                Wait::No | Wait::Forever => Moment::NEVER,
            };
            self.acquiring += 1;
        }
        self.overdue =
            self.overdue.min(pending.overdue_at(self.unreachable_since, self.setup.patience));
        self.pending.insert(number, pending);
        number
    }

    /// May that request be refused here, without the node, while there is a connection?
    pub(crate) fn may_be_refused(&self, number: u64) -> bool {
        let overdue = |one: &Pending| one.overdue_at(self.unreachable_since, self.setup.patience);
        self.pending.get(&number).is_some_and(|one| overdue(one) != Moment::NEVER)
    }

    /// May requests be sent now? Behind a greeting only if it asks for a new session: the claims of
    /// an old one come first.
    pub(super) fn may_send(&self) -> bool {
        matches!(self.phase, Phase::Talking | Phase::Greeting { resume: false, .. })
    }

    /// Send all requests, those for locks with the time that is left to them.
    pub(super) fn send_pending(&mut self, now: Moment) {
        for pending in self.pending.values_mut() {
            if let Request::Acquire(_, Ask { wait: Wait::Ms(ms), .. }) = &mut pending.request {
                *ms = pending.until.since(now).as_millis() as u64;
            }
            if pending.is_withdrawn() {
                put(&Request::Withdraw(pending.number()), &mut self.outgoing);
                continue;
            }
            put(&pending.request, &mut self.outgoing);
            pending.again = pending.sent;
            pending.sent = true;
        }
    }

    /// Take the request that this number answers, and what its answer proves: when it was sent the
    /// node had not forgotten us.
    pub(super) fn answered(&mut self, number: u64) -> Option<Pending> {
        let pending = self.pending.remove(&number)?;
        self.acquiring -= usize::from(pending.is_acquire());
        if let Some(session) = &mut self.session {
            session.proven = session.proven.max(pending.since);
        }
        Some(pending)
    }

    /// Count again after requests were dropped, or after we lost or found the node.
    pub(super) fn recount(&mut self) {
        let (unreachable_since, patience) = (self.unreachable_since, self.setup.patience);
        let overdue = |pending: &Pending| pending.overdue_at(unreachable_since, patience);
        self.overdue = self.pending.values().map(overdue).min().unwrap_or(Moment::NEVER);
        self.acquiring = self.pending.values().filter(|pending| pending.is_acquire()).count();
    }

    /// Refuse what has waited too long.
    pub(super) fn refuse_overdue(&mut self, now: Moment) {
        if now < self.overdue {
            return;
        }
        let (unreachable_since, patience) = (self.unreachable_since, self.setup.patience);
        let late =
            self.pending.values().filter(|one| one.overdue_at(unreachable_since, patience) <= now);
        let late: Vec<u64> = late.map(Pending::number).collect();
        // Where nobody can be asked, nobody knows whether the lock was free.
        let (code, text) = match unreachable_since {
            None => (Code::NotFree, "the lock was not free in time"),
            Some(_) => (Code::Unavailable, "no node can be reached"),
        };
        for number in late {
            self.refuse(number, &Refusal { code, text: text.to_owned() });
        }
        self.recount();
    }

    /// Refuse a request here, without the node, which may have to take it back.
    pub(super) fn refuse(&mut self, number: u64, refusal: &Refusal) {
        let Some(pending) = self.pending.get(&number) else { return };
        if pending.is_reported() {
            self.events.push_back(pending.no_answer(refusal));
        }
        if pending.is_acquire() {
            self.withdraw(number);
        } else if pending.own.is_some() {
            // We may just have claimed to hold it, and then nobody else would release it.
            self.quiet(number);
        } else {
            self.pending.remove(&number);
        }
    }
}
