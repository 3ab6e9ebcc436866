//! `doorway compare`: measure algorithms side by side, and print a table, values and a plot.

use std::io::Write;
use std::path::PathBuf;

use clap::ValueEnum;
use doorway_core::Info;
use doorway_core::algorithms::{ALL, Entry};
use doorway_lab::compare::{self, Plan, Row, Sweep};
use doorway_lab::numbers::short;
use doorway_lab::plot::Plot;
use doorway_lab::simulate::{Options, Workload};
use doorway_protocol::text::capitalized;

use super::print_json;
use crate::check_args::parse_threads;
use crate::failure::Usage;
use crate::files;
use crate::group_args::{BeginArgs, ShapeArgs, parse_size};
use crate::names;
use crate::progress::Progress;
use crate::rerun;
use crate::run_args::{RunArgs, parse_entries};
use crate::table::Table;
use crate::wrap;

const EXAMPLES: &str = "\
Examples:
  doorway compare ricart-agrawala suzuki-kasami maekawa
  doorway compare ricart-agrawala carvalho-roucairol --sweep load --plot load.svg";

/// Compare algorithms over a range of sizes, loads or delays, on all cores
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The algorithms to compare [default: all that are not refuted, with --begin those that can
    /// begin so]
    #[arg(value_parser = names::algorithms(), hide_possible_values = true)]
    algorithms: Vec<&'static Entry>,
    /// Choose what changes: n (nodes), load (think time) or delay (relative to the time inside)
    #[arg(long, value_name = "n|load|delay", default_value = "n")]
    sweep: Sweep,
    /// Choose the points to measure, as in 3,7,13
    #[arg(long, value_name = "POINTS", value_delimiter = ',', value_parser = parse_point)]
    points: Option<Vec<f64>>,
    /// Set the number of nodes for a sweep over load or delay [default: 16]
    #[arg(short = 'n', value_name = "N", value_parser = parse_size)]
    nodes: Option<usize>,
    /// Set the number of entries measured for each point
    #[arg(long, value_name = "E", default_value_t = 3_000, value_parser = parse_entries)]
    entries: u64,
    /// Choose the figure that table and plot show
    #[arg(long, value_name = "FIGURE", default_value = "messages")]
    metric: Metric,
    /// Write a plot to FILE.svg, with the papers' formulas as dashes
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// Write every figure of every point to FILE.csv
    #[arg(long, value_name = "FILE.csv")]
    csv: Option<PathBuf>,
    /// Set the number of threads [default: one for each core]
    #[arg(long, value_name = "T", value_parser = parse_threads)]
    threads: Option<usize>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    shape: ShapeArgs,
    #[command(flatten)]
    begin: BeginArgs,
}

/// The number of nodes of a sweep over load or delay, unless a number is given.
const NODES: usize = 16;

/// A figure to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Metric {
    Messages,
    Bytes,
    SyncDelay,
    ResponseTime,
    Throughput,
    Jain,
    Overtakes,
    LoadMax,
}

impl Metric {
    fn of(self, row: &Row) -> f64 {
        let r = &row.report;
        match self {
            Self::Messages => r.messages_per_entry,
            Self::Bytes => r.bytes_per_entry,
            Self::SyncDelay => r.sync_delay.unwrap_or(f64::NAN),
            Self::ResponseTime => r.response_time.unwrap_or(f64::NAN),
            Self::Throughput => r.throughput,
            Self::Jain => r.jain,
            Self::Overtakes => r.overtakes_max as f64,
            Self::LoadMax => r.load_max,
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Messages => "messages per entry",
            Self::Bytes => "bytes per entry",
            Self::SyncDelay => "synchronisation delay, in message delays",
            Self::ResponseTime => "response time, in message delays",
            Self::Throughput => "entries per message delay",
            Self::Jain => "Jain's index of fairness",
            Self::Overtakes => "longest overtaking, in entries",
            Self::LoadMax => "messages handled by the busiest node per entry",
        }
    }
}

/// Makes the options of a run, for an algorithm and a number of nodes.
type OptionsOf<'a> = dyn Fn(&Info, usize) -> Result<Options, String> + Sync + 'a;

/// Measure, and print and write the results.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let traffic = args.run.traffic()?;
    let options = |info: &Info, size: usize| {
        let group = args.shape.group(info, size).map_err(|error| error.to_string())?;
        Ok(args.run.options(&traffic, info, group, args.entries))
    };
    if let Some(file) = &args.plot {
        files::ensure_svg(file, "a plot")?;
    }
    let plan = args.plan(&options)?;
    for file in args.plot.iter().chain(&args.csv) {
        files::ensure_writable(file)?;
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let rows = {
        let total = plan.algorithms.len() * plan.points.len();
        let progress = Progress::new(total as u64, "points");
        let tell = |done: usize, _: usize| progress.at(done as u64);
        compare::run(&plan, args.threads.unwrap_or(cores), &tell).map_err(Usage)?
    };
    if let Some(file) = &args.csv {
        files::write(file, &compare::csv(&rows))?;
    }
    if let Some(file) = &args.plot {
        files::write(file, &args.plot_of(&plan, &traffic.workload, &rows).render())?;
    }
    if args.json {
        print_json(out, &rows)?;
    } else {
        print_table(out, args.metric, &plan, &rows)?;
        for names in alike(args.metric, &rows, plan.points.len()) {
            let names = names.join(" and ");
            let advice = match plan.sweep {
                Sweep::Load => "another --metric or -n may tell them apart",
                _ => "--sweep load shows where they differ, if they do",
            };
            writeln!(out)?;
            let note = format!("{names} differ by less than 2 % at every point; {advice}.");
            wrap::print_prose(out, 0, &note)?;
        }
    }
    let bad = rows.iter().find_map(|row| Some((row, row.report.violation.as_ref()?)));
    if let Some((row, violation)) = bad {
        out.flush()?;
        let what = format!("{} at {}: {violation}", row.report.algorithm, row.x);
        return Err(rerun::failure(what, args.run.seed));
    }
    Ok(())
}

