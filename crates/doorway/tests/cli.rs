//! The command as its users meet it: what it prints, where, and with which exit code.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

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
    serde_json::from_str(&answer(&format!("{line} --json"))).expect("the answer is JSON")
}

/// What `doorway list --json` says of each algorithm.
fn algorithms() -> Vec<Value> {
    json("list").as_array().expect("an array").clone()
}

/// The one line with which a misuse is refused.
fn refusal(line: &str) -> String {
    let Output { status, stdout, stderr } = output(line);
    let errors = String::from_utf8(stderr).expect("errors are text");
    assert_eq!(status.code(), Some(2), "doorway {line}: {errors}");
    assert!(stdout.is_empty(), "doorway {line} prints though it refuses");
    assert!(errors.starts_with("doorway: ") && errors.ends_with('\n'), "{errors}");
    assert_eq!(errors.lines().count(), 1, "one line: {errors}");
    errors
}

#[test]
fn list_has_a_line_for_each_algorithm() {
    let text = answer("list");
    let rows = algorithms();
    assert_eq!(text.lines().count(), rows.len() + 1);
    for (line, row) in text.lines().skip(1).zip(rows) {
        let name = row["name"].as_str().expect("a name");
        assert!(line.starts_with(&format!("{name} ")), "{line}");
        assert_eq!(line.ends_with("refuted"), row["refuted"] == true, "{line}");
    }
}

#[test]
fn list_json_keeps_its_promises() {
    for row in algorithms() {
        for key in ["name", "paper", "messages_min", "messages_max"] {
            assert!(row[key].as_str().is_some_and(|text| !text.is_empty()), "{key} of {row}");
        }
        let one_of = |key: &str, known: &[&str]| known.contains(&row[key].as_str().unwrap_or(""));
        assert!(one_of("kind", &["permission", "token", "quorum", "central"]), "{row}");
        assert!(one_of("channel", &["fifo", "unordered"]), "{row}");
        assert!(["shared", "permits", "refuted"].iter().all(|key| row[key].is_boolean()), "{row}");
        assert!(row["year"].as_u64().is_some_and(|year| (1965..2030).contains(&year)), "{row}");
    }
}

#[test]
fn explain_has_every_part_for_every_algorithm() {
    for row in algorithms() {
        let name = row["name"].as_str().expect("a name");
        let text = answer(&format!("explain {name}"));
        for part in
            ["Assumes", "Idea", "Rules", "Why it is right", "Messages per entry", "A small run"]
        {
            assert!(text.lines().any(|line| line == part), "{part} of {name}");
        }
        assert!(!text.contains("//!"), "{name}");
        assert_eq!(json(&format!("explain {name}"))["name"], name);
    }
}

#[test]
fn explain_works_formulas_out_for_a_group() {
    let cost = &json("explain ricart-agrawala -n 11")["cost"];
    assert_eq!(cost[0]["values"][0]["n"], 11);
    assert_eq!(cost[0]["values"][0]["messages"], 20.0);
    assert!(refusal("explain ricart-agrawala -n 5 --quorums grid").contains("no use for quorums"));
    assert!(refusal("explain ricart-agrawala --tree star").contains("no use for a tree"));
}

#[test]
fn quorums_are_printed_from_one_and_verified() {
    let plane = json("quorums projective-plane -n 13");
    assert_eq!((&plane["kind"], &plane["n"]), (&"projective-plane".into(), &13.into()));
    assert_eq!((&plane["size_min"], &plane["size_max"]), (&4.into(), &4.into()));
    assert!(["a", "b", "c", "d"].iter().all(|letter| plane["properties"][letter] == true));
    let sets = plane["quorums"].as_array().expect("an array");
    assert_eq!(sets.len(), 13);
    for (set, node) in sets.iter().zip(1..) {
        assert!(set.as_array().expect("a set").contains(&Value::from(node)), "(b) for {node}");
    }
    assert!(answer("quorums projective-plane -n 7").contains("(a)  yes  any two quorums meet"));
}

#[test]
fn the_schemes_of_the_triangle_can_be_chosen() {
    let first = json("quorums triangle -n 6 --scheme 1");
    let second = json("quorums triangle -n 6 --scheme 2");
    assert_ne!(first["quorums"], second["quorums"]);
    let both = json("quorums triangle -n 6");
    assert_eq!(both, json("quorums triangle -n 6 --scheme both"));
    let turns = [&first["quorums"], &second["quorums"]].map(Clone::clone);
    assert_eq!(both["turns"], Value::from(turns.to_vec()));
    assert_eq!(both["properties"]["d"], true, "taking turns balances the load");
    assert!(refusal("quorums grid -n 6 --scheme 1").contains("no schemes"));
}

