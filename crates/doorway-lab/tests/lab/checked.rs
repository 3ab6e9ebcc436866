//! docs/checked.md agrees with the checker. Every row with few worlds is checked again.

use std::fs;

use doorway_core::Info;
use doorway_core::algorithms::ALL;
use doorway_lab::AnyAlgorithm;
use doorway_lab::check::census::{Attempt, cells, plan, withdrawals};
use doorway_lab::check::{Case, Report};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/checked.md");

/// Rows with more worlds are left to `doorway check --table`.
const SMALL: u64 = 20_000;

/// The cells of the row of this attempt, if the page has one.
fn row<'a>(page: &'a str, info: &Info, attempt: &Attempt) -> Option<Vec<&'a str>> {
    let head = format!("| `{}` | {} | {} |", info.name, attempt.size, attempt.requests());
    let line = page.lines().find(|line| line.starts_with(&head))?;
    Some(line.trim_matches('|').split('|').map(str::trim).collect())
}

/// The cells that the page should have for the report, without time and memory.
fn expected(info: &Info, attempt: &Attempt, report: &Report) -> Vec<String> {
    let progress = report.progress;
    let counts = [progress.states, progress.steps, u64::from(progress.depth)];
    let counts = counts.map(|count| count.to_string());
    cells(info, attempt, report).into_iter().chain(counts).collect()
}

#[test]
fn the_page_agrees_with_the_checker() {
    let page = fs::read_to_string(PAGE).expect("docs/checked.md is there");
    let (table, rest) = page.split_once("## With a history").expect("three tables");
    let (_, given_up) = rest.split_once("## With requests that are given up").expect("a third one");
    let small = agree(table, plan);
    assert!(small >= 50, "{small} rows are small enough to be checked again");
    let small = agree(given_up, withdrawals);
    assert!(small >= 10, "{small} rows are small enough to be checked again");
}

/// Check the small rows of a table again. Returns how many there are.
fn agree(table: &str, plan: fn(&Info) -> Vec<Vec<Attempt>>) -> usize {
    let mut small = 0;
    for entry in ALL {
        let info = &entry.info;
        let kinds = plan(info).len();
        let attempts: Vec<Attempt> = plan(info).into_iter().flatten().collect();
        let said = |attempt| Some((attempt, row(table, info, attempt)?));
        let rows: Vec<_> = attempts.iter().filter_map(said).collect();
        assert!(rows.len() >= kinds, "{} has a row for each kind of group", info.name);
        for (attempt, said) in rows {
            let worlds: u64 = said[10].replace(',', "").parse().expect("a number of worlds");
            if worlds > SMALL {
                continue;
            }
            small += 1;
            let case =
                attempt.case(AnyAlgorithm::from(entry), 2 * SMALL).expect("a group of the plan");
            let report = Case { threads: 2, ..case }.run(&mut |_| true);
            let found = expected(info, attempt, &report);
            let said: Vec<_> = said[..13].iter().map(|cell| cell.replace(',', "")).collect();
            let found: Vec<_> = found.iter().map(|cell| cell.replace(',', "")).collect();
            assert_eq!(said, found, "{} {attempt:?}", info.name);
        }
    }
    small
}
