//! The number of threads changes neither the counts, nor the numbers of states, nor the path to a
//! violation.

use super::*;
use crate::{Deed, Tag};

/// Numbers below `SIZE`, each leading to three others. Layers grow to many chunks.
struct Web {
    /// States that are multiples of this are broken.
    wrong: Option<u32>,
}

const SIZE: u32 = 200_003;

fn print(state: u32) -> u64 {
    (u64::from(state) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Model for Web {
    fn width(&self) -> usize {
        1
    }

    fn first(&self) -> (Vec<u32>, u64) {
        (vec![1], print(1))
    }

    fn expand(&self, row: &[u32], _print: u64, out: &mut Successors) {
        let state = row[0];
        if self.wrong.is_some_and(|wrong| state.is_multiple_of(wrong)) {
            out.is_broken();
        }
        for (ordinal, factor) in [3, 5, 7].into_iter().enumerate() {
            let next = (state * factor + 1) % SIZE;
            out.push(&[next], print(next), Tag::new(ordinal, Deed::None, 1));
        }
    }
}

/// How the search ended, what it counted, from where each state was reached, and every step.
type Outcome = (End, Progress, Vec<u32>, Vec<(u32, Tag)>);

fn outcome(wrong: Option<u32>, threads: usize) -> Outcome {
    let web = Web { wrong };
    let scope = Scope { limit: u64::from(SIZE), threads, record: true };
    let mut search = Search::new(&web, scope);
    let end = search.run(&mut |_| true);
    let steps = |state| (0..3).map(move |ordinal| (state, ordinal));
    let all = (0..search.graph.states()).flat_map(steps);
    let graph = all.map(|(state, ordinal)| search.graph.step(state, ordinal)).collect();
    (end, search.progress, search.parents, graph)
}

#[test]
fn any_number_of_threads_finds_the_same() {
    let alone = outcome(None, 1);
    assert_eq!((&alone.0, alone.1.states), (&End::Exhausted, u64::from(SIZE)));
    assert!([2, 3].into_iter().all(|threads| outcome(None, threads) == alone));
}

#[test]
fn any_number_of_threads_finds_the_same_path() {
    // The nearest multiples of this number are in a layer of many chunks.
    let wrong = Some(9_973);
    let alone = outcome(wrong, 1);
    assert_eq!(alone.0, End::Wrong(vec![1, 0, 0, 0, 2, 1, 1, 1, 0]));
    assert!([2, 3].into_iter().all(|threads| outcome(wrong, threads) == alone));
}
