//! `doorway problems check`: visits every state of a problem, and tells what holds in all of them.

use std::io::Write;

use anyhow::anyhow;
use doorway_lab::numbers::grouped;
use doorway_lab::problems::buffer::{Buffer, Outcome, Refuted};
use doorway_threads::Algorithm;
use doorway_threads::check::{Check, MAX_PROCESSES, Progress, Report};
use doorway_threads::problems::{Delivery, Turnstile};
use doorway_threads::ring::explore::{MOST_STATES, Verdict, explore};
use doorway_threads::ring::{FourState, KState, ThreeState};
use serde::Serialize;

use super::page;
use super::problem::{Problem, ProblemArgs, Question, RingKind};
use crate::check_args::{MOST_WORLDS, parse_threads};
use crate::checking::{Interrupt, SearchWatch, Stop, cores};
use crate::commands::print_json;
use crate::failure::{NotExhausted, Usage, unless_closed};
use crate::finding::refuted_but_holds;
use crate::names;
use crate::table::Table;

const EXAMPLES: &str = "\
Examples:
  doorway problems check buffer-pair --faults overtaking,loss,duplication,crash
  doorway problems check buffer-naive
  doorway problems check buffer-locked --lock suzuki-kasami
  doorway problems check ring-k-state -n 5 --states 4";

/// Check every state of a problem: nothing lost or doubled, no deadlock, a ring stabilises
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The problem (`doorway problems list` shows them all)
    #[arg(value_name = "NAME", value_parser = names::problems(), hide_possible_values = true)]
    #[arg(required_unless_present = "table")]
    problem: Option<Problem>,
    #[command(flatten)]
    options: ProblemArgs,
    /// Give up if there are more than this number of different states; a check that gives up has
    /// shown nothing
    #[arg(long, value_name = "STATES", default_value_t = 20_000_000, value_parser = parse_limit)]
    limit: u64,
    /// Use this number of threads [default: one for each core]
    #[arg(long, value_name = "T", value_parser = parse_threads)]
    threads: Option<usize>,
    /// Check every problem at several sizes, and print the page docs/problems.md
    #[arg(long, exclusive = true)]
    table: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn parse_limit(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| (1..=MOST_WORLDS).contains(number));
    number.ok_or_else(|| format!("the limit is 1 to {MOST_WORLDS} states"))
}

/// What a check has found, under names that scripts rely on.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Finding {
    pub(super) problem: &'static str,
    pub(super) question: String,
    pub(super) states: u64,
    pub(super) steps: Option<u64>,
    /// `None` if the check gave up.
    pub(super) holds: Option<bool>,
    /// What is violated, if something is.
    pub(super) violated: Option<String>,
    /// What happens until then, one line each.
    pub(super) path: Vec<String>,
    /// What else is known, each as a name and a value.
    pub(super) facts: Vec<(&'static str, String)>,
    /// The command that finds a violation, if the solution is refuted but holds here.
    refuted_by: Option<String>,
    /// Why the check gave up, if it did.
    #[serde(skip)]
    stop: Option<Stop>,
}

/// How far a check goes, and how it is watched.
pub(super) struct Effort<'a> {
    pub(super) limit: u64,
    pub(super) threads: usize,
    pub(super) interrupt: &'a Interrupt,
}

/// Run the check and print the result. A violation is a failure, and so is a check that gave up.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let Some(problem) = &args.problem else { return page::print(out) };
    let question = args.options.question(problem)?;
    let interrupt = match question {
        // The explorer of rings tells no progress and cannot be stopped: Ctrl-C ends the process.
        Question::Ring { .. } => Interrupt::default(),
        _ => Interrupt::listen()?,
    };
    let threads = args.threads.unwrap_or_else(cores);
    let effort = Effort { limit: args.limit, threads, interrupt: &interrupt };
    let mut finding = answer(problem.name, &question, &effort)?;
    let elsewhere = problem.refuted().filter(|_| finding.holds == Some(true));
    let command = |it: Refuted| format!("doorway problems check {} {}", problem.name, it.check);
    finding.refuted_by = elsewhere.map(command);
    let told = if args.json {
        print_json(out, &finding)
    } else {
        finding.print(elsewhere.map(|it| it.fails), out)
    };
    unless_closed(told.and_then(|()| Ok(out.flush()?)))?;
    match (finding.stop, &finding.violated) {
        (Some(Stop::Person), _) => {
            Err(NotExhausted("not exhausted: stopped by Ctrl-C".to_owned()).into())
        }
        (Some(_), _) => {
            let why = format!("not exhausted: more than {} states", grouped(args.limit));
            Err(NotExhausted(why).into())
        }
        (_, Some(violated)) => Err(anyhow!("{}: violated: {violated}", finding.problem)),
        _ => Ok(()),
    }
}

