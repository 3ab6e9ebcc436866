//! Groups that agree on their members, with real nodes: machines die, come back, join and leave.

mod doors;
mod etcd;
mod fixed;
pub(crate) mod group;
mod operators;
mod restarts;
mod rules;
mod upgrade;

use std::fs;
use std::time::{Duration, Instant};

use crate::place::{line_of, lives, until};
use group::{Group, LEASE, Pace};

/// A job that writes its fence, and holds its lock until it may go.
const HOLD: &str = "echo $DOORWAY_FENCE > fence; until [ -e go ]; do sleep 0.02; done; exit 3";

#[test]
fn a_group_is_founded_once() {
    let mut group = Group::new();
    (0..2).for_each(|node| group.start(node));
    let advice = "the group is not founded yet: run `doorway members init` at one node";
    assert!(group.answer(0, "members").contains(advice));
    assert!(group.answer(0, "status").contains(advice));
    assert!(group.get(0, "/health").contains(advice));
    assert!(group.mistake(0, "members add d x:1", 69).contains(advice));
    let said = group.mistake(0, "members init", 69);
    assert!(said.contains(group.address(2)) && said.contains("nothing was changed"), "{said}");
    assert!(group.mistake(0, "members init --lease 1s", 64).contains("2 seconds to 5 minutes"));

    group.start(2);
    let said = group.answer(0, "members init");
    assert!(said.starts_with("founded the group shop:\n"), "{said}");
    for part in ["a ", "b ", "c ", group.address(2), "votes"] {
        assert!(said.contains(part), "{said}");
    }
    (0..3).for_each(|node| group.complete(node));
    for node in 0..3 {
        group.lock(node, "x");
        assert!(group.mistake(node, "members init", 64).contains("founded already"));
    }
    let said = group.answer(1, "members");
    assert_eq!(said.matches("in view").count(), 3, "{said}");
    assert_eq!(said.matches(" ago\n").count(), 3, "the age of the last beat of each: {said}");
    assert_eq!(said.matches("leader").count(), 1, "{said}");
    for seat in group.members(1)["seats"].as_array().expect("seats") {
        assert!(seat["beat_ms"].as_u64().is_some_and(|age| age < 60_000), "{seat}");
        assert_eq!(seat["waiting_for"], serde_json::json!([]), "it is in the view");
    }
    assert!(said.ends_with("3 of 3 votes; one more loss stops nothing\n"), "{said}");
    assert!(group.answer(1, "status").contains("votes     3 of 3 votes"));

    let metrics = group.get(2, "/metrics");
    for (name, value) in [("seated", "3"), ("votes_reachable", "3"), ("seats", "3")] {
        assert!(metrics.contains(&format!("\ndoorway_members_{name} {value}\n")), "{metrics}");
    }
    for name in ["lease_left_seconds", "beat_age_seconds", "elections_total"] {
        assert!(metrics.contains(&format!("\ndoorway_members_{name} ")), "{metrics}");
    }
    for name in ["renewal", "sync"] {
        let times = group.count(2, &format!("doorway_members_{name}_seconds_count"));
        assert!(times > 0, "{name}: {metrics}");
    }
    // Another node has entered the view of the node that founded the group.
    assert!(group.count(0, "doorway_members_view_change_seconds_count") > 0);
    let http = group.get(2, "/v1/members");
    assert!(http.contains("\"cluster\":\"") && http.contains("\"beat_ms\":"), "{http}");
    let doctor = group.answer(0, "doctor --config a.toml");
    assert!(doctor.contains("3 of 3 voters can be reached"), "{doctor}");
}

