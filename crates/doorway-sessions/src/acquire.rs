//! Requests for locks: from the client to the node, and the answer back.

use std::sync::Arc;
use std::time::Duration;

use doorway_protocol::{Ask, Code, Fence, Mode, Moment, Name, Refusal, Reply};

use super::connections::AttachedSession;
use super::event::{Answer, AskId, Connection, EventKind, LeaseAnswer, News, Output, WaitNews};
use super::kept::Keeper;
use super::refusals::{gone, limit, refusal, unwritten};
use super::session::{Grant, UNLIMITED};
use super::{Sessions, allowed};
use crate::ledger::{GrantRecord, Record};
use crate::principal::Right;

/// How many granted requests that may be repeated are remembered, besides those that are held.
const ANSWERED: usize = 1024;

/// A request that has no answer yet.
#[derive(Clone, Debug, Hash)]
pub(super) struct PendingAcquire {
    pub(super) session: u64,
    /// The number of the request in the session.
    pub(super) request: u64,
    pub(super) lock: Name,
    pub(super) mode: Mode,
    /// The number of permits, if the client asked for a number that is not configured.
    pub(super) permits: Option<u32>,
    /// How many numbers after the fence are reserved, so that the client can keep the grant.
    pub(super) numbers: u32,
    pub(super) state: Progress,
}

impl PendingAcquire {
    /// Whether the node was asked to hold again what was held before it was started.
    pub(super) fn is_reclaiming(&self) -> bool {
        matches!(self.state, Progress::Reclaiming(..))
    }
}

/// How far a request has got.
#[derive(Clone, Debug, Hash)]
pub(super) enum Progress {
    /// The node has been asked.
    Asked,
    /// The request waits at the node since this moment.
    Queued(Moment),
    /// The node was asked to hold the lock again, with this fence. The place is that of the grant
    /// in the ledger, if the ledger has it.
    Reclaiming(Fence, Option<u32>),
    /// The request is granted with this fence, and is to outlive the node: see [`Output::Hold`],
    /// which was asked for at this moment. The place is that of the grant in the ledger, if the
    /// ledger has it.
    Holding(Fence, Moment, Option<u32>),
    /// The request is granted, and is being written into the ledger. `session` is the place of the
    /// session, if the ledger does not have it yet, and `grant` that of the grant. The client is
    /// told if `tell` is true; it knows of a grant that it has claimed.
    Writing { fence: Fence, session: Option<u32>, grant: u32, tell: bool },
}

impl Sessions {
    /// A session asks for a lock. If it wants to keep the lock, `numbers` fences are reserved.
    pub(super) fn acquire(
        &mut self,
        number: u64,
        request: u64,
        ask: Ask,
        numbers: u32,
        out: &mut Vec<Output>,
    ) {
        if let Err(refusal) = self.try_acquire(number, request, ask, numbers, out) {
            self.answer(number, request, Err(refusal), out);
            self.end_if_idle(number, out);
        }
    }

    fn try_acquire(
        &mut self,
        number: u64,
        request: u64,
        ask: Ask,
        numbers: u32,
        out: &mut Vec<Output>,
    ) -> Result<(), Refusal> {
        let Some(session) = self.open.get(&number) else { return Err(gone()) };
        allowed(&session.principal, Right::Acquire, &ask.lock)?;
        // A request with a number that was used before is the same request.
        if session.waiting.contains_key(&request) {
            return Ok(());
        }
        if let Some((lock, fence)) =
            session.answered.as_ref().and_then(|answered| answered.get(&request))
        {
            if session.find(lock, *fence).is_none() {
                let text = format!("request {request} was granted, and that grant has ended");
                return Err(refusal(Code::Gone, text));
            }
            let fence = *fence;
            self.answer(number, request, Ok(fence), out);
            return Ok(());
        }
        self.check_grants()?;
        let grants = self.setup.limits.grants;
        if session.grants.len() + session.waiting.len() >= grants {
            let text = format!("the session holds or waits for {grants} locks");
            return Err(limit(&text, "limits.grants", grants));
        }
        let permits = self.target(&ask)?;
        self.wanted(&ask.lock, out);
        let name = self.enter(&ask.lock, permits)?;
        let id = self.next_ask();
        let Ask { lock, mode, wait, .. } = ask;
        let wait = self.wait_for_keeper(id, &lock, wait);
        let state = Progress::Asked;
        let asking =
            PendingAcquire { session: number, request, lock, mode, permits, numbers, state };
        self.asks.insert(id, asking);
        if let Some(session) = self.open.get_mut(&number) {
            session.waiting.insert(request, id);
        }
        out.push(Output::Acquire { ask: id, session: number, name, mode, wait, numbers });
        Ok(())
    }

