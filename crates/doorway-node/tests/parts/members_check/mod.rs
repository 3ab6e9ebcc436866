//! Searches how up to three seats go from view to view in a group that agrees on its members, with
//! processes that are killed, restarted, lapse, leave and are evicted at any time. Processes
//! consist of the shipped state machine of the views and of shipped shards, around the shipped
//! record. In every state at most one client is inside, fences grow, all processes that start a
//! view start it with the same members and holders, and a quiet group in its newest view can still
//! be reached.
//!
//! Shipped: `AgreedViews`, `Record`, `Holds`, `Shard`.
//!
//! # What is abstract
//!
//! - The store is a register: it applies one command after the other. A process learns the newest
//!   record at any later time, or from a peer. A command of a process that has died in the meantime
//!   may be applied later or never.
//! - There is no time. The lease of a member is valid or has ended, and nobody renews it. Keepers
//!   need time, so their rules are repeated here as conditions: a process takes its seat when
//!   former holders have reclaimed and when it is linked with all seated members that are alive;
//!   members are removed when the leases of all members of their seat have ended; a waiting member
//!   is forgotten when its lease has ended; an evicted member leaves when its lease has ended, or
//!   at once if its shards report that no client has lost a lock. That shipped keepers keep these
//!   rules is searched in `keeper_check`, in ticks of a clock.
//! - A client of a process that is killed lives on until the lease of its member ends. It may
//!   reclaim at the next process, and may try to do so even later. A claim that no record has
//!   confirmed is covered by the lease of the earlier member only.
//! - A client with a hold believes in its lock until its own time has passed, also after the lease
//!   of its node. That time cannot pass before that lease ends. A member that has counted the
//!   length of an orphan has counted from a later moment, so the client's time has passed then.

mod act;
mod mistake;
mod watched;
mod world;

use doorway_node::locks::Rule;
use doorway_search::{Outcome, Report, System as _, explore};

use crate::views_check::algorithms::{self, liberal, served};
use crate::views_check::arranged::{ARRANGED, ArrangedRule, names};
use crate::views_check::checked_page;
use mistake::Mistake;
use watched::{Watched, limit};
use world::RuleSource::{Names, Size};
use world::{Action, Seats, Setting, Violation};

/// The document that has the counts.
const DOCUMENT: &str = include_str!("../../../../../ARCHITECTURE.md");

/// This many seats. The clients of the first two make one request each, and nothing else happens.
fn setting(size: usize) -> Setting {
    Setting {
        rule: Size(liberal),
        next: None,
        size,
        asks: [1, 1, 0],
        long: [false; 3],
        kills: 0,
        lapses: 0,
        ids: 0,
        bumps: 0,
        evictions: 0,
        quits: 0,
        cuts: 0,
        severed: false,
        overtaking: false,
        mistake: None,
    }
}

/// A group that runs its first view with all seats, with nothing else under way.
fn running(setting: Setting) -> Seats {
    let mut seats = Seats::new(setting);
    let mut world = seats.first();
    while !seats.is_goal(&world) || world.record.seated().count() < seats.setting.size {
        // All processes join and are connected before any of them enters, so that even a mistaken
        // group gets here.
        let order = |action: &Action| match action {
            Action::Connect(..) => 0,
            Action::Join(_) | Action::Learn(_) => 1,
            Action::TakeSeat(_) => 2,
            Action::Deliver(..) => 3,
            Action::Remove(_) | Action::Forget(_) | Action::LeaseEnds(_) | Action::Late(_) => 9,
            _ => 4,
        };
        let action = seats.actions(&world).into_iter().min_by_key(order).expect("not stuck");
        seats.apply(&mut world, action).expect("nothing goes wrong yet");
    }
    let Setting { asks, kills, lapses, ids, bumps, evictions, quits, cuts, .. } = seats.setting;
    (world.asks, world.kills, world.lapses, world.ids) = (asks, kills, lapses, ids);
    (world.bumps, world.evictions, world.quits, world.cuts) = (bumps, evictions, quits, cuts);
    world.changes = true;
    seats.first = world;
    seats
}

fn check(what: &str, setting: Setting) -> Report<Action, Violation> {
    let seats = running(setting);
    let watched = Watched::new(what, &seats);
    let report = explore(&watched, limit());
    println!("{what}: {report} in {:.1?}", watched.elapsed());
    report
}

/// Check that nothing goes wrong in any state, and that there are as many as the document says.
fn holds(setting: Setting, states: u64) {
    assert_eq!(check(setting.rule.algorithm(), setting).expect_holds(), states);
    // The document has a comma before every three digits.
    let says = DOCUMENT.replace(',', "").contains(&format!(" {states} "));
    assert!(says, "ARCHITECTURE.md does not say {states}");
}

