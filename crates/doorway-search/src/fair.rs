//! Cycles that are fair: a run can stay in them for ever although every duty is done.
//!
//! The duties are those of weak fairness: a step that stays possible is taken some time. A run can
//! stay in a strongly connected set of states and do all duties unless a duty is open in all of
//! these states and no step between them does it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::graph::Graph;
use super::search::Search;

/// A function that tells the duty of each step of a state, in the order of the steps.
pub type Duties<'a, Duty> = &'a dyn Fn(&[u32]) -> Vec<Option<Duty>>;

/// A strongly connected set of states in all of which a node waits.
struct Round<Duty> {
    node: usize,
    states: Vec<u32>,
    /// The duties that are open in all states seen so far and done in none of them. `None` before
    /// the first state.
    owed: Option<BTreeSet<Duty>>,
}

/// A run in which a node waits for ever: a state, and a cycle from there back to it.
#[derive(Clone, Debug)]
pub struct Lasso {
    /// The node that waits.
    pub node: usize,
    /// The state in which the cycle begins.
    pub state: u32,
    /// The steps of the cycle, each by its position among the successors of its state.
    pub round: Vec<u32>,
}

/// Find a fair cycle in the first of these sets of states that has one. Each set comes with the
/// node that waits in it.
pub fn fair_round<Duty: Copy + Ord>(
    search: &Search<'_>,
    duties: Duties<'_, Duty>,
    rounds: Vec<(usize, Vec<u32>)>,
) -> Option<Lasso> {
    if rounds.is_empty() {
        return None;
    }
    let graph = search.graph();
    let mut rounds: Vec<_> =
        rounds.into_iter().map(|(node, states)| Round { node, states, owed: None }).collect();
    rounds.sort_by_key(|round| round.states.iter().min().copied());
    // For each node, the number of the set that a state is in, counted from 1.
    let mut member: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
    for (nth, round) in (1..).zip(&rounds) {
        let of_node = member.entry(round.node).or_insert_with(|| vec![0; graph.states() as usize]);
        for state in &round.states {
            of_node[*state as usize] = nth;
        }
    }
    search.revisit(&mut |state, row| {
        let here = member.values().filter(|of_node| of_node[state as usize] != 0);
        let here: Vec<_> = here.collect();
        if here.is_empty() {
            return;
        }
        let duties = duties(row);
        for of_node in here {
            let nth = of_node[state as usize];
            let done = graph.steps(state).filter(|(_, target, _)| of_node[*target as usize] == nth);
            let done: BTreeSet<_> =
                done.filter_map(|(ordinal, ..)| duties[ordinal as usize]).collect();
            let open = duties.iter().flatten().copied().filter(|duty| !done.contains(duty));
            let round = &mut rounds[nth as usize - 1];
            match &mut round.owed {
                None => round.owed = Some(open.collect()),
                Some(owed) => {
                    let open: BTreeSet<_> = open.collect();
                    owed.retain(|duty| open.contains(duty));
                }
            }
        }
    });
    let kept = |round: &&Round<Duty>| round.owed.as_ref().is_some_and(BTreeSet::is_empty);
    let round = rounds.iter().find(kept)?;
    Some(lasso(search, duties, round))
}

/// A cycle in which every duty is done, or not open, at some point.
fn lasso<Duty: Copy + Ord>(
    search: &Search<'_>,
    duties: Duties<'_, Duty>,
    round: &Round<Duty>,
) -> Lasso {
    let inside: BTreeSet<u32> = round.states.iter().copied().collect();
    let mut known: BTreeMap<u32, Vec<Option<Duty>>> = BTreeMap::new();
    search.revisit(&mut |state, row| {
        if inside.contains(&state) {
            known.insert(state, duties(row));
        }
    });
    let graph = search.graph();
    let begin = *inside.first().expect("a round has states");
    let mut owed: BTreeSet<Duty> = known[&begin].iter().flatten().copied().collect();
    let mut here = begin;
    let mut way = Vec::new();
    loop {
        // Go to the nearest step that does an owed duty, or that leads to a state where one is not
        // open. If nothing is owed, go back to the beginning.
        let wanted = |state: u32, ordinal: u32, target: u32| {
            let does = known[&state][ordinal as usize].is_some_and(|duty| owed.contains(&duty));
            let frees = owed.iter().any(|duty| !known[&target].contains(&Some(*duty)));
            if owed.is_empty() { target == begin } else { does || frees }
        };
        let leg = nearest(graph, here, |state| inside.contains(&state), wanted);
        for (state, ordinal) in leg {
            way.push(ordinal);
            here = graph.step(state, ordinal).0;
            if let Some(duty) = known[&state][ordinal as usize] {
                owed.remove(&duty);
            }
            owed.retain(|duty| known[&here].contains(&Some(*duty)));
        }
        if owed.is_empty() && here == begin {
            return Lasso { node: round.node, state: begin, round: way };
        }
    }
}

/// The shortest path within these states that ends with a wanted step.
fn nearest(
    graph: &Graph,
    from: u32,
    within: impl Fn(u32) -> bool,
    wanted: impl Fn(u32, u32, u32) -> bool,
) -> Vec<(u32, u32)> {
    let mut before: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
    let mut open = VecDeque::from([from]);
    while let Some(state) = open.pop_front() {
        for (ordinal, target, _) in graph.steps(state).filter(|(_, target, _)| within(*target)) {
            if wanted(state, ordinal, target) {
                let mut way = vec![(state, ordinal)];
                let mut at = state;
                while at != from {
                    let (earlier, ordinal) = before[&at];
                    way.push((earlier, ordinal));
                    at = earlier;
                }
                way.reverse();
                return way;
            }
            if target != from && !before.contains_key(&target) {
                before.insert(target, (state, ordinal));
                open.push_back(target);
            }
        }
    }
    unreachable!("every state of a round leads to every other")
}
