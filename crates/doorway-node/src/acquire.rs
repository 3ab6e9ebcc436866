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

/// A request for a lock. It is made when first polled; dropping it at any moment withdraws it.
///
/// In a task of tokio it takes part in the task's budget, so a task that enters over and over lets
/// others run now and then.
#[must_use = "nothing is asked for until it is awaited"]
pub struct Acquire<H: Borrow<Handle>> {
    /// Until it moves into the guard.
    handle: Result<Option<H>, AcquireError>,
    mode: Mode,
    session: Session,
    deadline: Option<Instant>,
    waiting: Option<QueuedClient>,
}

/// A client in the queue.
struct QueuedClient {
    client: ClientId,
    /// Present if there is a deadline: made only when there is something to wait for.
    timer: Option<Pin<Box<Sleep>>>,
    /// Present if somebody traces.
    span: Option<Box<WaitSpan>>,
}

impl<H: Borrow<Handle> + Unpin> Acquire<H> {
    pub(crate) fn new(handle: H) -> Self {
        Self::of(Ok(Some(handle)))
    }

    /// A request that has failed already.
    pub(crate) fn failed(error: AcquireError) -> Self {
        Self::of(Err(error))
    }

    fn of(handle: Result<Option<H>, AcquireError>) -> Self {
        let (mode, session) = (Mode::Exclusive, Session::NONE);
        Self { handle, mode, session, deadline: None, waiting: None }
    }

    /// Let others that share it in too.
    pub fn shared(mut self) -> Self {
        self.mode = Mode::Shared;
        self
    }

    /// Ask on behalf of a session.
    pub fn session(mut self, session: Session) -> Self {
        self.session = session;
        self
    }

    /// Give up at this moment. Deadlines need a tokio runtime with its timer.
    pub fn until(mut self, deadline: Instant) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Give up after this time; one that is too long to come never ends.
    pub fn within(mut self, time: Duration) -> Self {
        self.deadline = Instant::now().checked_add(time);
        self
    }

    /// Enter this very moment, if that takes no message and nobody waits, or not at all.
    pub fn try_now(mut self) -> Result<Option<LockGuard<H>>, AcquireError> {
        self.enter_now()
    }

    fn enter_now(&mut self) -> Result<Option<LockGuard<H>>, AcquireError> {
        let (handle, ask) = self.ask()?;
        let entered = handle.node().with_shard(handle.shard(), |shard, now, out| {
            shard.try_acquire(handle.slot(), ask(now), out)
        })?;
        Ok(entered.map(|(client, fence)| self.held(client, fence)))
    }

    /// The handle, and what to ask of its lock; or why that makes no sense.
    fn ask(&self) -> Result<(&Handle, impl Fn(Duration) -> LockRequest + use<H>), AcquireError> {
        let handle = self.handle.as_ref().map_err(Clone::clone)?;
        let handle: &Handle = handle.as_ref().expect("a future is not polled again").borrow();
        let info = handle.node().rule(handle.rule()).info;
        if self.mode == Mode::Shared && !info.shared {
            let name = handle.name().to_string();
            return Err(AcquireError::NotShared { name, algorithm: info.name });
        }
        let (mode, session) = (self.mode, self.session.number());
        Ok((handle, move |now| LockRequest { mode, session, now }))
    }

    fn held(&mut self, client: ClientId, fence: Fence) -> LockGuard<H> {
        let handle = self.handle.as_mut().ok().and_then(Option::take);
        LockGuard::new(handle.expect("only a request with a handle gets this far"), client, fence)
    }

    /// Make the request.
    fn request(&mut self, context: &mut Context<'_>) -> Poll<Result<LockGuard<H>, AcquireError>> {
        let (handle, ask) = self.ask()?;
        let node = handle.node();
        if let Err(full) = node.may_wait() {
            // Looked at before asking: a request that is made costs memory here and at the peers
            // even when it is withdrawn at once.
            return Poll::Ready(self.enter_now()?.ok_or(full));
        }
        let (client, polled) = node.with_shard(handle.shard(), |shard, now, out| {
            let (client, fence) = shard.acquire(handle.slot(), ask(now), out);
            match fence {
                Some(fence) => (client, Poll::Ready(Ok(fence))),
                // In one breath with asking, so that no grant can come unseen.
                None => (client, shard.poll(client, context.waker(), out)),
            }
        });
        if let Poll::Ready(ended) = polled {
            return Poll::Ready(self.entered(client, ended));
        }
        node.begin_wait();
        let span = WaitSpan::begin(handle, self.mode, self.session);
        // The timer comes last, for there is none outside of a runtime, and a panic must not leave
        // a client in the queue.
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
                Err(ended.into())
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
    /// Leave the queue, or what was granted unseen.
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
            // A loop that enters over and over never waits, and would keep its thread from all
            // else: also from the links by which other nodes ask for the lock.
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
