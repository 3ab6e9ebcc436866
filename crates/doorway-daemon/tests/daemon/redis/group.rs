//! Redis clients of several nodes of one group.

use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use super::client::{Raw, request};
use crate::common::group::Group;
use crate::common::until;

#[test]
fn nodes_of_a_group_give_a_lock_to_one_client() {
    let group = Group::start("[redis]\nlisten = \"127.0.0.1:0\"\n");
    let mut raws: Vec<_> = group.nodes.iter().map(Raw::at).collect();
    let [one, two, three] = &mut raws[..] else { unreachable!() };
    assert_eq!(one.line("SET k mine NX PX 30000"), "+OK");
    assert_eq!(two.line("SET k yours NX PX 5000"), "nil");
    // A client that asks several nodes with one value gets the lock at one of them.
    assert_eq!(three.line("SET k mine NX PX 5000"), "nil");
    let fence = one.line("DOORWAY.FENCE k");
    for raw in [&mut *two, &mut *three] {
        assert_eq!(raw.line("GET k"), "\"mine\"");
        assert_eq!(raw.line("DOORWAY.FENCE k"), fence);
        assert_eq!(raw.line("EXISTS k"), ":1");
        assert_eq!(raw.line("DELIFEQ k mine"), ":0", "a lock is released where it was acquired");
    }
    assert_eq!(one.line("DELIFEQ k mine"), ":1");
    assert_eq!(two.line("SET k yours NX PX 5000"), "+OK");
    assert_eq!(three.line("DEL k"), ":1", "it is broken at the other node");
    assert_eq!(two.line("GET k"), "nil");
}

#[test]
fn a_client_that_disconnects_while_it_asks_gets_nothing() {
    let group = Group::start("[redis]\nlisten = \"127.0.0.1:0\"\n");
    group.nodes[1].signal(Signal::STOP);
    let mut raw = Raw::at(&group.nodes[0]);
    // Longer than `until` waits, so that the lease does not end by itself.
    raw.send(&request(&["SET", "k", "mine", "NX", "PX", "600000"]));
    thread::sleep(Duration::from_millis(300));
    drop(raw);
    // The node has to notice that before the other node answers. If it were granted first, the lock
    // would be kept for its client, as in Redis.
    thread::sleep(Duration::from_millis(300));
    group.nodes[1].signal(Signal::CONT);
    let mut other = Raw::at(&group.nodes[2]);
    until("the lock is free", || other.line("SET k yours NX PX 5000") == "+OK");
}
