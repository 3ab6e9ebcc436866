//! `doorway diagram --recorded`, of what a real group wrote down: `UPDATE=1 cargo test -p
//! doorway --test recording` runs three nodes over TLS and puts their files here.

use std::fs;

use crate::{answer, failing, file, json, refusal, temporary, text_of};

const NODES: [&str; 3] = ["n1", "n2", "n3"];

fn path(node: &str) -> String {
    format!("{}/tests/recordings/{node}.jsonl", env!("CARGO_MANIFEST_DIR"))
}

fn diagram(files: &[String], rest: &str) -> String {
    format!("diagram --recorded {} {rest}", files.join(" "))
}

fn all() -> Vec<String> {
    NODES.map(path).to_vec()
}

/// The files of the group, that of the second node changed.
fn changed(name: &str, change: impl Fn(&str) -> String) -> Vec<String> {
    let second = fs::read_to_string(path("n2")).expect("the recording is there");
    let other = change(&second);
    assert_ne!(other, second, "something is changed");
    vec![path("n1"), file(name, &other), path("n3")]
}

#[test]
fn what_really_happened_is_drawn() {
    let text = answer(&diagram(&all(), "--lock orders"));
    assert!(text.starts_with("carvalho-roucairol, lock orders of group test ("), "{text}");
    assert_eq!(text.matches(" enters\n").count(), 5);
    assert_eq!(
        text.matches(" inside\n").count(),
        1,
        "a node that is inside stays inside in the next view"
    );
    assert!(text.contains("   n1 sends Request("), "members are called by their names: {text}");
    assert!(!text.contains("node "), "{text}");
    assert!(json(&diagram(&all(), "--lock stock"))["traceEvents"].is_array());
    for (ending, opening) in
        [("svg", "<svg"), ("txt", "carvalho"), ("mmd", "sequenceDiagram"), ("shiviz", "(?<host>")]
    {
        let picture = temporary(&format!("recorded.{ending}"));
        assert_eq!(answer(&diagram(&all(), &format!("--lock orders -o {picture}"))), "");
        assert!(text_of(&picture).starts_with(opening), "{ending}");
    }
}

#[test]
fn the_order_of_the_files_and_a_torn_last_line_do_not_matter() {
    let text = answer(&diagram(&all(), "--lock orders"));
    let turned: Vec<String> = all().into_iter().rev().collect();
    assert_eq!(answer(&diagram(&turned, "--lock orders")), text);
    let torn = changed("torn.jsonl", |text| {
        let whole = text.strip_suffix("{\"end\":\"stop\"}\n").expect("the node was stopped");
        format!("{whole}{{\"at\":12,\"vi")
    });
    assert!(answer(&diagram(&torn, "--lock orders")).contains(" enters\n"));
}

#[test]
fn what_is_missing_is_asked_for() {
    assert!(refusal(&diagram(&all(), "")).contains("name one with --lock: orders, stock"));
    assert!(refusal(&diagram(&all(), "--lock order")).contains("it has orders, stock"));
    assert!(refusal(&diagram(&all()[..2], "")).contains("the file of node n3 is missing"));
    let twice = [path("n1"), path("n1"), path("n2"), path("n3")];
    assert!(refusal(&diagram(&twice, "")).contains("are both of node n1"));
    assert!(refusal("diagram --lock orders").contains("--recorded"));
    assert!(refusal("diagram --lock orders lamport -n 3").contains("--lock"));
    assert!(refusal(&diagram(&all(), "--seed 3")).contains("--recorded"));
}

#[test]
fn what_is_no_recording_is_refused_with_its_line() {
    let replaced = |name: &str, from: &'static str, to: &'static str| {
        refusal(&diagram(&changed(name, |text| text.replacen(from, to, 1)), "--lock orders"))
    };
    let reason = replaced("version.jsonl", "\"recording\":1", "\"recording\":9");
    assert!(reason.contains("version.jsonl, line 1: version 9 of the format"), "{reason}");
    let reason = replaced("group.jsonl", "\"group\":\"test\"", "\"group\":\"other\"");
    assert!(reason.contains("another node or group"), "{reason}");
    let reason = replaced("words.jsonl", "{\"at\"", "at");
    assert!(reason.contains("words.jsonl, line 2: this is not JSON"), "{reason}");
    let reason = replaced("did.jsonl", "\"did\":\"enter\"", "\"did\":\"exit\"");
    assert!(reason.contains("did.jsonl, line ") && reason.contains("`exit`"), "{reason}");
    let reason = replaced("stranger.jsonl", "\"from\":\"n1\"", "\"from\":\"n9\"");
    assert!(reason.contains("n9 is not a member; the group has n1, n2, n3"), "{reason}");
}

#[test]
fn what_the_algorithm_would_not_do_is_a_violation() {
    // A node that enters without having waited for the last answer.
    let hasty = changed("hasty.jsonl", |text| {
        let mut lines: Vec<&str> = text.lines().collect();
        let enter = lines.iter().position(|line| line.contains("\"did\":\"enter\""));
        let enter = enter.expect("the node entered");
        lines.swap(enter, enter - 1);
        lines.join("\n")
    });
    let (text, reason) = failing(&diagram(&hasty, "--lock orders"), 1);
    assert!(text.contains("VIOLATION"), "{text}");
    assert!(reason.contains("where its algorithm"), "{reason}");
}
