//! Locks for scripts, and the commands that show locks.

use std::process::Command;

use serde_json::Value;

use crate::place::{DOORWAY, Place, Process, line_of, signal, until};

fn json(place: &Place, words: &str) -> Value {
    serde_json::from_str(&place.answer(&format!("{words} --json"))).expect("JSON")
}

#[test]
fn a_script_holds_a_lock_until_it_ends() {
    let place = Place::new();
    let script = "f=$($D lock x) && echo got-$f && $D run -n x -- true; echo code-$?";
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).env("D", DOORWAY).env("DOORWAY_SOCKET", place.socket());
    let done = shell.output().unwrap();
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(text.starts_with("got-") && text.ends_with("code-1\n"), "{text}{:?}", done.stderr);
    until("the lock goes with the script", || place.inside("x", 0));
}

#[test]
fn a_lock_is_tied_to_a_process() {
    let place = Place::new();
    let sleeper = Process::spawn(Command::new("sleep").arg("100"));
    let taken = json(&place, &format!("lock x --pid {}", sleeper.id()));
    assert_eq!(taken["pid"], sleeper.id());
    assert!(place.inside("x", 1));
    sleeper.signal("KILL");
    sleeper.end();
    until("the lock goes with it", || place.inside("x", 0));
}

#[test]
fn unlock_gives_back_only_its_own_grant_and_may_be_repeated() {
    let place = Place::new();
    let first = place.answer("lock x --ttl 60").trim().to_owned();
    assert_eq!(place.code(&format!("unlock x --fence {first}")), (Some(0), String::new()));
    assert_eq!(place.code(&format!("unlock x --fence {first}")).0, Some(123));
    let second = place.answer("lock x --ttl 60").trim().to_owned();
    assert!(second.parse::<u64>().unwrap() > first.parse::<u64>().unwrap());
    assert_eq!(place.code(&format!("unlock x --fence {first}")).0, Some(123));
    assert!(place.inside("x", 1), "the newer grant stays");
}

#[test]
fn a_lease_expires_unless_it_is_renewed() {
    let place = Place::new();
    let fence = place.answer("lock x --ttl 3").trim().to_owned();
    for _ in 0..4 {
        std::thread::sleep(std::time::Duration::from_millis(800));
        assert_eq!(place.code(&format!("renew x --fence {fence}")), (Some(0), String::new()));
    }
    assert!(place.inside("x", 1), "the renewals kept it for longer than its TTL");
    until("the lease expires", || place.inside("x", 0));
    assert_eq!(place.code(&format!("renew x --fence {fence}")).0, Some(123));
}

#[test]
fn who_top_and_status_show_holders_and_waiters() {
    let place = Place::new();
    let holder = Process::spawn(&mut place.run("--label the-holder x", "exec sleep 100"));
    until("the lock is held", || place.inside("x", 1));
    let waiter = Process::spawn(&mut place.run("--label the-waiter x", "exec sleep 100"));
    until("the request waits", || place.waiting("x", 1));
    let text = place.answer("who x");
    let begins = |line: usize, with: &str| text.lines().nth(line).unwrap().starts_with(with);
    assert!(begins(0, "lock x of this user only") && text.lines().count() == 5, "{text}");
    assert!(begins(1, "held by  the-holder (pid ") && begins(3, "waiting  the-waiter"), "{text}");
    let top = place.answer("top");
    assert!(top.contains("the-holder") && top.lines().count() == 3, "{top}");
    let top = json(&place, "top");
    assert_eq!((&top["locks"][0]["waiting"], &top["more"]), (&1.into(), &false.into()));
    let status = json(&place, "status");
    assert_eq!((&status["held"], &status["waiting"]), (&1.into(), &1.into()));
    let status = place.answer("status");
    assert!(status.contains("1 held, 1 waiting") && status.contains("this user only"), "{status}");

    assert_eq!(place.code("wait x -w 0.05 -E 5").0, Some(5));
    let mut wait = Process::spawn(&mut place.command(["wait", "x"]));
    waiter.signal("TERM");
    waiter.end();
    std::thread::sleep(std::time::Duration::from_millis(50));
    assert!(!wait.has_ended(), "the holder is still inside");
    drop(holder);
    assert_eq!(wait.end().code(), Some(0));
    assert_eq!(json(&place, "wait x")["free"], true);
    assert_eq!(place.answer("who x"), "lock x of this user only\nnobody holds it\n");
    assert_eq!(json(&place, "who x")["scope"], "user");
}