#[test]
fn machines_come_and_go_while_the_others_work() {
    let mut group = Group::founded();
    let (third, fourth) = (group.address(2).to_owned(), group.address(3).to_owned());
    let add = format!("members add d {fourth}");
    let said = group.mistake(0, &add, 69);
    assert!(said.contains(&format!("no node of the group shop answers at {fourth}")), "{said}");
    group.start(3);
    until("it has found the group", || {
        group.answer(3, "status").contains(&format!("`doorway members add d {fourth}`"))
    });
    for (words, code, part) in [
        (format!("members add e {fourth}"), 64, "is `d`, not `e`"),
        (format!("members add d {third}"), 64, "is that of `c` already"),
        (format!("members add c {fourth}"), 64, "`c` belongs to the group already"),
        ("members add d nowhere".to_owned(), 64, "give HOST:PORT"),
        ("members remove z".to_owned(), 64, "it has a, b, c"),
        ("members replace z".to_owned(), 64, "it has a, b, c"),
        ("members replace b".to_owned(), 64, "still has its old data directory"),
        ("members lease 10m".to_owned(), 64, "2 seconds to 5 minutes"),
    ] {
        let said = group.mistake(0, &words, code);
        assert!(said.contains(part), "{words}: {said}");
    }
    let before = group.members(0);
    assert_eq!(before["seats"].as_array().map(Vec::len), Some(3), "nothing was changed");

    let said = group.answer(1, &add);
    assert_eq!(said, "added d to the group shop: 3 of 3 votes; one more loss stops nothing\n");
    (0..4).for_each(|node| group.complete(node));
    assert_eq!(group.members(3)["seats"][3]["role"], "learner");
    for node in 0..4 {
        group.lock(node, "x");
    }

    // A new disk makes a new seat, which has to be let in.
    group.kill(2);
    group.wipe(2);
    group.start(2);
    until("it knows that it has to be replaced", || {
        group.answer(2, "members").contains("`doorway members replace c`")
    });
    group.answer(0, "members replace c");
    (0..4).for_each(|node| group.complete(node));
    group.lock(2, "x");

    assert!(group.answer(0, "members remove d").starts_with("removed d from the group shop: "));
    (0..3).for_each(|node| group.complete(node));
    until("it knows that it was removed", || {
        group.answer(3, "status").contains("this node is not a member")
    });
    let said = group.mistake(0, &add, 64);
    assert!(said.contains("start it with an empty data directory"), "{said}");

    assert_eq!(group.answer(1, "members lease 3s"), "the lease is 3.0 s now\n");
    let backup: serde_json::Value =
        serde_json::from_str(&group.answer(2, "members backup")).unwrap();
    assert_eq!((&backup["lease_ms"], &backup["group"]), (&3000.into(), &"shop".into()));
    assert_eq!(backup["seats"].as_array().map(Vec::len), Some(3));
    assert_eq!(backup["cluster"], before["cluster"]);

    // A stop gives up the seat, so nobody has to wait for a lease, which is longer than the test.
    group.answer(1, "members lease 4m");
    until("the lease is longer", || group.members(2)["lease_left_ms"].as_u64() > Some(120_000));
    group.stop(2);
    group.seated(0, 2);
    group.lock(0, "x");
}

/// A node is killed and started again: the job keeps its lock.
#[test]
fn a_restart_loses_nothing() {
    let mut group = Group::founded_at(Pace::PATIENT);
    let job = group.run(1, "x", HOLD);
    let fence = line_of(&group.place.file("fence"));
    let promised = group.answer(2, "lock y --ttl 60");
    for node in [1, 2] {
        group.kill(node);
        group.start(node);
    }
    (0..3).for_each(|node| group.complete(node));
    let who = group.answer(0, "who x --json");
    assert!(who.contains(&format!("\"fence\":\"{fence}\"")), "the same grant: {who}");
    // The lease that the group keeps goes on as well.
    let who = group.answer(0, "who y");
    assert!(who.contains(promised.trim()) && !who.contains("kept closed"), "{who}");
    for name in ["x", "y"] {
        let code = group.output(0, &format!("run -n {name} -- true")).status.code();
        assert_eq!(code, Some(1), "{name} is held");
    }
    fs::write(group.place.file("go"), "").unwrap();
    assert_eq!(job.end().code(), Some(3));
}

/// A lease that is much longer begins before the shorter one ends, so no client notices.
#[test]
fn a_longer_lease_loses_nothing() {
    let group = Group::founded();
    let job = group.run(1, "x", HOLD);
    let fence = line_of(&group.place.file("fence"));
    let view = group.members(0)["view"].clone();
    group.answer(0, "members lease 5m");
    until("the lease is longer", || {
        (0..3).all(|node| group.members(node)["lease_left_ms"].as_u64() > Some(200_000))
    });
    assert_eq!(group.members(0)["view"], view, "no member was lost");
    assert!(group.answer(1, "who x --json").contains(&format!("\"fence\":\"{fence}\"")));
    fs::write(group.place.file("go"), "").unwrap();
    assert_eq!(job.end().code(), Some(3));
}

