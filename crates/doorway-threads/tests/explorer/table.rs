//! What the explorer finds of every algorithm, as one table. Exactly what is claimed holds, no more
//! and no less.
#![cfg(target_pointer_width = "64")]

use doorway_threads::algorithms::ALL;
use doorway_threads::check::Check;

use crate::found::{
    BROKEN, EVER, FIFO, LIVELOCKS, LOCKOUT_FREE, NONE, ReportSummary, UNFAIR, by, found,
};

/// The rules under which an algorithm is explored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rules {
    /// The rules under which it makes its claims.
    Plain,
    /// A unit of a semaphore may be taken by a process that did not wait for it.
    Barging,
    /// Numbers wrap around as bytes do.
    Wrapping,
}
use Rules::{Barging, Plain, Wrapping};

/// The algorithm, the rules, and what is found: the states, the verdicts, the overtaking, and the
/// steps that lead to a violation and are then repeated.
type Row = (&'static str, Rules, ReportSummary);

#[rustfmt::skip]
const TWO: &[Row] = &[
    ("dekker",              Plain,    (     86, LOCKOUT_FREE, EVER,     NONE)),
    ("dijkstra",            Plain,    (    182, UNFAIR,       EVER,     NONE)),
    ("knuth",               Plain,    (    108, LOCKOUT_FREE, by(1, 1), NONE)),
    ("de-bruijn",           Plain,    (    142, LOCKOUT_FREE, by(1, 1), NONE)),
    ("eisenberg-mcguire",   Plain,    (    154, LOCKOUT_FREE, by(1, 1), NONE)),
    ("doran-thomas-1",      Plain,    (    100, LOCKOUT_FREE, EVER,     NONE)),
    ("doran-thomas-2",      Plain,    (     98, LOCKOUT_FREE, by(1, 1), NONE)),
    ("peterson",            Plain,    (     32, FIFO,         by(1, 1), NONE)),
    ("peterson-n",          Plain,    (     32, FIFO,         by(1, 1), NONE)),
    ("peterson-tree",       Plain,    (     32, FIFO,         by(1, 1), NONE)),
    ("burns",               Plain,    (     76, UNFAIR,       EVER,     NONE)),
    ("exchange",            Plain,    (      7, UNFAIR,       EVER,     NONE)),
    ("tas",                 Plain,    (      7, UNFAIR,       EVER,     NONE)),
    ("ttas",                Plain,    (     11, UNFAIR,       EVER,     NONE)),
    ("lock",                Plain,    (      7, UNFAIR,       EVER,     NONE)),
    ("increment-reset",     Plain,    (     23, UNFAIR,       EVER,     NONE)),
    ("increment-reset",     Wrapping, (    520, BROKEN,       None,     [257, 0])),
    ("increment-await",     Plain,    (     21, UNFAIR,       EVER,     NONE)),
    ("replace-add",         Plain,    (     21, UNFAIR,       EVER,     NONE)),
    ("ticket",              Plain,    (  2_304, FIFO,         by(1, 1), NONE)),
    ("semaphore",           Plain,    (      9, FIFO,         by(1, 1), NONE)),
    ("semaphore",           Barging,  (      7, UNFAIR,       EVER,     [2, 2])),
    ("morris",              Plain,    (    275, LOCKOUT_FREE, by(2, 2), NONE)),
    ("morris",              Barging,  (    267, UNFAIR,       EVER,     [2, 17])),
    ("morris-atomic",       Plain,    (    119, LOCKOUT_FREE, by(2, 2), NONE)),
    ("morris-atomic",       Barging,  (    115, LOCKOUT_FREE, by(2, 2), NONE)),
    ("bakery",              Plain,    (    633, FIFO,         by(1, 1), NONE)),
    ("hehner-shyamasundar", Plain,    (    297, FIFO,         by(1, 1), NONE)),
    ("kessels",             Plain,    (    104, FIFO,         by(1, 1), NONE)),
    ("kessels-tree",        Plain,    (    104, LOCKOUT_FREE, by(1, 1), NONE)),
    ("one-bit",             Plain,    (     17, UNFAIR,       EVER,     NONE)),
    ("three-bit",           Plain,    (  1_128, LOCKOUT_FREE, by(2, 2), NONE)),
    ("lamport-fast",        Plain,    (    290, UNFAIR,       EVER,     NONE)),
    ("szymanski",           Plain,    (     65, LOCKOUT_FREE, by(2, 2), NONE)),
    ("peterson-fischer",    Plain,    (    130, FIFO,         by(1, 1), NONE)),
    ("mcs",                 Plain,    (     50, FIFO,         by(1, 1), NONE)),
    ("clh",                 Plain,    (     96, FIFO,         by(1, 1), NONE)),
    ("hyman",               Plain,    (     24, BROKEN,       None,     [7, 0])),
    ("burns-printed",       Plain,    (     78, UNFAIR,       EVER,     NONE)),
    ("increment-undo",      Plain,    (     15, LIVELOCKS,    EVER,     [4, 4])),
];

#[rustfmt::skip]
const THREE: &[Row] = &[
    ("dijkstra",            Plain,    (  5_357, UNFAIR,       EVER,     NONE)),
    ("knuth",               Plain,    (  1_923, LOCKOUT_FREE, by(3, 2), NONE)),
    ("de-bruijn",           Plain,    (  2_956, LOCKOUT_FREE, by(3, 2), NONE)),
    ("eisenberg-mcguire",   Plain,    (  3_000, LOCKOUT_FREE, by(2, 1), NONE)),
    ("peterson-n",          Plain,    (  1_605, LOCKOUT_FREE, EVER,     NONE)),
    ("peterson-tree",       Plain,    (    480, LOCKOUT_FREE, EVER,     NONE)),
    ("burns",               Plain,    (  1_816, UNFAIR,       EVER,     NONE)),
    ("exchange",            Plain,    (     19, UNFAIR,       EVER,     NONE)),
    ("tas",                 Plain,    (     19, UNFAIR,       EVER,     NONE)),
    ("ttas",                Plain,    (     46, UNFAIR,       EVER,     NONE)),
    ("lock",                Plain,    (     19, UNFAIR,       EVER,     NONE)),
    ("increment-reset",     Plain,    (     91, UNFAIR,       EVER,     NONE)),
    ("increment-await",     Plain,    (    105, UNFAIR,       EVER,     NONE)),
    ("replace-add",         Plain,    (    105, UNFAIR,       EVER,     NONE)),
    ("ticket",              Plain,    (  7_936, FIFO,         by(2, 1), NONE)),
    ("semaphore",           Plain,    (     25, UNFAIR,       EVER,     NONE)),
    ("semaphore",           Barging,  (     19, UNFAIR,       EVER,     NONE)),
    ("morris",              Plain,    (  3_153, LOCKOUT_FREE, by(4, 2), NONE)),
    ("morris",              Barging,  (  3_009, UNFAIR,       EVER,     [2, 17])),
    ("morris-atomic",       Plain,    (    873, LOCKOUT_FREE, by(4, 2), NONE)),
    ("morris-atomic",       Barging,  (    843, LOCKOUT_FREE, by(4, 2), NONE)),
    ("bakery",              Plain,    ( 38_929, FIFO,         by(2, 1), NONE)),
    ("hehner-shyamasundar", Plain,    ( 12_187, FIFO,         by(2, 1), NONE)),
    ("kessels-tree",        Plain,    (  3_952, LOCKOUT_FREE, EVER,     NONE)),
    ("one-bit",             Plain,    (    197, UNFAIR,       EVER,     NONE)),
    ("three-bit",           Plain,    (324_352, LOCKOUT_FREE, by(8, 6), NONE)),
    ("lamport-fast",        Plain,    (  8_660, UNFAIR,       EVER,     NONE)),
    ("szymanski",           Plain,    (  1_317, LOCKOUT_FREE, by(4, 2), NONE)),
    ("mcs",                 Plain,    (    722, FIFO,         by(2, 1), NONE)),
    ("clh",                 Plain,    (  1_632, FIFO,         by(2, 1), NONE)),
    ("burns-printed",       Plain,    (  1_458, UNFAIR,       EVER,     NONE)),
    ("increment-undo",      Plain,    (     54, LIVELOCKS,    EVER,     [4, 4])),
];

#[rustfmt::skip]
const FOUR: &[Row] = &[
    ("dijkstra",            Plain,    (161_860, UNFAIR,       EVER,     NONE)),
    ("knuth",               Plain,    ( 38_770, LOCKOUT_FREE, by(7, 4), NONE)),
    ("de-bruijn",           Plain,    ( 67_377, LOCKOUT_FREE, by(6, 3), NONE)),
    ("eisenberg-mcguire",   Plain,    ( 60_247, LOCKOUT_FREE, by(3, 1), NONE)),
    ("peterson-n",          Plain,    (110_490, LOCKOUT_FREE, EVER,     NONE)),
    ("peterson-tree",       Plain,    (  7_680, LOCKOUT_FREE, EVER,     NONE)),
    ("burns",               Plain,    ( 55_180, UNFAIR,       EVER,     NONE)),
    ("exchange",            Plain,    (     47, UNFAIR,       EVER,     NONE)),
    ("tas",                 Plain,    (     47, UNFAIR,       EVER,     NONE)),
    ("ttas",                Plain,    (    173, UNFAIR,       EVER,     NONE)),
    ("lock",                Plain,    (     47, UNFAIR,       EVER,     NONE)),
    ("increment-reset",     Plain,    (    271, UNFAIR,       EVER,     NONE)),
    ("increment-await",     Plain,    (    497, UNFAIR,       EVER,     NONE)),
    ("replace-add",         Plain,    (    497, UNFAIR,       EVER,     NONE)),
    ("ticket",              Plain,    ( 33_024, FIFO,         by(3, 1), NONE)),
    ("semaphore",           Plain,    (     65, UNFAIR,       EVER,     NONE)),
    ("morris",              Plain,    ( 30_991, LOCKOUT_FREE, by(6, 2), NONE)),
    ("morris-atomic",       Plain,    (  5_743, LOCKOUT_FREE, by(6, 2), NONE)),
    ("morris-atomic",       Barging,  (  5_479, LOCKOUT_FREE, by(6, 2), NONE)),
    ("kessels-tree",        Plain,    (159_744, LOCKOUT_FREE, EVER,     NONE)),
    ("one-bit",             Plain,    (  2_828, UNFAIR,       EVER,     NONE)),
    ("lamport-fast",        Plain,    (246_240, UNFAIR,       EVER,     NONE)),
    ("szymanski",           Plain,    ( 33_255, LOCKOUT_FREE, by(6, 2), NONE)),
    ("mcs",                 Plain,    ( 12_896, FIFO,         by(3, 1), NONE)),
    ("clh",                 Plain,    ( 38_400, FIFO,         by(3, 1), NONE)),
    ("burns-printed",       Plain,    ( 33_072, LIVELOCKS,    EVER,     [12, 42])),
    ("increment-undo",      Plain,    (    189, LIVELOCKS,    EVER,     [4, 4])),
];

/// Go through every schedule of `n` processes. A schedule is shown where a claim does not hold,
/// and only there; where none is shown, nothing better than the claims is true either.
fn explore(n: usize, rows: &[Row]) {
    for (name, rules, expected) in rows {
        let case = format!("{name} of {n}, {rules:?}");
        let mut check = Check::named(name, n).expect("a name of the list");
        match rules {
            Plain => {}
            Barging => check.rules.barging = true,
            Wrapping => check.rules.bound = None,
        }
        let report = check.run();
        let (found, claims) = (found(&report), check.info().claims);
        assert_eq!(found, *expected, "{case}");

        let lockout_free = (claims.lockout_free)(n);
        let claimed = [claims.exclusion, claims.deadlock_free, lockout_free, (claims.fifo)(n)];
        let (_, verdicts, bypass, lengths) = found;
        let exact = verdicts == claimed.map(Some) && bypass == Some((claims.bypass)(n));
        assert_eq!(exact, lengths == NONE, "{case}: what is claimed");
        assert_eq!(report.meets(&claims, n), lengths == NONE, "{case}: what is met");
    }
}

#[test]
fn every_schedule_of_two() {
    explore(2, TWO);
}

#[test]
fn every_schedule_of_three() {
    explore(3, THREE);
}

#[test]
fn every_schedule_of_four() {
    explore(4, FOUR);
}

#[test]
fn every_algorithm_has_its_rows() {
    for (n, rows) in [(2, TWO), (3, THREE)] {
        let plain = rows.iter().filter(|(_, rules, _)| *rules == Plain).map(|(name, ..)| *name);
        let served = ALL.iter().filter(|entry| entry.info.serves(n)).map(|entry| entry.info.name);
        assert_eq!(plain.collect::<Vec<_>>(), served.collect::<Vec<_>>(), "of {n}");
    }
}

/// What every algorithm has to state itself is not left at the empty default.
#[test]
fn every_algorithm_states_name_origin_and_registers() {
    for info in ALL.iter().map(|entry| entry.info) {
        let said = [info.name, info.origin, info.registers];
        assert!(said.iter().all(|text| !text.is_empty()), "{info:?}");
        assert!(info.year().is_some_and(|year| (1960..2030).contains(&year)), "{info:?}");
        assert_eq!(ALL.iter().filter(|entry| entry.info.name == info.name).count(), 1, "{info:?}");
    }
}

/// A lock can be made of an algorithm if and only if no row refutes it, and the smallest number of
/// processes whose row does is the one that it declares.
#[test]
fn models_are_those_that_are_refuted() {
    for entry in ALL {
        let mut sizes = [(2, TWO), (3, THREE), (4, FOUR)].into_iter();
        let refuted = sizes.find_map(|(size, rows)| {
            let refutes = |(name, rules, (.., lengths)): &Row| {
                *name == entry.info.name && *rules == Plain && *lengths != NONE
            };
            rows.iter().any(refutes).then_some(size)
        });
        assert_eq!(refuted.is_some(), !entry.lock, "{}", entry.info.name);
        assert_eq!(refuted, entry.info.refuted_from, "{}", entry.info.name);
    }
}
