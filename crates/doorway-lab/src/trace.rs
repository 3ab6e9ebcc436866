//! What happened in a run, as a list of events that every printer of diagrams reads.

use std::collections::BTreeMap;

use doorway_core::{Mode, NodeId};

use crate::{Choice, Step, Violation, World};

/// Something that happened at a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The time: in message delays for the simulator, in steps for a script or a counterexample,
    /// in milliseconds for what real nodes recorded.
    pub at: f64,
    /// The node at which it happened.
    pub node: NodeId,
    /// What happened.
    pub what: EventKind,
}

/// The kinds of events.
#[derive(Clone, Debug, PartialEq)]
pub enum EventKind {
    /// The node begins to wait.
    Acquire(Mode),
    /// The node goes inside.
    Enter,
    /// The node leaves.
    Release,
    /// The node no longer waits: its client has given up.
    Withdraw,
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
    /// The node stops forever.
    Crash,
    /// The node learns that another one crashed.
    Detect(NodeId),
    /// The node forgets the lock.
    Forget,
    /// A new view begins: a node that is inside stays inside, a node that waits asks again.
    View {
        /// The number of the view.
        number: u64,
        /// How many permits the node holds.
        held: u32,
        /// The mode in which it holds them.
        mode: Mode,
    },
    /// The node takes no part in what follows, for the reason given: it was stopped, or its
    /// recording ended.
    Stop(&'static str),
    /// The node does something else, in words that follow its name: "consumes item 3".
    Act(String),
    /// Something that must never happen did.
    Violate(Violation),
}

/// How a node stands before the first event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Opening {
    /// How many permits it holds.
    pub held: u32,
    /// The mode in which it is inside; meaningful while `held` is not zero.
    pub mode: Mode,
    /// The mode in which it waits, if it does.
    pub waiting: Option<Mode>,
}

/// A recorded run.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// What was run, for the heading.
    pub title: String,
    /// How many nodes there are.
    pub size: u32,
    /// The names of the nodes, in order; empty if they are called by their numbers.
    pub names: Vec<String>,
    /// The unit of time, for the axis: "steps", "message delays" (simulator) or "milliseconds"
    /// (recording).
    pub unit: &'static str,
    /// The nodes that are inside or wait before the first event, as far as that is known. Only
    /// recordings of a lock in use tell it.
    pub opening: BTreeMap<NodeId, Opening>,
    /// The events in the order in which they happened.
    pub events: Vec<Event>,
    /// The state of the acting node after the event at an index, as text, once for each step.
    /// Scripts and counterexamples tell it, and a simulation if it is asked for it.
    pub states: BTreeMap<usize, String>,
    /// The state of every node before the first event, if states are told.
    pub begin: Vec<String>,
}

impl Trace {
    /// An empty trace of a group of `size`, its time in steps.
    pub fn new(title: impl Into<String>, size: u32) -> Self {
        Self {
            title: title.into(),
            size,
            names: Vec::new(),
            unit: "steps",
            opening: BTreeMap::new(),
            events: Vec::new(),
            states: BTreeMap::new(),
            begin: Vec::new(),
        }
    }

    /// Append one event.
    pub fn push(&mut self, at: f64, node: NodeId, what: EventKind) {
        self.events.push(Event { at, node, what });
    }

    /// Take note of the states in which the nodes begin.
    pub fn note_begin(&mut self, world: &World) {
        let text = |node| world.nodes().member(node).algorithm_text();
        self.begin = world.group().nodes().map(text).collect();
    }

    /// Take note of the state in which the last event has left its node.
    pub fn note_state(&mut self, world: &World) {
        let Some(last) = self.events.len().checked_sub(1) else { return };
        let node = self.events[last].node;
        self.states.insert(last, world.nodes().member(node).algorithm_text());
    }

    /// Keep the first events of a trace that has more than `most`; its title then says so.
    pub fn keep_first(&mut self, most: usize) {
        if self.events.len() > most {
            self.events.truncate(most);
            self.title = format!("{}, the first {most} events", self.title);
        }
    }

    /// What a reader calls a node: its name if it has one, else "node 2".
    pub fn name(&self, node: NodeId) -> String {
        let known = self.names.get(node.index()).cloned();
        known.unwrap_or_else(|| format!("node {node}"))
    }

    /// The sentence that describes a violation, with the names of the nodes.
    pub fn describe(&self, violation: &Violation) -> String {
        let names = |nodes: &[NodeId]| {
            nodes.iter().map(|node| self.name(*node)).collect::<Vec<_>>().join(", ")
        };
        match violation {
            _ if self.names.is_empty() => violation.to_string(),
            Violation::Together(nodes) => format!("{} are inside together", names(nodes)),
            Violation::Rejected { node, reason } => {
                format!("{} rejected {reason}", self.name(*node))
            }
            Violation::Breach { node, breach } => {
                format!("{} broke the contract: {breach}", self.name(*node))
            }
            other => other.to_string(),
        }
    }

    /// Append what a step of a world did.
    pub fn record(&mut self, at: f64, step: &Step) {
        let id = step.message.as_ref().map_or(0, |letter| letter.id);
        let (node, what) = match step.choice {
            Choice::Start(node) => (node, None),
            Choice::Acquire(node, mode) => (node, Some(EventKind::Acquire(mode))),
            Choice::Release(node) => (node, Some(EventKind::Release)),
            Choice::Withdraw(node) => (node, Some(EventKind::Withdraw)),
            Choice::Deliver(position) | Choice::Duplicate(position) => {
                (position.to, Some(EventKind::Receive { id }))
            }
            Choice::Drop(position) => (position.to, Some(EventKind::Lose { id })),
            Choice::Crash(node) => (node, Some(EventKind::Crash)),
            Choice::Detect { node, failed } => (node, Some(EventKind::Detect(failed))),
            Choice::Forget(node) => (node, Some(EventKind::Forget)),
        };
        let sends = step.sends.iter().map(|(to, letter)| {
            let message = format!("{:?}", letter.body);
            EventKind::Send { id: letter.id, to: *to, message }
        });
        let entered = step.entered.then_some(EventKind::Enter);
        let violation = step.violation.clone().map(EventKind::Violate);
        for what in what.into_iter().chain(entered).chain(sends).chain(violation) {
            self.push(at, node, what);
        }
    }
}

/// The kind of a message: the first word of its text.
pub fn kind(message: &str) -> &str {
    message.split(|c: char| !c.is_alphanumeric()).next().unwrap_or(message)
}
