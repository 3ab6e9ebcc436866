//! What happened, as a list of events that every printer draws from.

use doorway_core::{Mode, NodeId};

use crate::{Choice, Step, Violation};

/// Something that happened at a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// When: in message delays for the simulator, in steps for a script or a counterexample, in
    /// milliseconds for what real nodes recorded.
    pub at: f64,
    /// Where.
    pub node: NodeId,
    /// What.
    pub what: What,
}

/// The kinds of events.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// The node begins to wait.
    Acquire(Mode),
    /// The node goes inside.
    Enter,
    /// The node leaves.
    Release,
    /// The node sends a message.
    Send {
        /// Joins this event to those at the other end.
        id: u64,
        /// The receiver.
        to: NodeId,
        /// The message as text; its first word is its kind.
        message: String,
    },
    /// The node receives message `id`, sent earlier (twice, if it was duplicated).
    Receive {
        /// The number given at sending.
        id: u64,
    },
    /// Message `id`, on its way to this node, is lost.
    Lose {
        /// The number given at sending.
        id: u64,
    },
    /// The node stops for ever.
    Crash,
    /// The node learns that another one crashed.
    Detect(NodeId),
    /// The node forgets the lock.
    Forget,
    /// A new view begins: whoever is still inside stays so, and whoever waits asks again.
    View {
        /// The number of the view.
        number: u64,
        /// How many permits the node holds.
        held: u32,
        /// The mode of what it holds.
        mode: Mode,
    },
    /// The node takes no part in what follows: it was stopped, or is not recorded any more.
    Stop(&'static str),
    /// Something that must never happen did.
    Violate(Violation),
}

/// A recorded run.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// What was run, for the heading.
    pub title: String,
    /// How many nodes there are.
    pub size: u32,
    /// What time is counted in, for the axis: "steps", "message delays" for the simulator, or
    /// "milliseconds" for what was recorded.
    pub unit: &'static str,
    /// The events in the order in which they happened.
    pub events: Vec<Event>,
}

impl Trace {
    /// An empty trace of a group of `size`, its time in steps.
    pub fn new(title: impl Into<String>, size: u32) -> Self {
        Self { title: title.into(), size, unit: "steps", events: Vec::new() }
    }

    /// Append one event.
    pub fn push(&mut self, at: f64, node: NodeId, what: What) {
        self.events.push(Event { at, node, what });
    }

    /// Append what a step of a world did.
    pub fn record(&mut self, at: f64, step: &Step) {
        let id = step.message.as_ref().map_or(0, |letter| letter.id);
        let (node, what) = match step.choice {
            Choice::Start(node) => (node, None),
            Choice::Acquire(node, mode) => (node, Some(What::Acquire(mode))),
            Choice::Release(node) => (node, Some(What::Release)),
            Choice::Deliver(parcel) | Choice::Duplicate(parcel) => {
                (parcel.to, Some(What::Receive { id }))
            }
            Choice::Drop(parcel) => (parcel.to, Some(What::Lose { id })),
            Choice::Crash(node) => (node, Some(What::Crash)),
            Choice::Detect { node, failed } => (node, Some(What::Detect(failed))),
            Choice::Forget(node) => (node, Some(What::Forget)),
        };
        let sends = step.sends.iter().map(|(to, letter)| {
            let message = format!("{:?}", letter.body);
            What::Send { id: letter.id, to: *to, message }
        });
        let entered = step.entered.then_some(What::Enter);
        let violation = step.violation.clone().map(What::Violate);
        for what in what.into_iter().chain(entered).chain(sends).chain(violation) {
            self.push(at, node, what);
        }
    }
}

/// The kind of a message: the first word of its text.
pub fn kind(message: &str) -> &str {
    message.split(|c: char| !c.is_alphanumeric()).next().unwrap_or(message)
}
