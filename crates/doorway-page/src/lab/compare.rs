//! Algorithms side by side: rows arrive one by one, and then the curves.

use doorway_core::{Info, Shape};
use doorway_lab::compare::{self, Plan, Row, Sweep};
use doorway_lab::plot::Plot;
use doorway_lab::simulate::{Distribution, Options, Simulation, Workload};
use doorway_lab::{AnyAlgorithm, Trace};
use serde::Deserialize;
use serde_json::json;

use super::jobs::Reader;
use super::problem::Problem;

/// How many algorithms, and how many nodes, one comparison has at most.
const MOST: (usize, f64) = (12, 100.0);

/// How many entries are measured for each point.
const ENTRIES: u64 = 1_000;

/// How many events of a run are shown.
const EVENTS: usize = 10_000;

/// The number of nodes where it does not change.
const NODES: usize = 16;

/// What the page asks for.
#[derive(Deserialize)]
pub(crate) struct Comparison {
    algorithms: Vec<String>,
    sweep: String,
    #[serde(default)]
    points: Vec<f64>,
    #[serde(default)]
    seed: u64,
}

/// A comparison that can be run.
pub(crate) struct Measurement {
    algorithms: Vec<AnyAlgorithm>,
    sweep: Sweep,
    points: Vec<f64>,
    seed: u64,
    command: String,
}

impl Comparison {
    /// Check what is asked for.
    pub(crate) fn plan(self) -> Result<Measurement, Problem> {
        let sweep: Sweep = self.sweep.parse()?;
        let known = |name: &String| {
            AnyAlgorithm::named(name).ok_or_else(|| format!("there is no algorithm '{name}'"))
        };
        let algorithms = self.algorithms.iter().map(known).collect::<Result<Vec<_>, _>>()?;
        if algorithms.is_empty() || algorithms.len() > MOST.0 {
            return Err(Problem::bad(format!("choose 1 to {} algorithms", MOST.0)));
        }
        let given = !self.points.is_empty();
        let points = if given { self.points } else { sweep.default_points() };
        let fits = |point: &f64| match sweep {
            Sweep::Size => point.fract() == 0.0 && (1.0..=MOST.1).contains(point),
            Sweep::Load | Sweep::Delay => (1e-3..=1e6).contains(point),
        };
        if points.len() > 20 || !points.iter().all(fits) {
            let why = format!("choose up to 20 points; a group has 1 to {} nodes", MOST.1);
            return Err(Problem::bad(why));
        }
        let names: Vec<_> = algorithms.iter().map(|algorithm| algorithm.info().name).collect();
        let (names, sweep_name, seed) = (names.join(" "), &self.sweep, self.seed);
        let mut command = format!(
            "doorway compare {names} --sweep {sweep_name} --entries {ENTRIES} --seed {seed}"
        );
        if given {
            let points: Vec<String> = points.iter().map(ToString::to_string).collect();
            command.push_str(" --points ");
            command.push_str(&points.join(","));
        }
        Ok(Measurement { algorithms, sweep, points, seed: self.seed, command })
    }
}

impl Measurement {
    /// Measure point by point, and tell each row. At the end come the plot and the table.
    pub(crate) fn run(&self, reader: &mut Reader) -> Result<(), String> {
        let seed = self.seed;
        let options = move |info: &Info, size| options(info, size, seed);
        let total = self.algorithms.len() * self.points.len();
        reader.tell(&json!({ "command": self.command }));
        let mut rows: Vec<Row> = Vec::new();
        for algorithm in &self.algorithms {
            for point in &self.points {
                let plan = Plan {
                    algorithms: vec![*algorithm],
                    sweep: self.sweep,
                    points: vec![*point],
                    size: NODES,
                    options: &options,
                };
                rows.extend(compare::run(&plan, 1, &|_, _| {})?);
                let line = json!({ "row": rows.last(), "done": rows.len(), "total": total });
                if !reader.tell(&line) {
                    return Ok(());
                }
            }
        }
        let figure = |row: &Row| row.report.messages_per_entry;
        let plot = Plot {
            title: "Messages per entry".to_owned(),
            x_label: self.sweep.label().to_owned(),
            y_label: "messages per entry".to_owned(),
            x_log: self.sweep != Sweep::Size,
            y_log: true,
            series: compare::curves(&rows, self.points.len(), &figure, true),
        };
        let (svg, places, csv) = (plot.render(), plot.places(), compare::csv(&rows));
        reader.tell(&json!({ "svg": svg, "places": places, "csv": csv }));
        Ok(())
    }

    /// What happened in the run behind the first point of the first curve: its first events.
    pub(crate) fn trace(&self) -> Result<Trace, String> {
        let seed = self.seed;
        let options = move |info: &Info, size| options(info, size, seed);
        let (sweep, points) = (self.sweep, self.points.clone());
        let (algorithm, x) = (self.algorithms[0], points[0]);
        let algorithms = vec![algorithm];
        let plan = Plan { algorithms, sweep, points, size: NODES, options: &options };
        let mut options = compare::options(&plan, algorithm, x)?;
        options.trace = EVENTS;
        let mut run = Simulation::new(algorithm, options)?;
        let mut ended = false;
        while !ended && run.trace().events.len() < EVENTS {
            ended = run.advance(1 << 10);
        }
        let mut trace = run.trace().clone();
        let point =
            if sweep == Sweep::Size { String::new() } else { format!(", {} {x}", sweep.label()) };
        let cut = if ended { String::new() } else { format!(", the first {EVENTS} events") };
        let name = algorithm.info().name;
        trace.title = format!("{name} n={}, seed {seed}{point}{cut}", trace.size);
        Ok(trace)
    }
}

/// The options of one run.
fn options(info: &Info, size: usize, seed: u64) -> Result<Options, String> {
    let group = info.group(size, &Shape::default()).map_err(|error| error.to_string())?;
    let mut options = Options::new(info, group);
    options.workload = Workload::Closed { think: Distribution::Exponential(10.0) };
    (options.seed, options.entries) = (seed, ENTRIES);
    Ok(options)
}
