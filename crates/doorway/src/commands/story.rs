//! `doorway story [NAME]`: play a story of a paper, or the counterexample that shows a flaw.

use std::io::Write;
use std::path::PathBuf;

use anyhow::ensure;
use doorway_core::algorithms::ALL;
use doorway_lab::Trace;
use doorway_lab::diagram::{self, Format};
use doorway_lab::flaws::{Finding, Flaw};
use doorway_lab::script::{self, Outcome, ScriptStep};
use doorway_lab::stories::{self, Script, Story};
use serde::Serialize;

use super::print_json;
use crate::failure::{Usage, unless_closed};
use crate::files;
use crate::names;
use crate::scripts;
use crate::state_args::StateArgs;
use crate::table::Table;
use crate::wrap;

const EXAMPLES: &str = "\
Examples:
  doorway story                              list all stories
  doorway story maekawa                      list the stories of an algorithm
  doorway story maekawa/section-5            play a story of a paper
  doorway story maekawa-displaced-3 --diagram deadlock.svg";

/// Play a story of a paper, or the shortest counterexample that shows a flaw; without a name, list
/// them
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The story, or an algorithm whose stories are listed
    #[arg(value_parser = names::stories(), hide_possible_values = true)]
    name: Option<String>,
    /// Write a diagram to FILE; its ending chooses the format: .svg, .txt, .mmd (Mermaid), .shiviz,
    /// or .json (Perfetto)
    #[arg(long, value_name = "FILE", requires = "name")]
    diagram: Option<PathBuf>,
    #[command(flatten)]
    states: StateArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// List the stories, or play one. A story that no longer ends as it is told is a failure.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let Some(name) = &args.name else { return list(&stories::all(), args.json, out) };
    if ALL.iter().any(|entry| entry.info.name == name) {
        if args.diagram.is_some() || !args.states.is_default() {
            let reason =
                format!("these options are for one story; `doorway story {name}` lists several");
            return Err(Usage(reason).into());
        }
        let mut all = stories::all();
        all.retain(|story| story.algorithm() == name);
        return list(&all, args.json, out);
    }
    let unknown = |reason| Usage(format!("{reason} (`doorway story` shows them all)"));
    let story = stories::named(name).map_err(unknown)?;
    let format = args.diagram.as_ref().map(Format::from_path).transpose();
    let format = format.map_err(|error| Usage(error.to_string()))?;
    let played = PlayedStory::new(story)?;
    if let (Some(path), Some(format)) = (&args.diagram, format) {
        files::write(path, &diagram::render(played.trace(), format))?;
    }
    args.states.draw(played.trace())?;
    let columns = args.states.columns(played.trace())?;
    let told = match columns {
        Some(text) if !args.json => out.write_all(text.as_bytes()).map_err(Into::into),
        _ => played.tell(args.json, out),
    };
    unless_closed(told)?;
    played.ensure_as_told()
}

/// A line of the list, under the names that scripts rely on.
#[derive(Serialize)]
struct Line {
    name: &'static str,
    algorithm: &'static str,
    kind: &'static str,
    about: String,
}

impl Line {
    fn new(story: &Story) -> Self {
        let kind = match story {
            Story::Script(script) if script.follows_paper() => "paper",
            Story::Script(_) => "extension",
            Story::Flaw(_) => "flaw",
        };
        Self { name: story.name(), algorithm: story.algorithm(), kind, about: story.about() }
    }
}

fn list(all: &[Story], json: bool, out: &mut dyn Write) -> anyhow::Result<()> {
    let lines: Vec<Line> = all.iter().map(Line::new).collect();
    if json {
        return print_json(out, &lines);
    }
    let mut table = Table::new(["story", "algorithm", "what it shows"].map(str::to_owned));
    for Line { name, algorithm, about, .. } in lines {
        // The first sentence says enough in a list.
        let about = about.split_once(". ").map_or(about.as_str(), |(first, _)| first);
        table.row([name, algorithm, about.trim_end_matches('.')].map(str::to_owned));
    }
    Ok(table.print(out, 0)?)
}

/// A story that was played.
enum PlayedStory {
    Script(Script, Box<Outcome>),
    Flaw(Flaw, Box<Finding>),
}

