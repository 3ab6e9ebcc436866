//! On a terminal: the command has it, job control works, a wait is shown, and `top` is live.

use crate::place::{DOORWAY, Place, Process, until};
use crate::pty::Pty;

/// A node, and a shell in a terminal.
fn shell() -> (Place, Pty) {
    let place = Place::new();
    let pty = Pty::shell(&place);
    (place, pty)
}

/// A process that holds the lock `x` under this label.
fn holder(place: &Place, label: &str) -> Process {
    let holder = Process::spawn(&mut place.run(&format!("--label {label} x"), "exec sleep 100"));
    until("the lock is held", || place.inside("x", 1));
    holder
}

#[test]
fn a_node_on_a_terminal_prints_its_log_and_nothing_else() {
    let place = Place::empty();
    let (socket, data) = (place.socket(), place.file("data").display().to_string());
    let words = [DOORWAY, "serve", "--local", "--socket", &socket, "--data", &data];
    let mut pty = Pty::new(&place, &words, 200);
    let mut shown = pty.expect("serving");
    pty.type_in("\x03");
    shown += &pty.expect("stopping");
    assert!(!shown.contains('\x1b') && !shown.contains("ansi"), "{shown}");
    // The terminal itself shows the Ctrl-C.
    for line in shown.replace("^C", "").lines().filter(|line| !line.is_empty()) {
        assert!(line.contains(" INFO ") || line.contains(" WARN "), "not a line of a log: {line}");
    }
}

#[test]
fn a_command_that_takes_long_says_what_it_does() {
    let place = Place::empty();
    // Nothing is drawn on a terminal without a cursor, as that of the other tests is.
    let words = ["env", "TERM=xterm", DOORWAY, "quorums", "cyclic", "-n", "100000"];
    let mut pty = Pty::new(&place, &words, 200);
    pty.expect("verifying that any two of 100,000 quorums meet");
}

#[test]
fn an_interactive_command_has_the_terminal() {
    let (place, mut pty) = shell();
    // It reads a line from the terminal itself, as ssh and sudo do, with its modes changed.
    let script =
        "stty -echo < /dev/tty; printf 'name? '; read a < /dev/tty; stty echo; echo hi-$a\n";
    std::fs::write(place.file("asks"), script).unwrap();
    pty.type_in("$D run x -- sh asks\n");
    pty.expect("\nname? ");
    pty.type_in("bob\n");
    pty.expect("hi-bob");
    pty.expect_exit_code(0);
}

#[test]
fn a_command_in_a_pipe_gets_the_terminal_when_it_asks() {
    let (place, mut pty) = shell();
    pty.type_in("$D run x -- sh -c 'read a < /dev/tty; echo hi-$a' | cat\n");
    until("the lock is held", || place.inside("x", 1));
    pty.type_in("bob\n");
    pty.expect("hi-bob");
    pty.expect("$ ");
}

#[test]
fn ctrl_c_ends_the_command_and_the_script_around_it() {
    let (place, mut pty) = shell();
    pty.type_in("$D run x -- sh -c 'echo in-side; exec sleep 100'\n");
    pty.expect("\nin-side");
    pty.type_in("\x03");
    pty.expect_exit_code(130);
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
    let (place, mut pty) = shell();
    pty.type_in("$D run x -- cat\n");
    until("the lock is held", || place.inside("x", 1));
    pty.expect_echo("one");
    pty.stop_job();
    pty.type_in("fg\n");
    pty.expect("run x -- cat");
    pty.expect_echo("two");
    pty.type_in("\x04");
    pty.expect_exit_code(0);
}

#[test]
fn a_job_that_is_stopped_for_longer_than_its_ttl_is_killed_when_it_continues() {
    let (place, mut pty) = shell();
    pty.type_in("$D run --ttl 3 x -- cat\n");
    until("the lock is held", || place.inside("x", 1));
    pty.stop_job();
    until("another command gets the lock", || place.code("run -n x -- true").0 == Some(0));
    pty.type_in("fg\n");
    pty.expect("lost x");
    pty.expect_exit_code(123);
}

#[test]
fn a_long_wait_shows_who_holds_the_lock_and_ends_with_ctrl_c() {
    let (place, mut pty) = shell();
    let _holder = holder(&place, "the-backup");
    pty.type_in("$D run x -- true\n");
    let before = pty.expect("doorway: waiting 2 s for x: held by the-backup");
    assert!(!before.contains("waiting 1 s"), "{before}");
    pty.expect("doorway: waiting 3 s");
    pty.type_in("\x03");
    pty.expect("\r\x1b[K");
    pty.expect_exit_code(130);
    until("the request is withdrawn", || place.waiting("x", 0));
}

#[test]
fn a_command_that_cannot_be_run_leaves_the_terminal_to_the_script() {
    let (_place, mut pty) = shell();
    pty.type_in("bash -c '$D run x -- no-such-command; read a; echo got-$a'\n");
    pty.expect("doorway: cannot run");
    pty.type_in("bob\n");
    pty.expect("got-bob");
    pty.expect("$ ");
}

#[test]
fn a_script_is_stopped_together_with_the_command_that_it_runs() {
    let (place, mut pty) = shell();
    pty.type_in("bash -c '$D run x -- cat; echo code-$?'\n");
    until("the lock is held", || place.inside("x", 1));
    pty.expect_echo("one");
    pty.stop_job();
    pty.type_in("fg\n");
    pty.expect("run x -- cat");
    pty.expect_echo("two");
    pty.type_in("\x04");
    pty.expect("code-0");
    pty.expect("$ ");
}

