//! `doorway problems show`: a run, a counterexample, or the longest way home.

use std::io::Write;
use std::path::PathBuf;

use doorway_lab::Trace;
use doorway_lab::diagram::{self, Format};
use doorway_lab::problems::buffer::Buffer;
use doorway_threads::Place as _;
use doorway_threads::ring::explore::{RingState, longest_way_home};
use doorway_threads::ring::{FourState, KState, ThreeState};
use doorway_threads::{Algorithm, problems};
use serde::Serialize;

use super::problem::{Problem, ProblemArgs, Question, RingKind};
use crate::checking::cores;
use crate::commands::print_json;
use crate::failure::Usage;
use crate::files;
use crate::names;
use crate::numbers::whole;
use crate::table::Table;
use crate::wrap;

const EXAMPLES: &str = "\
Examples:
  doorway problems show buffer-pair --seed 3
  doorway problems show buffer-naive -o naive.svg
  doorway problems show ring-three-state -n 5";

/// Show a run or the counterexample of a buffer, the longest way home of a ring, or the registers
/// and places of a problem between threads
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The problem (`doorway problems list` shows them all)
    #[arg(value_name = "NAME", value_parser = names::problems(), hide_possible_values = true)]
    problem: Problem,
    #[command(flatten)]
    options: ProblemArgs,
    /// Choose the random run of a buffer; the same seed gives the same run
    #[arg(long, value_name = "SEED", default_value_t = 1, value_parser = whole(0..=u64::MAX))]
    seed: u64,
    /// Take this number of random steps before everything arrives, at most 10000
    #[arg(long, value_name = "STEPS", default_value_t = 12, value_parser = parse_steps)]
    steps: usize,
    /// Write the run of a buffer to FILE; its ending chooses the format: .svg, .txt, .mmd
    /// (Mermaid), .shiviz, or .json (Perfetto) [default: text on standard output]
    #[arg(short = 'o', value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print JSON
    #[arg(long, conflicts_with = "output")]
    json: bool,
}

/// The most states of a check that looks for a counterexample to draw.
const LIMIT: u64 = 1_000_000;

pub(super) fn parse_steps(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=10_000).contains(number));
    number.ok_or_else(|| "say 1 to 10000 steps".to_owned())
}

/// Show the problem.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let question = args.options.question(&args.problem)?;
    if args.output.is_some() && !matches!(question, Question::Buffer(_)) {
        let text = format!("{} has no diagram; leave out -o", args.problem.name);
        return Err(Usage(text).into());
    }
    match question {
        Question::Buffer(buffer) => {
            let format = match &args.output {
                Some(path) => Format::from_path(path).map_err(|error| Usage(error.to_string()))?,
                None if args.json => Format::Chrome,
                None => Format::Text,
            };
            let refuted = args.problem.refuted().is_some();
            let picture = diagram::render(&drawn(&buffer, refuted, args)?, format);
            match &args.output {
                Some(path) => files::write(path, &picture)?,
                None if format == Format::Text => wrap::print_diagram(out, 0, &picture)?,
                None => out.write_all(picture.as_bytes())?,
            }
            Ok(())
        }
        Question::ThreadBuffer { .. } => steps::<problems::Delivery<2, 1>>(args.json, out),
        Question::ReadersWriters { .. } => steps::<problems::Turnstile<1>>(args.json, out),
        Question::Ring { kind, n, states, daemon } => {
            let daemon = daemon.daemon();
            let way = match kind {
                RingKind::K => longest_way_home(KState { k: states }, n, daemon),
                RingKind::Four => longest_way_home(FourState, n, daemon),
                RingKind::Three => longest_way_home(ThreeState, n, daemon),
            };
            let way = way.ok_or_else(|| {
                let text = "there is no longest way home: the ring does not stabilise this way, \
                            has too many states, or reads and writes apart; see `doorway \
                            problems check`";
                Usage(text.into())
            })?;
            way_home(&way, args.json, out)
        }
    }
}

/// The counterexample if the solution is refuted, else a random run.
fn drawn(buffer: &Buffer, refuted: bool, args: &Args) -> anyhow::Result<Trace> {
    if refuted {
        let finding = buffer.check(LIMIT, cores()).map_err(Usage)?;
        return Ok(buffer.draw(&finding).map_err(Usage)?);
    }
    Ok(buffer.walk(args.seed, args.steps).map_err(Usage)?)
}

/// The events of a trace, one line each.
pub(super) fn lines(trace: &Trace) -> Vec<String> {
    let text = diagram::render(trace, Format::Text);
    let names: Vec<String> =
        (0..trace.size).map(|node| trace.name(doorway_core::NodeId(node))).collect();
    // After the heading, a line is a time, a glyph for each process, and the event.
    let event = |line: &str| {
        let begins = names.iter().filter_map(|name| line.rfind(&format!("   {name} "))).min()?;
        Some(line[begins..].trim().to_owned())
    };
    text.lines().skip(4).filter_map(event).collect()
}

/// The registers and the places of an algorithm.
fn steps<A: Algorithm>(json: bool, out: &mut dyn Write) -> anyhow::Result<()> {
    #[derive(Serialize)]
    struct StepsRecord {
        name: &'static str,
        origin: &'static str,
        registers: Vec<(&'static str, usize, &'static str)>,
        places: Vec<(&'static str, &'static str)>,
    }
    let shown = StepsRecord {
        name: A::INFO.name,
        origin: A::INFO.origin,
        registers: A::SHARED
            .iter()
            .map(|shared| (shared.name, shared.first, shared.about))
            .collect(),
        places: A::At::NAMES.iter().map(|(name, section)| (*name, section.name())).collect(),
    };
    if json {
        return print_json(out, &shown);
    }
    writeln!(out, "{}, {}\n\nRegisters", shown.name, shown.origin)?;
    let mut table = Table::new([]);
    for (name, first, about) in shown.registers {
        table.row([name.to_owned(), format!("= {first}"), about.to_owned()]);
    }
    table.print_body(out, 2)?;
    writeln!(out, "\nPlaces")?;
    let mut table = Table::new([]);
    for (name, section) in shown.places {
        table.row([section.to_owned(), name.to_owned()]);
    }
    Ok(table.print_body(out, 2)?)
}

/// Print the longest way home. Privileged machines are in brackets.
fn way_home(way: &[RingState], json: bool, out: &mut dyn Write) -> anyhow::Result<()> {
    #[derive(Serialize)]
    struct StateRecord<'a> {
        step: usize,
        machines: &'a [usize],
        privileged: &'a [usize],
    }
    let shown = way.iter().enumerate().map(|(step, state)| StateRecord {
        step,
        machines: &state.machines,
        privileged: &state.privileged,
    });
    if json {
        return print_json(out, &shown.collect::<Vec<_>>());
    }
    let steps = super::steps(way.len() as u64 - 1);
    writeln!(out, "The longest way home takes {steps}. Privileged machines are in brackets.\n")?;
    for StateRecord { step, machines, privileged } in shown {
        let machine = |(i, state): (usize, &usize)| {
            if privileged.contains(&i) { format!("[{state}]") } else { format!(" {state} ") }
        };
        let machines: Vec<String> = machines.iter().enumerate().map(machine).collect();
        let count = privileged.len();
        let s = if count == 1 { "" } else { "s" };
        writeln!(out, "{step:>4}  {}   {count} privilege{s}", machines.join(" "))?;
    }
    Ok(())
}
