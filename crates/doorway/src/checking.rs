//! Runs a check: measures the time, shows the progress, and stops at limits or on Ctrl-C.

use std::convert::Infallible;
use std::path::Path;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use doorway_lab::check::{Case, KeptError, Progress, Report, Verdict};
use doorway_lab::numbers::grouped;
use indicatif::{HumanBytes, HumanDuration};

use crate::estimate::Estimate;
use crate::failure::Usage;
use crate::progress::Meter;

/// A flag that Ctrl-C raises.
#[derive(Clone, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Catch Ctrl-C from now on. The second one ends the process.
    pub(crate) fn listen() -> anyhow::Result<Self> {
        let interrupt = Self::default();
        let raised = interrupt.0.clone();
        let raise = move || {
            if raised.swap(true, Ordering::Relaxed) {
                process::exit(130);
            }
        };
        ctrlc::set_handler(raise).context("cannot listen for Ctrl-C")?;
        Ok(interrupt)
    }

    pub(crate) fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// How much memory and time a check may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    pub(crate) gigabytes: u64,
    /// `None`: as long as it takes.
    pub(crate) minutes: Option<u64>,
}

impl Budget {
    /// This much memory, and as much time as it takes.
    pub(crate) fn of_memory(gigabytes: u64) -> Self {
        Self { gigabytes, minutes: None }
    }

    /// What stops a check that takes this much, if anything does.
    fn exceeded_by(self, progress: &Progress, seconds: f64) -> Option<Stop> {
        if progress.bytes > self.gigabytes.saturating_mul(1_000_000_000) {
            return Some(Stop::Memory);
        }
        let is_late = self.minutes.is_some_and(|minutes| seconds > minutes as f64 * 60.0);
        is_late.then_some(Stop::Time)
    }
}

/// Why a check was not exhausted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// There are more worlds than the limit.
    Worlds,
    /// The worlds take more memory than allowed.
    Memory,
    /// The check takes more time than allowed.
    Time,
    /// The user pressed Ctrl-C.
    Person,
}

/// The result of a check, and how long it took.
pub(crate) struct CheckOutcome {
    pub(crate) report: Report,
    /// The worlds that were known at the beginning: none, unless an earlier check goes on.
    pub(crate) known_before: u64,
    /// How long this run took.
    pub(crate) seconds: f64,
    /// Why the search stopped, if it was not exhausted.
    pub(crate) stop: Option<Stop>,
}

/// The number of threads that can run at once.
pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Shows the progress of a search on the terminal.
struct SearchMeter {
    name: &'static str,
    /// What the search goes through.
    of: &'static str,
    meter: Meter,
    /// The states that were known at the beginning.
    known_before: u64,
    estimate: Estimate,
}

impl SearchMeter {
    /// A meter of a search that begins now; `of` names what it goes through.
    fn new(name: &'static str, of: &'static str) -> Self {
        let (meter, estimate) = (Meter::new(), Estimate::default());
        Self { name, of, meter, known_before: 0, estimate }
    }

    /// The seconds that the search has taken.
    fn seconds(&self) -> f64 {
        self.meter.seconds()
    }

    /// Show the progress.
    fn tell(&mut self, progress: &Progress) {
        self.estimate.learn(progress);
        let Self { name, of, meter, known_before, estimate } = self;
        let rate = rate(progress, *known_before, meter.seconds());
        meter.tell(|| describe(name, of, progress, rate, estimate.total()));
    }
}

/// Watches a search that only its limit, its end or Ctrl-C stops, and shows its progress.
pub(crate) struct SearchWatch<'a> {
    meter: SearchMeter,
    /// Whether the first progress is that of earlier runs.
    goes_on: bool,
    interrupt: &'a Interrupt,
}

impl<'a> SearchWatch<'a> {
    /// A watch of a search that begins now.
    pub(crate) fn new(name: &'static str, interrupt: &'a Interrupt) -> Self {
        Self { meter: SearchMeter::new(name, "states"), goes_on: false, interrupt }
    }

    /// A watch of a search that goes on: the first progress is that of earlier runs.
    pub(crate) fn going_on(self) -> Self {
        Self { goes_on: true, ..self }
    }

    /// Show the progress. Returns whether the search may go on.
    pub(crate) fn tell(&mut self, progress: &Progress) -> bool {
        if std::mem::take(&mut self.goes_on) {
            self.meter.known_before = progress.states;
        }
        self.meter.tell(progress);
        !self.interrupt.is_raised()
    }

    /// The states that were known at the beginning.
    pub(crate) fn known_before(&self) -> u64 {
        self.meter.known_before
    }

    /// The seconds that the search has taken.
    pub(crate) fn seconds(&self) -> f64 {
        self.meter.seconds()
    }

    /// Why the search stopped, if it was not exhausted.
    pub(crate) fn stop(&self, exhausted: bool) -> Option<Stop> {
        let stop = if self.interrupt.is_raised() { Stop::Person } else { Stop::Worlds };
        (!exhausted).then_some(stop)
    }
}

/// The states that a search finds in a second, without those that were known at the beginning.
pub(crate) fn rate(progress: &Progress, known_before: u64, seconds: f64) -> f64 {
    progress.states.saturating_sub(known_before) as f64 / seconds.max(1e-9)
}

/// The progress of a search in words, with the number of states that it may have in all, if that is
/// known.
fn describe(name: &str, of: &str, progress: &Progress, rate: f64, total: Option<u64>) -> String {
    let rest = total.map(|total| {
        let left = total.saturating_sub(progress.states) as f64 / rate.max(1e-9);
        let left = HumanDuration(Duration::from_secs_f64(left.min(1e9)));
        format!("; perhaps {} in all, {left} to go", rounded(total))
    });
    format!(
        "{name}: {} {of}, {} a second, depth {}, {}{}",
        grouped(progress.states),
        grouped(rate as u64),
        progress.depth,
        HumanBytes(progress.bytes),
        rest.unwrap_or_default()
    )
}

