//! The two pages of the documentation that `doorway check` writes: what was checked, and what each
//! algorithm assumes.

use std::io::{self, Write};

use doorway_core::algorithms::{ALL, Entry};
use doorway_core::{Channel, Info};
use doorway_lab::AnyAlgorithm;
use doorway_lab::FOREVER;
use doorway_lab::check::assumptions::{self, SIZES};
use doorway_lab::check::census::{self, Attempt};
use doorway_lab::check::{Case, Verdict};
use doorway_lab::numbers::grouped;

use crate::check_args;
use crate::checking::{self, Budget, CheckOutcome, Interrupt, Stop};
use crate::commands::list::channel;
use crate::failure::NotExhausted;

/// The limit on the worlds of each check whose nodes stop asking.
const MOST_WORLDS: u64 = 10_000_000;
/// The limit if there are infinitely many worlds.
const MOST_ENDLESS: u64 = 500_000;
/// The limit if nodes record a history.
const MOST_WITH_HISTORY: u64 = 500_000;

/// The limit on the worlds of the search behind each cell of the page about assumptions.
const MOST_IN_A_CELL: u64 = 200_000;

/// The memory and the time that the check behind a row may take.
const GIGABYTES: u64 = 16;
const MINUTES: u64 = 20;

const CHECKED: &str = "\
# What was checked

Written by `doorway check --table`. A *world* is the state of all nodes and of all messages in
transit. Every algorithm runs over the channels it assumes, without faults, and the checker visits
every world that can be reached. It checks four properties:

- *exclusion*: never more nodes are inside than allowed;
- *refusal*: no node refuses a message of a correct node;
- *stuck*: no node waits while nothing can happen (deadlock);
- *starvation*: there is no cycle in which a node waits forever although every message arrives and
  every node leaves.

*Overtaken* is the exact maximum of entries of other nodes while one node waits. *Messages* are the
fewest and the most of any complete run, where runs end. *Depth* is the distance of the farthest
world. Worlds are told apart by 64-bit fingerprints: with ten million worlds, the probability that
two were mistaken for one is below 3e-6. The probability grows with the square of the worlds, to
3e-4 with a hundred million. If a property is violated, the number is the length of the shortest
counterexample, and the other properties were not decided.

`not exhausted` means only that there are more worlds than the checker visited; the last column says
why it stopped. A check may take 16 GB of memory and twenty minutes. If nodes stop asking, it also
stops after 10 million worlds; if there are infinitely many worlds or if nodes record a history,
after 500,000. If nodes ask for ever, the checker compares worlds by what they can still do: it
*settles* them, and the numbers that only grow drop out. Where a number is known that grows and
cannot drop out, there are infinitely many worlds, and the row says which number it is. If nodes ask
for ever and the last column names only a limit, it is not known whether the worlds are finitely
many.

The rows were made at different times, many of them by a slower checker than the present one, so the
*seconds* of two rows cannot be compared.

Rows of five nodes that ask for ever are made one by one. There are none for `lamport`, `maekawa`,
`maekawa-eager`, `maekawa-unordered` and `maekawa-heir`, whose searches have not even ended for four
nodes. For nodes that ask for ever the limit was once 5,000,000 worlds. These rows have not been
made again since: `lamport` 4, `ricart-agrawala` 5, `readers-writers` 4 (one writes),
`readers-writers` 5, `suzuki-kasami` 5, `maekawa` 4, `maekawa-eager` 4, `maekawa-unordered` 4 and
`maekawa-heir` 4.

Groups with permits have two. Quorums, trees and weights are the defaults of the command, and seven
nodes have the quorums of Maekawa's figure. `once (2 to 5)` means that only nodes 2 to 5 ask, and
`one writes` that all other nodes ask for shared mode.

";

const ARRANGEMENTS: &str = "
## Arrangements

These are examples of the arrangements of the members that a rule of the lock service can choose and
that the rows above do not have: quorums, weights, trees, links, permits per node and the
coordinator. The options are those of `doorway
check`; `--seats` is `permits_per_node` in a rule. The command has no trees that are made by hand,
so these are written as in a rule, for the members a, b, c and so on.

";

const HISTORIES: &str = "
## With a history

