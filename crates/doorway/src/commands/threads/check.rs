//! `doorway threads check`: explores every schedule of an algorithm, and tells what holds in all of
//! them.

use std::io::Write;
use std::path::PathBuf;

use anyhow::anyhow;
use clap::ValueEnum;
use doorway_page::server::First;
use doorway_threads::Info;
use doorway_threads::algorithms::Entry;
use doorway_threads::check::{Check, MAX_PROCESSES, Report};

use super::finding::Finding;
use super::{letters, page};
use crate::browser::{self, OptionalPageArgs};
use crate::check_args::{MOST_WORLDS, parse_threads};
use crate::checking::{Interrupt, SearchWatch, Stop, cores, not_kept};
use crate::commands::print_json;
use crate::failure::{NotExhausted, Usage, unless_closed};
use crate::files;
use crate::names;

/// Check every schedule of an algorithm: exclusion, deadlock, lockout, overtaking
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The algorithm (`doorway threads list` shows them all)
    #[arg(value_name = "NAME", value_parser = names::thread_algorithms())]
    #[arg(hide_possible_values = true, required_unless_present = "table")]
    algorithm: Option<&'static Entry>,
    /// Check this number of processes, at most 8 [default: 2, or as many as the algorithm needs]
    #[arg(short = 'n', value_name = "N", value_parser = parse_processes)]
    processes: Option<usize>,
    /// Choose how memory behaves: writes are seen at once (sc), or wait in a buffer as on x86
    /// (tso), where only exclusion is decided [default: sc, or tso if a fence is left out]
    #[arg(long, value_name = "MODEL")]
    memory: Option<Memory>,
    /// Leave out these fences, by their letters, as in a,b
    #[arg(long, value_name = "LETTERS", value_delimiter = ',')]
    drop_fence: Vec<char>,
    /// Give up if there are more than this number of different states; a check that gives up has
    /// shown nothing
    #[arg(long, value_name = "STATES", default_value_t = 20_000_000, value_parser = parse_limit)]
    limit: u64,
    /// Use this number of threads [default: one for each core]
    #[arg(long, value_name = "T", value_parser = parse_threads)]
    threads: Option<usize>,
    /// Keep the search in FILE if it is interrupted by Ctrl-C or stops at the limit, and go on with
    /// it if FILE is there already. FILE is removed when the search has ended
    #[arg(long, value_name = "FILE", conflicts_with = "table")]
    resume: Option<PathBuf>,
    /// Check every algorithm for two and three processes, and print the page docs/threads.md
    #[arg(long, exclusive = true)]
    table: bool,
    /// Write a picture of the schedule that shows a violation to FILE.svg: a lane for each process,
    /// and the registers after each step. If nothing is violated, the processes take turns in it
    #[arg(long, value_name = "FILE.svg", conflicts_with = "table")]
    diagram: Option<PathBuf>,
    /// Open the schedule that shows a violation in a browser, at the violation
    #[arg(long, conflicts_with_all = ["table", "json"])]
    page: bool,
    #[command(flatten)]
    browser: OptionalPageArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// How memory behaves: sequential consistency, or total store order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Memory {
    Sc,
    Tso,
}

fn parse_processes(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=MAX_PROCESSES).contains(number));
    number.ok_or_else(|| format!("a check has 1 to {MAX_PROCESSES} processes"))
}

fn parse_limit(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| (1..=MOST_WORLDS).contains(number));
    number.ok_or_else(|| format!("the limit is 1 to {MOST_WORLDS} states"))
}

/// What is asked about one algorithm.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) info: &'static Info,
    pub(super) n: usize,
    pub(super) memory: Memory,
    pub(super) dropped: String,
    pub(super) limit: u64,
    pub(super) threads: usize,
    /// The file that keeps the search, if one does.
    resume: Option<PathBuf>,
}

/// The answer, the time it took, and why the check gave up if it did.
pub(super) struct Answer {
    pub(super) report: Report,
    pub(super) seconds: f64,
    pub(super) stop: Option<Stop>,
    /// The states that were known at the beginning: none, unless an earlier check goes on.
    pub(super) known_before: u64,
}

impl Question {
    /// A question about `n` processes on sequentially consistent memory.
    pub(super) fn new(info: &'static Info, n: usize, limit: u64) -> Self {
        let (memory, dropped, threads) = (Memory::Sc, String::new(), cores());
        Self { info, n, memory, dropped, limit, threads, resume: None }
    }

