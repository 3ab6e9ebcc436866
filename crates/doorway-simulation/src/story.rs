//! What a picture of a run shows: who was there, who held what, and which messages arrived.

use doorway_protocol::{Fence, Name};

/// Where something happens: each node and each client has a line of its own in the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lane {
    Node(usize),
    Client(usize),
}

impl std::fmt::Display for Lane {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Node(node) => write!(f, "n{node}"),
            Self::Client(client) => write!(f, "c{client}"),
        }
    }
}

/// Something that lasts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum State {
    /// A client believes that it holds a lock, or the sessions of a node hold it for a client.
    Holds(Name, Fence),
    /// The process does not run.
    Off,
    /// The process is suspended.
    Paused,
}

/// A state with its time. It lasts until the end of the run if it has no end.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub(crate) lane: Lane,
    pub(crate) state: State,
    pub(crate) begin: u64,
    pub(crate) end: Option<u64>,
}

/// A message that has arrived.
#[derive(Clone, Debug)]
pub(crate) struct Arrow {
    pub(crate) from: Lane,
    pub(crate) to: Lane,
    pub(crate) sent: u64,
    pub(crate) arrived: u64,
    pub(crate) label: String,
    /// The lock that it is about; none if it is about all of them.
    pub(crate) lock: Option<Name>,
}

/// Something that happens at a moment.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    /// The line on which it happens; none if it concerns several.
    pub(crate) lane: Option<Lane>,
    pub(crate) at: u64,
    pub(crate) label: String,
}

/// What has happened in a run so far.
#[derive(Debug, Default)]
pub(crate) struct Story {
    pub(crate) spans: Vec<Span>,
    pub(crate) arrows: Vec<Arrow>,
    pub(crate) marks: Vec<Mark>,
    /// The message that arrives in this moment: from where, and when it was sent.
    pub(crate) arriving: Option<(Lane, u64)>,
    /// The lock that the violation is about, if it is about one.
    pub(crate) concerned: Option<Name>,
}

impl Story {
    /// A state begins.
    pub(crate) fn begin(&mut self, at: u64, lane: Lane, state: State) {
        self.spans.push(Span { lane, state, begin: at, end: None });
    }

    /// A state ends, if it has begun.
    pub(crate) fn end(&mut self, at: u64, lane: Lane, state: &State) {
        let open =
            |span: &&mut Span| span.end.is_none() && span.lane == lane && span.state == *state;
        if let Some(span) = self.spans.iter_mut().rev().find(open) {
            span.end = Some(at);
        }
    }

    /// All states of a process end, because the process does.
    pub(crate) fn stop(&mut self, at: u64, lane: Lane) {
        for span in self.spans.iter_mut().filter(|it| it.lane == lane && it.end.is_none()) {
            span.end = Some(at);
        }
        self.begin(at, lane, State::Off);
    }

    /// A process is suspended until this time.
    pub(crate) fn pause(&mut self, at: u64, lane: Lane, until: u64) {
        self.spans.push(Span { lane, state: State::Paused, begin: at, end: Some(until) });
    }

    /// Note what the message means that arrives in this moment. If no message arrives, the process
    /// has noticed something by itself, and that is marked on its line.
    pub(crate) fn arrow(&mut self, now: u64, to: Lane, label: String, lock: Option<Name>) {
        let Some((from, sent)) = self.arriving else { return self.mark(now, Some(to), label) };
        self.arrows.push(Arrow { from, to, sent, arrived: now, label, lock });
    }

    pub(crate) fn mark(&mut self, at: u64, lane: Option<Lane>, label: String) {
        self.marks.push(Mark { lane, at, label });
    }
}
