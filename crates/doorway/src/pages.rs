//! The two pages of the documentation that `doorway check` writes: what was checked, and what each
//! algorithm assumes.

use std::io::{self, Write};

use doorway_core::algorithms::ALL;
use doorway_core::{Channel, Info};
use doorway_lab::AnyAlgorithm;
use doorway_lab::FOREVER;
use doorway_lab::check::assumptions::{self, SIZES};
use doorway_lab::check::census::{self, Attempt};
use doorway_lab::check::{Case, Verdict};
use doorway_lab::numbers::grouped;

use crate::checking::{self, Interrupt};
use crate::commands::list::channel;
use crate::failure::NotExhausted;

/// The limit on the worlds of each check.
const MOST_WORLDS: u64 = 10_000_000;
/// The limit if nodes ask forever: each world then costs more.
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
two were mistaken for one is below 3e-6. `not exhausted` means only that there are more worlds than
the checker visited. If a property is violated, the number is the length of the shortest
counterexample, and the other properties were not decided.

Groups with permits have two. Quorums, trees and weights are the defaults of the command, and seven
nodes have the quorums of Maekawa's figure. `once (2 to 5)` means that only nodes 2 to 5 ask, and
`one writes` that all other nodes ask for shared mode.

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

/// Write the page about what was checked.
pub(crate) fn checked(out: &mut dyn Write, interrupt: &Interrupt) -> anyhow::Result<()> {
    out.write_all(CHECKED.as_bytes())?;
    table(out, interrupt, census::plan)?;
    out.write_all(HISTORIES.as_bytes())?;
    heading(out, &["algorithm", "nodes", "each asks", "fences", "order", "price"])?;
    for entry in ALL.iter().filter(|entry| entry.info.refuted.is_none()) {
        histories(out, AnyAlgorithm::from(entry), interrupt)?;
    }
    out.write_all(WITHDRAWALS.as_bytes())?;
    table(out, interrupt, census::withdrawals)
}

const COLUMNS: [&str; 15] = [
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
];

/// Write a table with the rows that `plan` has for each algorithm.
fn table(
    out: &mut dyn Write,
    interrupt: &Interrupt,
    plan: fn(&Info) -> Vec<Vec<Attempt>>,
) -> anyhow::Result<()> {
    heading(out, &COLUMNS)?;
    for entry in ALL {
        let (info, algorithm) = (&entry.info, AnyAlgorithm::from(entry));
        for attempts in plan(info) {
            for attempt in attempts {
                let endless = attempt.times == FOREVER;
                let most = if endless { MOST_ENDLESS } else { MOST_WORLDS };
                let Ok(case) = attempt.case(algorithm, most) else { continue };
                let checked = check(case, interrupt)?;
                line(out, &row(info, &attempt, &checked))?;
                if checked.report.verdict != Verdict::NotExhausted {
                    break;
                }
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
fn check(case: Case, interrupt: &Interrupt) -> anyhow::Result<checking::Checked> {
    let case = Case { threads: checking::cores(), ..case };
    let checked = checking::check(&case, GIGABYTES, interrupt);
    ensure_going(interrupt)?;
    Ok(checked)
}

fn ensure_going(interrupt: &Interrupt) -> Result<(), NotExhausted> {
    let stopped = || NotExhausted("stopped by Ctrl-C, the page is cut short".to_owned());
    if interrupt.is_raised() { Err(stopped()) } else { Ok(()) }
}

fn row(info: &Info, attempt: &Attempt, checked: &checking::Checked) -> Vec<String> {
    let progress = checked.report.progress;
    let counts = [
        grouped(progress.states),
        grouped(progress.steps),
        progress.depth.to_string(),
        format!("{:.2}", checked.seconds),
        format!("{:.1}", progress.bytes as f64 / 1e6),
    ];
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
