//! The future that waits for a lock.

use std::borrow::Borrow;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use doorway_core::Mode;
use doorway_protocol::Fence;
use tokio::task::coop;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::error::AcquireError;
use crate::guard::LockGuard;
use crate::handle::{Handle, Session};
use crate::locks::{ClientEnd, ClientId, LockRequest};
use crate::wait_span::WaitSpan;

/// A request for a lock. It is made when the future is first polled. Dropping the future at any
/// time withdraws the request.
///
/// Inside a tokio task the request uses the task's cooperative budget, so that a task which enters
/// in a tight loop still lets other tasks run.
#[must_use = "a request is made only when it is awaited"]
pub struct Acquire<H: Borrow<Handle>> {
    /// The lock that is asked for, until it moves into the guard; or why the request failed before
    /// it was made.
    handle: Result<Option<H>, AcquireError>,
    mode: Mode,
    session: Session,
    reserve: u32,
    deadline: Option<Instant>,
    waiting: Option<QueuedClient>,
}

/// The place of a request that waits in the queue of its lock.
struct QueuedClient {
    client: ClientId,
    /// Present if there is a deadline. It is created only once the request has to wait.
    timer: Option<Pin<Box<Sleep>>>,
    /// Present if a subscriber listens to the spans of this crate.
    span: Option<Box<WaitSpan>>,
}

impl<H: Borrow<Handle> + Unpin> Acquire<H> {
    pub(crate) fn new(handle: H) -> Self {
        Self::of(Ok(Some(handle)))
    }

    /// A request that fails when it is polled.
    pub(crate) fn failed(error: AcquireError) -> Self {
        Self::of(Err(error))
    }

    fn of(handle: Result<Option<H>, AcquireError>) -> Self {
        let (mode, session) = (Mode::Exclusive, Session::NONE);
        Self { handle, mode, session, reserve: 0, deadline: None, waiting: None }
    }

    /// Ask for the lock in shared mode: other shared holders may be inside at the same time.
    pub fn shared(mut self) -> Self {
        self.mode = Mode::Shared;
        self
    }

    /// Make the request on behalf of a session.
    pub fn session(mut self, session: Session) -> Self {
        self.session = session;
        self
    }

    /// Keep an exclusive lock until somebody else wants it, with this many numbers after its fence:
    /// see [`LockGuard::reserved`].
    pub fn keep(mut self, numbers: u32) -> Self {
        self.reserve = numbers;
        self
    }

    /// Give up at this time. A deadline needs a tokio runtime with its timer enabled.
    pub fn until(mut self, deadline: Instant) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Give up after this duration. If the deadline is too far away to be represented, the request
    /// never gives up.
    pub fn within(mut self, time: Duration) -> Self {
        self.deadline = Instant::now().checked_add(time);
        self
    }

    /// Enter only if that is possible immediately: no message is needed and no client waits.
    /// Otherwise return `None`.
    pub fn try_now(mut self) -> Result<Option<LockGuard<H>>, AcquireError> {
        self.enter_now()
    }

    fn enter_now(&mut self) -> Result<Option<LockGuard<H>>, AcquireError> {
        let (handle, ask) = self.ask()?;
        let (node, shard) = (handle.node(), handle.shard());
        let enter = || {
            let entered = node.with_shard(shard, |shard, now, out| {
                shard.try_acquire(handle.slot(), ask(now), out)
            });
            entered.map_err(|ended| AcquireError::of(handle.name(), ended))
        };
        let mut entered = enter()?;
        // A lock that is kept is not in use while its client is outside.
        if entered.is_none() && node.take_kept(shard, handle.slot()) {
            entered = enter()?;
        }
        Ok(entered.map(|(client, fence)| self.held(client, fence)))
    }

    /// The handle, and the request to make of its lock; or the error that makes the request
    /// impossible.
    fn ask(&self) -> Result<(&Handle, impl Fn(Duration) -> LockRequest + use<H>), AcquireError> {
        let handle = self.handle.as_ref().map_err(Clone::clone)?;
        let handle: &Handle =
            handle.as_ref().expect("a future is not polled after it has completed").borrow();
        let (mode, session, reserve) = (self.mode, self.session.number(), self.reserve);
        Ok((handle, move |now| LockRequest { mode, session, reserve, now }))
    }

