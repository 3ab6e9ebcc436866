//! The tables printed in the papers, measured: each is an experiment that anyone can repeat.

mod correspondence_1983;
mod maekawa_1985;
mod slides;
mod trees;

use std::fmt;

use doorway_core::{NodeId, Shape};
use serde::Serialize;

use crate::Trace;
use crate::numbers::short;
use crate::simulate::{self, Arrival, Delay, Distribution, Report, Workload};
use crate::trace::EventKind;

/// A table of a paper.
#[derive(Clone, Copy)]
pub struct Paper {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it shows, and in which paper it is printed.
    pub title: &'static str,
    /// The experiment, for the printed sizes or for one number of nodes.
    pub measure: fn(Option<usize>) -> Result<Table, String>,
}

/// Every table, in the order in which they are listed.
pub const ALL: &[Paper] = &[
    maekawa_1985::TABLE_1,
    maekawa_1985::TABLE_2,
    maekawa_1985::TABLE_3,
    maekawa_1985::SECTION_8_2,
    correspondence_1983::RICART_TABLE_1,
    correspondence_1983::CARVALHO_ROUCAIROL,
    correspondence_1983::NODE_BY_NODE,
    trees::RAYMOND_K_SECTION_7,
    slides::COMPLEXITY,
    trees::NAIMI_TREHEL_LOG,
    trees::RAYMOND_SATURATED,
];

/// The value of a quantity as printed in a paper.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Printed {
    /// A number, to be met within a relative tolerance.
    Value {
        /// The number.
        value: f64,
        /// How far off a measurement may be, as a part of the number.
        tolerance: f64,
    },
    /// Bounds.
    Range {
        /// The lower bound.
        least: f64,
        /// The upper bound.
        most: f64,
    },
    /// A number that is wrong; the experiment shows the right one.
    Wrong {
        /// The printed number.
        value: f64,
        /// The right number.
        really: f64,
    },
    /// An upper bound that is wrong: the experiment exceeds it.
    Exceeded {
        /// The printed bound.
        at_most: f64,
    },
    /// A lower bound that is wrong: the experiment falls below it.
    Undercut {
        /// The printed bound.
        at_least: f64,
    },
}

impl Printed {
    /// A number to be met exactly.
    pub fn exactly(value: f64) -> Self {
        Self::Value { value, tolerance: 0.0 }
    }

    /// A number to be met within this part of it.
    pub fn about(value: f64, tolerance: f64) -> Self {
        Self::Value { value, tolerance }
    }

    /// Bounds.
    pub fn between(least: f64, most: f64) -> Self {
        Self::Range { least, most }
    }
}

impl fmt::Display for Printed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value { value, .. } => write!(f, "{}", short(*value)),
            Self::Range { least, most } => write!(f, "{} to {}", short(*least), short(*most)),
            Self::Wrong { value, really } => {
                write!(f, "{}, really {}", short(*value), short(*really))
            }
            Self::Exceeded { at_most } => write!(f, "at most {}, wrong", short(*at_most)),
            Self::Undercut { at_least } => write!(f, "at least {}, wrong", short(*at_least)),
        }
    }
}

/// A printed value and its measurement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// The row: algorithm, size, topology.
    pub case: String,
    /// The quantity that is measured.
    pub quantity: &'static str,
    /// The printed value.
    pub paper: Printed,
    /// The measured value.
    pub measured: f64,
}

impl Figure {
    /// Does the measurement agree with the paper, or, where the paper is wrong, with the right
    /// number?
    pub fn agrees(&self) -> bool {
        match self.paper {
            Printed::Value { value, tolerance } => {
                (self.measured - value).abs() <= value.abs() * tolerance + 1e-9
            }
            Printed::Range { least, most } => (least - 1e-9..=most + 1e-9).contains(&self.measured),
            Printed::Wrong { really, .. } => (self.measured - really).abs() <= 1e-9,
            Printed::Exceeded { at_most } => self.measured > at_most,
            Printed::Undercut { at_least } => self.measured < at_least,
        }
    }

    /// Measured minus printed; zero inside printed bounds.
    pub fn difference(&self) -> f64 {
        match self.paper {
            Printed::Value { value, .. }
            | Printed::Wrong { value, .. }
            | Printed::Exceeded { at_most: value }
            | Printed::Undercut { at_least: value } => self.measured - value,
            Printed::Range { least, most } => self.measured - self.measured.clamp(least, most),
        }
    }
}

/// The outcome of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Table {
    /// The comparisons.
    pub figures: Vec<Figure>,
    /// Notes for the reader.
    pub notes: Vec<&'static str>,
}

