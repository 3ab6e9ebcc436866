//! What each algorithm declares about itself, and the values of its formulas.

use doorway_core::algorithms::ALL;
use doorway_core::quorums::Kind;
use doorway_core::{Formula, Info, Needs, Shape, Wiring};

use crate::listed::listed;

/// A group of every kind for which a formula may have a different value.
fn shapes(info: &Info) -> Vec<(&'static str, Shape)> {
    let shape = Shape::default;
    let permits = |permits, seats| Shape { permits: Some(permits), seats: Some(seats), ..shape() };
    let wired = |wiring| Shape { wiring: Some(wiring), ..shape() };
    let mut shapes = vec![("", shape())];
    if info.needs == Needs::Wiring {
        shapes.extend([(", ring", wired(Wiring::Ring)), (", tree", wired(Wiring::Tree))]);
    }
    if info.needs == Needs::Quorums {
        shapes.push((", triangle", Shape { quorums: Some(Kind::Triangle.into()), ..shape() }));
    }
    if info.permits {
        shapes.extend([(", K=3 S=1", permits(3, 1)), (", K=3 S=2", permits(3, 2))]);
    }
    if info.needs == Needs::Weights {
        let weights = Some(vec![3, 0, 1, 0, 1]);
        shapes.push((", two without a vote", Shape { weights, ..shape() }));
    }
    shapes
}

/// Everything that an algorithm declares, with the values of its formulas at several sizes.
fn declared(info: &Info) -> String {
    let Info { name, summary, paper, year, kind, channel, shared, permits, needs, .. } = *info;
    let Info { refuted, survives, served, withdraws, messages, .. } = *info;
    let mut text = format!(
        "\n{name}: {summary}\n  {paper}, {year}\n  {kind:?}, {channel:?}, needs {needs:?}, \
         shared {shared}, permits {permits}, withdraws {withdraws}, served {served}, per {:?}, \
         refuted {refuted:?}, survives {survives:?}\n",
        messages.per
    );
    for (label, shape) in shapes(info) {
        let formulas = [
            ("least", Some(messages.least)),
            ("most", Some(messages.most)),
            ("light", messages.light),
            ("heavy", messages.heavy),
        ];
        for (bound, formula) in formulas {
            let Some(Formula { text: formula, of }) = formula else { continue };
            let value = |size| {
                let group = info.group(size, &shape);
                group.map_or(" -".to_owned(), |group| format!(" {:.2}", of(&group) + 0.0))
            };
            let values = [1, 2, 3, 5, 8, 16].map(value).concat();
            text.extend(["  ", bound, label, ", ", formula, ":", &values, "\n"]);
        }
    }
    text
}

/// The names of the algorithms in the table.
fn names(table: &str) -> Vec<&str> {
    let rows = table.split("\n\n").skip(1);
    rows.filter_map(|row| Some(row.trim_start().split_once(": ")?.0)).collect()
}

/// A title or a generous bound affects no run, so no other test would notice a wrong one. This test
/// notices every change. `UPDATE=1 cargo test -p doorway-lab --test algorithms declared::` writes
/// the table.
///
/// A new algorithm needs no row. But every row must be about an existing algorithm: one that was
/// renamed or removed must not leave its row behind. `UPDATE=1` removes such a row.
#[test]
fn declarations_change_only_on_purpose() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/declared.txt");
    if std::env::var_os("UPDATE").is_some() {
        let all: String = ALL.iter().map(|entry| declared(&entry.info)).collect();
        std::fs::write(path, format!("N = 1, 2, 3, 5, 8, 16\n{all}")).unwrap();
    }
    let table = std::fs::read_to_string(path).unwrap();
    let rows = names(&table);
    for entry in ALL.iter().filter(|entry| rows.contains(&entry.info.name)) {
        let declared = declared(&entry.info);
        assert!(table.contains(&declared), "UPDATE=1 would write:\n{declared}");
    }
    let known = rows.iter().filter(|name| listed(name)).count();
    assert!(known > 0, "no algorithm of the table is in the list");
    assert!(rows.len() >= 25, "the table has {} rows", rows.len());
}