    fn held(&mut self, client: ClientId, fence: Fence) -> LockGuard<H> {
        let handle = self.handle.as_mut().ok().and_then(Option::take);
        LockGuard::new(handle.expect("only a request with a handle can be granted"), client, fence)
    }

    /// Make the request, when the future is polled for the first time.
    fn request(&mut self, context: &mut Context<'_>) -> Poll<Result<LockGuard<H>, AcquireError>> {
        let (handle, ask) = self.ask()?;
        let node = handle.node();
        if let Err(full) = node.may_wait() {
            // Check before making the request: a request that was made costs memory here and at the
            // peers even if it is withdrawn at once.
            return Poll::Ready(self.enter_now()?.ok_or(full));
        }
        let (client, polled) = node.with_shard(handle.shard(), |shard, now, out| {
            let (client, fence) = shard.acquire(handle.slot(), ask(now), out);
            match fence {
                Some(fence) => (client, Poll::Ready(Ok(fence))),
                // Register the waker while the shard is still locked, so that no grant is missed.
                None => (client, shard.poll(client, context.waker(), out)),
            }
        });
        if let Poll::Ready(ended) = polled {
            return Poll::Ready(self.entered(client, ended));
        }
        node.begin_wait();
        let span = WaitSpan::begin(handle, self.mode, self.session);
        // Create the timer last. Without a tokio runtime that panics, and a panic must not leave a
        // client in the queue.
        self.waiting = Some(QueuedClient { client, timer: None, span });
        if let (Some(waiting), Some(deadline)) = (&mut self.waiting, self.deadline) {
            waiting.timer = Some(Box::pin(sleep_until(deadline)));
        }
        self.check_deadline(context)
    }

    fn entered(
        &mut self,
        client: ClientId,
        result: Result<Fence, ClientEnd>,
    ) -> Result<LockGuard<H>, AcquireError> {
        match result {
            Ok(fence) => Ok(self.held(client, fence)),
            Err(ended) => {
                let (handle, _) = self.ask()?;
                handle.node().leave(handle.shard(), client);
                Err(AcquireError::of(handle.name(), ended))
            }
        }
    }

    fn check_deadline(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<LockGuard<H>, AcquireError>> {
        let timer = self.waiting.as_mut().and_then(|waiting| waiting.timer.as_mut());
        let Some(timer) = timer else { return Poll::Pending };
        ready!(timer.as_mut().poll(context));
        self.withdraw();
        Poll::Ready(Err(AcquireError::TimedOut))
    }
}

impl<H: Borrow<Handle>> Acquire<H> {
    /// Leave the queue; if the lock has been granted but not yet taken, release it.
    fn withdraw(&mut self) {
        let Some(QueuedClient { client, span, .. }) = self.waiting.take() else { return };
        span.inspect(|span| span.end("withdrawn"));
        if let Ok(Some(handle)) = &self.handle {
            let handle: &Handle = handle.borrow();
            handle.node().end_wait();
            handle.node().leave(handle.shard(), client);
        }
    }
}

impl<H: Borrow<Handle> + Unpin> Future for Acquire<H> {
    type Output = Result<LockGuard<H>, AcquireError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let Some(&QueuedClient { client, .. }) = this.waiting.as_ref() else {
            // A loop that enters again and again never waits. Without the budget it would keep its
            // thread from all other tasks, including the links through which other nodes ask for
            // the lock.
            ready!(coop::poll_proceed(context)).made_progress();
            return this.request(context);
        };
        let (handle, _) = this.ask()?;
        let polled = handle
            .node()
            .with_shard(handle.shard(), |shard, _, out| shard.poll(client, context.waker(), out));
        match polled {
            Poll::Ready(result) => {
                handle.node().end_wait();
                if let Some(span) = this.waiting.take().and_then(|waiting| waiting.span) {
                    span.end(if result.is_ok() { "entered" } else { "ended" });
                }
                Poll::Ready(this.entered(client, result))
            }
            Poll::Pending => this.check_deadline(context),
        }
    }
}

impl<H: Borrow<Handle>> Drop for Acquire<H> {
    fn drop(&mut self) {
        self.withdraw();
    }
}

impl<H: Borrow<Handle>> fmt::Debug for Acquire<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waiting = self.waiting.is_some();
        f.debug_struct("Acquire")
            .field("mode", &self.mode)
            .field("waiting", &waiting)
            .finish_non_exhaustive()
    }
}
