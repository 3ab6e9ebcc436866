//! The table of assumptions: for each kind of channel and each fault, whether an algorithm still
//! holds, and what breaks if it does not.

use std::cmp::Reverse;
use std::fmt;

use doorway_core::algorithms::Entry;
use doorway_core::{Channel, Fault, Mode, Shape};

use super::{Case, Progress, Property, Report, SearchTargets, Verdict};
use crate::erased::AnyAlgorithm;

/// The groups that are checked: how many nodes there are, and how many requests each makes.
///
/// If something breaks, the fewest steps in any of these groups are reported. If everything holds,
/// the last group whose worlds could be exhausted is reported.
pub const SIZES: [(usize, u32); 3] = [(2, 2), (3, 1), (3, 2)];

/// The finding for one kind of channel and one fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Do channels keep order?
    pub channel: Channel,
    /// The fault that may happen once; `None` if nothing fails.
    pub fault: Option<Fault>,
    /// What was found.
    pub finding: Finding,
    /// The group, one of [`SIZES`], that the finding is about.
    pub size: (usize, u32),
}

/// Whether an algorithm holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Everything holds in all worlds, of which this is the number.
    Holds(u64),
    /// This property breaks after this number of steps. If it is another one than exclusion,
    /// exclusion holds.
    Breaks(Property, usize),
    /// This property breaks after this number of steps. There are too many worlds to say whether
    /// exclusion breaks too.
    BreaksAtLeast(Property, usize),
    /// There are too many worlds to say.
    NotExhausted,
}

impl Finding {
    /// The order in which findings are preferred for the table: broken exclusion first, then
    /// another broken property, then what holds. Of two that break, the one with fewer steps weighs
    /// more.
    fn weight(self) -> (u8, Reverse<usize>) {
        match self {
            Self::Breaks(Property::Exclusion, steps) => (3, Reverse(steps)),
            Self::Breaks(_, steps) | Self::BreaksAtLeast(_, steps) => (2, Reverse(steps)),
            Self::Holds(_) => (1, Reverse(0)),
            Self::NotExhausted => (0, Reverse(0)),
        }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.finding {
            Finding::Holds(_) if self.size == SIZES[2] => write!(f, "holds"),
            Finding::Holds(_) => {
                let (size, times) = self.size;
                write!(f, "holds ({size} nodes × {times})")
            }
            Finding::Breaks(Property::Exclusion, steps) => {
                write!(f, "**too many inside**, {steps}")
            }
            Finding::Breaks(property, steps) => write!(f, "{property}, {steps}"),
            Finding::BreaksAtLeast(property, steps) => write!(f, "{property}, {steps} (?)"),
            Finding::NotExhausted => write!(f, "not exhausted"),
        }
    }
}

/// `None`, and then every fault.
pub fn faults() -> impl Iterator<Item = Option<Fault>> {
    [None].into_iter().chain(Fault::ALL.map(|(_, fault)| Some(fault)))
}

/// Check an algorithm with this kind of channel and this fault. Each search stops after `limit`
/// worlds.
pub fn cell(entry: &Entry, channel: Channel, fault: Option<Fault>, limit: u64) -> Cell {
    let mut cells = SIZES.map(|size| cell_of(entry, channel, fault, limit, size));
    // If another property breaks, exclusion is only said to hold if it does in every group.
    let doubt = cells
        .iter()
        .any(|cell| matches!(cell.finding, Finding::BreaksAtLeast(..) | Finding::NotExhausted));
    // The sort is stable, so the last of equal weight is the largest group.
    cells.sort_by_key(|cell| cell.finding.weight());
    let [.., mut telling] = cells;
    if let (true, Finding::Breaks(property, steps)) = (doubt, telling.finding)
        && property != Property::Exclusion
    {
        telling.finding = Finding::BreaksAtLeast(property, steps);
    }
    telling
}

/// Check an algorithm in a group of this size only.
pub fn cell_of(
    entry: &Entry,
    channel: Channel,
    fault: Option<Fault>,
    limit: u64,
    size: (usize, u32),
) -> Cell {
    let finding = finding(AnyAlgorithm::from(entry), channel, fault, size, limit);
    Cell { channel, fault, finding, size }
}

fn finding(
    algorithm: AnyAlgorithm,
    channel: Channel,
    fault: Option<Fault>,
    (size, times): (usize, u32),
    limit: u64,
) -> Finding {
    let info = algorithm.info();
    // An algorithm for several permits gets two. With one it would behave like another algorithm.
    let shape = Shape { permits: info.permits.then_some(2), ..Shape::default() };
    let Ok(group) = info.group(size, &shape) else { return Finding::NotExhausted };
    let mut case = Case {
        channel,
        faults: fault.into_iter().collect(),
        limit,
        ..Case::new(algorithm, group, times)
    };
    if info.shared {
        case.acquires[0].1 = Mode::Shared;
    }
    let run = |case: &Case| case.run(&mut |_: &Progress| true);
    let whole = run(&case);
    let (property, steps) = match breaks(&whole) {
        Ok(true) => return Finding::Holds(whole.progress.states),
        Ok(false) => return Finding::NotExhausted,
        Err(broken) => broken,
    };
    if property == Property::Exclusion {
        return Finding::Breaks(property, steps);
    }
    // Another property broke first. Is exclusion still safe if the search goes on?
    let safety = Case { targets: SearchTargets::together(), waiting: false, ..case };
    match breaks(&run(&safety)) {
        Err((Property::Exclusion, steps)) => Finding::Breaks(Property::Exclusion, steps),
        Ok(true) => Finding::Breaks(property, steps),
        _ => Finding::BreaksAtLeast(property, steps),
    }
}

/// The property that breaks and after how many steps, as an error; else whether all worlds were
/// seen.
fn breaks(report: &Report) -> Result<bool, (Property, usize)> {
    match &report.verdict {
        Verdict::Holds => Ok(true),
        Verdict::NotExhausted | Verdict::Unconfirmed { .. } => Ok(false),
        Verdict::Violated { trace, cycle, violation } => {
            Err((Property::violated_by(violation), trace.len() + cycle.len()))
        }
    }
}