Here the nodes record a history, which multiplies the worlds. *Fences*: they grow from one exclusive
grant to the next. *Order*: no node is inside while another one waits whose request happened before;
only Lamport's paper claims this, and the other algorithms need not keep it. *Price*:
the requests of a node cost together as many messages as are claimed for each. If a property does
not hold, the number is the length of the shortest counterexample; `doorway check ALGORITHM -n N
--history WHAT` shows it.

";

const WITHDRAWALS: &str = "
## With requests that are given up

Here a client that waits may give up at any time, and its node withdraws the request. The client may
ask again while answers to the withdrawn request are still under way; each request counts as one of
those that a node makes. Only algorithms that can withdraw a request are listed. No node has to give
up: *stuck* and *starvation* are about nodes that go on waiting. `doorway check ALGORITHM -n N
--withdraw` checks one group.

";

/// Three nodes that each ask once.
const THREE: (usize, u32) = (3, 1);

/// The most worlds of a group of three.
const MOST_IN_A_GROUP: u64 = 3_000_000;

const VOTERS: &str = "
## Votes of three nodes

The shortest counterexamples of `majority` and `weighted-majority` above are those of two nodes,
where a majority is both of them, so any loss and any crash stops the group. Here are three nodes
that each ask once. The weights are 2, 1 and 1.

With three equal votes, a majority does not need every vote: if a message is lost, one vote is
missing at most, and the two others are a majority. With the weights 2, 1 and 1, no majority is
without node 1, so the loss of its vote stops the group.

A crash is worse. The crashed node takes its own vote with it, and if it had asked, the votes that
were lent to it do not come back, because it never sends RELEASE. Then one vote of three is left,
and the nodes that wait are stuck, after 11 steps. No rule of the algorithm takes a lent vote back
from a node that has crashed. In the lock service a change of view does: the new view begins without
the crashed node, every vote is at its voter again, and clients that wait ask anew.

";

const ASSUMED: &str = "\
# What is assumed

Written by `doorway check --assumptions`. Each algorithm is checked over channels that keep the
order of messages and over channels that do not; without a fault, and with one: a lost message, a
message that arrives twice, the crash of a node outside, the crash of a node inside (the other nodes
are told of a crash). The channels that the algorithm assumes are in **bold**.

A number is the length of the shortest counterexample in any of the groups tried. Unless the cell
says *too many inside*, exclusion holds although another property is violated: *stuck*, a node waits
and nothing can happen; *refusal*, a node refuses a message, and the lock service would drop the
link; *starvation*, a node waits forever. A (?) means that exclusion could not be exhausted in all
of the groups, within 200,000 worlds each. `doorway check ALGORITHM -n N --property exclusion` shows
the counterexamples of *too many inside*.

Groups with permits have two, and where there are readers, node 1 is one. A refuted algorithm may
hold here, because its flaw may need other quorums than those of these groups.

";

/// Write the page about what was checked, with all algorithms or with only this one, and with all
/// rows or with only those whose first cells contain this text.
pub(crate) fn checked(
    out: &mut dyn Write,
    only: Option<&'static Entry>,
    rows: Option<&str>,
    interrupt: &Interrupt,
) -> anyhow::Result<()> {
    let chosen = RowSelection { entries: only.map_or(ALL, std::slice::from_ref), rows, interrupt };
    out.write_all(CHECKED.as_bytes())?;
    table(out, chosen, census::plan)?;
    out.write_all(ARRANGEMENTS.as_bytes())?;
    arrangements(out, chosen)?;
    out.write_all(HISTORIES.as_bytes())?;
    heading(out, &["algorithm", "nodes", "each asks", "fences", "order", "price"])?;
    for entry in chosen.entries.iter().filter(|entry| entry.info.refuted.is_none()) {
        histories(out, AnyAlgorithm::from(entry), chosen)?;
    }
    out.write_all(WITHDRAWALS.as_bytes())?;
    table(out, chosen, census::withdrawals)
}

/// The rows that are to be written.
#[derive(Clone, Copy)]
struct RowSelection<'a> {
    entries: &'a [Entry],
    rows: Option<&'a str>,
    interrupt: &'a Interrupt,
}

