//! `doorway check`: search every state that a group can reach for a violation.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{anyhow, ensure};
use clap::ValueEnum;
use doorway_core::Info;
use doorway_core::algorithms::{ALL, Entry};
use doorway_lab::FOREVER;
use doorway_lab::check::{Verdict, census};
use doorway_lab::diagram::{self, Format};
use doorway_lab::numbers::grouped;
use doorway_lab::refutations::Refutation;
use doorway_page::server::First;
use serde::Serialize;

use super::print_json;
use crate::browser::{self, OptionalPageArgs};
use crate::check_args::{CaseArgs, parse_checked_size};
use crate::checking::{self, Budget, Interrupt};
use crate::failure::{NotExhausted, Usage, unless_closed};
use crate::files;
use crate::finding::{Counterexample, Finding, Record};
use crate::group_args::{Arrangement, BeginArgs, ShapeArgs};
use crate::names;
use crate::pages;
use crate::rerun::{quoted, with_option};
use crate::scripts;
use crate::table::Table;

const EXAMPLES: &str = "\
Examples:
  doorway check ricart-agrawala
  doorway check lamport -n 2 --channel unordered --diagram story.svg
  doorway check maekawa-printed --quorums '1,2,3;2,3;3' --acquires 1
  doorway check --all -n 2

Exit codes: 0 holds, 1 violated, 2 usage error, 3 not exhausted (nothing is shown)";

/// Search every state that a group can reach for violations: two inside, refused messages,
/// deadlock, starvation
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The algorithm
    #[arg(value_parser = names::algorithms(), hide_possible_values = true)]
    #[arg(required_unless_present_any = ["all", "table", "assumptions"])]
    #[arg(conflicts_with_all = ["all", "assumptions"])]
    algorithm: Option<&'static Entry>,
    /// Set the number of nodes [default: 3]
    #[arg(short = 'n', value_name = "N", value_parser = parse_checked_size)]
    nodes: Option<usize>,
    /// Check every algorithm, including the refuted ones, and print a line for each
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    pages: DocumentArgs,
    /// Write a diagram of the counterexample to FILE; its ending chooses the format: .svg, .txt,
    /// .mmd (Mermaid), .shiviz, or .json (Perfetto)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["all", "table", "assumptions"])]
    diagram: Option<PathBuf>,
    /// Write the counterexample to FILE as a script for `doorway replay`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["all", "table", "assumptions"])]
    save: Option<PathBuf>,
    /// Keep the search in FILE if it is interrupted by Ctrl-C or stops at a limit, and go on with
    /// it if FILE is there already. FILE is removed when the search has ended
    #[arg(long, value_name = "FILE", conflicts_with_all = ["all", "table", "assumptions"])]
    resume: Option<PathBuf>,
    /// Open the counterexample in a browser, at the violation
    #[arg(long, conflicts_with_all = ["all", "table", "assumptions", "json"])]
    page: bool,
    #[command(flatten)]
    browser: OptionalPageArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Choose the output: text, json, or itf (the counterexample alone, in the Informal Trace
    /// Format that Apalache, Quint and trace viewers read)
    #[arg(long, value_name = "FORMAT", default_value = "text", conflicts_with = "json")]
    format: OutputFormat,
    #[command(flatten)]
    case: CaseArgs,
    #[command(flatten)]
    shape: ShapeArgs,
    #[command(flatten)]
    begin: BeginArgs,
}

/// Options that print a page of the documentation instead of one check.
#[derive(clap::Args)]
struct DocumentArgs {
    /// Check every algorithm at the largest sizes that fit into memory, and print the page
    /// docs/checked.md; this takes hours. With ALGORITHM, print only its rows
    #[arg(long, conflicts_with_all = ["all", "nodes", "json", "CaseArgs", "ShapeArgs", "BeginArgs"])]
    table: bool,
    /// With --table, print only the rows whose first columns contain TEXT, as in '5 | for ever'
    #[arg(long, value_name = "TEXT", requires = "table")]
    rows: Option<String>,
    /// Check every algorithm over both kinds of channels and with every fault, and print the page
    /// docs/assumptions.md; this takes about a minute
    #[arg(long, conflicts_with_all = ["all", "table", "nodes", "json", "CaseArgs", "ShapeArgs", "BeginArgs"])]
    assumptions: bool,
}

/// What is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    Text,
    Json,
    Itf,
}

/// The number of nodes, unless a number is given.
const NODES: usize = 3;

/// Run the check. A violation is a failure, and so is a check that was not exhausted.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    if args.pages.table {
        let rows = args.pages.rows.as_deref();
        return pages::checked(out, args.algorithm, rows, &Interrupt::listen()?);
    }
    if args.pages.assumptions {
        return pages::assumed(out, &Interrupt::listen()?);
    }
    args.case.ensure_possible(args.size())?;
    match args.algorithm {
        Some(entry) => one(args, entry, out),
        None if args.begin.begin.is_some() => {
            Err(Usage("--begin is for one algorithm; name it".to_owned()).into())
        }
        None => all(args, out),
    }
}

