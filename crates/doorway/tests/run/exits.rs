//! Exit codes: those of the command, and those of the wrapper.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::place::{DOORWAY, Place, Process, children, lives, signal, until};

#[test]
fn the_exit_code_is_that_of_the_command() {
    let place = Place::new();
    for code in [0, 1, 42, 255] {
        assert_eq!(place.run("x", &format!("exit {code}")).status().unwrap().code(), Some(code));
    }
    for (signal, code) in [("TERM", 143), ("KILL", 137), ("INT", 130)] {
        let status = place.run("x", &format!("kill -{signal} $$")).status().unwrap();
        assert_eq!(status.code(), Some(code), "{signal}");
    }
}

#[test]
fn a_node_that_is_drained_ends_when_its_last_lock_is_released() {
    let place = Place::new();
    let line = "until [ -e go ]; do sleep 0.02; done; exit 3";
    let job = Process::spawn(place.run("x", line).current_dir(&place.directory));
    until("the lock is held", || place.inside("x", 1));
    let (code, text) = place.code("drain -w 0.2");
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("1 lock is still held; the node"), "{text}");
    assert!(lives(place.node()) && place.inside("x", 1), "no lock is taken from its holder");
    let (code, text) = place.code("run -n y -- true");
    assert_eq!(code, Some(69), "it grants nothing more: {text}");
    assert!(text.contains("this node was drained"), "{text}");

    let drain = Process::spawn(place.command(["drain", "-w", "60"]).stdout(Stdio::piped()));
    fs::write(place.file("go"), "").unwrap();
    assert_eq!(job.end().code(), Some(3), "the command has run to its end");
    let began = Instant::now();
    assert_eq!(drain.end().code(), Some(0));
    let took = began.elapsed();
    assert!(took < Duration::from_secs(4), "the node was gone before, and this took {took:?}");
    assert_eq!(place.code("status").0, Some(69), "`drain` returns when the node is gone");
    until("its process has ended", || !lives(place.node()));
}

#[test]
fn a_drained_node_ends_also_if_nobody_waits_for_it() {
    let place = Place::new();
    let line = "until [ -e go ]; do sleep 0.02; done";
    let job = Process::spawn(place.run("x", line).current_dir(&place.directory));
    until("the lock is held", || place.inside("x", 1));
    let (code, text) = place.code("drain -w 0");
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("and ends when nothing is held"), "{text}");
    assert!(lives(place.node()));
    fs::write(place.file("go"), "").unwrap();
    assert_eq!(job.end().code(), Some(0));
    until("its process has ended", || !lives(place.node()));
}

