//! `doorway simulate`.

use crate::{answer, file, json, parsed, refusal, timeless, violating};

const NUMBERS: [&str; 14] = [
    "n",
    "entries",
    "seed",
    "messages_per_entry",
    "messages_ci",
    "messages_min",
    "messages_max",
    "sync_delay",
    "response_time",
    "throughput",
    "jain",
    "overtakes_max",
    "events",
    "events_per_second",
];

#[test]
fn json_has_every_figure_as_a_number() {
    let run = json("simulate ricart-agrawala -n 5 --entries 500 --seed 3 --think 1");
    for key in NUMBERS.into_iter().chain(["violations"]) {
        assert!(run[key].is_number(), "{key} of {run}");
    }
    assert_eq!(run["algorithm"], "ricart-agrawala");
    assert_eq!([&run["n"], &run["entries"], &run["seed"], &run["violations"]], [5, 500, 3, 0]);
    assert_eq!([&run["messages_min"], &run["messages_max"]], [8, 8], "2(N-1)");
}

#[test]
fn the_text_says_the_same() {
    let text = answer("simulate ricart-agrawala -n 5 --entries 500 --seed 3 --think 1");
    assert!(text.starts_with("ricart-agrawala, N = 5, seed 3: 500 entries in "), "{text}");
    let row = text.lines().find(|line| line.contains("messages per entry")).expect("a row");
    assert!(row.contains(" 8 ± 0 ") && row.ends_with(" 8 to 8"), "{row}");
}

#[test]
fn a_run_says_how_its_group_is_arranged() {
    let line = "simulate suzuki-kasami -n 5 --entries 50 --topology ring --begin one-pass";
    let text = answer(line);
    let opening = "suzuki-kasami, N = 5, token by one pass, topology ring, seed 1: 50 entries in ";
    assert!(text.starts_with(opening), "{text}");
    let chosen = serde_json::json!({ "begin": "one-pass", "topology": "ring" });
    assert_eq!(json(line)["arrangement"], chosen);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let line = "simulate maekawa -n 7 --entries 300 --delay exponential:1 --json";
    let run = |seed: u32| timeless(&answer(&format!("{line} --seed {seed}")));
    assert_eq!(run(7), run(7));
    assert_eq!(timeless(&answer(line)), run(1), "the default");
    assert_ne!(run(7)["response_time"], run(8)["response_time"]);
}

#[test]
fn a_violation_is_a_failure_that_can_be_seen_again() {
    // Lamport's algorithm needs channels that keep their order.
    let line = "simulate lamport -n 3 --think 1 --channel unordered --delay exponential:1";
    for line in [format!("{line} --json"), format!("{line} --seed 5 --json")] {
        let (answer, reason) = violating(&line);
        let run = parsed(&answer);
        assert_eq!(run["violations"], 1);
        let violation = run["violation"].as_str().expect("what it was");
        assert!(reason.starts_with(&format!("doorway: {violation}; seed ")), "{reason}");
    }
}

#[test]
fn a_file_without_requests_is_refused() {
    let empty = file("empty.txt", "# nobody comes\n");
    let reason = refusal(&format!("simulate lamport --requests {empty}"));
    assert!(reason.contains("empty.txt has no requests; each line is: TIME NODE"), "{reason}");
}

#[test]
fn the_number_of_nodes_has_a_default() {
    assert_eq!(json("simulate central --entries 10")["n"], 10);
}

#[test]
fn permits_let_several_in() {
    let busy = |permits: u32| {
        let line = format!("simulate raymond-k -n 4 --entries 400 --think 0 --permits {permits}");
        json(&line)["throughput"].as_f64().expect("a number")
    };
    assert!(busy(4) > 2.0 * busy(1), "{} and {}", busy(4), busy(1));
}

#[test]
fn clients_give_up_where_a_request_can_be_withdrawn() {
    let line = "simulate carvalho-roucairol -n 5 --entries 500 --think 1 --withdraw 0.5";
    assert!(json(line)["withdrawn"].as_u64() > Some(50));
    assert!(answer(line).contains("requests given up"));
    let reason = refusal("simulate central --withdraw 0.5");
    assert!(reason.contains("central cannot withdraw a request"), "{reason}");
}