    /// Run the check. It is a usage error if a state of that many processes does not fit.
    pub(super) fn answer(&self, interrupt: &Interrupt) -> anyhow::Result<Answer> {
        let (name, n) = (self.info.name, self.n);
        let mut check = Check::named(name, n).expect("a name of the list");
        if matches!(self.memory, Memory::Tso) {
            check = check.buffered(&self.dropped);
        }
        (check.limit, check.threads) = (self.limit, self.threads);
        if !check.fits() {
            let what = "is too large for a check; try fewer";
            return Err(Usage(format!("a state of {n} processes of {name} {what}")).into());
        }
        let mut watch = SearchWatch::new(name, interrupt);
        let report = match &self.resume {
            None => check.run_watched(&mut |progress| watch.tell(progress)),
            Some(file) => {
                watch = watch.going_on();
                let report = check.resume(file, &mut |progress| watch.tell(progress));
                report.map_err(|error| not_kept(file, error))?
            }
        };
        let (stop, known_before) = (watch.stop(report.exhausted), watch.known_before());
        Ok(Answer { report, seconds: watch.seconds(), stop, known_before })
    }
}

/// Run the check and print the result. A claim that does not hold is a failure, and so is a check
/// that gave up.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let Some(entry) = args.algorithm else {
        return page::print(out, &Interrupt::listen()?);
    };
    let question = args.question(&entry.info)?;
    if let Some(path) = &args.diagram {
        files::ensure_svg(path, "a schedule")?;
        files::ensure_writable(path)?;
    }
    if let Some(path) = &args.resume {
        files::ensure_writable(path)?;
    }
    let finding = Finding::new(&question, question.answer(&Interrupt::listen()?)?);
    if let Some(path) = &args.diagram {
        let picture =
            finding.picture().map_err(|why| anyhow!("no schedule can be drawn: {why}"))?;
        files::write(path, &picture)?;
    }
    let told = if args.json { print_json(out, &finding.record()) } else { Ok(finding.print(out)?) };
    if let (Some(path), false, false) = (&args.diagram, finding.has_schedule(), args.json) {
        let (file, what) = (path.display(), "a run in which processes take turns");
        writeln!(out, "\nNo violation was found, so {file} shows {what}.")?;
    }
    if let (Some(file), Some(_), false) = (&args.resume, finding.stop(), args.json) {
        writeln!(
            out,
            "\nThe search is kept in {}. The same command goes on with it; a larger --limit may be \
             given.",
            file.display()
        )?;
    }
    unless_closed(told.and_then(|()| Ok(out.flush()?)))?;
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

impl Args {
    /// Show the schedule in a browser, until the command is interrupted.
    fn open(&self, finding: &Finding<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
        match finding.schedule().map_err(|why| anyhow!("the schedule cannot be opened: {why}"))? {
            Some(schedule) => browser::serve(&self.browser.page, First::Threads(schedule), out),
            None => Ok(writeln!(out, "\nNothing is violated, so there is no schedule to open.")?),
        }
    }

    /// The question, or an error if it cannot be asked about this algorithm.
    fn question(&self, info: &'static Info) -> Result<Question, Usage> {
        let (name, n) = (info.name, self.processes.unwrap_or(info.fewest.max(2)));
        if !info.serves(n) {
            let (fewest, most) = (info.fewest, info.most.min(MAX_PROCESSES));
            let served =
                if fewest == most { fewest.to_string() } else { format!("{fewest} to {most}") };
            return Err(Usage(format!("{name} is for {served} processes, not {n}")));
        }
        if let Some(letter) = self.drop_fence.iter().find(|letter| !info.fences.contains(**letter))
        {
            let there = match info.fences {
                "" => "it has none".to_owned(),
                fences => format!("it has {}", letters(fences)),
            };
            return Err(Usage(format!("{name} has no fence '{letter}': {there}")));
        }
        let memory = match (self.memory, self.drop_fence.is_empty()) {
            (Some(Memory::Sc), false) => {
                let reason = "fences matter only with store buffers; say --memory tso";
                return Err(Usage(reason.to_owned()));
            }
            (None, false) => Memory::Tso,
            (memory, _) => memory.unwrap_or(Memory::Sc),
        };
        Ok(Question {
            memory,
            dropped: self.drop_fence.iter().collect(),
            threads: self.threads.unwrap_or_else(cores),
            resume: self.resume.clone(),
            ..Question::new(info, n, self.limit)
        })
    }
}
