//! Searches how up to three nodes go from view to view, with crashes, restarts and new views at any
//! time. Nodes consist of the shipped state machine of the views and of shipped shards, for the
//! most liberal algorithm possible and for three of the core's.
//!
//! Shipped: `ViewChange`, `Shard`, `KeptWord`.

mod act;
pub(crate) mod algorithms;
pub(crate) mod arranged;
pub(crate) mod checked_page;
mod mistake;
mod world;

use doorway_node::locks::Rule;
use doorway_search::{Outcome, Report, System as _, explore};

use algorithms::{liberal, lingering, rash, served};
use arranged::{ARRANGED, ArrangedRule, names};
use mistake::Mistake;
use world::{Action, Nodes, Setting, Violation};

/// More states than any of the searches has.
const LIMIT: u64 = 6_000_000;

/// Nodes with one shard each. The clients of the first two make one request each, and nothing else
/// happens yet.
fn setting(rule: Rule) -> Setting {
    Setting {
        size: rule.group.size() as usize,
        rule,
        shards: 1,
        asks: [1, 1, 0],
        crashes: 0,
        raises: 0,
        cuts: 0,
        overtaking: false,
        gives_up: false,
        reclaims: false,
        forgets: false,
        reserve: 0,
        mistake: None,
    }
}

/// A group that runs its first view, with nothing else under way.
fn running(setting: Setting) -> Nodes {
    let mut nodes = Nodes::new(setting);
    let mut world = nodes.first();
    while !nodes.is_goal(&world) {
        // All nodes are connected before any of them stops, so that even a mistaken group gets
        // here.
        let order = |action: &Action| match action {
            Action::Connect(..) | Action::Up(..) => 0,
            Action::Deliver(..) => 1,
            action => 2 + u8::from(!nodes.is_expected(action)),
        };
        let action = nodes.actions(&world).into_iter().min_by_key(order).expect("not stuck");
        nodes.apply(&mut world, action).expect("nothing goes wrong yet");
    }
    nodes.first = world;
    nodes
}

fn check(what: &str, setting: Setting) -> Report<Action, Violation> {
    let begin = std::time::Instant::now();
    let report = explore(&running(setting), LIMIT);
    println!("{what}: {report} in {:.1?}", begin.elapsed());
    report
}

/// Check that nothing goes wrong, and count the states.
fn holds(setting: Setting) -> u64 {
    check(setting.rule.info.name, setting).expect_holds()
}

#[test]
fn a_crash_at_any_moment() {
    let setting = Setting { crashes: 1, asks: [1; 3], ..setting(liberal(3)) };
    assert_eq!(holds(setting), 166_364);
}

#[test]
fn crashes_and_views_asked_for_among_two() {
    let setting = Setting { crashes: 2, raises: 1, ..setting(liberal(2)) };
    assert_eq!(holds(setting), 227_821);
}

/// Crashes and requested views among three nodes, of which one has a client.
#[test]
#[ignore = "it takes minutes: cargo nextest run -p doorway-node --run-ignored only among_three"]
fn crashes_and_views_asked_for_among_three() {
    let setting = || Setting { crashes: 1, asks: [1, 0, 0], ..setting(liberal(3)) };
    holds(Setting { raises: 1, ..setting() });
    holds(Setting { crashes: 2, ..setting() });
    holds(Setting { crashes: 0, raises: 2, ..setting() });
}

#[test]
fn two_views_asked_for_at_any_moment() {
    holds(Setting { raises: 2, ..setting(liberal(2)) });
    holds(Setting { raises: 2, asks: [0; 3], ..setting(liberal(3)) });
}

#[test]
fn shards_stop_one_after_another() {
    holds(Setting { raises: 1, shards: 2, asks: [1, 0, 0], ..setting(liberal(3)) });
    holds(Setting { raises: 1, shards: 2, ..setting(liberal(2)) });
}

/// Connections break and come back, and no message is lost.
#[test]
fn connections_that_break() {
    holds(Setting { cuts: 1, raises: 1, asks: [1, 0, 0], ..setting(liberal(3)) });
    holds(Setting { cuts: 2, crashes: 1, ..setting(liberal(2)) });
}

/// The first node comes back from a crash without its directory, and with its first epoch.
#[test]
fn a_directory_that_is_lost() {
    holds(Setting { crashes: 1, raises: 1, forgets: true, ..setting(liberal(2)) });
    holds(Setting { crashes: 1, forgets: true, ..setting(liberal(3)) });
}

