//! `doorway replay FILE`: play a script, such as `doorway check --save` writes.

use std::io::Write;
use std::path::PathBuf;

use anyhow::bail;
use doorway_lab::diagram::{self, Format};
use doorway_lab::script::{Outcome, ScriptStep};
use serde::Serialize;

use super::print_json;
use crate::failure::{Usage, unless_closed};
use crate::files;
use crate::scripts::{self, Difference};
use crate::state_args::StateArgs;

const EXAMPLES: &str = "\
Examples:
  doorway check lamport -n 2 --channel unordered --save story.txt
  doorway replay story.txt --diagram story.svg";

/// Play a script, such as a counterexample saved by `doorway check`, and print what happens
///
/// Effects that are written in the script are compared with what happens; a difference is an error.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The script; its first command names the algorithm and the number of nodes
    #[arg(value_name = "FILE")]
    script: PathBuf,
    /// Write a diagram to FILE; its ending chooses the format: .svg, .txt, .mmd (Mermaid), .shiviz,
    /// or .json (Perfetto)
    #[arg(long, value_name = "FILE")]
    diagram: Option<PathBuf>,
    #[command(flatten)]
    states: StateArgs,
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
    difference: Option<&'a Difference>,
    steps: Vec<Step<'a>>,
}

#[derive(Serialize)]
struct Step<'a> {
    command: &'a str,
    effects: &'a [String],
}

/// Play the script. It fails if the script ends with a violation, or has other effects than those
/// written in it.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let format = args.diagram.as_ref().map(Format::from_path).transpose();
    let format = format.map_err(|error| Usage(error.to_string()))?;
    let (text, played) = scripts::play(&args.script)?;
    let difference = scripts::difference(&text, &played);
    if let (Some(path), Some(format)) = (&args.diagram, format) {
        files::write(path, &diagram::render(&played.trace, format))?;
    }
    args.states.draw(&played.trace)?;
    let told = match args.states.columns(&played.trace)? {
        Some(text) if !args.json => out.write_all(text.as_bytes()).map_err(Into::into),
        _ => print(args, &played, difference.as_ref(), out),
    };
    unless_closed(told)?;
    if let Some(difference) = difference {
        bail!("{}, {difference}", args.script.display());
    }
    played.violation.map_or(Ok(()), |violation| Err(scripts::failure(&args.script, &violation)))
}

fn print(
    args: &Args,
    played: &Outcome,
    difference: Option<&Difference>,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    if args.json {
        print_json(out, &Replay::new(played, difference))?;
    } else {
        writeln!(out, "{}", played.trace.title)?;
        scripts::print(out, &played.steps)?;
        match scripts::violated(played) {
            None => writeln!(out, "nothing is violated")?,
            Some(violated) => writeln!(out, "violated: {violated}")?,
        }
    }
    Ok(out.flush()?)
}

impl<'a> Replay<'a> {
    fn new(played: &'a Outcome, difference: Option<&'a Difference>) -> Self {
        let violation = played.violation.as_ref();
        let step = |told: &'a ScriptStep| Step { command: &told.command, effects: &told.effects };
        Self {
            run: &played.trace.title,
            n: played.trace.size,
            verdict: if violation.is_some() { "violated" } else { "holds" },
            property: scripts::property(played),
            violation: violation.map(ToString::to_string),
            difference,
            steps: played.steps.iter().map(step).collect(),
        }
    }
}
