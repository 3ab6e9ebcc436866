//! The node of a user, which `doorway run` starts when it is needed.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::place::{Place, Process, lives, signal, until};
use crate::pty::Pty;
use crate::user::{User, text};

#[test]
fn the_first_run_starts_a_node_and_the_second_finds_it() {
    let Some(user) = User::new() else { return };
    let refused = user.run("run --no-start x -- true");
    assert_eq!(refused.status.code(), Some(69), "{refused:?}");
    let first = user.run("run x -- echo one");
    assert_eq!(first.status.code(), Some(0), "{first:?}");
    assert_eq!(text(&first.stdout), "one\n");
    assert!(first.stderr.is_empty(), "cron would send it by mail: {first:?}");
    let pid = user.node().expect("the node runs");
    let second = user.run("run x -- echo two");
    assert!(second.stderr.is_empty(), "{second:?}");
    assert_eq!(user.node(), Some(pid));
    let verbose = text(&user.run("run --verbose x -- true").stderr);
    assert!(verbose.contains("scope: this user") && verbose.contains("@doorway-"), "{verbose}");

    // A login shell has many variables in its environment and cron few: both use the same node.
    let mut login = user.doorway("run x -- sleep 100");
    login.env("HOME", "/nowhere").env("TMPDIR", "/tmp").env("XDG_RUNTIME_DIR", "/run/user/1");
    let _holder = Process::spawn(&mut login);
    until("it is held", || user.run("run -n x -- true").status.code() == Some(1));
    assert_eq!(user.node(), Some(pid));
}

#[test]
fn a_started_node_is_announced_on_a_terminal_and_with_verbose() {
    let Some(user) = User::new() else { return };
    let said = text(&user.run("run --verbose x -- true").stderr);
    let pid = user.node().expect("the node runs");
    let line =
        format!("doorway: started a local node (pid {pid}): its locks are those of this user only");
    assert_eq!(said.lines().next(), Some(&*line), "{said}");

    signal(pid, "KILL");
    until("the node is gone", || !lives(pid));
    let place = Place::empty();
    let id = user.id.to_string();
    let program = user.directory.join("doorway").display().to_string();
    let words = ["env", "-u", "DOORWAY_SOCKET", "setpriv", "--reuid", &id, "--regid", &id];
    let words = [&words[..], &["--clear-groups", &program, "run", "x", "--", "true"]].concat();
    Pty::new(&place, &words, 80).expect("started a local node");
}

#[test]
fn looking_at_locks_does_not_start_a_node() {
    let Some(user) = User::new() else { return };
    for words in ["status", "who x", "top", "break x"] {
        let done = user.run(words);
        assert_eq!(done.status.code(), Some(69), "{words}: {done:?}");
        let said = text(&done.stderr);
        let expected = format!("doorway: no node runs for this user at @doorway-{}", user.id);
        assert!(said.starts_with(&expected) && said.lines().count() == 1, "{words}: {said}");
        assert_eq!(user.node(), None, "{words}");
    }
}

#[test]
fn a_node_of_the_user_that_hangs_is_named() {
    let Some(user) = User::new() else { return };
    user.fence();
    let node = user.node().expect("it runs");
    signal(node, "STOP");
    for (words, seconds) in [("run x -- true", 10), ("run -w 3 x -- true", 3)] {
        let begin = Instant::now();
        let done = user.run(words);
        assert_eq!(done.status.code(), Some(69), "{words}: {done:?}");
        let expected = format!("doorway: no node answered within {seconds} s at @doorway-");
        let said = text(&done.stderr);
        assert!(said.starts_with(&expected) && said.contains("is it stopped?"), "{words}: {said}");
        assert!(begin.elapsed() < Duration::from_secs(20), "{words}: {:?}", begin.elapsed());
    }
    signal(node, "KILL");
}

#[test]
fn a_command_that_does_not_wait_finds_the_next_node_after_one_was_killed() {
    let Some(user) = User::new() else { return };
    for round in 0..10 {
        user.fence();
        signal(user.node().expect("it runs"), "KILL");
        // At once: the connection may still reach the socket of the process that ends.
        let done = user.run("run -n x -- true");
        assert_eq!(done.status.code(), Some(0), "round {round}: {done:?}");
    }
}

#[test]
fn a_node_that_was_killed_or_stopped_is_replaced() {
    let Some(user) = User::new() else { return };
    let mut last = user.fence();
    for round in 0..3 {
        let node = user.node().expect("it runs");
        signal(node, if round == 1 { "TERM" } else { "KILL" });
        until("the node is gone", || !lives(node));
        let fence = user.fence();
        assert!(fence > last, "fences grow: {fence} after {last}");
        last = fence;
    }
    let node = user.node().expect("it runs");
    signal(node, "KILL");
    until("the node is gone", || !lives(node));
    fs::remove_dir_all(format!("/var/tmp/doorway-{}", user.id)).unwrap();
    // The first number of a fresh directory is made from the time, in steps of ten minutes, so
    // this fence may equal the one before.
    assert!(user.fence() > 1 << 40);
}

