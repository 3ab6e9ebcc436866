//! What the command gets: its environment, its standard descriptors, its process group.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::Stdio;

use crate::place::{Place, Process, children, until};

/// The environment of a command that runs with these words.
fn variables(place: &Place, words: &str) -> BTreeMap<String, String> {
    let mut command = place.run(words, "env -0");
    // The variables of an enclosing `doorway run` must be replaced.
    command.env("DOORWAY_LOCK", "outer").env("DOORWAY_FENCE", "1");
    let done = command.output().expect("it runs");
    assert!(done.status.success() && done.stderr.is_empty(), "{done:?}");
    let text = String::from_utf8(done.stdout).expect("text");
    let pairs = text.split('\0').filter_map(|line| line.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[test]
fn the_environment_of_the_command_describes_its_lock() {
    let place = Place::new();
    let first = variables(&place, "--ttl 5 deploy");
    assert_eq!(first["DOORWAY_LOCK"], "deploy");
    assert_eq!(first["DOORWAY_TTL_MS"], "5000");
    assert!(first["DOORWAY_HOLDER"].contains('/'), "{first:?}");
    let fence = |found: &BTreeMap<String, String>| found["DOORWAY_FENCE"].parse::<u64>().unwrap();
    assert_eq!(first["DOORWAY_VIEW"], (fence(&first) >> 40).to_string());
    let second = variables(&place, "deploy");
    assert!(fence(&second) > fence(&first), "fences grow");
    let both = variables(&place, "b a");
    assert_eq!(both["DOORWAY_LOCK"], "a\nb");
    assert_eq!(both["DOORWAY_FENCE"].lines().count(), 2);
}

#[test]
fn the_standard_descriptors_are_left_to_the_command() {
    let place = Place::new();
    let mut command = place.run("--verbose x", "cat; echo err >&2");
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"through\n").unwrap();
    let done = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(done.stdout).unwrap(), "through\n", "nothing else is printed");
    let errors = String::from_utf8(done.stderr).unwrap();
    let lines: Vec<&str> = errors.lines().collect();
    assert_eq!(lines.len(), 2, "{errors}");
    assert!(lines[0].starts_with("doorway: holding x (fence ") && lines[1] == "err", "{errors}");
    assert!(lines[0].contains("scope: this user"), "{errors}");
}

#[test]
fn without_a_terminal_the_command_has_a_group_of_its_own() {
    let place = Place::new();
    let done = place.run("x", "ps -o pid=,pgid= -p $$").output().unwrap();
    let text = String::from_utf8(done.stdout).unwrap();
    let numbers: Vec<&str> = text.split_whitespace().collect();
    assert_eq!(numbers.len(), 2, "{text}");
    assert_eq!(numbers[0], numbers[1]);
}

#[test]
fn the_command_starts_with_the_signal_mask_of_the_wrapper() {
    let place = Place::new();
    let masks = |mut command: std::process::Command| {
        let done = command.output().unwrap();
        let text = String::from_utf8(done.stdout).unwrap();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let line = "grep -E '^Sig(Blk|Ign)' /proc/self/status";
    let mut plain = std::process::Command::new("sh");
    plain.args(["-c", line]);
    assert_eq!(masks(place.run("x", line)), masks(plain));
}

#[test]
fn hold_at_least_holds_the_lock_after_the_command_has_ended() {
    let place = Place::new();
    let begin = std::time::Instant::now();
    let status = place.run("--hold-at-least 0.5 x", "exit 3").status().unwrap();
    assert_eq!(status.code(), Some(3));
    assert!(begin.elapsed().as_millis() >= 500);
    assert!(place.inside("x", 0));

    let mut wrapper = Process::spawn(&mut place.run("--hold-at-least 100 x", "exit 4"));
    until("the lock is held", || place.inside("x", 1));
    until("the command has ended", || children(wrapper.id()).is_empty());
    assert_eq!(place.code("run -n x -- true").0, Some(1), "the lock is held without the command");
    assert!(!wrapper.has_ended());
    wrapper.signal("TERM");
    assert_eq!(wrapper.end().code(), Some(4), "a signal ends the hold");

    let wrapper = Process::spawn(&mut place.run("--hold-at-least 100 x", "exec sleep 100"));
    until("the lock is held", || place.inside("x", 1));
    let fence = place.who("x")["holders"][0]["fence"].as_str().unwrap().to_owned();
    place.answer(&format!("break x --fence {fence}"));
    assert_eq!(wrapper.end().code(), Some(123), "a lost lock is not held any longer");
}
