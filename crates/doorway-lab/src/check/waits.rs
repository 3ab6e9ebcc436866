//! What can be said of a waiting node from the graph alone: how often it is overtaken, and in which
//! cycles it might wait for ever.

use super::Waiting;
use super::components::components;
use super::graph::Graph;
use super::model::{Deed, Tag};

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
        let waits = Waits::of(node, graph, &waiting);
        overtaken = overtaken.zip(waits.overtaken).map(|(one, other)| one.max(other));
        rounds.extend(waits.rounds.into_iter().map(|round| (node, round)));
    }
    Some((Waiting { overtaken, messages: messages(graph) }, rounds))
}

/// Who waits in each state, a bit for each node.
fn waiting(graph: &Graph, first: u32) -> Vec<u32> {
    let mut waiting = vec![0; graph.len() as usize];
    waiting[0] = first;
    for state in 0..graph.len() {
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

/// How a node may wait.
#[derive(Debug)]
struct Waits {
    /// How many entries of others there are at most while it waits; `None`: any number.
    overtaken: Option<u32>,
    /// The strongly connected sets of states, in all of which it waits, that can be gone round.
    rounds: Vec<Vec<u32>>,
}

const WITHOUT_END: u32 = u32::MAX;
const THIS_COMPONENT: u32 = u32::MAX - 1;

impl Waits {
    /// Of this node, given who waits in each state.
    fn of(node: usize, graph: &Graph, waiting: &[u32]) -> Self {
        let waits = |state: u32| waiting[state as usize] & 1 << node != 0;
        // The most entries of others from each state on, while the node waits.
        let mut most = vec![0; graph.len() as usize];
        let mut rounds = Vec::new();
        let mut longest = 0;
        components(graph, waits, |members| {
            for member in members {
                most[*member as usize] = THIS_COMPONENT;
            }
            let (mut ahead, mut round) = (0, false);
            for (_, target, tag) in members.iter().flat_map(|member| graph.steps(*member)) {
                let passed = u32::from(tag.entered() && tag.actor() != node);
                let beyond = if waits(target) { most[target as usize] } else { 0 };
                round |= beyond == THIS_COMPONENT;
                let count = match beyond {
                    WITHOUT_END => WITHOUT_END,
                    THIS_COMPONENT => passed * WITHOUT_END,
                    // The step by which it stops waiting lets itself in.
                    beyond => beyond + if waits(target) { passed } else { 0 },
                };
                ahead = ahead.max(count);
            }
            for member in members {
                most[*member as usize] = ahead;
            }
            longest = longest.max(ahead);
            if round {
                rounds.push(members.to_vec());
            }
        });
        Self { overtaken: (longest != WITHOUT_END).then_some(longest), rounds }
    }
}

/// The fewest and the most messages from beginning to end, over all runs; `None` if a run can go
/// round in a circle.
fn messages(graph: &Graph) -> Option<(u64, u64)> {
    let mut extremes = vec![(0, 0); graph.len() as usize];
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