#[test]
fn diagrams_are_drawn_in_the_format_that_the_name_asks_for() {
    assert!(answer("diagram ricart-agrawala -n 3").contains("node 2 enters"));
    assert!(!json("diagram ricart-agrawala -n 3").is_null());
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    for (name, opening) in [("d.svg", "<svg"), ("d.mmd", "sequenceDiagram")] {
        let path = directory.join(name);
        assert_eq!(answer(&format!("diagram le-lann -n 4 -o {}", path.display())), "");
        assert!(fs::read_to_string(path).expect("it is there").contains(opening), "{name}");
    }
    let story = directory.join("story.txt");
    fs::write(&story, "run le-lann n=2\nacquire 2\ndeliver 1 2\n").expect("a file is written");
    let story = story.display();
    assert!(answer(&format!("diagram --script {story}")).contains("node 2 enters"));
    assert!(refusal(&format!("diagram --script {story} --tree star")).contains("--script"));
    assert!(refusal("diagram le-lann -n 3 -o picture.bmp").contains(".svg"));
    assert!(refusal("diagram le-lann -n 1001").contains("at most 1000"));
    assert!(refusal("diagram le-lann").contains("-n <N>"));
    assert_eq!(output("diagram --script no-such-file").status.code(), Some(1));
}

#[test]
fn unknown_names_are_answered_with_the_nearest() {
    assert!(refusal("explain ricart-agrawla").contains("'ricart-agrawala'"));
    assert!(refusal("explain RICART-AGRA").contains("'ricart-agrawala'"));
    assert!(refusal("quorums projectiv -n 7").contains("'projective-plane'"));
    assert!(refusal("lst").contains("'list'"));
    assert!(refusal("list --jsn").contains("'--json'"));
}

#[test]
fn impossible_groups_are_refused_in_one_line() {
    for (line, why) in [
        ("quorums grid -n 0", "1 to"),
        ("quorums grid -n -3", "-3"),
        ("quorums grid -n many", "1 to"),
        ("quorums grid -n 99999999999999999999", "1 to"),
        ("quorums grid", "-n <N>"),
        ("quorums projective-plane -n 8", "8"),
        ("quorums majority -n 16777216", "members"),
        ("quorums weighted -n 3 --weights 1,1", "weights"),
        ("quorums weighted -n 3 --weights 0,0,0", "zero"),
        ("quorums weighted -n 2 --weights 1,x", "x"),
        ("quorums grid -n 2 --weights 1,1", "weights"),
        ("explain ricart-agrawala --topology star", "mesh, ring, tree"),
        ("explain ricart-agrawala --graph round", "balanced:K"),
        ("explain ricart-agrawala -n 16777216 --graph mesh", "at most"),
        ("explain ricart-agrawala --initiators 0", "from 1"),
        ("explain", "<ALGORITHM>"),
        ("completions cobol", "bash"),
        ("", "doorway help"),
    ] {
        let refusal = refusal(line);
        assert!(refusal.contains(why), "doorway {line}: {refusal}");
    }
}

#[test]
fn help_and_version_are_answers() {
    assert!(answer("--help").contains("Usage: doorway <COMMAND>"));
    assert!(answer("help quorums").contains("projective-plane"));
    assert_eq!(answer("--version"), format!("doorway {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn completions_know_the_algorithms() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(answer(&format!("completions {shell}")).contains("explain"), "{shell}");
    }
    assert!(answer("completions bash").contains("ricart-agrawala"));
}

#[test]
fn manual_pages_are_printed_or_written() {
    assert!(answer("man").contains(".SH NAME"), "roff");
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("man");
    assert_eq!(answer(&format!("man {}", directory.display())), "");
    for page in ["doorway.1", "doorway-list.1", "doorway-quorums.1"] {
        let text = fs::read_to_string(directory.join(page)).expect("the page is there");
        assert!(text.contains(".SH NAME"), "{page}");
    }
    let failed = output(&format!("man {}", directory.join("doorway.1").display()));
    assert_eq!(failed.status.code(), Some(1), "a file is no directory");
    assert!(String::from_utf8_lossy(&failed.stderr).starts_with("doorway: cannot write"));
}

#[test]
fn a_reader_who_has_seen_enough_is_no_error() {
    for line in ["quorums grid -n 2000", "quorums grid -n 2000 --json"] {
        let mut command = doorway(line);
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the command runs");
        let mut stdout = child.stdout.take().expect("stdout is piped");
        stdout.read_exact(&mut [0; 1]).expect("something is printed");
        drop(stdout);
        let done = child.wait_with_output().expect("it ends");
        assert!(done.status.success() && done.stderr.is_empty(), "{done:?}");
    }
}

#[test]
fn a_full_disk_is_an_error() {
    let Ok(full) = File::options().write(true).open("/dev/full") else {
        return; // Only some systems have one.
    };
    let done = doorway("list").stdout(full).output().expect("the command runs");
    assert_eq!(done.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&done.stderr).starts_with("doorway: "));
}
