//! The tables of the papers, measured and compared.

use doorway_lab::papers::ALL;

#[test]
fn every_printed_number_is_confirmed_or_shown_to_be_wrong() {
    let mut failures = Vec::new();
    for paper in ALL {
        match (paper.measure)(None) {
            Err(error) => failures.push(format!("{}: {error}", paper.name)),
            Ok(table) => {
                assert!(!table.figures.is_empty());
                let wrong = table.figures.iter().filter(|figure| !figure.agrees());
                failures.extend(wrong.map(|figure| format!("{}: {figure:?}", paper.name)));
            }
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}
