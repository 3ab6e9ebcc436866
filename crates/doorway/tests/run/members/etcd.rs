//! Groups that agree on their members by a real etcd, with real nodes. `cargo xtask test etcd`
//! installs etcd and runs these tests.

#[path = "../../../../doorway-members/src/tests/etcd_server.rs"]
mod etcd_server;

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use super::HOLD;
use super::group::{Group, LEASE, Pace};
use crate::place::{line_of, until};
use etcd_server::EtcdServer;

#[test]
#[ignore = "needs etcd; `cargo xtask test etcd` runs it"]
fn operators_see_and_change_a_group_in_etcd() {
    let mut server = EtcdServer::stopped();
    let mut group = Group::by_etcd(&server.url(), Pace::QUICK);
    (0..3).for_each(|node| group.start(node));
    until("the node says that etcd is away", || {
        group.answer(0, "status").contains("etcd cannot be reached since ")
    });
    let said = group.mistake(0, "members init", 69);
    assert!(said.contains("etcd cannot be used: http://127.0.0.1:"), "{said}");
    server.start();
    let advice = "the group is not founded yet: run `doorway members init` at one node";
    until("the node reaches etcd", || group.answer(0, "members").contains(advice));

    let said = group.answer(0, "members init");
    assert!(said.starts_with("founded the group shop:\n"), "{said}");
    (0..3).for_each(|node| group.complete(node));
    for node in 0..3 {
        group.lock(node, "x");
        assert!(group.mistake(node, "members init", 64).contains("founded already"));
    }
    let said = group.answer(1, "members");
    assert_eq!(said.matches(" member ").count(), 3, "{said}");
    let last = format!("agreed by etcd at {}, which answers; nobody votes\n", server.url());
    assert!(said.ends_with(&last), "{said}");
    assert!(group.answer(2, "status").contains(&format!("group     {last}")));
    let doctor = group.answer(0, "doctor --config a.toml");
    assert!(doctor.contains(&format!("etcd answers: {}", server.url())), "{doctor}");
    let metrics = group.get(2, "/metrics");
    assert!(metrics.contains("\ndoorway_members_etcd_reachable 1\n"), "{metrics}");
    assert!(!metrics.contains("doorway_members_voters"), "{metrics}");

    group.start(3);
    let add = format!("members add d {}", group.address(3));
    until("it has found the group", || {
        group.answer(3, "status").contains(&format!("`doorway {add}`"))
    });
    assert!(group.answer(1, &add).starts_with("added d to the group shop: agreed by etcd"));
    (0..4).for_each(|node| group.complete(node));
    group.lock(3, "x");
    group.kill(2);
    group.wipe(2);
    group.start(2);
    until("it knows that it has to be replaced", || {
        group.answer(2, "members").contains("`doorway members replace c`")
    });
    group.answer(0, "members replace c");
    (0..4).for_each(|node| group.complete(node));
    assert!(group.answer(0, "members remove d").starts_with("removed d from the group shop: "));
    (0..3).for_each(|node| group.complete(node));
    assert_eq!(group.answer(1, "members lease 3s"), "the lease is 3.0 s now\n");
    let backup: serde_json::Value =
        serde_json::from_str(&group.answer(2, "members backup")).unwrap();
    assert_eq!((&backup["lease_ms"], &backup["group"]), (&3000.into(), &"shop".into()));
    let log = group.answer(2, "members log");
    for part in [": init: done\n", ": replace c: done\n", ": remove d: done\n"] {
        assert!(log.contains(part), "{log}");
    }

    // A node that agrees by Raft cannot be mixed in, and its directory neither.
    group.stop(2);
    let said = group.mistake(2, "members recover --alone --config c.toml", 64);
    assert!(said.contains("the members agree by etcd") && said.contains("recover etcd"), "{said}");
    let address = group.address(2).to_owned();
    group.configure(2, &format!("[members]\naddress = \"{address}\"\n"));
    let said = group.not_started(2);
    assert!(said.contains("belongs to a group that agrees by etcd"), "{said}");
    group.kill(3);
    group.wipe(3);
    let address = group.address(3).to_owned();
    group.configure(3, &format!("[members]\naddress = \"{address}\"\n"));
    group.start(3);
    let said = group.mistake(0, &add, 69);
    assert!(said.contains("it agrees by Raft, but this node by etcd"), "{said}");
}

/// A node is killed and started again: the job keeps its lock.
#[test]
#[ignore = "needs etcd; `cargo xtask test etcd` runs it"]
fn a_restart_loses_nothing() {
    let server = EtcdServer::new();
    let mut group = Group::by_etcd(&server.url(), Pace::PATIENT);
    group.found(3);
    let job = group.run(1, "x", HOLD);
    let fence = line_of(&group.place.file("fence"));
    group.kill(1);
    group.start(1);
    group.complete(0);
    group.complete(1);
    let who = group.answer(0, "who x --json");
    assert!(who.contains(&format!("\"fence\":\"{fence}\"")), "the same grant: {who}");
    fs::write(group.place.file("go"), "").unwrap();
    assert_eq!(job.end().code(), Some(3));
}