#[test]
fn token() {
    let setting = || setting(served("suzuki-kasami", 3));
    holds(Setting { raises: 1, asks: [1; 3], ..setting() });
    holds(Setting { crashes: 1, ..setting() });
}

#[test]
fn permissions_that_stay() {
    let setting = || setting(served("carvalho-roucairol", 3));
    holds(Setting { raises: 1, asks: [2, 1, 0], gives_up: true, ..setting() });
    holds(Setting { crashes: 1, ..setting() });
}

#[test]
fn permissions() {
    let setting = || setting(served("ricart-agrawala", 3));
    holds(Setting { raises: 1, overtaking: true, ..setting() });
    holds(Setting { crashes: 1, ..setting() });
}

/// A wave begins at a node that holds the lock as the view begins, or else at the first member,
/// which is woken by a node that is asked.
#[test]
fn waves() {
    let setting = || setting(served("raymond-echo", 3));
    holds(Setting { raises: 1, ..setting() });
    holds(Setting { crashes: 1, asks: [0, 1, 0], ..setting() });
    holds(Setting { raises: 1, crashes: 1, ..self::setting(served("raymond-echo", 2)) });
}

/// Locks linger for clients that have just left, while views change at any moment.
#[test]
fn locks_that_linger() {
    let lingers = |algorithm, size| setting(lingering(served(algorithm, size)));
    for algorithm in ["carvalho-roucairol", "suzuki-kasami", "naimi-trehel"] {
        let gives_up = algorithm != "naimi-trehel";
        holds(Setting { raises: 1, asks: [2, 2, 0], gives_up, ..lingers(algorithm, 2) });
        holds(Setting { crashes: 1, asks: [2, 1, 0], ..lingers(algorithm, 2) });
        holds(Setting { asks: [2, 1, 1], ..lingers(algorithm, 3) });
        holds(Setting { asks: [2, 2, 0], reserve: 1, ..lingers(algorithm, 2) });
    }
}

/// Clients keep their locks until another node wants them, while views change at any moment.
#[test]
fn locks_that_are_kept() {
    let keeps = |algorithm, size| Setting { reserve: 1, ..setting(served(algorithm, size)) };
    for algorithm in ["carvalho-roucairol", "suzuki-kasami", "naimi-trehel"] {
        holds(Setting { raises: 1, asks: [3, 2, 0], reserve: 2, ..keeps(algorithm, 2) });
        holds(Setting { crashes: 1, asks: [2, 2, 0], ..keeps(algorithm, 2) });
        holds(Setting { asks: [2, 1, 1], ..keeps(algorithm, 3) });
    }
    let carvalho = || Setting { asks: [2, 2, 0], ..keeps("carvalho-roucairol", 2) };
    assert_eq!(holds(Setting { raises: 1, gives_up: true, ..carvalho() }), 50_662);
    assert_eq!(find(Mistake::NotRevoked, carvalho()), STUCK);
    assert_eq!(find(Mistake::ReleasedInside, carvalho()), TWO_INSIDE);
    assert_eq!(find(Mistake::EntersUnasked, carvalho()), TWO_INSIDE);
}

/// A member crashes at any moment, and the others begin another view. docs/checked.md has a row for
/// every algorithm.
#[test]
fn a_crash_under_every_algorithm() {
    const HEADING: &str = "| algorithm | nodes | clients | states | steps | depth |\n\
                           |---|---|---|---|---|---|\n";
    let row = |name: &&str| format!("| `{name}` {}", crash_row(name, served(name, 3)));
    let rows: String = doorway_node::locks::served().iter().map(row).collect();
    checked_page::agree(HEADING, &rows);
}

/// A member crashes at any moment and comes back. The rule says how the members are arranged.
#[test]
fn a_crash_under_an_arrangement() {
    const HEADING: &str = "| algorithm | arrangement | nodes | clients | states | steps | depth |\n\
                           |---|---|---|---|---|---|---|\n";
    let row = |arranged: &ArrangedRule| {
        let what = arranged.cells();
        format!("{what} {}", crash_row(&what, arranged.rule(&names(3))))
    };
    checked_page::agree(HEADING, &ARRANGED.iter().map(row).collect::<String>());
}

