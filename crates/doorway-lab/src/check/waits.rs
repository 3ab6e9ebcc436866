//! What the graph of all steps says about waiting: how often a node is overtaken, and in which
//! cycles it might wait forever.

use doorway_search::{ClientEvent, Graph, Tag, WaitAnalysis, components};

use super::WaitBounds;

/// A node, and the states of a cycle in which it waits.
pub(super) type Round = (usize, Vec<u32>);

/// Measure waiting, and find the cycles in which a node may wait forever. `first` has a bit for
/// each node that waits in the first world. `None` if `go_on` stopped it.
pub(super) fn look(
    graph: &Graph,
    first: u32,
    size: usize,
    go_on: &mut dyn FnMut() -> bool,
) -> Option<(WaitBounds, Vec<Round>)> {
    let waiting = waiting(graph, first);
    let mut overtaken = Some(0);
    let mut rounds = Vec::new();
    for node in 0..size {
        if !go_on() {
            return None;
        }
        let waits = WaitAnalysis::of(
            graph,
            |state| waiting[state as usize] & 1 << node != 0,
            |tag| tag.entered() && tag.actor() != node,
        );
        overtaken = overtaken.zip(waits.overtaken).map(|(one, other)| one.max(other));
        rounds.extend(waits.rounds.into_iter().map(|round| (node, round)));
    }
    Some((WaitBounds { overtaken, messages: messages(graph) }, rounds))
}

/// The nodes that wait in each state, a bit for each node.
fn waiting(graph: &Graph, first: u32) -> Vec<u32> {
    let mut waiting = vec![0; graph.states() as usize];
    waiting[0] = first;
    for state in 0..graph.states() {
        // A state is first reached from an earlier one, so its entry is set by now.
        let before = waiting[state as usize];
        for (_, target, tag) in graph.steps(state) {
            waiting[target as usize] = after(before, tag);
        }
    }
    waiting
}

fn after(waiting: u32, tag: Tag) -> u32 {
    let actor = 1 << tag.actor();
    match tag.client_event() {
        ClientEvent::Asked => waiting | actor,
        ClientEvent::Entered | ClientEvent::Crashed | ClientEvent::Withdrew => waiting & !actor,
        ClientEvent::None | ClientEvent::AskedAndEntered => waiting,
    }
}

/// The fewest and the most messages of a run from beginning to end; `None` if a run can go round in
/// a cycle.
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