#[derive(Serialize)]
struct ScriptRecord<'a> {
    #[serde(flatten)]
    line: Line,
    run: &'a str,
    n: u32,
    violation: Option<String>,
    steps: Vec<StepRecord<'a>>,
}

#[derive(Serialize)]
struct StepRecord<'a> {
    command: &'a str,
    effects: &'a [String],
}

#[derive(Serialize)]
struct FlawRecord<'a> {
    #[serde(flatten)]
    line: Line,
    setting: &'a str,
    story: &'static str,
    cure: &'static str,
    n: u32,
    property: String,
    violation: Option<String>,
    length: usize,
    worlds: u64,
    events: Vec<String>,
}

impl PlayedStory {
    fn new(story: Story) -> anyhow::Result<Self> {
        Ok(match story {
            Story::Script(script) => {
                let played = script::run(script.text)?;
                Self::Script(script, Box::new(played))
            }
            Story::Flaw(flaw) => {
                let found = (flaw.wrong)();
                Self::Flaw(flaw, Box::new(found))
            }
        })
    }

    fn trace(&self) -> &Trace {
        match self {
            Self::Script(_, played) => &played.trace,
            Self::Flaw(_, found) => &found.trace,
        }
    }

    fn tell(&self, json: bool, out: &mut dyn Write) -> anyhow::Result<()> {
        match self {
            Self::Script(script, played) if json => {
                let steps = played.steps.iter();
                let steps =
                    steps.map(|ScriptStep { command, effects }| StepRecord { command, effects });
                let record = ScriptRecord {
                    line: Line::new(&Story::Script(*script)),
                    run: &played.trace.title,
                    n: played.trace.size,
                    violation: played.violation.as_ref().map(ToString::to_string),
                    steps: steps.collect(),
                };
                print_json(out, &record)?;
            }
            Self::Flaw(flaw, found) if json => {
                let record = FlawRecord {
                    line: Line::new(&Story::Flaw(flaw.clone())),
                    setting: &found.setting,
                    story: flaw.story,
                    cure: flaw.cure,
                    n: found.trace.size,
                    property: flaw.breaks.to_string(),
                    violation: found.violation().map(ToString::to_string),
                    length: flaw.steps,
                    worlds: found.report.progress.states,
                    events: diagram::sentences(&found.trace),
                };
                print_json(out, &record)?;
            }
            Self::Script(script, played) => {
                wrap::print_prose(out, 0, &script.about())?;
                writeln!(out, "\n{}", played.trace.title)?;
                scripts::print(out, &played.steps)?;
                match scripts::violated(played) {
                    None => writeln!(out, "nothing is violated")?,
                    Some(violated) => writeln!(out, "violated: {violated}")?,
                }
            }
            Self::Flaw(flaw, found) => print_flaw(flaw, found, out)?,
        }
        Ok(out.flush()?)
    }

    /// Fail if the story does not end as it is told: a script with other effects than those written
    /// in it, or a flaw whose shortest counterexample is another one.
    fn ensure_as_told(&self) -> anyhow::Result<()> {
        match self {
            Self::Script(script, played) => {
                let difference = scripts::difference(script.text, played);
                let told = difference.map(|difference| difference.to_string());
                ensure!(told.is_none(), "{}, {}", script.name, told.unwrap_or_default());
            }
            Self::Flaw(flaw, found) => {
                let name = flaw.name;
                ensure!(found.violation().is_some(), "{name}: the search found no violation");
            }
        }
        Ok(())
    }
}

fn print_flaw(flaw: &Flaw, found: &Finding, out: &mut dyn Write) -> anyhow::Result<()> {
    let Flaw { name, what, story, cure, breaks, steps, .. } = flaw;
    wrap::print_prose(out, 0, &format!("{name}: {what}."))?;
    writeln!(out)?;
    wrap::print_prose(out, 0, &format!("{}.", found.setting))?;
    writeln!(out)?;
    wrap::print_prose(out, 0, story)?;
    writeln!(out)?;
    wrap::print_diagram(out, 0, &diagram::render(&found.trace, Format::Text))?;
    writeln!(out)?;
    let violation = found.violation().map_or_else(String::new, ToString::to_string);
    let cure = cure.replace('`', "");
    let end = format!("violated after {steps} steps: {breaks}: {violation}. Holds: {cure}.");
    Ok(wrap::print_prose(out, 0, &end)?)
}
