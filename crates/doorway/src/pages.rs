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

use crate::checking::{self, Interrupt};
use crate::commands::list::channel;
use crate::failure::NotExhausted;

/// The limit on the worlds of each check.
const MOST_WORLDS: u64 = 10_000_000;
/// The limit if up to three nodes ask for ever, and if more do.
const MOST_SETTLED: u64 = 20_000_000;
const MOST_SETTLED_OF_FOUR: u64 = 5_000_000;
/// The limit if there are infinitely many worlds.
const MOST_ENDLESS: u64 = 500_000;
/// The limit if nodes record a history.
const MOST_WITH_HISTORY: u64 = 500_000;

/// The limit on the worlds of the search behind each cell of the page about assumptions.
const MOST_IN_A_CELL: u64 = 200_000;

/// The limit on memory, in gigabytes.
const GIGABYTES: u64 = 6;

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
two were mistaken for one is below 3e-6, and below 1e-5 if the nodes ask for ever. `not exhausted`
means only that there are more worlds than the checker visited; the last column says why. *The
limit* is 6 GB of memory, and this many worlds: 10 million if nodes stop asking, 20 million if up to
three nodes ask for ever, 5 million if more do, and 500,000 if there are infinitely many worlds or
if nodes record a history. If nodes
ask for ever, the checker compares worlds by
what they can still do: it *settles* them, and the numbers that only grow drop out. Where a number
grows that cannot drop out, there are infinitely many worlds, and the row says which number it is.
If a property is violated, the number is the length of the shortest counterexample, and the other
properties were not decided.

Groups with permits have two. Quorums, trees and weights are the defaults of the command, and seven
nodes have the quorums of Maekawa's figure. `once (2 to 5)` means that only nodes 2 to 5 ask, and
`one writes` that all other nodes ask for shared mode.

";

const ARRANGEMENTS: &str = "
## Arrangements

