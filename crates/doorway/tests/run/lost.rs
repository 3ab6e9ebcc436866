//! The lock is lost while the command runs.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::place::{Place, Process, children, line_of, lives, signal_group, until};

/// Break the lock, as its user would: look first, then confirm with the fence.
fn break_it(place: &Place, lock: &str) {
    let who = place.who(lock);
    let fence = who["holders"][0]["fence"].as_str().expect("someone is inside");
    let shown = place.output(&format!("break {lock}"));
    let how = String::from_utf8(shown.stderr).expect("text");
    assert_eq!(shown.status.code(), Some(64), "the fence confirms it: {how}");
    assert!(how.contains(&format!("doorway break {lock} --fence {fence}")), "{how}");
    assert!(place.answer(&format!("break {lock} --fence {fence}")).starts_with("broke"));
}

fn hold(place: &Place, words: &str, line: &str) -> Process {
    let log = fs::File::create(place.file("errors")).expect("a file");
    let mut command = place.run(words, line);
    let command = command.current_dir(&place.directory).stderr(Stdio::from(log));
    let wrapper = Process::spawn(command);
    until("it is ready", || place.file("ready").exists());
    wrapper
}

fn errors(place: &Place) -> String {
    fs::read_to_string(place.file("errors")).expect("a file")
}

#[test]
fn a_broken_lock_ends_the_command_with_123() {
    let place = Place::new();
    let wrapper = hold(&place, "x", "echo > ready; exec sleep 100");
    let child = children(wrapper.id())[0];
    break_it(&place, "x");
    assert_eq!(wrapper.end().code(), Some(123));
    assert!(!lives(child));
    let text = errors(&place);
    assert!(text.starts_with("doorway: lost x: ") && text.lines().count() == 1, "{text}");
    assert_eq!(place.code("run -n x -- true").0, Some(0));
}

#[test]
fn a_command_that_ignores_sigterm_is_killed_with_its_group() {
    let place = Place::new();
    let line = "trap '' TERM; sleep 100 & echo $! > pid; echo > ready; wait; wait; sleep 100";
    let wrapper = hold(&place, "--grace 0.2 --lost-exit-code 9 x", line);
    let grandchild: u32 = line_of(&place.file("pid")).parse().unwrap();
    break_it(&place, "x");
    assert_eq!(wrapper.end().code(), Some(9));
    until("the grandchild is gone as well", || !lives(grandchild));
}

#[test]
fn on_lost_chooses_what_happens_to_the_command() {
    let place = Place::new();
    let trap = "trap 'echo > usr1; exit 0' USR1; echo > ready; while :; do sleep 0.02; done";
    let wrapper = hold(&place, "--on-lost signal:USR1 x", trap);
    break_it(&place, "x");
    assert_eq!(wrapper.end().code(), Some(123));
    assert!(place.file("usr1").exists());

    fs::remove_file(place.file("ready")).unwrap();
    let wait = "echo > ready; until [ -e go ]; do sleep 0.02; done; exit 6";
    let wrapper = hold(&place, "--on-lost ignore x", wait);
    break_it(&place, "x");
    until("the loss is reported", || errors(&place).contains("lost x"));
    fs::write(place.file("go"), "").unwrap();
    assert_eq!(wrapper.end().code(), Some(6), "the command goes on");

    fs::remove_file(place.file("ready")).unwrap();
    fs::remove_file(place.file("go")).unwrap();
    let mut command =
        place.command(["run", "--on-lost", "exec:echo $DOORWAY_LOCK > go", "x", "--"]);
    command.args(["sh", "-c", wait]).current_dir(&place.directory);
    let wrapper = Process::spawn(&mut command);
    until("it is ready", || place.file("ready").exists());
    break_it(&place, "x");
    assert_eq!(wrapper.end().code(), Some(123));
    assert_eq!(line_of(&place.file("go")), "x");
}