impl Table {
    fn add(
        &mut self,
        case: impl Into<String>,
        quantity: &'static str,
        paper: Printed,
        measured: f64,
    ) {
        self.figures.push(Figure { case: case.into(), quantity, paper, measured });
    }
}

/// The printed cases, or a single one for a number of nodes that was asked for.
fn cases<T: Clone>(
    asked: Option<usize>,
    printed: &[T],
    of: impl Fn(usize) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    match asked {
        None => Ok(printed.to_vec()),
        Some(size) => Ok(vec![of(size)?]),
    }
}

/// Refuse a number of nodes for which an experiment would take too long or make no sense.
fn between(size: usize, fewest: usize, most: usize) -> Result<usize, String> {
    if (fewest..=most).contains(&size) {
        return Ok(size);
    }
    Err(format!("this table can be measured for {fewest} to {most} nodes, not for {size}"))
}

/// A simulated run.
struct Run {
    name: &'static str,
    size: usize,
    shape: Shape,
    workload: Workload,
    inside: Distribution,
    /// The delay of a message, if it is not always one.
    delay: Option<Distribution>,
    entries: u64,
    warmup: u64,
    crashes: Vec<(f64, NodeId)>,
    trace: usize,
}

impl Run {
    /// One client at a time, each at a random node.
    fn light(name: &'static str, size: usize, entries: u64) -> Self {
        // Long enough that no message is in transit when the next client comes, whatever the
        // algorithm.
        let pause = Distribution::Constant(4.0 * size as f64 + 100.0);
        Self::of(name, size, Workload::Serial { pause }, entries)
    }

    /// Every node asks again well before its turn comes, but not before other nodes had theirs.
    fn heavy(name: &'static str, size: usize, entries: u64) -> Self {
        let think = Distribution::Constant(size as f64 / 2.0);
        Self::of(name, size, Workload::Closed { think }, entries)
    }

    /// Exactly these clients, with a trace of everything that happens.
    fn scripted(name: &'static str, size: usize, arrivals: Vec<Arrival>) -> Self {
        let entries = arrivals.len() as u64;
        let mut run = Self::of(name, size, Workload::Scripted(arrivals), entries);
        run.trace = usize::MAX;
        run
    }

    /// One client at each node, one after the other.
    fn each_once(name: &'static str, size: usize) -> Self {
        let arrival = |node| Arrival::new(1_000.0 * node as f64, NodeId::at(node));
        Self::scripted(name, size, (0..size).map(arrival).collect())
    }

    fn of(name: &'static str, size: usize, workload: Workload, entries: u64) -> Self {
        Self {
            name,
            size,
            shape: Shape::default(),
            workload,
            inside: Distribution::Constant(0.1),
            delay: None,
            entries,
            warmup: 0,
            crashes: Vec::new(),
            trace: 0,
        }
    }

    fn shaped(mut self, shape: Shape) -> Self {
        self.shape = shape;
        self
    }

    /// Run to the end. A violation is an error.
    fn go(self) -> Result<(Report, Trace), String> {
        let name = self.name;
        let (report, trace) = self.play()?;
        match &report.violation {
            None => Ok((report, trace)),
            Some(violation) => Err(format!("{name}: {violation}")),
        }
    }

    /// Run to the end, or to a violation.
    fn play(self) -> Result<(Report, Trace), String> {
        simulate::run(self.name, self.size, &self.shape, |options| {
            options.workload = self.workload;
            options.inside = self.inside;
            if let Some(delay) = self.delay {
                options.delay = Delay::Distribution(delay);
            }
            (options.entries, options.warmup) = (self.entries, self.warmup);
            options.trace = self.trace;
            options.detect = (!self.crashes.is_empty()).then_some(1.0);
            options.crashes = self.crashes;
        })
    }

    fn messages(self) -> Result<f64, String> {
        Ok(self.go()?.0.messages_per_entry)
    }
}

/// The time from each request in a trace to its entry, in the order of the entries.
fn waits(trace: &Trace) -> Vec<f64> {
    let mut asked = vec![0.0; trace.size as usize];
    let mut waits = Vec::new();
    for event in &trace.events {
        match event.what {
            EventKind::Acquire(_) => asked[event.node.index()] = event.at,
            EventKind::Enter => waits.push(event.at - asked[event.node.index()]),
            _ => {}
        }
    }
    waits
}

/// The messages sent: sender, receiver and text.
fn sends(trace: &Trace) -> impl Iterator<Item = (NodeId, NodeId, &str)> {
    trace.events.iter().filter_map(|event| match &event.what {
        EventKind::Send { to, message, .. } => Some((event.node, *to, message.as_str())),
        _ => None,
    })
}
