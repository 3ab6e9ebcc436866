//! Asking for a lock: at once where that is possible, otherwise a task waits.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use doorway_node::{Acquire, Handle, OwnedGuard};
use doorway_protocol::{Ask, Code, Fence, Mode, Name, Refusal, Reply, Wait};
use tokio::sync::oneshot;
use tokio::task::unconstrained;
use tokio::time::sleep;

use super::permits::{self, Ticket};
use super::refusals::{gone, limit, lost, not_free, of_node, refusal, stopping};
use super::session::{Session, State, Waiting};
use super::{Inner, Service, allowed};
use crate::clock::Moment;
use crate::principal::Right;

/// How long one who does not want to wait lets other nodes answer.
const ASKING: Duration = Duration::from_secs(2);

/// What comes of asking for a lock.
#[derive(Debug)]
enum Asked {
    /// It is granted.
    Now(Fence),
    /// The answer comes later, to the session's connection and to whoever asked to be told.
    Later,
}

/// Whoever wants to be told of the answer besides the session's connection.
type Tell = oneshot::Sender<Result<Fence, Refusal>>;

/// A request on its way.
pub(super) struct Wanted {
    pub(super) request: u64,
    pub(super) lock: Name,
    pub(super) mode: Mode,
    wait: Wait,
    handle: Handle,
    pub(super) ticket: Option<Ticket>,
}

#[cfg(test)]
impl Wanted {
    pub(super) fn plain(ask: Ask, handle: Handle) -> Self {
        let Ask { lock, mode, wait, .. } = ask;
        Self { request: 1, lock, mode, wait, handle, ticket: None }
    }
}

impl Service {
    /// Ask for a lock on behalf of a session, and wait for the answer. A request that was made
    /// before, by its number, is the same request: it keeps its place, or has been granted. Who
    /// stops waiting here withdraws nothing: [`Service::withdraw`] does, and the session's end.
    pub async fn acquire_wait(
        &self,
        session: &Arc<Session>,
        request: u64,
        ask: Ask,
    ) -> Result<Fence, Refusal> {
        let (tell, told) = oneshot::channel();
        let asked = self.acquire(session, &mut session.state(), request, ask, Some(tell));
        match asked? {
            Asked::Now(fence) => Ok(fence),
            Asked::Later => told.await.unwrap_or_else(|_| Err(gone())),
        }
    }

    /// Ask for a lock on behalf of a session, whose connection is told the answer. Where nobody has
    /// to be waited for this is a function call.
    pub(crate) fn ask(&self, session: &Arc<Session>, request: u64, ask: Ask) {
        let mut state = session.state();
        let answer = match self.acquire(session, &mut state, request, ask, None) {
            Ok(Asked::Later) => return,
            Ok(Asked::Now(fence)) => Ok(fence),
            Err(refusal) => Err(refusal),
        };
        // Before anyone can take the lock away again, and say so.
        if let Some(outbox) = &state.outbox {
            outbox.tell(&answered(request, answer));
        }
    }

    fn acquire(
        &self,
        session: &Arc<Session>,
        state: &mut State,
        request: u64,
        ask: Ask,
        tell: Option<Tell>,
    ) -> Result<Asked, Refusal> {
        let inner = &*self.0;
        allowed(&session.principal, Right::Acquire, &ask.lock)?;
        if state.over {
            return Err(gone());
        }
        let tell = match inner.repeated(state, request, tell) {
            Ok(asked) => return asked,
            Err(tell) => tell,
        };
        if inner.stopping.load(Ordering::Relaxed) {
            return Err(stopping());
        }
        let grants = inner.limits.grants;
        if state.grants.len() + state.waiting.len() >= grants {
            let text = format!("the session holds or waits for {grants} locks");
            return Err(limit(&text, "limits.grants", grants));
        }
        let (name, ticket) = inner.target(&ask)?;
        let handle = inner.node.open_name(name);
        let Ask { lock, mode, wait, .. } = ask;
        let wanted = Wanted { request, lock, mode, wait, handle, ticket };
        let (polled, acquire) = inner.begin(session, &wanted)?;
        if wanted.ticket.is_none() {
            // Asked only now: either this sees who uses permits, or they have seen this.
            inner.permits.check_unused(&wanted.lock)?;
        }
        match polled {
            Poll::Ready(guard) => inner.keep(session, state, guard, wanted).map(Asked::Now),
            Poll::Pending => self.wait(session, state, wanted, acquire, tell),
        }
    }

