//! `doorway threads`.

use serde_json::Value;

use crate::{answer, failing, json, parsed, refusal, temporary, text_of};

fn algorithms() -> Vec<Value> {
    json("threads list").as_array().expect("an array").clone()
}

#[test]
fn list_has_a_line_for_each_algorithm() {
    let text = answer("threads list");
    let rows = algorithms();
    assert_eq!(text.lines().count(), rows.len() + 1);
    for (line, row) in text.lines().skip(1).zip(rows) {
        let name = row["name"].as_str().expect("a name");
        assert!(line.starts_with(&format!("{name} ")), "{line}");
        assert_eq!(line.ends_with("refuted"), row["refuted"] == true, "{line}");
    }
}

#[test]
fn list_json_has_its_documented_fields() {
    let rows = algorithms();
    for name in ["dekker", "dijkstra", "hyman", "peterson", "ttas", "ticket"] {
        assert!(rows.iter().any(|row| row["name"] == name), "{name}");
    }
    for row in rows {
        for key in ["name", "origin", "registers", "primitive"] {
            assert!(row[key].as_str().is_some_and(|text| !text.is_empty()), "{key} of {row}");
        }
        assert!(row["year"].as_u64().is_some_and(|year| (1962..2030).contains(&year)), "{row}");
        assert!(row["fewest"].as_u64() <= row["most"].as_u64(), "{row}");
        assert!(row["fences"].is_string() && row["refuted"].is_boolean(), "{row}");
        let claims = row["claims"].as_array().unwrap();
        assert!(claims.iter().all(|claims| claims["exclusion"] == true), "{row}");
        assert!(!claims.is_empty(), "{row}");
    }
}