impl RowSelection<'_> {
    /// Is the row with these first cells to be written?
    fn has(self, head: &[String]) -> bool {
        self.rows.is_none_or(|text| head.join(" | ").contains(text))
    }
}

const COLUMNS: [&str; 16] = [
    "algorithm",
    "nodes",
    "each asks",
    "channel",
    "exclusion",
    "refusal",
    "stuck",
    "starvation",
    "overtaken",
    "messages",
    "worlds",
    "steps",
    "depth",
    "seconds",
    "MB",
    "why it does not end",
];

/// Write a table with the rows that `plan` has for each of these algorithms.
fn table(
    out: &mut dyn Write,
    chosen: RowSelection<'_>,
    plan: fn(&Info) -> Vec<Vec<Attempt>>,
) -> anyhow::Result<()> {
    heading(out, &COLUMNS)?;
    for entry in chosen.entries {
        let (info, algorithm) = (&entry.info, AnyAlgorithm::from(entry));
        let plan = plan(info);
        let is_chosen = |attempt: &Attempt| chosen.has(&census::head(info, attempt));
        for attempts in plan.iter().filter(|attempts| attempts.iter().any(is_chosen)) {
            for attempt in attempts {
                let Ok(case) = attempt.case(algorithm, most(info, attempt)) else { continue };
                let checked = check(case, chosen.interrupt)?;
                line(out, &row(info, attempt, &checked))?;
                if checked.outcome.report.verdict != Verdict::NotExhausted {
                    break;
                }
            }
        }
    }
    Ok(())
}

/// The limit on the worlds of a group.
fn most(info: &Info, attempt: &Attempt) -> u64 {
    match attempt.times {
        FOREVER if census::why_endless(info, attempt).is_some() => MOST_ENDLESS,
        FOREVER => check_args::MOST_WORLDS,
        _ => MOST_WORLDS,
    }
}

/// Write the table of arrangements.
fn arrangements(out: &mut dyn Write, chosen: RowSelection<'_>) -> anyhow::Result<()> {
    let mut columns = COLUMNS.to_vec();
    columns.insert(1, "arrangement");
    heading(out, &columns)?;
    for arranged in census::arrangements() {
        let mut entries = chosen.entries.iter();
        let entry = entries.find(|entry| entry.info.name == arranged.algorithm);
        let Some(Entry { info, .. }) = entry else { continue };
        let with_title = |mut cells: Vec<String>| {
            cells.insert(1, format!("`{}`", arranged.title));
            cells
        };
        let attempt = &arranged.attempt;
        if chosen.has(&with_title(census::head(info, attempt).to_vec())) {
            let checked = check(arranged.case(most(info, attempt))?, chosen.interrupt)?;
            line(out, &with_title(row(info, attempt, &checked)))?;
        }
    }
    Ok(())
}

fn histories(
    out: &mut dyn Write,
    algorithm: AnyAlgorithm,
    chosen: RowSelection<'_>,
) -> anyhow::Result<()> {
    let info = algorithm.info();
    let mut rows: Vec<(Attempt, Vec<String>)> = Vec::new();
    let all = census::histories();
    for (history, attempt) in all.filter(|(_, attempt)| chosen.has(&census::head(info, attempt))) {
        let Ok(case) = attempt.case(algorithm, MOST_WITH_HISTORY) else { continue };
        let checked = check(Case { history: Some(history), ..case }, chosen.interrupt)?;
        let verdict = match &checked.outcome.report.verdict {
            Verdict::Holds => "holds".to_owned(),
            Verdict::NotExhausted => "not exhausted".to_owned(),
            Verdict::Unconfirmed { .. } => "unconfirmed".to_owned(),
            Verdict::Violated { trace, .. } => format!("**no**, {}", trace.len()),
        };
        match rows.iter_mut().find(|(known, _)| *known == attempt) {
            Some((_, verdicts)) => verdicts.push(verdict),
            None => rows.push((attempt, vec![verdict])),
        }
    }
    for (attempt, verdicts) in rows {
        let head = census::head(info, &attempt).into_iter();
        line(out, &head.chain(verdicts).collect::<Vec<_>>())?;
    }
    Ok(())
}

/// The result of a check, and its limit on the number of worlds.
struct CheckedRow {
    outcome: CheckOutcome,
    most: u64,
}

