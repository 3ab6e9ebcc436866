//! Steps the algorithm through a recording, to see whether every node did what it should.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use doorway_core::{Effects, Group, Input, NodeId, NodeSet, Phase, Start};

use super::files::GroupRecording;
use super::steps::{Cause, Step};
use crate::erased::{AnyAlgorithm, AnyMessage};
use crate::{Nodes, Violation};

/// The first violation, and the index of its step.
pub(super) fn replay(recorded: &GroupRecording, steps: &[Step]) -> Option<(usize, Violation)> {
    let algorithm =
        AnyAlgorithm::named(recorded.algorithm).expect("the algorithm was found in the list");
    let mut run = Run {
        algorithm,
        recorded,
        group: Arc::new(recorded.arranged.clone()),
        view: None,
        start: Start::default(),
        nodes: None,
        opening: Vec::new(),
        begun: NodeSet::new(),
        gone: NodeSet::new(),
        lines: BTreeMap::new(),
    };
    let mut steps = steps.iter().enumerate();
    steps.find_map(|(index, step)| run.step(step).err().map(|violation| (index, violation)))
}

/// The members of a lock, driven through the steps of a recording.
struct Run<'a> {
    algorithm: AnyAlgorithm,
    recorded: &'a GroupRecording,
    group: Arc<Group>,
    view: Option<u64>,
    /// The state with which the view began.
    start: Start,
    /// The members. `None` after a message that no node has recorded as sent: its contents are not
    /// known, so nothing can be checked until the next view.
    nodes: Option<Nodes>,
    /// What each node does as the lock begins there, with the view's own start.
    opening: Vec<Effects<AnyMessage>>,
    /// The nodes at which the lock has begun in this view.
    begun: NodeSet,
    /// The nodes that have left this view.
    gone: NodeSet,
    /// The messages in transit from one node to another.
    lines: BTreeMap<(NodeId, NodeId), VecDeque<AnyMessage>>,
}

impl Run<'_> {
    fn step(&mut self, step: &Step) -> Result<(), Violation> {
        let node = step.node;
        if let Cause::Break(why) = &step.cause {
            return claim(format!("the lock is out of order at {}: {why}", self.name(node)));
        }
        if self.view != Some(step.view) {
            self.begin_view(step)?;
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
                return claim(format!(
                    "{} takes part before the lock began there",
                    self.name(node)
                ));
            }
            _ if self.gone.contains(node) => {
                return claim(format!("{} takes part after it left the view", self.name(node)));
            }
            Cause::Acquire(mode) if member.may_acquire(&self.group, *mode) => Input::Acquire(*mode),
            Cause::Release if member.may_release() => Input::Release,
            Cause::Withdraw if member.may_withdraw() => Input::Withdraw,
            Cause::Receive { from, refused: Some(why), .. } => {
                return claim(format!(
                    "{} refused a message of {}: {why}",
                    self.name(node),
                    self.name(*from)
                ));
            }
            Cause::Receive { from, .. } => {
                let message = self.lines.get_mut(&(*from, node)).and_then(VecDeque::pop_front);
                let Some(message) = message else {
                    self.nodes = None;
                    return Ok(());
                };
                Input::Receive { from: *from, message }
            }
            _ => {
                return claim(format!(
                    "{} acquires, releases or withdraws when it cannot",
                    self.name(node)
                ));
            }
        };
        let mut out = Effects::default();
        nodes.step(node, input, &mut out)?;
        self.perform(step, out)
    }

    /// Send what the algorithm sends, if the node did what its algorithm does.
    fn perform(&mut self, step: &Step, mut out: Effects<AnyMessage>) -> Result<(), Violation> {
        self.compare(step, &out)?;
        for (to, message) in out.drain() {
            self.lines.entry((step.node, to)).or_default().push_back(message);
        }
        Ok(())
    }

    /// Begin a view. The nodes inside must be those that were inside at the end of the last one.
    fn begin_view(&mut self, step: &Step) -> Result<(), Violation> {
        let view = step.view;
        let Cause::Begin(start) = &step.cause else {
            return claim(format!("{} takes part before view {view} began", self.name(step.node)));
        };
        start
            .check(self.algorithm.info(), &self.group)
            .or_else(|error| claim(error.to_string()))?;
        if let Some(nodes) = &self.nodes {
            for node in self.group.nodes() {
                let held = if self.gone.contains(node) { 0 } else { nodes.member(node).held() };
                let known = start.holder(node).map_or(0, |holder| holder.permits);
                let before = self.view.unwrap_or_default();
                if held != known && !self.recorded.nodes[node.index()].may_lack(before) {
                    return claim(format!(
                        "{} held {held} permits as view {view} began; the view says {known}",
                        self.name(node)
                    ));
                }
            }
        }
        self.view = Some(view);
        self.start = start.clone();
        let (nodes, opening) = Nodes::begin(self.algorithm, Arc::clone(&self.group), start)?;
        (self.nodes, self.opening) = (Some(nodes), opening);
        self.begun = NodeSet::new();
        self.gone = NodeSet::new();
        self.lines.clear();
        Ok(())
    }

    /// The lock begins at one more node, or begins again at a node that had forgotten it.
    fn begin(&mut self, step: &Step, start: &Start) -> Result<(), Violation> {
        let node = step.node;
        let Some(nodes) = &mut self.nodes else { return Ok(()) };
        start
            .check(self.algorithm.info(), &self.group)
            .or_else(|error| claim(error.to_string()))?;
        let again = !self.begun.insert(node);
        let mut out = std::mem::take(&mut self.opening[node.index()]);
        if again || *start != self.start {
            if nodes.member(node).phase() != Phase::Outside || start.holder(node).is_some() {
                return claim(format!(
                    "{} begins again although it waits or is inside",
                    self.recorded.members[node.index()]
                ));
            }
            nodes.begin_again(node, start, &mut out)?;
        }
        self.perform(step, out)
    }

    /// Check that the node did what its algorithm does.
    fn compare(&self, step: &Step, out: &Effects<AnyMessage>) -> Result<(), Violation> {
        let sends = out.sends().iter();
        let right: Vec<_> = sends.map(|(to, message)| (*to, format!("{message:?}"))).collect();
        if (step.entered, &step.sends) == (out.entered(), &right) {
            return Ok(());
        }
        let tell = |entered: bool, sends: &[(NodeId, String)]| {
            let mut parts = Vec::from_iter(entered.then(|| "enters".to_owned()));
            let send =
                |(to, message): &(NodeId, String)| format!("sends {message} to {}", self.name(*to));
            parts.extend(sends.iter().map(send));
            if parts.is_empty() { "does nothing".to_owned() } else { parts.join(" and ") }
        };
        claim(format!(
            "{} {}, where its algorithm {}",
            self.name(step.node),
            tell(step.entered, &step.sends),
            tell(out.entered(), &right)
        ))
    }

    /// The name of a node in the recording.
    fn name(&self, node: NodeId) -> &str {
        &self.recorded.members[node.index()]
    }
}

fn claim<T>(what: String) -> Result<T, Violation> {
    Err(Violation::Claim(what))
}
