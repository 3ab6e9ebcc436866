//! `doorway compare`.

use std::path::Path;

use serde_json::Value;

use crate::{NOWHERE, answer, failing, file, json, refusal, temporary, text_of, violating};

const LINE: &str = "compare lamport ricart-agrawala --points 3,5 --entries 200";

#[test]
fn the_table_has_a_row_for_each_algorithm_and_one_for_its_formula() {
    let table = answer(LINE);
    let rows: Vec<Vec<&str>> = table.lines().map(|row| row.split_whitespace().collect()).collect();
    assert_eq!(
        rows[2..],
        [
            vec!["algorithm", "3", "5"],
            vec!["lamport", "6", "12"],
            vec!["3(N-1)", "6", "12"],
            vec!["ricart-agrawala", "4", "8"],
            vec!["2(N-1)", "4", "8"],
        ]
    );
}

#[test]
fn json_has_every_point_of_every_algorithm() {
    let rows = json(LINE);
    let points = rows.as_array().expect("an array");
    let place = |row: &Value| (row["algorithm"].to_string(), row["x"].to_string());
    let places: Vec<_> = points.iter().map(place).collect();
    let all = [("lamport", 3), ("lamport", 5), ("ricart-agrawala", 3), ("ricart-agrawala", 5)];
    assert_eq!(places, all.map(|(name, x)| (format!("\"{name}\""), format!("{x}.0"))));
    assert_eq!(points[0]["messages_per_entry"], 6.0);
    assert_eq!(
        (&points[0]["formula"], &points[0]["formula_text"]),
        (&6.0.into(), &"3(N-1)".into())
    );
    assert_eq!(rows, json(&format!("{LINE} --threads 1")), "threads change nothing");
}

#[test]
fn the_token_can_be_made_by_one_pass() {
    let line = "compare suzuki-kasami --points 5 --entries 50";
    let (usual, one_pass) = (json(line), json(&format!("{line} --begin one-pass")));
    // The messages of the token algorithm carry the name of the node that made the token.
    let bytes = |rows: &Value| rows[0]["bytes_per_entry"].as_f64().expect("a number");
    assert!(bytes(&one_pass) > bytes(&usual), "{one_pass}");
    assert_eq!(json(&format!("{line} --begin node-1")), usual);
    let all = json("compare --points 3 --entries 20 --begin one-pass");
    let names = all.as_array().expect("rows").iter().map(|row| row["algorithm"].clone());
    let names: Vec<_> = names.collect();
    assert!(names.contains(&"naimi-trehel".into()) && !names.contains(&"lamport".into()));
    assert!(refusal("compare lamport --begin one-pass").contains("lamport has no token"));
}

#[test]
fn values_and_plot_are_written() {
    let (csv, plot) = (temporary("out.csv"), temporary("out.svg"));
    let line = format!("{LINE} --csv {csv} --plot {plot}");
    assert_eq!(answer(&line), answer(LINE));
    let csv = text_of(&csv);
    let rows: Vec<Vec<&str>> = csv.lines().map(|row| row.split(',').collect()).collect();
    assert_eq!(rows.len(), 5);
    assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{csv}");
    let column = |name: &str| rows[0].iter().position(|head| *head == name).expect("a column");
    let (x, messages) = (column("x"), column("messages_per_entry"));
    assert_eq!([rows[4][0], rows[4][x], rows[4][messages]], ["ricart-agrawala", "5", "8"]);
    let plot = text_of(&plot);
    assert!(plot.starts_with("<svg") && plot.contains("lamport") && plot.contains("2(N-1)"));
}

#[test]
fn sweeps_and_figures_can_be_chosen() {
    let load = json("compare central -n 4 --sweep load --points 1,1000 --entries 300");
    assert_eq!([&load[0]["n"], &load[1]["n"]], [4, 4]);
    assert!(load[0]["response_time"].as_f64() > load[1]["response_time"].as_f64(), "{load}");
    let table = answer("compare central -n 4 --sweep delay --points 1 --entries 50 --metric jain");
    assert!(table.starts_with("Jain's index of fairness, by message delay"), "{table}");
}

#[test]
fn a_violation_is_a_failure_after_everything_is_written() {
    let csv = temporary("violation.csv");
    let line = "compare maekawa-sequential-self-first --points 3 --think 1 --entries 100";
    let (table, reason) = violating(&format!("{line} --csv {csv}"));
    assert!(table.contains("maekawa-sequential-self-first"), "{table}");
    assert!(reason.contains("maekawa-sequential-self-first at 3: nodes "), "{reason}");
    assert_eq!(text_of(&csv).lines().count(), 2);
}

#[test]
fn a_plot_is_written_as_svg_only() {
    let reason = refusal(&format!("{LINE} --plot curves.png"));
    assert!(reason.contains("'curves.png' must end in .svg"), "{reason}");
}

#[test]
fn curves_that_lie_on_each_other_are_named() {
    let busy = "compare ricart-agrawala carvalho-roucairol --think 0 --entries 500";
    let table = answer(&format!("{busy} --points 21"));
    let note = "ricart-agrawala and carvalho-roucairol differ by less than 2 % at every point";
    assert!(table.contains(note) && table.contains("--sweep load"), "{table}");
    assert!(!answer(LINE).contains("differ by less"));
}

#[test]
fn a_logarithmic_axis_says_so() {
    let plot = temporary("axis.svg");
    answer(&format!("{LINE} --plot {plot}"));
    let text = text_of(&plot);
    assert!(text.contains("messages per entry (log scale)") && !text.contains("nodes (log"));
}

/// This turns out to have too many quorums only while it is measured.
const IMPOSSIBLE: &str = "compare maekawa --points 16777216";

#[test]
fn files_that_cannot_be_written_are_reported_before_the_work() {
    for option in ["--csv", "--plot"] {
        let (table, reason) = failing(&format!("{IMPOSSIBLE} {option} {NOWHERE}"), 1);
        assert_eq!(table, "");
        assert!(reason.starts_with(&format!("doorway: cannot write {NOWHERE}: ")), "{reason}");
    }
}

#[test]
fn a_refused_comparison_touches_no_file() {
    let (fresh, kept) = (temporary("fresh.csv"), file("kept.svg", "kept"));
    for line in ["compare lamport --points 3 --entries 0", IMPOSSIBLE] {
        refusal(&format!("{line} --csv {fresh} --plot {kept}"));
        assert!(!Path::new(&fresh).exists(), "nothing was measured, so nothing is left behind");
        assert_eq!(text_of(&kept), "kept");
    }
}
