//! The algorithm stepped through what has happened, to see whether it could.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use doorway_core::algorithms::{self, Task};
use doorway_core::{Algorithm, Effects, Group, Input, NodeId, NodeSet, Phase, Start};

use super::files::Recorded;
use super::steps::{Cause, Step};
use crate::{Nodes, Opening, Violation};

/// The first thing that must never happen, and the step at which it did.
pub(super) fn replay(recorded: &Recorded, steps: &[Step]) -> Option<(usize, Violation)> {
    let found = algorithms::with(recorded.algorithm, Replay { recorded, steps });
    found.expect("the algorithm was found in the list")
}

struct Replay<'a> {
    recorded: &'a Recorded,
    steps: &'a [Step],
}

impl Task for Replay<'_> {
    type Output = Option<(usize, Violation)>;

    fn run<A: Algorithm>(self) -> Self::Output {
        let mut run = Run::<'_, A> {
            recorded: self.recorded,
            group: Arc::new(self.recorded.arranged.clone()),
            view: None,
            start: Start::default(),
            nodes: None,
            opening: Vec::new(),
            begun: NodeSet::new(),
            gone: NodeSet::new(),
            lines: BTreeMap::new(),
        };
        let mut steps = self.steps.iter().enumerate();
        steps.find_map(|(index, step)| run.step(step).err().map(|violation| (index, violation)))
    }
}

/// A lock in one view.
struct Run<'a, A: Algorithm> {
    recorded: &'a Recorded,
    group: Arc<Group>,
    view: Option<u64>,
    /// How the view began.
    start: Start,
    /// Unknown from where a message arrives of which nobody has recorded what it was.
    nodes: Option<Nodes<A>>,
    /// What each node does as the lock begins there, with the view's own start.
    opening: Opening<A>,
    /// Where the lock has begun in this view.
    begun: NodeSet,
    /// Who has no part in this view any more.
    gone: NodeSet,
    /// The messages from one node to another.
    lines: BTreeMap<(NodeId, NodeId), VecDeque<A::Message>>,
}

impl<A: Algorithm> Run<'_, A> {
    fn step(&mut self, step: &Step) -> Result<(), Violation> {
        let node = step.node;
        if let Cause::Break(why) = &step.cause {
            return claim(format!("the lock is out of order at node {node}: {why}"));
        }
        if self.view != Some(step.view) {
            self.turn(step)?;
        }
        let Some(nodes) = &mut self.nodes else { return Ok(()) };
        let member = nodes.member(node);
        let input = match &step.cause {
            Cause::Begin(start) => return self.begin(step, start),
            Cause::Crash | Cause::Stop(_) => {
                if self.gone.insert(node) {
                    nodes.crash(node);
                }
                return Ok(());
            }
            _ if !self.begun.contains(node) => {
                return claim(format!("node {node} takes part before the lock began there"));
            }
            _ if self.gone.contains(node) => {
                return claim(format!("node {node} takes part after it had left the view"));
            }
            Cause::Acquire(mode) if member.may_acquire(&self.group, *mode) => Input::Acquire(*mode),
            Cause::Release if member.may_release() => Input::Release,
            Cause::Receive { from, refused: Some(why) } => {
                return claim(format!("node {node} refused a message of node {from}: {why}"));
            }
            Cause::Receive { from, .. } => {
                let message = self.lines.get_mut(&(*from, node)).and_then(VecDeque::pop_front);
                let Some(message) = message else {
                    self.nodes = None;
                    return Ok(());
                };
                Input::Receive { from: *from, message }
            }
            _ => return claim(format!("node {node} asks or leaves when no node could")),
        };
        let mut out = Effects::default();
        nodes.step(node, input, &mut out)?;
        self.perform(step, out)
    }

    /// Send what the algorithm sends, if the node did what its algorithm does.
    fn perform(&mut self, step: &Step, mut out: Effects<A::Message>) -> Result<(), Violation> {
        compare(step, &out)?;
        for (to, message) in out.drain() {
            self.lines.entry((step.node, to)).or_default().push_back(message);
        }
        Ok(())
    }

    /// A view begins, with those inside who were so at the end of the last.
    fn turn(&mut self, step: &Step) -> Result<(), Violation> {
        let view = step.view;
        let Cause::Begin(start) = &step.cause else {
            return claim(format!("node {} takes part before view {view} began", step.node));
        };
        start.check(&A::INFO, &self.group).or_else(|error| claim(error.to_string()))?;
        if let Some(nodes) = &self.nodes {
            for node in self.group.nodes() {
                let held = if self.gone.contains(node) { 0 } else { nodes.member(node).held() };
                let known = start.holder(node).map_or(0, |holder| holder.permits);
                let before = self.view.unwrap_or_default();
                if held != known && !self.recorded.nodes[node.index()].may_lack(before) {
                    return claim(format!(
                        "node {node} held {held} as view {view} began, and by the view {known}"
                    ));
                }
            }
        }
        self.view = Some(view);
        self.start = start.clone();
        let (nodes, opening) = Nodes::begin(Arc::clone(&self.group), start)?;
        (self.nodes, self.opening) = (Some(nodes), opening);
        self.begun = NodeSet::new();
        self.gone = NodeSet::new();
        self.lines.clear();
        Ok(())
    }

    /// The lock begins at one more node, or again where it was forgotten.
    fn begin(&mut self, step: &Step, start: &Start) -> Result<(), Violation> {
        let node = step.node;
        let Some(nodes) = &mut self.nodes else { return Ok(()) };
        start.check(&A::INFO, &self.group).or_else(|error| claim(error.to_string()))?;
        let again = !self.begun.insert(node);
        let mut out = std::mem::take(&mut self.opening[node.index()]);
        if again || *start != self.start {
            if nodes.member(node).phase() != Phase::Outside || start.holder(node).is_some() {
                return claim(format!("node {node} begins anew though it waits or is inside"));
            }
            nodes.begin_again(node, start, &mut out)?;
        }
        self.perform(step, out)
    }
}

/// Did the node do what its algorithm does?
fn compare<M: std::fmt::Debug>(step: &Step, out: &Effects<M>) -> Result<(), Violation> {
    let right: Vec<_> =
        out.sends().iter().map(|(to, message)| (*to, format!("{message:?}"))).collect();
    if (step.entered, &step.sends) == (out.entered(), &right) {
        return Ok(());
    }
    let tell = |entered: bool, sends: &[(NodeId, String)]| {
        let mut parts = Vec::from_iter(entered.then(|| "enters".to_owned()));
        parts.extend(sends.iter().map(|(to, message)| format!("sends {message} to node {to}")));
        if parts.is_empty() { "does nothing".to_owned() } else { parts.join(" and ") }
    };
    claim(format!(
        "node {} {}, where its algorithm {}",
        step.node,
        tell(step.entered, &step.sends),
        tell(out.entered(), &right)
    ))
}

fn claim<T>(what: String) -> Result<T, Violation> {
    Err(Violation::Claim(what))
}
