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
type Outcome = (End, Progress, Ways, Vec<(u32, Tag)>);

fn outcome(wrong: Option<u32>, threads: usize) -> Outcome {
    let web = Web { wrong };
    let scope = Scope { limit: u64::from(SIZE), threads, record: true };
    let mut search = Search::new(&web, scope);
    let end = search.run(&mut |_| true);
    let steps = |state| (0..3).map(move |ordinal| (state, ordinal));
    let all = (0..search.graph.states()).flat_map(steps);
    let graph = all.map(|(state, ordinal)| search.graph.step(state, ordinal)).collect();
    (end, search.progress, search.ways, graph)
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

/// The plain table and the one with numbers find the same states and paths, and the plain one takes
/// at most 16 bytes for a state that is expanded.
#[test]
fn a_search_without_a_graph_finds_the_same_in_less_memory() {
    for wrong in [None, Some(9_973)] {
        let web = Web { wrong };
        let scope = Scope { limit: u64::from(SIZE), threads: 1, record: false };
        let mut search = Search::new(&web, scope);
        let end = search.run(&mut |_| true);
        let (other, progress, ways, _) = outcome(wrong, 1);
        assert_eq!((end, search.progress.states, &search.ways), (other, progress.states, &ways));
        let tables: u64 = search.shards.iter().map(Table::bytes).sum();
        let bytes = tables + search.ways.bytes() as u64;
        if wrong.is_none() {
            assert!(bytes <= 16 * search.progress.states, "{bytes} bytes");
        }
    }
}

/// A search that is stopped after each round and goes on from what was kept finds what it would
/// have found in one go.
#[test]
fn a_kept_search_goes_on_where_it_stopped() {
    for (wrong, record, threads) in
        [(None, true, 1), (None, false, 2), (Some(9_973), true, 2), (Some(9_973), false, 1)]
    {
        let web = Web { wrong };
        let scope = Scope { limit: u64::from(SIZE), threads, record };
        let mut whole = Search::new(&web, scope);
        let expected = whole.run(&mut |_| true);
        let mut search = Search::new(&web, scope);
        let mut stops = 0;
        let end = loop {
            match search.run(&mut |_| false) {
                End::Stopped => {}
                end => break end,
            }
            stops += 1;
            let mut file = Vec::new();
            search.keep("web", &mut file).unwrap();
            search = Search::continued(&web, scope, "web", &mut &*file).unwrap();
        };
        assert!(stops > 8, "{stops} stops");
        assert_eq!(end, expected);
        let counts = |search: &Search<'_>| {
            let Progress { states, steps, depth, .. } = search.progress;
            (states, steps, depth, search.layers.clone(), search.graph.parts().1.to_vec())
        };
        assert_eq!(counts(&search), counts(&whole));
        assert_eq!(search.ways, whole.ways);
    }
}

#[test]
fn a_file_that_has_no_such_search_is_refused() {
    let web = Web { wrong: None };
    let scope = Scope { limit: 1000, threads: 1, record: true };
    let mut search = Search::new(&web, scope);
    assert_eq!(search.run(&mut |_| true), End::Limit);
    let mut file = Vec::new();
    search.keep("web", &mut file).unwrap();
    let load = |file: &[u8], scope, title| {
        Search::continued(&web, scope, title, &mut &*file)
            .map(|_| ())
            .map_err(|why| why.to_string())
    };
    let damaged = Err("it has no search, or it is damaged".to_owned());
    assert_eq!(load(&file, scope, "web"), Ok(()));
    assert_eq!(load(&file, scope, "net"), Err("it has another search: web".to_owned()));
    assert_eq!(load(&file, Scope { record: false, ..scope }, "web"), damaged);
    assert_eq!(load(&file[..file.len() - 1], scope, "web"), damaged);
    assert_eq!(load(b"", scope, "web"), damaged);
    for at in (0..file.len()).step_by(file.len() / 100) {
        let mut other = file.clone();
        other[at] ^= 0x10;
        assert!(load(&other, scope, "web").is_err(), "byte {at}");
    }
}
