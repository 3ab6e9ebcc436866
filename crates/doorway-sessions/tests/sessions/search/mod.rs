//! Client machines and sessions together, in every schedule: two clients want the same lock, the
//! node is killed or stopped and started again, a connection is cut, a client is killed, or the
//! address of the node leads to another node for a while.
//!
//! Shipped: `Sessions`, `SessionMachine`.

mod copy_on_write;
mod mistakes;
mod world;

use std::time::Duration;

use doorway_search::{Report, System, explore_on};

use super::shell::Mistake;
use world::{Action, HealedWorlds, World, Wrong};

/// The TTL of sessions that have one.
const TTL: Duration = Duration::from_secs(2);

/// What is searched.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
pub(crate) struct Search {
    /// Whether clients come over a network, with a TTL. Otherwise their sessions live as long as
    /// their processes.
    network: bool,
    /// Whether the node is a member of a group that agrees on its members. Then clients count on
    /// their locks for the TTL only, and a client that has lost its lock asks for it again.
    member: bool,
    restart: Restart,
    /// How often the node is started again.
    restarts: u8,
    /// How often time passes, and for how long each time.
    spans: u8,
    span: Duration,
    /// How many connections are cut or, without a network, how many clients are killed.
    faults: u8,
    /// How often the address of the node leads a client to another node for a while.
    detours: u8,
    heals: HealingScope,
    mistake: Option<Mistake>,
    /// Whether the clock of the first client stands still while the first span passes. If it keeps
    /// the lock, only while it is outside.
    slow_clock: bool,
    /// Whether the first client keeps the lock until the other one wants it, and enters again.
    keep: bool,
    /// Whether the first client has a lease without end.
    endless: bool,
}

/// Where it is checked that every client gets in and leaves if nothing goes wrong from there on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HealingScope {
    /// In every state.
    Everywhere,
    /// Where every schedule ends: in states in which nothing is left to happen, except that more
    /// time passes.
    AtTheEnd,
}

/// How the node is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Restart {
    Crash,
    /// After a crash, with a ledger as version 0.1.0 wrote it.
    CrashWithOldLedger,
    /// After a graceful stop.
    Stop,
}

impl Search {
    /// Clients over a network.
    const fn network(restart: Restart) -> Self {
        Self {
            network: true,
            member: false,
            restart,
            restarts: 1,
            spans: 0,
            span: TTL,
            faults: 0,
            detours: 0,
            heals: HealingScope::AtTheEnd,
            mistake: None,
            slow_clock: false,
            keep: false,
            endless: false,
        }
    }

    /// Clients over a Unix socket, one of which is killed.
    const fn unix(restart: Restart) -> Self {
        let search = Self::network(restart);
        Self { network: false, spans: 1, faults: 1, heals: HealingScope::Everywhere, ..search }
    }

    fn run(self) -> Report<Action, Wrong> {
        explore_on(&SearchSystem { search: self, healed: HealedWorlds::default() }, 3_000_000, 2)
    }
}

/// A search, and what it has found out so far.
struct SearchSystem {
    search: Search,
    healed: HealedWorlds,
}

impl System for SearchSystem {
    type State = World;
    type Action = Action;
    type Violation = Wrong;

    fn first(&self) -> World {
        World::new(&self.search)
    }

    fn actions(&self, world: &World) -> Vec<Action> {
        world.actions(&self.search)
    }

    fn apply(&self, world: &mut World, action: Action) -> Result<(), Wrong> {
        world.apply(&self.search, action)
    }

    fn check(&self, world: &World) -> Result<(), Wrong> {
        world.check()?;
        match self.search.heals {
            HealingScope::AtTheEnd if !world.actions(&self.search).is_empty() => Ok(()),
            _ => world.heal(&self.search, &self.healed),
        }
    }
}

/// Search everything, and show how large that was.
fn search(search: Search) -> u64 {
    let report = search.run();
    println!(
        "{search:?}: {} states, {} steps, depth {}",
        report.states, report.steps, report.depth
    );
    report.expect_holds()
}

#[test]
fn a_crash_of_the_node_and_a_cut_connection() {
    search(Search { faults: 1, ..Search::network(Restart::Crash) });
}

#[test]
fn a_crash_of_the_node_while_time_passes() {
    search(Search { spans: 1, ..Search::network(Restart::Crash) });
}

#[test]
fn a_crash_with_a_ledger_of_version_0_1_0_while_time_passes() {
    search(Search { spans: 1, ..Search::network(Restart::CrashWithOldLedger) });
}

#[test]
fn a_graceful_restart_of_the_node_and_a_cut_connection() {
    search(Search { faults: 1, ..Search::network(Restart::Stop) });
}

#[test]
fn a_graceful_restart_of_the_node_while_time_passes() {
    search(Search { spans: 1, ..Search::network(Restart::Stop) });
}

#[test]
fn a_cut_connection_while_time_passes() {
    search(Search { restarts: 0, spans: 1, faults: 1, ..Search::network(Restart::Crash) });
}

#[test]
#[ignore = "takes more than ten minutes; `mistakes.rs` searches a part of it"]
fn a_detour_to_another_node_while_time_passes() {
    search(Search { restarts: 0, spans: 1, detours: 1, ..Search::network(Restart::Crash) });
}

#[test]
fn a_crash_of_the_node_and_a_killed_client_over_a_unix_socket() {
    search(Search::unix(Restart::Crash));
}

#[test]
fn a_graceful_restart_of_the_node_and_a_killed_client_over_a_unix_socket() {
    search(Search::unix(Restart::Stop));
}

/// The first client keeps the lock, and is outside, inside or about to enter again when the other
/// one asks for it.
#[test]
fn a_kept_lock_and_a_crash_of_the_node() {
    search(Search { keep: true, ..Search::network(Restart::Crash) });
}

#[test]
fn a_kept_lock_and_a_graceful_restart_of_the_node() {
    search(Search { keep: true, ..Search::network(Restart::Stop) });
}

#[test]
fn a_kept_lock_a_crash_of_the_node_and_a_cut_connection() {
    search(Search { keep: true, faults: 1, ..Search::network(Restart::Crash) });
}

/// The first client may be stopped for longer than its TTL after it has found that it keeps the
/// lock, and before it enters.
#[test]
fn a_kept_lock_while_time_passes() {
    search(Search { keep: true, restarts: 0, spans: 1, ..Search::network(Restart::Crash) });
}

#[test]
fn a_kept_lock_and_a_killed_client_over_a_unix_socket() {
    search(Search { keep: true, restarts: 0, spans: 0, ..Search::unix(Restart::Crash) });
}

/// The lock is held until its client releases it, whatever happens to the node and the connection.
#[test]
fn a_lock_without_end_a_crash_of_the_node_and_a_cut_connection() {
    search(Search { endless: true, faults: 1, ..Search::network(Restart::Crash) });
}

#[test]
fn a_lock_without_end_and_a_graceful_restart_while_time_passes() {
    search(Search { endless: true, spans: 1, ..Search::network(Restart::Stop) });
}

/// The node is away for longer than the TTL. Its ledger still has the lock, and the process of the
/// client still runs, so the client has to tell that it counts the lock as lost.
#[test]
fn a_crash_of_a_member_while_time_passes_over_a_unix_socket() {
    let heals = HealingScope::AtTheEnd;
    search(Search { member: true, faults: 0, heals, ..Search::unix(Restart::Crash) });
}
