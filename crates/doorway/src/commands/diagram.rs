//! `doorway diagram`: who sent what to whom, and who was inside when.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use doorway_core::algorithms::{self, Entry, Task};
use doorway_core::{Algorithm, Group};
use doorway_lab::diagram::{self, Format};
use doorway_lab::simulate::{Arrival, Options, Simulation, Workload};
use doorway_lab::{Trace, script};

use crate::failure::Usage;
use crate::group_args::{ShapeArgs, parse_size};
use crate::names;
use crate::run_args::RunArgs;

/// Draw a run: two nodes that ask shortly after each other, a load with a seed, or a script
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The algorithm
    #[arg(value_parser = names::algorithms(), hide_possible_values = true)]
    #[arg(required_unless_present = "script", requires = "nodes")]
    algorithm: Option<&'static Entry>,
    /// How many nodes there are
    #[arg(short = 'n', value_name = "N", value_parser = parse_size)]
    #[arg(required_unless_present = "script")]
    nodes: Option<usize>,
    /// Play this script, which says itself what it runs
    #[arg(long, value_name = "FILE", conflicts_with_all = ["algorithm", "nodes", "ShapeArgs", "RunArgs"])]
    script: Option<PathBuf>,
    /// Where to draw, and how by its name: .svg, .txt, .mmd, .shiviz, or .json for Perfetto
    /// [default: text on the screen]
    #[arg(short = 'o', value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print JSON: the trace for Perfetto
    #[arg(long, conflicts_with = "output")]
    json: bool,
    /// After how many entries the run ends, where a load is given
    #[arg(long, value_name = "E", default_value_t = 5, conflicts_with = "script")]
    entries: u64,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    shape: ShapeArgs,
}

/// Nobody reads a diagram of more nodes.
const MAX_NODES: usize = 1000;

/// Nor one of more events.
const MAX_EVENTS: usize = 100_000;

/// Draw it.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let format = match &args.output {
        Some(path) => Format::from_path(path).map_err(|error| Usage(error.to_string()))?,
        None if args.json => Format::Chrome,
        None => Format::Text,
    };
    let picture = diagram::render(&args.trace()?, format);
    match &args.output {
        Some(path) => {
            fs::write(path, picture).with_context(|| format!("cannot write {}", path.display()))
        }
        None => Ok(out.write_all(picture.as_bytes())?),
    }
}

impl Args {
    fn trace(&self) -> anyhow::Result<Trace> {
        if let Some(path) = &self.script {
            let text = fs::read_to_string(path);
            let text = text.with_context(|| format!("cannot read {}", path.display()))?;
            let played = script::run(&text);
            let named = |error| Usage(format!("{}, {error}", path.display()));
            return Ok(played.map_err(named)?.trace);
        }
        let (Some(entry), Some(size)) = (self.algorithm, self.nodes) else {
            return Err(Usage("a diagram needs an algorithm and -n N, or --script".into()).into());
        };
        let limit = format!("a diagram has at most {MAX_NODES} nodes, not {size}");
        ensure!(size <= MAX_NODES, Usage(limit));
        let group = self.shape.group(&entry.info, size)?;
        let traffic = self.run.traffic()?;
        let mut options = self.run.options(&traffic, &entry.info, group, self.entries)?;
        if !self.run.describes_load() {
            two_ask(&mut options);
        }
        Ok(traced(entry, options)?)
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
    traced(entry, options)
}

/// Run to the end and return what happened.
fn traced(entry: &Entry, mut options: Options) -> Result<Trace, Usage> {
    options.trace = MAX_EVENTS;
    algorithms::with(entry.info.name, Traced(options)).expect("an entry of the list has a type")
}

struct Traced(Options);

impl Task for Traced {
    type Output = Result<Trace, Usage>;

    fn run<A: Algorithm>(self) -> Self::Output {
        let mut run = Simulation::<A>::new(self.0).map_err(Usage)?;
        while !run.advance(u64::MAX) {}
        Ok(run.trace().clone())
    }
}