impl Args {
    fn plan<'a>(&self, options: &'a OptionsOf<'a>) -> Result<Plan<'a>, Usage> {
        let begun = |entry: &Entry| self.begin.algorithm(entry);
        let algorithms = if self.algorithms.is_empty() {
            let sound = ALL.iter().filter(|entry| entry.info.refuted.is_none());
            sound.filter_map(|entry| begun(entry).ok()).collect()
        } else {
            self.algorithms.iter().map(|entry| begun(entry)).collect::<Result<Vec<_>, _>>()?
        };
        let points = match (&self.points, self.shape.quorums_by_hand()) {
            (Some(points), _) => points.clone(),
            // Quorums by hand suit a single size.
            (None, Some(size)) if self.sweep == Sweep::Size => vec![size as f64],
            (None, _) => self.sweep.default_points(),
        };
        let whole = |point: &f64| point.fract() == 0.0 && parse_size(&point.to_string()).is_ok();
        let fits = |point: &f64| match self.sweep {
            Sweep::Size => whole(point),
            Sweep::Load => (0.0..=1e9).contains(point),
            Sweep::Delay => (1e-6..=1e6).contains(point),
        };
        if let Some(point) = points.iter().find(|point| !fits(point)) {
            let label = self.sweep.label();
            let reason = format!("{point} cannot be a point of a sweep over {label}");
            return Err(Usage(reason));
        }
        if self.sweep == Sweep::Load && self.run.describes_load() {
            return Err(Usage("a sweep over load sets the think time itself".into()));
        }
        Ok(Plan {
            algorithms,
            sweep: self.sweep,
            points,
            size: self.shape.size(self.nodes, NODES),
            options,
        })
    }

    /// The figure of a point; NaN if its run failed.
    fn drawn(&self, row: &Row) -> f64 {
        if row.report.violation.is_some() { f64::NAN } else { self.metric.of(row) }
    }

    fn plot_of(&self, plan: &Plan<'_>, workload: &Workload, rows: &[Row]) -> Plot {
        let messages = self.metric == Metric::Messages;
        let drawn = |row: &Row| self.drawn(row);
        let series = compare::curves(rows, plan.points.len(), &drawn, messages);
        let fixed = match (plan.sweep, workload) {
            (Sweep::Load | Sweep::Delay, _) => format!(", N = {}", plan.size),
            (Sweep::Size, Workload::Closed { think }) => format!(", think time {think}"),
            (Sweep::Size, Workload::Serial { .. }) => ", one client at a time".to_owned(),
            (Sweep::Size, Workload::Open { rate }) => format!(", {rate} clients a delay and node"),
            (Sweep::Size, Workload::Scripted(_)) => String::new(),
        };
        Plot {
            title: format!("{}{fixed}", capitalized(self.metric.label())),
            x_label: plan.sweep.label().to_owned(),
            y_label: self.metric.label().to_owned(),
            x_log: plan.sweep != Sweep::Size,
            y_log: matches!(self.metric, Metric::Messages | Metric::ResponseTime | Metric::Bytes),
            series,
        }
    }
}

/// Parse a point of a sweep; the sweep checks its range.
fn parse_point(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| "say numbers with commas between them, as in 3,7,13".to_owned())
}

/// The groups of algorithms whose curves lie on each other: each differs from the first of its
/// group by less than 2 % at every point.
fn alike(metric: Metric, rows: &[Row], points: usize) -> Vec<Vec<&'static str>> {
    let close = |one: &Row, other: &Row| {
        let (one, other) = (metric.of(one), metric.of(other));
        (one - other).abs() <= 0.02 * one.abs().max(other.abs())
    };
    let mut groups: Vec<Vec<&[Row]>> = Vec::new();
    for curve in rows.chunks(points) {
        let same = |group: &&mut Vec<&[Row]>| {
            group[0].iter().zip(curve).all(|(one, other)| close(one, other))
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(curve),
            None => groups.push(vec![curve]),
        }
    }
    let names = |group: &Vec<&[Row]>| group.iter().map(|curve| curve[0].report.algorithm).collect();
    groups.iter().filter(|group| group.len() > 1).map(names).collect()
}

fn print_table(
    out: &mut dyn Write,
    metric: Metric,
    plan: &Plan<'_>,
    rows: &[Row],
) -> anyhow::Result<()> {
    writeln!(out, "{}, by {}\n", capitalized(metric.label()), plan.sweep.label())?;
    let points = plan.points.iter().map(|point| short(*point));
    let mut table = Table::new(std::iter::once("algorithm".to_owned()).chain(points));
    for curve in rows.chunks(plan.points.len()) {
        let name = curve[0].report.algorithm.to_owned();
        let values = curve.iter().map(|row| match metric.of(row) {
            _ if row.report.violation.is_some() => "failed".to_owned(),
            value if value.is_nan() => "-".to_owned(),
            value => short(value),
        });
        table.row(std::iter::once(name).chain(values));
        let mut texts: Vec<_> = curve.iter().filter_map(|row| row.formula_text.as_ref()).collect();
        texts.dedup();
        for text in texts.into_iter().filter(|_| metric == Metric::Messages) {
            let formula = |row: &Row| match row.formula {
                Some(value) if row.formula_text.as_ref() == Some(text) => short(value),
                _ => String::new(),
            };
            table.row(std::iter::once(format!("  {text}")).chain(curve.iter().map(formula)));
        }
    }
    Ok(table.print(out, 0)?)
}