#[test]
fn a_command_in_the_background_gets_the_terminal_when_it_comes_to_the_foreground() {
    let (place, mut pty) = shell();
    std::fs::write(place.file("job"), "stty -echo; stty echo; echo do''ne-$?").unwrap();
    pty.type_in("$D run x -- sh job &\n");
    until("the job is stopped", || {
        pty.type_in("jobs\n");
        pty.expect("jobs\r\n");
        pty.expect("$ ").contains("Stopped")
    });
    pty.type_in("fg\n");
    pty.expect("done-0");
    pty.expect("$ ");
}

#[test]
fn a_stopped_command_that_no_shell_can_continue_is_ended() {
    let (place, mut pty) = shell();
    // The shell that could have brought the job to the foreground exits.
    let job = "until [ -e go ]; do sleep 0.02; done; exec stty -echo < /dev/tty";
    std::fs::write(place.file("job"), job).unwrap();
    pty.type_in("bash -c 'set -m; $D run x -- sh job & exit'\n");
    pty.expect("$ ");
    until("the lock is held", || place.inside("x", 1));
    std::fs::write(place.file("go"), "").unwrap();
    until("the command has ended", || place.inside("x", 0));
}

#[test]
fn a_wait_in_the_background_is_shown_when_it_comes_to_the_foreground() {
    let (place, mut pty) = shell();
    let _holder = holder(&place, "the-backup");
    pty.type_in("$D run x -- true &\n");
    until("the request waits", || place.waiting("x", 1));
    // A wait in the foreground is shown after two seconds.
    std::thread::sleep(std::time::Duration::from_millis(2300));
    pty.type_in("fg\n");
    let before = pty.expect("fg\r\n");
    assert!(!before.contains("doorway: waiting"), "{before}");
    pty.expect("doorway: waiting");
}

/// Switches to the alternate screen, and back.
const ENTER: &str = "\x1b[?1049h";
const LEAVE: &str = "\x1b[?1049l";

#[test]
fn top_is_live_on_the_alternate_screen_and_ends_with_q() {
    let (place, mut pty) = shell();
    pty.type_in("$D top -d 0.1\n");
    pty.expect(ENTER);
    pty.expect("LOCK");
    let _holder = holder(&place, "the-holder");
    pty.expect("the-holder");
    pty.type_in("q");
    pty.expect(LEAVE);
    pty.expect_exit_code(0);

    pty.type_in("$D top\n");
    pty.expect(ENTER);
    pty.expect("the-holder");
    pty.type_in("\x03");
    pty.expect(LEAVE);
    pty.expect_exit_code(130);
    // The shell has its modes back: what is typed is shown.
    pty.expect_exit_code(0);
}

#[test]
fn a_stopped_top_leaves_the_alternate_screen() {
    let (_place, mut pty) = shell();
    pty.type_in("$D top\n");
    pty.expect("LOCK");
    pty.type_in("\x1a");
    pty.expect(LEAVE);
    pty.expect("Stopped");
    pty.expect("$ ");
    pty.type_in("fg\n");
    pty.expect(ENTER);
    pty.expect("LOCK");
    pty.type_in("q");
    pty.expect_exit_code(0);
}

#[test]
fn tables_fit_into_a_terminal_of_80_columns() {
    let place = Place::new();
    let (lock, label) = ("a-rather-long-name-of-a-lock/with-parts", "y".repeat(120));
    let run = |label: &str| {
        Process::spawn(&mut place.run(&format!("--label {label} {lock}"), "exec sleep 100"))
    };
    let _holder = run(&label);
    until("the lock is held", || place.inside(lock, 1));
    let _waiter = run(&label);
    until("the request waits", || place.waiting(lock, 1));
    for words in [
        &["who", lock][..],
        &["status"],
        &["top", "--once"],
        &["list"],
        &["threads", "list"],
        &["check", "maekawa", "-n", "3"],
        &["check", "lamport", "-n", "2", "--channel", "unordered"],
        &["explain", "suzuki-kasami"],
        &["explain", "maekawa-textbook"],
        &["explain", "knuth"],
        &["paper", "slides-complexity", "-n", "9"],
        &["simulate", "raymond-tree", "-n", "30"],
        &["compare", "maekawa", "raymond-tree", "majority", "lamport"],
        &["story"],
        &["story", "maekawa-displaced-3"],
        &["story", "maekawa/section-5"],
        &["diagram", "suzuki-kasami", "-n", "12"],
        &["threads", "check", "dijkstra", "-n", "3"],
        &["doctor", "--socket", "@nobody-listens-at-this-rather-long-name-of-a-socket"],
    ] {
        let command = [&["sh", "-c", "\"$@\"; echo :end:", "sh", DOORWAY], words].concat();
        let mut pty = Pty::new(&place, &command, 80);
        let shown = pty.expect(":end:\r\n");
        // A line that shows progress is written again and again.
        for line in shown.lines().flat_map(|line| line.split('\r')) {
            assert!(line.chars().count() <= 80, "{words:?}: {line}");
        }
        assert!(shown.lines().count() >= 3, "{words:?}: {shown}");
    }
}
