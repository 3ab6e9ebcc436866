//! `doorway problems`.

use crate::{answer, failing, json, refusal};

#[test]
fn list_has_a_line_for_each_problem() {
    let (text, rows) = (answer("problems list"), json("problems list"));
    let rows = rows.as_array().expect("an array");
    assert_eq!(text.lines().count(), rows.len() + 1);
    for (line, row) in text.lines().skip(1).zip(rows) {
        let name = row["name"].as_str().expect("a name");
        assert!(line.starts_with(&format!("{name} ")), "{line}");
        assert_eq!(line.ends_with("refuted"), row["refuted"] == true, "{line}");
    }
    for name in ["buffer-pair", "buffer-naive", "readers-writers", "ring-k-state"] {
        assert!(rows.iter().any(|row| row["name"] == name), "{name}");
    }
}

#[test]
fn checks_that_hold_say_so() {
    for command in [
        "buffer-pair --capacity 1 --faults overtaking,loss,duplication,crash",
        "buffer-pair --faults none",
        "buffer-split",
        "buffer-token",
        "buffer-locked --capacity 1",
        "buffer-locked --capacity 1 --lock central",
        "buffer-threads",
        "readers-writers -n 3",
        "ring-k-state",
        "ring-four-state -n 3",
        "ring-three-state -n 3",
    ] {
        let text = answer(&format!("problems check {command}"));
        assert!(text.lines().next().is_some_and(|line| line.ends_with(": holds")), "{text}");
        let found = json(&format!("problems check {command}"));
        assert_eq!(found["holds"], true, "{found}");
        assert!(found["states"].as_u64().is_some_and(|states| states > 2), "{found}");
    }
    let ring = json("problems check ring-three-state -n 5");
    assert_eq!(ring["facts"][1][1], "22 steps", "{ring}");
}