/// The holder's machine dies: another client enters after the lease.
#[test]
fn a_dead_machine_stops_nobody_for_long() {
    let mut group = Group::founded();
    let job = group.run(2, "x", "echo > held; exec sleep 1000");
    until("the lock is held", || group.place.file("held").exists());
    let begin = Instant::now();
    group.kill(2);
    group.lock(0, "x");
    assert!(begin.elapsed() > LEASE / 2, "and not before the lease is over");
    assert_eq!(job.end().code(), Some(123), "the lock is lost, so the command is ended");
    group.lock(1, "fresh");
    until("one machine is away", || {
        let said = group.answer(0, "members");
        said.contains("away ") && said.contains("2 of 3 votes; one more loss stops all locks")
    });
    let removals = |node| group.count(node, "doorway_members_removals_total");
    assert_eq!(removals(0) + removals(1), 1, "one of the others has removed it");
    let said = group.output(0, "members --wait 0.3");
    assert_eq!(said.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&said.stderr).contains("not in the view in time: c"));
    let said = group.mistake(0, "members remove b", 69);
    assert!(said.contains("because c cannot be reached"), "{said}");
    assert!(said.contains("--force"), "{said}");
    group.start(2);
    (0..3).for_each(|node| group.complete(node));
}

/// If only the wrapper of a command is stopped while the lease of its node ends, nobody can end the
/// command. Another client gets the lock, and only the fence tells the two apart.
#[test]
fn the_command_of_a_stopped_wrapper_outlives_the_lease_of_its_node() {
    let mut group = Group::founded();
    let job = group.run(0, "x", "echo $$ > pid; echo $DOORWAY_FENCE > fence; exec sleep 1000");
    let old = line_of(&group.place.file("fence"));
    let command = line_of(&group.place.file("pid")).parse().expect("the number of a process");
    job.signal("STOP");
    group.kill(1);
    group.kill(2);
    let lapses = || group.count(0, "doorway_members_lapses_total");
    until("the node has lost its lease", || lapses() == 1);
    (1..3).for_each(|node| group.start(node));
    let new = group.fence(1, "x").to_string();
    assert!(lives(command), "nobody could end it");
    let pass = |fence: &str| group.output(1, &format!("fence-guard guard {fence}")).status.code();
    assert_eq!((pass(&new), pass(&old)), (Some(0), Some(1)), "the resource refuses the old holder");

    job.signal("CONT");
    assert_eq!(job.end().code(), Some(123), "the wrapper ends its command as soon as it runs");
    until("the command is gone", || !lives(command));
}

#[test]
fn without_a_quorum_nothing_is_granted() {
    let mut group = Group::founded();
    let job = group.run(0, "x", "echo > held; exec sleep 1000");
    until("the lock is held", || group.place.file("held").exists());
    group.kill(1);
    group.kill(2);
    assert_eq!(job.end().code(), Some(123), "the holder is told in time");
    until("the node knows", || group.answer(0, "status").contains("no quorum for"));
    until("the node counts it", || group.count(0, "doorway_members_lapses_total") == 1);
    let said = group.answer(0, "members");
    assert!(said.contains("waiting for b, c"), "{said}");
    assert!(said.ends_with(" s: no locks are granted; start b or c\n"), "{said}");
    assert!(said.contains("\n1 of 3 votes for "), "{said}");
    assert!(group.answer(0, "status").contains("start b or c"));
    assert!(group.get(0, "/health").contains("503"));
    assert_ne!(group.output(0, "run -w 0.5 x -- true").status.code(), Some(0));
    let said = group.mistake(0, "members lease 4s", 69);
    assert!(said.contains("look with `doorway members`"), "{said}");
    group.start(1);
    group.seated(0, 2);
    group.lock(0, "x");
    group.lock(1, "x");
}

/// A group in which a client of the third machine holds `x` without end, and the fence of that.
fn endless() -> (Group, String) {
    let mut group = Group::new();
    group.add_settings("[limits]\nendless = true\n");
    group.found(3);
    // On a machine that has much else to do, a node may lose its short lease at this moment.
    let mut taken = String::new();
    until("the lock is taken", || {
        let done = group.output(2, "lock x --ttl never --json");
        taken = String::from_utf8(done.stdout).expect("text");
        done.status.success()
    });
    let taken: serde_json::Value = serde_json::from_str(&taken).expect("JSON");
    assert!(taken["ttl_ms"].is_null(), "{taken}");
    assert_eq!(group.output(0, "run -n x -- true").status.code(), Some(1), "it is held");
    (group, taken["fence"].as_str().expect("a fence").to_owned())
}

/// A lock without end is held until it is released or broken, whatever happens to its machine.
#[test]
fn a_lock_without_end_outlives_its_machine() {
    let (mut group, fence) = endless();
    group.kill(2);
    until("the lock is closed", || group.answer(0, "who x").contains("kept closed without end"));
    assert_eq!(group.output(0, "run -w 1 x -- true").status.code(), Some(1), "it is promised");
    group.answer(0, &format!("break x --fence {fence}"));
    group.lock(1, "x");
}

