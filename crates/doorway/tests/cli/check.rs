//! `doorway check`.

use serde_json::Value;

use crate::{NOWHERE, answer, failing, json, output, parsed, refusal, temporary, text_of};

#[test]
fn a_verdict_comes_with_its_figures() {
    let text = answer("check ricart-agrawala -n 3 --acquires 1");
    let opening =
        "holds: ricart-agrawala, 3 nodes, each asks once, unordered channels, nothing fails";
    assert!(text.starts_with(opening), "{text}");
    for words in [
        "exclusion, refusal, stuck, starvation",
        "2,822, 9,005 transitions, depth 18",
        " worlds a second, ",
        "at most 2 entries of others",
        "12 a run, 4 an entry; claimed: 2(N-1) = 4",
        "64-bit fingerprints; the probability of a mix-up is below 3e-13",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let without_end = answer("check le-lann -n 2");
    assert!(without_end.contains("runs do not end"), "{without_end}");
    assert!(answer("check central -n 3 --acquires forever").contains("any number of entries"));
    let some = answer("check readers-writers -n 3 --requesters 1,3 --readers 3 --threads 1");
    assert!(some.contains("each of 1, 3 asks twice"), "{some}");
    let shared = json("check readers-writers -n 2 --readers 1,2");
    assert_ne!(shared["worlds"], json("check readers-writers -n 2")["worlds"], "readers differ");
}

#[test]
fn clients_may_give_up_where_a_request_can_be_withdrawn() {
    let text = answer("check carvalho-roucairol -n 2 --withdraw");
    assert!(text.contains("with requests that are given up"), "{text}");
    let worlds = |options: &str| json(&format!("check carvalho-roucairol -n 2 {options}"));
    assert_eq!(worlds("--withdraw")["withdraw"], true);
    assert_ne!(worlds("--withdraw")["worlds"], worlds("")["worlds"]);
    let refused = refusal("check central --withdraw");
    assert!(refused.contains("central cannot withdraw a request"), "{refused}");
}

#[test]
fn nothing_is_written_for_what_holds() {
    let (picture, story) = (temporary("holds.svg"), temporary("holds.txt"));
    let text = answer(&format!("check central -n 2 --diagram {picture} --save {story}"));
    assert_eq!(text.matches(" is not written.").count(), 2, "{text}");
    assert!(!std::path::Path::new(&picture).exists() && !std::path::Path::new(&story).exists());
}

#[test]
fn a_violation_is_printed_step_by_step() {
    let (text, reason) = failing("check lamport -n 2 --channel unordered", 1);
    let violated = "violated: exclusion: nodes 1, 2 are inside together";
    assert_eq!(reason, format!("doorway: lamport: {violated}\n"));
    assert!(text.starts_with("violated: lamport, 2 nodes, each asks twice, unordered channels"));
    assert!(text.contains("     4  deliver 1 2 Ack(2)  2 <- 1 Ack(2); 2 enters; violation: "));
    let hint = "doorway check --save out.txt lamport -n 2 --channel unordered\n";
    assert!(text.contains(hint), "{text}");
    assert!(text.ends_with("doorway replay out.txt\n"), "{text}");
}

#[test]
fn a_check_without_an_end_is_never_shown_as_one_that_holds() {
    let (text, reason) = failing("check lamport -n 3 --limit 1000", 3);
    assert!(text.starts_with("not exhausted: lamport, 3 nodes"), "{text}");
    assert!(!text.contains("holds") && !text.contains("fingerprints"), "{text}");
    assert!(reason.contains("not exhausted: there are more than 1,000 worlds"), "{reason}");
    let (text, _) = failing("check lamport -n 3 --limit 1000 --json", 3);
    let found = parsed(&text);
    assert_eq!((&found["verdict"], &found["property"]), (&"not exhausted".into(), &Value::Null));
    assert_eq!((&found["overtaking"], &found["messages"]), (&Value::Null, &Value::Null));
}

const KEYS: [&str; 20] = [
    "acquires",
    "algorithm",
    "arrangement",
    "channel",
    "cycle",
    "depth",
    "faults",
    "memory_bytes",
    "messages",
    "mix_up",
    "n",
    "overtaking",
    "property",
    "refuted_by",
    "seconds",
    "trace",
    "transitions",
    "verdict",
    "withdraw",
    "worlds",
];

#[test]
fn json_has_every_figure() {
    let found = json("check ricart-agrawala -n 3 --acquires 1");
    assert_eq!(found.as_object().unwrap().keys().collect::<Vec<_>>(), KEYS);
    assert_eq!((&found["worlds"], &found["n"]), (&2822.into(), &3.into()));
    assert_eq!((&found["verdict"], &found["overtaking"]), (&"holds".into(), &2.into()));
    assert_eq!(found["messages"]["least"], found["messages"]["most"]);
    assert_eq!(found["trace"], Value::Array(Vec::new()));
    let forever = json("check central -n 3 --acquires forever");
    assert_eq!(forever["acquires"], "forever");
    assert_eq!((&forever["overtaking"], &forever["messages"]), (&"unbounded".into(), &Value::Null));
    let line = "check le-lann -n 2 --loss --duplicate --crash --json";
    let found = parsed(&failing(line, 1).0);
    let faults = ["loss", "duplication", "crash-outside", "crash-inside"];
    assert_eq!(found["faults"], Value::from(faults.to_vec()));
    assert_eq!((&found["verdict"], &found["property"]), (&"violated".into(), &"stuck".into()));
    assert_eq!(found["trace"].as_array().unwrap().len(), 2, "{found}");
}

#[test]
fn all_algorithms_have_a_line() {
    let text = answer("check --all -n 2 --acquires 1");
    let algorithms = crate::algorithms();
    assert_eq!(text.lines().count(), algorithms.len() + 1, "{text}");
    for algorithm in &algorithms {
        let name = algorithm["name"].as_str().unwrap();
        let line = text.lines().find(|line| line.split(' ').next() == Some(name));
        let verdict = line.unwrap_or_else(|| panic!("no {name} in {text}"));
        let known = algorithm["refuted"] == true;
        assert!(known || verdict.contains(" holds "), "{verdict}");
        assert!(!known || verdict.contains("refuted"), "{verdict}");
    }
    assert!(
        text.contains("refuted: stuck: nodes 1, 2 wait and nothing can happen any more after 4")
    );
    assert!(text.contains("refuted, but not in this group: it fails for 4 nodes"), "{text}");

    let (text, reason) = failing("check --all -n 2 --acquires 1 --channel unordered", 1);
    assert!(text.contains("exclusion: nodes 1, 2 are inside together after 4 steps"), "{text}");
    assert!(reason.contains("violated: lamport"), "{reason}");
    let (_, reason) = failing("check --all -n 2 --limit 100", 3);
    assert!(reason.contains("not exhausted: lamport, "), "{reason}");
}

#[test]
fn groups_that_some_cannot_have_are_reported() {
    let line = "check --all -n 3 --acquires 1 --permits 2";
    let text = answer(&format!("{line} --requesters 1,2"));
    assert!(text.contains("no such group") && text.contains("no use for permits"), "{text}");
    let found = json(&format!("{line} --requesters 1,2"));
    let found = found.as_array().unwrap();
    assert_eq!(found.len(), crate::algorithms().len());
    let checked = found.iter().filter(|one| one["verdict"] != "no such group").count();
    assert_eq!(checked, 2, "only two serve permits");
    assert!(found[0]["reason"].as_str().unwrap().contains("no use for permits"));
}

#[test]
fn files_that_cannot_be_written_are_failures_before_any_work() {
    for option in ["--diagram", "--save"] {
        let line = format!("check lamport -n 9 --acquires 900 {option} {NOWHERE}");
        let (answer, reason) = failing(&line, 1);
        assert!(answer.is_empty());
        assert!(reason.starts_with(&format!("doorway: cannot write {NOWHERE}: ")), "{reason}");
    }
}

#[test]
fn a_large_group_reaches_its_limit_too() {
    let (text, _) = failing("check suzuki-kasami -n 32 --acquires 1 --limit 2000", 3);
    assert!(text.starts_with("not exhausted: suzuki-kasami, 32 nodes"), "{text}");
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_ends_a_check_and_prints_its_progress() {
    let text = crate::interrupted("check lamport -n 5 --acquires 100");
    assert!(text.starts_with("not exhausted: lamport, 5 nodes"), "{text}");
    assert!(text.contains(" transitions, depth ") && text.contains("stopped by Ctrl-C"), "{text}");
    assert!(text.contains("known      no violation within "), "{text}");
}

#[test]
fn a_counterexample_is_drawn_in_every_format() {
    for (name, mark) in [
        ("check.svg", "✗ nodes 1, 2 are inside together"),
        ("check.txt", "VIOLATION: nodes 1, 2 are inside together"),
        ("check.mmd", "sequenceDiagram"),
        ("check.shiviz", "(?<host>"),
        ("check.json", "traceEvents"),
    ] {
        let path = temporary(name);
        failing(&format!("check lamport -n 2 --channel unordered --diagram {path}"), 1);
        assert!(text_of(&path).contains(mark), "{name}");
    }
    let path = temporary("check-stuck.svg");
    failing(&format!("check le-lann -n 2 --loss --diagram {path}"), 1);
    assert!(text_of(&path).contains("✗ node 1 waits and nothing can happen any more"));
}

#[test]
fn a_refuted_algorithm_that_holds_at_one_size_is_still_called_refuted() {
    let text = answer("check maekawa-printed --acquires 1");
    let opening = "holds here, but it is refuted: it fails for 3 nodes with the quorums \
                   1,2,3;2,3;3: maekawa-printed, 3 nodes";
    assert!(text.starts_with(opening), "{text}");
    let command = "doorway check maekawa-printed --quorums '1,2,3;2,3;3' --acquires 1";
    assert!(text.contains(command), "{text}");
    assert_eq!(json("check maekawa-printed --acquires 1")["refuted_by"], command);
    let right = answer("check maekawa --acquires 1");
    assert!(!right.contains("refuted") && right.starts_with("holds: maekawa"), "{right}");
}

#[test]
fn quorums_made_by_hand_are_checked_from_the_command_line() {
    // The shortest deadlock of the printed text: three nodes, eight steps.
    let (text, reason) = failing("check maekawa-printed --quorums 1,2,3;2,3;3 --acquires 1", 1);
    assert!(reason.contains("stuck: nodes 1, 2 wait"), "{reason}");
    assert!(text.contains("     8  ") && !text.contains("     9  "), "{text}");
    assert!(text.starts_with("violated: maekawa-printed, 3 nodes"), "as many as there are sets");
    let story = temporary("stairs.txt");
    failing(&format!("check maekawa-printed --quorums 1,2,3;2,3;3 --acquires 1 --save {story}"), 1);
    assert!(text_of(&story).contains("quorums=1,2,3;2,3;3"));
    failing(&format!("replay {story}"), 1);
    assert!(answer("check maekawa --quorums 1,2,3;2,3;3 --acquires 1").starts_with("holds: "));
    for command in ["simulate maekawa", "compare maekawa", "diagram maekawa", "explain maekawa"] {
        let text = answer(&format!("{command} --quorums 1,2;2,3;1,3;1,2,3"));
        assert!(text.contains('4'), "{command}: {text}");
    }
    assert!(answer("simulate maekawa -n 6 --quorums triangle:1").contains("N = 6"));
}

#[test]
fn quorums_that_cannot_be_are_refused_in_one_line() {
    for (sets, why) in [
        ("1,2;2;3", "{1,2} of node 1 and {3} of node 3 have no node in common"),
        ("1,5;1", "contains node 5, but there are 2 nodes"),
        ("1,x;1", "'1,x' is not a quorum; write the numbers"),
        ("1,2;", "as in 1,2,3;2,3;3"),
        ("triangle:3", "triangle:1, triangle:2"),
        ("gird", "'grid'"),
    ] {
        let reason = refusal(&format!("check maekawa --quorums {sets}"));
        assert!(reason.contains(why), "{sets}: {reason}");
    }
    let reason = refusal("check maekawa -n 4 --quorums 1;1");
    assert!(reason.contains("2 quorums for 4 nodes; give one for each node"), "{reason}");
    assert!(refusal("check lamport --quorums 1,2;2,3;1,3").contains("no use for quorums"));
}

/// A check that stops at its limit, or is interrupted, goes on where it stopped, and finds what it
/// would have found in one go.
#[test]
fn a_check_that_was_stopped_goes_on() {
    for (number, line) in [
        "check ricart-agrawala -n 3 --acquires 3",
        "check carvalho-roucairol -n 3 --acquires 3",
        "check maekawa-printed -n 4",
        "check suzuki-kasami -n 3 --property exclusion",
        "check carvalho-roucairol -n 3 --acquires forever",
        "check maekawa -n 3 --acquires forever",
    ]
    .into_iter()
    .enumerate()
    {
        let file = temporary(&format!("search-{number}"));
        let kept = format!("{line} --threads 1 --resume {file}");
        for limit in [1000, 5000] {
            let (text, _) = failing(&format!("{kept} --limit {limit}"), 3);
            assert!(text.contains(&format!("The search is kept in {file}. ")), "{text}");
        }
        let without_measures = |output: std::process::Output| {
            let mut finding = parsed(&String::from_utf8(output.stdout).expect("it is text"));
            let all = finding.as_object_mut().expect("an object");
            all.retain(|key, _| key != "seconds" && key != "memory_bytes");
            // Of several shortest counterexamples, either may be found.
            all["trace"] = all["trace"].as_array().map_or(0, Vec::len).into();
            (output.status.code(), finding)
        };
        let ended = without_measures(output(&format!("{kept} --json")));
        assert_eq!(
            ended,
            without_measures(output(&format!("{line} --threads 1 --json"))),
            "{line}"
        );
        assert!(!std::path::Path::new(&file).exists(), "{line}: the file is removed");
    }
}

#[test]
fn only_the_search_that_was_kept_goes_on() {
    let file = temporary("search-of-another");
    failing(&format!("check lamport -n 3 --limit 1000 --resume {file}"), 3);
    let refused = refusal(&format!("check lamport -n 2 --resume {file}"));
    assert!(refused.contains("it has another search: lamport, 3 nodes"), "{refused}");
    std::fs::write(&file, "no search").expect("it is written");
    let refused = refusal(&format!("check lamport -n 3 --resume {file}"));
    assert!(refused.contains("it has no search, or it is damaged"), "{refused}");
    std::fs::write(&file, "doorway search 1 of an older version").expect("it is written");
    let refused = refusal(&format!("check lamport -n 3 --resume {file}"));
    let remedy = "; remove the file to search from the beginning";
    assert!(refused.contains("format 1") && refused.contains(remedy), "{refused}");
    let (_, reason) = failing(&format!("check lamport -n 2 --resume {NOWHERE}"), 1);
    assert!(reason.contains("cannot write"), "{reason}");
}

#[test]
fn a_token_that_one_pass_makes_can_be_checked_with_endless_requests() {
    let line = "check naimi-trehel -n 3 --acquires forever --begin one-pass";
    let opening = "holds: naimi-trehel, 3 nodes, token by one pass, each asks forever";
    assert!(answer(line).starts_with(opening));
    let reason = refusal("check suzuki-kasami -n 3 --acquires forever --begin one-pass");
    assert!(reason.contains("requests pile up") && reason.contains("--acquires 2"), "{reason}");
}

/// What was chosen for the group is in the first line and in the JSON.
#[test]
fn a_verdict_says_for_which_arrangement_it_holds() {
    let line = "check maekawa --quorums 1,2,3;2,3;3 --acquires 1";
    assert!(
        answer(line).starts_with("holds: maekawa, 3 nodes, quorums 1,2,3;2,3;3, each asks once")
    );
    assert_eq!(json(line)["arrangement"], serde_json::json!({ "quorums": "1,2,3;2,3;3" }));
    let line = "check suzuki-kasami -n 3 --topology ring --begin one-pass --acquires 1";
    let opening = "holds: suzuki-kasami, 3 nodes, token by one pass, topology ring, each asks once";
    let text = answer(line);
    assert!(text.starts_with(opening), "{text}");
    let chosen = serde_json::json!({ "begin": "one-pass", "topology": "ring" });
    assert_eq!(json(line)["arrangement"], chosen);
    assert_eq!(json("check central -n 2")["arrangement"], serde_json::json!({}));
    let usual = "check suzuki-kasami -n 2 --begin node-1";
    assert!(answer(usual).starts_with("holds: suzuki-kasami, 2 nodes, each asks twice"));
}

/// The claim of a token algorithm does not count the pass that makes the token, so with the pass
/// there is another claim, and every run keeps it.
#[test]
fn the_messages_of_a_pass_are_part_of_the_claim() {
    let text = answer("check suzuki-kasami -n 3 --acquires 1 --begin one-pass");
    let claim = "claimed: 4 to 18 a run, for a node's request in the pass costs up to 2(N-1) = 4";
    let whole = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(whole.contains(claim), "{text}");
    let tokens = ["ricart-agrawala-token", "suzuki-kasami", "naimi-trehel", "raymond-tree"];
    for name in tokens {
        for group in ["-n 2 --acquires 2", "-n 3 --acquires 1", "-n 3 --requesters 1,3"] {
            let line = format!("check {name} {group} --begin one-pass");
            let text = answer(&line).split_whitespace().collect::<Vec<_>>().join(" ");
            let (_, claimed) = text.split_once("claimed: ").expect("a claim");
            let mut numbers = claimed.split(" a run").next().expect("a range").split(" to ");
            let mut number = || numbers.next().and_then(|text| text.parse::<f64>().ok());
            let (low, high) = (number().expect("a number"), number().expect("a number"));
            let found = &json(&line)["messages"];
            let (least, most) = (found["least"].as_f64(), found["most"].as_f64());
            let kept = least.is_some_and(|it| it >= low) && most.is_some_and(|it| it <= high);
            assert!(kept, "{line}: {found}, claimed {low} to {high}");
        }
    }
}
