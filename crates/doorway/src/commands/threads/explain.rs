//! `doorway threads explain NAME`: idea, what holds, registers, places, steps, fences, commands.

use std::io::Write;

use doorway_threads::algorithms::{Entry, Task, with};
use doorway_threads::check::{Check, PlacedLine};
use doorway_threads::{Algorithm, Info, Length, Place as _, RegisterArray, Section, Word};
use serde::Serialize;

use super::bypass_text;
use super::list::{Row, served};
use crate::commands::explain::{heading, part};
use crate::commands::print_json;
use crate::header::{self, Header};
use crate::names;
use crate::table::Table;
use crate::wrap;

/// Explain an algorithm: its idea, what holds, its registers, steps and fences
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The algorithm (`doorway threads list` shows them all)
    #[arg(value_name = "NAME", value_parser = names::thread_algorithms())]
    #[arg(hide_possible_values = true)]
    algorithm: &'static Entry,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The explanation, under the names that scripts rely on.
#[derive(Serialize)]
struct Explanation {
    #[serde(flatten)]
    row: Row,
    paper: String,
    idea: String,
    sections: Vec<header::Section>,
    shared: Vec<SharedRecord>,
    places: Vec<PlaceRecord>,
    /// The text of the step function, which the locks run and the explorer checks.
    steps: String,
    alone: Vec<StepRecord>,
    commands: Vec<String>,
}

/// Registers of one name.
#[derive(Serialize)]
struct SharedRecord {
    name: String,
    first: Word,
    about: &'static str,
}

#[derive(Serialize)]
struct PlaceRecord {
    name: &'static str,
    section: &'static str,
}

/// A step, and where the process is when it takes it.
#[derive(Serialize)]
struct StepRecord {
    place: String,
    step: String,
}

/// What only the type of an algorithm can tell.
struct Declarations {
    shared: &'static [RegisterArray],
    places: &'static [(&'static str, Section)],
}

/// Ask the type of an algorithm.
struct DeclarationQuery;

impl Task for DeclarationQuery {
    type Output = Declarations;

    fn run<A: Algorithm>(self) -> Declarations {
        Declarations { shared: A::SHARED, places: A::At::NAMES }
    }
}

/// Print the explanation.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    print(args.algorithm, args.json, out)
}

/// Print the explanation of an algorithm.
pub(crate) fn print(entry: &Entry, json: bool, out: &mut dyn Write) -> anyhow::Result<()> {
    let explanation = Explanation::new(entry);
    if json { print_json(out, &explanation) } else { explanation.print(entry, out) }
}

impl Explanation {
    fn new(entry: &Entry) -> Self {
        let info = &entry.info;
        let Header { paper, idea, sections } = Header::of(entry.source);
        let declarations = with(info.name, DeclarationQuery).expect("a name of the list");
        let check = Check::named(info.name, processes(info)).expect("a name of the list");
        let shared = declarations.shared.iter().map(|shared| SharedRecord {
            name: format!("{}{}", shared.name, length(shared.length)),
            first: shared.first,
            about: shared.about,
        });
        let places = declarations.places.iter();
        let places = places.map(|(name, section)| PlaceRecord { name, section: section.name() });
        let alone = check.alone_steps().into_iter().map(|PlacedLine { place, line }| StepRecord {
            place,
            step: line.what + if line.enters { ", enters" } else { "" },
        });
        Self {
            row: Row::new(entry),
            paper,
            idea,
            sections,
            shared: shared.collect(),
            places: places.collect(),
            steps: step_function(entry.source),
            alone: alone.collect(),
            commands: commands(entry),
        }
    }

    fn print(&self, Entry { info, lock, .. }: &Entry, out: &mut dyn Write) -> anyhow::Result<()> {
        part(out, info.name, &filled(&self.paper))?;
        if !lock {
            part(out, "Refuted", "It does not do what was claimed of it: there is no lock of it.")?;
        }
        part(out, "Idea", &filled(&self.idea))?;
        for header::Section { title, text } in &self.sections {
            part(out, title, &filled(text))?;
        }
        heading(out, "Claims")?;
        claims(info).print(out, 2)?;
        writeln!(out)?;
        part(out, "Processes", &served(info))?;
        part(out, "Needs", info.primitive.name())?;
        part(out, &format!("Registers: {}", info.registers), &self.registers())?;
        heading(out, "Places")?;
        self.places().print_body(out, 2)?;
        writeln!(out)?;
        part(out, "Steps, as the locks run them and the explorer checks them", &self.steps)?;
        if !info.fences.is_empty() {
            heading(out, "Fences")?;
            fences(info).print_body(out, 2)?;
            writeln!(out)?;
        }
        let n = processes(info);
        heading(out, &format!("What process {} of {n} does if no other process wants in", n - 1))?;
        let mut table = Table::new([]);
        for StepRecord { place, step } in &self.alone {
            table.row([place.clone(), step.clone()]);
        }
        table.print_body(out, 2)?;
        writeln!(out)?;
        Ok(part(out, "Try", &self.commands.join("\n"))?)
    }

    /// The registers, each with what it is for.
    fn registers(&self) -> String {
        let register = |SharedRecord { name, first, about }: &SharedRecord| {
            let first = if *first == Word::MAX { "largest".to_owned() } else { first.to_string() };
            let about = filled(about).replace('\n', "\n    ");
            format!("{name} = {first}\n    {about}")
        };
        self.shared.iter().map(register).collect::<Vec<_>>().join("\n")
    }

