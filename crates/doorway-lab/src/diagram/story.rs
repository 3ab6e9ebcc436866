//! A trace read as a story: when each node waited and was inside, and what became of each message.

use std::collections::{BTreeMap, BTreeSet};

use doorway_core::{Mode, NodeId};

use crate::canvas::number;
use crate::trace::{Event, EventKind, Opening};
use crate::{Trace, Violation};

/// The state of a node as a picture shows it: outside, waiting, inside or crashed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct NodeState {
    /// The mode of its open request.
    pub(super) waiting: Option<Mode>,
    /// How many permits it holds: 1 inside, unless permits are served.
    pub(super) held: u32,
    /// The mode in which it is inside; meaningful while `held` is not zero.
    pub(super) mode: Mode,
    /// Has it stopped forever?
    pub(super) crashed: bool,
}

impl NodeState {
    /// The state of the node after an event.
    pub(super) fn after(mut self, what: &EventKind) -> Self {
        match what {
            EventKind::Acquire(mode) => self.waiting = Some(*mode),
            EventKind::Enter => {
                self.mode = self.waiting.take().unwrap_or(self.mode);
                self.held += 1;
            }
            EventKind::Release => self.held = self.held.saturating_sub(1),
            EventKind::Withdraw => self.waiting = None,
            EventKind::Crash => self = Self { crashed: true, ..Self::default() },
            EventKind::View { held, mode, .. } => {
                self = Self { held: *held, mode: *mode, ..Self::default() };
            }
            EventKind::Stop(_) => self = Self::default(),
            _ => {}
        }
        self
    }

    /// Is the node waiting or inside?
    pub(super) fn busy(self) -> bool {
        self.waiting.is_some() || self.held > 0
    }

    /// The state in words.
    pub(super) fn name(self) -> String {
        let shared = |mode| if mode == Mode::Shared { ", shared" } else { "" };
        let waiting = self.waiting.map(|mode| format!("waiting{}", shared(mode)));
        let inside = match self.held {
            0 => None,
            1 => Some(format!("inside{}", shared(self.mode))),
            held => Some(format!("inside with {held} permits{}", shared(self.mode))),
        };
        [inside, waiting].into_iter().flatten().collect::<Vec<_>>().join(" and ")
    }
}

/// The state of each node before the first event, if the trace tells it. Otherwise a node that
/// leaves without having entered was inside from the beginning.
pub(super) fn opening(trace: &Trace, events: &[Event]) -> BTreeMap<NodeId, NodeState> {
    let mut balances = BTreeMap::<NodeId, (i64, i64)>::new();
    for event in events {
        let (balance, least) = balances.entry(event.node).or_default();
        *balance +=
            i64::from(event.what == EventKind::Enter) - i64::from(event.what == EventKind::Release);
        *least = (*least).min(*balance);
    }
    let held = |least: i64| u32::try_from(-least).unwrap_or_default();
    let standing = |least| NodeState { held: held(least), ..NodeState::default() };
    let told = trace.opening.iter().map(|(node, Opening { held, mode, waiting })| {
        (*node, NodeState { waiting: *waiting, held: *held, mode: *mode, crashed: false })
    });
    balances.into_iter().map(|(node, (_, least))| (node, standing(least))).chain(told).collect()
}

/// A stretch of time that a node spent waiting or inside.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stay {
    pub(super) node: NodeId,
    pub(super) since: f64,
    pub(super) until: f64,
    /// Does the stay go on after the trace? `until` is then the time of the last event.
    pub(super) open: bool,
    pub(super) standing: NodeState,
}

/// Every stay, in the order in which they end. A wait of length zero is left out; a visit of
/// length zero is kept.
pub(super) fn stays(trace: &Trace, events: &[Event]) -> Vec<Stay> {
    let (Some(first), Some(last)) = (events.first(), events.last()) else { return Vec::new() };
    let begin = |(node, standing)| (node, (first.at, standing));
    let mut now: BTreeMap<_, _> = opening(trace, events).into_iter().map(begin).collect();
    let mut stays = Vec::new();
    let mut close = |node, since, until, open: bool, standing: NodeState| {
        if standing.held > 0 || (standing.busy() && (open || until > since)) {
            stays.push(Stay { node, since, until, open, standing });
        }
    };
    for event in events {
        let (since, standing) = now[&event.node];
        let after = standing.after(&event.what);
        if after != standing {
            close(event.node, since, event.at, false, standing);
            now.insert(event.node, (event.at, after));
        }
    }
    for (node, (since, standing)) in now {
        close(node, since, last.at, true, standing);
    }
    stays
}

