//! What whoever traces a program hears of an acquire that waits.

use doorway_core::Mode;
use tokio::time::Instant;
use tracing::Span;

use crate::handle::{Handle, Session};

/// The span of an acquire that waits. One that enters at once has none.
pub(crate) struct WaitSpan {
    span: Span,
    since: Instant,
}

impl WaitSpan {
    /// Somebody begins to wait. Nothing comes of it if nobody listens.
    pub(crate) fn begin(handle: &Handle, mode: Mode, session: Session) -> Option<Box<Self>> {
        let (lock, session) = (handle.name(), session.number());
        let span = tracing::debug_span!("acquire", %lock, ?mode, session);
        if span.is_disabled() {
            return None;
        }
        span.in_scope(|| tracing::debug!("waiting"));
        Some(Box::new(Self { span, since: Instant::now() }))
    }

    /// The wait has come to its end.
    pub(crate) fn end(&self, how: &'static str) {
        let waited = self.since.elapsed();
        self.span.in_scope(|| tracing::debug!(?waited, "{how}"));
    }
}