#[test]
fn a_holder_that_is_stopped_beyond_its_ttl_loses_the_lock_and_notices() {
    let place = Place::new();
    let line = "echo $DOORWAY_FENCE > old; echo > ready; exec sleep 100";
    let wrapper = hold(&place, "--ttl 3 x", line);
    let child = children(wrapper.id())[0];
    wrapper.signal("STOP");
    signal_group(child, "STOP");
    let next = place.run("-w 30 x", "echo $DOORWAY_FENCE").output().unwrap();
    assert!(next.status.success(), "the next enters: {next:?}");
    let new = String::from_utf8(next.stdout).unwrap().trim().to_owned();
    let old = line_of(&place.file("old"));
    assert!(new.parse::<u64>().unwrap() > old.parse::<u64>().unwrap());

    let guard = place.file("guard");
    let pass = |fence: &str| place.code(&format!("fence-guard {} {fence}", guard.display())).0;
    assert_eq!(pass(&new), Some(0));
    assert_eq!(pass(&old), Some(1), "the paused holder is refused at the resource");

    wrapper.signal("CONT");
    assert_eq!(wrapper.end().code(), Some(123));
    until("the command is gone, and never went on", || !lives(child));
}

#[test]
fn without_a_node_the_command_is_ended_before_the_lease_expires() {
    let mut place = Place::new();
    let line = "trap 'date +%s%N > term' TERM; echo > ready; while :; do sleep 0.02; done";
    let wrapper = hold(&place, "--ttl 8 x", line);
    let child = children(wrapper.id())[0];
    place.kill_node();
    let begin = Instant::now();
    assert_eq!(wrapper.end().code(), Some(123));
    let took = begin.elapsed();
    assert!(took < Duration::from_secs(8), "it ended before the lease expired: {took:?}");
    assert!(!lives(child));
    assert!(place.file("term").exists(), "it got SIGTERM first");
}

#[test]
fn a_release_after_a_loss_does_not_free_the_next_grant() {
    let place = Place::new();
    let fence = place.answer("lock x --ttl 60");
    break_it(&place, "x");
    let _next = Process::spawn(&mut place.run("x", "exec sleep 100"));
    until("the next is inside", || place.inside("x", 1));
    for _ in 0..2 {
        let (code, text) = place.code(&format!("unlock x --fence {}", fence.trim()));
        assert_eq!(code, Some(123), "{text}");
    }
    assert!(place.inside("x", 1), "the newer grant is not touched");
}

#[test]
fn background_processes_of_a_command_that_lost_its_lock_are_killed() {
    let place = Place::new();
    // The command itself ends at once; its background process ignores SIGTERM.
    let line = "(trap '' TERM; echo > ready; exec sleep 100) & echo $! > pid; wait";
    for words in ["--grace 0.2 x", "-o x"] {
        for file in ["ready", "pid"] {
            let _ = fs::remove_file(place.file(file));
        }
        let wrapper = hold(&place, words, line);
        let worker: u32 = line_of(&place.file("pid")).parse().unwrap();
        break_it(&place, "x");
        assert_eq!(wrapper.end().code(), Some(123), "{words}");
        until("the worker is gone", || !lives(worker));
    }
}

#[test]
fn background_processes_of_a_command_that_lost_its_lock_have_time_to_end() {
    let place = Place::new();
    let worker =
        "trap 'sleep 0.1; echo > saved; exit' TERM; echo > ready; while :; do sleep 0.02; done";
    let wrapper = hold(&place, "x", &format!("({worker}) & wait"));
    break_it(&place, "x");
    assert_eq!(wrapper.end().code(), Some(123));
    assert!(place.file("saved").exists(), "the wrapper waited for it");
}

#[test]
fn a_standard_error_that_nobody_reads_does_not_delay_the_end() {
    let place = Place::new();
    let (theirs, ours) = rustix::pipe::pipe().expect("a pipe");
    rustix::io::ioctl_fionbio(&ours, true).expect("it need not wait");
    while rustix::io::write(&ours, &[0; 4096]).is_ok() {}
    rustix::io::ioctl_fionbio(&ours, false).expect("it waits");
    let mut command = place.run("--verbose x", "echo > ready; exec sleep 100");
    command.current_dir(&place.directory).stderr(Stdio::from(ours));
    let wrapper = Process::spawn(&mut command);
    until("it is ready", || place.file("ready").exists());
    break_it(&place, "x");
    assert_eq!(wrapper.end().code(), Some(123));
    drop(theirs);
}