    /// Let a task wait.
    fn wait(
        &self,
        session: &Arc<Session>,
        state: &mut State,
        wanted: Wanted,
        acquire: Acquire<Handle>,
        tell: Option<Tell>,
    ) -> Result<Asked, Refusal> {
        let most = self.0.limits.waiting;
        if state.waiting.len() >= most {
            let text = format!("{most} requests of the session wait");
            return Err(limit(&text, "limits.waiting", most));
        }
        // Who does not want to wait is not in the queue yet.
        let in_it = usize::from(wanted.wait != Wait::No);
        let shares = self.0.place(&session.principal, &wanted.lock, &wanted.handle, in_it)?;
        self.0.waits.fetch_add(1, Ordering::Relaxed);
        let (service, request, began) = (self.clone(), wanted.request, Moment::now());
        let waiter = Arc::clone(session);
        // It cannot be done before it is in the table, whose lock the caller has.
        let task = tokio::spawn(async move {
            let outcome = service.0.wait_for(&wanted, acquire).await;
            if outcome.is_ok() {
                service.0.counts.waited(Moment::now().since(began));
            }
            service.0.settle(&waiter, wanted, outcome);
        });
        let told = tell.into_iter().collect();
        state.waiting.insert(request, Waiting { task: task.abort_handle(), told, _shares: shares });
        Ok(Asked::Later)
    }
}

impl Inner {
    /// A request that was made before: its answer, or its place. Otherwise `tell` comes back.
    #[allow(clippy::type_complexity, reason = "the outer error gives `tell` back to the caller")]
    fn repeated(
        &self,
        state: &mut State,
        request: u64,
        tell: Option<Tell>,
    ) -> Result<Result<Asked, Refusal>, Option<Tell>> {
        if !state.waiting.is_empty()
            && let Some(waiting) = state.waiting.get_mut(&request)
        {
            waiting.told.retain(|told| !told.is_closed());
            waiting.told.extend(tell);
            return Ok(Ok(Asked::Later));
        }
        let answered = state.answered.as_ref().and_then(|answered| answered.get(&request));
        let Some((lock, fence)) = answered else { return Err(tell) };
        if state.grants.contains(&self.hasher, lock.as_str(), *fence) {
            return Ok(Ok(Asked::Now(*fence)));
        }
        Ok(Err(refusal(Code::Gone, format!("request {request} was granted, and that is over"))))
    }

    /// The lock that stands behind what is asked for.
    fn target(&self, ask: &Ask) -> Result<(Name, Option<Ticket>), Refusal> {
        let Some(permits) = ask.permits else { return Ok((ask.lock.clone(), None)) };
        let configured = self.permits_of(&ask.lock);
        if permits == configured {
            return Ok((ask.lock.clone(), None));
        }
        if !self.is_alone() || configured > 1 {
            return Err(not_configured(&ask.lock, permits, configured));
        }
        if ask.mode == Mode::Shared {
            let text = format!("`{}`: a lock is shared or has permits, not both", ask.lock);
            return Err(refusal(Code::NotServed, text));
        }
        let (name, ticket) = self.permits.enter(&ask.lock, permits)?;
        if !self.permits.is_sure(&ask.lock) {
            if self.is_used(&ask.lock) {
                return Err(permits::differ(&ask.lock, 1));
            }
            self.permits.be_sure(&ask.lock);
        }
        Ok((name, Some(ticket)))
    }

    /// Is anyone of this node inside of a lock, or waiting?
    fn is_used(&self, lock: &Name) -> bool {
        self.node.clients_of(lock).is_some()
    }

    /// How many may be inside of a lock, as it is configured.
    pub(crate) fn permits_of(&self, lock: &Name) -> u32 {
        let rule = self.rules.iter().find(|(pattern, _)| pattern.matches(lock));
        rule.map_or(1, |(_, permits)| *permits)
    }

