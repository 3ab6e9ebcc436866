//! Five real nodes in network namespaces, with clients on each, while machines die, stop, are cut
//! off, run out of disk space and are replaced.
//!
//! A referee, which is a process of its own, accepts the clients' writes by their fences and keeps
//! a log. From that log the judge proves that no two clients were inside at one time, that fences
//! grow, that no client hangs, and that every client that lost its lock was told.
//!
//! `cargo xtask faults` runs this and writes the table in docs/faults.md.

mod clients;
#[path = "../run/members/group.rs"]
mod group;
mod judge;
mod machines;
mod metronome;
#[path = "../run/place.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod place;
mod referee;
mod scenarios;
mod table;
mod trial;

use std::process::Command;

/// The variable that says that the test runs in namespaces of its own already.
const INSIDE: &str = "DOORWAY_FAULTS_INSIDE";

/// How often machines are killed; 3 if it is not set. Other faults are rarer.
const TIMES: &str = "DOORWAY_FAULTS_TIMES";

/// Only faults with this in their names happen, if it is set.
const ONLY: &str = "DOORWAY_FAULTS_ONLY";

/// The file to write the table to, if it is set.
const TABLE: &str = "DOORWAY_FAULTS_TABLE";

#[test]
#[ignore = "it takes a minute and a half, and needs iproute2, nftables and network namespaces"]
fn a_group_in_network_namespaces() {
    let var = |name| std::env::var(name).ok();
    if var(INSIDE).is_some() {
        let times = var(TIMES).map_or(3, |text| text.parse().expect("a number of times"));
        scenarios::run(times, &var(ONLY).unwrap_or_default(), var(TABLE).as_deref());
        return;
    }
    let words = machines::unshare().expect("this user can make network namespaces");
    let mut again = Command::new("unshare");
    again.args(words).arg(std::env::current_exe().expect("a program"));
    again.args(["a_group_in_network_namespaces", "--exact", "--ignored", "--nocapture"]);
    let status = again.env(INSIDE, "1").status().expect("it starts");
    assert!(status.success(), "{status}");
}
