//! `doorway list` and `doorway explain`.

use crate::{algorithms, answer, failing, json, refusal};

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
fn the_algorithms_of_the_papers_are_there() {
    let rows = algorithms();
    let refuted =
        |name: &str| rows.iter().find(|row| row["name"] == name).expect(name)["refuted"] == true;
    for name in [
        "central",
        "lamport",
        "ricart-agrawala",
        "ricart-agrawala-ring",
        "carvalho-roucairol",
        "ricart-agrawala-token",
        "suzuki-kasami",
        "le-lann",
        "maekawa",
        "maekawa-eager",
        "maekawa-unordered",
        "maekawa-sequential",
        "maekawa-cyclic",
        "majority",
        "weighted-majority",
        "raymond-tree",
        "raymond-k",
        "naimi-trehel",
        "readers-writers",
    ] {
        assert!(!refuted(name), "{name}");
    }
    for name in [
        "maekawa-printed",
        "maekawa-textbook",
        "maekawa-slides-printed",
        "maekawa-sequential-self-first",
        "raymond-k-scanned",
    ] {
        assert!(refuted(name), "{name}");
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
        let own: &[&str] = if row["refuted"] == true {
            &["Refuted", "A run that shows the flaw"]
        } else {
            &["Rules", "Why it is right", "A small run"]
        };
        for part in ["Assumes", "Idea", "Messages per entry"].iter().chain(own) {
            assert!(text.lines().any(|line| line == *part), "{part} of {name}");
        }
        assert!(!text.contains("//!"), "{name}");
        assert_eq!(json(&format!("explain {name}"))["name"], name);
    }
}

/// A reader who wants to use an algorithm that is right but not served learns why it is not.
#[test]
fn explain_says_why_an_algorithm_is_not_served() {
    let list = json("list");
    let rows = list.as_array().expect("a list");
    let right = rows.iter().filter(|row| row["refuted"] == false && row["served"] == false);
    let names: Vec<_> = right.filter_map(|row| row["name"].as_str()).collect();
    assert_eq!(names, ["le-lann", "maekawa-heir"]);
    for (name, why) in names.into_iter().zip(["its token travels for ever", "the change of views"])
    {
        let text = answer(&format!("explain {name}"));
        let (_, part) = text.split_once("\nNot served\n").expect("a part about it");
        assert!(part.starts_with("  No `[[lock]]` of a service can name it, because "), "{text}");
        let said = &json(&format!("explain {name}"))["not_served"];
        assert!(said.as_str().is_some_and(|said| said.contains(why)), "{said}");
    }
    assert!(!answer("explain maekawa").contains("Not served"));
    assert!(json("explain maekawa").get("not_served").is_none());
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
fn a_refuted_algorithm_is_explained_by_its_difference_and_its_flaw() {
    for row in algorithms().iter().filter(|row| row["refuted"] == true) {
        let name = row["name"].as_str().expect("a name");
        let text = answer(&format!("explain {name}"));
        assert!(!text.contains("Why it is right"), "no proof of {name}");
        assert!(text.contains(&format!("\nWhat differs in {name}\n")), "{text}");
        assert!(text.contains("VIOLATION: "), "the run of {name} shows the flaw: {text}");
        let sections = &json(&format!("explain {name}"))["sections"];
        assert!(!sections.to_string().contains("Why it is right"), "{sections}");
        // The search that is recommended finds a violation.
        let (_, search) = text.rsplit_once("by search: doorway ").expect("a command");
        let (found, _) = failing(&search.trim_end().replace('\'', ""), 1);
        assert!(found.starts_with(&format!("violated: {name}, ")), "{found}");
    }
    assert!(!answer("explain maekawa").contains("Variant"));
}

#[test]
fn algorithms_between_threads_are_found_in_their_own_command() {
    let reason = refusal("check peterson");
    assert!(reason.contains("between threads"), "{reason}");
    assert!(reason.contains("`doorway threads check peterson`"), "{reason}");
    let reason = refusal("threads check lamport");
    assert!(reason.contains("`doorway check lamport`"), "{reason}");
}

#[test]
fn problems_and_algorithms_are_found_in_their_own_command() {
    for line in ["check buffer-pair", "threads check buffer-pair", "explain buffer-pair"] {
        let reason = refusal(line);
        assert!(reason.contains("`doorway problems check buffer-pair`"), "{line}: {reason}");
    }
    assert!(refusal("explain ring-k-state").contains("`doorway problems show ring-k-state`"));
    assert!(refusal("problems check knuth").contains("`doorway threads check knuth`"));
    assert!(refusal("problems show lamport").contains("`doorway check lamport`"));
}

#[test]
fn explain_knows_both_families() {
    let text = answer("explain knuth");
    assert!(text.contains("\nWhat holds\n") && text.contains("fn step("), "{text}");
    assert_eq!(text, answer("threads explain knuth"));
    assert_eq!(json("explain knuth"), json("threads explain knuth"));
    let reason = refusal("explain knuth -n 3");
    assert!(reason.contains("between threads, which have no group"), "{reason}");
    assert!(refusal("explain knut").contains("'knuth'"));
    assert!(refusal("threads explain lamport").contains("`doorway explain lamport`"));
    assert!(answer("explain maekawa").contains("doorway story maekawa/section-5"));
}
