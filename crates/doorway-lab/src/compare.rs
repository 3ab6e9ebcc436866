//! Measures algorithms side by side, over a range of sizes, loads or delays, on all cores.

use std::fmt::Write as _;
use std::str::FromStr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use doorway_core::{Claim, Group, Info};
use serde::Serialize;

use crate::erased::AnyAlgorithm;
use crate::plot::Series;
use crate::simulate::{Distribution, Options, Report, Simulation, Workload};

/// The quantity that changes from point to point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweep {
    /// The number of nodes.
    Size,
    /// The mean time between two visits of a client, in message delays: the longer, the lighter
    /// the load.
    Load,
    /// The message delay, as a multiple of the time inside.
    Delay,
}

impl Sweep {
    /// The points that are measured if none are given.
    pub fn default_points(self) -> Vec<f64> {
        match self {
            Self::Size => vec![3.0, 7.0, 13.0, 21.0, 31.0, 57.0, 100.0],
            Self::Load => vec![0.1, 1.0, 10.0, 30.0, 100.0, 300.0, 1_000.0, 10_000.0, 100_000.0],
            Self::Delay => vec![0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0],
        }
    }

    /// The label of the axis.
    pub fn label(self) -> &'static str {
        match self {
            Self::Size => "nodes",
            Self::Load => "mean think time, in message delays",
            Self::Delay => "message delay, as a multiple of the time inside",
        }
    }
}

impl FromStr for Sweep {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "n" => Ok(Self::Size),
            "load" => Ok(Self::Load),
            "delay" => Ok(Self::Delay),
            _ => Err(format!("'{text}' is not a sweep: say n, load or delay")),
        }
    }
}

/// A comparison to measure.
pub struct Plan<'a> {
    /// The algorithms.
    pub algorithms: Vec<AnyAlgorithm>,
    /// The quantity that changes.
    pub sweep: Sweep,
    /// The points at which it is measured.
    pub points: Vec<f64>,
    /// The number of nodes, unless that is what changes.
    pub size: usize,
    /// Makes the options of a run for an algorithm and a size; the sweep then changes its own part.
    pub options: &'a (dyn Fn(&Info, usize) -> Result<Options, String> + Sync),
}

/// One point of one curve.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The point at which it was measured.
    pub x: f64,
    /// The figures of the run.
    #[serde(flatten)]
    pub report: Report,
    /// The messages per entry that the paper claims at this load; where it gives no mean, its upper
    /// bound.
    pub formula: Option<f64>,
    /// The claim as a formula.
    pub formula_text: Option<String>,
}

/// Measure every point on `threads` threads. After each, `progress` gets the numbers of points that
/// are done and of all points.
///
/// The rows are in the order of the plan, however many threads there are.
pub fn run(
    plan: &Plan<'_>,
    threads: usize,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Vec<Row>, String> {
    let points = plan.points.len();
    let total = plan.algorithms.len() * points;
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let rows = Mutex::new(vec![None; total]);
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, total.max(1)) {
            scope.spawn(|| {
                loop {
                    let job = next.fetch_add(1, Ordering::Relaxed);
                    if job >= total {
                        break;
                    }
                    let row = point(plan, plan.algorithms[job / points], plan.points[job % points]);
                    rows.lock().expect("no thread panics with the rows")[job] = Some(row);
                    progress(done.fetch_add(1, Ordering::Relaxed) + 1, total);
                }
            });
        }
    });
    let rows = rows.into_inner().expect("no thread panics with the rows");
    rows.into_iter().map(|row| row.expect("every job was done")).collect()
}

/// The options of the run behind one point of the curve of an algorithm.
pub fn options(plan: &Plan<'_>, algorithm: AnyAlgorithm, x: f64) -> Result<Options, String> {
    let info = algorithm.info();
    let size = if plan.sweep == Sweep::Size { x as usize } else { plan.size };
    let mut options =
        (plan.options)(info, size).map_err(|error| format!("{} at {x}: {error}", info.name))?;
    match plan.sweep {
        Sweep::Size => {}
        Sweep::Load => options.workload = Workload::Closed { think: Distribution::Exponential(x) },
        Sweep::Delay => options.inside = Distribution::Constant(1.0 / x),
    }
    Ok(options)
}

fn point(plan: &Plan<'_>, algorithm: AnyAlgorithm, x: f64) -> Result<Row, String> {
    let options = options(plan, algorithm, x)?;
    let info = algorithm.info();
    let formula = formula(info, &options.group, &options.workload);
    let run = Simulation::new(algorithm, options);
    let run = run.map_err(|error| format!("{} at {x}: {error}", info.name))?;
    let (formula_text, formula) = formula.unzip();
    Ok(Row { x, report: run.run(), formula, formula_text })
}