impl CheckedRow {
    /// The limit that the check has reached, in words; empty if it reached none.
    fn limit(&self) -> String {
        match self.outcome.stop {
            None | Some(Stop::Person) => String::new(),
            Some(Stop::Memory) => format!("{GIGABYTES} GB"),
            Some(Stop::Time) => format!("{MINUTES} min"),
            Some(Stop::Worlds) => format!("{} worlds", grouped(self.most)),
        }
    }
}

/// Run a check. If Ctrl-C ends it, the page ends too.
fn check(case: Case, interrupt: &Interrupt) -> anyhow::Result<CheckedRow> {
    let case = Case { threads: checking::cores(), ..case };
    let budget = Budget { gigabytes: GIGABYTES, minutes: Some(MINUTES) };
    let outcome = checking::check(&case, budget, interrupt);
    ensure_going(interrupt)?;
    Ok(CheckedRow { outcome, most: case.limit })
}

fn ensure_going(interrupt: &Interrupt) -> Result<(), NotExhausted> {
    let stopped = || NotExhausted("stopped by Ctrl-C, the page is cut short".to_owned());
    if interrupt.is_raised() { Err(stopped()) } else { Ok(()) }
}

fn row(info: &Info, attempt: &Attempt, checked: &CheckedRow) -> Vec<String> {
    let CheckOutcome { report, seconds, .. } = &checked.outcome;
    let counts = census::counts(info, attempt, report, *seconds, &checked.limit());
    census::cells(info, attempt, report).into_iter().chain(counts).collect()
}

/// Write the page about what each algorithm assumes.
pub(crate) fn assumed(out: &mut dyn Write, interrupt: &Interrupt) -> anyhow::Result<()> {
    out.write_all(ASSUMED.as_bytes())?;
    let group = |(size, times): (usize, u32)| format!("{size} nodes that each ask {times}×");
    let groups = SIZES.map(group).join(", ");
    writeln!(
        out,
        "The groups: {groups}. Where a property holds, it holds in the last of them unless the \
         cell names another.\n"
    )?;
    let faults = ["reliable", "loss", "duplication", "crash outside", "crash inside"];
    heading(out, &["algorithm", "channel"].into_iter().chain(faults).collect::<Vec<_>>())?;
    for entry in ALL {
        for order in [Channel::Fifo, Channel::Unordered] {
            ensure_going(interrupt)?;
            let name = channel(order);
            let bold = if order == entry.info.channel { "**" } else { "" };
            let head = [format!("`{}`", entry.info.name), format!("{bold}{name}{bold}")];
            let cell = |fault| assumptions::cell(entry, order, fault, MOST_IN_A_CELL).to_string();
            let cells = assumptions::faults().map(cell);
            line(out, &head.into_iter().chain(cells).collect::<Vec<_>>())?;
        }
    }
    voters(out, interrupt, &faults)
}

/// The groups of three, for the algorithms that decide by a majority of votes.
fn voters(out: &mut dyn Write, interrupt: &Interrupt, faults: &[&str]) -> anyhow::Result<()> {
    out.write_all(VOTERS.as_bytes())?;
    heading(
        out,
        &["algorithm", "channel"].into_iter().chain(faults.iter().copied()).collect::<Vec<_>>(),
    )?;
    for entry in
        ALL.iter().filter(|entry| ["majority", "weighted-majority"].contains(&entry.info.name))
    {
        ensure_going(interrupt)?;
        let order = entry.info.channel;
        let head = [format!("`{}`", entry.info.name), channel(order).to_owned()];
        let cell =
            |fault| assumptions::cell_of(entry, order, fault, MOST_IN_A_GROUP, THREE).to_string();
        let cells = assumptions::faults().map(cell);
        line(out, &head.into_iter().chain(cells).collect::<Vec<_>>())?;
    }
    Ok(())
}

fn heading(out: &mut dyn Write, columns: &[&str]) -> io::Result<()> {
    writeln!(out, "| {} |", columns.join(" | "))?;
    writeln!(out, "|{}", "---|".repeat(columns.len()))
}