    pub(super) fn next_ask(&mut self) -> AskId {
        self.last_ask += 1;
        AskId(self.last_ask)
    }

    /// Count a use of a name, and return the name of the lock at the node. In a group the number of
    /// permits is configured, so there is nothing to count.
    pub(super) fn enter(&mut self, lock: &Name, permits: Option<u32>) -> Result<Name, Refusal> {
        if self.setup.alone { self.names.enter(lock, permits) } else { Ok(lock.clone()) }
    }

    pub(super) fn leave(&mut self, lock: &Name, permits: Option<u32>) {
        if self.setup.alone {
            self.names.leave(lock, permits);
        }
    }

    /// The number of permits with which a lock is to be used, if that is not the configured one.
    fn target(&self, ask: &Ask) -> Result<Option<u32>, Refusal> {
        let Some(permits) = ask.permits else { return Ok(None) };
        let configured = self.configured(&ask.lock);
        if permits == configured {
            return Ok(None);
        }
        if !self.setup.alone || configured > 1 {
            return Err(not_configured(&ask.lock, permits, configured));
        }
        if ask.mode == Mode::Shared {
            let text = format!("`{}`: a lock is shared or has permits, not both", ask.lock);
            return Err(refusal(Code::NotServed, text));
        }
        Ok(Some(permits))
    }

    /// The configured number of permits of a lock.
    pub fn configured(&self, lock: &Name) -> u32 {
        let rule = self.setup.rules.iter().find(|(pattern, _)| pattern.matches(lock));
        rule.map_or(1, |(_, permits)| *permits)
    }

    /// A request waits at the node, if the limits allow that.
    pub(super) fn queued(&mut self, now: Moment, ask: AskId, out: &mut Vec<Output>) {
        let Some(asking) = self.asks.get(&ask) else { return };
        let (number, lock) = (asking.session, asking.lock.clone());
        let Some(session) = self.open.get(&number) else { return };
        let principal = Arc::clone(&session.principal);
        let most = self.setup.limits.waiting;
        let entered = if session.waiting.len() > most {
            Err(limit(&format!("{most} requests of the session wait"), "limits.waiting", most))
        } else {
            self.enter_queue(&principal, &lock)
        };
        match entered {
            Ok(()) => {
                self.counters.waiting += 1;
                self.asks.get_mut(&ask).into_iter().for_each(|it| it.state = Progress::Queued(now));
                self.announce_wait(number, true, lock, out);
            }
            Err(refusal) => {
                out.push(Output::Abandon(ask));
                self.settle(ask, Err(refusal), out);
            }
        }
    }

