//! What can be said of a waiting node from the graph alone: how often it is overtaken, and in which
//! cycles it might wait for ever.

use doorway_search::{Deed, Graph, Tag, Waits, components};

use super::Waiting;

/// A node, and states that can be gone round while it waits.
pub(super) type Round = (usize, Vec<u32>);

/// What the graph says about waiting, and where a node may wait for ever: each time the node, and
/// states that can be gone round. `first` has a bit for each node that waits in the beginning.
/// `None` if it was stopped.
pub(super) fn look(
    graph: &Graph,
    first: u32,
    size: usize,
    go_on: &mut dyn FnMut() -> bool,
) -> Option<(Waiting, Vec<Round>)> {
    let waiting = waiting(graph, first);
    let mut overtaken = Some(0);
    let mut rounds = Vec::new();
    for node in 0..size {
        if !go_on() {
            return None;
        }
        let waits = Waits::of(
            graph,
            |state| waiting[state as usize] & 1 << node != 0,
            |tag| tag.entered() && tag.actor() != node,
        );
        overtaken = overtaken.zip(waits.overtaken).map(|(one, other)| one.max(other));
        rounds.extend(waits.rounds.into_iter().map(|round| (node, round)));
    }
    Some((Waiting { overtaken, messages: messages(graph) }, rounds))
}

/// Who waits in each state, a bit for each node.
fn waiting(graph: &Graph, first: u32) -> Vec<u32> {
    let mut waiting = vec![0; graph.states() as usize];
    waiting[0] = first;
    for state in 0..graph.states() {
        // A state is reached from an earlier one first, so this is known by now.
        let before = waiting[state as usize];
        for (_, target, tag) in graph.steps(state) {
            waiting[target as usize] = after(before, tag);
        }
    }
    waiting
}

fn after(waiting: u32, tag: Tag) -> u32 {
    let actor = 1 << tag.actor();
    match tag.deed() {
        Deed::Asked => waiting | actor,
        Deed::Entered | Deed::Crashed => waiting & !actor,
        Deed::None | Deed::AskedAndEntered => waiting,
    }
}

/// The fewest and the most messages from beginning to end, over all runs; `None` if a run can go
/// round in a circle.
fn messages(graph: &Graph) -> Option<(u64, u64)> {
    let mut extremes = vec![(0, 0); graph.states() as usize];
    let mut circles = false;
    components(
        graph,
        |_| true,
        |members| {
            let [state] = *members else {
                circles = true;
                return;
            };
            let (mut fewest, mut most) = (u64::MAX, 0);
            for (_, target, tag) in graph.steps(state) {
                circles |= target == state;
                let (few, many) = extremes[target as usize];
                fewest = fewest.min(few + tag.sends());
                most = most.max(many + tag.sends());
            }
            extremes[state as usize] = if fewest == u64::MAX { (0, 0) } else { (fewest, most) };
        },
    );
    (!circles).then_some(extremes[0])
}