#[test]
fn a_lock_inside_the_same_lock_is_warned_about() {
    let place = Place::new();
    let nested = |line: &str| {
        let done = place.run("x", line).env("D", DOORWAY).output().unwrap();
        (done.status.code(), String::from_utf8(done.stderr).unwrap())
    };
    let (code, text) = nested("$D run -w 2 x -- true");
    assert_eq!(code, Some(1), "{text}");
    let warning = "doorway: waiting for x, which an enclosing `doorway run` holds (DOORWAY_LOCK)";
    assert!(text.starts_with(warning) && text.lines().count() == 2, "{text}");
    for line in ["$D run y -- true", "$D run -n x -- true || $D run -n y -- true"] {
        let (code, text) = nested(line);
        assert_eq!((code, text.contains("enclosing")), (Some(0), false), "{line}: {text}");
    }
}

#[test]
fn a_guard_refuses_a_lower_fence() {
    let place = Place::empty();
    let file = place.file("guard").display().to_string();
    let pass = |fence: u64| place.code(&format!("fence-guard {file} {fence}")).0;
    assert_eq!(
        [pass(5), pass(5), pass(9), pass(8), pass(9)].map(|code| code.unwrap()),
        [0, 0, 0, 1, 0]
    );
    let done = place.output(&format!("fence-guard {file} 3 --json"));
    let answer: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(answer, serde_json::json!({"fence": "3", "passed": false, "highest": "9"}));
    std::fs::write(&file, "something else").unwrap();
    assert_eq!(pass(10), Some(64));
}

#[test]
fn a_lease_longer_than_the_limit_of_the_node_is_refused() {
    let place = Place::new();
    let (code, text) = place.code("lock x --ttl 3600");
    assert_eq!(code, Some(64), "{text}");
    assert!(text.contains("60 s") && text.contains("limits.ttl"), "{text}");
    assert!(place.inside("x", 0));
}

#[test]
fn a_lock_without_end_needs_the_consent_of_the_node() {
    let place = Place::new();
    let (code, text) = place.code("lock x --ttl never");
    assert_eq!(code, Some(77), "{text}");
    assert!(text.contains("set `endless = true` under [limits]"), "{text}");
    let (code, text) = place.code("lock x --ttl soon");
    assert!(code == Some(64) && text.contains("with `never` the lock is held until"), "{text}");
    assert_eq!(place.code("lock x --ttl never --pid 1").0, Some(64));
    // More than fits into a message is not without end.
    let (code, text) = place.code("lock x --ttl 60d");
    assert!(code == Some(64) && text.contains("limits.ttl"), "{text}");
    assert!(place.inside("x", 0));
}

#[test]
fn a_waiting_lock_command_that_is_killed_is_granted_nothing() {
    let place = Place::new();
    let holder = Process::spawn(&mut place.run("x", "exec sleep 100"));
    until("the lock is held", || place.inside("x", 1));
    for words in [vec!["lock", "x"], vec!["lock", "x", "--ttl", "50"]] {
        let waiter = Process::spawn(&mut place.command(words));
        until("the request waits", || place.waiting("x", 1));
        waiter.signal("KILL");
        waiter.end();
        until("the request is gone", || place.waiting("x", 0));
    }
    holder.signal("TERM");
    holder.end();
    assert_eq!(place.code("run -n x -- true").0, Some(0));
}