    /// The node has granted a request, and has reserved `numbers` numbers after the fence.
    pub(super) fn granted(
        &mut self,
        now: Moment,
        ask: AskId,
        fence: Fence,
        numbers: u32,
        out: &mut Vec<Output>,
    ) {
        self.asks.get_mut(&ask).into_iter().for_each(|asking| asking.numbers = numbers);
        let open = |asking: &&PendingAcquire| self.open.contains_key(&asking.session);
        let Some(asking) = self.asks.get(&ask).filter(open) else {
            // The request was withdrawn in the meantime, or its session has ended.
            self.forget_ask(ask, out);
            return out.push(Output::Release(ask));
        };
        let (tell, written) = match asking.state {
            Progress::Reclaiming(_, place) => (false, place),
            Progress::Queued(since) => {
                self.counters.waited(now.since(since));
                (true, None)
            }
            _ => (true, None),
        };
        let number = asking.session;
        self.leave_queue_of(ask);
        // The lease of a call that waited begins now: its client is told so with the answer.
        if let Some(session) = self.open.get_mut(&number).filter(|it| it.begins_with_answer()) {
            session.heard = now;
        }
        let length = self.open.get(&number).and_then(|session| self.hold_length(session));
        if let Some(length) = length {
            self.held.asked.insert(ask);
            // Without a group that keeps it, the ledger does, so the ledger comes first.
            if self.promise.is_some() {
                self.ask_to_hold(now, ask, (fence, length), None, tell, out);
                if tell {
                    return;
                }
            }
        }
        self.keep_grant(ask, fence, written, tell, out);
    }

    /// Ask for a grant to outlive the node. If its client does not know of it, it waits for that.
    fn ask_to_hold(
        &mut self,
        now: Moment,
        ask: AskId,
        (fence, length): (Fence, Duration),
        place: Option<u32>,
        waits: bool,
        out: &mut Vec<Output>,
    ) {
        let Some(asking) = self.asks.get_mut(&ask) else { return };
        out.push(Output::Hold { ask, name: asking.lock.clone(), fence, length });
        if waits {
            asking.state = Progress::Holding(fence, now, place);
        }
    }

    /// Keep a grant, and write it into the ledger first if it is not there.
    pub(super) fn keep_grant(
        &mut self,
        ask: AskId,
        fence: Fence,
        written: Option<u32>,
        tell: bool,
        out: &mut Vec<Output>,
    ) {
        if !self.setup.ledger || written.is_some() {
            return self.hold(ask, fence, written, tell, out);
        }
        self.write(ask, fence, tell, out);
    }

    /// Write a grant into the ledger before its client is told.
    fn write(&mut self, ask: AskId, fence: Fence, tell: bool, out: &mut Vec<Output>) {
        let Some(asking) = self.asks.get_mut(&ask) else { return };
        let Some(session) = self.open.get(&asking.session) else { return };
        let new = session.place.is_none().then(|| self.places.take());
        let grant = self.places.take();
        let record = Record::Grant(GrantRecord {
            session: asking.session,
            lock: asking.lock.clone(),
            shared: asking.mode == Mode::Shared,
            permits: asking.permits,
            fence,
            request: asking.request,
        });
        asking.state = Progress::Writing { fence, session: new, grant, tell };
        let first = new.map(|place| (place, session.record()));
        out.push(Output::Write(ask, first.into_iter().chain([(grant, record)]).collect()));
    }

    /// A grant was written into the ledger, or could not be.
    pub(super) fn written(
        &mut self,
        now: Moment,
        ask: AskId,
        written: Result<(), String>,
        out: &mut Vec<Output>,
    ) {
        let Some(asking) = self.asks.get(&ask) else { return };
        let Progress::Writing { fence, session, grant, tell } = asking.state else { return };
        match written {
            Ok(()) => {
                let number = asking.session;
                if let (Some(place), Some(open)) = (session, self.open.get_mut(&number)) {
                    // Another grant of the session may have been written at the same time.
                    if let Some(before) = open.place.replace(place) {
                        self.erase(before, out);
                    }
                }
                if tell && self.promise.is_none() && self.held.asked.contains(&ask) {
                    let endless = (fence, UNLIMITED);
                    return self.ask_to_hold(now, ask, endless, Some(grant), true, out);
                }
                self.hold(ask, fence, Some(grant), tell, out);
            }
            Err(error) => {
                session.into_iter().chain([grant]).for_each(|place| self.erase(place, out));
                if !tell {
                    // The client is inside. It could not be told before another client enters, so
                    // it keeps the lock: see `Sessions::is_settled`.
                    return self.hold(ask, fence, None, tell, out);
                }
                self.drop_asked(ask, fence, out);
                out.push(Output::Release(ask)); // It has no record.
                self.settle(ask, Err(unwritten(&error)), out);
            }
        }
    }

