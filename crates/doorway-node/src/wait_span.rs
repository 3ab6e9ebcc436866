//! The tracing span of a request that waits.

use doorway_core::Mode;
use tokio::time::Instant;
use tracing::Span;

use crate::handle::{Handle, Session};

/// The span of a request that waits. A request that enters at once has none.
pub(crate) struct WaitSpan {
    span: Span,
    since: Instant,
}

impl WaitSpan {
    /// Begin the span, if any subscriber listens.
    pub(crate) fn begin(handle: &Handle, mode: Mode, session: Session) -> Option<Box<Self>> {
        let (lock, session) = (handle.name(), session.number());
        let span = tracing::debug_span!("acquire", %lock, ?mode, session);
        if span.is_disabled() {
            return None;
        }
        span.in_scope(|| tracing::debug!("waiting"));
        Some(Box::new(Self { span, since: Instant::now() }))
    }

    /// End the wait, and log how it ended.
    pub(crate) fn end(&self, how: &'static str) {
        let waited = self.since.elapsed();
        self.span.in_scope(|| tracing::debug!(?waited, "{how}"));
    }
}
