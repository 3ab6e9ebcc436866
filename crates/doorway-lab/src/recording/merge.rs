//! Merges the steps of all nodes into one order: by view, then by cause, then by time.

use std::collections::{BTreeMap, BTreeSet};

use doorway_core::NodeId;

use super::Problem;
use super::files::GroupRecording;
use super::steps::{Cause, Step};

/// Put the steps of all nodes in order.
pub(super) fn merge(recorded: &GroupRecording) -> Result<Vec<Step>, Problem> {
    let all = || recorded.nodes.iter().flat_map(|node| &node.steps);
    let views: BTreeSet<u64> = all().map(|step| step.view).collect();
    let mut cursors = vec![0; recorded.nodes.len()];
    let mut merged = Vec::with_capacity(all().count());
    for view in views {
        let mut turn = ViewMerge { recorded, view, cursors: &mut cursors, sent: BTreeMap::new() };
        while let Some(step) = turn.next()? {
            merged.push(step.clone());
        }
    }
    Ok(merged)
}

/// The merging of one view.
struct ViewMerge<'a> {
    recorded: &'a GroupRecording,
    view: u64,
    /// How many steps of each node have been merged.
    cursors: &'a mut [usize],
    /// How many messages are in transit from one node to another.
    sent: BTreeMap<(NodeId, NodeId), usize>,
}

impl<'a> ViewMerge<'a> {
    /// The next step of a node in this view.
    fn head(&self, node: usize) -> Option<&'a Step> {
        let steps = &self.recorded.nodes[node].steps;
        steps.get(self.cursors[node]).filter(|step| step.view == self.view)
    }

    /// Has everything that must come before this step been merged?
    fn ready(&self, step: &Step) -> bool {
        let Cause::Receive { from, early: false, .. } = step.cause else { return true };
        let under_way = self.sent.get(&(from, step.node)).is_some_and(|count| *count > 0);
        let unrecorded = || {
            self.head(from.index()).is_none()
                && self.recorded.nodes[from.index()].may_lack(self.view)
        };
        under_way || unrecorded()
    }

    fn next(&mut self) -> Result<Option<&'a Step>, Problem> {
        let heads = || (0..self.cursors.len()).filter_map(|node| self.head(node));
        let Some(step) = heads().filter(|step| self.ready(step)).min_by_key(|step| step.at) else {
            return match heads().next() {
                Some(step) => Err(self.unexplained(step)),
                None => Ok(None),
            };
        };
        self.cursors[step.node.index()] += 1;
        if let Cause::Receive { from, early: false, .. } = step.cause
            && let Some(count) = self.sent.get_mut(&(from, step.node))
        {
            *count = count.saturating_sub(1);
        }
        for (to, _) in &step.sends {
            *self.sent.entry((step.node, *to)).or_default() += 1;
        }
        Ok(Some(step))
    }

    fn unexplained(&self, step: &Step) -> Problem {
        let file = |node: NodeId| &self.recorded.nodes[node.index()].file;
        let sender = match step.cause {
            Cause::Receive { from, .. } => from,
            _ => step.node,
        };
        let reason = format!("{} does not say that this message was sent", file(sender));
        Problem::at(file(step.node), step.line, reason)
    }
}
