//! A lock of this machine is held as long as its processes exist, as with flock: whether they run
//! or are stopped, and whether the node runs, is killed or is restarted.

use std::time::Duration;

use crate::place::{Place, Process, line_of, signal, until};
use crate::skip::skip;

/// How a node ends.
const ENDS: [&str; 2] = ["KILL", "TERM"];

/// A wrapper with a command that holds `x`, and the process of the command.
fn hold(place: &Place) -> (Process, u32) {
    let line = "echo $$ > pid; exec sleep 100";
    let wrapper = Process::spawn(place.run("x", line).current_dir(&place.directory));
    let command = line_of(&place.file("pid")).parse().expect("the number of a process");
    // The node has seen the socket that the processes hold.
    until("the lock is held", || place.inside("x", 1));
    (wrapper, command)
}

/// End the node in this way, and start the next one.
fn restart(place: &mut Place, how: &str) {
    place.end_node(how);
    place.start();
}

/// The lock is held, and another one is served at once.
fn is_held_and_others_are_served(place: &Place) {
    assert_eq!(place.code("run -n x -- true").0, Some(1), "two are inside");
    assert_eq!(place.code("run -n y -- true").0, Some(0), "another lock is not served");
}

#[test]
fn a_stopped_wrapper_keeps_its_lock() {
    let place = Place::new();
    let (wrapper, _) = hold(&place);
    wrapper.signal("STOP");
    // Longer than the shortest time to live. No longer time matters either, because the session has
    // no TTL: see the next test.
    std::thread::sleep(Duration::from_millis(700));
    is_held_and_others_are_served(&place);
    wrapper.signal("CONT");
    wrapper.signal("TERM");
    wrapper.end();
    until("the lock is free", || place.code("run -n x -- true").0 == Some(0));
}

/// A wrapper may be stopped for as long as anybody likes, because no time ends its session.
#[test]
fn a_session_of_this_machine_has_a_ttl_only_if_it_is_asked_for() {
    let place = Place::new();
    let told = |words: &str| {
        let line = "echo ttl=${DOORWAY_TTL_MS-none}";
        let done = place.run(&format!("--verbose {words} x"), line).output().expect("it runs");
        assert!(done.status.success(), "{done:?}");
        let told = String::from_utf8(done.stderr).expect("text");
        (
            String::from_utf8(done.stdout).expect("text"),
            told.contains("lost if the node hears nothing"),
        )
    };
    assert_eq!(told(""), ("ttl=none\n".to_owned(), false));
    assert_eq!(told("--ttl 20s"), ("ttl=20000\n".to_owned(), true));
}

#[test]
fn a_stopped_wrapper_keeps_its_lock_over_a_restart_of_the_node() {
    for how in ENDS {
        let mut place = Place::new();
        let (wrapper, command) = hold(&place);
        wrapper.signal("STOP");
        restart(&mut place, how);
        is_held_and_others_are_served(&place);
        wrapper.signal("CONT");
        std::thread::sleep(Duration::from_millis(300));
        is_held_and_others_are_served(&place);
        signal(command, "TERM");
        assert_eq!(wrapper.end().code(), Some(128 + 15), "{how}: the command ended by itself");
        until("the lock is free", || place.code("run -n x -- true").0 == Some(0));
    }
}

#[test]
fn the_command_of_a_killed_wrapper_keeps_the_lock_over_a_restart_of_the_node() {
    for how in ENDS {
        let mut place = Place::new();
        let (wrapper, command) = hold(&place);
        wrapper.signal("KILL");
        wrapper.end();
        restart(&mut place, how);
        is_held_and_others_are_served(&place);
        signal(command, "KILL");
        until("the lock is free", || place.code("run -n x -- true").0 == Some(0));
    }
}

#[test]
fn a_lock_whose_processes_are_all_gone_is_free_after_a_restart_of_the_node() {
    for how in ENDS {
        let mut place = Place::new();
        let (wrapper, command) = hold(&place);
        signal(place.node(), "STOP");
        wrapper.signal("KILL");
        wrapper.end();
        signal(command, "KILL");
        signal(place.node(), "CONT");
        restart(&mut place, how);
        let done = place.run("-w 20 x", "exit 0").status().unwrap();
        assert_eq!(done.code(), Some(0), "{how}: nobody holds it any more");
    }
}

/// A node in a container does not see the processes of its machine.
#[test]
fn a_node_that_cannot_see_a_process_gives_its_lock_a_ttl_and_run_says_so() {
    let Some(place) = Place::in_namespace() else {
        return skip("this user cannot make a pid namespace");
    };
    let (code, told) = place.code("run --verbose x -- true");
    assert_eq!(code, Some(0), "{told}");
    let why = "lost if the node hears nothing for 60 s, because the node cannot see this process";
    assert!(told.contains(why), "{told}");
    let (code, told) = place.code(&format!("lock x --pid {}", std::process::id()));
    assert_eq!(code, Some(64), "{told}");
    assert!(told.contains("different pid namespaces") && told.contains("--ttl"), "{told}");
}