fn line(out: &mut dyn Write, cells: &[String]) -> io::Result<()> {
    writeln!(out, "| {} |", cells.join(" | "))?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page of one algorithm in which only these rows are made.
    fn rows_of(name: &str, rows: &str) -> Vec<String> {
        let entry = ALL.iter().find(|entry| entry.info.name == name);
        let mut page = Vec::new();
        checked(&mut page, entry, Some(rows), &Interrupt::default()).unwrap();
        let page = String::from_utf8(page).unwrap();
        let rows = page.lines().filter(|line| line.starts_with(&format!("| `{name}` |")));
        rows.map(str::to_owned).collect()
    }

    #[test]
    fn single_rows_can_be_made() {
        let rows = rows_of("central", "`central` | 3 | for ever");
        assert_eq!(rows.len(), 1, "{rows:?}");
        assert!(rows[0].starts_with("| `central` | 3 | for ever | unordered | holds "), "{rows:?}");
        let rows = rows_of("central", "coordinator: node 2");
        assert_eq!(rows.len(), 1, "{rows:?}");
        assert!(rows[0].contains("` | 4 | for ever | unordered | holds "), "{rows:?}");
        assert_eq!(rows_of("central", "central` | 2 | twice").len(), 1); // With a history.
    }

    /// Where quorums are, five nodes can have fewer worlds than four.
    #[test]
    fn five_nodes_that_ask_for_ever_are_always_tried() {
        for entry in ALL {
            let asked = |attempt: &Attempt| (attempt.size, attempt.times) == (5, FOREVER);
            let plan = census::plan(&entry.info);
            assert!(plan.iter().flatten().any(asked), "{}", entry.info.name);
        }
        assert_eq!(rows_of("maekawa-printed", "5 | for ever").len(), 1);
    }

    #[test]
    fn a_row_names_the_limit_that_was_reached() {
        let entry = &ALL[1];
        let case = Attempt::case(&census::plan(&entry.info)[1][0], AnyAlgorithm::from(entry), 900);
        let checked = check(case.unwrap(), &Interrupt::default()).unwrap();
        let cells = row(&entry.info, &census::plan(&entry.info)[1][0], &checked);
        assert_eq!(cells.last().unwrap(), "more than 900 worlds", "{cells:?}");
    }

    /// The rows that are missing, and those that say that an older limit was reached.
    #[test]
    fn the_page_names_what_was_not_checked_as_far_as_the_other_rows() {
        let page = include_str!("../../../docs/checked.md");
        let text = CHECKED.replace('\n', " ");
        let (_, text) = text.split_once("There are none for ").expect("the missing rows");
        let (missing, text) = text.split_once(", whose searches").expect("their end");
        for name in ALL.iter().map(|entry| entry.info.name) {
            let has_row = page.contains(&format!("| `{name}` | 5 | for ever |"));
            assert_eq!(missing.contains(&format!("`{name}`")), !has_row, "{name}");
        }
        let (_, older) = text.split_once("made again since: ").expect("the older rows");
        let (older, _) = older.split_once('.').expect("their end");
        let older: Vec<_> = older.split(", ").flat_map(|row| row.split(" and ")).collect();
        let rows = page.lines().filter(|line| line.ends_with("| more than 5,000,000 worlds |"));
        let row = |line: &str| {
            let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
            let one_writes = if cells[2].ends_with("one writes") { " (one writes)" } else { "" };
            format!("{} {}{one_writes}", cells[0], cells[1])
        };
        assert_eq!(older, rows.map(row).collect::<Vec<_>>());
    }

    #[test]
    fn the_page_names_the_limits() {
        let text = CHECKED.replace('\n', " ");
        let millions = |worlds: u64| format!("{} million", worlds / 1_000_000);
        for part in [
            format!("may take {GIGABYTES} GB of memory and twenty minutes"),
            format!("If nodes stop asking, it also stops after {}", millions(MOST_WORLDS)),
            "infinitely many worlds or if nodes record a history, after 500,000".to_owned(),
        ] {
            assert!(text.contains(&part), "{part}");
        }
        assert_eq!((MINUTES, MOST_ENDLESS, MOST_WITH_HISTORY), (20, 500_000, 500_000));
        let page = include_str!("../../../docs/checked.md");
        assert!([CHECKED, ARRANGEMENTS, HISTORIES, WITHDRAWALS].iter().all(|it| page.contains(it)));
    }
}