/// A refuted solution that holds at the size asked for says so in the first line.
#[test]
fn a_refuted_solution_that_holds_here_is_still_called_refuted() {
    for command in ["buffer-naive -n 1", "buffer-naive --items 1 --capacity 2"] {
        let text = answer(&format!("problems check {command}"));
        let first = "buffer-naive: holds here, but it is refuted: it fails for 2 producers and 1 \
                     place\n";
        assert!(text.starts_with(first), "{text}");
        assert!(text.contains("it fails"), "{text}");
        let found = json(&format!("problems check {command}"));
        assert_eq!(found["holds"], true, "{found}");
        let refuted_by = found["refuted_by"].as_str().expect("a command");
        failing(refuted_by.strip_prefix("doorway ").expect("of this program"), 1);
    }
    assert!(json("problems check buffer-split")["refuted_by"].is_null());
    let (text, _) = failing("problems check buffer-naive", 1);
    assert!(text.starts_with("buffer-naive: violated: "), "{text}");
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_ends_a_check_with_what_is_known() {
    for command in [
        "problems check buffer-split -n 6 --capacity 6 --limit 4000000000",
        "problems check buffer-threads -n 8 --writers 3 --capacity 3 --limit 4000000000",
    ] {
        let text = crate::interrupted(command);
        assert!(
            text.lines().next().is_some_and(|line| line.ends_with(": not exhausted")),
            "{text}"
        );
        assert!(text.contains("states") && text.contains("stopped by Ctrl-C"), "{text}");
    }
}

/// A refuted solution fails with its shortest counterexample, and so does a pair that loses
/// messages and does not send again.
#[test]
fn violations_are_told_and_are_failures() {
    let (text, error) = failing("problems check buffer-naive --capacity 1", 1);
    assert!(error.contains("the buffer has 2 items and room for 1"), "{error}");
    assert!(text.contains("   1. producer 1 produces item 1\n"), "{text}");
    assert!(text.contains("producer 2 "), "{text}");
    let (_, error) = failing("problems check buffer-pair --capacity 1 --send-once", 1);
    assert!(error.contains("an item is never consumed"), "{error}");
    let (_, error) = failing("problems check ring-k-state -n 5 --states 3", 1);
    assert!(error.contains("no state with a single privilege is reached"), "{error}");
}

#[test]
fn the_longest_way_home_is_shown() {
    let text = answer("problems show ring-four-state -n 4");
    assert!(text.starts_with("The longest way home takes 6 steps."), "{text}");
    assert_eq!(text.lines().count(), 2 + 7, "{text}");
    assert!(text.ends_with("   1 privilege\n"), "{text}");
    let text = answer("problems show ring-three-state -n 3");
    assert!(text.starts_with("The longest way home takes 1 step."), "{text}");
    let way = json("problems show ring-k-state -n 5");
    let way = way.as_array().expect("an array");
    assert_eq!(way.len(), 25);
    let privileged = |at: usize| way[at]["privileged"].as_array().expect("an array").len();
    assert!(privileged(0) > 1 && privileged(24) == 1, "{way:?}");
}

#[test]
fn runs_are_drawn() {
    let text = answer("problems show buffer-pair --seed 2");
    for part in ["producer", "produces item 1", "sends Item(1, 1) to consumer", "consumes item 1"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert_eq!(text, answer("problems show buffer-pair --seed 2"), "the same seed, the same run");
    let naive = answer("problems show buffer-naive --capacity 1");
    assert!(naive.contains("VIOLATION: the buffer has 2 items and room for 1"), "{naive}");
    assert!(answer("problems show readers-writers").contains("turnstile"));
}

#[test]
fn runs_count_what_happens() {
    let run = json("problems run buffer-pair --capacity 4 --steps 3000");
    let count = |what: &str| {
        let counts = run["counts"].as_array().expect("an array");
        let found = counts.iter().find(|count| count[0] == what);
        found.and_then(|count| count[1].as_f64()).unwrap_or_else(|| panic!("{what} in {run}"))
    };
    assert!(count("items consumed") > 10.0 && count("messages lost") > 10.0, "{run}");
    assert!(count("items consumed") <= count("items produced"), "{run}");
    // Four places pass four times as much as one.
    let (four, one) = (count("items in the time of a message"), count("the same with one place"));
    assert!((3.9..4.1).contains(&(four / one)), "{run}");
    for problem in ["buffer-threads", "readers-writers", "ring-k-state -n 3"] {
        answer(&format!("problems run {problem}"));
    }
}

/// Wherever a ring begins, one privilege is left within as many steps as the explorer says, and it
/// goes around.
#[test]
fn rings_of_four_and_three_states_come_home_in_random_moves() {
    for ring in ["ring-four-state", "ring-three-state"] {
        let (mut longest, mut bound) = (0.0_f64, f64::MAX);
        for (daemon, seeds) in [("central", 1..20), ("distributed", 1..5)] {
            for seed in seeds {
                let line = format!("problems run {ring} -n 5 --daemon {daemon} --seed {seed}");
                let run = json(&line);
                let count = |what: &str| {
                    let counts = run["counts"].as_array().expect("an array");
                    let found = counts.iter().find(|count| count[0] == what);
                    found.and_then(|count| count[1].as_f64()).unwrap_or_else(|| panic!("{run}"))
                };
                let home = count("steps until one privilege is left");
                bound = count("the most steps until then, in any run");
                assert!(home <= bound, "{run}");
                assert!(count("visits of it to each machine since then, at least") > 50.0, "{run}");
                longest = longest.max(home);
            }
        }
        assert!(longest > 1.0 && bound < 100.0, "{ring}: {longest} of {bound}");
        let line = format!("problems run {ring} -n 6 --seed 3");
        assert_eq!(answer(&line), answer(&line), "the same seed, the same run");
    }
    // Without the explorer's bound, which large rings have too many states for.
    let large = answer("problems run ring-three-state -n 40 --steps 10000");
    assert!(large.contains("steps until one privilege is left"), "{large}");
    assert!(!large.contains("in any run"), "{large}");
}

#[test]
fn wrong_questions_are_told_with_what_would_be_right() {
    for (command, part) in [
        ("check bufer-pair", "buffer-pair"),
        ("check ring-k-state --capacity 2", "ring-k-state has no use for --capacity"),
        ("check buffer-pair -n 2", "buffer-pair has one producer"),
        ("check buffer-split -n 3", "2 places cannot be split among 3 producers"),
        ("check buffer-token --faults crash", "only the processes of buffer-pair"),
        ("check buffer-pair --faults loss", "add overtaking to --faults"),
        ("check buffer-pair --faults none,loss", "--faults none goes with no other fault"),
        ("check buffer-pair --capacity 17", "1 to 16 places"),
        ("check buffer-locked --lock lamport", "lamport needs messages in order"),
        ("check buffer-threads -n 1", "leave none to receive"),
        ("check readers-writers -n 1 --writers 2", "2 writers are more than 1 processes"),
        ("check ring-four-state -n 2", "at least 3 machines, not 2"),
        ("check ring-k-state -n 100", "try fewer machines"),
        ("show ring-k-state -o x.svg", "ring-k-state has no diagram"),
        ("show ring-k-state -n 5 --states 3", "there is no longest way home"),
        ("run ring-four-state --daemon read-write", "do not stabilise; ring-k-state does"),
        ("check", "NAME"),
    ] {
        let said = refusal(&format!("problems {command}"));
        assert!(said.contains(part), "{part} in {said}");
    }
}
