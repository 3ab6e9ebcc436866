//! Searches what shipped keepers do around the shipped record, with a clock that ticks twenty times
//! in a lease: processes are killed, started again, stopped for a while and cut off from the store,
//! two of them lose their connection, the lease is made shorter, and commands and answers are late
//! at any time.
//!
//! Shipped: `Keeper`, `Record`, `Holds`.
//!
//! The search of views and locks (`members_check`) knows no time: there, the lease of a member is
//! valid or has ended, and what keepers do is a condition. This search shows that shipped keepers
//! keep these conditions, in every state up to a number of ticks:
//!
//! - A member leaves the record only when its lease has ended, by the clocks of the machine that
//!   made the promise: because it was removed or forgotten, or because it was evicted and has left.
//!   An evicted member leaves earlier only if no client holds a lock by it.
//! - A process takes the place of its predecessor earlier only if the predecessor's clients have
//!   reclaimed their locks.
//! - A hold is dropped only when its client does not believe in it any more.
//!
//! # What is abstract
//!
//! - The store is a register, as in `members_check`. Commands and answers arrive within the tick in
//!   which they were sent, in any order, except for a number of late ones. Those arrive at any
//!   later time, perhaps after their process has ended.
//! - The clocks of each machine run at rates that do not change. The searches take the worst
//!   ones that keepers have to cope with.
//! - All processes propose removals.

mod world;

use doorway_search::{Outcome, Report, explore};

use world::{Action, ClientHold, Event, Mistake, Rates, Setting, Violation, running};

/// The document that has the counts.
const DOCUMENT: &str = include_str!("../../../../../ARCHITECTURE.md");

/// The most states of one search.
const LIMIT: u64 = 4_000_000;

/// The member counts as slowly as a clock may run, and the others count as fast.
const WORST: [Rates; 2] = [Rates::FAST, Rates::SLOW];

/// Nothing happens in this many ticks.
fn setting(ticks: u8) -> Setting {
    Setting { ticks, rates: WORST, ..Setting::default() }
}

fn check(what: &str, setting: Setting) -> Report<Action, Violation> {
    let begin = std::time::Instant::now();
    let report = explore(&running(setting), LIMIT);
    println!("{what}: {report} in {:.1?}", begin.elapsed());
    report
}

/// Check that nothing goes wrong in any state, that there are as many as the document says, and
/// that this happens in some of them.
fn holds(setting: Setting, states: u64, event: Event) {
    let outcome = check("happens", Setting { until: Some(event), ..setting }).outcome;
    assert!(matches!(outcome, Outcome::Violated(Violation::Seen, _)), "{event:?}: {outcome:?}");
    assert_eq!(check("holds", setting).expect_holds(), states);
    // The document has a comma before every three digits.
    let says = DOCUMENT.replace(',', "").contains(&format!(" {states} "));
    assert!(says, "ARCHITECTURE.md does not say {states}");
}

/// Within how many actions mistakes are found, as the document says.
const WITHIN: usize = 73;

/// Check that a mistake leads to this, within [`WITHIN`] actions.
fn found(mistake: Mistake, setting: Setting, violation: Violation) {
    assert!(DOCUMENT.contains(&format!("within {WITHIN} actions")), "ARCHITECTURE.md differs");
    let report = check(&format!("{mistake:?}"), Setting { mistake: Some(mistake), ..setting });
    let found = matches!(&report.outcome, Outcome::Violated(its, _) if *its == violation);
    let actions = report.path().len();
    assert!(found && actions <= WITHIN, "{mistake:?}, after {actions} actions: {report}");
}

/// A process is killed, and stays away.
fn killed() -> Setting {
    Setting { kills: 1, ..setting(24) }
}

/// A process is stopped, and continues at any later time.
fn stopped() -> Setting {
    Setting { stops: 1, ..setting(24) }
}

/// A process is killed and started again, and its clients reclaim their locks at any later time.
fn restarted() -> Setting {
    Setting { kills: 1, starts: 1, ..setting(24) }
}

/// An operator removes a machine. Its clients may have released all locks.
fn dropped() -> Setting {
    Setting { drops: 1, releases: 1, ..setting(24) }
}

/// A process is killed and started again, and an operator removes its machine. Its clients may have
/// released all locks.
fn restarted_and_dropped() -> Setting {
    Setting { drops: 1, releases: 1, ..restarted() }
}

/// Two processes lose their connection.
fn severed() -> Setting {
    Setting { cuts: 1, ..setting(34) }
}

