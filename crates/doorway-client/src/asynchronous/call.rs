//! A request that a task waits for.

use std::pin::Pin;
use std::task::{Context, Poll};

use doorway_protocol::{Moment, Name, Refusal};

use crate::machine::SessionMachine;
use crate::session::{Outcome, SharedSession};

/// The answer to a request. Dropping it before the answer has come withdraws the request.
pub(super) struct Call<'a> {
    shared: &'a SharedSession,
    number: u64,
    /// The lock that the request asks for, if it asks for one.
    pub(super) acquires: Option<Name>,
    /// Why the request was not even made.
    refused: Option<Refusal>,
    over: bool,
}

impl<'a> Call<'a> {
    /// Make a request.
    pub(super) fn new(
        shared: &'a SharedSession,
        make: impl FnOnce(&mut SessionMachine, Moment) -> u64,
    ) -> Self {
        let mut session = shared.lock();
        let number = make(&mut session.line, Moment::now());
        session.expect(number);
        session.flush();
        session.settle();
        if session.line.next_due() < session.plan {
            session.kick();
        }
        Self { shared, number, acquires: None, refused: None, over: false }
    }

    /// A call that is refused without a request.
    pub(super) fn refused(shared: &'a SharedSession, refusal: Refusal) -> Self {
        Self { shared, number: 0, acquires: None, refused: Some(refusal), over: true }
    }
}

impl Future for Call<'_> {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        if let Some(refusal) = self.refused.take() {
            return Poll::Ready(Outcome::Refused(refusal));
        }
        let mut session = self.shared.lock();
        if let Some(outcome) = session.take(self.number) {
            drop(session);
            self.over = true;
            return Poll::Ready(outcome);
        }
        session.watch(self.number, context.waker());
        Poll::Pending
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        let mut session = self.shared.lock();
        match (session.forget(self.number), &self.acquires) {
            (Some(Outcome::Granted(fence)), Some(lock)) => {
                let number = session.line.release(Moment::now(), lock, fence);
                session.line.quiet(number);
            }
            (Some(_), _) => {}
            (None, _) => session.line.withdraw(self.number),
        }
        session.flush();
    }
}
