//! On a terminal: the command has it, job control works, and a wait is shown.

use crate::place::{Place, Process, until};
use crate::pty::Pty;

#[test]
fn an_interactive_command_has_the_terminal() {
    let place = Place::new();
    let mut pty = Pty::shell(&place);
    // It reads a line from the terminal itself, as ssh and sudo do, with its modes changed.
    let script =
        "stty -echo < /dev/tty; printf 'name? '; read a < /dev/tty; stty echo; echo hi-$a\n";
    std::fs::write(place.file("asks"), script).unwrap();
    pty.type_in("$D run x -- sh asks\n");
    pty.expect("\nname? ");
    pty.type_in("bob\n");
    pty.expect("hi-bob");
    pty.expect("$ ");
    pty.type_in("echo again-$?\n");
    pty.expect("again-0");
}

#[test]
fn a_command_in_a_pipe_gets_the_terminal_when_it_asks() {
    let place = Place::new();
    let mut pty = Pty::shell(&place);
    pty.type_in("$D run x -- sh -c 'read a < /dev/tty; echo hi-$a' | cat\n");
    until("it is inside", || place.inside("x", 1));
    pty.type_in("bob\n");
    pty.expect("hi-bob");
    pty.expect("$ ");
}

#[test]
fn ctrl_c_ends_the_command_and_the_script_around_it() {
    let place = Place::new();
    let mut pty = Pty::shell(&place);
    pty.type_in("$D run x -- sh -c 'echo in-side; exec sleep 100'\n");
    pty.expect("\nin-side");
    pty.type_in("\x03");
    pty.expect("$ ");
    pty.type_in("echo code-$?\n");
    pty.expect("code-130");
    until("the lock is free", || place.inside("x", 0));

    pty.type_in(
        "bash -c 'for i in 1 2; do $D run x -- sh -c \"echo go-$i; exec sleep 100\"; done'\n",
    );
    pty.expect("\ngo-1");
    pty.type_in("\x03");
    let shown = pty.expect("$ ");
    assert!(!shown.contains("go-2"), "{shown}");
}

#[test]
fn a_command_is_stopped_and_continued_like_any_job() {
    let place = Place::new();
    let mut pty = Pty::shell(&place);
    pty.type_in("$D run x -- cat\n");
    until("it is inside", || place.inside("x", 1));
    pty.type_in("one\n");
    pty.expect("one\r\none");
    pty.type_in("\x1a");
    pty.expect("Stopped");
    pty.expect("$ ");
    pty.type_in("fg\n");
    pty.expect("run x -- cat");
    pty.type_in("two\n");
    pty.expect("two\r\ntwo");
    pty.type_in("\x04");
    pty.expect("$ ");
    pty.type_in("echo code-$?\n");
    pty.expect("code-0");
}

#[test]
fn a_job_that_is_stopped_for_too_long_never_goes_on() {
    let place = Place::new();
    let mut pty = Pty::shell(&place);
    pty.type_in("$D run --ttl 3 x -- cat\n");
    until("it is inside", || place.inside("x", 1));
    pty.type_in("\x1a");
    pty.expect("Stopped");
    until("others may enter", || place.code("run -n x -- true").0 == Some(0));
    pty.type_in("fg\n");
    pty.expect("lost x");
    pty.expect("$ ");
    pty.type_in("echo code-$?\n");
    pty.expect("code-123");
}

#[test]
fn a_long_wait_shows_who_holds_the_lock_and_ends_with_ctrl_c() {
    let place = Place::new();
    let _holder = Process::spawn(&mut place.run("--label the-backup x", "exec sleep 100"));
    until("it is inside", || place.inside("x", 1));
    let mut pty = Pty::shell(&place);
    pty.type_in("$D run x -- true\n");
    let before = pty.expect("doorway: waiting 2 s for x: held by the-backup");
    assert!(!before.contains("waiting 1 s"), "{before}");
    pty.expect("doorway: waiting 3 s");
    pty.type_in("\x03");
    pty.expect("\r\x1b[K");
    pty.expect("$ ");
    pty.type_in("echo code-$?\n");
    pty.expect("code-130");
    until("it is withdrawn", || place.waiting("x", 0));
}

