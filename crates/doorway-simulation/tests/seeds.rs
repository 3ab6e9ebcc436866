//! A few seeds, and proof that a seed decides everything. `cargo xtask test` runs many more.

use doorway_simulation::{Counts, Feature, draw, features, run};

/// How many seeds are run here. They take a few seconds.
const SEEDS: u64 = 100;

#[test]
fn the_same_seed_gives_the_same_run() {
    use Feature::{AgreedMembers, EndlessLocks, FixedMembers, KeptLocks, Outage};
    for feature in [FixedMembers, AgreedMembers, KeptLocks, EndlessLocks, Outage] {
        let seed = (0..SEEDS).find(|seed| features(*seed).contains(&feature));
        let seed = seed.unwrap_or_else(|| panic!("no seed draws {feature:?}"));
        let (one, other) = (run(seed, true), run(seed, true));
        assert!(one.log.lines().count() > 100, "a log of what happens");
        assert_eq!(one, other, "{feature:?}: seed {seed}");
        assert_eq!(draw(seed), draw(seed), "{feature:?}: seed {seed}");
    }
    assert_ne!(run(1, true).log, run(2, true).log);
}

#[test]
fn nothing_forbidden_happens() {
    let mut counts = Counts::default();
    for seed in 0..SEEDS {
        let outcome = run(seed, false);
        let again = format!("`cargo xtask soak --one {seed}` repeats it");
        assert_eq!(outcome.violation, None, "seed {seed}; {again}");
        counts += outcome.counts;
    }
    println!("{counts:?}");
    assert!(counts.entries > 100 * SEEDS && counts.faults > 5 * SEEDS, "{counts:?}");
    assert!(counts.broken > 0 && counts.fenced > 0 && counts.lost > 0, "{counts:?}");
    assert!(counts.kept > 0 && counts.endless > 0, "{counts:?}");
}

#[test]
fn a_picture_shows_every_node_and_client_and_who_holds_what() {
    let picture = draw(4);
    assert!(picture.starts_with("<svg") && picture.ends_with("</svg>\n"));
    for shown in [">n0<", ">c0<", ">c1<", ">acquire<", "<rect"] {
        assert!(picture.contains(shown), "{shown} is missing in {picture}");
    }
}
