//! The command as its users meet it: what it prints, where, and with which exit code.

mod check;
mod compare;
mod course;
mod diagram;
mod lab;
mod list;
mod manners;
mod misuse;
mod operators;
mod page;
mod paper;
mod problems;
mod quorums;
mod readme;
mod recorded;
mod replay;
mod serve;
mod simulate;
#[path = "../../../doorway-daemon/tests/common/skip.rs"]
mod skip;
mod story;
mod threads;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn doorway(line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_doorway"));
    command.args(line.split_whitespace());
    command
}

fn output(line: &str) -> Output {
    doorway(line).output().expect("the command runs")
}

/// What a command that succeeds prints.
fn answer(line: &str) -> String {
    let Output { status, stdout, stderr } = output(line);
    let errors = String::from_utf8_lossy(&stderr);
    assert!(status.success() && errors.is_empty(), "doorway {line}: {status} {errors}");
    String::from_utf8(stdout).expect("the answer is text")
}

fn json(line: &str) -> Value {
    parsed(&answer(&format!("{line} --json")))
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).expect("the answer is JSON")
}

/// What `doorway list --json` says of each algorithm.
fn algorithms() -> Vec<Value> {
    json("list").as_array().expect("an array").clone()
}

/// What a command prints that ends with this exit code, and the one line that says why.
fn failing(line: &str, code: i32) -> (String, String) {
    let Output { status, stdout, stderr } = output(line);
    let errors = String::from_utf8(stderr).expect("errors are text");
    assert_eq!(status.code(), Some(code), "doorway {line}: {errors}");
    assert!(errors.starts_with("doorway: ") && errors.ends_with('\n'), "{errors}");
    assert_eq!(errors.lines().count(), 1, "one line: {errors}");
    (String::from_utf8(stdout).expect("the answer is text"), errors)
}

/// The one line with which a misuse is refused.
fn refusal(line: &str) -> String {
    let (answer, reason) = failing(line, 2);
    assert!(answer.is_empty(), "doorway {line} prints though it refuses");
    for raw in ["invalid digit", "..=", "number too large", "cannot parse", "out of range"] {
        assert!(!reason.contains(raw), "doorway {line} answers in words of Rust: {reason}");
    }
    reason
}

/// What a command prints that the person ends by Ctrl-C, with the exit code for what is left open.
#[cfg(target_os = "linux")]
fn interrupted(line: &str) -> String {
    use std::process::Stdio;
    use std::{thread, time::Duration};

    let mut command = doorway(line);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    let pid = child.id().to_string();
    // The process listens once the interrupt, signal 2, is among those that it catches.
    let listens = || {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        caught.is_none_or(|mask| mask & 2 != 0)
    };
    while !listens() {
        thread::sleep(Duration::from_millis(5));
    }
    let sent = Command::new("kill").args(["-INT", &pid]).status().expect("a signal is sent");
    assert!(sent.success());
    let done = child.wait_with_output().expect("it ends");
    let text = String::from_utf8(done.stdout).expect("the answer is text");
    assert_eq!(done.status.code(), Some(3), "{text}");
    text
}

/// What a run prints that finds a violation, after checking that the command in its one line of
/// error, run in its turn, prints and says the same.
fn violating(line: &str) -> (String, String) {
    let (answer, reason) = failing(line, 1);
    let (violation, command) = reason.split_once(" shows it again: doorway ").expect("a command");
    assert!(violation.contains("; seed "), "{violation}");
    let (again, same) = failing(command, 1);
    assert_eq!(timeless(&answer), timeless(&again));
    assert_eq!(
        same.split_once(" shows it again: "),
        Some((violation, &*format!("doorway {command}")))
    );
    (answer, reason)
}

/// What a run prints as JSON, without the one figure that differs from run to run.
fn timeless(text: &str) -> Value {
    let mut value = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
    if let Some(object) = value.as_object_mut() {
        object.remove("events_per_second");
    }
    value
}

/// The path of a file that does not exist yet, for one test alone.
fn temporary(name: &str) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if path.exists() {
        fs::remove_file(&path).expect("what an earlier test left can be removed");
    }
    path.display().to_string()
}

/// The path of a file with this text.
fn file(name: &str, text: &str) -> String {
    let path = temporary(name);
    fs::write(&path, text).expect("a file is written");
    path
}

fn text_of(path: &str) -> String {
    fs::read_to_string(path).expect("the file is there")
}

/// A path that no file can have.
const NOWHERE: &str = "no/such/directory/file.svg";