These are the arrangements of the members that a rule of the lock service can choose: quorums,
weights, trees, links, permits per node and the coordinator. The options are those of `doorway
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

/// Write the page about what was checked, with all algorithms or with only this one.
pub(crate) fn checked(
    out: &mut dyn Write,
    only: Option<&'static Entry>,
    interrupt: &Interrupt,
) -> anyhow::Result<()> {
    let entries = only.map_or(ALL, std::slice::from_ref);
    out.write_all(CHECKED.as_bytes())?;
    table(out, entries, interrupt, census::plan)?;
    out.write_all(ARRANGEMENTS.as_bytes())?;
    arrangements(out, entries, interrupt)?;
    out.write_all(HISTORIES.as_bytes())?;
    heading(out, &["algorithm", "nodes", "each asks", "fences", "order", "price"])?;
    for entry in entries.iter().filter(|entry| entry.info.refuted.is_none()) {
        histories(out, AnyAlgorithm::from(entry), interrupt)?;
    }
    out.write_all(WITHDRAWALS.as_bytes())?;
    table(out, entries, interrupt, census::withdrawals)
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
    entries: &[Entry],
    interrupt: &Interrupt,
    plan: fn(&Info) -> Vec<Vec<Attempt>>,
) -> anyhow::Result<()> {
    heading(out, &COLUMNS)?;
    for entry in entries {
        let (info, algorithm) = (&entry.info, AnyAlgorithm::from(entry));
        let mut open = false;
        for attempts in plan(info) {
            for attempt in attempts {
                if attempt.is_beyond_four() && open {
                    continue;
                }
                let Ok(case) = attempt.case(algorithm, most(info, &attempt)) else { continue };
                let checked = check(case, interrupt)?;
                line(out, &row(info, &attempt, &checked))?;
                if checked.report.verdict != Verdict::NotExhausted {
                    break;
                }
                open |= attempt.times == FOREVER;
            }
        }
    }
    Ok(())
}

/// The limit on the worlds of a group.
fn most(info: &Info, attempt: &Attempt) -> u64 {
    match (attempt.times, attempt.size) {
        (FOREVER, _) if census::why_endless(info, attempt).is_some() => MOST_ENDLESS,
        (FOREVER, ..=3) => MOST_SETTLED,
        (FOREVER, _) => MOST_SETTLED_OF_FOUR,
        _ => MOST_WORLDS,
    }
}

/// Write the table of arrangements.
fn arrangements(
    out: &mut dyn Write,
    entries: &[Entry],
    interrupt: &Interrupt,
) -> anyhow::Result<()> {
    let mut columns = COLUMNS.to_vec();
    columns.insert(1, "arrangement");
    heading(out, &columns)?;
    for arranged in census::arrangements() {
        let entry = entries.iter().find(|entry| entry.info.name == arranged.algorithm);
        let Some(Entry { info, .. }) = entry else { continue };
        for attempt in &arranged.attempts {
            let Ok(case) = arranged.case(attempt, most(info, attempt)) else { continue };
            let checked = check(case, interrupt)?;
            let mut cells = row(info, attempt, &checked);
            cells.insert(1, format!("`{}`", arranged.title));
            line(out, &cells)?;
            if checked.report.verdict != Verdict::NotExhausted {
                break;
            }
        }
    }
    Ok(())
}

fn histories(
    out: &mut dyn Write,
    algorithm: AnyAlgorithm,
    interrupt: &Interrupt,
) -> anyhow::Result<()> {
    let mut rows: Vec<(Attempt, Vec<String>)> = Vec::new();
    for (history, attempt) in census::histories() {
        let Ok(case) = attempt.case(algorithm, MOST_WITH_HISTORY) else { continue };
        let checked = check(Case { history: Some(history), ..case }, interrupt)?;
        let verdict = match &checked.report.verdict {
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
        let head =
            [format!("`{}`", algorithm.info().name), attempt.size.to_string(), attempt.requests()];
        line(out, &head.into_iter().chain(verdicts).collect::<Vec<_>>())?;
    }
    Ok(())
}

/// Run a check. If Ctrl-C ends it, the page ends too.
fn check(case: Case, interrupt: &Interrupt) -> anyhow::Result<checking::CheckOutcome> {
    let case = Case { threads: checking::cores(), ..case };
    let checked = checking::check(&case, GIGABYTES, interrupt);
    ensure_going(interrupt)?;
    Ok(checked)
}

fn ensure_going(interrupt: &Interrupt) -> Result<(), NotExhausted> {
    let stopped = || NotExhausted("stopped by Ctrl-C, the page is cut short".to_owned());
    if interrupt.is_raised() { Err(stopped()) } else { Ok(()) }
}

fn row(info: &Info, attempt: &Attempt, checked: &checking::CheckOutcome) -> Vec<String> {
    let counts = census::counts(info, attempt, &checked.report, checked.seconds);
    census::cells(info, attempt, &checked.report).into_iter().chain(counts).collect()
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

    #[test]
    fn the_page_names_the_limits() {
        let text = CHECKED.replace('\n', " ");
        let millions = |worlds: u64| format!("{} million", worlds / 1_000_000);
        for part in [
            format!("is {GIGABYTES} GB of memory"),
            format!("{} if nodes stop asking", millions(MOST_WORLDS)),
            format!("{} if up to three nodes ask for ever", millions(MOST_SETTLED)),
            format!("{} if more do", millions(MOST_SETTLED_OF_FOUR)),
            "500,000 if there are infinitely many worlds or if nodes record a history".to_owned(),
        ] {
            assert!(text.contains(&part), "{part}");
        }
        assert_eq!([MOST_ENDLESS, MOST_WITH_HISTORY], [500_000; 2]);
        let page = include_str!("../../../docs/checked.md");
        assert!([CHECKED, ARRANGEMENTS, HISTORIES, WITHDRAWALS].iter().all(|it| page.contains(it)));
    }
}
