//! `doorway diagram`: who sent what to whom, and who was inside when.

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

use crate::failure::Usage;
use crate::files;
use crate::group_args::{ShapeArgs, parse_size};
use crate::names;
use crate::replay;
use crate::run_args::{RunArgs, parse_entries};
use crate::story;

/// Draw a run: two nodes that ask shortly after each other, a load with a seed, a script, or what
/// real nodes have recorded
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The algorithm
    #[arg(value_parser = names::algorithms(), hide_possible_values = true)]
    #[arg(required_unless_present_any = ["script", "recorded"])]
    algorithm: Option<&'static Entry>,
    /// How many nodes there are
    #[arg(short = 'n', value_name = "N", value_parser = parse_size)]
    #[arg(required_unless_present_any = ["script", "recorded"])]
    nodes: Option<usize>,
    /// Play this script, which says itself what it runs
    #[arg(long, value_name = "FILE", conflicts_with_all = ["ShapeArgs", "RunArgs"])]
    script: Option<PathBuf>,
    /// Read what the nodes of a group have recorded, one file of each
    #[arg(long, value_name = "FILE", num_args = 1..)]
    #[arg(conflicts_with_all = ["ShapeArgs", "RunArgs", "script", "entries", "algorithm", "nodes"])]
    recorded: Vec<PathBuf>,
    /// Of what was recorded, the lock to draw
    #[arg(long, value_name = "NAME", requires = "recorded")]
    #[arg(conflicts_with_all = ["algorithm", "nodes", "script"])]
    lock: Option<String>,
    /// Where to draw, and how by its name: .svg, .txt, .mmd, .shiviz, or .json for Perfetto
    /// [default: text on the screen]
    #[arg(short = 'o', value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print JSON: the trace for Perfetto
    #[arg(long, conflicts_with = "output")]
    json: bool,
    /// After how many entries of a load the run ends [default: 5, or all that --requests has]
    #[arg(long, value_name = "E", conflicts_with = "script", value_parser = parse_entries)]
    entries: Option<u64>,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    shape: ShapeArgs,
}

/// Nobody reads a diagram of more nodes.
const MAX_NODES: usize = 1000;

/// Nor one of more events.
const MAX_EVENTS: usize = 100_000;

/// How many entries of a load are drawn, unless a number is given.
const ENTRIES: u64 = 5;

/// What is drawn, and the failure if something happened in it that must never happen.
type Story = (Trace, Option<anyhow::Error>);

/// Draw it; a violation is a failure, after it has been drawn.
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
    let picture = diagram::render(&trace, format);
    match &args.output {
        Some(path) => files::write(path, &picture)?,
        None => out.write_all(picture.as_bytes())?,
    }
    out.flush()?;
    failure.map_or(Ok(()), Err)
}

impl Args {
    /// The story of a script, which must be about what was named besides it.
    fn played(&self, path: &Path) -> anyhow::Result<Story> {
        let Outcome { trace, violation, .. } = story::play(path)?;
        let name = trace.title.split(' ').next().unwrap_or_default();
        let other_name = self.algorithm.is_some_and(|entry| entry.info.name != name);
        let other_size = self.nodes.is_some_and(|nodes| nodes != trace.size as usize);
        if other_name || other_size {
            let reason = format!("{} runs {name} with {} nodes", path.display(), trace.size);
            return Err(Usage(reason).into());
        }
        Ok((trace, violation.map(|violation| story::failure(path, &violation))))
    }

    /// The story that files tell.
    fn recorded(&self) -> anyhow::Result<Story> {
        let file = |path: &PathBuf| -> anyhow::Result<File> {
            Ok(File { name: path.display().to_string(), text: files::read(path)? })
        };
        let files = self.recorded.iter().map(file).collect::<anyhow::Result<Vec<_>>>()?;
        let read = recording::read(&files, self.lock.as_deref());
        let Recording { mut trace, violation } = read.map_err(|why| Usage(why.to_string()))?;
        if trace.events.len() > MAX_EVENTS {
            trace.events.truncate(MAX_EVENTS);
            trace.title = format!("{}, the first {MAX_EVENTS} events", trace.title);
        }
        let failure = |violation| anyhow!("the recording has a violation: {violation}");
        Ok((trace, violation.map(failure)))
    }

    /// The story of a run.
    fn simulated(&self) -> anyhow::Result<Story> {
        let (Some(entry), Some(size)) = (self.algorithm, self.nodes) else {
            let reason = "a diagram needs an algorithm and -n N, --script, or --recorded";
            return Err(Usage(reason.into()).into());
        };
        let limit = format!("a diagram has at most {MAX_NODES} nodes, not {size}");
        ensure!(size <= MAX_NODES, Usage(limit));
        let group = self.shape.group(&entry.info, size)?;
        let traffic = self.run.traffic()?;
        let entries = self.entries.unwrap_or_else(|| traffic.entries(ENTRIES));
        let mut options = self.run.options(&traffic, &entry.info, group, entries)?;
        if self.entries.is_none() && !self.run.implies_load() {
            two_ask(&mut options);
        }
        let (trace, violation) = traced(entry, options)?;
        Ok((trace, violation.map(|violation| replay::failure(violation, self.run.seed))))
    }
}

/// The small run that shows what an algorithm does: nodes 2 and 3 ask, or whoever there is, the
/// second before it can know of the first.
fn two_ask(options: &mut Options) {
    let second = options.group.nodes().skip(1).chain(options.group.nodes());
    let askers = second.take(options.group.size().min(2) as usize);
    let arrival = |(at, node)| Arrival::new(f64::from(at) * 0.5, node);
    let arrivals: Vec<_> = (0u32..).zip(askers).map(arrival).collect();
    options.entries = arrivals.len() as u64;
    options.workload = Workload::Scripted(arrivals);
}

/// The trace of that run, for an explanation.
pub(crate) fn example_of(entry: &Entry, group: Group) -> Result<Trace, Usage> {
    let mut options = Options::new(&entry.info, group);
    two_ask(&mut options);
    Ok(traced(entry, options)?.0)
}

/// What happens in a run, and what of it must never happen.
fn traced(entry: &Entry, mut options: Options) -> Result<(Trace, Option<String>), Usage> {
    options.trace = MAX_EVENTS;
    let mut run = Simulation::new(AnyAlgorithm::from(entry), options).map_err(Usage)?;
    let mut ended = false;
    while !ended && run.trace().events.len() < MAX_EVENTS {
        ended = run.advance(1 << 10);
    }
    let mut trace = run.trace().clone();
    if !ended {
        trace.title = format!("{}, the first {MAX_EVENTS} events", trace.title);
    }
    Ok((trace, run.report().violation))
}