impl Args {
    fn size(&self) -> usize {
        self.shape.size(self.nodes, NODES)
    }

    /// Check an algorithm, unless it cannot have such a group.
    fn check(&self, entry: &'static Entry, interrupt: &Interrupt) -> anyhow::Result<Finding> {
        let group = self.shape.group(&entry.info, self.size())?;
        let case = self.case.case(self.begin.algorithm(entry)?, group)?;
        self.ensure_finite(entry)?;
        let budget = Budget::of_memory(self.case.memory);
        let checked = match &self.resume {
            Some(file) => checking::resume(&case, file, budget, interrupt)?,
            None => checking::check(&case, budget, interrupt),
        };
        let arrangement = Arrangement::new(&self.shape, self.begin, self.size());
        Finding::new(&entry.info, case, self.case.acquires(), checked, arrangement)
    }

    /// Refuse a search in which ever longer channels would take all the time.
    fn ensure_finite(&self, entry: &Entry) -> Result<(), Usage> {
        let endless = self.case.acquires() == FOREVER && self.begin.is_one_pass();
        let (name, size) = (entry.info.name, self.size());
        match census::why_endless_after_one_pass(name, size).filter(|_| endless) {
            None => Ok(()),
            Some(why) => Err(Usage(format!(
                "{name} with --begin one-pass and {size} nodes that ask forever has infinitely \
                 many worlds: {why}; ask for a number, as --acquires 2, or for two nodes, as -n 2"
            ))),
        }
    }

    /// Write the diagram and the script that were asked for.
    fn write(&self, story: &Counterexample) -> anyhow::Result<()> {
        if let Some(path) = &self.diagram {
            let format = Format::from_path(path).map_err(|error| Usage(error.to_string()))?;
            files::write(path, &diagram::render(&story.played.trace, format))?;
        }
        if let Some(path) = &self.save {
            files::write(path, &story.played.text)?;
        }
        Ok(())
    }

    fn tell(&self, finding: &Finding, out: &mut dyn Write) -> anyhow::Result<()> {
        match (self.is_json(), self.format) {
            (true, _) => print_json(out, &finding.record())?,
            (false, OutputFormat::Itf) => {
                finding.itf().map_or(Ok(()), |itf| print_json(out, &itf))?;
            }
            (false, _) => self.print(finding, out)?,
        }
        Ok(out.flush()?)
    }

    fn is_json(&self) -> bool {
        self.json || self.format == OutputFormat::Json
    }

    fn print(&self, finding: &Finding, out: &mut dyn Write) -> anyhow::Result<()> {
        finding.print(out)?;
        if let (Some(file), Some(_)) = (&self.resume, finding.stop()) {
            writeln!(
                out,
                "\nThe search is kept in {}. The same command goes on with it; a larger --limit or \
                 --memory may be given.",
                file.display()
            )?;
        }
        let Some(story) = &finding.story else {
            for path in self.diagram.iter().chain(&self.save) {
                writeln!(out, "\nNothing is violated, so {} is not written.", path.display())?;
            }
            return Ok(());
        };
        writeln!(out)?;
        scripts::print(out, &story.played.steps)?;
        writeln!(out)?;
        let mut hints = Table::new([]);
        if self.diagram.is_none() {
            hints.row(["to draw it:".to_owned(), with_option("--diagram out.svg")]);
        }
        if !self.page {
            hints.row(["to step through it:".to_owned(), with_option("--page")]);
        }
        let script = if let Some(path) = &self.save {
            quoted(&path.display().to_string())
        } else {
            hints.row(["to save it:".to_owned(), with_option("--save out.txt")]);
            "out.txt".to_owned()
        };
        let again = "then to see it again:".to_owned();
        hints.row([again, format!("doorway replay {script}")]);
        Ok(hints.print_body(out, 0)?)
    }

    /// Show the counterexample in a browser, until the command is interrupted.
    fn open(&self, finding: &Finding, out: &mut dyn Write) -> anyhow::Result<()> {
        let Some(story) = &finding.story else {
            writeln!(out, "\nNothing is violated, so there is no story to open.")?;
            return Ok(());
        };
        let name = format!("counterexample of {}", finding.info.name);
        let first = First::Script { name, text: story.played.text.clone() };
        browser::serve(&self.browser.page, first, out)
    }
}

fn one(args: &Args, entry: &'static Entry, out: &mut dyn Write) -> anyhow::Result<()> {
    if let Some(path) = &args.diagram {
        Format::from_path(path).map_err(|error| Usage(error.to_string()))?;
    }
    for path in args.diagram.iter().chain(&args.save).chain(&args.resume) {
        files::ensure_writable(path)?;
    }
    let finding = args.check(entry, &Interrupt::listen()?)?;
    if let Some(story) = &finding.story {
        args.write(story)?;
    }
    unless_closed(args.tell(&finding, out))?;
    if args.page {
        args.open(&finding, out)?;
    }
    if let Some(violated) = finding.violated() {
        return Err(anyhow!("{}: violated: {violated}", entry.info.name));
    }
    match finding.stop() {
        Some(stop) => Err(NotExhausted(format!("not exhausted: {stop}")).into()),
        None => Ok(()),
    }
}