#[test]
fn explain_tells_the_idea_the_steps_and_the_fences() {
    let text = answer("threads explain peterson");
    for part in [
        "peterson\n  Peterson, \"Myths about the Mutual Exclusion Problem\"",
        "\nIdea\n",
        "\nWhat holds\n",
        "\nRegisters: 2 bits, 1 shared bit\n  flag[n] = 0\n",
        "  doorway  GiveTurn\n",
        "memory.fence('a');",
        "  a  needed by the memory model of Rust, but not by store buffers as on x86\n",
        "  GiveTurn  turn := 0, fence b\n",
        "  doorway threads check peterson --drop-fence b\n",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(answer("threads explain hyman").contains("\nRefuted\n"));
    let found = json("threads explain peterson");
    assert_eq!((&found["name"], &found["year"]), (&"peterson".into(), &1981.into()));
    assert_eq!(found["shared"][1]["name"], "turn");
    assert_eq!(found["places"][1]["section"], "doorway");
    assert_eq!(found["alone"][0]["step"], "flag[1] := 1, fence a");
    assert!(found["steps"].as_str().is_some_and(|steps| steps.starts_with("fn step(")), "{found}");
}

/// The first fields of what `check` prints as JSON, in their order.
const KEYS: [&str; 11] = [
    "name",
    "n",
    "memory",
    "states",
    "exclusion",
    "deadlock_free",
    "lockout_free",
    "bypass_all",
    "bypass_one",
    "fifo",
    "schedule",
];

#[test]
fn check_json_has_its_documented_fields() {
    let text = answer("threads check peterson --json");
    let mut at = 0;
    for key in KEYS {
        at += text[at..].find(&format!("\"{key}\":")).unwrap_or_else(|| panic!("{key} in {text}"));
    }
    let found = parsed(&text);
    let values = KEYS.map(|key| found[key].to_string()).join(" ");
    assert_eq!(values, r#""peterson" 2 "sc" 32 true true true 1 1 true []"#);
    assert_eq!((&found["verdict"], &found["violated"]), (&"holds".into(), &Value::Null));

    let found = json("threads check dijkstra -n 3 --threads 1");
    let values = KEYS.map(|key| &found[key]);
    assert_eq!(
        values[4..],
        [
            &true.into(),
            &true.into(),
            &false.into(),
            &"unbounded".into(),
            &"unbounded".into(),
            &false.into(),
            &Value::Array(Vec::new()),
        ]
    );
    assert_eq!((&found["n"], &found["claimed"]["lockout_free"]), (&3.into(), &false.into()));
}

#[test]
fn a_verdict_is_printed_beside_the_claim() {
    let text = answer("threads check ticket -n 3");
    assert!(text.starts_with("holds: ticket, 3 processes, writes are seen at once\n"), "{text}");
    let line = |what: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(what));
        line.unwrap_or_else(|| panic!("{what} in {text}"))
            .split("  ")
            .filter(|cell| !cell.is_empty())
            .map(str::trim)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(line("exclusion"), ["exclusion", "yes", "yes"]);
    assert_eq!(line("lockout-free"), ["lockout-free", "yes", "yes"]);
    let bound = "at most 2 by all, 1 by one";
    assert_eq!(line("overtaken"), ["overtaken", bound, bound]);
    assert!(text.contains(" states a second, ") && text.contains("64-bit fingerprints"), "{text}");
    let text = answer("threads check dijkstra");
    assert!(text.contains("no bound claimed") && text.contains("not claimed"), "{text}");
}

#[test]
fn a_violation_is_printed_step_by_step() {
    let (text, reason) = failing("threads check hyman", 1);
    assert_eq!(reason, "doorway: hyman: violated: exclusion: two processes are inside at once\n");
    assert!(text.starts_with("violated: hyman, 2 processes"), "{text}");
    let steps: Vec<&str> = text.lines().filter(|line| line.contains("  P")).collect();
    assert_eq!(steps.len(), 7, "{text}");
    for (number, line) in (1..).zip(&steps) {
        assert!(line.starts_with(&format!("     {number}  P")), "{line}");
    }
    assert_eq!(steps.iter().filter(|line| line.ends_with(", enters")).count(), 2, "{text}");
    assert!(steps[6].ends_with(", enters") && text.contains("not decided"), "{text}");

    let (text, _) = failing("threads check hyman --json", 1);
    let found = parsed(&text);
    assert_eq!(found["schedule"].as_array().unwrap().len(), 7, "{found}");
    assert_eq!((&found["exclusion"], &found["deadlock_free"]), (&false.into(), &Value::Null));
}

#[test]
fn without_a_fence_store_buffers_break_exclusion() {
    let found = json("threads check peterson --memory tso");
    assert_eq!((&found["memory"], &found["exclusion"]), (&"tso".into(), &true.into()));
    for key in ["deadlock_free", "lockout_free", "bypass_all", "bypass_one", "fifo"] {
        assert_eq!(found[key], Value::Null, "{key}");
    }
    let (text, reason) = failing("threads check peterson --memory tso --drop-fence b", 1);
    assert!(reason.contains("violated: exclusion"), "{reason}");
    assert!(text.contains("writes are buffered, without fence b"), "{text}");
    assert!(text.contains("fence a") && !text.contains(", fence b"), "{text}");
    let (text, _) = failing("threads check dekker --memory tso --drop-fence a,c --json", 1);
    assert_eq!(parsed(&text)["dropped_fences"], "ac");
}

/// On memory with store buffers an algorithm fails without any one of its fences, except for the
/// fences that it declares to be needed by the language only. The page docs/threads.md says so.
#[test]
fn store_buffers_need_every_fence_but_those_that_say_otherwise() {
    for row in algorithms().iter().filter(|row| row["refuted"] == false) {
        let name = row["name"].as_str().unwrap();
        let spare = row["fences_beyond_tso"].as_str().unwrap();
        for fence in row["fences"].as_str().unwrap().chars() {
            let line = format!("threads check {name} --memory tso --drop-fence {fence}");
            let done = crate::output(&line);
            let expected = i32::from(!spare.contains(fence));
            assert_eq!(done.status.code(), Some(expected), "{line}: {done:?}");
        }
    }
}

#[test]
fn a_fence_that_only_the_language_needs_is_noted() {
    let text = answer("threads check peterson --drop-fence a");
    assert!(text.contains("so x86 does not need fence a\n"), "{text}");
    assert!(text.contains("so the locks keep it\n"), "{text}");
    assert!(!answer("threads check peterson --memory tso").contains("x86 does not need"));
}

#[test]
fn a_check_that_gives_up_has_shown_nothing() {
    let (text, reason) = failing("threads check dijkstra -n 4 --limit 1000", 3);
    assert!(text.starts_with("not exhausted: dijkstra, 4 processes"), "{text}");
    assert!(text.contains("not decided") && !text.contains("fingerprints"), "{text}");
    assert!(reason.contains("not exhausted: there are more than 1,000 states"), "{reason}");
    let (text, _) = failing("threads check dijkstra -n 4 --limit 1000 --json", 3);
    let found = parsed(&text);
    assert_eq!((&found["exclusion"], &found["schedule"]), (&Value::Null, &Value::Array(vec![])));
}

/// A check that stops at its limit goes on where it stopped, and finds what it would have found in
/// one go.
#[test]
fn a_check_that_was_stopped_goes_on() {
    for (number, line) in [
        "threads check dijkstra -n 3",
        "threads check burns-printed -n 4",
        "threads check burns-printed -n 3 --memory tso",
    ]
    .into_iter()
    .enumerate()
    {
        let file = temporary(&format!("threads-{number}"));
        let kept = format!("{line} --threads 1 --resume {file}");
        for limit in [1000, 2000] {
            let (text, _) = failing(&format!("{kept} --limit {limit}"), 3);
            assert!(text.contains(&format!("The search is kept in {file}. ")), "{text}");
        }
        let without_measures = |output: std::process::Output| {
            let mut finding = parsed(&String::from_utf8(output.stdout).expect("text"));
            let all = finding.as_object_mut().expect("an object");
            all.retain(|key, _| key != "seconds" && key != "memory_bytes");
            (output.status.code(), finding)
        };
        let ended = without_measures(crate::output(&format!("{kept} --json")));
        let at_once = without_measures(crate::output(&format!("{line} --threads 1 --json")));
        assert_eq!(ended, at_once, "{line}");
        assert!(!std::path::Path::new(&file).exists(), "{line}: the file is removed");
    }
    let file = temporary("threads-other");
    failing(&format!("threads check dijkstra -n 3 --limit 1000 --resume {file}"), 3);
    for other in ["dijkstra -n 4", "knuth -n 3", "dijkstra -n 3 --memory tso"] {
        let refused = refusal(&format!("threads check {other} --resume {file}"));
        assert!(refused.contains("it has another search: dijkstra, 3 processes"), "{refused}");
    }
}

/// A refuted algorithm that holds for the processes asked for says so in the first line.
#[test]
fn a_refuted_algorithm_that_holds_here_is_still_called_refuted() {
    for line in ["burns-printed", "burns-printed -n 3", "increment-undo --memory tso"] {
        let fewest = if line.starts_with("burns") { 4 } else { 2 };
        let text = answer(&format!("threads check {line}"));
        let first = format!(
            "holds here, but it is refuted: it fails for {fewest} processes: {}",
            &line[..5]
        );
        assert!(text.starts_with(&first), "{text}");
        assert!(text.contains("it fails"), "{text}");
        let found = json(&format!("threads check {line}"));
        let refuted_by = found["refuted_by"].as_str().expect("a command");
        failing(refuted_by.strip_prefix("doorway ").expect("of this program"), 1);
    }
    assert!(json("threads check burns")["refuted_by"].is_null());
    let (text, _) = failing("threads check burns-printed -n 4", 1);
    assert!(text.starts_with("violated: burns-printed, 4 processes"), "{text}");
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_ends_long_work_with_what_is_known() {
    let text = crate::interrupted("threads check dijkstra -n 6 --limit 4000000000");
    assert!(text.starts_with("not exhausted: dijkstra, 6 processes"), "{text}");
    assert!(text.contains(" transitions, depth ") && text.contains("stopped by Ctrl-C"), "{text}");
    let text = crate::interrupted("threads bench --seconds 100");
    assert!(text.contains(" cores, ") && text.contains("\n  std::sync::Mutex "), "{text}");
}

#[test]
fn impossible_questions_are_refused_in_one_line() {
    for (line, why) in [
        ("threads", "doorway help"),
        ("threads chek peterson", "'check'"),
        ("threads check", "<NAME>"),
        ("threads check petersn", "'peterson'"),
        ("threads explain petersn", "'peterson'"),
        ("threads check lamport", "doorway explain lamport"),
        ("threads check peterson -n 3", "peterson is for 2 processes, not 3"),
        ("threads check dijkstra -n 1", "dijkstra is for 2 to 8 processes, not 1"),
        ("threads check dijkstra -n 9", "1 to 8 processes"),
        ("threads check dijkstra -n 0", "1 to 8 processes"),
        ("threads check dijkstra -n -3", "1 to 8 processes"),
        ("threads check dijkstra -n many", "1 to 8 processes"),
        ("threads check dijkstra --memory arm", "sc, tso"),
        ("threads check dijkstra --memory tso --drop-fence a", "no fence 'a': it has d"),
        ("threads check dekker --memory tso --drop-fence b", "no fence 'b': it has a, c"),
        ("threads check ticket --memory tso --drop-fence a", "it has none"),
        ("threads check dijkstra --memory sc --drop-fence d", "say --memory tso"),
        ("threads check dijkstra --drop-fence dd", "--drop-fence"),
        ("threads check dijkstra --limit 0", "1 to 4000000000 states"),
        ("threads check dijkstra --threads 0", "1 to 1024 threads"),
        ("threads check --table --json", "--table"),
        ("threads bench hyman", "hyman is refuted"),
        ("threads bench petersn", "'peterson'"),
        ("threads bench --seconds 0", "1 to 86400 seconds"),
        ("threads bench --quick --seconds 9", "--quick"),
    ] {
        let reason = refusal(line);
        assert!(reason.contains(why), "doorway {line}: {reason}");
    }
}

#[test]
fn the_locks_are_measured_beside_those_of_others() {
    let found = json("threads bench ticket peterson --quick");
    assert!(found["machine"]["cores"].as_u64().is_some_and(|cores| cores > 0), "{found}");
    assert!(found["machine"]["arch"].is_string() && found["runs"] == 5, "{found}");
    let locks = found["locks"].as_array().unwrap();
    let names: Vec<_> = locks.iter().map(|lock| lock["name"].as_str().unwrap()).collect();
    let others = ["std::sync::Mutex", "parking_lot::Mutex", "spin::SpinMutex", "spin::TicketMutex"];
    assert_eq!(names, [&["ticket", "peterson"][..], &others[..]].concat());
    for lock in locks {
        assert!(lock["alone_ns"]["least"].as_f64() <= lock["alone_ns"]["median"].as_f64());
        let crowds = lock["crowds"].as_array().unwrap();
        assert_eq!(crowds.len(), if lock["name"] == "peterson" { 2 } else { 3 }, "{lock}");
        for crowd in crowds {
            assert!(crowd["entries_per_second"]["median"].as_f64() > Some(0.0), "{lock}");
            assert_eq!(crowd["wait_ns"]["p99.9"].is_object(), crowd["threads"] != 1, "{lock}");
            assert_eq!(crowd["overtaken"].is_u64(), crowd["threads"] != 1, "{lock}");
        }
    }
    let bounds = [0, 1].map(|nth| locks[nth]["crowds"][1]["bypass_bound"].as_u64());
    assert_eq!(bounds, [Some(1), Some(1)]);
    assert_eq!(locks[2]["crowds"][1]["bypass_bound"], Value::Null);
}

#[test]
fn a_schedule_is_drawn_as_lanes_beside_the_registers() {
    let picture = temporary("hyman.svg");
    failing(&format!("threads check hyman --diagram {picture}"), 1);
    let svg = text_of(&picture);
    assert!(svg.contains(">P0<") && svg.contains(">P1<"), "a lane for each process");
    assert!(svg.contains("two processes are inside at once"), "the ending");
    assert!(svg.matches("class=\"f4\"").count() > 2, "registers that change");
    assert_eq!(svg.matches("<rect class=\"inside\"").count(), 2, "both are inside at the end");
    // Of an algorithm that holds, a run is drawn in which each process is inside once.
    let right = temporary("peterson.svg");
    let text = answer(&format!("threads check peterson --diagram {right}"));
    assert!(text.contains("shows a run in which processes take turns"), "{text}");
    let svg = text_of(&right);
    assert!(svg.contains("no violation was found; here the processes take turns"), "the ending");
    assert_eq!(svg.matches("<rect class=\"inside\"").count(), 2, "one after the other");
    for name in ["bakery", "semaphore", "kessels-tree"] {
        answer(&format!("threads check {name} --diagram {right}"));
        assert!(text_of(&right).matches("<rect class=\"inside\"").count() >= 2, "{name}");
    }
    assert!(refusal("threads check hyman --diagram hyman.png").contains("must end in .svg"));
}
