//! The assumptions that an algorithm declares are those that the checker finds: with them
//! everything holds, and without any one of them something breaks.

use doorway_core::Channel;
use doorway_core::algorithms::{ALL, Entry};
use doorway_lab::check::assumptions::{Cell, Finding, cell, faults};

/// More worlds than the small groups have, where the result is known.
const LIMIT: u64 = 100_000;

/// The algorithms that are correct.
fn sound() -> impl Iterator<Item = &'static Entry> {
    ALL.iter().filter(|entry| entry.info.refuted.is_none())
}

fn holds(cell: &Cell) -> bool {
    matches!(cell.finding, Finding::Holds(_))
}

fn breaks(cell: &Cell) -> bool {
    matches!(cell.finding, Finding::Breaks(..) | Finding::BreaksAtLeast(..))
}

#[test]
fn each_algorithm_needs_exactly_the_channels_it_declares() {
    for entry in sound() {
        let name = entry.info.name;
        let fifo = cell(entry, Channel::Fifo, None, LIMIT);
        let unordered = cell(entry, Channel::Unordered, None, LIMIT);
        assert!(holds(&fifo), "{name}, fifo: {fifo}");
        match entry.info.channel {
            Channel::Fifo => assert!(breaks(&unordered), "{name}, unordered: {unordered}"),
            Channel::Unordered => assert!(holds(&unordered), "{name}, unordered: {unordered}"),
        }
    }
}

#[test]
fn each_algorithm_survives_exactly_the_faults_it_declares() {
    let mut wrong = Vec::new();
    for entry in sound() {
        for fault in faults().flatten() {
            let cell = cell(entry, entry.info.channel, Some(fault), LIMIT);
            let survives = entry.info.survives.contains(&fault);
            if !(if survives { holds(&cell) } else { breaks(&cell) }) {
                wrong.push(format!("{}, {fault:?}: {cell}, said {survives}", entry.info.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