/// Check that nothing goes wrong in the states up to the limit, and say whether these are all.
fn limited(setting: Setting) {
    let report = check(setting.rule.algorithm(), setting);
    match report.outcome {
        Outcome::Holds => println!("all states were visited: the document can have the count"),
        Outcome::NotExhausted => println!(
            "the search stopped at its limit of {} states; there are more, which nobody has seen",
            report.states
        ),
        Outcome::Violated(..) | Outcome::Stuck(_) => panic!("{report}"),
    }
}

/// A group with seats, kills, lapses and new members.
fn budget(size: usize, kills: u8, lapses: u8, ids: u8) -> Setting {
    Setting { kills, lapses, ids, ..setting(size) }
}

/// The rule of the default algorithm.
fn carvalho(size: usize) -> Rule {
    served("carvalho-roucairol", size)
}

/// The rule of an algorithm with a token.
fn suzuki(size: usize) -> Rule {
    served("suzuki-kasami", size)
}

/// A process is killed at any time. Its client lives on, and reclaims its lock at the next process.
#[test]
fn a_process_is_killed() {
    holds(budget(2, 1, 0, 1), 11_704);
    holds(Setting { rule: Size(carvalho), ..budget(2, 1, 0, 1) }, 17_141);
    holds(Setting { rule: Size(suzuki), ..budget(2, 1, 0, 1) }, 13_074);
}

/// The rule of the default algorithm with locks that linger.
fn lingering(size: usize) -> Rule {
    algorithms::lingering(carvalho(size))
}

/// Processes are killed and lapse while a lock lingers for a client that has just left.
#[test]
fn a_lock_lingers() {
    let searched = |setting| {
        let setting = Setting { rule: Size(lingering), asks: [2, 1, 0], ..setting };
        check("a lock that lingers", setting).expect_holds()
    };
    searched(budget(2, 1, 0, 1));
    searched(budget(2, 0, 1, 1));
    searched(Setting { bumps: 1, quits: 1, ..setting(2) });
}

/// The lease of a running process ends at any time, and the process joins again.
#[test]
fn a_lease_ends() {
    holds(budget(2, 0, 1, 1), 3330);
    holds(Setting { rule: Size(carvalho), ..budget(2, 0, 1, 1) }, 7988);
    holds(Setting { rule: Size(suzuki), ..budget(2, 0, 1, 1) }, 5309);
}

/// A process of three is killed at any time and does not come back. The other members remove its
/// member, and arrange themselves without it. docs/checked.md has the rows.
#[test]
fn a_member_drops_out_of_an_arrangement() {
    const HEADING: &str = "| algorithm | arrangement | without n2 | nodes | clients | states | \
                           steps | depth |\n|---|---|---|---|---|---|---|---|\n";
    let row = |arranged: &ArrangedRule| {
        let (what, rule) = (arranged.cells(), Names(*arranged));
        let report = check(&what, Setting { rule, asks: [0, 1, 0], ..budget(3, 1, 0, 0) });
        let (states, steps, depth) = (report.states, report.steps, report.depth);
        report.expect_holds();
        let two = names(2);
        let without = arranged.rule(&two).title(&world::name(), &two);
        format!("{what} | {without} | 3 | 1 | {states} | {steps} | {depth} |\n")
    };
    checked_page::agree(HEADING, &ARRANGED.iter().map(row).collect::<String>());
}

#[test]
fn a_member_is_evicted() {
    holds(Setting { evictions: 1, ..budget(2, 0, 0, 1) }, 5004);
}

/// A process is killed, and a member is evicted, which may be the process after it.
#[test]
fn a_process_is_killed_and_a_member_is_evicted() {
    let setting = Setting { asks: [1, 0, 0], evictions: 1, ..budget(2, 1, 0, 1) };
    holds(setting, 169_778);
}

/// Two members lose the connection with each other for good, and one of them is evicted.
#[test]
fn a_connection_is_severed() {
    let severed = Setting { cuts: 1, severed: true, bumps: 1, ..budget(2, 0, 0, 1) };
    let severed = Setting { asks: [1, 0, 0], ..severed };
    holds(Setting { evictions: 1, ..severed }, 46_511);
    all_found([(Mistake::NoEviction, severed, STUCK)]);
}

#[test]
fn a_process_leaves() {
    holds(Setting { quits: 1, ..budget(2, 0, 0, 1) }, 9822);
}

