//! `doorway diagram`: who sent what to whom, and who was inside when.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use doorway_core::algorithms::{self, Entry, Task};
use doorway_core::{Algorithm, Group, NodeId};
use doorway_lab::diagram::{self, Format};
use doorway_lab::{Trace, example, script};

use crate::failure::Usage;
use crate::group_args::{ShapeArgs, parse_size};
use crate::names;

/// Draw a run: one in which two nodes ask shortly after each other, or one that a script tells
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
    #[arg(long, value_name = "FILE", conflicts_with_all = ["algorithm", "nodes", "ShapeArgs"])]
    script: Option<PathBuf>,
    /// Where to draw, and how by its name: .svg, .txt, .mmd, .shiviz, or .json for Perfetto
    /// [default: text on the screen]
    #[arg(short = 'o', value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print JSON: the trace for Perfetto
    #[arg(long, conflicts_with = "output")]
    json: bool,
    #[command(flatten)]
    shape: ShapeArgs,
}

/// Nobody reads a diagram of more nodes.
const MAX_NODES: usize = 1000;

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
        Ok(example_of(entry, self.shape.group(&entry.info, size)?))
    }
}

/// The small run that shows what an algorithm does: nodes 2 and 3 ask, or whoever there is.
pub(crate) fn example_of(entry: &Entry, group: Group) -> Trace {
    algorithms::with(entry.info.name, Example(group)).expect("an entry of the list has a type")
}

struct Example(Group);

impl Task for Example {
    type Output = Trace;

    fn run<A: Algorithm>(self) -> Trace {
        let askers: Vec<NodeId> = self.0.nodes().skip(1).chain(self.0.nodes()).take(2).collect();
        let askers = if self.0.size() == 1 { &askers[..1] } else { &askers[..] };
        example::<A>(Arc::new(self.0), askers)
    }
}