/// Answer a question.
pub(super) fn answer(
    problem: &'static str,
    question: &Question,
    effort: &Effort<'_>,
) -> Result<Finding, Usage> {
    let words = question.words();
    let mut watch = SearchWatch::new(problem, effort.interrupt);
    match *question {
        Question::Buffer(buffer) => of_buffer(problem, words, &buffer, effort),
        Question::ThreadBuffer { slots, senders, n } => {
            let report = match (slots, senders) {
                (1, 1) => between::<Delivery<1, 1>>(n, effort, &mut watch),
                (1, 2) => between::<Delivery<1, 2>>(n, effort, &mut watch),
                (1, 3) => between::<Delivery<1, 3>>(n, effort, &mut watch),
                (2, 1) => between::<Delivery<2, 1>>(n, effort, &mut watch),
                (2, 2) => between::<Delivery<2, 2>>(n, effort, &mut watch),
                (2, 3) => between::<Delivery<2, 3>>(n, effort, &mut watch),
                (3, 1) => between::<Delivery<3, 1>>(n, effort, &mut watch),
                (3, 2) => between::<Delivery<3, 2>>(n, effort, &mut watch),
                _ => between::<Delivery<3, 3>>(n, effort, &mut watch),
            }?;
            Ok(of_threads(problem, words, &report, &watch))
        }
        Question::ReadersWriters { writers, n } => {
            let report = match writers {
                1 => between::<Turnstile<1>>(n, effort, &mut watch),
                2 => between::<Turnstile<2>>(n, effort, &mut watch),
                _ => between::<Turnstile<3>>(n, effort, &mut watch),
            }?;
            Ok(of_threads(problem, words, &report, &watch))
        }
        Question::Ring { kind, n, states, daemon } => {
            let daemon = daemon.daemon();
            let verdict = match kind {
                RingKind::K => explore(KState { k: states }, n, daemon),
                RingKind::Four => explore(FourState, n, daemon),
                RingKind::Three => explore(ThreeState, n, daemon),
            };
            let verdict = verdict.filter(|verdict| u64::from(verdict.states) <= effort.limit);
            let verdict = verdict.ok_or_else(|| {
                let most = effort.limit.min(MOST_STATES.into());
                Usage(format!(
                    "this ring has more than {} states; try fewer machines",
                    grouped(most)
                ))
            })?;
            Ok(of_ring(problem, words, verdict))
        }
    }
}

/// Visit every state of a buffer by messages.
fn of_buffer(
    problem: &'static str,
    question: String,
    buffer: &Buffer,
    effort: &Effort<'_>,
) -> Result<Finding, Usage> {
    let mut watch = SearchWatch::new(problem, effort.interrupt);
    let watched = &mut |progress: &Progress| watch.tell(progress);
    let report = buffer.check_watched(effort.limit, effort.threads, watched);
    let report = report.map_err(Usage)?;
    let exhausted = report.outcome != Outcome::NotExhausted;
    let violated = match &report.outcome {
        Outcome::Holds | Outcome::NotExhausted => None,
        Outcome::Violated(what, _) => Some(what.clone()),
        Outcome::Stuck(_) => Some("an item is never consumed: nothing leads on".to_owned()),
    };
    let path = match report.path() {
        [] => Vec::new(),
        _ => super::show::lines(&buffer.draw(&report).map_err(Usage)?),
    };
    Ok(Finding {
        problem,
        question,
        states: report.states,
        steps: Some(report.steps),
        holds: exhausted.then_some(violated.is_none()),
        violated,
        path,
        facts: vec![("depth", report.depth.to_string())],
        refuted_by: None,
        stop: watch.stop(exhausted),
    })
}

