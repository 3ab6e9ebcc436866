//! Strongly connected components, after Pearce: one word for each state, and no recursion.

use super::graph::{Graph, NOWHERE};

/// Call `found` with each strongly connected component of the states that `within` admits. A
/// component comes after all others that can be reached from it.
pub fn components(graph: &Graph, within: impl Fn(u32) -> bool, mut found: impl FnMut(&[u32])) {
    // 0: not yet visited. While a state is being visited or waits on `open`: the lowest index that
    // it reaches. Then: a number above every index.
    let mut reach = vec![0u32; graph.states() as usize];
    let (mut index, mut done) = (1, u32::MAX);
    let mut open: Vec<u32> = Vec::new();
    let mut members = Vec::new();
    let mut path: Vec<Visit> = Vec::new();
    for root in (0..graph.states()).filter(|state| within(*state)) {
        if reach[root as usize] != 0 {
            continue;
        }
        path.push(Visit::enter(root, &mut index, &mut reach));
        while let Some(visit) = path.last_mut() {
            let here = visit.state;
            if visit.next < graph.degree(here) {
                let (there, _) = graph.step(here, visit.next);
                visit.next += 1;
                if there == NOWHERE || !within(there) {
                    continue;
                }
                if reach[there as usize] == 0 {
                    path.push(Visit::enter(there, &mut index, &mut reach));
                } else if reach[there as usize] < reach[here as usize] {
                    reach[here as usize] = reach[there as usize];
                    visit.root = false;
                }
                continue;
            }
            let Visit { root, .. } = path.pop().expect("the visit that ends");
            let lowest = reach[here as usize];
            if root {
                members.clear();
                members.push(here);
                while let Some(member) = open.pop_if(|state| lowest <= reach[*state as usize]) {
                    members.push(member);
                }
                for member in &members {
                    reach[*member as usize] = done;
                }
                index -= members.len() as u32;
                done -= 1;
                found(&members);
            } else {
                open.push(here);
            }
            if let Some(before) = path.last_mut()
                && !root
                && lowest < reach[before.state as usize]
            {
                reach[before.state as usize] = lowest;
                before.root = false;
            }
        }
    }
}

/// A state on the path of the depth-first search, and the number of its steps that were followed.
struct Visit {
    state: u32,
    next: u32,
    /// Whether it reaches no older state, so far.
    root: bool,
}

impl Visit {
    fn enter(state: u32, index: &mut u32, reach: &mut [u32]) -> Self {
        reach[state as usize] = *index;
        *index += 1;
        Self { state, next: 0, root: true }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand_chacha::ChaCha8Rng;
    use rand_core::{Rng, SeedableRng};

    use super::*;
    use crate::Tag;

    fn graph(size: u32, edges: &BTreeSet<(u32, u32)>) -> Graph {
        let mut graph = Graph::default();
        for state in 0..size {
            let targets: Vec<u32> =
                edges.iter().filter(|(from, _)| *from == state).map(|(_, to)| *to).collect();
            let tags = vec![Tag::default(); targets.len()];
            graph.extend(&[targets.len() as u32], &targets, &tags);
        }
        graph
    }

    /// All pairs of states of which the first reaches the second in one or more steps.
    fn closure(size: u32, edges: &BTreeSet<(u32, u32)>) -> BTreeSet<(u32, u32)> {
        let mut reach = edges.clone();
        for middle in 0..size {
            for from in 0..size {
                for to in 0..size {
                    if reach.contains(&(from, middle)) && reach.contains(&(middle, to)) {
                        reach.insert((from, to));
                    }
                }
            }
        }
        reach
    }

    #[test]
    fn components_are_those_that_reach_each_other() {
        let mut dice = ChaCha8Rng::seed_from_u64(7);
        let mut below = |bound: u32| dice.next_u32() % bound;
        for round in 0..300 {
            let size = 1 + below(12);
            let count = below(2 * size + 1);
            let mut node = || below(size);
            let edges: BTreeSet<_> = (0..count).map(|_| (node(), node())).collect();
            let kept = |state: u32| round % 2 == 0 || state % 5 != 3;
            let inner: BTreeSet<_> =
                edges.iter().copied().filter(|(from, to)| kept(*from) && kept(*to)).collect();
            let reach = closure(size, &inner);
            let mut seen = BTreeSet::new();
            components(&graph(size, &edges), kept, |members| {
                for one in members {
                    for other in (0..size).filter(|state| kept(*state)) {
                        let both = reach.contains(&(*one, other)) && reach.contains(&(other, *one));
                        let same = *one == other || both;
                        assert_eq!(same, members.contains(&other), "{edges:?}: {members:?}");
                        let leads = reach.contains(&(*one, other)) && !same;
                        assert!(!leads || seen.contains(&other), "{edges:?}: {members:?} early");
                    }
                }
                seen.extend(members.iter().copied());
            });
            assert_eq!(seen, (0..size).filter(|state| kept(*state)).collect());
        }
    }
}