    /// Make the request, and look whether it is granted at once.
    fn begin(
        &self,
        session: &Session,
        wanted: &Wanted,
    ) -> Result<(Poll<OwnedGuard>, Acquire<Handle>), Refusal> {
        let make = || {
            let acquire = wanted.handle.lock_owned();
            let acquire = acquire.session(doorway_node::Session::new(session.number));
            if wanted.mode == Mode::Shared { acquire.shared() } else { acquire }
        };
        let refused = |error| of_node(error, &wanted.lock);
        match wanted.wait {
            Wait::No => {
                if let Some(guard) = make().try_now().map_err(refused)? {
                    return Ok((Poll::Ready(guard), make()));
                }
                if self.is_alone() && self.reclaiming.borrow().is_none() {
                    return Err(not_free(&wanted.lock));
                }
                Ok((Poll::Pending, make()))
            }
            Wait::Ms(_) | Wait::Forever => {
                let mut acquire = match wanted.wait {
                    Wait::Ms(time) => make().within(Duration::from_millis(time)),
                    _ => make(),
                };
                // However much its connection has done in this turn: what is not asked now would
                // count as asked, and nobody would see it.
                let mut context = Context::from_waker(Waker::noop());
                match pin!(unconstrained(&mut acquire)).poll(&mut context) {
                    Poll::Ready(Ok(guard)) => Ok((Poll::Ready(guard), acquire)),
                    Poll::Ready(Err(error)) => Err(refused(error)),
                    // Whoever waits polls it again, with a waker of its own.
                    Poll::Pending => Ok((Poll::Pending, acquire)),
                }
            }
        }
    }

    async fn wait_for(
        &self,
        wanted: &Wanted,
        acquire: Acquire<Handle>,
    ) -> Result<OwnedGuard, Refusal> {
        let refused = |error| of_node(error, &wanted.lock);
        if wanted.wait != Wait::No {
            return acquire.await.map_err(refused);
        }
        let mut serving = self.reclaiming.subscribe();
        // An error would mean that the service is gone, and this task with it.
        let _ = serving.wait_for(Option::is_none).await;
        tokio::select! {
            biased;
            outcome = acquire => outcome.map_err(refused),
            () = self.occupied(&wanted.handle) => Err(not_free(&wanted.lock)),
        }
    }

    /// Wait until it is known that somebody is inside, or until it cannot be found out.
    async fn occupied(&self, handle: &Handle) {
        let found = async {
            while handle.why().await.holders.is_empty() {
                sleep(Duration::from_millis(20)).await;
            }
        };
        let _ = tokio::time::timeout(ASKING, found).await;
    }

    /// A request has waited long enough, one way or the other.
    fn settle(&self, session: &Session, wanted: Wanted, outcome: Result<OwnedGuard, Refusal>) {
        let mut state = session.state();
        let (request, over) = (wanted.request, state.over);
        // Whoever took it out of the table has withdrawn it: then the guard goes as it came.
        let Some(waiting) = state.waiting.remove(&request) else { return };
        self.waits.fetch_sub(1, Ordering::Relaxed);
        debug_assert!(!over, "the end of a session empties its table");
        let refused = self.stopping.load(Ordering::Relaxed).then(stopping);
        let outcome = refused.map_or(outcome, Err);
        // One that was lost before it is in the table is lost without a word.
        let outcome =
            outcome.and_then(|guard| if guard.is_lost() { Err(lost()) } else { Ok(guard) });
        // While former holders were waited for it was not asked for, and may be used otherwise.
        let outcome = outcome.and_then(|guard| match &wanted.ticket {
            None => self.permits.check_unused(&wanted.lock).map(|()| guard),
            Some(_) => Ok(guard),
        });
        let answer = outcome.and_then(|guard| self.keep(session, &mut state, guard, wanted));
        if let Some(outbox) = &state.outbox {
            outbox.tell(&answered(request, answer.clone()));
        }
        drop(state);
        for told in waiting.told {
            let _ = told.send(answer.clone()); // Who has gone away may ask again.
        }
    }
}

/// The answer to a request for a lock, as the connection gets it.
pub(crate) fn answered(request: u64, answer: Result<Fence, Refusal>) -> Reply {
    match answer {
        Ok(fence) => Reply::Granted(request, fence),
        Err(refusal) => Reply::Refused(request, refusal),
    }
}

/// In a group all members have to agree on the number of permits, so it is configured.
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
