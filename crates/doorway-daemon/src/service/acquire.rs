//! Asking the node for a lock. If the lock is not granted at once, a task waits for it.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use doorway_node::{Acquire, AcquireError, Handle, OwnedGuard};
use doorway_protocol::{Backoff, Code, Mode, Name, Refusal, Wait};
use doorway_sessions::names::visible_name;
use doorway_sessions::refusals::refusal;
use doorway_sessions::{AskId, Input};
use tokio::task::unconstrained;
use tokio::time::sleep;

use super::report::closed_because;
use super::{Core, Service, ServiceShell};

/// How long other nodes may take to answer, for a request that does not wait for its lock.
const ASKING: Duration = Duration::from_secs(2);

/// How long a grant may be on its way from the members that answer, if others are away.
const GRANT: Duration = Duration::from_millis(100);

/// A request as the node gets it.
#[derive(Clone, Copy)]
pub(super) struct NodeRequest {
    pub(super) session: u64,
    pub(super) mode: Mode,
    pub(super) wait: Wait,
    /// How many numbers to reserve after the fence.
    pub(super) numbers: u32,
}

impl ServiceShell {
    /// Make a request at the node. If the node grants it at once, no task is started.
    pub(super) fn acquire(
        self: &Arc<Self>,
        core: &mut Core,
        ask: AskId,
        name: Name,
        request: NodeRequest,
    ) {
        let handle = self.node.open_name(name);
        let (wait, keeps) = (request.wait, request.numbers > 0);
        let input = match self.make_request(&handle, request) {
            Ok((Poll::Ready(guard), _)) => core.keep(ask, guard, keeps),
            Err(refusal) => Input::Refused(ask, refusal),
            Ok((Poll::Pending, acquire)) => {
                let shell = Arc::clone(self);
                let task = self.runtime.spawn(async move {
                    let outcome = shell.wait_for(&handle, wait, acquire).await;
                    let mut core = shell.core.lock();
                    core.tasks.remove(&ask);
                    let input = match outcome {
                        Ok(guard) => core.keep(ask, guard, keeps),
                        Err(refusal) => Input::Refused(ask, refusal),
                    };
                    core.inputs.push_back(input);
                    shell.run(&mut core);
                });
                // The task cannot have ended yet: it needs the mutex that the caller has locked.
                core.tasks.insert(ask, task.abort_handle());
                Input::Queued(ask)
            }
        };
        core.inputs.push_back(input);
    }

    /// Make the request, and look whether it is granted at once.
    fn make_request(
        &self,
        handle: &Handle,
        request: NodeRequest,
    ) -> Result<(Poll<OwnedGuard>, Acquire<Handle>), Refusal> {
        let NodeRequest { session, mode, wait, numbers } = request;
        let make = || {
            let session = doorway_node::Session::new(session);
            let acquire = handle.lock_owned().session(session).keep(numbers);
            if mode == Mode::Shared { acquire.shared() } else { acquire }
        };
        let refused = |error| of_node(error, handle.name());
        match wait {
            Wait::No => {
                if let Some(guard) = make().try_now().map_err(refused)? {
                    return Ok((Poll::Ready(guard), make()));
                }
                if self.is_alone() && *self.serving.borrow() {
                    return Err(not_free(handle.name()));
                }
                Ok((Poll::Pending, make()))
            }
            Wait::Ms(_) | Wait::Forever => {
                let mut acquire = match wait {
                    Wait::Ms(time) => make().within(Duration::from_millis(time)),
                    _ => make(),
                };
                // Tokio may let a task that has done much in its turn see `Pending` without polling
                // anything. The request would then not be made, although it counts as queued. So
                // this poll is not constrained.
                let mut context = Context::from_waker(Waker::noop());
                match pin!(unconstrained(&mut acquire)).poll(&mut context) {
                    Poll::Ready(Ok(guard)) => Ok((Poll::Ready(guard), acquire)),
                    Poll::Ready(Err(error)) => Err(refused(error)),
                    // The task that waits polls it again, with a waker of its own.
                    Poll::Pending => Ok((Poll::Pending, acquire)),
                }
            }
        }
    }

    async fn wait_for(
        &self,
        handle: &Handle,
        wait: Wait,
        acquire: Acquire<Handle>,
    ) -> Result<OwnedGuard, Refusal> {
        let refused = |error| of_node(error, handle.name());
        if wait != Wait::No {
            return match acquire.await {
                Err(AcquireError::TimedOut) => {
                    let late = of_node(AcquireError::TimedOut, handle.name());
                    Err(self.decided(handle, late).await)
                }
                outcome => outcome.map_err(refused),
            };
        }
        let mut serving = self.serving.subscribe();
        // An error would mean that the service is gone, and this task with it.
        let _ = serving.wait_for(|serving| *serving).await;
        tokio::select! {
            biased;
            outcome = acquire => outcome.map_err(refused),
            () = self.occupied(handle) => Err(self.decided(handle, not_free(handle.name())).await),
        }
    }