/// The cells about the search with a crash of one of three members, after those about the rule.
fn crash_row(what: &str, rule: Rule) -> String {
    let report = check(what, Setting { crashes: 1, asks: [0, 1, 0], ..setting(rule) });
    let (states, steps, depth) = (report.states, report.steps, report.depth);
    report.expect_holds();
    format!("| 3 | 1 | {states} | {steps} | {depth} |\n")
}

/// A node is killed at any time, and its client lives on and reclaims its lock at the next process.
#[test]
fn clients_that_outlive_their_node() {
    let reclaims = |rule| Setting { crashes: 1, reclaims: true, ..setting(rule) };
    assert_eq!(holds(reclaims(liberal(3))), 65_215);
    holds(Setting { crashes: 2, ..reclaims(served("suzuki-kasami", 2)) });
    assert_eq!(find(Mistake::ServeEarly, reclaims(liberal(2))), TWO_INSIDE);
}

/// What goes wrong because of a mistake; nothing if the group only gets stuck.
fn find(mistake: Mistake, setting: Setting) -> Option<Violation> {
    let setting = Setting { mistake: Some(mistake), ..setting };
    match check(&format!("{mistake:?}"), setting).outcome {
        Outcome::Violated(violation, _) => Some(violation),
        Outcome::Stuck(_) => None,
        Outcome::Holds | Outcome::NotExhausted => {
            Some(Violation::Refused("the mistake is not found".to_owned()))
        }
    }
}

const TWO_INSIDE: Option<Violation> = Some(Violation::TwoInside);
const STARTS: Option<Violation> = Some(Violation::Starts);
const STUCK: Option<Violation> = None;

/// Each rule of the machine is needed: without it something goes wrong.
#[test]
fn mistakes_with_the_views() {
    // The mistake, the number of nodes, crashes and raises, and what goes wrong.
    let cases = [
        (Mistake::Majority, 3, 0, 1, TWO_INSIDE),
        (Mistake::Alone, 3, 0, 1, STARTS),
        (Mistake::SameEpoch, 3, 1, 0, STUCK),
        (Mistake::OlderFlush, 2, 0, 2, TWO_INSIDE),
        (Mistake::LateStart, 2, 0, 2, TWO_INSIDE),
        (Mistake::NoHolders, 3, 0, 1, TWO_INSIDE),
        (Mistake::SnapshotFirst, 3, 0, 1, TWO_INSIDE),
        (Mistake::Reread, 3, 0, 1, STARTS),
        (Mistake::RereadOwn, 3, 0, 1, STARTS),
        (Mistake::ReleaseForgotten, 3, 0, 1, STUCK),
        (Mistake::NotAskedAgain, 3, 0, 1, STUCK),
        (Mistake::FlushOnce, 3, 1, 0, STUCK),
    ];
    let mut wrong = Vec::new();
    for (mistake, size, crashes, raises, expected) in cases {
        let found = find(mistake, Setting { crashes, raises, ..setting(liberal(size)) });
        if found != expected {
            wrong.push((mistake, found));
        }
    }
    assert!(wrong.is_empty(), "not as expected: {wrong:?}");
}

/// A member that remembers the process before notices an epoch that is used again. If both nodes of
/// two crash, none remembers.
#[test]
fn an_epoch_that_is_not_durable() {
    let setting = Setting { crashes: 2, raises: 2, asks: [0; 3], ..setting(liberal(2)) };
    assert_eq!(find(Mistake::NotDurable, setting), STARTS);
}

#[test]
fn mistakes_with_the_locks() {
    let raise = |rule| Setting { raises: 1, ..setting(rule) };
    let suzuki = || raise(served("suzuki-kasami", 3));
    // Links that keep the order deliver all old messages before the flush.
    let overtaking = Setting { overtaking: true, ..suzuki() };
    assert_eq!(find(Mistake::OldSteps, overtaking), TWO_INSIDE);
    assert_eq!(find(Mistake::BareFence, suzuki()), Some(Violation::Fence));
    let ricart = raise(served("ricart-agrawala", 3));
    assert_eq!(find(Mistake::EarlyDropped, ricart), STUCK);
    let carvalho = Setting { asks: [2, 1, 0], ..raise(served("carvalho-roucairol", 2)) };
    assert_eq!(find(Mistake::FlushFirst, carvalho), TWO_INSIDE);
    let rash = Setting { asks: [1, 1, 1], ..setting(rash(3)) };
    assert_eq!(find(Mistake::SecondAcquire, rash), TWO_INSIDE);
}
