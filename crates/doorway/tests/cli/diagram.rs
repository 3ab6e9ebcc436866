//! `doorway diagram`.

use std::fs;

use crate::{NOWHERE, answer, failing, file, json, refusal, temporary, text_of, violating};

#[test]
fn diagrams_are_drawn_in_the_format_that_the_name_asks_for() {
    assert!(answer("diagram ricart-agrawala -n 3").contains("node 2 enters"));
    assert!(json("diagram ricart-agrawala -n 3")["traceEvents"].is_array());
    for (name, opening) in [
        ("d.svg", "<svg"),
        ("d.txt", "le-lann (time in message delays)"),
        ("d.mmd", "sequenceDiagram"),
        ("d.shiviz", "(?<host>"),
        ("d.json", "{\"displayTimeUnit\""),
    ] {
        let path = temporary(name);
        assert_eq!(answer(&format!("diagram le-lann -n 4 -o {path}")), "");
        assert!(text_of(&path).starts_with(opening), "{name}");
    }
    assert!(refusal("diagram le-lann -n 3 -o picture.bmp").contains(".svg"));
    assert!(refusal("diagram le-lann -n 3 --json -o picture.svg").contains("'--json'"));
    assert!(refusal("diagram le-lann -n 1001").contains("at most 1000"));
    assert!(refusal("diagram le-lann -o .svg").contains("NAME.svg, NAME.txt"));
    assert!(refusal("diagram").contains("<ALGORITHM>"));
    assert_eq!(answer("diagram le-lann"), answer("diagram le-lann -n 3"), "the default");
}

#[test]
fn scripts_are_drawn() {
    let story = file("story.txt", "run le-lann n=2\nacquire 2\ndeliver 1 2\n");
    assert!(answer(&format!("diagram --script {story}")).contains("node 2 enters"));
    assert!(refusal(&format!("diagram --script {story} --tree star")).contains("--script"));
    assert!(refusal(&format!("diagram --script {story} --entries 3")).contains("--script"));
    let wrong = file("wrong.txt", "run le-lann n=2\nacquire 3\n");
    assert!(refusal(&format!("diagram --script {wrong}")).contains("line 2"));
}

#[test]
fn the_states_of_nodes_are_shown_beside_a_run() {
    let heading = |text: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with("time"));
        line.unwrap_or_default().split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let text = answer("diagram raymond-tree --columns holder,queue");
    assert!(heading(&text).ends_with(&["holder", "queue"].map(str::to_owned)), "{text}");
    // Node 2 asks node 1, and has the privilege in the end.
    let asks = text.lines().find(|line| line.contains("node 2 sends Request")).expect("a line");
    assert!(asks.contains(" [2] "), "{text}");
    assert!(answer("diagram suzuki-kasami -n 4 --entries 3 --columns all").contains(" served"));
    let (columns, tree) = (temporary("columns.txt"), temporary("turned.svg"));
    answer(&format!("diagram raymond-tree --columns holder -o {columns}"));
    assert!(text_of(&columns).contains("holder"));
    answer(&format!("diagram raymond-tree -n 4 --tree chain --draw-tree {tree}"));
    assert!(text_of(&tree).contains("coloured: it has just turned"));
    let story = file("turned.txt", "run naimi-trehel n=2\nacquire 2\nstabilize\n");
    assert!(answer(&format!("diagram --script {story} --columns next")).contains(" next"));

    assert!(refusal("diagram raymond-tree --columns holders").contains("'holder'"));
    assert!(refusal("diagram raymond-tree --columns all --json").contains("prints text"));
    assert!(refusal("diagram raymond-tree --columns all -o run.svg").contains(".txt"));
    assert!(refusal("diagram --recorded a.jsonl --columns all").contains("--columns"));
}

#[test]
fn a_violation_is_drawn_and_then_a_failure() {
    let picture = temporary("violation.svg");
    let line = "diagram maekawa-sequential-self-first -n 3 --think 1";
    let (text, reason) = violating(line);
    assert!(text.contains("VIOLATION: nodes "), "{text}");
    assert!(reason.contains(" wait and nothing can happen any more; seed 1 "), "{reason}");
    violating(&format!("{line} --seed 2 -o {picture}"));
    assert!(text_of(&picture).contains("✗ nodes "));

    let acquire = "acquire 1\nacquire 2\nacquire 3\nstabilize\n";
    let script = format!("run maekawa-sequential-self-first n=3\n{acquire}");
    let script = file("stuck.txt", &script);
    let (text, reason) = failing(&format!("diagram --script {script}"), 1);
    assert!(text.contains("VIOLATION"), "{text}");
    assert!(reason.contains("stuck.txt ends with a violation: nodes "), "{reason}");
}

#[test]
fn what_is_said_of_the_load_is_heard() {
    let visits =
        |line: &str| answer(&format!("diagram lamport -n 3 {line}")).matches(" leaves\n").count();
    assert_eq!(visits(""), 2, "two ask");
    // Clients that come while the last entry ends are drawn too.
    assert!(visits("--entries 4") >= 4);
    assert!(visits("--think 2") >= 5);
    assert!(visits("--hot 1:100") >= 5);
    assert!(answer("diagram readers-writers -n 3 --shared 1").contains("acquires, shared"));
    let clients = file("clients.txt", "0 1\n1 1\n2 1\n3 1\n4 1\n5 1\n6 1\n");
    assert_eq!(visits(&format!("--requests {clients}")), 7);
    assert!((3..7).contains(&visits(&format!("--requests {clients} --entries 3"))));
}

#[test]
fn a_run_without_end_is_cut() {
    let picture = temporary("cut.svg");
    let line = "diagram ricart-agrawala -n 3 --entries 50000000 --think 1";
    assert_eq!(answer(&format!("{line} -o {picture}")), "");
    let text = text_of(&picture);
    assert!(text.contains(">ricart-agrawala, the first 100000 events<"));
    assert!(text.contains("first 2,000 of 100,000 events"));
}

#[test]
fn files_that_cannot_be_read_or_written_are_failures() {
    for line in [
        "diagram --script",
        "diagram lamport -n 3 --requests",
        "simulate lamport -n 3 --requests",
        "compare lamport --requests",
        "simulate lamport -n 3 --delay matrix:",
        "compare lamport --delay matrix:",
    ] {
        let blank = if line.ends_with(':') { "" } else { " " };
        let (_, reason) = failing(&format!("{line}{blank}{NOWHERE}"), 1);
        assert!(reason.starts_with(&format!("doorway: cannot read {NOWHERE}: ")), "{reason}");
    }
    let (_, reason) = failing(&format!("diagram lamport -n 3 -o {NOWHERE}"), 1);
    assert!(reason.starts_with(&format!("doorway: cannot write {NOWHERE}: ")), "{reason}");
}

#[test]
fn files_with_the_wrong_contents_are_misuses() {
    let path = temporary("no-text");
    fs::write(&path, [0xff, 0xfe, 0]).expect("a file is written");
    let words = file("words.txt", "some words\n");
    let square = file("square.txt", "0 1\n1 0\n");
    for (line, why) in [
        (format!("diagram --script {path}"), "is not text"),
        (format!("diagram --script {words}"), "line 1"),
        (format!("simulate lamport -n 3 --requests {words}"), "line 1"),
        (format!("simulate lamport -n 3 --delay matrix:{words}"), "line 1"),
        (
            format!("simulate lamport -n 3 --delay matrix:{square}"),
            "has 2 rows, but the group has 3 nodes",
        ),
    ] {
        let reason = refusal(&line);
        assert!(reason.contains(why), "doorway {line}: {reason}");
    }
}