#[test]
fn a_grant_that_is_gone_cannot_be_broken() {
    let place = Place::new();
    let fence = place.answer("lock x --ttl 60").trim().to_owned();
    assert_eq!(json(&place, &format!("break x --fence {fence}"))["broken"], true);
    let again = place.output(&format!("break x --fence {fence} --json"));
    assert_eq!(again.status.code(), Some(123), "{again:?}");
    let answer: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(answer, serde_json::json!({"lock": "x", "fence": fence, "broken": false}));
}

#[test]
fn wait_with_zero_seconds_only_looks() {
    let place = Place::new();
    assert_eq!(place.code("wait x -w 0").0, Some(0));
    let _holder = Process::spawn(&mut place.run("--label the-holder x", "exec sleep 100"));
    until("the lock is held", || place.inside("x", 1));
    let (code, text) = place.code("wait x -w 0");
    assert_eq!(code, Some(1));
    assert!(text.contains("held by the-holder"), "{text}");
}

#[test]
fn a_lock_whose_fence_cannot_be_printed_is_given_back() {
    let place = Place::new();
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    drop(reader);
    let done = place.command(["lock", "x", "--ttl", "50"]).stdout(writer).output().unwrap();
    assert_eq!(done.status.code(), Some(71), "{done:?}");
    assert!(place.inside("x", 0));
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec $D lock x --ttl 50 >&-"]).env("D", DOORWAY);
    let done = shell.env("DOORWAY_SOCKET", place.socket()).output().unwrap();
    assert_eq!(done.status.code(), Some(71), "{done:?}");
    assert!(
        String::from_utf8_lossy(&done.stderr).contains("standard output is closed"),
        "{done:?}"
    );
    assert!(place.inside("x", 0));
}

#[test]
fn a_ttl_longer_than_the_limit_of_the_node_is_warned_about() {
    let place = Place::new();
    let done = place.output("run --ttl 3600 x -- printenv DOORWAY_TTL_MS");
    assert_eq!((done.status.code(), &*done.stdout), (Some(0), &b"60000\n"[..]), "{done:?}");
    let text = String::from_utf8(done.stderr).unwrap();
    let names = text.contains("--ttl 3600") && text.contains("60 s") && text.contains("limits.ttl");
    assert!(names && text.lines().count() == 1, "{text}");
    assert!(place.output("run --ttl 60 x -- true").stderr.is_empty());
}

#[test]
fn who_names_the_process_that_a_lock_is_tied_to_and_its_user() {
    let place = Place::new();
    let sleeper = Process::spawn(Command::new("sleep").arg("100"));
    place.answer(&format!("lock x --pid {}", sleeper.id()));
    let text = place.answer("who x");
    assert!(text.contains(&format!("(pid {})", sleeper.id())), "{text}");
    let user = Command::new("id").arg("-un").output().unwrap().stdout;
    let user = String::from_utf8(user).unwrap();
    assert!(text.contains(&format!(" on {}@", user.trim())), "{text}");
}

#[test]
fn who_says_that_a_killed_wrapper_has_ended_while_its_command_holds_the_lock() {
    let mut place = Place::new();
    let line = "echo $$ > pid; exec sleep 100";
    let wrapper = Process::spawn(place.run("x", line).current_dir(&place.directory));
    let command = line_of(&place.file("pid")).parse().unwrap();
    let lives = format!("(pid {})", wrapper.id());
    let ended = format!("(pid {} has ended)", wrapper.id());
    let text = place.answer("who x");
    assert!(text.contains(&lives), "{text}");
    wrapper.signal("KILL");
    wrapper.end();
    for restarted in [false, true] {
        if restarted {
            place.end_node("KILL");
            place.start();
        }
        let (_, refused) = place.code("run -n x -- true");
        for text in [place.answer("who x"), place.who("x").to_string(), refused] {
            assert!(text.contains(&ended) && !text.contains(&lives), "{restarted}: {text}");
        }
    }
    signal(command, "KILL");
    until("the lock is free", || place.inside("x", 0));
}