#[test]
fn a_command_that_cannot_be_run_leaves_the_terminal_to_the_script() {
    let place = Place::new();
    let mut pty = Pty::shell(&place);
    pty.type_in("bash -c '$D run x -- no-such-command; read a; echo got-$a'\n");
    pty.expect("doorway: cannot run");
    pty.type_in("bob\n");
    pty.expect("got-bob");
    pty.expect("$ ");
}

#[test]
fn a_script_is_stopped_with_the_command_that_it_runs() {
    let place = Place::new();
    let mut pty = Pty::shell(&place);
    pty.type_in("bash -c '$D run x -- cat; echo code-$?'\n");
    until("it is inside", || place.inside("x", 1));
    pty.type_in("one\n");
    pty.expect("one\r\none");
    pty.type_in("\x1a");
    pty.expect("Stopped");
    pty.expect("$ ");
    pty.type_in("fg\n");
    pty.expect("run x -- cat");
    pty.type_in("two\n");
    pty.expect("two\r\ntwo");
    pty.type_in("\x04");
    pty.expect("code-0");
    pty.expect("$ ");
}

#[test]
fn a_command_in_the_background_has_the_terminal_when_it_comes_to_the_front() {
    let place = Place::new();
    let mut pty = Pty::shell(&place);
    std::fs::write(place.file("job"), "stty -echo; stty echo; echo do''ne-$?").unwrap();
    pty.type_in("$D run x -- sh job &\n");
    until("it is stopped", || {
        pty.type_in("jobs\n");
        pty.expect("jobs\r\n");
        pty.expect("$ ").contains("Stopped")
    });
    pty.type_in("fg\n");
    pty.expect("done-0");
    pty.expect("$ ");
}

#[test]
fn a_command_that_nobody_can_continue_is_not_left_stopped() {
    let place = Place::new();
    let mut pty = Pty::shell(&place);
    // The shell that could have brought it to the foreground is gone.
    let job = "until [ -e go ]; do sleep 0.02; done; exec stty -echo < /dev/tty";
    std::fs::write(place.file("job"), job).unwrap();
    pty.type_in("bash -c 'set -m; $D run x -- sh job & exit'\n");
    pty.expect("$ ");
    until("it is inside", || place.inside("x", 1));
    std::fs::write(place.file("go"), "").unwrap();
    until("it has ended", || place.inside("x", 0));
}

#[test]
fn a_wait_in_the_background_is_shown_when_it_comes_to_the_front() {
    let place = Place::new();
    let _holder = Process::spawn(&mut place.run("x", "exec sleep 100"));
    until("it is inside", || place.inside("x", 1));
    let mut pty = Pty::shell(&place);
    pty.type_in("$D run x -- true &\n");
    until("it waits", || place.waiting("x", 1));
    // Longer than a wait in the foreground is silent.
    std::thread::sleep(std::time::Duration::from_millis(2300));
    pty.type_in("fg\n");
    let before = pty.expect("fg\r\n");
    assert!(!before.contains("doorway: waiting"), "{before}");
    pty.expect("doorway: waiting");
}

#[test]
fn the_table_of_locks_is_live() {
    let place = Place::new();
    let mut pty = Pty::shell(&place);
    pty.type_in("$D top -d 0.1\n");
    pty.expect("LOCK");
    let _holder = Process::spawn(&mut place.run("--label the-holder x", "exec sleep 100"));
    pty.expect("the-holder");
    pty.type_in("\x03");
    pty.expect("$ ");
    pty.type_in("echo code-$?\n");
    pty.expect("code-130");
}
