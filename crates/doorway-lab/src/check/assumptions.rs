//! What each algorithm assumes of the network and of its peers, found out: with which channels and
//! under which fault it holds, and what breaks without.

use std::cmp::Reverse;
use std::fmt;

use doorway_core::algorithms::Entry;
use doorway_core::{Channel, Fault, Mode, Shape};

use super::{Case, Progress, Property, Report, SearchTargets, Verdict};
use crate::erased::AnyAlgorithm;

/// The groups that are tried: how many nodes, and how often each asks. What breaks is told with the
/// fewest steps it takes in any of them; what holds, of the last that can be exhausted.
pub const SIZES: [(usize, u32); 3] = [(2, 2), (3, 1), (3, 2)];

/// What was found under one assumption.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Do channels keep order?
    pub channel: Channel,
    /// What may fail, once.
    pub fault: Option<Fault>,
    /// What was found.
    pub finding: Finding,
    /// In which of the [`SIZES`].
    pub size: (usize, u32),
}

/// Does it hold?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// It does, in so many worlds.
    Holds(u64),
    /// This breaks in so many steps. Unless it is exclusion, exclusion holds.
    Breaks(Property, usize),
    /// This breaks in so many steps; whether exclusion does, too many worlds would have to tell.
    BreaksAtLeast(Property, usize),
    /// There are too many worlds to say.
    NotExhausted,
}

impl Finding {
    /// Two inside outweigh everything; then counts what else breaks, the sooner the more; then what
    /// holds.
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

/// Every fault a group can have, and none.
pub fn faults() -> impl Iterator<Item = Option<Fault>> {
    [None].into_iter().chain(Fault::ALL.map(|(_, fault)| Some(fault)))
}

/// What happens to an algorithm over such channels and under such a fault, looking at no more than
/// `limit` worlds at a time.
pub fn cell(entry: &Entry, channel: Channel, fault: Option<Fault>, limit: u64) -> Cell {
    let mut cells = SIZES.map(|size| {
        let finding = finding(AnyAlgorithm::from(entry), channel, fault, size, limit);
        Cell { channel, fault, finding, size }
    });
    // Exclusion holds beside what breaks only if it does in every group.
    let doubt = cells
        .iter()
        .any(|cell| matches!(cell.finding, Finding::BreaksAtLeast(..) | Finding::NotExhausted));
    // The last of equals is the largest group.
    cells.sort_by_key(|cell| cell.finding.weight());
    let [.., mut telling] = cells;
    if let (true, Finding::Breaks(property, steps)) = (doubt, telling.finding)
        && property != Property::Exclusion
    {
        telling.finding = Finding::BreaksAtLeast(property, steps);
    }
    telling
}

fn finding(
    algorithm: AnyAlgorithm,
    channel: Channel,
    fault: Option<Fault>,
    (size, times): (usize, u32),
    limit: u64,
) -> Finding {
    let info = algorithm.info();
    // One permit would make it another algorithm.
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
    // Something milder broke first. Is it still safe beyond that?
    let safety = Case { targets: SearchTargets::together(), waiting: false, ..case };
    match breaks(&run(&safety)) {
        Err((Property::Exclusion, steps)) => Finding::Breaks(Property::Exclusion, steps),
        Ok(true) => Finding::Breaks(property, steps),
        _ => Finding::BreaksAtLeast(property, steps),
    }
}

/// What breaks, and in how many steps; else whether all worlds were seen.
fn breaks(report: &Report) -> Result<bool, (Property, usize)> {
    match &report.verdict {
        Verdict::Holds => Ok(true),
        Verdict::NotExhausted => Ok(false),
        Verdict::Violated { trace, cycle, violation } => {
            Err((Property::violated_by(violation), trace.len() + cycle.len()))
        }
    }
}