/// A message and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Flight<'a> {
    pub(super) id: u64,
    pub(super) from: NodeId,
    pub(super) to: NodeId,
    pub(super) message: &'a str,
    pub(super) sent: f64,
    /// When it arrived; several times if it was duplicated.
    pub(super) arrived: Vec<f64>,
    /// When it was lost.
    pub(super) lost: Option<f64>,
}

/// Every message sent, in the order of their numbers.
pub(super) fn flights(events: &[Event]) -> BTreeMap<u64, Flight<'_>> {
    let mut flights = BTreeMap::new();
    for event in events {
        match &event.what {
            EventKind::Send { id, to, message } => {
                let (id, from, to, sent) = (*id, event.node, *to, event.at);
                let flight =
                    Flight { id, from, to, message, sent, arrived: Vec::new(), lost: None };
                flights.insert(id, flight);
            }
            EventKind::Receive { id } => {
                if let Some(flight) = flights.get_mut(id) {
                    flight.arrived.push(event.at);
                }
            }
            EventKind::Lose { id } => {
                if let Some(flight) = flights.get_mut(id) {
                    flight.lost = Some(event.at);
                }
            }
            _ => {}
        }
    }
    flights
}

/// What happened to a node, on one line, as the rest of a sentence that begins with the node.
pub(super) fn phrase(
    trace: &Trace,
    what: &EventKind,
    flights: &BTreeMap<u64, Flight<'_>>,
) -> String {
    let source = |id: &u64| match flights.get(id) {
        Some(flight) => format!("{} from {}", flight.message, trace.name(flight.from)),
        None => format!("message {id}"),
    };
    let phrase = match what {
        EventKind::Acquire(Mode::Exclusive) => "acquires".into(),
        EventKind::Acquire(Mode::Shared) => "acquires, shared".into(),
        EventKind::Enter => "enters".into(),
        EventKind::Release => "leaves".into(),
        EventKind::Withdraw => "gives up".into(),
        EventKind::Send { to, message, .. } => format!("sends {message} to {}", trace.name(*to)),
        EventKind::Receive { id } => format!("receives {}", source(id)),
        EventKind::Lose { id } => format!("never gets {}: lost", source(id)),
        EventKind::Crash => "crashes".into(),
        EventKind::Detect(node) => format!("learns that {} crashed", trace.name(*node)),
        EventKind::Forget => "forgets the lock".into(),
        EventKind::View { number, held: 0, .. } => format!("begins view {number}"),
        EventKind::View { number, .. } => format!("begins view {number} inside"),
        EventKind::Stop(how) => (*how).into(),
        EventKind::Act(action) => action.clone(),
        EventKind::Violate(violation) => format!("VIOLATION: {}", trace.describe(violation)),
    };
    phrase.replace(char::is_control, " ")
}

/// The nodes that a picture shows: every node of a group of up to `most`, else the first `most`
/// that take part.
pub(super) fn cast(size: u32, events: &[Event], most: usize) -> Vec<NodeId> {
    if size as usize <= most {
        return (0..size).map(NodeId).collect();
    }
    let mut cast = BTreeSet::new();
    for event in events {
        let to = if let EventKind::Send { to, .. } = event.what { Some(to) } else { None };
        for node in [Some(event.node), to].into_iter().flatten() {
            if cast.len() < most && node.0 < size {
                cast.insert(node);
            }
        }
    }
    cast.into_iter().collect()
}

/// A count for a heading: "3 nodes", or "2,000 of 10,000 events" when not all are shown.
pub(super) fn count(shown: usize, all: usize, noun: &str) -> String {
    let plural = if all == 1 { "" } else { "s" };
    let all = number(all as f64);
    match number(shown as f64) {
        shown if shown == all => format!("{all} {noun}{plural}"),
        shown => format!("{shown} of {all} {noun}{plural}"),
    }
}

/// The nodes that a violation is about, in order.
pub(super) fn concerned(violation: &Violation) -> Vec<NodeId> {
    let mut concerned = match violation {
        Violation::Together(nodes) | Violation::Stuck(nodes) => nodes.clone(),
        Violation::Rejected { node, .. }
        | Violation::Breach { node, .. }
        | Violation::Starved(node) => vec![*node],
        Violation::Claim(_) => Vec::new(),
    };
    concerned.sort_unstable();
    concerned
}
