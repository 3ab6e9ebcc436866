//! A request that is waited for.

use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use doorway_protocol::{Moment, Name, Refusal};

use crate::endpoint::Endpoint;
use crate::machine::SessionMachine;
use crate::session::{Outcome, Session};

/// What the tasks of one client share.
pub(super) struct Shared {
    pub(super) endpoint: Endpoint,
    /// How long one attempt to connect again may take.
    pub(super) attempt: Duration,
    pub(super) state: Mutex<Inner>,
}

pub(super) struct Inner {
    pub(super) session: Session,
    /// When the driver looks next by itself.
    pub(super) plan: Moment,
    /// Nobody needs the client any more.
    pub(super) closing: bool,
}

impl Shared {
    /// What was written while another thread panicked is as good as any: no step leaves half a
    /// state.
    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ask for something.
    pub(super) fn call(&self, make: impl FnOnce(&mut SessionMachine, Moment) -> u64) -> Call<'_> {
        let mut inner = self.lock();
        let number = make(&mut inner.session.line, Moment::now());
        inner.session.expect(number);
        inner.session.flush();
        inner.session.settle();
        if inner.session.line.next_due() < inner.plan {
            inner.session.kick();
        }
        Call { shared: self, number, acquires: None, refused: None, over: false }
    }

    /// Ask for something of which nobody needs to know the answer.
    pub(super) fn tell(&self, make: impl FnOnce(&mut SessionMachine, Moment) -> u64) {
        let mut inner = self.lock();
        let number = make(&mut inner.session.line, Moment::now());
        inner.session.line.quiet(number);
        inner.session.flush();
    }
}

/// The answer to a request. Whoever drops it before it is there does not want it any more.
pub(super) struct Call<'a> {
    shared: &'a Shared,
    number: u64,
    /// The lock that is asked for.
    pub(super) acquires: Option<Name>,
    /// It was not even asked.
    refused: Option<Refusal>,
    over: bool,
}

impl<'a> Call<'a> {
    /// A call that is answered already.
    pub(super) fn refused(shared: &'a Shared, refusal: Refusal) -> Self {
        Call { shared, number: 0, acquires: None, refused: Some(refusal), over: true }
    }
}

impl Future for Call<'_> {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        if let Some(refusal) = self.refused.take() {
            return Poll::Ready(Outcome::Refused(refusal));
        }
        let mut inner = self.shared.lock();
        if let Some(outcome) = inner.session.take(self.number) {
            drop(inner);
            self.over = true;
            return Poll::Ready(outcome);
        }
        inner.session.watch(self.number, context.waker());
        Poll::Pending
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        let mut inner = self.shared.lock();
        match (inner.session.forget(self.number), &self.acquires) {
            (Some(Outcome::Granted(fence)), Some(lock)) => {
                let number = inner.session.line.release(Moment::now(), lock, fence);
                inner.session.line.quiet(number);
            }
            (Some(_), _) => {}
            (None, _) => inner.session.line.withdraw(self.number),
        }
        inner.session.flush();
    }
}
