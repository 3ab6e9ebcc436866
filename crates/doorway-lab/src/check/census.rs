//! Which groups of each algorithm are checked for the table of docs/checked.md: the largest that
//! can be exhausted.

use doorway_core::{Channel, Group, GroupError, Info, Mode, Needs, NodeId, Shape, quorums};

use super::{Case, History, Property, Report, Verdict};
use crate::FOREVER;
use crate::erased::AnyAlgorithm;

/// A group to be checked, and which of its nodes make how many requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// How many nodes there are.
    pub size: usize,
    /// How many requests each asking node makes; [`FOREVER`] if it never stops.
    pub times: u32,
    /// How many nodes ask.
    pub askers: usize,
    /// How many nodes before the first asking node do not ask.
    pub idle: usize,
    /// Do all but the last ask for shared mode?
    pub reading: bool,
    /// May waiting clients give up?
    pub withdrawing: bool,
}

impl Attempt {
    const fn all(size: usize, times: u32) -> Self {
        Self { size, times, askers: size, idle: 0, reading: false, withdrawing: false }
    }

    const fn some(size: usize, idle: usize, askers: usize) -> Self {
        Self { size, times: 1, askers, idle, reading: false, withdrawing: false }
    }

    /// The case of an algorithm, whose search stops after `limit` worlds.
    pub fn case(&self, algorithm: AnyAlgorithm, limit: u64) -> Result<Case, GroupError> {
        let group = self.group(algorithm.info())?;
        let withdrawing = self.withdrawing;
        let mut case = Case { withdrawing, limit, ..Case::new(algorithm, group, self.times) };
        for (node, asks) in case.acquires.iter_mut().enumerate() {
            if !(self.idle..self.idle + self.askers).contains(&node) {
                *asks = (0, Mode::Exclusive);
            }
        }
        if self.reading {
            case.acquires[..self.size - 1].iter_mut().for_each(|(_, mode)| *mode = Mode::Shared);
        }
        Ok(case)
    }

    /// The group with its defaults, except for two things: an algorithm with permits gets two, and
    /// seven nodes with quorums get those of Maekawa's figure.
    fn group(&self, info: &Info) -> Result<Group, GroupError> {
        let plane = info.needs == Needs::Quorums && self.size == 7;
        let shape = Shape {
            permits: info.permits.then_some(2),
            quorums: plane.then(|| quorums::Kind::ProjectivePlane.into()),
            ..Shape::default()
        };
        info.group(self.size, &shape)
    }

    /// Which nodes make how many requests, in words.
    pub fn requests(&self) -> String {
        let times = match self.times {
            FOREVER => "for ever".to_owned(),
            1 => "once".to_owned(),
            2 => "twice".to_owned(),
            times => format!("{times} times"),
        };
        if self.reading {
            return format!("{times}, one writes");
        }
        if self.askers == self.size {
            return times;
        }
        let node = |at: usize| NodeId(at as u32);
        let (first, last) = (node(self.idle), node(self.idle + self.askers - 1));
        format!("{times} ({first} to {last})")
    }
}

/// The rows of the table. Each row lists attempts from the largest to the smallest, and the first
/// one that can be exhausted is shown.
pub fn plan(info: &Info) -> Vec<Vec<Attempt>> {
    let mut rows = vec![
        vec![Attempt::all(2, FOREVER)],
        vec![Attempt::all(3, FOREVER)],
        vec![Attempt::all(3, 3), Attempt::all(3, 2), Attempt::all(3, 1)],
        vec![
            Attempt::all(4, 2),
            Attempt::all(4, 1),
            Attempt::some(4, 0, 3),
            Attempt::some(4, 0, 2),
        ],
    ];
    if info.needs == Needs::Quorums {
        rows.push(vec![Attempt::some(7, 1, 4)]);
    }
    if info.shared {
        let reading = |size, times| Attempt { reading: true, ..Attempt::all(size, times) };
        rows.push(vec![reading(3, FOREVER)]);
        rows.push(vec![reading(3, 3), reading(3, 2)]);
        rows.push(vec![reading(4, 1)]);
    }
    rows
}

/// The rows of the table of worlds in which waiting clients may give up. There are none for an
/// algorithm that cannot withdraw a request.
pub fn withdrawals(info: &Info) -> Vec<Vec<Attempt>> {
    let rows = [
        vec![Attempt::all(2, FOREVER)],
        vec![Attempt::all(2, 3), Attempt::all(2, 2)],
        vec![Attempt::all(3, FOREVER)],
        vec![Attempt::all(3, 2), Attempt::all(3, 1), Attempt::some(3, 0, 2)],
    ];
    let withdrawing = |attempt| Attempt { withdrawing: true, ..attempt };
    let rows = rows.into_iter().filter(|_| info.withdraws && info.refuted.is_none());
    rows.map(|row| row.into_iter().map(withdrawing).collect()).collect()
}

/// The properties that need a history, with the groups in which they are checked.
pub fn histories() -> impl Iterator<Item = (History, Attempt)> {
    let groups = [Attempt::all(2, 2), Attempt::all(3, 1)];
    History::ALL.into_iter().flat_map(move |(_, what)| groups.map(|group| (what, group)))
}

/// A row of the table up to its counts: which group was checked, what is known about each property,
/// how often a node is overtaken, and how many messages a run has.
pub fn cells(info: &Info, attempt: &Attempt, report: &Report) -> Vec<String> {
    use Property::{Exclusion, Refusal, Starvation, Stuck};
    let channel = if info.channel == Channel::Fifo { "fifo" } else { "unordered" };
    let known = [Exclusion, Refusal, Stuck, Starvation].map(|property| match &report.verdict {
        Verdict::Holds => "holds".to_owned(),
        Verdict::NotExhausted => "not exhausted".to_owned(),
        Verdict::Violated { trace, cycle, violation } => {
            let broken = Property::violated_by(violation) == property;
            let steps = trace.len() + cycle.len();
            if broken { format!("**no**, {steps}") } else { String::new() }
        }
    });
    let overtaken = report.waiting.map(|waiting| {
        waiting.overtaken.map_or_else(|| "any number".to_owned(), |most| most.to_string())
    });
    let messages = report.waiting.and_then(|waiting| waiting.messages).map(|(least, most)| {
        if least == most { least.to_string() } else { format!("{least} to {most}") }
    });
    let head = [format!("`{}`", info.name), attempt.size.to_string(), attempt.requests()];
    let head = head.into_iter().chain([channel.to_owned()]);
    head.chain(known).chain([overtaken, messages].map(Option::unwrap_or_default)).collect()
}