/// A process loses contact with the store, and finds it again at any later time. It goes on
/// answering its clients while its lease lasts.
fn isolated() -> Setting {
    Setting { losses: 1, ..setting(24) }
}

/// A process with a client that has a hold loses contact with the store.
fn isolated_with_a_hold() -> Setting {
    Setting { hold: ClientHold::Limited, losses: 1, ..setting(30) }
}

/// A process with a client that has a hold without end loses contact with the store.
fn isolated_without_end() -> Setting {
    Setting { hold: ClientHold::Endless, ..isolated_with_a_hold() }
}

/// An operator makes the lease shorter, and a process is killed.
fn shortened() -> Setting {
    Setting { kills: 1, changes: 1, ..setting(24) }
}

/// What is sent arrives in the order of the seats.
fn ordered(setting: Setting) -> Setting {
    Setting { ordered: true, ..setting }
}

/// A command or an answer is late. So it may come before or after any other one, and the others
/// arrive in the order of the seats.
fn late(setting: Setting) -> Setting {
    Setting { late: 1, ..ordered(setting) }
}

#[test]
fn a_silent_member_is_removed_after_its_lease() {
    holds(killed(), 1963, Event::Removed);
}

#[test]
fn a_member_that_was_stopped_has_given_up_before_it_is_removed() {
    holds(ordered(stopped()), 4523, Event::Lapsed);
}

#[test]
fn a_restarted_process_takes_its_place_when_its_clients_are_back() {
    holds(ordered(restarted()), 45_468, Event::Succeeded);
}

#[test]
fn an_evicted_member_leaves_when_its_lease_is_over() {
    holds(severed(), 64_964, Event::Left);
}

#[test]
fn an_isolated_member_has_given_up_before_it_is_removed() {
    holds(isolated(), 72_183, Event::Removed);
}

#[test]
fn a_hold_is_dropped_when_its_client_does_not_believe_in_it_any_more() {
    holds(ordered(isolated_with_a_hold()), 17_186, Event::Dropped);
}

#[test]
fn a_hold_without_end_is_not_dropped_when_its_member_is_removed() {
    holds(ordered(isolated_without_end()), 17_084, Event::Removed);
}

#[test]
fn a_shorter_lease_counts_when_the_member_knows_of_it() {
    holds(ordered(shortened()), 29_935, Event::Removed);
}

#[test]
fn a_removed_machine_leaves_at_once_if_its_clients_hold_nothing() {
    holds(dropped(), 10_129, Event::LeavesEarly);
}

/// The larger searches, which take up to some minutes each.
mod large {
    use super::*;

    #[test]
    #[ignore = "it takes minutes: cargo nextest run -p doorway-node --run-ignored only large"]
    fn stopped_in_any_order() {
        holds(stopped(), 145_782, Event::Removed);
    }

    #[test]
    #[ignore = "it takes minutes: cargo nextest run -p doorway-node --run-ignored only large"]
    fn restarted_in_any_order() {
        holds(restarted(), 458_057, Event::Removed);
    }

    #[test]
    #[ignore = "it takes minutes: cargo nextest run -p doorway-node --run-ignored only large"]
    fn restarted_and_removed() {
        holds(ordered(restarted_and_dropped()), 952_282, Event::LeavesEarly);
    }

    #[test]
    #[ignore = "it takes minutes: cargo nextest run -p doorway-node --run-ignored only large"]
    fn stopped_and_late() {
        holds(late(stopped()), 658_553, Event::Removed);
    }
}

#[test]
fn mistakes_around_keepers_are_found() {
    found(Mistake::FullLease, killed(), Violation::Early);
    found(Mistake::OneClock, killed(), Violation::Early);
    found(Mistake::FastClocks, killed(), Violation::Early);
    found(Mistake::NotReclaimed, restarted(), Violation::Unclaimed);
    found(Mistake::LeavesAtOnce, severed(), Violation::Early);
    found(Mistake::LossUnnoticed, dropped(), Violation::Early);
    found(Mistake::LossUnnoticed, ordered(restarted_and_dropped()), Violation::Early);
    found(Mistake::ShortHold, ordered(isolated_with_a_hold()), Violation::Dropped);
    found(Mistake::ShortHold, ordered(isolated_without_end()), Violation::Dropped);
    found(Mistake::ShorterAtOnce, ordered(shortened()), Violation::Early);
    found(Mistake::BeatsIgnored, late(stopped()), Violation::Early);
}
