//! Mistakes that the search has to find, each with the number of actions after which something goes
//! wrong: at once, or even though nothing else goes wrong from then on.

use std::time::Duration;

use doorway_search::Outcome;

use super::super::shell::Mistake;
use super::world::Wrong;
use super::{HealingScope, Restart, Search, TTL};

const NETWORK: Search = often(Restart::Crash);
const OLD_LEDGER: Search = often(Restart::CrashWithOldLedger);
const DETOUR: Search = Search { detours: 1, faults: 0, restarts: 0, ..NETWORK };
const UNIX: Search = Search::unix(Restart::Crash);
const ENDLESS: Search = Search { endless: true, ..Search::network(Restart::Crash) };
const KEEP: Search = Search { keep: true, restarts: 0, ..Search::network(Restart::Crash) };

/// Everything that can happen over a network. That is too much to be searched completely, but a
/// mistake is found early.
const fn often(restart: Restart) -> Search {
    let span = Duration::from_secs(TTL.as_secs() / 2);
    Search { spans: 3, span, faults: 1, ..Search::network(restart) }
}

/// What the search finds, and after how many actions.
fn find(search: Search) -> Option<(Wrong, usize)> {
    let report = Search { heals: HealingScope::Everywhere, ..search }.run();
    println!("{search:?}: {report}");
    match &report.outcome {
        Outcome::Violated(wrong, path) => Some((*wrong, path.len())),
        _ => None,
    }
}

#[test]
fn mistakes_of_the_shell_are_found() {
    let mistakes = [
        (NETWORK, Mistake::WritesLate, Wrong::LostInTime, 3),
        (UNIX, Mistake::ErasesNothing, Wrong::NeverDone, 0),
        (NETWORK, Mistake::ForgetsLedger, Wrong::LostInTime, 3),
        (NETWORK, Mistake::RepeatsNumbers, Wrong::NeverDone, 3),
        (OLD_LEDGER, Mistake::TrustsOldLedger, Wrong::LostInTime, 3),
        (UNIX, Mistake::TakesBootForAnother, Wrong::LostInTime, 4),
        (OLD_LEDGER, Mistake::ServesAtOnce, Wrong::GivenAway, 6),
        (NETWORK, Mistake::RepeatsFences, Wrong::FenceGoesBack, 3),
        (NETWORK, Mistake::ReleasesNothing, Wrong::NeverDone, 0),
        (NETWORK, Mistake::HearsNothing, Wrong::LostInTime, 8),
        (NETWORK, Mistake::TicksEarly, Wrong::NeverDone, 3),
        (UNIX, Mistake::MissesHangUp, Wrong::NeverDone, 2),
        (UNIX, Mistake::MissesProcessEnd, Wrong::NeverDone, 4),
        (UNIX, Mistake::MistakesProcesses, Wrong::LostInTime, 4),
        (DETOUR, Mistake::SharesIdentity, Wrong::GivenAway, 12),
        (ENDLESS, Mistake::WritesLate, Wrong::LostInTime, 5),
        (KEEP, Mistake::HidesWishes, Wrong::NeverDone, 0),
        (KEEP, Mistake::RepeatsNumbersOfKeepers, Wrong::FenceGoesBack, 7),
    ];
    let mut surprises = Vec::new();
    for (search, mistake, wrong, actions) in mistakes {
        let found = find(Search { mistake: Some(mistake), ..search });
        if found != Some((wrong, actions)) {
            surprises.push((mistake, found));
        }
    }
    assert!(surprises.is_empty(), "{surprises:#?}");
}

#[test]
fn a_client_that_counts_its_ttl_from_too_late_a_moment_is_found() {
    let found = find(Search { slow_clock: true, ..NETWORK });
    assert_eq!(found, Some((Wrong::LostInTime, 4)));
}

/// The client enters a kept lock again after its TTL, because its clock stands still.
#[test]
fn a_client_that_enters_a_kept_lock_too_late_is_found() {
    let found = find(Search { slow_clock: true, spans: 1, ..KEEP });
    assert_eq!(found, Some((Wrong::LostInTime, 8)));
}
