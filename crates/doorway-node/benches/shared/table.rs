//! The results of benchmarks of locks, as a table for people and as JSON for programs.
//!
//! The benchmarks of the page and of members print lines of single figures instead
//! (`doorway-page/benches/shared/figures.rs`): they have none of these columns.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::baton::Load;
use super::pin::Placement;
use super::samples::Samples;

const COLUMNS: usize = 10;

/// Print what is being measured, because it takes a while.
pub(crate) fn progress(what: &str) {
    eprintln!("... {what}");
}

/// All rows in order.
#[derive(Default)]
pub(crate) struct Table {
    rows: Vec<Row>,
    notes: Vec<String>,
}

/// One result, with the columns that it has.
#[derive(Default)]
pub(crate) struct Row {
    what: String,
    placement: Option<Placement>,
    times: Option<Samples>,
    per_second: Option<f64>,
    messages: Option<f64>,
    allocations: Option<f64>,
    bytes: Option<f64>,
    fairness: Option<f64>,
    /// A result with this name and placement.
    ratios: Vec<(f64, &'static str)>,
    goal: Option<String>,
}

impl Row {
    pub(crate) fn of(what: &str) -> Self {
        Self { what: what.to_owned(), ..Self::default() }
    }

    pub(crate) fn at(self, placement: Placement) -> Self {
        Self { placement: Some(placement), ..self }
    }

    pub(crate) fn times(self, times: Samples) -> Self {
        Self { times: Some(times), ..self }
    }

    pub(crate) fn per_second(self, rate: f64) -> Self {
        Self { per_second: Some(rate), ..self }
    }

    /// The result of clients that competed for one lock.
    pub(crate) fn load(self, load: Load) -> Self {
        self.per_second(load.rate()).times(load.delays)
    }

    pub(crate) fn messages(self, per_grant: f64) -> Self {
        Self { messages: Some(per_grant), ..self }
    }

    pub(crate) fn allocations(self, per_pair: f64) -> Self {
        Self { allocations: Some(per_pair), ..self }
    }

    pub(crate) fn bytes(self, each: f64) -> Self {
        Self { bytes: Some(each), ..self }
    }

    /// Jain's index of the shares that clients had.
    pub(crate) fn fairness(self, index: f64) -> Self {
        Self { fairness: Some(index), ..self }
    }

    /// The ratio of its median to another one.
    pub(crate) fn against(self, to: &'static str, nanoseconds: f64) -> Self {
        let median = self.times.as_ref().map_or(f64::NAN, Samples::median);
        self.ratio(to, median / nanoseconds)
    }

    /// How many times another value it is.
    pub(crate) fn ratio(mut self, to: &'static str, times: f64) -> Self {
        self.ratios.push((times, to));
        self
    }

    /// The goal.
    pub(crate) fn goal(self, goal: &str) -> Self {
        Self { goal: Some(goal.to_owned()), ..self }
    }

    /// The goal, and whether it is met.
    pub(crate) fn judged(self, goal: &str, met: bool) -> Self {
        self.goal(&format!("{goal}: {}", if met { "met" } else { "MISSED" }))
    }

    fn cells(&self) -> [String; COLUMNS] {
        let number = |value: Option<f64>, digits| {
            value.map_or_else(String::new, |value| format!("{value:.digits$}"))
        };
        let share = |share| self.times.as_ref().map(|times| times.share(share));
        let ratios = self.ratios.iter().map(|(times, to)| format!("{times:.2} x {to}"));
        let ratios: Vec<_> = ratios.collect();
        [
            self.what.clone(),
            self.placement.map_or_else(String::new, |placement| placement.to_string()),
            share(0.5).map_or_else(String::new, time),
            share(0.99).map_or_else(String::new, time),
            number(self.per_second, 0),
            number(self.messages, 2),
            number(self.allocations.or(self.bytes), 0),
            number(self.fairness, 4),
            ratios.join(", "),
            self.goal.clone().unwrap_or_default(),
        ]
    }

    fn json(&self) -> Value {
        let mut fields = Map::new();
        let mut field = |name: &str, value: Option<Value>| {
            fields.extend(value.map(|value| (name.to_owned(), value)));
        };
        field("what", Some(json!(self.what)));
        field("placement", self.placement.map(|placement| json!(placement.to_string())));
        if let Some(times) = &self.times {
            field("samples", Some(json!(times.count())));
            field("p50_ns", Some(json!(times.median())));
            field("p99_ns", Some(json!(times.share(0.99))));
        }
        field("per_second", self.per_second.map(Value::from));
        field("messages_per_grant", self.messages.map(Value::from));
        field("allocations_per_pair", self.allocations.map(Value::from));
        field("bytes_each", self.bytes.map(Value::from));
        field("jain_index", self.fairness.map(Value::from));
        let ratios = self.ratios.iter().map(|(times, to)| json!({ "times": times, "to": to }));
        field("ratios", (!self.ratios.is_empty()).then(|| ratios.collect()));
        field("goal", self.goal.as_deref().map(Value::from));
        Value::Object(fields)
    }
}

impl Table {
    const HEADING: [&str; COLUMNS] = [
        "what",
        "placement",
        "p50",
        "p99",
        "per second",
        "messages",
        "allocs, bytes",
        "Jain",
        "ratio",
        "goal",
    ];

    pub(crate) fn add(&mut self, row: Row) {
        self.rows.push(row);
    }

    pub(crate) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// A Markdown table that is readable as plain text. Messages are per grant, allocations per
    /// pair, and bytes per name. Empty columns are left out.
    pub(crate) fn text(&self) -> String {
        let mut lines = vec![Self::HEADING.map(str::to_owned)];
        lines.extend(self.rows.iter().map(Row::cells));
        let width = |at: usize| lines.iter().map(|line| line[at].len()).max().unwrap_or_default();
        let widths: Vec<usize> = (0..COLUMNS).map(width).collect();
        let used: Vec<bool> =
            (0..COLUMNS).map(|at| lines[1..].iter().any(|line| !line[at].is_empty())).collect();
        lines.insert(1, std::array::from_fn(|at| "-".repeat(widths[at])));
        let mut text = String::new();
        for line in lines {
            for (at, (cell, width)) in line.iter().zip(&widths).enumerate() {
                if !used[at] {
                    continue;
                }
                let right = (2..8).contains(&at);
                let padding = " ".repeat(width - cell.len());
                let (before, after) =
                    if right { (padding, String::new()) } else { (String::new(), padding) };
                let _ = write!(text, "| {before}{cell}{after} ");
            }
            text += "|\n";
        }
        for note in &self.notes {
            let _ = writeln!(text, "\n{note}");
        }
        text
    }

    pub(crate) fn json(&self) -> String {
        let rows: Vec<Value> = self.rows.iter().map(Row::json).collect();
        format!("{:#}\n", json!({ "rows": rows, "notes": self.notes }))
    }
}

/// A time with its unit.
fn time(nanoseconds: f64) -> String {
    match nanoseconds {
        small if small < 1e3 => format!("{small:.0} ns"),
        middle if middle < 1e6 => format!("{:.1} us", middle / 1e3),
        long => format!("{:.1} ms", long / 1e6),
    }
}