    /// Wait until it is known that a client holds the lock, or until it cannot be found out.
    async fn occupied(&self, handle: &Handle) {
        let found = async {
            let mut pauses = Backoff::new(Duration::from_millis(5), Duration::from_millis(500));
            loop {
                let why = handle.why().await;
                if !why.holders.is_empty() || !why.closed.is_empty() {
                    return;
                }
                // Members that answer may be enough, and then the grant is on its way.
                if !why.away.is_empty() {
                    return sleep(GRANT).await;
                }
                sleep(pauses.next_delay()).await;
            }
        };
        let _ = tokio::time::timeout(ASKING, found).await;
    }

    /// The refusal of a request for a lock that was not free. If no client is known to hold it and
    /// members cannot be reached, the group cannot decide whether it is free.
    async fn decided(&self, handle: &Handle, not_free: Refusal) -> Refusal {
        if not_free.code != Code::NotFree {
            return not_free;
        }
        let closed = self.node.closed_locks().into_iter().find(|it| it.lock == *handle.name());
        if let Some(closed) = closed {
            let lock = visible_name(handle.name());
            let text = format!("`{lock}` is not free: {}", closed_because(&closed));
            return refusal(Code::NotFree, text);
        }
        if self.is_alone() || self.node.away().is_empty() {
            return not_free;
        }
        let why = handle.why().await;
        if !why.holders.is_empty() || why.away.is_empty() {
            return not_free;
        }
        let away = why.away.iter();
        let away: Vec<_> = away
            .map(|(node, time)| format!("{node} has been unreachable for {} s", time.as_secs()))
            .collect();
        let lock = visible_name(handle.name());
        let text = format!(
            "the group cannot decide whether `{lock}` is free: {}; start or reconnect the missing \
             nodes, or ask again later",
            away.join(", ")
        );
        refusal(Code::Unavailable, text)
    }
}

impl Service {
    /// The refusal of a request for a lock, with what the group knows about it.
    pub(crate) async fn explained(&self, lock: &Name, refusal: Refusal) -> Refusal {
        let (name, _) = self.0.core.lock().sessions.behind(lock);
        self.0.decided(&self.0.node.open_name(name), refusal).await
    }
}

impl Core {
    /// Keep the guard of a request that was granted, and say so. `keeps` says whether the client
    /// wants to keep the grant after it has left.
    fn keep(&mut self, ask: AskId, guard: OwnedGuard, keeps: bool) -> Input {
        if guard.is_lost() {
            let text = "the lock was granted and lost in the same moment; ask again";
            return Input::Refused(ask, refusal(Code::Broken, text));
        }
        let fence = guard.fence();
        // If the lock is wanted by now, there are none. If it is wanted later, the sessions know of
        // the grant by then.
        let numbers = if keeps { guard.reserved() } else { 0 };
        self.guards.insert(ask, guard);
        if numbers > 0 {
            Input::GrantedToKeep(ask, fence, numbers)
        } else {
            Input::Granted(ask, fence)
        }
    }
}

fn not_free(name: &Name) -> Refusal {
    refusal(Code::NotFree, format!("`{}` is not free", visible_name(name)))
}

/// The refusal of the node, in words that name the lock as its client does.
fn of_node(error: AcquireError, name: &Name) -> Refusal {
    let lock = visible_name(name);
    let code = match &error {
        AcquireError::Name(_) => Code::Invalid,
        AcquireError::TimedOut => Code::NotFree,
        AcquireError::NotShared { .. } => Code::NotServed,
        AcquireError::Busy(_) | AcquireError::Backlog { .. } => Code::Busy,
        AcquireError::Broken(_) => Code::Broken,
        // The node has stopped, or has a reason that is newer than this service.
        _ => Code::Unavailable,
    };
    let text = match error {
        AcquireError::TimedOut => format!("`{lock}` was not free in time"),
        AcquireError::NotShared { algorithm, .. } => format!(
            "`{lock}` cannot be shared: {algorithm} serves exclusive locks only. Locks that can be \
             shared are configured with the algorithm `readers-writers`"
        ),
        other => other.to_string(),
    };
    refusal(code, text)
}