/// The result of one algorithm under `--all`.
#[derive(Serialize)]
#[serde(untagged)]
enum Line<'a> {
    Checked(Box<Record<'a>>),
    Impossible { algorithm: &'static str, n: usize, verdict: &'static str, reason: String },
}

/// The verdict on an algorithm that cannot have the group asked for.
const NO_GROUP: &str = "no such group";

fn all(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    if args.format == OutputFormat::Itf {
        let reason = "--format itf writes one counterexample; name the algorithm";
        return Err(Usage(reason.to_owned()).into());
    }
    let interrupt = Interrupt::listen()?;
    let mut findings = Vec::new();
    for entry in ALL {
        let found = match args.check(entry, &interrupt) {
            Err(error) if !is_refusal(&error) => return Err(error),
            found => found,
        };
        findings.push((&entry.info, found));
    }
    let possible = findings.iter().any(|(_, found)| found.is_ok());
    if let (false, Some((_, Err(reason)))) = (possible, findings.first()) {
        return Err(Usage(format!("no algorithm can be checked so: {reason}")).into());
    }
    unless_closed(tell_all(args, &findings, out))?;
    judge(&findings)
}

fn tell_all(args: &Args, findings: &Findings, out: &mut dyn Write) -> anyhow::Result<()> {
    if args.is_json() {
        let lines = findings.iter().map(|(info, found)| match found {
            Ok(finding) => Line::Checked(Box::new(finding.record())),
            Err(reason) => Line::Impossible {
                algorithm: info.name,
                n: args.size(),
                verdict: NO_GROUP,
                reason: reason.to_string(),
            },
        });
        print_json(out, &lines.collect::<Vec<_>>())?;
    } else {
        print_all(out, findings)?;
    }
    Ok(out.flush()?)
}

type Findings = [(&'static Info, anyhow::Result<Finding>)];

/// Is the error that the algorithm cannot have such a group? The table says so then.
fn is_refusal(error: &anyhow::Error) -> bool {
    error.is::<Usage>() || error.is::<doorway_core::GroupError>()
}

fn print_all(out: &mut dyn Write, findings: &Findings) -> anyhow::Result<()> {
    let heading = ["algorithm", "verdict", "worlds", "depth", "seconds", "overtaking", ""];
    let mut table = Table::new(heading.map(str::to_owned));
    for (info, found) in findings {
        let finding = match found {
            Ok(finding) => finding,
            Err(reason) => {
                let blanks = std::iter::repeat_n(String::new(), 4);
                let opening = [info.name.to_owned(), NO_GROUP.to_owned()].into_iter();
                table.row(opening.chain(blanks).chain([reason.to_string()]));
                continue;
            }
        };
        let progress = finding.checked.report.progress;
        table.row([
            info.name.to_owned(),
            finding.verdict().to_owned(),
            grouped(progress.states),
            progress.depth.to_string(),
            format!("{:.2}", finding.checked.seconds),
            finding.overtaking().unwrap_or_else(|| "-".to_owned()),
            remark(info, finding),
        ]);
    }
    Ok(table.print(out, 0)?)
}

fn remark(info: &Info, finding: &Finding) -> String {
    let refuted = info.refuted.is_some();
    match (&finding.checked.report.verdict, finding.violated()) {
        (Verdict::Violated { trace, cycle, .. }, Some(violated)) => {
            let steps = trace.len() + cycle.len();
            let known = if refuted { "refuted: " } else { "" };
            format!("{known}{violated} after {steps} steps")
        }
        (Verdict::Holds, _) if refuted => {
            let fails = |Refutation { fails, .. }: &Refutation| {
                format!("refuted, but not in this group: it fails for {fails}")
            };
            finding.refuted_elsewhere().map(fails).unwrap_or_default()
        }
        _ => finding.stop().unwrap_or_default(),
    }
}

/// Fail if an algorithm that is not refuted is violated, or else if a check was not exhausted.
fn judge(findings: &Findings) -> anyhow::Result<()> {
    let found = || findings.iter().filter_map(|(_, found)| found.as_ref().ok());
    let names = |of: &dyn Fn(&Finding) -> bool| {
        let names = found().filter(|finding| of(finding)).map(|finding| finding.info.name);
        names.collect::<Vec<_>>().join(", ")
    };
    let wrong = |one: &Finding| one.violation().is_some() && one.info.refuted.is_none();
    let wrong = names(&wrong);
    ensure!(wrong.is_empty(), "violated: {wrong}");
    let open = names(&|finding| finding.stop().is_some());
    ensure!(open.is_empty(), NotExhausted(format!("not exhausted: {open}")));
    Ok(())
}
