//! The lock is held until the last process of the command is gone, as with flock(1).

use crate::place::{Place, Process, children, line_of, lives, signal, until};

#[test]
fn a_killed_wrapper_leaves_the_lock_to_the_processes_of_its_command() {
    let place = Place::new();
    let line = "(echo > in; exec sleep 100) & echo $! > pid; exec sleep 100";
    let wrapper = Process::spawn(place.run("--ttl 2 x", line).current_dir(&place.directory));
    let grandchild: u32 = line_of(&place.file("pid")).parse().unwrap();
    until("the lock is held", || place.file("in").exists());
    let child = children(wrapper.id())[0];
    wrapper.signal("KILL");
    assert_eq!(wrapper.end().code(), None);
    assert!(lives(child) && lives(grandchild), "nobody kills them");
    signal(child, "KILL");
    until("the child is gone", || !lives(child));
    // Longer than the TTL of the session.
    std::thread::sleep(std::time::Duration::from_millis(2500));
    assert_eq!(place.code("run -n x -- true").0, Some(1), "the grandchild holds it");
    signal(grandchild, "KILL");
    until("the lock is free", || place.code("run -n x -- true").0 == Some(0));
}

#[test]
fn a_command_that_ends_leaves_the_lock_to_its_background_processes() {
    let place = Place::new();
    let line = "sleep 100 > /dev/null 2>&1 & echo $! > pid; exit 3";
    let status = place.run("x", line).current_dir(&place.directory).status().unwrap();
    assert_eq!(status.code(), Some(3));
    let grandchild: u32 = line_of(&place.file("pid")).parse().unwrap();
    assert_eq!(place.code("run -n x -- true").0, Some(1), "the grandchild holds it");
    signal(grandchild, "KILL");
    until("the lock is free", || place.code("run -n x -- true").0 == Some(0));
}

#[test]
fn with_o_a_killed_wrapper_ends_the_command_and_frees_the_lock() {
    let place = Place::new();
    let line = "echo $$ > pid; exec sleep 100";
    let wrapper = Process::spawn(place.run("-o x", line).current_dir(&place.directory));
    let child: u32 = line_of(&place.file("pid")).parse().unwrap();
    wrapper.signal("KILL");
    wrapper.end();
    until("the command is gone", || !lives(child));
    until("the lock is free", || place.code("run -n x -- true").0 == Some(0));

    let line = "sleep 100 > /dev/null 2>&1 & echo $! > second; exit 3";
    let status = place.run("-o x", line).current_dir(&place.directory).status().unwrap();
    assert_eq!(status.code(), Some(3));
    let grandchild: u32 = line_of(&place.file("second")).parse().unwrap();
    assert_eq!(place.code("run -n x -- true").0, Some(0), "the grandchild holds nothing");
    signal(grandchild, "KILL");
}

#[test]
fn a_wrapper_that_is_killed_while_waiting_leaves_the_queue() {
    let place = Place::new();
    let holder = Process::spawn(&mut place.run("x", "exec sleep 100"));
    until("the lock is held", || place.inside("x", 1));
    let waiter = Process::spawn(&mut place.run("x", "echo no; exit 9"));
    until("the request waits", || place.waiting("x", 1));
    waiter.signal("KILL");
    waiter.end();
    until("the request is gone", || place.waiting("x", 0));
    holder.signal("TERM");
    holder.end();
    assert_eq!(place.code("run x -- true").0, Some(0));
}