/// The holder's machine dies: another client enters after the lease.
#[test]
#[ignore = "needs etcd; `cargo xtask test etcd` runs it"]
fn machines_die_and_long_leases_outlive_them() {
    let server = EtcdServer::new();
    let mut group = Group::by_etcd(&server.url(), Pace::QUICK);
    group.found(3);
    let job = group.run(2, "x", "echo > held; exec sleep 1000");
    until("the lock is held", || group.place.file("held").exists());
    let begin = Instant::now();
    let promised = group.answer(2, "lock y --ttl 60");
    group.kill(2);
    group.lock(0, "x");
    assert!(begin.elapsed() > LEASE / 2, "and not before the lease is over");
    assert_eq!(job.end().code(), Some(123), "the lock is lost, so the command is ended");
    until("the lock is closed", || group.answer(0, "who y").contains("kept closed"));
    group.answer(0, &format!("break y --fence {promised}"));
    group.lock(1, "y");
    assert!(begin.elapsed() < Duration::from_mins(1), "before its end");
}

/// etcd stays away for longer than the lease: holders are told before anyone else can enter.
#[test]
#[ignore = "needs etcd; `cargo xtask test etcd` runs it"]
fn without_etcd_nothing_is_granted_when_the_lease_is_over() {
    let mut server = EtcdServer::new();
    let mut group = Group::by_etcd(&server.url(), Pace::QUICK);
    group.found(3);
    let before = group.fence(1, "x");
    let job = group.run(0, "x", "echo > held; exec sleep 1000");
    until("the lock is held", || group.place.file("held").exists());
    server.kill();
    assert_eq!(job.end().code(), Some(123), "the holder is told");
    for node in 0..3 {
        until("the node knows", || {
            group.answer(node, "status").contains("etcd cannot be reached since ")
        });
        assert_ne!(group.output(node, "run -w 0.3 x -- true").status.code(), Some(0));
    }
    let said = group.answer(0, "members");
    assert!(said.contains(&format!("etcd at {}, which cannot be reached for ", server.url())));
    assert!(group.get(0, "/health").contains("503"));
    let doctor = group.output(0, "doctor --config a.toml");
    assert!(String::from_utf8_lossy(&doctor.stdout).contains("etcd cannot be reached for "));
    let said = group.mistake(0, "members lease 4s", 69);
    assert!(said.contains("look with `doorway members`"), "{said}");
    server.start();
    (0..3).for_each(|node| group.complete(node));
    assert!(group.fence(2, "x") > before, "fences grow");
}

/// etcd is killed and started again under a workload, and comes back in time: no lock is lost.
#[test]
#[ignore = "needs etcd; `cargo xtask test etcd` runs it"]
fn a_workload_goes_on_while_etcd_is_started_again() {
    let mut server = EtcdServer::new();
    // The lease lasts while etcd is started again.
    let mut group = Group::by_etcd(&server.url(), Pace::PATIENT);
    group.found(3);
    let holder = group.run(2, "held", HOLD);
    until("the lock is held", || group.place.file("fence").exists());
    let (done, rounds) = (AtomicBool::new(false), 3);
    let grants: Vec<u32> = scope(|scope| {
        let clients = [0, 1, 2].map(|node| {
            let (group, done) = (&group, &done);
            scope.spawn(move || {
                let line = "mkdir in || echo twice >> bad; echo $DOORWAY_FENCE >> fences; rmdir in";
                let mut grants = 0;
                while !done.load(Ordering::Relaxed) {
                    let mut run = group.command(node, "run -w 60 x -- sh -c");
                    let ended = run.arg(line).output().unwrap();
                    assert!(ended.status.success(), "{ended:?}");
                    grants += 1;
                }
                grants
            })
        });
        for round in 0..rounds {
            sleep(Duration::from_millis(500));
            let lines = || fs::read_to_string(group.place.file("fences")).unwrap_or_default();
            let before = lines().lines().count();
            server.kill();
            sleep(Duration::from_millis(500));
            server.start();
            let back = lines().lines().count();
            until("grants go on", || lines().lines().count() > back + 5);
            println!("round {round}: {} grants while etcd was away", back - before);
        }
        done.store(true, Ordering::Relaxed);
        clients.map(|client| client.join().unwrap()).to_vec()
    });
    assert!(grants.iter().all(|count| *count > 0), "{grants:?}");
    assert!(!group.place.file("bad").exists(), "two were inside");
    let fences = fs::read_to_string(group.place.file("fences")).unwrap();
    let fences: Vec<u64> = fences.lines().map(|line| line.parse().unwrap()).collect();
    assert!(fences.is_sorted_by(|one, other| one < other), "{fences:?}");
    assert_eq!(fences.len() as u32, grants.iter().sum::<u32>());
    fs::write(group.place.file("go"), "").unwrap();
    assert_eq!(holder.end().code(), Some(3), "the holder has kept its lock");
    println!("{} grants", fences.len());
}
