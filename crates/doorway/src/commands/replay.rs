//! `doorway replay FILE`: play a script, as `check --save` writes one.

use std::io::Write;
use std::path::PathBuf;

use doorway_lab::check::Property;
use doorway_lab::diagram::{self, Format};
use doorway_lab::script::{Outcome, Told};
use serde::Serialize;

use super::print_json;
use crate::failure::{Usage, unless_closed};
use crate::files;
use crate::story;

/// Play a script, such as a counterexample that was saved, and print what it does
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The script, which says itself what it runs
    #[arg(value_name = "FILE")]
    script: PathBuf,
    /// Draw it, in the format that the name asks for: .svg, .txt, .mmd, .shiviz, or .json for
    /// Perfetto
    #[arg(long, value_name = "FILE")]
    diagram: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Replay<'a> {
    run: &'a str,
    n: u32,
    verdict: &'static str,
    property: Option<String>,
    violation: Option<String>,
    steps: Vec<Step<'a>>,
}

#[derive(Serialize)]
struct Step<'a> {
    command: &'a str,
    effects: &'a [String],
}

/// Play it; a script that ends where something is wrong is a failure.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let format = args.diagram.as_ref().map(Format::from_path).transpose();
    let format = format.map_err(|error| Usage(error.to_string()))?;
    let played = story::play(&args.script)?;
    if let (Some(path), Some(format)) = (&args.diagram, format) {
        files::write(path, &diagram::render(&played.trace, format))?;
    }
    unless_closed(print(args, &played, out))?;
    played.violation.map_or(Ok(()), |violation| Err(story::failure(&args.script, &violation)))
}

fn print(args: &Args, played: &Outcome, out: &mut dyn Write) -> anyhow::Result<()> {
    if args.json {
        print_json(out, &Replay::new(played))?;
    } else {
        writeln!(out, "{}", played.trace.title)?;
        story::print(out, &played.steps)?;
        match &played.violation {
            None => writeln!(out, "nothing is violated")?,
            Some(violation) => writeln!(out, "violated: {}", story::violated(violation))?,
        }
    }
    Ok(out.flush()?)
}

impl<'a> Replay<'a> {
    fn new(played: &'a Outcome) -> Self {
        let violation = played.violation.as_ref();
        let step = |told: &'a Told| Step { command: &told.command, effects: &told.effects };
        Self {
            run: &played.trace.title,
            n: played.trace.size,
            verdict: if violation.is_some() { "violated" } else { "holds" },
            property: violation.map(|what| Property::violated_by(what).to_string()),
            violation: violation.map(ToString::to_string),
            steps: played.steps.iter().map(step).collect(),
        }
    }
}
