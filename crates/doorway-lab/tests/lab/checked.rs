//! docs/checked.md agrees with the checker. Every row with few worlds is checked again.

use std::collections::BTreeMap;
use std::fs;

use doorway_core::algorithms::ALL;
use doorway_core::{Channel, Info, NodeId};
use doorway_lab::check::census::{
    Attempt, CheckedArrangement, arrangements, cells, head, plan, why_endless, withdrawals,
};
use doorway_lab::check::{Case, Report};
use doorway_lab::{AnyAlgorithm, Choice, FOREVER, World};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/checked.md");

/// Rows with more worlds are left to `doorway check --table`.
const SMALL: u64 = 20_000;

/// The cells of the row of this attempt, if the page has one.
fn row<'a>(page: &'a str, info: &Info, attempt: &Attempt) -> Option<Vec<&'a str>> {
    let head = format!("| {} |", head(info, attempt).join(" | "));
    let channel = if attempt.channel(info) == Channel::Fifo { "fifo" } else { "unordered" };
    let mut rows = page.lines().filter(|line| line.starts_with(&head)).map(cells_of);
    rows.find(|row| row[3] == channel)
}

/// The cells of a line of a table.
fn cells_of(line: &str) -> Vec<&str> {
    line.trim_matches('|').split('|').map(str::trim).collect()
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
    let (table, arranged) = table.split_once("## Arrangements").expect("a table of arrangements");
    let small = agree(table, plan);
    assert!(small >= 70, "{small} rows are small enough to be checked again");
    let small = arrangements_agree(arranged);
    assert!(small >= 10, "{small} arrangements are small enough to be checked again");
    let small = agree(given_up, withdrawals);
    assert!(small >= 10, "{small} rows are small enough to be checked again");
}

/// Check the small rows of the table of arrangements again. Returns how many there are.
fn arrangements_agree(table: &str) -> usize {
    let mut small = 0;
    let rows = table.lines().filter(|line| line.starts_with("| `")).count();
    assert_eq!(rows, arrangements().len(), "the rows of arrangements");
    for arranged in arrangements() {
        let CheckedArrangement { algorithm, title, attempt, .. } = &arranged;
        let (size, asks) = (attempt.size, attempt.requests());
        let head = format!("| `{algorithm}` | `{title}` | {size} | {asks} |");
        let line = table.lines().find(|line| line.starts_with(&head));
        let mut said = cells_of(line.unwrap_or_else(|| panic!("no row begins with {head}")));
        said.remove(1);
        let case = arranged.case(2 * SMALL).expect("a group of the plan");
        small += usize::from(row_agrees(&head, attempt, &said, case));
    }
    small
}

/// The rows of an algorithm have different numbers of worlds, or the arrangements that they are
/// about make no difference. For `central` they make none: one coordinator is like another.
#[test]
fn every_arrangement_shows_something_new() {
    let page = fs::read_to_string(PAGE).expect("docs/checked.md is there");
    let (table, _) = page.split_once("## With a history").expect("three tables");
    let (table, arranged) = table.split_once("## Arrangements").expect("a table of arrangements");
    let [known, arranged] = [table, arranged].map(|table| {
        let lines = table.lines().filter(|line| line.starts_with("| `"));
        lines.map(cells_of).collect::<Vec<_>>()
    });
    let mut seen: Vec<_> = known.iter().map(|row| (row[0], row[10])).collect();
    for row in arranged.iter().filter(|row| row[0] != "`central`") {
        assert!(!seen.contains(&(row[0], row[11])), "{row:?} is like another row");
        seen.push((row[0], row[11]));
    }
}

/// Check the small rows of a table again. Returns how many there are.
fn agree(table: &str, plan: fn(&Info) -> Vec<Vec<Attempt>>) -> usize {
    let mut small = 0;
    for entry in ALL {
        let info = &entry.info;
        // Rows of five nodes that ask for ever are made one by one: they take twenty minutes each.
        let five = |row: &&Vec<Attempt>| row[0].size == 5 && row[0].times == FOREVER;
        let kinds = plan(info).iter().filter(|row| !five(row)).count();
        let attempts: Vec<Attempt> = plan(info).into_iter().flatten().collect();
        let said = |attempt| Some((attempt, row(table, info, attempt)?));
        let rows: Vec<_> = attempts.iter().filter_map(said).collect();
        assert!(rows.len() >= kinds, "{} has a row for each kind of group", info.name);
        for (attempt, said) in rows {
            let case =
                attempt.case(AnyAlgorithm::from(entry), 2 * SMALL).expect("a group of the plan");
            small += usize::from(row_agrees(info.name, attempt, &said, case));
        }
    }
    small
}

