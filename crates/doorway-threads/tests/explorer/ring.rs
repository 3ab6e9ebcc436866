//! The rings stabilise from every state under the conditions that are claimed, and under no others.

use doorway_threads::ring::explore::{Daemon, Verdict, explore};
use doorway_threads::ring::{FourState, KState, Neighbours, Rule, ThreeState, View};
use doorway_threads::{Process, Word};

fn verdict(rule: impl Rule, n: usize, daemon: Daemon) -> Verdict {
    explore(rule, n, daemon).expect("few states")
}

/// The least `K` with which rings of `K` states stabilise. They do with every tried number from
/// there on, and with none below.
fn fewest_states(n: usize, daemon: Daemon, tried: core::ops::RangeInclusive<usize>) -> usize {
    let stabilises = |k: &usize| verdict(KState { k: *k }, n, daemon).stabilises;
    let (enough, too_few): (Vec<_>, Vec<_>) = tried.partition(stabilises);
    assert!(too_few.iter().max() < enough.iter().min(), "n={n}: {enough:?}, not {too_few:?}");
    enough[0]
}

#[test]
fn one_move_at_a_time_needs_one_state_less_than_machines() {
    for n in 3..=6 {
        assert_eq!(fewest_states(n, Daemon::Central, 1..=n + 1), n - 1, "n={n}");
        assert!(verdict(FourState, n, Daemon::Central).stabilises, "four states, n={n}");
        assert!(verdict(ThreeState, n, Daemon::Central).stabilises, "three states, n={n}");
    }
}

#[test]
fn many_moves_at_once_need_as_many_states_as_machines() {
    for n in 3..=4 {
        assert_eq!(fewest_states(n, Daemon::Distributed, 1..=n + 2), n, "n={n}");
        assert!(verdict(FourState, n, Daemon::Distributed).stabilises, "four states, n={n}");
        assert!(verdict(ThreeState, n, Daemon::Distributed).stabilises, "three states, n={n}");
    }
}

#[test]
fn separate_reads_and_writes_need_twice_as_many_less_one() {
    for (n, tried) in [(2, 1..=7), (3, 1..=7), (4, 4..=7)] {
        assert_eq!(fewest_states(n, Daemon::ReadWrite, tried), 2 * n - 1, "n={n}");
    }
    assert!(!verdict(FourState, 3, Daemon::ReadWrite).stabilises);
    assert!(!verdict(ThreeState, 3, Daemon::ReadWrite).stabilises);
}

#[test]
fn the_most_moves_until_a_ring_is_stable() {
    let moves =
        |rule: &dyn Fn(usize) -> Verdict| (3..=6).map(|n| rule(n).moves).collect::<Vec<_>>();
    let central = Daemon::Central;
    assert_eq!(moves(&|n| verdict(KState { k: n }, n, central)), [2, 13, 24, 38].map(Some));
    assert_eq!(moves(&|n| verdict(FourState, n, central)), [2, 6, 12, 20].map(Some));
    assert_eq!(moves(&|n| verdict(ThreeState, n, central)), [1, 10, 22, 39].map(Some));
}

#[test]
fn six_machines_of_six_states() {
    let verdict = verdict(KState { k: 6 }, 6, Daemon::Central);
    assert_eq!(verdict.states, 46_656);
    // A wave of one value runs into one of another: 6 * 5 pairs, 5 places; or there is one only.
    assert_eq!(verdict.legitimate, 6 * 5 * 5 + 6);
    assert!(verdict.stabilises);
}

#[test]
fn rings_that_are_too_large_are_not_explored() {
    assert_eq!(explore(KState { k: 10 }, 20, Daemon::Central), None);
    assert_eq!(explore(KState { k: 1 }, 1000, Daemon::Central), None);
}

/// A ring of five states with one machine that never moves.
#[derive(Clone, Copy)]
struct BrokenRing {
    which: usize,
}

impl Rule for BrokenRing {
    fn states(self) -> usize {
        5
    }

    fn looks(self, _: Process) -> Neighbours {
        Neighbours::Left
    }

    fn moves(self, me: Process, view: View) -> [Option<Word>; 2] {
        if me.i == self.which { [None, None] } else { KState { k: 5 }.moves(me, view) }
    }
}

#[test]
fn a_machine_that_never_moves_is_noticed() {
    for daemon in [Daemon::Central, Daemon::Distributed, Daemon::ReadWrite] {
        for which in 0..3 {
            assert!(!verdict(BrokenRing { which }, 3, daemon).stabilises, "{daemon:?}, {which}");
        }
    }
}
