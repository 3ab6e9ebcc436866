//! `doorway simulate ALGORITHM`: one run and its figures.

use std::io::Write;
use std::time::Instant;

use doorway_core::algorithms::Entry;
use doorway_lab::AnyAlgorithm;
use doorway_lab::numbers::short;
use doorway_lab::simulate::{Options, Report, Simulation};
use serde::Serialize;

use super::print_json;
use crate::failure::Usage;
use crate::group_args::{Arrangement, BeginArgs, ShapeArgs, parse_size};
use crate::names;
use crate::progress::Progress;
use crate::rerun;
use crate::run_args::{RunArgs, parse_entries};
use crate::table::Table;

const EXAMPLES: &str = "\
Examples:
  doorway simulate ricart-agrawala -n 20
  doorway simulate maekawa -n 13 --think 1 --delay exponential:1 --seed 7";

/// Simulate an algorithm and measure messages, delays and fairness
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The algorithm
    #[arg(value_parser = names::algorithms(), hide_possible_values = true)]
    algorithm: &'static Entry,
    /// Set the number of nodes [default: 10]
    #[arg(short = 'n', value_name = "N", value_parser = parse_size)]
    nodes: Option<usize>,
    /// End the run after E entries [default: 10000, or as many as --requests has]
    #[arg(long, value_name = "E", value_parser = parse_entries)]
    entries: Option<u64>,
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

/// The number of nodes, unless a number is given.
const NODES: usize = 10;

/// The number of entries of a run, unless a number or a file is given.
const ENTRIES: u64 = 10_000;

#[derive(Serialize)]
struct Outcome {
    #[serde(flatten)]
    report: Report,
    /// What was chosen for the group, such as its quorums, and how its token begins.
    arrangement: Arrangement,
    events_per_second: f64,
}

/// Run the simulation and print the figures. A violation is a failure.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let info = &args.algorithm.info;
    let size = args.shape.size(args.nodes, NODES);
    let group = args.shape.group(info, size)?;
    let arrangement = Arrangement::new(&args.shape, args.begin, size);
    let traffic = args.run.traffic()?;
    let entries = args.entries.unwrap_or_else(|| traffic.entries(ENTRIES));
    let options = args.run.options(&traffic, info, group, entries);
    let (report, seconds) = timed(args.begin.algorithm(args.algorithm)?, options)?;
    let events_per_second = report.events as f64 / seconds.max(1e-9);
    let violation = report.violation.clone();
    if args.json {
        print_json(out, &Outcome { report, arrangement, events_per_second })?;
    } else {
        print_report(out, &report, &arrangement, events_per_second)?;
    }
    if let Some(violation) = violation {
        out.flush()?;
        return Err(rerun::failure(violation, args.run.seed));
    }
    Ok(())
}

/// Run to the end with progress. Returned beside the figures are the seconds that it took.
fn timed(algorithm: AnyAlgorithm, options: Options) -> Result<(Report, f64), Usage> {
    let progress = Progress::new(options.entries + options.warmup, "entries");
    let mut run = Simulation::new(algorithm, options).map_err(Usage)?;
    let begin = Instant::now();
    while !run.advance(1 << 18) {
        progress.at(run.entries_done());
    }
    Ok((run.report(), begin.elapsed().as_secs_f64()))
}

fn print_report(
    out: &mut dyn Write,
    report: &Report,
    arrangement: &Arrangement,
    rate: f64,
) -> anyhow::Result<()> {
    let r = report;
    let optional = |value: Option<f64>| value.map_or("-".to_owned(), short);
    let heading = format!("{}, N = {}{}, seed {}", r.algorithm, r.n, arrangement.clauses(), r.seed);
    writeln!(out, "{heading}: {} entries in {} message delays\n", r.entries, short(r.time))?;
    let mut table = Table::new(std::iter::empty());
    let messages = format!("{} ± {}", short(r.messages_per_entry), short(r.messages_ci));
    let rows = [
        ("messages per entry", messages, format!("{} to {}", r.messages_min, r.messages_max)),
        ("bytes per entry", short(r.bytes_per_entry), String::new()),
        ("synchronisation delay", optional(r.sync_delay), "message delays".into()),
        ("response time", optional(r.response_time), "message delays".into()),
        ("longest wait", short(r.longest_wait), "message delays".into()),
        ("throughput", short(r.throughput), "entries per message delay".into()),
        ("mean queue length", short(r.queue_mean), "waiting clients".into()),
        ("fairness", short(r.jain), "Jain's index, 1 is even".into()),
        ("longest overtaking", r.overtakes_max.to_string(), "entries".into()),
        (
            "messages handled by a node",
            short(r.load_mean),
            format!("per entry, mean; {} by the busiest", short(r.load_max)),
        ),
        ("events", r.events.to_string(), format!("{} a second", short((rate / 1e4).round() * 1e4))),
    ];
    let given_up = ("requests given up", r.withdrawn.to_string(), String::new());
    for (what, value, remark) in rows.into_iter().chain((r.withdrawn > 0).then_some(given_up)) {
        table.row([what.to_owned(), value, remark]);
    }
    Ok(table.print_body(out, 2)?)
}
