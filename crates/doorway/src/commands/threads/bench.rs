//! `doorway threads bench`: measures the locks, beside the locks of other crates in the same run.

use std::env::consts::{ARCH, OS};
use std::fs;
use std::io::{self, Write};
use std::time::Duration;

use anyhow::ensure;
use doorway_threads::algorithms::Entry;
use doorway_threads::bench::{Contender, Crowd, Plan, Row, Samples, Spread};
use doorway_threads::{Bypass, Info, Primitive};
use serde_json::{Value, json};

use super::bypass_values;
use crate::checking::{Interrupt, cores};
use crate::commands::print_json;
use crate::failure::{NotExhausted, Usage, unless_closed};
use crate::names;
use crate::progress::Progress;
use crate::table::Table;

/// Measure the locks, beside those of std and of other crates in the same run
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Measure these locks [default: all]
    #[arg(value_name = "NAME", value_parser = names::thread_algorithms())]
    #[arg(hide_possible_values = true)]
    locks: Vec<&'static Entry>,
    /// Take about this number of seconds in all
    #[arg(long, value_name = "S", default_value_t = 60, value_parser = parse_seconds)]
    seconds: u64,
    /// Take a few seconds only, to see that everything works
    #[arg(long, conflicts_with = "seconds")]
    quick: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The number of runs of each measurement.
const RUNS: usize = 5;
/// The numbers of threads that compete.
const CROWDS: [usize; 3] = [1, 2, 4];
/// The seconds of a measurement by default, and of a quick one.
const QUICK: u64 = 3;
/// The shortest run. A shorter one would measure how threads begin and end.
const SHORTEST: Duration = Duration::from_millis(1);

fn parse_seconds(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| (1..=86_400).contains(number));
    number.ok_or_else(|| "say 1 to 86400 seconds".to_owned())
}

/// Measure and print. It is a failure if a lock lets two threads in at once, or breaks its claim on
/// overtaking.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let plan = args.plan()?;
    let interrupt = Interrupt::listen()?;
    let mut made = 0;
    let rows = {
        let progress = Progress::new(plan.total() as u64, "runs");
        plan.run(&mut |done| {
            progress.at(done as u64);
            made = done;
            !interrupt.is_raised()
        })?
    };
    let told = if args.json {
        print_json(out, &record(&plan, &rows))
    } else {
        Ok(print(out, &plan, &rows)?)
    };
    unless_closed(told.and_then(|()| Ok(out.flush()?)))?;
    let stopped = || format!("stopped by Ctrl-C after {made} of {} runs", plan.total());
    ensure!(!interrupt.is_raised(), NotExhausted(stopped()));
    let overtaken = |row: &Row| row.crowds.iter().find_map(|crowd| exceeding(row, crowd));
    match rows.iter().find_map(overtaken) {
        Some(what) => Err(anyhow::anyhow!("{what}")),
        None => Ok(()),
    }
}

impl Args {
    fn plan(&self) -> Result<Plan, Usage> {
        if let Some(model) = self.locks.iter().find(|entry| !entry.lock) {
            return Err(Usage(format!(
                "{} is refuted, so there is no lock of it to measure",
                model.info.name
            )));
        }
        let chosen = self.locks.iter().map(|entry| Contender::Own(&entry.info));
        let contenders = match self.locks.as_slice() {
            [] => Contender::all(),
            _ => chosen.chain(Contender::OTHERS).collect(),
        };
        let length = Duration::ZERO;
        let plan = Plan { contenders, crowds: CROWDS.to_vec(), runs: RUNS, length };
        let seconds = if self.quick { QUICK } else { self.seconds };
        let length = Duration::from_secs(seconds) / plan.total() as u32;
        Ok(Plan { length: length.max(SHORTEST), ..plan })
    }
}

/// What a lock declares whose steps can be observed, so that overtaking is counted from the right
/// step on.
fn watched(row: &Row) -> Option<&'static Info> {
    row.contender.info().filter(|info| info.primitive != Primitive::Semaphore)
}

/// The claimed bound on overtaking, by all others together.
fn bound(row: &Row, crowd: &Crowd) -> Option<Bypass> {
    let claims = watched(row)?.claims;
    (crowd.threads > 1).then(|| (claims.bypass)(crowd.threads))
}

/// Whether a thread was overtaken more often than claimed. What was seen is never more than what
/// happened.
fn exceeding(row: &Row, crowd: &Crowd) -> Option<String> {
    let Some(Bypass::AtMost { all, .. }) = bound(row, crowd) else { return None };
    let (name, overtaken, threads) = (row.contender.name(), crowd.overtaken, crowd.threads);
    let many = overtaken > u64::from(all);
    many.then(|| {
        format!("{name}: one of {threads} threads was overtaken {overtaken} times, not {all}")
    })
}

/// The moment from which overtaking was counted.
fn since(row: &Row) -> &'static str {
    watched(row).map_or("call", |info| info.claims.since.name())
}

/// The name of the processor, if the system tells it.
fn processor() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(": ")?.1.to_owned())
}

/// Whether this program was built with optimisation.
const OPTIMISED: bool = !cfg!(debug_assertions);

fn record(plan: &Plan, rows: &[Row]) -> Value {
    json!({
        "machine": {
            "cores": cores(),
            "arch": ARCH,
            "os": OS,
            "processor": processor(),
            "optimised": OPTIMISED,
        },
        "runs": plan.runs,
        "seconds_per_run": plan.length.as_secs_f64(),
        "locks": rows.iter().map(record_of).collect::<Vec<_>>(),
    })
}

