//! `doorway paper`.

use crate::{answer, json};

const TABLES: [&str; 9] = [
    "maekawa-table-1",
    "maekawa-table-2",
    "maekawa-table-3",
    "ricart-table-1",
    "raymond-k-section-7",
    "slides-complexity",
    "carvalho-roucairol",
    "naimi-trehel-log",
    "raymond-saturated",
];

#[test]
fn every_table_is_listed() {
    let (text, rows) = (answer("paper"), json("paper"));
    let rows = rows.as_array().expect("an array");
    assert_eq!(text.lines().count(), rows.len() + 1);
    for name in TABLES {
        let row = rows.iter().find(|row| row["name"] == name).expect(name);
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
