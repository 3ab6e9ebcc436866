//! The steps of a recording as a trace.

use std::collections::{BTreeMap, VecDeque};

use doorway_core::{NodeId, NodeSet};

use super::files::GroupRecording;
use super::steps::{Cause, Step};
use crate::trace::{EventKind, Opening};
use crate::{Trace, Violation};

/// If the clocks of two nodes differ by more than this, in microseconds, times are not shown.
const AGREE: u64 = 1000;

/// The trace of these steps, with the violation at one of them if there is one.
pub(super) fn tell(
    recorded: &GroupRecording,
    steps: &[Step],
    found: Option<&(usize, Violation)>,
) -> Trace {
    let GroupRecording { algorithm, lock, group, members, nodes, .. } = recorded;
    let title = format!("{algorithm}, lock {lock} of group {group}");
    let mut trace = Trace::new(title, nodes.len() as u32);
    trace.names.clone_from(members);
    let (partial, course) = (recorded.partial, Course::default());
    let mut teller = Teller { trace, partial, view: None, now: 0.0, sent: 0, course };
    let times = times(steps);
    if times.is_some() {
        teller.trace.unit = "milliseconds";
    }
    for (index, step) in steps.iter().enumerate() {
        teller.now = times.as_ref().map_or(index as f64, |times| times[index]);
        teller.step(step);
        if let Some((_, violation)) = found.filter(|(at, _)| *at == index) {
            teller.push(step.node, EventKind::Violate(violation.clone()));
        }
    }
    teller.trace
}

/// The times of the steps in milliseconds since the first, if the clocks of the nodes agree.
fn times(steps: &[Step]) -> Option<Vec<f64>> {
    let first = steps.first()?.at;
    let mut latest = first;
    let mut times = Vec::with_capacity(steps.len());
    for step in steps {
        if step.at + AGREE < latest {
            return None;
        }
        latest = latest.max(step.at);
        times.push((latest - first) as f64 / 1000.0);
    }
    Some(times)
}

struct Teller {
    trace: Trace,
    /// Whether the recording begins while the lock is in use.
    partial: bool,
    view: Option<u64>,
    now: f64,
    /// How many messages have been sent so far.
    sent: u64,
    course: Course,
}

/// The state of the lock in a view.
#[derive(Default)]
struct Course {
    /// The messages in transit from one node to another.
    lines: BTreeMap<(NodeId, NodeId), VecDeque<u64>>,
    /// The nodes at which the lock has begun.
    begun: NodeSet,
    /// The nodes that wait.
    waiting: NodeSet,
    /// How many permits each node holds.
    held: BTreeMap<NodeId, u32>,
}

impl Teller {
    fn push(&mut self, node: NodeId, what: EventKind) {
        self.trace.push(self.now, node, what);
    }

    fn step(&mut self, step: &Step) {
        let node = step.node;
        if self.view != Some(step.view) {
            self.begin_view(step);
        }
        match &step.cause {
            Cause::Begin(start) => {
                let again = !self.course.begun.insert(node);
                if again {
                    self.push(node, EventKind::Forget);
                } else if let Some(holder) = start.holder(node).filter(|_| self.partial) {
                    // Another node may have begun to be recorded in this view, and tells of itself
                    // alone.
                    let (number, held, mode) = (step.view, holder.permits, holder.mode);
                    self.course.held.insert(node, held);
                    self.push(node, EventKind::View { number, held, mode });
                }
            }
            Cause::Stand(opening) => {
                self.course.begun.insert(node);
                self.course.held.insert(node, opening.held);
                if opening.waiting.is_some() {
                    self.course.waiting.insert(node);
                }
                let Opening { held, mode, waiting } = *opening;
                if self.trace.events.is_empty() {
                    self.trace.opening.insert(node, *opening);
                } else {
                    // Other nodes have been recorded for a while. How this one stood before is not
                    // known.
                    if held > 0 {
                        self.push(node, EventKind::View { number: step.view, held, mode });
                    }
                    if let Some(mode) = waiting {
                        self.push(node, EventKind::Acquire(mode));
                    }
                }
            }
            Cause::Acquire(mode) => {
                self.course.waiting.insert(node);
                self.push(node, EventKind::Acquire(*mode));
            }
            Cause::Release => {
                let held = self.course.held.entry(node).or_default();
                *held = held.saturating_sub(1);
                self.push(node, EventKind::Release);
            }
            Cause::Withdraw => {
                self.course.waiting.remove(node);
                self.push(node, EventKind::Withdraw);
            }
            Cause::Receive { early: true, .. } => {
                let id = self.number();
                self.push(node, EventKind::Receive { id });
            }
            Cause::Receive { from, .. } => {
                let line = self.course.lines.entry((*from, node)).or_default();
                let id = line.pop_front().unwrap_or_else(|| self.number());
                self.push(node, EventKind::Receive { id });
            }
            // This is shown as a violation.
            Cause::Break(_) => {}
            Cause::Crash => self.leave(node, EventKind::Crash),
            Cause::Stop(how) => self.leave(node, EventKind::Stop(how)),
        }
        if step.entered {
            self.course.waiting.remove(node);
            *self.course.held.entry(node).or_default() += 1;
            self.push(node, EventKind::Enter);
        }
        for (to, message) in &step.sends {
            let id = self.number();
            self.course.lines.entry((node, *to)).or_default().push_back(id);
            self.push(node, EventKind::Send { id, to: *to, message: message.clone() });
        }
    }

    fn number(&mut self) -> u64 {
        self.sent += 1;
        self.sent - 1
    }

    /// A node leaves the group; this is shown if it was waiting or inside.
    fn leave(&mut self, node: NodeId, what: EventKind) {
        let held = self.course.held.remove(&node).is_some_and(|held| held > 0);
        if self.course.waiting.remove(node) || held {
            self.push(node, what);
        }
    }

    /// A view begins: messages in transit are lost, and a node that is not inside stops waiting.
    fn begin_view(&mut self, step: &Step) {
        let first = self.view.replace(step.view).is_none();
        let course = std::mem::take(&mut self.course);
        for ((_, to), ids) in course.lines {
            for id in ids {
                self.push(to, EventKind::Lose { id });
            }
        }
        let Cause::Begin(start) = &step.cause else { return };
        for node in (0..self.trace.size).map(NodeId) {
            let holder = start.holder(node);
            let (held, mode) = holder.map_or_else(Default::default, |h| (h.permits, h.mode));
            self.course.held.insert(node, held);
            if !first {
                self.push(node, EventKind::View { number: step.view, held, mode });
            }
        }
    }
}
