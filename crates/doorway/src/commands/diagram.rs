//! `doorway diagram`: draw which messages were sent and when each node was inside.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{anyhow, ensure};
use doorway_core::Group;
use doorway_core::algorithms::Entry;
use doorway_lab::diagram::{self, Format};
use doorway_lab::recording::{self, File, Recording};
use doorway_lab::script::Outcome;
use doorway_lab::simulate::{Arrival, Options, Simulation, Workload};
use doorway_lab::{AnyAlgorithm, Trace};
use doorway_page::server::First;

use crate::browser::{self, OptionalPageArgs};
use crate::failure::Usage;
use crate::files;
use crate::group_args::{BeginArgs, ShapeArgs, parse_size};
use crate::names;
use crate::rerun;
use crate::run_args::{RunArgs, parse_entries};
use crate::scripts;
use crate::state_args::StateArgs;
use crate::wrap;

const EXAMPLES: &str = "\
Examples:
  doorway diagram ricart-agrawala
  doorway diagram maekawa -n 7 --entries 6 --seed 3 -o maekawa.svg
  doorway diagram --recorded a.jsonl b.jsonl c.jsonl --lock orders -o orders.svg";

/// Draw a run: two nodes that ask shortly after each other, a random load, a script, or a recording
/// of real nodes
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(mut_arg("no_open", |it| it.conflicts_with_all(NO_PAGE)))]
#[command(mut_arg("port", |it| it.conflicts_with_all(NO_PAGE)))]
pub(crate) struct Args {
    /// The algorithm
    #[arg(value_parser = names::algorithms(), hide_possible_values = true)]
    #[arg(required_unless_present_any = ["script", "recorded"])]
    algorithm: Option<&'static Entry>,
    /// Set the number of nodes [default: 3]
    #[arg(short = 'n', value_name = "N", value_parser = parse_size)]
    nodes: Option<usize>,
    /// Draw this script; its first command names the algorithm and the number of nodes
    #[arg(long, value_name = "FILE", conflicts_with_all = ["ShapeArgs", "BeginArgs", "RunArgs"])]
    script: Option<PathBuf>,
    /// Draw what the nodes of a group have recorded; name the file of every node
    #[arg(long, value_name = "FILE", num_args = 1..)]
    #[arg(conflicts_with_all = ["ShapeArgs", "BeginArgs", "RunArgs", "script", "entries"])]
    #[arg(conflicts_with_all = ["algorithm", "nodes", "StateArgs"])]
    recorded: Vec<PathBuf>,
    /// Choose the lock to draw from a recording
    #[arg(long, value_name = "NAME", requires = "recorded")]
    #[arg(conflicts_with_all = ["algorithm", "nodes", "script"])]
    lock: Option<String>,
    /// Write to FILE; its ending chooses the format: .svg, .txt, .mmd (Mermaid), .shiviz, or .json
    /// (Perfetto) [default: text on standard output]
    #[arg(short = 'o', value_name = "FILE")]
    output: Option<PathBuf>,
    /// Open what was recorded in a browser
    #[arg(long, requires = "recorded", conflicts_with_all = ["output", "json"])]
    #[arg(conflicts_with_all = NO_PAGE)]
    page: bool,
    #[command(flatten)]
    browser: OptionalPageArgs,
    /// Print JSON for Perfetto
    #[arg(long, conflicts_with = "output")]
    json: bool,
    /// Draw a random load of E entries [default: 5, or as many as --requests has]
    #[arg(long, value_name = "E", conflicts_with = "script", value_parser = parse_entries)]
    entries: Option<u64>,
    #[command(flatten)]
    states: StateArgs,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    shape: ShapeArgs,
    #[command(flatten)]
    begin: BeginArgs,
}

/// The page shows recordings alone, so it cannot be opened beside these.
const NO_PAGE: [&str; 3] = ["algorithm", "nodes", "script"];

/// The largest number of nodes in a diagram.
const MAX_NODES: usize = 1000;

/// The largest number of events in a diagram.
const MAX_EVENTS: usize = 100_000;

/// The number of entries of a load, unless a number is given.
const ENTRIES: u64 = 5;

/// The number of nodes, unless a number is given.
const NODES: usize = 3;

/// What is drawn, and the error if there is a violation in it.
type DrawnTrace = (Trace, Option<anyhow::Error>);

