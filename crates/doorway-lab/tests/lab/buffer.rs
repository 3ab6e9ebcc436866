//! The bounded buffer by messages, in every state.

use doorway_lab::AnyAlgorithm;
use doorway_lab::problems::buffer::{Buffer, Outcome, Variant};
use doorway_lab::problems::exchange::Faults;
use doorway_lab::trace::EventKind;

const UNORDERED: Faults = Faults { overtake: true, ..Faults::NONE };

fn check(buffer: &Buffer) -> doorway_lab::problems::buffer::Finding {
    buffer.check(3_000_000, 2).expect("a question that can be asked")
}

/// Nothing is lost, doubled or taken for another, and no state is without a way on.
#[track_caller]
fn holds(buffer: &Buffer) -> u64 {
    let report = check(buffer);
    assert_eq!(report.outcome, Outcome::Holds, "{buffer:?}: {report}");
    report.states
}

#[test]
fn a_pair_tolerates_every_fault_of_its_channels() {
    let pair = Buffer::new(Variant::Pair);
    let states = |capacity, faults| holds(&Buffer { capacity, faults, ..pair });
    for capacity in 1..=3 {
        let plain = states(capacity, Faults::NONE);
        let unordered = states(capacity, UNORDERED);
        let all = states(capacity, Faults::ALL);
        assert!(plain <= unordered && unordered < all, "{plain} {unordered} {all}");
    }
    for again in [false, true] {
        let doubled = Faults { double: true, again, ..UNORDERED };
        states(2, doubled);
    }
}

/// Both processes may crash again and again. What was consumed is not consumed again, and the rest
/// is.
#[test]
fn a_pair_survives_crashes_of_both_processes() {
    let pair = Buffer::new(Variant::Pair);
    for faults in [Faults::NONE, UNORDERED, Faults::ALL] {
        for capacity in 1..=2 {
            holds(&Buffer { capacity, faults: Faults { crash: true, ..faults }, ..pair });
        }
    }
}

/// Without sending again, one lost message can be the last one.
#[test]
fn a_pair_that_does_not_send_again_gets_stuck_after_a_loss() {
    let faults = Faults { lose: true, ..UNORDERED };
    let report = check(&Buffer { capacity: 1, faults, ..Buffer::new(Variant::Pair) });
    assert!(matches!(report.outcome, Outcome::Stuck(_)), "{report}");
    assert_eq!(report.path().len(), 2, "an item is produced, and lost: {report}");
}

#[test]
fn the_repairs_for_several_producers_hold() {
    for variant in [Variant::Split, Variant::Token] {
        for (capacity, producers) in [(2, 2), (3, 2)] {
            let usual = Buffer { capacity, producers, ..Buffer::new(variant) };
            assert_eq!(usual.faults, Faults::ALL);
            holds(&usual);
            holds(&Buffer { faults: Faults::NONE, ..usual });
        }
    }
    for lock in ["ricart-agrawala", "central", "suzuki-kasami"] {
        let lock = AnyAlgorithm::named(lock).expect("an algorithm");
        let locked = Buffer { lock, capacity: 1, ..Buffer::new(Variant::Locked) };
        holds(&locked);
        holds(&Buffer { capacity: 2, ..locked });
    }
}

/// A late image of another producer's counter makes the guard weaker: as soon as one place is left,
/// two producers take it.
#[test]
fn the_naive_way_for_several_producers_is_refuted() {
    for (capacity, producers, steps) in [(1, 2, 2), (2, 2, 3), (2, 3, 3)] {
        let naive = Buffer { capacity, producers, ..Buffer::new(Variant::Naive) };
        let report = check(&naive);
        let Outcome::Violated(what, path) = &report.outcome else { panic!("{report}") };
        let items = capacity + 1;
        assert_eq!(*what, format!("the buffer has {items} items and room for {capacity}"));
        assert_eq!(path.len(), steps, "{report}");
        // The drawing ends with what is wrong.
        let trace = naive.draw(&report).expect("it can be drawn");
        assert!(matches!(
            trace.events.last().map(|event| &event.what),
            Some(EventKind::Violate(_))
        ));
    }
    // As the variant says of itself.
    assert_eq!(Variant::Naive.refuted().map(|it| it.check), Some("-n 2 --capacity 1"));
    // With a single producer there is nothing to add up.
    holds(&Buffer { producers: 1, ..Buffer::new(Variant::Naive) });
}

/// Random runs of larger buffers, in which every item that is produced is consumed in the end.
#[test]
fn random_runs_lose_nothing() {
    for variant in [Variant::Pair, Variant::Split, Variant::Token, Variant::Locked] {
        for seed in 0..20 {
            let usual = Buffer::new(variant);
            let buffer = Buffer { capacity: 7, producers: usual.producers.pow(2), ..usual };
            let trace = buffer.walk(seed, 400).expect("a walk");
            let count = |verb: &str| {
                let acts = trace.events.iter().filter_map(|event| match &event.what {
                    EventKind::Act(action) => Some(action),
                    EventKind::Violate(violation) => panic!("{variant:?} {seed}: {violation}"),
                    _ => None,
                });
                acts.filter(|action| action.starts_with(verb)).count()
            };
            assert!(count("produces") > 0, "{variant:?} {seed}");
            assert_eq!(count("produces"), count("consumes"), "{variant:?} {seed}");
        }
    }
}