/// Check a row again if it is small. Returns whether it is.
fn row_agrees(title: &str, attempt: &Attempt, said: &[&str], case: Case) -> bool {
    let worlds: u64 = said[10].replace(',', "").parse().expect("a number of worlds");
    if worlds > SMALL {
        let open = said[4] == "not exhausted";
        assert_eq!(open, !said[15].is_empty(), "{title} {attempt:?}: why it does not end");
        return false;
    }
    let info = case.algorithm.info();
    let report = Case { threads: 2, ..case }.run(&mut |_| true);
    let found = expected(info, attempt, &report);
    let said: Vec<_> = said[..13].iter().map(|cell| cell.replace(',', "")).collect();
    let found: Vec<_> = found.iter().map(|cell| cell.replace(',', "")).collect();
    assert_eq!(said, found, "{title} {attempt:?}");
    true
}

/// The most messages in a channel, and the largest number in the state of a node.
fn measure(world: &World) -> (usize, u64) {
    let mut channels: BTreeMap<_, usize> = BTreeMap::new();
    for (position, _) in world.under_way() {
        *channels.entry((position.from, position.to)).or_default() += 1;
    }
    let texts = world.group().nodes().map(|node| world.nodes().member(node).algorithm_text());
    let numbers = texts.collect::<String>();
    let numbers = numbers.split(|c: char| !c.is_ascii_digit()).filter_map(|it| it.parse().ok());
    (channels.into_values().max().unwrap_or(0), numbers.max().unwrap_or(0))
}

/// What is measured after each third of a run in which the first `askers` nodes ask in turn, and
/// the last node gets no messages if it is slow.
fn measures(mut world: World, askers: u32, slow: bool) -> Vec<(usize, u64)> {
    let last = NodeId(world.group().size() - 1);
    let mut turn = 0;
    let mut measures = Vec::new();
    for step in 0..1200 {
        // Lower is better; what is left out never happens.
        let rank = |choice: &Choice| match choice {
            Choice::Release(_) | Choice::Withdraw(_) => Some(0),
            Choice::Deliver(position) if !slow || position.to != last => Some(1),
            Choice::Acquire(node, _) if node.0 == turn => Some(2),
            _ => None,
        };
        let choices = world.choices().into_iter().filter_map(|it| Some((rank(&it)?, it)));
        let Some((_, choice)) = choices.min_by_key(|(rank, _)| *rank) else { break };
        if let Choice::Acquire(..) = choice {
            turn = (turn + 1) % askers;
        }
        world.apply(choice);
        world = world.settled();
        if step % 400 == 399 {
            measures.push(measure(&world));
        }
    }
    measures
}

/// Where the page says that there are infinitely many worlds, the number that it names grows in a
/// run in which one or two nodes ask again and again, and the last node is slow or is not asked.
#[test]
fn what_is_said_to_grow_without_bound_grows() {
    let mut endless = 0;
    for entry in ALL {
        let info = &entry.info;
        for attempt in plan(info).into_iter().chain(withdrawals(info)).flatten() {
            let Some(why) = why_endless(info, &attempt) else { continue };
            endless += 1;
            let lags = why.contains("falls behind");
            let case = attempt.case(AnyAlgorithm::from(entry), 1).expect("a group of the plan");
            let runs = [1, 2].map(|askers| measures(case.world().settled(), askers, !lags));
            let of = |it: &(usize, u64)| if lags { it.1 } else { it.0 as u64 };
            let grows = |run: &Vec<(usize, u64)>| {
                run.len() == 3 && run.windows(2).all(|two| of(&two[0]) + 9 < of(&two[1]))
            };
            assert!(runs.iter().any(grows), "{} {attempt:?}: {why}: {runs:?}", info.name);
        }
    }
    assert!(endless > 20, "{endless} groups");
}