#[test]
fn a_command_that_cannot_be_run_gives_the_exit_code_of_a_shell() {
    let place = Place::new();
    let (code, text) = place.code("run x -- no-such-command");
    assert_eq!(code, Some(127), "{text}");
    assert!(text.starts_with("doorway: cannot run no-such-command: "), "{text}");
    let (_, text) = place.code("run x no-such-lock echo hi");
    assert!(text.contains("for several locks say doorway run x no-such-lock -- "), "{text}");
    let line = place.command(["run", "x", "--", "no-such-command hi"]).output().unwrap();
    let text = String::from_utf8_lossy(&line.stderr);
    assert!(text.contains("say doorway run NAME -- sh -c 'LINE'"), "{text}");
    let (code, text) = place.code("run -n -- echo hi");
    assert!(code == Some(64) && text.contains("say doorway run NAME -- echo..."), "{text}");
    let file = place.file("plain");
    fs::write(&file, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let (code, text) = place.code(&format!("run x -- {}", file.display()));
    assert_eq!(code, Some(126), "{text}");
    assert!(place.inside("x", 0), "and the lock is given back");
}

#[test]
fn a_lock_that_is_not_free_has_a_code_of_its_own() {
    let place = Place::new();
    let mut holder = place.run("x", "echo > inside; exec sleep 100");
    let holder = Process::spawn(holder.current_dir(&place.directory));
    until("the lock is held", || place.file("inside").exists());
    for (words, code) in [
        ("run -n x -- true", 1),
        ("run -w 0 x -- true", 1),
        ("run -w 0.05 x -- true", 1),
        ("run -n -E 75 x -- true", 75),
        ("run -w 0.01 -E 0 x -- false", 0),
        ("run -n y x z -- true", 1),
        ("run -n -s x -- true", 1),
    ] {
        let (got, text) = place.code(words);
        assert_eq!(got, Some(code), "{words}: {text}");
        assert_eq!(text.lines().count(), 1, "{text}");
        let fence = place.who("x")["holders"][0]["fence"].as_str().unwrap().to_owned();
        assert!(text.contains(": held by sh -c"), "{text}");
        assert!(text.trim_end().ends_with(&format!("fence {fence}")), "{text}");
    }
    assert!(place.inside("y", 0) && place.inside("z", 0), "all or none");
    assert_eq!(place.code("run -n y -- true").0, Some(0));
    drop(holder);
    assert_eq!(place.code("run x -- true").0, Some(0), "it waits until the holder is gone");
}

#[test]
fn the_lock_is_free_when_the_wrapper_has_ended() {
    let place = Place::new();
    for _ in 0..20 {
        assert_eq!(place.code("run -n x -- true").0, Some(0));
    }
    // While the node does not answer, the wrapper cannot know that the lock is given back.
    let mut wrapper =
        Process::spawn(&mut place.run("-o x", "until [ -e go ]; do sleep 0.01; done"));
    // The wrapper starts its command a moment after it has the lock.
    until("the command runs", || !children(wrapper.id()).is_empty());
    let node = place.node();
    signal(node, "STOP");
    for child in children(wrapper.id()) {
        signal(child, "KILL");
    }
    std::thread::sleep(Duration::from_millis(200));
    let waits = !wrapper.has_ended();
    signal(node, "CONT");
    assert!(waits, "it ends only when the lock is given back");
    assert_eq!(wrapper.end().code(), Some(137));
}

#[test]
fn a_release_without_an_answer_is_reported_as_unknown() {
    let place = Place::new();
    let log = fs::File::create(place.file("errors")).unwrap();
    let mut command = place.run("x", "until [ -e go ]; do sleep 0.01; done; exit 3");
    let wrapper = Process::spawn(command.current_dir(&place.directory).stderr(log));
    until("the lock is held", || place.inside("x", 1));
    let node = place.node();
    signal(node, "STOP");
    fs::write(place.file("go"), "").unwrap();
    let code = wrapper.end().code();
    signal(node, "CONT");
    let text = fs::read_to_string(place.file("errors")).unwrap();
    assert!(text.starts_with("doorway: unknown whether x is released"), "{text}");
    assert_eq!((code, text.lines().count()), (Some(3), 1), "{text}");
    until("it is free", || place.inside("x", 0));
}

#[test]
fn shared_locks_are_shared_and_permits_are_counted() {
    let place = Place::new();
    let hold = |words: &str| Process::spawn(&mut place.run(words, "exec sleep 100"));
    let _readers = [hold("-s r"), hold("-s r")];
    until("both read", || place.inside("r", 2));
    assert_eq!(place.code("run -n r -- true").0, Some(1));
    assert_eq!(place.code("run -n -s r -- true").0, Some(0));
    let permits = [hold("-k 2 p"), hold("-k 2 p")];
    until("both have one", || place.code("run -n -k 2 p -- true").0 == Some(1));
    for words in ["run -n -E 9 -k 3 p -- true", "run -w 0.5 -E 9 -k 3 p -- true"] {
        let (code, text) = place.code(words);
        assert_eq!(code, Some(9), "with another number it is not free: {text}");
        assert!(text.contains("2 permits"), "{text}");
    }
    let waits = Process::spawn(&mut place.run("-w 60 -k 3 p", "true"));
    std::thread::sleep(Duration::from_millis(300));
    drop(permits);
    assert_eq!(waits.end().code(), Some(0), "it waits until the others have left");
}

#[test]
fn misuse_is_64_and_no_node_is_69() {
    let place = Place::empty();
    for words in [
        "run",
        "run x",
        "run x --",
        "run 9",
        "run -- -x",
        "lock -z",
        "run -n -w 3 x -- true",
        "run -s -x x -- true",
        "run -w many x -- true",
        "run -E 256 x -- true",
        "run --on-lost panic x -- true",
        "run --ttl 0.1 x -- true",
        "run -k 0 x -- true",
        "run --ttl 10 --grace 6 x -- true",
        "run --ttl 1 --grace 0.6 x -- true",
        "run x -n -- true",
        "run --no-such x -- true",
        "lock",
        "unlock x",
        "unlock x --fence many",
        "fence-guard file",
        "run --socket http://x x -- true",
    ] {
        let (code, text) = place.code(words);
        assert_eq!(code, Some(64), "{words}: {text}");
        assert!(text.starts_with("doorway: ") && text.lines().count() == 1, "{words}: {text}");
    }
    let (_, text) = place.code("lock -z");
    assert!(text.contains("use '-- -z'"), "a name may begin with '-' after `--`: {text}");
    let (_, text) = place.code("run -z -- true");
    assert!(text.contains("before all NAMEs") && text.contains("`--`"), "{text}");
    let (_, text) = place.code("run 9");
    assert!(text.contains("`doorway lock NAME`"), "{text}");
    for words in ["run x -- true", "lock x", "status", "who x", "top --once"] {
        let (code, text) = place.code(words);
        assert_eq!(code, Some(69), "{words}: {text}");
        assert!(text.contains(&place.socket()) && text.lines().count() == 1, "{words}: {text}");
    }
}

#[test]
fn misuse_is_answered_with_what_would_be_right() {
    let place = Place::empty();
    let say = "say doorway run NAME -- COMMAND...";
    for (words, right) in [
        ("run -k 0 x -- true", "'--permits <K>': say a whole number from 1 to 4294967295"),
        ("run -k 0", "'--permits <K>': say a whole number from 1 to 4294967295"),
        ("run -k -1 x -- true", "say a whole number from 1 to 4294967295"),
        ("run -k many x -- true", "say a whole number from 1 to 4294967295"),
        ("run --permits= x -- true", "say a whole number from 1 to 4294967295"),
        ("run -E 256 x -- true", "'--conflict-exit-code <CODE>': say a whole number from 0 to 255"),
        ("run --lost-exit-code -1 x -- true", "say a whole number from 0 to 255"),
        ("run --once-per 1h --skip-exit-code x x -- true", "say a whole number from 0 to 255"),
        ("wait x -E many", "say a whole number from 0 to 255"),
        ("lock x --pid 0", "'--pid <PID>': say a whole number from 1 to 4294967295"),
        ("lock x --pid me", "say a whole number from 1 to 4294967295"),
        (
            "members init --from-fixed --above x",
            "say a whole number from 0 to 18446744073709551615",
        ),
        ("top --page --port 65536", "say a whole number from 0 to 65535"),
        ("top --no-open", "say doorway top --page --no-open [PREFIX]"),
        ("run -- true", "no name before `--`: say doorway run NAME -- true..."),
        // Without a name, the command is taken for it.
        ("run true", "'true' is taken for the name of a lock, and no command follows"),
        ("run true", say),
        ("run x y --", "no command follows the names"),
        ("run x y --", say),
        ("run -c true", "<NAME>"),
        ("run", "<NAME>...; say doorway run [OPTIONS] <NAME>... -- <COMMAND>..."),
        ("elect x", "say doorway elect NAME -- COMMAND..."),
        ("lock", "; say doorway lock "),
        ("unlock x", "--fence <FENCE>; say doorway unlock --fence <FENCE> <NAME>"),
        ("who x y", "unexpected argument 'y' found; say doorway who [OPTIONS] <NAME>"),
        ("members bogus", "'bogus'; `doorway help members` shows the commands"),
    ] {
        let (code, text) = place.code(words);
        assert_eq!(code, Some(64), "{words}: {text}");
        assert!(text.contains(right) && text.lines().count() == 1, "{words}: {text}");
    }
}

#[test]
fn options_after_the_name_belong_to_the_command() {
    let place = Place::new();
    let output = |words: &[&str]| {
        let done = place.command(words.iter().copied()).output().unwrap();
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout).unwrap()
    };
    assert_eq!(output(&["run", "x", "echo", "-n", "-v"]), "-v");
    assert_eq!(output(&["run", "x", "--", "echo", "--verbose"]), "--verbose\n");
    assert_eq!(output(&["run", "x", "-c", "echo $((1 + 1))"]), "2\n");
    assert_eq!(output(&["run", "-c", "echo $((1 + 2))", "x", "y"]), "3\n");
    assert_eq!(output(&["run", "b", "a", "--", "printenv", "DOORWAY_LOCK"]), "a\nb\n");
    assert_eq!(output(&["run", "--", "-x", "--", "printenv", "DOORWAY_LOCK"]), "-x\n");
}

#[test]
fn help_names_the_exit_codes_and_who_shares_a_lock() {
    let done = Command::new(DOORWAY).args(["help", "run"]).output().unwrap();
    let text = String::from_utf8(done.stdout).unwrap();
    for word in ["123", "69", "77", "DOORWAY_FENCE", "NAME>... -- <COMMAND>"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    for words in [&["run", "-h"][..], &["help", "run"]] {
        let done = Command::new(DOORWAY).args(words).output().unwrap();
        let text = String::from_utf8(done.stdout).unwrap();
        assert!(text.contains("Every user has locks of their own"), "{text}");
        let options = text.split_once("\nOptions:\n").unwrap().1;
        let (everyday, tls) = options.split_once("\nNode over TCP (TLS):\n").unwrap();
        assert!(!everyday.contains("--certificate") && tls.contains("--certificate"), "{text}");
    }
}
