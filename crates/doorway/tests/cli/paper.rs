//! `doorway paper`.

use crate::{answer, json, refusal};

const TABLES: [&str; 11] = [
    "maekawa-table-1",
    "maekawa-table-2",
    "maekawa-table-3",
    "maekawa-section-8-2",
    "ricart-table-1",
    "carvalho-roucairol",
    "ricart-agrawala-ring",
    "raymond-k-section-7",
    "slides-complexity",
    "naimi-trehel-log",
    "raymond-saturated",
];

#[test]
fn every_table_is_listed() {
    let (text, rows) = (answer("paper"), json("paper"));
    let rows = rows.as_array().expect("an array");
    assert_eq!(text.lines().count(), rows.len() + 1);
    assert_eq!(rows.iter().filter_map(|row| row["name"].as_str()).collect::<Vec<_>>(), TABLES);
    for (row, name) in rows.iter().zip(TABLES) {
        let title = row["title"].as_str().expect("a title");
        assert!(text.lines().any(|line| line.starts_with(name) && line.ends_with(title)), "{name}");
    }
}

#[test]
fn a_table_shows_paper_measurement_and_difference() {
    let text = answer("paper maekawa-table-1");
    assert!(text.starts_with("maekawa-table-1: "), "{text}");
    let heading = text.lines().nth(2).expect("a heading");
    let columns: Vec<_> = heading.split_whitespace().collect();
    assert_eq!(columns, ["case", "quantity", "paper", "measured", "difference"]);
    let table = json("paper maekawa-table-1");
    assert_eq!(table["name"], "maekawa-table-1");
    let figures = table["figures"].as_array().expect("an array");
    assert!(!figures.is_empty());
    for figure in figures {
        for key in ["case", "quantity", "paper"] {
            assert!(!figure[key].is_null(), "{key} of {figure}");
        }
        assert!(figure["measured"].is_number() && figure["difference"].is_number(), "{figure}");
        assert_eq!(figure["agrees"], true, "{figure}");
    }
}

#[test]
fn a_table_is_measured_for_another_number_of_nodes() {
    let table = json("paper slides-complexity -n 9");
    let figures = table["figures"].as_array().expect("an array");
    assert!(figures.iter().all(|figure| figure["agrees"] == true), "{table}");
    let broadcast = figures.iter().find(|figure| figure["paper"]["value"] == 24.0);
    assert!(broadcast.is_some(), "3(n-1) = 24: {table}");
    let plane = answer("paper maekawa-table-1 -n 31");
    assert!(plane.contains("N=31 K=6") && !plane.contains("N=13"), "{plane}");
    let refused = refusal("paper maekawa-table-1 -n 43");
    assert!(refused.contains("does not exist, by the theorem of Bruck and Ryser"), "{refused}");
    assert!(refusal("paper slides-complexity -n 1").contains("2 to 1000 nodes"));
    assert!(refusal("paper -n 3").contains("<NAME>"));
}