#[test]
fn a_holder_starts_the_node_again_and_keeps_its_lock() {
    let Some(user) = User::new() else { return };
    let line = "echo $DOORWAY_FENCE > in; until [ -e go ]; do sleep 0.02; done; exit 5";
    let mut holder = user.command(&["./doorway", "run", "x", "--", "sh", "-c", line]);
    let holder = Process::spawn(holder.stderr(Stdio::null()));
    let fence = crate::place::line_of(&user.directory.join("in"));
    let node = user.node().expect("it runs");
    signal(node, "KILL");
    until("the node is gone", || !lives(node));
    until("another one runs", || user.node().is_some_and(|new| new != node));
    until("it is held again", || text(&user.run("who x").stdout).contains(&fence));
    assert_eq!(user.run("run -n x -- true").status.code(), Some(1));
    fs::write(user.directory.join("go"), "").unwrap();
    assert_eq!(holder.end().code(), Some(5));
}

#[test]
fn an_idle_node_ends_and_the_next_run_starts_another() {
    let Some(user) = User::new() else { return };
    let mut serve = user.doorway("serve --local --idle-stop 0.3");
    let node = Process::spawn(serve.stdout(Stdio::null()).stderr(Stdio::null()));
    until("it listens", || user.node().is_some());
    let first = user.fence();
    assert_eq!(node.end().code(), Some(0), "it ends by itself");
    let second = user.fence();
    assert!(second > first, "fences grow: {second} after {first}");
}

#[test]
fn fifty_that_start_at_once_share_one_node() {
    let Some(user) = User::new() else { return };
    let (many, rounds) = (50, 20);
    let mut last = 0;
    for round in 0..rounds {
        let log = user.directory.join(format!("log-{round}"));
        // Each process writes a line when it enters and one when it leaves, with its fence.
        let line = format!(
            "echo in $DOORWAY_FENCE >> {0}; sleep 0.002; echo out $DOORWAY_FENCE >> {0}",
            log.display()
        );
        let start = || {
            let words = ["./doorway", "run", "--verbose", "x", "--", "sh", "-c", &line];
            user.command(&words).stderr(Stdio::piped()).spawn().unwrap()
        };
        let all: Vec<_> = (0..many).map(|_| start()).collect();
        let mut started = 0;
        for one in all {
            let done = one.wait_with_output().unwrap();
            assert_eq!(done.status.code(), Some(0), "{done:?}");
            started += text(&done.stderr).matches("started a local node").count();
        }
        // A node that was started in the round before, and was slow, may serve in this round.
        assert!(started == 1 || round > 0 && started == 0, "one node is started and announced");
        let text = fs::read_to_string(&log).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2 * many);
        for pair in lines.chunks(2) {
            let (enter, leave) = (pair[0].strip_prefix("in "), pair[1].strip_prefix("out "));
            assert!(enter.is_some() && enter == leave, "two inside: {pair:?}");
            let fence: u64 = enter.unwrap().parse().unwrap();
            assert!(fence > last, "fences grow: {fence} after {last}");
            last = fence;
        }
        let node = user.node().expect("it runs");
        signal(node, if round % 2 == 0 { "KILL" } else { "TERM" });
        until("the node is gone", || !lives(node));
    }
}

#[test]
fn a_node_that_cannot_start_says_why_at_once() {
    let Some(user) = User::new() else { return };
    // The node's directory belongs to another user.
    let directory = format!("/var/tmp/doorway-{}", user.id);
    fs::create_dir(&directory).unwrap();
    for words in ["run x -- true", "wait x", "lock x"] {
        let done = user.run(words);
        assert_eq!(done.status.code(), Some(69), "{done:?}");
        let text = text(&done.stderr);
        assert!(text.contains("cannot start a local node") && text.contains(&directory), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}

#[test]
fn users_trust_neither_each_others_nodes_nor_each_others_clients() {
    let (Some(one), Some(other)) = (User::new(), User::new()) else { return };
    // A process that listens at the name of another user's node is not trusted by its clients.
    let socket = format!("@doorway-{}", one.id);
    let squat =
        format!("serve --local --socket {socket} --data {}/data", other.directory.display());
    let squatter = Process::spawn(other.doorway(&squat).stderr(Stdio::null()));
    let status = format!("status --socket {socket}");
    until("it listens", || other.run(&status).status.success());
    let done = one.run("run x -- true");
    assert_eq!(done.status.code(), Some(77), "{done:?}");
    assert!(text(&done.stderr).contains("not trusted"), "{done:?}");
    drop(squatter);

    assert_eq!(one.run("run x -- true").status.code(), Some(0));
    let done = other.run(&format!("run --socket {socket} x -- true"));
    assert_eq!(done.status.code(), Some(77), "{done:?}");
}