/// The messages per entry that the paper claims, as text and as a number: the mean at light load if
/// clients come rarely or one at a time, else the mean at heavy load. If the paper gives no mean,
/// its upper bound.
fn formula(info: &Info, group: &Group, workload: &Workload) -> Option<(String, f64)> {
    let light = match workload {
        Workload::Serial { .. } => true,
        Workload::Closed { think } => think.mean() > 50.0 * f64::from(group.size()),
        Workload::Open { .. } | Workload::Scripted(_) => false,
    };
    let Claim { least, most, light: light_mean, heavy: heavy_mean, .. } = info.messages;
    let constant = (least.text == most.text).then_some(most);
    if let Some(mean) = (if light { light_mean } else { heavy_mean }).or(constant) {
        return Some((mean.text.to_owned(), (mean.of)(group)));
    }
    let bound = (most.of)(group);
    bound.is_finite().then(|| (format!("at most {}", most.text), bound))
}

/// The curves of a plot, one for each algorithm: `figure` of each row. With `formulas`, the claims
/// are drawn beside the measurements, and these have their intervals.
pub fn curves(
    rows: &[Row],
    points: usize,
    figure: &dyn Fn(&Row) -> f64,
    formulas: bool,
) -> Vec<Series> {
    let mut series = Vec::new();
    for curve in rows.chunks(points.max(1)) {
        let errors = curve.iter().map(|row| row.report.messages_ci);
        series.push(Series {
            name: curve[0].report.algorithm.to_owned(),
            points: curve.iter().map(|row| (row.x, figure(row))).collect(),
            errors: if formulas { errors.collect() } else { Vec::new() },
            dashed: false,
        });
        for formula in curve.chunk_by(|one, other| one.formula_text == other.formula_text) {
            if let Some(name) = formula[0].formula_text.clone().filter(|_| formulas) {
                let points = formula.iter().filter_map(|row| Some((row.x, row.formula?)));
                let points = points.collect();
                series.push(Series { name, points, errors: Vec::new(), dashed: true });
            }
        }
    }
    series
}

/// The rows as comma-separated values.
pub fn csv(rows: &[Row]) -> String {
    let mut text = String::from(
        "algorithm,x,n,entries,seed,messages_per_entry,messages_ci,messages_min,messages_max,\
         formula,bytes_per_entry,sync_delay,response_time,throughput,jain,overtakes_max,queue_mean,\
         load_mean,load_max,events,violations\n",
    );
    let optional = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    for row in rows {
        let r = &row.report;
        let _ = writeln!(
            text,
            "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
            r.algorithm,
            row.x,
            r.n,
            r.entries,
            r.seed,
            r.messages_per_entry,
            r.messages_ci,
            r.messages_min,
            r.messages_max,
            optional(row.formula),
            r.bytes_per_entry,
            optional(r.sync_delay),
            optional(r.response_time),
            r.throughput,
            r.jain,
            r.overtakes_max,
            r.queue_mean,
            r.load_mean,
            r.load_max,
            r.events,
            r.violations,
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use doorway_core::Shape;

    use super::*;
    use crate::simulate::Delay;

    fn named(name: &str) -> AnyAlgorithm {
        AnyAlgorithm::named(name).expect("an algorithm of the list")
    }

    #[test]
    fn the_number_of_threads_does_not_change_the_results() {
        let options = |info: &Info, size: usize| {
            let mut options = Options::new(info, info.group(size, &Shape::default()).unwrap());
            options.workload = Workload::Closed { think: Distribution::Exponential(3.0) };
            options.delay = Delay::Distribution(Distribution::Exponential(1.0));
            options.entries = 200;
            Ok(options)
        };
        let plan = Plan {
            algorithms: ["ricart-agrawala", "le-lann"].map(named).to_vec(),
            sweep: Sweep::Size,
            points: vec![2.0, 5.0, 9.0],
            size: 0,
            options: &options,
        };
        let one = run(&plan, 1, &|_, _| {}).unwrap();
        let told = AtomicUsize::new(0);
        let four = run(&plan, 4, &|_, _| {
            told.fetch_add(1, Ordering::Relaxed);
        })
        .unwrap();
        assert_eq!(one, four);
        assert_eq!(told.into_inner(), 6);
        assert_eq!(csv(&one).lines().count(), 7);
        let columns = |line: &str| line.split(',').count();
        assert!(csv(&one).lines().all(|line| columns(line) == 21));
    }
}