/// Views are asked for at any time, and a connection breaks for a while.
#[test]
fn a_view_is_asked_for() {
    holds(Setting { bumps: 2, ..setting(2) }, 1632);
    holds(Setting { bumps: 1, cuts: 1, ..setting(2) }, 1575);
}

/// The clients of these seats ask for holds.
fn long(long: [bool; 3], setting: Setting) -> Setting {
    Setting { long, ..setting }
}

/// The process of a client with a hold is killed at any time. Its client believes in its lock for
/// longer than the lease, and may reclaim it.
#[test]
fn a_process_with_a_hold_is_killed() {
    holds(long([true, false, false], budget(2, 1, 0, 1)), 217_899);
    holds(Setting { rule: Size(carvalho), ..long([true, false, false], budget(2, 1, 0, 0)) }, 2163);
}

/// The lease of a process ends whose client has a hold, and the client does not know.
#[test]
fn a_lease_ends_under_a_hold() {
    holds(long([true, false, false], budget(2, 0, 1, 1)), 105_804);
}

#[test]
fn a_member_with_a_hold_is_evicted() {
    holds(long([true, false, false], Setting { evictions: 1, ..budget(2, 0, 0, 1) }), 136_563);
}

#[test]
fn mistakes_with_holds() {
    let first = [true, false, false];
    let kill = |ids| long(first, budget(2, 1, 0, ids));
    let lapse = long(first, budget(2, 0, 1, 1));
    all_found([
        (Mistake::HoldNotAwaited, kill(0), TWO_INSIDE),
        (Mistake::HoldsUnknown, kill(0), TWO_INSIDE),
        (Mistake::CountedShort, kill(0), TWO_INSIDE),
        (Mistake::AnyDropped, Setting { asks: [2, 1, 0], ..kill(0) }, TWO_INSIDE),
        (Mistake::DoorIgnored, kill(0), TWO_INSIDE),
        (Mistake::DroppedAtLapse, lapse, TWO_INSIDE),
    ]);
}

/// The rule of a lock with two permits.
fn two_permits(size: usize) -> Rule {
    Rule::new("raymond-k", size, 2, 1).expect("two permits")
}

/// The rules change from one to another while clients hold the lock and wait for it.
fn change(rule: fn(usize) -> Rule, next: fn(usize) -> Rule, setting: Setting) -> Setting {
    Setting { rule: Size(rule), next: Some(Size(next)), ..setting }
}

#[test]
fn the_algorithm_changes_under_a_holder_and_a_waiter() {
    holds(change(suzuki, carvalho, setting(2)), 884);
    holds(change(carvalho, suzuki, setting(2)), 1317);
}

#[test]
fn the_permits_change_under_holders() {
    let again = || Setting { asks: [2, 1, 0], ..setting(2) };
    holds(change(two_permits, suzuki, again()), 6199);
    holds(change(two_permits, carvalho, again()), 6230);
    holds(change(carvalho, two_permits, again()), 2613);
}

#[test]
fn mistakes_with_rules() {
    let again = || change(two_permits, suzuki, Setting { asks: [2, 1, 0], ..setting(2) });
    all_found([
        (Mistake::OldRules, again(), STUCK),
        (Mistake::RulesInPlace, change(carvalho, suzuki, setting(2)), TWO_INSIDE),
        (Mistake::CrowdIgnored, again(), TWO_INSIDE),
        (Mistake::RoomForgotten, again(), STUCK),
    ]);
}

/// The larger searches, which take minutes each. Those without a count are not exhausted within the
/// limit of a search, or take too long to have been counted. `DOORWAY_SEARCH_STATES=100,000,000`
/// sets another limit, for a search of hours. With `--release` a search is several times as fast.
mod large {
    use super::*;

    #[test]
    #[ignore = "it takes minutes: cargo nextest run -p doorway-node --run-ignored only large"]
    fn rules_change_at_three_seats() {
        holds(change(carvalho, suzuki, Setting { asks: [1, 1, 1], ..setting(3) }), 718_749);
    }

    #[test]
    #[ignore = "it takes minutes: cargo nextest run -p doorway-node --run-ignored only large"]
    fn rules_change_and_a_kill() {
        holds(change(suzuki, carvalho, budget(2, 1, 0, 1)), 441_379);
    }

    #[test]
    #[ignore = "it takes minutes: cargo nextest run -p doorway-node --run-ignored only large"]
    fn permits_change_and_a_view_is_asked_for() {
        let again = Setting { asks: [2, 1, 0], bumps: 1, ..setting(2) };
        holds(change(two_permits, suzuki, again), 107_586);
    }

