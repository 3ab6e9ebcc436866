//! The two pages that `doorway check` writes: what was checked, and what is assumed.

use std::io::{self, Write};

use doorway_core::algorithms::ALL;
use doorway_core::{Channel, Info};
use doorway_lab::AnyAlgorithm;
use doorway_lab::FOREVER;
use doorway_lab::check::assumptions::{self, SIZES};
use doorway_lab::check::census::{self, Attempt};
use doorway_lab::check::{Case, Verdict};
use indicatif::HumanCount;

use crate::checking::{self, Interrupt};
use crate::commands::list::channel;
use crate::failure::NotExhausted;

/// How many worlds a check of the great table may have; with requests for ever each costs more.
const MOST_WORLDS: u64 = 10_000_000;
const MOST_ENDLESS: u64 = 500_000;
const MOST_WITH_HISTORY: u64 = 500_000;

/// How many worlds the search behind each cell of the assumptions may have.
const MOST_IN_A_CELL: u64 = 200_000;

const GIGABYTES: u64 = 6;

const CHECKED: &str = "\
# What was checked

Written by `doorway check --table`. Every algorithm runs over the channels it assumes, nothing
fails, and every world that can be reached is looked at: at most as many inside as may be
(exclusion), no message of a correct peer refused (refusal), nobody waiting where nothing can
happen (stuck), and no cycle in which someone waits for ever though every message arrives and
everyone leaves (starvation). *Overtaken* is the exact maximum of entries of others while one node
waits. *Messages* are the fewest and the most of any complete run. Worlds are told apart by 64-bit
fingerprints: at ten million of them, two were taken for one with a chance below 3e-6. `not
exhausted` says nothing but that there are more worlds than were looked at. Where something breaks,
the number is the length of the shortest counterexample, and what else holds is left open. Depth is
that of the farthest world found; messages are counted where runs end.

Where there are permits, there are two; quorums, trees and weights are those that the command takes
by default, and seven nodes have the quorums of Maekawa's figure. `once (2 to 5)` means that only
nodes 2 to 5 ask, and `one writes` that all others ask for shared mode.

";

const HISTORIES: &str = "
## With a history

The nodes write down what they know, which multiplies the worlds. *Fences*: between exclusive
grants they grow. *Order*: nobody is inside while another waits whose request happened before;
only Lamport's paper claims it, and it says nothing against the others that they do not keep it.
*Price*: the requests of a node cost together what is claimed for each. What does not hold is told
with the steps of the shortest counterexample: `doorway check ALGORITHM -n N --history WHAT` shows
it.

";

const ASSUMED: &str = "\
# What is assumed

Written by `doorway check --assumptions`. For each algorithm, over channels that keep order and
over those that do not, without a fault and with one: a lost message, a message that arrives
twice, the crash of a node outside, the crash of a node inside (of which the others learn). In
**bold** are the channels that the algorithm assumes.

A number is the length of the shortest counterexample in any of the groups tried. Unless it says
*too many inside*, exclusion holds although something else breaks: *stuck*, someone waits and
nothing can happen; *refusal*, a message is refused, which the lock service answers by dropping
the link; *starvation*, someone waits for ever. A (?) means that exclusion could not be exhausted in
all of the groups, within 200,000 worlds each. `doorway check ALGORITHM -n N --property exclusion`
shows the stories of *too many inside*.

Where there are permits, there are two, and where there are readers, node 1 is one. A refuted text
may hold here: what breaks it may need other quorums than those of these groups.

";

/// Write the table of everything that was checked.
pub(crate) fn checked(out: &mut dyn Write, interrupt: &Interrupt) -> anyhow::Result<()> {
    out.write_all(CHECKED.as_bytes())?;
    let columns = [
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
    heading(out, &columns)?;
    for entry in ALL {
        let (info, algorithm) = (&entry.info, AnyAlgorithm::from(entry));
        for attempts in census::plan(info) {
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
    out.write_all(HISTORIES.as_bytes())?;
    heading(out, &["algorithm", "nodes", "each asks", "fences", "order", "price"])?;
    for entry in ALL.iter().filter(|entry| entry.info.refuted.is_none()) {
        histories(out, AnyAlgorithm::from(entry), interrupt)?;
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

/// A check that only a person ends early; that ends the page too.
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
        HumanCount(progress.states).to_string(),
        HumanCount(progress.steps).to_string(),
        progress.depth.to_string(),
        format!("{:.2}", checked.seconds),
        format!("{:.1}", progress.bytes as f64 / 1e6),
    ];
    census::cells(info, attempt, &checked.report).into_iter().chain(counts).collect()
}

/// Write what each algorithm assumes.
pub(crate) fn assumed(out: &mut dyn Write, interrupt: &Interrupt) -> anyhow::Result<()> {
    out.write_all(ASSUMED.as_bytes())?;
    let group = |(size, times): (usize, u32)| format!("{size} nodes that each ask {times}×");
    let groups = SIZES.map(group).join(", ");
    writeln!(
        out,
        "The groups: {groups}; what holds, holds in the last unless another is named.\n"
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
