//! The number of threads changes neither the counts, nor the numbers of states, nor the path to a
//! violation.

use super::*;
use crate::{ClientEvent, Tag};

/// Numbers below `size`, each leading to three others. Layers grow to many chunks.
struct Web {
    size: u32,
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
            let next = (state * factor + 1) % self.size;
            out.push(&[next], print(next), Tag::new(ordinal, ClientEvent::None, 1));
        }
    }
}

/// How the search ended, what it counted, from where each state was reached, and every step.
type Outcome = (End, Progress, Ways, Vec<(u32, Tag)>);

fn outcome(wrong: Option<u32>, threads: usize) -> Outcome {
    let web = Web { size: SIZE, wrong };
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

/// The plain table and the one with numbers find the same states and paths.
#[test]
fn a_search_without_a_graph_finds_the_same() {
    for wrong in [None, Some(9_973)] {
        let web = Web { size: SIZE, wrong };
        let scope = Scope { limit: u64::from(SIZE), threads: 1, record: false };
        let mut search = Search::new(&web, scope);
        let end = search.run(&mut |_| true);
        let (other, progress, ways, _) = outcome(wrong, 1);
        assert_eq!((end, search.progress.states, &search.ways), (other, progress.states, &ways));
    }
}

/// The bytes that the tables of a search of `size` states take for each, without a graph.
fn bytes_a_state(size: u32, threads: usize) -> f64 {
    let web = Web { size, wrong: None };
    let scope = Scope { limit: u64::from(size), threads, record: false };
    let mut search = Search::new(&web, scope);
    assert_eq!(search.run(&mut |_| true), End::Exhausted);
    let states = search.progress.states;
    assert!(states > u64::from(size) / 2, "{states} of {size} numbers are reached");
    let tables: u64 = search.shards.iter().map(Table::bytes).sum();
    (tables + search.ways.bytes() as u64) as f64 / states as f64
}

/// A table makes room for all successors of a batch before it is known which of them are new. In a
/// small search a batch is a large part of all states, so that a state may take up to 22 bytes.
#[test]
fn a_state_that_is_expanded_takes_at_most_16_bytes_without_a_graph() {
    for size in [160_001, SIZE, 249_989, 280_001, 350_003, 500_009] {
        for threads in [1, 3] {
            let bytes = bytes_a_state(size, threads);
            assert!(bytes <= 16.0, "{bytes} bytes for each of {size} states");
        }
    }
    for size in [4_001, 10_007, 16_427, 32_423, 65_537, 112_787] {
        let bytes = bytes_a_state(size, 1);
        assert!(bytes <= 24.0, "{bytes} bytes for each of {size} states");
    }
}

/// A search that is stopped after each round and goes on from what was kept finds what it would
/// have found in one go.
#[test]
fn a_kept_search_goes_on_where_it_stopped() {
    for (wrong, record, threads) in
        [(None, true, 1), (None, false, 2), (Some(9_973), true, 2), (Some(9_973), false, 1)]
    {
        let web = Web { size: SIZE, wrong };
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
    let web = Web { size: SIZE, wrong: None };
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
    let older = [b"doorway search 1", &file[16..]].concat();
    let format = "another version of Doorway wrote it, in format 1; this version reads format 2";
    assert_eq!(load(&older, scope, "web"), Err(format.to_owned()));
    for at in (0..file.len()).step_by(file.len() / 100) {
        let mut other = file.clone();
        other[at] ^= 0x10;
        assert!(load(&other, scope, "web").is_err(), "byte {at}");
    }
}