/// Draw a run. A violation is drawn, and is then a failure.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let format = match &args.output {
        Some(path) => Format::from_path(path).map_err(|error| Usage(error.to_string()))?,
        None if args.json => Format::Chrome,
        None => Format::Text,
    };
    let (trace, failure) = match &args.script {
        Some(path) => args.played(path)?,
        None if !args.recorded.is_empty() => args.recorded()?,
        None => args.simulated()?,
    };
    if args.page {
        let first = First::Recording(Box::new(trace));
        browser::serve(&args.browser.page, first, out)?;
        return failure.map_or(Ok(()), Err);
    }
    args.states.draw(&trace)?;
    let columns = args.states.columns(&trace)?;
    let is_wrapped = format == Format::Text && columns.is_none();
    let picture = match columns {
        Some(_) if format != Format::Text => {
            let reason =
                "--columns prints text; leave out --json, and end the name of FILE in .txt";
            return Err(Usage(reason.into()).into());
        }
        Some(text) => text,
        None => diagram::render(&trace, format),
    };
    match &args.output {
        Some(path) => files::write(path, &picture)?,
        None if is_wrapped => wrap::print_diagram(out, 0, &picture)?,
        None => out.write_all(picture.as_bytes())?,
    }
    out.flush()?;
    failure.map_or(Ok(()), Err)
}

impl Args {
    /// The run of a script. An algorithm or a size given beside it must agree with it.
    fn played(&self, path: &Path) -> anyhow::Result<DrawnTrace> {
        let (_, Outcome { trace, violation, .. }) = scripts::play(path)?;
        let name = trace.title.split(' ').next().unwrap_or_default();
        let other_name = self.algorithm.is_some_and(|entry| entry.info.name != name);
        let other_size = self.nodes.is_some_and(|nodes| nodes != trace.size as usize);
        if other_name || other_size {
            let reason = format!("{} runs {name} with {} nodes", path.display(), trace.size);
            return Err(Usage(reason).into());
        }
        Ok((trace, violation.map(|violation| scripts::failure(path, &violation))))
    }

    /// The run in recorded files.
    fn recorded(&self) -> anyhow::Result<DrawnTrace> {
        let file = |path: &PathBuf| -> anyhow::Result<File> {
            Ok(File { name: path.display().to_string(), text: files::read(path, files::MAX_DATA)? })
        };
        let files = self.recorded.iter().map(file).collect::<anyhow::Result<Vec<_>>>()?;
        let read = recording::read(&files, self.lock.as_deref());
        let Recording { mut trace, violation } = read.map_err(|why| Usage(why.to_string()))?;
        trace.keep_first(MAX_EVENTS);
        let describe = |violation| trace.describe(&violation);
        let failure = |what: String| anyhow!("the recording has a violation: {what}");
        let failure = violation.map(describe).map(failure);
        Ok((trace, failure))
    }

    /// A simulated run.
    fn simulated(&self) -> anyhow::Result<DrawnTrace> {
        let Some(entry) = self.algorithm else {
            let reason = "say what to draw: an algorithm, --script FILE, or --recorded FILES";
            return Err(Usage(reason.into()).into());
        };
        let size = self.shape.size(self.nodes, NODES);
        let limit = format!("a diagram has at most {MAX_NODES} nodes, not {size}");
        ensure!(size <= MAX_NODES, Usage(limit));
        let group = self.shape.group(&entry.info, size)?;
        let traffic = self.run.traffic()?;
        let entries = self.entries.unwrap_or_else(|| traffic.entries(ENTRIES));
        let mut options = self.run.options(&traffic, &entry.info, group, entries);
        if self.entries.is_none() && !self.run.implies_load() {
            two_ask(&mut options);
        }
        let algorithm = self.begin.algorithm(entry)?;
        let (trace, violation) = traced(algorithm, options, !self.states.is_default())?;
        Ok((trace, violation.map(|violation| rerun::failure(violation, self.run.seed))))
    }
}

/// Make a small run that shows what the algorithm does: nodes 2 and 3 ask, or those that there are,
/// the second one before it can know of the first.
fn two_ask(options: &mut Options) {
    let second = options.group.nodes().skip(1).chain(options.group.nodes());
    let askers = second.take(options.group.size().min(2) as usize);
    let arrival = |(at, node)| Arrival::new(f64::from(at) * 0.5, node);
    let arrivals: Vec<_> = (0u32..).zip(askers).map(arrival).collect();
    options.entries = arrivals.len() as u64;
    options.workload = Workload::Scripted(arrivals);
}

/// The trace of the small run in which two nodes ask, for an explanation.
pub(crate) fn example_of(entry: &Entry, group: Group) -> Result<Trace, Usage> {
    let mut options = Options::new(&entry.info, group);
    two_ask(&mut options);
    Ok(traced(AnyAlgorithm::from(entry), options, false)?.0)
}

/// The trace of a run, with the states of its nodes if they are asked for, and its violation if
/// there is one.
fn traced(
    algorithm: AnyAlgorithm,
    mut options: Options,
    states: bool,
) -> Result<(Trace, Option<String>), Usage> {
    options.trace = MAX_EVENTS;
    let mut run = Simulation::new(algorithm, options).map_err(Usage)?;
    let mut ended = false;
    while !ended && run.trace().events.len() < MAX_EVENTS {
        ended = run.advance(1 << 10);
    }
    let mut trace = if states { run.trace_with_states() } else { run.trace().clone() };
    if !ended {
        trace.title = format!("{}, the first {MAX_EVENTS} events", trace.title);
    }
    Ok((trace, run.report().violation))
}
