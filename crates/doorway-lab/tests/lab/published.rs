//! The search counts what TLC counts: the numbers published with the TLA+ examples, and those of
//! the same specification at other sizes.

use doorway_lab::check::{self, End, Scope};

use crate::lamport_mutex::LamportMutex;

const SCOPE: Scope = Scope { limit: 2_000_000, threads: 2, record: false };

/// Distinct states, generated states and depth, as TLC counts them: the first state is generated
/// too, and the depth is the number of states on the longest of the shortest ways.
fn counts<const N: usize>(max_clock: u64) -> (u64, u64, u32) {
    let (end, progress) = check::search(&LamportMutex::<N>::new(max_clock), SCOPE);
    assert_eq!(end, End::Exhausted);
    (progress.states, progress.steps + 1, progress.depth + 1)
}

#[test]
fn lamport_mutex_has_the_published_counts() {
    assert_eq!(counts::<3>(6), (724_274, 2_729_079, 61));
}

#[test]
fn lamport_mutex_has_the_counts_of_tlc_at_other_sizes() {
    assert_eq!(counts::<3>(5), (270_115, 1_033_743, 52));
    assert_eq!(counts::<4>(2), (8_450, 68_901, 19));
    assert_eq!(counts::<4>(3), (955_798, 7_302_151, 33));
}

#[test]
fn entering_without_acknowledgements_breaks_exclusion() {
    let spoiled = LamportMutex::<3> { enter_needs_acks: false, ..LamportMutex::new(6) };
    let (end, _) = check::search(&spoiled, SCOPE);
    // Two processes request and enter before anything arrives. Which two depends on the
    // fingerprints.
    assert!(matches!(&end, End::Wrong(steps) if steps.len() == 4), "{end:?}");
}

#[test]
fn requesting_again_and_again_fills_the_channel() {
    let spoiled = LamportMutex::<3> { request_needs_rest: false, ..LamportMutex::new(6) };
    let (end, _) = check::search(&spoiled, SCOPE);
    // The fourth request of process 1 finds three in its channel.
    assert_eq!(end, End::Wrong(vec![0, 0, 0, 0]));
}
