//! Requests that have no answer yet.

use std::time::Duration;

use doorway_protocol::{
    Ask, Code, Fence, Life, MembersRequest, Moment, Name, Refusal, Request, Wait, put,
};

use super::{Event, Grant, Phase, SessionMachine};

/// A request that has no answer yet.
#[derive(Clone, Debug, Hash)]
pub(super) struct PendingRequest {
    pub(super) request: Request,
    /// When the request was made.
    pub(super) since: Moment,
    /// When the request for a lock times out.
    pub(super) until: Moment,
    /// The grant of this session that the request releases, if it releases one.
    pub(super) own: Option<Grant>,
    /// Whether the request was sent.
    pub(super) sent: bool,
    /// Whether the request was sent more than once.
    pub(super) again: bool,
    /// How many nodes have refused the request because they do not serve now.
    pub(super) refused: usize,
    pub(super) interest: Interest,
}

/// What becomes of the answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Interest {
    /// An event reports it.
    Reported,
    /// The answer is ignored.
    Ignored,
    /// The request was withdrawn: the answer is ignored, and a grant is released.
    Withdrawn,
}

impl PendingRequest {
    pub(super) fn is_reported(&self) -> bool {
        self.interest == Interest::Reported
    }

    pub(super) fn is_withdrawn(&self) -> bool {
        self.interest == Interest::Withdrawn
    }

    pub(super) fn is_acquire(&self) -> bool {
        matches!(self.request, Request::Acquire(..))
    }

    /// Is this a heartbeat that the machine has sent by itself?
    pub(super) fn is_heartbeat(&self) -> bool {
        self.interest == Interest::Ignored && matches!(self.request, Request::Alive(_))
    }

    /// Was the request sent, and does it change something that cannot be undone?
    fn may_be_done(&self) -> bool {
        use Request::{Break, Members, Once, Release, Renew};
        let changes = match &self.request {
            Release(..) | Break(..) | Renew(..) | Once { .. } => true,
            Members(_, request) => {
                !matches!(request, MembersRequest::Show | MembersRequest::Log(_))
            }
            _ => false,
        };
        self.sent && changes
    }

    /// Does a node answer this request at once, whatever other clients do?
    fn is_answered_at_once(&self) -> bool {
        let waits = |ask: &Ask| ask.wait != Wait::No;
        match &self.request {
            Request::Acquire(_, ask) => !waits(ask),
            Request::AwaitFree(..) => false,
            _ => true,
        }
    }

    /// Does the request ask for this lock?
    pub(super) fn asks_for(&self, name: &Name) -> bool {
        matches!(&self.request, Request::Acquire(_, ask) if ask.lock == *name)
    }

    /// Does the request release this grant, which the session held?
    pub(super) fn releases_own(&self, name: &Name, grant: Fence) -> bool {
        let Request::Release(_, lock, fence) = &self.request else { return false };
        self.own.is_some() && (lock, *fence) == (name, grant)
    }

    /// The event for a request that the node will not answer any more.
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
            | Request::Renew(number, ..)
            | Request::Drain(number, _)
            | Request::Evidence(number)
            | Request::Members(number, _)
            | Request::Once { number, .. }
            | Request::Windows(number, _)
            | Request::Ledger(number)
            | Request::LastHolders(number, _)
            | Request::Keep(number, _) => *number,
            Request::Bye | Request::InUse(..) => 0,
        }
    }

    /// When the machine refuses the request by itself, without the node. While a node talks to us,
    /// that is some time after the timeout, because the answer may be on its way. Otherwise it is
    /// at the timeout, or when patience ends if the request has none.
    fn overdue_at(&self, unreachable_since: Option<Moment>, patience: Duration) -> Moment {
        let of_no_interest = self.own.is_some() && !self.is_reported();
        if self.is_withdrawn() || of_no_interest {
            return Moment::NEVER;
        }
        match unreachable_since {
            Some(_) if self.until != Moment::NEVER => self.until,
            Some(unreachable_since) => unreachable_since.max(self.since).after(patience),
            None => self.until.after(patience / 10),
        }
    }
}

