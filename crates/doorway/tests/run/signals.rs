//! Signals: they are forwarded to the command, or end a wait.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::place::{DOORWAY, Place, Process, children, line_of, lives, until};

#[test]
fn a_signal_while_waiting_ends_the_wait() {
    let place = Place::new();
    let holder = Process::spawn(&mut place.run("x", "exec sleep 100"));
    until("the lock is held", || place.inside("x", 1));
    for (name, code) in [("INT", 130), ("TERM", 143), ("HUP", 129), ("USR1", 138)] {
        let waiter = Process::spawn(&mut place.run("x", "exit 0"));
        until("the request waits", || place.waiting("x", 1));
        waiter.signal(name);
        assert_eq!(waiter.end().code(), Some(code), "{name}");
        until("the request is withdrawn", || place.waiting("x", 0));
    }
    holder.signal("TERM");
    assert_eq!(holder.end().code(), Some(143));
}

#[test]
fn a_signal_ends_the_server_of_the_live_page() {
    let place = Place::new();
    for (name, code, signal) in [("INT", Some(0), None), ("TERM", None, Some(15))] {
        let said = place.file("said");
        let mut top = place.command(["top", "--page", "--no-open"]);
        let top = Process::spawn(top.stdout(std::fs::File::create(&said).unwrap()));
        assert!(line_of(&said).starts_with("The page is at "), "{name}");
        top.signal(name);
        let end = top.end();
        assert_eq!((end.code(), end.signal()), (code, signal), "{name}");
    }
}

#[test]
fn signals_are_forwarded_to_the_command() {
    let place = Place::new();
    let file = place.file("got");
    let names = "INT TERM HUP QUIT USR1 USR2 WINCH ALRM CONT ABRT XCPU";
    for name in names.split(' ') {
        let _ = std::fs::remove_file(&file);
        let line = format!(
            "trap 'echo {name} > got; exit 7' {name}; echo > ready; while :; do sleep 0.02; done"
        );
        let _ = std::fs::remove_file(place.file("ready"));
        let mut command = place.run("x", &line);
        // The shell reports there how its children ended.
        let command = command.current_dir(&place.directory).stderr(Stdio::null());
        let wrapper = Process::spawn(command);
        wait_until_ready(&place);
        wrapper.signal(name);
        assert_eq!(wrapper.end().code(), Some(7), "{name}");
        assert_eq!(line_of(&file), name);
    }
}

fn wait_until_ready(place: &Place) {
    until("it is ready", || place.file("ready").exists());
}

#[test]
fn a_signal_reaches_every_process_of_the_command() {
    let place = Place::new();
    let line = "sleep 100 & echo $! > pid; wait";
    let wrapper = Process::spawn(place.run("x", line).current_dir(&place.directory));
    let grandchild: u32 = line_of(&place.file("pid")).parse().unwrap();
    assert!(lives(grandchild));
    wrapper.signal("TERM");
    assert_eq!(wrapper.end().code(), Some(143));
    until("the grandchild is gone", || !lives(grandchild));
    until("and the lock is free", || place.inside("x", 0));
}

#[test]
fn a_command_that_ignores_a_signal_keeps_the_lock() {
    let place = Place::new();
    let line = "trap '' TERM; echo > ready; until [ -e go ]; do sleep 0.02; done; exit 5";
    let wrapper = Process::spawn(place.run("x", line).current_dir(&place.directory));
    wait_until_ready(&place);
    wrapper.signal("TERM");
    wrapper.signal("TERM");
    assert!(place.inside("x", 1), "it holds the lock as long as it runs");
    std::fs::write(place.file("go"), "").unwrap();
    assert_eq!(wrapper.end().code(), Some(5));
}

#[test]
fn under_nohup_a_hangup_is_ignored() {
    let place = Place::new();
    let ignoring = |line: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("trap '' HUP; exec {DOORWAY} run x -- {line}")]);
        command.env("DOORWAY_SOCKET", place.socket()).current_dir(&place.directory);
        Process::spawn(&mut command)
    };
    // The command does not ignore SIGHUP: it would end if the wrapper forwarded one.
    let line = "env --default-signal=HUP sh -c 'until [ -e go ]; do sleep 0.02; done; exit 4'";
    let holder = ignoring(line);
    until("the lock is held", || place.inside("x", 1));
    let waiter = ignoring("sh -c 'exit 5'");
    until("the request waits", || place.waiting("x", 1));
    for wrapper in [&holder, &waiter] {
        wrapper.signal("HUP");
    }
    std::thread::sleep(Duration::from_millis(100));
    assert!(place.inside("x", 1) && place.waiting("x", 1));
    std::fs::write(place.file("go"), "").unwrap();
    assert_eq!(holder.end().code(), Some(4));
    assert_eq!(waiter.end().code(), Some(5));
}

#[test]
fn a_command_that_is_killed_ends_the_wrapper() {
    let place = Place::new();
    let wrapper = Process::spawn(&mut place.run("x", "exec sleep 100"));
    until("the lock is held", || place.inside("x", 1));
    until("it runs", || children(wrapper.id()).len() == 1);
    crate::place::signal(children(wrapper.id())[0], "KILL");
    assert_eq!(wrapper.end().code(), Some(137));
}

#[test]
fn the_end_of_the_command_is_noticed_where_sigchld_was_ignored() {
    let place = Place::new();
    let run = |words: &[&str]| {
        let mut command = Command::new("perl");
        command.args(["-e", "$SIG{CHLD} = 'IGNORE'; exec @ARGV", DOORWAY, "run", "x", "--"]);
        command.args(words).env("DOORWAY_SOCKET", place.socket());
        let out = std::fs::File::create(place.file("out")).unwrap();
        Process::spawn(command.stdout(out)).end().code()
    };
    assert_eq!(run(&["sh", "-c", "exit 4"]), Some(4));
    assert_eq!(run(&["grep", "SigIgn", "/proc/self/status"]), Some(0));
    let line = line_of(&place.file("out"));
    let mask = line.strip_prefix("SigIgn:").map(str::trim);
    let mask = u64::from_str_radix(mask.expect(&line), 16).unwrap();
    assert_eq!(mask >> 16 & 1, 1, "the command starts with SIGCHLD ignored: {line}");
}