/// Explore an algorithm on semaphores that hand over to the process that has slept longest.
fn between<A: Algorithm>(
    n: usize,
    effort: &Effort<'_>,
    watch: &mut SearchWatch<'_>,
) -> Result<Report, Usage> {
    let mut check = Check::of::<A>(n);
    check.rules.queued = true;
    (check.limit, check.threads) = (effort.limit, effort.threads);
    if !check.fits() {
        let most = A::INFO.most.min(MAX_PROCESSES);
        return Err(Usage(format!("a check has {} to {most} processes, not {n}", A::INFO.fewest)));
    }
    Ok(check.run_watched(&mut |progress| watch.tell(progress)))
}

fn of_threads(
    problem: &'static str,
    question: String,
    report: &Report,
    watch: &SearchWatch<'_>,
) -> Finding {
    let verdicts = [
        (report.exclusion, "two processes are at one place together, or an item is wrong"),
        (report.deadlock_free, "all processes wait"),
        (report.lockout_free, "a process waits for ever"),
    ];
    let wrong = verdicts.iter().find(|(found, _)| *found == Some(false));
    let violated = wrong.map(|(_, what)| (*what).to_owned());
    let path = report.schedule.iter().map(ToString::to_string);
    Finding {
        problem,
        question,
        states: report.progress.states,
        steps: Some(report.progress.steps),
        holds: report.exhausted.then_some(violated.is_none()),
        path: path.collect(),
        violated,
        facts: vec![("depth", report.progress.depth.to_string())],
        refuted_by: None,
        stop: watch.stop(report.exhausted),
    }
}

fn of_ring(problem: &'static str, question: String, verdict: Verdict) -> Finding {
    let violated = (!verdict.stabilises)
        .then(|| "from some state, no state with a single privilege is reached".to_owned());
    let mut facts = vec![("legitimate states", grouped(verdict.legitimate.into()))];
    facts.extend(verdict.moves.map(|moves| ("longest way home", super::steps(moves.into()))));
    Finding {
        problem,
        question,
        states: verdict.states.into(),
        steps: None,
        holds: Some(verdict.stabilises),
        violated,
        path: Vec::new(),
        facts,
        refuted_by: None,
        stop: None,
    }
}

impl Finding {
    /// The verdict in words.
    pub(super) fn verdict(&self) -> String {
        match (self.holds, &self.violated) {
            (None, _) => "not exhausted".to_owned(),
            (_, Some(violated)) => format!("violated: {violated}"),
            _ => "holds".to_owned(),
        }
    }

    /// Print what was found. If the solution is refuted but holds here, `fails` says where it
    /// fails.
    fn print(&self, fails: Option<&str>, out: &mut dyn Write) -> anyhow::Result<()> {
        let verdict = fails.map_or_else(|| self.verdict(), refuted_but_holds);
        writeln!(out, "{}: {verdict}", self.problem)?;
        let mut table = Table::new([]);
        table.row(["question".to_owned(), self.question.clone()]);
        table.row(["states".to_owned(), grouped(self.states)]);
        if let Some(steps) = self.steps {
            table.row(["steps".to_owned(), grouped(steps)]);
        }
        for (what, value) in &self.facts {
            table.row([(*what).to_owned(), value.clone()]);
        }
        if self.stop == Some(Stop::Person) {
            table.row(["no answer".to_owned(), "stopped by Ctrl-C; this shows nothing".to_owned()]);
        }
        if let Some(command) = &self.refuted_by {
            table.row(["it fails".to_owned(), command.clone()]);
        }
        table.print_body(out, 2)?;
        if !self.path.is_empty() {
            writeln!(out)?;
            for (number, line) in (1..).zip(&self.path) {
                writeln!(out, "{number:>4}. {line}")?;
            }
        }
        Ok(())
    }
}