    #[test]
    #[ignore = "it takes minutes: cargo nextest run -p doorway-node --run-ignored only large"]
    fn lapse_under_two_holds() {
        limited(long([true, true, false], budget(2, 0, 1, 1)));
    }

    #[test]
    #[ignore = "it takes minutes: cargo nextest run -p doorway-node --run-ignored only large"]
    fn a_hold_is_not_taken_over() {
        let kills = long([true, false, false], budget(2, 2, 0, 1));
        all_found_within(LARGE_WITHIN, [(Mistake::HoldNotTaken, kills, TWO_INSIDE)]);
    }

    #[test]
    #[ignore = "it takes minutes: cargo nextest run -p doorway-node --run-ignored only large"]
    fn kill_and_lapse_under_a_hold() {
        limited(long([true, false, false], budget(2, 1, 1, 1)));
    }

    #[test]
    #[ignore = "it takes minutes: cargo nextest run -p doorway-node --run-ignored only large"]
    fn kill_and_cut() {
        holds(Setting { cuts: 1, ..budget(2, 1, 0, 1) }, 45_366);
    }

    #[test]
    #[ignore = "it takes minutes: cargo nextest run -p doorway-node --run-ignored only large"]
    fn kill_and_bump() {
        holds(Setting { bumps: 1, ..budget(2, 1, 0, 1) }, 129_357);
    }

    #[test]
    #[ignore = "it takes minutes: cargo nextest run -p doorway-node --run-ignored only large"]
    fn cut_and_evict() {
        let severed = Setting { cuts: 1, severed: true, bumps: 1, ..budget(2, 0, 0, 1) };
        holds(Setting { evictions: 1, ..severed }, 214_464);
    }

    #[test]
    #[ignore = "it takes minutes: cargo nextest run -p doorway-node --run-ignored only large"]
    fn kill_and_evict() {
        holds(Setting { evictions: 1, ..budget(2, 1, 0, 1) }, 877_416);
    }

    #[test]
    #[ignore = "it takes minutes: cargo nextest run -p doorway-node --run-ignored only large"]
    fn kill_and_quit() {
        holds(Setting { quits: 1, ..budget(2, 1, 0, 1) }, 354_466);
    }

    #[test]
    #[ignore = "it takes minutes: cargo nextest run -p doorway-node --run-ignored only large"]
    fn kill_and_lapse() {
        holds(budget(2, 1, 1, 1), 523_816);
    }

    #[test]
    #[ignore = "it takes minutes: cargo nextest run -p doorway-node --run-ignored only large"]
    fn two_kills() {
        holds(budget(2, 2, 0, 2), 1_527_762);
    }

    #[test]
    #[ignore = "it takes minutes: cargo nextest run -p doorway-node --run-ignored only large"]
    fn two_kills_of_the_default_algorithm() {
        limited(Setting { rule: Size(carvalho), ..budget(2, 2, 0, 2) });
    }

    #[test]
    #[ignore = "it takes minutes: cargo nextest run -p doorway-node --run-ignored only large"]
    fn two_kills_and_two_requests() {
        limited(Setting { asks: [2, 2, 0], ..budget(2, 2, 0, 2) });
    }

    #[test]
    #[ignore = "it takes minutes: cargo nextest run -p doorway-node --run-ignored only large"]
    fn two_kills_and_a_lapse() {
        limited(budget(2, 2, 1, 2));
    }

    #[test]
    #[ignore = "it takes minutes: cargo nextest run -p doorway-node --run-ignored only large"]
    fn three_seats_and_a_kill() {
        limited(budget(3, 1, 0, 1));
    }

    #[test]
    #[ignore = "it takes minutes: cargo nextest run -p doorway-node --run-ignored only large"]
    fn three_seats_and_a_kill_with_one_client() {
        limited(Setting { asks: [1, 0, 0], ..budget(3, 1, 0, 1) });
    }

    #[test]
    #[ignore = "it takes minutes: cargo nextest run -p doorway-node --run-ignored only large"]
    fn three_seats_and_a_kill_and_a_lapse() {
        limited(budget(3, 1, 1, 1));
    }

    #[test]
    #[ignore = "it takes minutes: cargo nextest run -p doorway-node --run-ignored only large"]
    fn three_seats_and_two_kills() {
        limited(budget(3, 2, 0, 2));
    }
}