/// An estimate with two digits.
fn rounded(number: u64) -> String {
    let unit = 10u64.pow(number.max(1).ilog10().saturating_sub(1));
    grouped(number / unit * unit)
}

/// Check a case within this budget.
pub(crate) fn check(case: &Case, budget: Budget, interrupt: &Interrupt) -> CheckOutcome {
    let run = |watch: &mut Watch<'_>| Ok::<_, Infallible>(case.run(watch));
    let Ok(checked) = watched(case, budget, interrupt, false, run);
    checked
}

/// Check a case, or go on with a check that `file` keeps.
pub(crate) fn resume(
    case: &Case,
    file: &Path,
    budget: Budget,
    interrupt: &Interrupt,
) -> anyhow::Result<CheckOutcome> {
    let run = |watch: &mut Watch<'_>| case.resume(file, watch);
    watched(case, budget, interrupt, true, run).map_err(|error| not_kept(file, error))
}

/// The error that a search cannot go on with this file, or cannot be kept in it.
pub(crate) fn not_kept(file: &Path, error: KeptError) -> anyhow::Error {
    let shown = file.display();
    match error {
        KeptError::Io(error) => {
            anyhow::Error::new(error).context(format!("cannot keep the search in {shown}"))
        }
        error => {
            let remedy = match error {
                KeptError::Format(_) => "remove the file to search from the beginning",
                _ => "give the options of the first run, or remove the file",
            };
            Usage(format!("cannot go on with {shown}: {error}; {remedy}")).into()
        }
    }
}

type Watch<'a> = dyn FnMut(&Progress) -> bool + 'a;

/// Run a check and watch it. If it `goes_on`, the first progress is that of earlier runs.
fn watched<E>(
    case: &Case,
    budget: Budget,
    interrupt: &Interrupt,
    mut goes_on: bool,
    run: impl FnOnce(&mut Watch<'_>) -> Result<Report, E>,
) -> Result<CheckOutcome, E> {
    let name = case.algorithm.info().name;
    let mut meter = SearchMeter::new(name, "worlds");
    let mut stop = Stop::Worlds;
    let report = run(&mut |progress: &Progress| {
        if std::mem::take(&mut goes_on) {
            meter.known_before = progress.states;
        }
        meter.tell(progress);
        if interrupt.is_raised() {
            stop = Stop::Person;
        } else {
            stop = budget.exceeded_by(progress, meter.seconds()).unwrap_or(stop);
        }
        stop == Stop::Worlds
    })?;
    let stop = (report.verdict == Verdict::NotExhausted).then_some(stop);
    let seconds = meter.seconds();
    Ok(CheckOutcome { report, known_before: meter.known_before, seconds, stop })
}

#[cfg(test)]
mod tests {
    use doorway_core::Shape;
    use doorway_core::algorithms::ALL;
    use doorway_lab::AnyAlgorithm;

    use super::*;

    #[test]
    fn progress_says_how_far_how_fast_and_how_long() {
        let progress = Progress { states: 1_000_000, steps: 0, depth: 12, bytes: 2048 };
        let text = describe("lamport", "worlds", &progress, 100_000.0, Some(2_512_345));
        assert_eq!(
            text,
            "lamport: 1,000,000 worlds, 100,000 a second, depth 12, 2.00 KiB; \
             perhaps 2,500,000 in all, 15 seconds to go"
        );
        let text = describe("lamport", "worlds", &progress, 100_000.0, None);
        assert!(text.ends_with("depth 12, 2.00 KiB"), "{text}");
        assert_eq!([0, 7, 99, 12_999].map(rounded), ["0", "7", "99", "12,000"]);
    }

    #[test]
    fn a_check_stops_at_its_memory_and_at_its_time() {
        let group = ALL[0].info.group(3, &Shape::default()).unwrap();
        let case = Case::new(AnyAlgorithm::from(&ALL[0]), group, 2);
        let stop = |budget| check(&case, budget, &Interrupt::default()).stop;
        assert_eq!(stop(Budget { gigabytes: 0, minutes: None }), Some(Stop::Memory));
        assert_eq!(stop(Budget { gigabytes: 1, minutes: Some(0) }), Some(Stop::Time));
        assert_eq!(stop(Budget { gigabytes: 1, minutes: Some(1) }), None);
    }

    /// What an earlier run has found does not make this one look faster.
    #[test]
    fn the_rate_counts_only_what_this_run_has_found() {
        let group = ALL[0].info.group(3, &Shape::default()).unwrap();
        let case = Case { limit: 200, ..Case::new(AnyAlgorithm::from(&ALL[0]), group, 2) };
        let file = std::env::temp_dir().join(format!("doorway-rate-{}", process::id()));
        let _ = std::fs::remove_file(&file);
        let budget = Budget::of_memory(1);
        let first = resume(&case, &file, budget, &Interrupt::default()).unwrap();
        assert_eq!((first.known_before, first.stop), (0, Some(Stop::Worlds)));
        let case = Case { limit: 1_000_000, ..case };
        let second = resume(&case, &file, budget, &Interrupt::default()).unwrap();
        assert_eq!((second.known_before, second.stop), (first.report.progress.states, None));
        let progress = Progress { states: 1_500, ..Progress::default() };
        assert!((rate(&progress, 500, 10.0) - 100.0).abs() < 1e-9);
    }
}
