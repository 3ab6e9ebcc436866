//! What the nodes log becomes part of the trace. Errors are faults, because no peer sends anything
//! wrong.

use std::fmt::{Debug, Write as _};
use std::sync::Arc;

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber, span};

use super::stage::Stage;

/// A tracing subscriber for the nodes of a simulation.
pub(crate) struct Log(pub(crate) Arc<Stage>);

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("doorway_node") && *metadata.level() <= Level::INFO
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        self.0.note(format_args!("{}", line.0));
        if *event.metadata().level() == Level::ERROR {
            self.0.fault(line.0);
        }
    }

    fn new_span(&self, _span: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _span: &span::Id, _values: &span::Record<'_>) {}

    fn record_follows_from(&self, _span: &span::Id, _follows: &span::Id) {}

    fn enter(&self, _span: &span::Id) {}

    fn exit(&self, _span: &span::Id) {}
}

/// A line of a log.
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, " {field}={value:?}");
    }
}
