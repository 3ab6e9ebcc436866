//! What each algorithm assumes of the network and of its peers, found out: with which channels and
//! under which fault it holds, and what breaks without.

use std::fmt;

use doorway_core::algorithms::Entry;
use doorway_core::{Channel, Fault, Info, Shape};

use super::{Case, Progress, Property, Report, Sought, Verdict};

/// The groups that are tried, the largest first: how many nodes, and how often each asks. What
/// breaks is sought in the largest; what holds is said of the first that can be exhausted.
pub const SIZES: [(usize, u32); 3] = [(3, 2), (3, 1), (2, 2)];

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

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.finding {
            Finding::Holds(_) if self.size == SIZES[0] => write!(f, "holds"),
            Finding::Holds(_) => {
                let (size, times) = self.size;
                write!(f, "holds ({size} nodes × {times})")
            }
            Finding::Breaks(Property::Exclusion, steps) => write!(f, "**two inside**, {steps}"),
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
    let mut found = None;
    for size in SIZES {
        let finding = finding(&entry.info, channel, fault, size, limit);
        let cell = Cell { channel, fault, finding, size };
        match finding {
            Finding::Holds(_) | Finding::Breaks(..) => return cell,
            Finding::BreaksAtLeast(..) => found = found.or(Some(cell)),
            Finding::NotExhausted => {}
        }
    }
    let finding = Finding::NotExhausted;
    found.unwrap_or(Cell { channel, fault, finding, size: SIZES[0] })
}

fn finding(
    info: &Info,
    channel: Channel,
    fault: Option<Fault>,
    (size, times): (usize, u32),
    limit: u64,
) -> Finding {
    let Ok(group) = info.group(size, &Shape::default()) else { return Finding::NotExhausted };
    let case = Case {
        channel,
        faults: fault.into_iter().collect(),
        limit,
        ..Case::new(info, group, times)
    };
    let run = |case: &Case| case.run(info.name, &mut |_: &Progress| true);
    let Some(whole) = run(&case) else { return Finding::NotExhausted };
    let (property, steps) = match breaks(&whole) {
        Ok(true) => return Finding::Holds(whole.progress.states),
        Ok(false) => return Finding::NotExhausted,
        Err(broken) => broken,
    };
    if property == Property::Exclusion {
        return Finding::Breaks(property, steps);
    }
    // Something milder broke first. Is it still safe beyond that?
    let safety = Case { sought: Sought::together(), waiting: false, ..case };
    match run(&safety).as_ref().map(breaks) {
        Some(Err((exclusion, steps))) => Finding::Breaks(exclusion, steps),
        Some(Ok(true)) => Finding::Breaks(property, steps),
        _ => Finding::BreaksAtLeast(property, steps),
    }
}

/// What breaks, and in how many steps; else whether all worlds were seen.
fn breaks(report: &Report) -> Result<bool, (Property, usize)> {
    match &report.verdict {
        Verdict::Holds => Ok(true),
        Verdict::NotExhausted => Ok(false),
        Verdict::Violated { trace, violation, .. } => {
            Err((Property::violated_by(violation), trace.len()))
        }
    }
}
