//! Clients of three nodes read, pause and write a shared file under a lock, while clients, links
//! and nodes are killed and paused.
//!
//! Every run asserts that never two clients are sure of the lock at the same time, by their own
//! clocks, and that fences grow. If the resource checks fences, no update is lost. If it does not,
//! lost updates are counted and printed: no lock can undo what a paused holder does later.

mod history;
mod nemesis;
mod worker;

use std::fs;
use std::time::Duration;

use crate::common::group::Group;
use history::History;
use nemesis::Nemesis;

/// The time to live of sessions: short, so that much happens in little time.
pub(crate) const TTL: Duration = Duration::from_millis(500);

/// How long faults are injected.
const TROUBLE: Duration = Duration::from_secs(20);

fn run(fenced: bool, seed: u64) -> History {
    let mut group = Group::start("[limits]\nttl = \"2s\"\n");
    let shared = group.place.file("shared");
    fs::create_dir(&shared).expect("the directory is new");
    fs::write(shared.join("value"), worker::shown(0)).expect("a file");
    fs::write(shared.join("inside"), "-").expect("a file");
    let mut nemesis = Nemesis::new(&mut group, &shared, fenced, seed);
    nemesis.rage(TROUBLE);
    nemesis.make_peace();
    let told = nemesis.told();
    drop(nemesis);
    let history = History::read(&shared);
    println!("fences {}: {told}; {history}", if fenced { "compared" } else { "not compared" });
    history.assert_exclusive();
    history
}

#[test]
fn no_update_is_lost_if_fences_are_compared() {
    let history = run(true, 1);
    assert_eq!(history.lost_updates(), 0, "{history}");
}

#[test]
fn without_comparing_fences_the_lost_updates_are_counted() {
    let history = run(false, 2);
    println!("lost updates without comparing fences: {}", history.lost_updates());
}