    /// The places, by the section that they belong to.
    fn places(&self) -> Table {
        let mut table = Table::new([]);
        for PlaceRecord { name, section } in &self.places {
            table.row([(*section).to_owned(), (*name).to_owned()]);
        }
        table
    }
}

/// What is claimed, for two and for three processes.
fn claims(info: &Info) -> Table {
    let sizes = || [2, 3].into_iter().filter(|n| info.serves(*n));
    let heading = sizes().map(|n| format!("{n} processes"));
    let mut table = Table::new(std::iter::once(String::new()).chain(heading));
    let mut row = |what: &str, claim: &dyn Fn(usize) -> String| {
        table.row(std::iter::once(what.to_owned()).chain(sizes().map(claim)));
    };
    let word = |claimed: bool| if claimed { "yes" } else { "no" }.to_owned();
    row("exclusion", &|_| word(info.claims.exclusion));
    row("deadlock-free", &|_| word(info.claims.deadlock_free));
    row("lockout-free", &|n| word((info.claims.lockout_free)(n)));
    row("in order (FIFO)", &|n| word((info.claims.fifo)(n)));
    row("overtaken", &|n| bypass_text((info.claims.bypass)(n)));
    table
}

/// The number of processes that the steps are shown for.
fn processes(info: &Info) -> usize {
    info.fewest.max(2)
}

/// How many registers have one name.
fn length(length: Length) -> String {
    match length {
        Length::One => String::new(),
        Length::Each => "[n]".to_owned(),
        Length::EachAndOne => "[n + 1]".to_owned(),
        Length::Twice => "[2n]".to_owned(),
        Length::Fixed(length) => format!("[{length}]"),
    }
}

/// What each fence is needed for.
fn fences(info: &Info) -> Table {
    let mut table = Table::new([]);
    for fence in info.fences.chars() {
        let needed = if info.fences_beyond_tso.contains(fence) {
            "needed by the memory model of Rust, but not by store buffers as on x86"
        } else {
            "needed by the memory model of Rust, and by store buffers as on x86"
        };
        table.row([fence.to_string(), needed.to_owned()]);
    }
    table
}

/// The commands that show more of an algorithm.
fn commands(Entry { info, lock, .. }: &Entry) -> Vec<String> {
    let check = format!("doorway threads check {}", info.name);
    let mut commands = vec![check.clone()];
    if info.serves(3) {
        commands.push(format!("{check} -n 3"));
    }
    commands.push(format!("{check} --memory tso"));
    commands.extend(info.fences.chars().map(|fence| format!("{check} --drop-fence {fence}")));
    if *lock {
        commands.push(format!("doorway threads bench {}", info.name));
    }
    commands
}

/// The step function in the source of an algorithm, and the functions that it calls.
fn step_function(source: &str) -> String {
    let lines: Vec<&str> = source.lines().collect();
    let begin = lines.iter().position(|line| line.starts_with("    fn step("));
    let begin = begin.expect("every algorithm has a step function");
    let end = begin + lines[begin..].iter().take_while(|line| **line != "    }").count();
    let step = lines[begin..=end].iter().map(|line| line.strip_prefix("    ").unwrap_or(line));
    // The implementation of `Algorithm` ends with a brace. `Withdraws`, which is left out, is last.
    let calls = lines[end + 2..].iter().take_while(|line| !line.starts_with("#[")).copied();
    step.chain(calls).collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

/// The text in lines of at most 74 characters.
fn filled(text: &str) -> String {
    wrap::filled(text, 74)
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorway_threads::algorithms::ALL;

    #[test]
    fn every_algorithm_explains_itself() {
        for entry in ALL {
            let explanation = Explanation::new(entry);
            let name = entry.info.name;
            assert!(!explanation.paper.is_empty() && !explanation.idea.is_empty(), "{name}");
            let titles: Vec<_> =
                explanation.sections.iter().map(|part| part.title.as_str()).collect();
            assert!(titles.starts_with(&["What holds"]), "{name}: {titles:?}");
            assert!(explanation.shared.iter().all(|shared| !shared.about.is_empty()), "{name}");
            assert!(explanation.steps.starts_with("fn step("), "{name}");
            assert!(!explanation.steps.contains("Withdraws"), "{name}");
            for fence in entry.info.fences.chars() {
                let call = format!("memory.fence('{fence}')");
                assert!(explanation.steps.contains(&call), "{name}: {call}");
            }
            let mut out = Vec::new();
            explanation.print(entry, &mut out).expect("memory can be written");
            let text = String::from_utf8(out).expect("it is text");
            // The step function is shown as it is written, and may be wider.
            let steps = explanation.steps.lines();
            let code: Vec<String> = steps.map(|line| format!("  {line}")).collect();
            let wide = |line: &&str| line.chars().count() > 80;
            let prose = text.lines().filter(wide).find(|line| !code.contains(&(*line).to_owned()));
            assert_eq!(prose, None, "{name}");
        }
    }

    #[test]
    fn the_items_of_a_list_stay_apart() {
        let entry = ALL.iter().find(|entry| entry.info.name == "lock").expect("a name");
        let mut out = Vec::new();
        Explanation::new(entry).print(entry, &mut out).expect("memory can be written");
        let text = String::from_utf8(out).expect("it is text");
        assert_eq!(text.lines().filter(|line| line.starts_with("  - ")).count(), 3, "{text}");
    }
}