fn spread(samples: &Samples) -> Value {
    let Some(Spread { median, least, most }) = samples.spread() else { return Value::Null };
    json!({ "median": median, "least": least, "most": most })
}

fn record_of(row: &Row) -> Value {
    let crowd = |crowd: &Crowd| {
        json!({
            "threads": crowd.threads,
            "entries_per_second": spread(&crowd.throughput),
            "jain": spread(&crowd.jain),
            "wait_ns": {
                "p50": spread(&crowd.p50),
                "p99": spread(&crowd.p99),
                "p99.9": spread(&crowd.p999),
            },
            "overtaken": (crowd.threads > 1).then_some(crowd.overtaken),
            "overtaken_since": since(row),
            "bypass_bound": bypass_values(bound(row, crowd)).0,
        })
    };
    json!({
        "name": row.contender.name(),
        "own": row.contender.info().is_some(),
        "alone_ns": spread(&row.alone),
        "crowds": row.crowds.iter().map(crowd).collect::<Vec<_>>(),
    })
}

/// A number with three significant digits.
fn digits(figure: f64) -> String {
    let decimals = match figure {
        100.0.. => 0,
        10.0.. => 1,
        1.0.. => 2,
        _ => 3,
    };
    format!("{figure:.decimals$}")
}

/// A median with its spread, in a unit.
fn cell(samples: &Samples, unit: f64) -> String {
    samples.spread().map_or_else(
        || "-".to_owned(),
        |Spread { median, least, most }| {
            let [median, least, most] = [median, least, most].map(|figure| digits(figure / unit));
            format!("{median} ({least} to {most})")
        },
    )
}

const LEGEND: &str = "
Waits include the time to read the clock. Overtaken: the most entries of others that were seen
while a thread waited; there may have been more. For locks of other crates they are counted from
the call on.
";

fn print(out: &mut dyn Write, plan: &Plan, rows: &[Row]) -> io::Result<()> {
    let processor = processor().map_or(String::new(), |name| format!(", {name}"));
    writeln!(out, "{} cores, {ARCH}, {OS}{processor}", cores())?;
    let (runs, length) = (plan.runs, plan.length.as_secs_f64() * 1e3);
    writeln!(
        out,
        "The medians of {runs} runs of {length:.1} ms each (from the least to the most)."
    )?;
    if !OPTIMISED {
        writeln!(out, "Built without optimisation: these figures mean nothing.")?;
    }
    writeln!(out, "\nNanoseconds to enter and leave alone, and million entries per second\n")?;
    let crowds = plan.crowds.iter().map(|threads| match threads {
        1 => "1 thread".to_owned(),
        many => format!("{many} threads"),
    });
    let heading = ["lock", "alone"].map(str::to_owned);
    let mut table = Table::new(heading.into_iter().chain(crowds));
    for row in rows {
        let name = row.contender.name().to_owned();
        let crowds = row.crowds.iter().map(|crowd| cell(&crowd.throughput, 1e6));
        table.row([name, cell(&row.alone, 1.0)].into_iter().chain(crowds));
    }
    table.print(out, 2)?;
    for threads in plan.crowds.iter().copied().filter(|threads| *threads > 1) {
        print_waits(out, rows, threads)?;
    }
    out.write_all(LEGEND.as_bytes())
}

fn print_waits(out: &mut dyn Write, rows: &[Row], threads: usize) -> io::Result<()> {
    writeln!(out, "\nThe wait of {threads} threads in microseconds, and how fair it was\n")?;
    let heading = ["lock", "p50", "p99", "p99.9", "Jain", "overtaken", "bound"];
    let mut table = Table::new(heading.map(str::to_owned));
    for row in rows {
        let Some(crowd) = row.crowds.iter().find(|crowd| crowd.threads == threads) else {
            continue;
        };
        table.row([
            row.contender.name().to_owned(),
            cell(&crowd.p50, 1e3),
            cell(&crowd.p99, 1e3),
            cell(&crowd.p999, 1e3),
            cell(&crowd.jain, 1.0),
            crowd.overtaken.to_string(),
            match bound(row, crowd) {
                None => "-".to_owned(),
                Some(Bypass::Unbounded) => "unbounded".to_owned(),
                Some(Bypass::AtMost { all, .. }) => all.to_string(),
            },
        ]);
    }
    table.print(out, 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorway_threads::algorithms::ALL;

    #[test]
    fn figures_have_three_digits() {
        let figures = [12345.6, 123.4, 12.34, 1.234, 0.1234];
        assert_eq!(figures.map(digits), ["12346", "123", "12.3", "1.23", "0.123"]);
    }

    #[test]
    fn more_overtaking_than_claimed_is_noticed() {
        let bounded =
            |info: &&Info| matches!((info.claims.bypass)(2), Bypass::AtMost { all: 1, .. });
        let info = ALL.iter().map(|entry| &entry.info).find(bounded).unwrap();
        let contender = Contender::Own(info);
        let row = Row { contender, alone: Samples::default(), crowds: Vec::new() };
        let crowd = |overtaken| Crowd { threads: 2, overtaken, ..Crowd::default() };
        assert_eq!(exceeding(&row, &crowd(1)), None);
        let what = format!("{}: one of 2 threads was overtaken 2 times, not 1", info.name);
        assert_eq!(exceeding(&row, &crowd(2)), Some(what));
        let other = Row { contender: Contender::Std, ..row };
        assert_eq!(exceeding(&other, &crowd(1000)), None);
    }
}
