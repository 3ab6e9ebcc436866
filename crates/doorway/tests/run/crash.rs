//! The node is killed while a command holds a lock.

use crate::place::{Place, Process, line_of, until};

#[test]
fn a_lock_survives_a_crash_of_the_node() {
    let mut place = Place::new();
    let line = "echo $DOORWAY_FENCE > fence; until [ -e go ]; do sleep 0.02; done; exit 3";
    let wrapper = Process::spawn(place.run("x", line).current_dir(&place.directory));
    let fence = line_of(&place.file("fence"));
    place.kill_node();
    place.start();
    until("it is held again", || place.inside("x", 1));
    assert_eq!(place.who("x")["holders"][0]["fence"].as_str(), Some(&*fence), "the same grant");
    assert_eq!(place.code("run -n x -- true").0, Some(1));
    std::fs::write(place.file("go"), "").unwrap();
    assert_eq!(wrapper.end().code(), Some(3));
    let next = place.run("-w 30 x", "echo $DOORWAY_FENCE").output().unwrap();
    let next: u64 = String::from_utf8(next.stdout).unwrap().trim().parse().unwrap();
    assert!(next > fence.parse().unwrap(), "fences grow");
}

#[test]
fn waiting_requests_survive_a_crash_of_the_node() {
    let mut place = Place::new();
    let line = "echo a >> log; until [ -e go ]; do sleep 0.02; done; echo b >> log";
    let wrapper = Process::spawn(place.run("x", line).current_dir(&place.directory));
    until("the lock is held", || place.file("log").exists());
    let mut waiters = Vec::new();
    for _ in 0..2 {
        let line = "echo c >> log; sleep 0.1; echo d >> log";
        waiters.push(Process::spawn(place.run("x", line).current_dir(&place.directory)));
    }
    until("the requests wait", || place.waiting("x", 2));
    place.kill_node();
    place.start();
    until("they wait again", || place.inside("x", 1) && place.waiting("x", 2));
    std::fs::write(place.file("go"), "").unwrap();
    assert_eq!(wrapper.end().code(), Some(0));
    for waiter in waiters {
        assert_eq!(waiter.end().code(), Some(0));
    }
    let log = std::fs::read_to_string(place.file("log")).unwrap();
    assert_eq!(log.replace('\n', ""), "abcdcd", "never two inside");
}

#[test]
fn a_holder_that_died_with_the_node_does_not_delay_the_restart() {
    let mut place = Place::new();
    let wrapper = Process::spawn(&mut place.run("-o --ttl 50 x", "exec sleep 100"));
    until("the lock is held", || place.inside("x", 1));
    place.kill_node();
    wrapper.signal("KILL");
    wrapper.end();
    place.start();
    let done = place.run("-w 20 x", "exit 0").status().unwrap();
    assert_eq!(done.code(), Some(0), "long before the 50 seconds are over");
}

#[test]
fn after_a_crash_of_the_node_a_killed_wrapper_still_leaves_the_lock_to_the_command() {
    let mut place = Place::new();
    let line = "echo $$ > pid; exec sleep 100";
    let wrapper = Process::spawn(place.run("x", line).current_dir(&place.directory));
    let child: u32 = line_of(&place.file("pid")).parse().unwrap();
    place.kill_node();
    place.start();
    until("it is held again", || place.inside("x", 1));
    until("a process keeps the connection open", || {
        crate::place::children(wrapper.id()).len() == 2
    });
    wrapper.signal("KILL");
    wrapper.end();
    std::thread::sleep(std::time::Duration::from_millis(100));
    assert_eq!(place.code("run -n x -- true").0, Some(1), "the command holds it");
    crate::place::signal(child, "KILL");
    until("the lock is free", || place.code("run -n x -- true").0 == Some(0));
}