/// What goes wrong because of a mistake, nothing if the group only gets stuck, and after how many
/// actions.
fn find(mistake: Mistake, setting: Setting) -> (Option<Violation>, usize) {
    let setting = Setting { mistake: Some(mistake), ..setting };
    let report = check(&format!("{mistake:?}"), setting);
    let actions = report.path().len();
    let violation = match report.outcome {
        Outcome::Violated(violation, _) => Some(violation),
        Outcome::Stuck(_) => None,
        Outcome::Holds | Outcome::NotExhausted => Some(Violation::NotFound),
    };
    (violation, actions)
}

const TWO_INSIDE: Option<Violation> = Some(Violation::TwoInside);
const STARTS: Option<Violation> = Some(Violation::Starts);
const FENCE: Option<Violation> = Some(Violation::Fence);
const STUCK: Option<Violation> = None;

/// Within how many actions mistakes are found, as the document says: in the test command, and by
/// the large search.
const WITHIN: usize = 17;
const LARGE_WITHIN: usize = 22;

fn all_found(cases: impl IntoIterator<Item = (Mistake, Setting, Option<Violation>)>) {
    all_found_within(WITHIN, cases);
}

/// Check that each mistake leads to this, within a number of actions.
fn all_found_within(
    within: usize,
    cases: impl IntoIterator<Item = (Mistake, Setting, Option<Violation>)>,
) {
    let says = format!("within {WITHIN} actions, and one more by a large search within ");
    assert!(DOCUMENT.contains(&format!("{says}{LARGE_WITHIN}.")), "ARCHITECTURE.md differs");
    let mut wrong = Vec::new();
    for (mistake, setting, expected) in cases {
        let (found, actions) = find(mistake, setting);
        if found != expected || actions > within {
            wrong.push((mistake, found, actions));
        }
    }
    assert!(wrong.is_empty(), "not as expected: {wrong:?}");
}

#[test]
fn mistakes_with_members() {
    let kill = || budget(2, 1, 0, 1);
    all_found([
        (Mistake::EntrantNotAwaited, kill(), TWO_INSIDE),
        (Mistake::HeirEarly, kill(), TWO_INSIDE),
        (Mistake::RemovedAlone, kill(), TWO_INSIDE),
        (Mistake::RemovedEarly, setting(2), TWO_INSIDE),
        (Mistake::ForgottenEarly, budget(2, 1, 0, 1), TWO_INSIDE),
        (Mistake::LeftInside, Setting { quits: 1, ..setting(2) }, TWO_INSIDE),
        (Mistake::EvictedLeavesEarly, Setting { evictions: 1, ..setting(2) }, TWO_INSIDE),
        (Mistake::StateKept, budget(2, 0, 1, 1), TWO_INSIDE),
        (Mistake::ShardsKept, budget(2, 0, 1, 1), TWO_INSIDE),
        (Mistake::SameIdentity, Setting { bumps: 1, ..kill() }, TWO_INSIDE),
        (Mistake::AnyClaim, kill(), TWO_INSIDE),
        (Mistake::ClaimsCovered, kill(), TWO_INSIDE),
    ]);
}

#[test]
fn mistakes_with_views() {
    let bump = |size| Setting { bumps: 1, ..setting(size) };
    let bumps = || Setting { bumps: 2, ..setting(2) };
    all_found([
        (Mistake::Majority, bump(3), TWO_INSIDE),
        (Mistake::Alone, bump(2), STARTS),
        (Mistake::OlderFlush, bumps(), TWO_INSIDE),
        (Mistake::LateStart, bumps(), TWO_INSIDE),
        (Mistake::NoHolders, bump(2), TWO_INSIDE),
        (Mistake::SnapshotFirst, bump(2), TWO_INSIDE),
        (Mistake::Reread, bump(3), STARTS),
        (Mistake::RereadOwn, bump(2), STARTS),
        (Mistake::ReleaseForgotten, bump(2), STUCK),
        (Mistake::NotAskedAgain, bump(2), STUCK),
    ]);
}

#[test]
fn mistakes_with_locks() {
    let bump = |rule| Setting { rule: Size(rule), bumps: 1, ..setting(2) };
    // Links that keep the order deliver all old messages before the flush.
    let overtaking = Setting { overtaking: true, ..bump(suzuki) };
    let carvalho = Setting { asks: [2, 1, 0], ..bump(carvalho) };
    // Of two nodes, the second one starts a view only when the first one can.
    let ricart = Setting { size: 3, ..bump(|size| served("ricart-agrawala", size)) };
    all_found([
        (Mistake::OldSteps, overtaking, FENCE),
        (Mistake::BareFence, bump(suzuki), FENCE),
        (Mistake::EarlyDropped, ricart, STUCK),
        (Mistake::FlushFirst, carvalho, TWO_INSIDE),
    ]);
}