/// The machine of the client was removed while its node runs: the client can still release it. What
/// an operator does there is not noted by the group.
#[test]
fn a_lock_without_end_is_released_at_a_removed_machine() {
    let (group, fence) = endless();
    group.answer(0, "members remove c");
    until("it knows that it was removed", || {
        group.answer(2, "status").contains("this node is not a member")
    });
    until("the lock is closed", || group.answer(0, "who x").contains("kept closed without end"));
    assert_eq!(group.output(0, "run -w 1 x -- true").status.code(), Some(1), "it is promised");
    // The node has lost the lock, and so it says. Its client does not believe in it any more.
    let said = group.output(2, &format!("unlock x --fence {fence}"));
    assert_eq!(said.status.code(), Some(123), "{said:?}");
    until("the lock is open", || !group.answer(0, "who x").contains("kept closed"));
    group.lock(0, "x");

    assert_ne!(group.output(2, "break x --fence 1").status.code(), Some(0));
    let log = group.place.file("c.log");
    until("the log says that this is noted nowhere else", || {
        let log = fs::read_to_string(&log).expect("a log");
        log.contains("not in the audit log of the group")
    });
    assert!(!group.answer(0, "members log").contains("break x"));
}

/// The node is back before the group goes on without it: the lock is still held, and is released as
/// usual.
#[test]
fn a_lock_without_end_outlives_a_restart() {
    let mut group = Group::on(group::Machine::local(4), 3, Pace::PATIENT);
    group.add_settings("[limits]\nendless = true\n");
    group.found(3);
    let fence = group.answer(0, "lock y --ttl never");
    group.kill(0);
    group.start(0);
    (0..3).for_each(|node| group.complete(node));
    assert_eq!(group.output(1, "run -n y -- true").status.code(), Some(1), "it is held");
    group.answer(0, &format!("renew y --fence {fence}"));
    group.answer(0, &format!("unlock y --fence {fence}"));
    group.lock(1, "y");
}

/// In a fixed group, the ledger of its node keeps a lock without end.
#[test]
fn a_lock_without_end_waits_for_its_machine_in_a_fixed_group() {
    let mut group = Group::on(group::Machine::local(4), 3, Pace::PATIENT);
    (0..3).for_each(|node| group.fix(node));
    group.add_settings("[limits]\nendless = true\n");
    (0..3).for_each(|node| group.start(node));
    let fence = group.answer(2, "lock x --ttl never");
    group.kill(2);
    assert_ne!(group.output(0, "run -w 1 x -- true").status.code(), Some(0), "it waits for c");
    group.start(2);
    until("the lock is held again", || group.answer(0, "who x").contains(fence.trim()));
    assert_eq!(group.output(0, "run -w 1 x -- true").status.code(), Some(1), "it is held");
    group.answer(2, &format!("unlock x --fence {fence}"));
    group.lock(0, "x");
}

/// A lease that is longer than the lease of the machines outlives the machine that granted it.
#[test]
fn a_long_lease_outlives_its_machine() {
    let mut group = Group::founded();
    // It pays for the agreement of the group, and is released like any other.
    let fence = group.answer(2, "lock x --ttl 60");
    assert_eq!(group.output(0, "run -n x -- true").status.code(), Some(1), "it is held");
    group.answer(2, &format!("unlock x --fence {fence}"));
    group.lock(0, "x");

    // The machine dies: its lock is free when the time of the lease has passed, and others are not
    // held up.
    let begin = Instant::now();
    let fence = group.answer(2, "lock x --ttl 6");
    group.kill(2);
    group.lock(0, "y");
    until("the lock is closed", || group.answer(0, "who x").contains("kept closed"));
    let who = group.answer(0, "who x");
    assert!(who.contains("kept closed for at most "), "{who}");
    assert!(who.contains("promised by an earlier process of c"), "{who}");
    assert!(who.contains(fence.trim()), "{who}");
    let said = group.mistake(1, "run -n x -- true", 1);
    assert!(said.contains("promised by an earlier process of c"), "{said}");
    group.lock(1, "x");
    assert!(begin.elapsed() > Duration::from_secs(6), "not before its end");

    // The machine stays away, and an operator knows that nobody uses the lock any more.
    group.start(2);
    (0..3).for_each(|node| group.complete(node));
    let (begin, fence) = (Instant::now(), group.answer(2, "lock x --ttl 60"));
    group.kill(2);
    until("the lock is closed", || group.answer(0, "who x").contains("kept closed"));
    assert_eq!(group.output(0, "run -w 1 x -- true").status.code(), Some(1), "it is promised");
    group.answer(0, &format!("break x --fence {fence}"));
    group.lock(1, "x");
    assert!(begin.elapsed() < Duration::from_mins(1), "before its end");
}