    /// The session holds the lock from now on.
    fn hold(
        &mut self,
        ask: AskId,
        fence: Fence,
        place: Option<u32>,
        tell: bool,
        out: &mut Vec<Output>,
    ) {
        let Some(asking) = self.asks.remove(&ask) else { return };
        self.tries.remove(&ask);
        let PendingAcquire { session: number, request, lock, mode, permits, numbers, .. } = asking;
        let (held, kept) = (self.held.asked.remove(&ask), self.held.kept.remove(&ask));
        let Some(session) = self.open.get_mut(&number) else { return };
        session.waiting.remove(&request);
        let detached = session.is_detached();
        // The client of a resumed session sends its requests again, also one that is granted now.
        if let Some(answered) = &mut session.answered {
            if answered.len() > session.grants.len() + ANSWERED {
                answered.pop_first();
            }
            answered.insert(request, (lock.clone(), fence));
        }
        session.grants.insert(
            (lock.clone(), fence, ask),
            // A grant that was claimed, or was in the ledger, counts as known.
            Grant { request, permits, numbers, place, held, kept, informed: !tell },
        );
        if detached {
            self.detached.entry((lock.clone(), fence)).or_default().insert(number);
        }
        self.counters.began(&lock);
        self.announce(number, EventKind::Granted, lock.clone(), fence, None, out);
        if numbers > 0 {
            self.kept.insert(lock.clone(), Keeper::new(number, fence));
            self.tell(number, Reply::Kept { number: request, fence, more: numbers }, out);
        } else if tell {
            self.answer(number, request, Ok(fence), out);
        }
        self.refuse_tries(&lock, mode, out);
    }

    /// The node has refused a request.
    pub(super) fn refused(&mut self, ask: AskId, refusal: Refusal, out: &mut Vec<Output>) {
        let Some(asking) = self.asks.get(&ask) else { return };
        if let Progress::Reclaiming(fence, place) = asking.state {
            let (number, lock) = (asking.session, asking.lock.clone());
            if let Some(place) = place {
                self.erase(place, out);
            }
            let why = format!("it could not be held again: {}", refusal.text);
            self.tell(number, Reply::Lost(lock, fence, why), out);
            self.forget_ask(ask, out);
            self.doom(number);
            return self.end_if_idle(number, out);
        }
        self.settle(ask, Err(refusal), out);
    }

    /// Answer a request, and forget it.
    pub(super) fn settle(
        &mut self,
        ask: AskId,
        answer: Result<Fence, Refusal>,
        out: &mut Vec<Output>,
    ) {
        let Some((number, request)) = self.forget_ask(ask, out) else { return };
        self.answer(number, request, answer, out);
        self.end_if_idle(number, out);
    }

    /// Remove a request that was not granted. Returns its session, and its number in the session.
    pub(super) fn forget_ask(&mut self, ask: AskId, out: &mut Vec<Output>) -> Option<(u64, u64)> {
        if let Some(asking) = self.asks.get(&ask)
            && matches!(asking.state, Progress::Queued(_))
        {
            self.announce_wait(asking.session, false, asking.lock.clone(), out);
        }
        self.leave_queue_of(ask);
        self.held.asked.remove(&ask);
        self.held.kept.remove(&ask);
        self.tries.remove(&ask);
        let asking = self.asks.remove(&ask)?;
        self.leave(&asking.lock, asking.permits);
        if let Some(session) = self.open.get_mut(&asking.session) {
            session.waiting.remove(&asking.request);
        }
        Some((asking.session, asking.request))
    }

