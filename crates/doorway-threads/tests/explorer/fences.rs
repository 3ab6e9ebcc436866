//! On memory with store buffers (total store order), the fences of an algorithm are enough, and
//! each of them is needed except those it declares in `Info::fences_beyond_tso`. Only the memory
//! model of the language needs those: tests/tools/loom.rs shows that.
//!
//! docs/threads.md says both of every lock.
#![cfg(target_pointer_width = "64")]

use doorway_threads::algorithms::ALL;
use doorway_threads::check::Check;

/// The number of steps of a fence that store buffers do not need: no schedule lets two processes in
/// without it.
const BEYOND_TSO: usize = 0;

/// The algorithm, its number of states with all fences, and for each fence the length of the
/// shortest schedule that lets two processes in without it.
type Row = (&'static str, u64, &'static [(char, usize)]);

#[rustfmt::skip]
const TWO: &[Row] = &[
    ("dekker",                    186, &[('a', 4), ('c', 16)]),
    ("dijkstra",                3_550, &[('d', 13)]),
    ("knuth",                     812, &[('b', 11)]),
    ("de-bruijn",                 800, &[('b', 9)]),
    ("eisenberg-mcguire",         922, &[('b', 14)]),
    ("doran-thomas-1",            208, &[('a', 4), ('c', 16)]),
    ("doran-thomas-2",            360, &[('a', 4)]),
    ("peterson",                   40, &[('a', BEYOND_TSO), ('b', 9)]),
    ("peterson-n",                 40, &[('a', BEYOND_TSO), ('b', 9)]),
    ("peterson-tree",              40, &[('a', BEYOND_TSO), ('b', 9)]),
    ("burns",                     144, &[('b', 8)]),
    ("exchange",                   11, &[]),
    ("tas",                        11, &[]),
    ("ttas",                       17, &[]),
    ("lock",                       11, &[]),
    ("increment-reset",            43, &[]),
    ("increment-await",            21, &[]),
    ("replace-add",                21, &[]),
    ("ticket",                  3_328, &[]),
    ("semaphore",                   9, &[]),
    ("morris",                    377, &[]),
    ("morris-atomic",             149, &[]),
    ("bakery",                    945, &[('a', 14), ('c', 16)]),
    ("hehner-shyamasundar",       376, &[('a', 10), ('b', 11)]),
    ("kessels",                   124, &[('a', 9), ('b', 10)]),
    ("kessels-tree",              124, &[('a', 9), ('b', 10)]),
    ("one-bit",                    30, &[('a', 4)]),
    ("three-bit",               3_510, &[('b', 10)]),
    ("lamport-fast",              971, &[('a', 10), ('b', 10)]),
    ("szymanski",                 129, &[('a', 11), ('b', 12)]),
    ("peterson-fischer",          130, &[('a', 10), ('b', 17), ('c', 23)]),
    ("mcs",                       101, &[]),
    ("clh",                       246, &[]),
    ("burns-printed",             138, &[('b', 10)]),
    ("increment-undo",             15, &[]),
];

#[rustfmt::skip]
const THREE: &[Row] = &[
    ("dijkstra",              731_641, &[('d', 15)]),
    ("knuth",                  34_445, &[('b', 13)]),
    ("de-bruijn",              35_122, &[('b', 11)]),
    ("eisenberg-mcguire",      43_462, &[('b', 16)]),
    ("peterson-n",              1_737, &[('a', BEYOND_TSO), ('b', 19)]),
    ("peterson-tree",             672, &[('a', BEYOND_TSO), ('b', 12)]),
    ("burns",                   3_832, &[('b', 10)]),
    ("exchange",                   31, &[]),
    ("tas",                        31, &[]),
    ("ttas",                       73, &[]),
    ("lock",                       31, &[]),
    ("increment-reset",           175, &[]),
    ("increment-await",           105, &[]),
    ("replace-add",               105, &[]),
    ("ticket",                 11_776, &[]),
    ("semaphore",                  25, &[]),
    ("morris",                  4_500, &[]),
    ("morris-atomic",           1_098, &[]),
    ("bakery",                 56_222, &[('a', 20), ('c', 22)]),
    ("hehner-shyamasundar",    14_064, &[('a', 14), ('b', 15)]),
    ("kessels-tree",            5_160, &[('a', 13), ('b', 14)]),
    ("one-bit",                   398, &[('a', 6)]),
    ("three-bit",           1_213_750, &[('b', 14)]),
    ("lamport-fast",           47_609, &[('a', 10), ('b', 10)]),
    ("szymanski",               3_356, &[('a', 15), ('b', 16)]),
    ("mcs",                     2_718, &[]),
    ("clh",                     5_544, &[]),
    ("burns-printed",           2_969, &[('b', 12)]),
    ("increment-undo",             54, &[]),
];

fn explore(n: usize, rows: &[Row]) {
    for (name, states, fences) in rows {
        let check = || Check::named(name, n).expect("a name of the list");
        let buffered = |dropped: &str| check().buffered(dropped).run();
        let (info, report) = (check().info(), buffered(""));
        assert_eq!(report.exclusion, Some(true), "{name} of {n}");
        assert_eq!(report.progress.states, *states, "{name} of {n}");
        assert!(info.fences.chars().eq(fences.iter().map(|(fence, _)| *fence)), "{name}");
        for (fence, steps) in *fences {
            let report = buffered(&fence.to_string());
            let case = format!("{name} of {n} without fence {fence}");
            let spare = info.fences_beyond_tso.contains(*fence);
            assert_eq!(report.exclusion, Some(spare), "{case}");
            assert_eq!(*steps == BEYOND_TSO, spare, "{case}");
            assert_eq!(report.schedule.len(), *steps, "{case}");
        }
    }
}

#[test]
fn two_processes_need_each_fence_that_is_not_beyond_store_buffers() {
    explore(2, TWO);
}

#[test]
fn three_processes_need_each_fence_that_is_not_beyond_store_buffers() {
    explore(3, THREE);
}

#[test]
fn every_algorithm_has_its_rows() {
    for (n, rows) in [(2, TWO), (3, THREE)] {
        let served = ALL.iter().filter(|entry| entry.info.serves(n)).map(|entry| entry.info.name);
        // Hyman's algorithm lets two processes in on any memory.
        let served = served.filter(|name| *name != "hyman");
        assert!(rows.iter().map(|(name, ..)| *name).eq(served), "of {n}");
    }
}

/// A fence that is beyond store buffers is one of the fences.
#[test]
fn fences_beyond_store_buffers_are_declared_fences() {
    for info in ALL.iter().map(|entry| entry.info) {
        let declared = |fence| info.fences.contains(fence);
        assert!(info.fences_beyond_tso.chars().all(declared), "{}", info.name);
    }
}