impl SessionMachine {
    /// Make a request, and send it as soon as that is possible.
    pub(super) fn ask(&mut self, now: Moment, make: impl FnOnce(u64) -> Request) -> u64 {
        let number = self.take_number();
        let request = make(number);
        if self.phase == Phase::Closed {
            let refusal =
                Refusal { code: Code::Unavailable, text: "the session is over".to_owned() };
            self.events.push_back(Event::Refused { number, refusal });
            return number;
        }
        if self.may_send() {
            self.write(&request);
        }
        let mut pending = PendingRequest {
            request,
            since: now,
            until: Moment::NEVER,
            own: None,
            sent: self.may_send(),
            again: false,
            refused: 0,
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

    /// The number of the next request.
    pub(super) fn take_number(&mut self) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        number
    }

    /// May the machine refuse this request by itself, without the node, at some time?
    pub(crate) fn may_be_refused(&self, number: u64) -> bool {
        let overdue =
            |one: &PendingRequest| one.overdue_at(self.unreachable_since, self.setup.patience);
        self.pending.get(&number).is_some_and(|one| overdue(one) != Moment::NEVER)
    }

    /// May requests be sent now? Behind a greeting only if it opens a new session that ends with
    /// its connection. If the welcome never reached us, any other session would live on with what
    /// it was granted, and we would not know of it. If the greeting resumes a session, the requests
    /// follow the welcome.
    pub(super) fn may_send(&self) -> bool {
        match self.phase {
            Phase::Talking => true,
            Phase::Greeting { resume, .. } => {
                let connected = |(_, life)| matches!(life, Life::Connection { .. });
                !resume && self.setup.session.is_none_or(connected)
            }
            Phase::Disconnected | Phase::Broken | Phase::Closed => false,
        }
    }

    /// Send all requests that have no answer. Requests for locks carry the time that they have
    /// left.
    pub(super) fn send_pending(&mut self, now: Moment) {
        for mut pending in std::mem::take(&mut self.pending).into_values() {
            if let Request::Acquire(_, Ask { wait: Wait::Ms(ms), .. }) = &mut pending.request {
                *ms = pending.until.since(now).as_millis() as u64;
            }
            if pending.is_withdrawn() {
                put(&Request::Withdraw(pending.number()), &mut self.outgoing);
            } else {
                self.write(&pending.request);
                pending.again = pending.sent;
                pending.sent = true;
            }
            self.pending.insert(pending.number(), pending);
        }
    }

    /// Take the request with this number, which the node has answered.
    pub(super) fn answered(&mut self, number: u64) -> Option<PendingRequest> {
        self.prove(number);
        let pending = self.pending.remove(&number)?;
        self.acquiring -= usize::from(pending.is_acquire());
        Some(pending)
    }

    /// The node has answered this request, so the session was alive when the request was made.
    pub(super) fn prove(&mut self, number: u64) {
        if let (Some(session), Some(pending)) = (&mut self.session, self.pending.get(&number)) {
            session.proven = session.proven.max(pending.since);
        }
    }

    /// Compute `overdue` and `acquiring` again, after requests were dropped, or after the node was
    /// lost or found.
    pub(super) fn recount(&mut self) {
        let (unreachable_since, patience) = (self.unreachable_since, self.setup.patience);
        let overdue = |pending: &PendingRequest| pending.overdue_at(unreachable_since, patience);
        self.overdue = self.pending.values().map(overdue).min().unwrap_or(Moment::NEVER);
        self.acquiring = self.pending.values().filter(|pending| pending.is_acquire()).count();
    }

    /// Refuse the requests that are overdue.
    pub(super) fn refuse_overdue(&mut self, now: Moment) {
        if now < self.overdue {
            return;
        }
        let (unreachable_since, patience) = (self.unreachable_since, self.setup.patience);
        let late =
            self.pending.values().filter(|one| one.overdue_at(unreachable_since, patience) <= now);
        let late: Vec<u64> = late.map(PendingRequest::number).collect();
        for number in late {
            let refusal = match unreachable_since {
                None => Refusal {
                    code: Code::NotFree,
                    text: "the lock was not free in time".to_owned(),
                },
                // It is not known whether the lock was free.
                Some(away) => {
                    let since = self.pending.get(&number).map_or(away, |one| one.since.max(away));
                    let text = self.no_answer_within(now.since(since));
                    Refusal { code: Code::Unavailable, text }
                }
            };
            self.refuse(number, &refusal);
        }
        self.recount();
    }

    /// The first request that should have its answer soon, if an event reports it.
    pub(super) fn first_at_once(&self) -> Option<&PendingRequest> {
        self.pending.values().find(|one| one.is_reported() && one.is_answered_at_once())
    }

    /// Refuse the requests that a node answers at once, and that have waited for as long as our
    /// patience lasts. The node may carry them out later.
    pub(super) fn refuse_unanswered(&mut self, now: Moment) {
        while let Some(pending) = self.first_at_once() {
            let silent = now.since(self.heard.max(pending.since));
            if silent < self.setup.patience {
                break;
            }
            let number = pending.number();
            let text = self.no_answer_within(silent);
            self.refuse(number, &Refusal { code: Code::Unavailable, text });
        }
        self.recount();
    }

    /// The text for a request that no node has answered in this time.
    fn no_answer_within(&mut self, time: Duration) -> String {
        // Tenths of a second are enough, if there are any.
        let seconds = (time.as_secs_f64() * 10.0).round() / 10.0;
        format!("no node answered within {seconds} s{}", self.troubles())
    }

    /// Say in a sentence why no node serves this client.
    pub fn no_node(&mut self, now: Moment) -> String {
        match self.unreachable_since.map(|since| now.since(since)) {
            Some(time) if time >= Duration::from_secs(1) => self.no_answer_within(time),
            _ => format!("no node answered{}", self.troubles()),
        }
    }

    /// Where no node has welcomed us, and why.
    fn troubles(&mut self) -> String {
        if matches!(self.phase, Phase::Greeting { .. }) {
            self.turn_away(Self::SILENT);
        }
        let places = self.troubles.iter().map(|(place, why)| match place.as_str() {
            "" => format!(": {why}"),
            place => format!(" at {place} ({why})"),
        });
        places.collect::<Vec<_>>().join(",")
    }

    /// Refuse a request without the node. If the node may know of it, it is withdrawn.
    pub(super) fn refuse(&mut self, number: u64, refusal: &Refusal) {
        let Some(pending) = self.pending.get(&number) else { return };
        if pending.is_reported() {
            self.events.push_back(pending.no_answer(refusal));
        }
        if pending.is_acquire() {
            self.withdraw(number);
        } else if pending.own.is_some() {
            // We may just have claimed this grant in a greeting. If the release were dropped, the
            // session would hold it forever.
            self.quiet(number);
        } else {
            self.pending.remove(&number);
        }
    }
}