    /// A request does not wait any more.
    fn leave_queue_of(&mut self, ask: AskId) {
        let Some(asking) = self.asks.get_mut(&ask) else { return };
        if !matches!(asking.state, Progress::Queued(_)) {
            return;
        }
        asking.state = Progress::Asked;
        let (number, lock) = (asking.session, asking.lock.clone());
        self.counters.waiting -= 1;
        if let Some(session) = self.open.get(&number) {
            let principal = Arc::clone(&session.principal);
            self.leave_queue(&principal, &lock);
        }
    }

    /// Tell a client the answer to a request, over its connection or its calls.
    pub(super) fn answer(
        &mut self,
        number: u64,
        request: u64,
        answer: Result<Fence, Refusal>,
        out: &mut Vec<Output>,
    ) {
        let Some(session) = self.open.get_mut(&number) else { return };
        let calls = &self.leases.calls;
        let of = |caller: &Connection| calls.get(caller).is_none_or(|(_, its)| *its == request);
        let callers: Vec<_> = session.callers.extract_if(.., of).collect();
        for caller in callers {
            let (session, ttl) = (number, session.ttl);
            let answer = match &answer {
                Ok(fence) => {
                    Answer::Leased(LeaseAnswer { fence: *fence, session, ttl, renewed: false })
                }
                Err(refusal) => Answer::Refused(refusal.clone()),
            };
            self.leases.calls.remove(&caller);
            out.push(Output::Answer(caller, answer));
        }
        let reply = match answer {
            Ok(fence) => Reply::Granted(request, fence),
            Err(refusal) => Reply::Refused(request, refusal),
        };
        self.tell(number, reply, out);
    }

    /// These outputs leave the sessions, so clients learn now what they hold.
    pub(super) fn note_informed(&mut self, told: &[Output]) {
        for output in told {
            let number = match output {
                Output::Answer(_, Answer::Leased(lease)) => Some(lease.session),
                Output::Tell(to, Reply::Granted(..)) | Output::Greet(to, ..) => {
                    self.connections.get(to).and_then(|connection| match connection.session {
                        AttachedSession::Open(number) => Some(number),
                        _ => None,
                    })
                }
                _ => None,
            };
            let Some(session) = number.and_then(|number| self.open.get_mut(&number)) else {
                continue;
            };
            session.inform(|(_, fence, _), grant| match output {
                Output::Answer(_, Answer::Leased(lease)) => lease.fence == *fence,
                Output::Tell(_, Reply::Granted(request, _)) => grant.request == *request,
                // A client that goes on with its session has named its grants, or is told of them.
                _ => true,
            });
        }
    }

    pub(super) fn announce(
        &self,
        number: u64,
        kind: EventKind,
        lock: Name,
        fence: Fence,
        why: Option<&str>,
        out: &mut Vec<Output>,
    ) {
        let Some(session) = self.open.get(&number) else { return };
        let (client, why) = (Arc::clone(&session.client), why.map(str::to_owned));
        let news = News { kind, lock, fence, session: number, client, why };
        out.push(Output::Announce(news));
    }

    fn announce_wait(&self, number: u64, waits: bool, lock: Name, out: &mut Vec<Output>) {
        let Some(session) = self.open.get(&number) else { return };
        let client = Arc::clone(&session.client);
        out.push(Output::AnnounceWait(WaitNews { waits, lock, session: number, client }));
    }
}

/// The reason why a lock cannot be used with this number of permits: in a group all members have to
/// agree on the number, so it is configured.
fn not_configured(lock: &Name, permits: u32, configured: u32) -> Refusal {
    let now = match configured {
        1 => "no permits".to_owned(),
        _ => format!("{configured} permits"),
    };
    let text = format!(
        "`{lock}` is configured with {now}, not {permits}. To change that, all members of the \
         group need this in their settings:\n[[lock]]\nnames = \"{lock}\"\n\
         algorithm = \"raymond-k\"\npermits = {permits}"
    );
    refusal(Code::NotServed, text)
}
