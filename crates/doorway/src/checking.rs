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

/// Why a check was not exhausted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// There are more worlds than the limit.
    Worlds,
    /// The worlds take more memory than allowed.
    Memory,
    /// The user pressed Ctrl-C.
    Person,
}

/// The result of a check, and how long it took.
pub(crate) struct Checked {
    pub(crate) report: Report,
    pub(crate) seconds: f64,
    /// Why the search stopped, if it was not exhausted.
    pub(crate) stop: Option<Stop>,
}

/// The number of threads that can run at once.
pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Shows the progress of a search on the terminal.
pub(crate) struct SearchMeter {
    name: &'static str,
    /// What the search goes through.
    of: &'static str,
    meter: Meter,
    estimate: Estimate,
}

impl SearchMeter {
    /// A meter of a search that begins now; `of` names what it goes through.
    pub(crate) fn new(name: &'static str, of: &'static str) -> Self {
        Self { name, of, meter: Meter::new(), estimate: Estimate::default() }
    }

    /// The seconds that the search has taken.
    pub(crate) fn seconds(&self) -> f64 {
        self.meter.seconds()
    }

    /// Show the progress.
    pub(crate) fn tell(&mut self, progress: &Progress) {
        self.estimate.learn(progress);
        let Self { name, of, meter, estimate } = self;
        let seconds = meter.seconds();
        meter.tell(|| describe(name, of, progress, seconds, estimate.total()));
    }
}

/// The progress of a search in words, with the number of states that it may have in all.
fn describe(name: &str, of: &str, progress: &Progress, seconds: f64, total: Option<u64>) -> String {
    let rate = progress.states as f64 / seconds.max(1e-9);
    let rest = match total {
        None => "no end in sight".to_owned(),
        Some(total) => {
            let left = total.saturating_sub(progress.states) as f64 / rate.max(1e-9);
            let left = HumanDuration(Duration::from_secs_f64(left.min(1e9)));
            format!("perhaps {} in all, {left} to go", rounded(total))
        }
    };
    format!(
        "{name}: {} {of}, {} a second, depth {}, {}; {rest}",
        grouped(progress.states),
        grouped(rate as u64),
        progress.depth,
        HumanBytes(progress.bytes)
    )
}

/// An estimate with two digits.
fn rounded(number: u64) -> String {
    let unit = 10u64.pow(number.max(1).ilog10().saturating_sub(1));
    grouped(number / unit * unit)
}

/// Check a case in at most this many gigabytes of memory.
pub(crate) fn check(case: &Case, gigabytes: u64, interrupt: &Interrupt) -> Checked {
    let run = |watch: &mut Watch<'_>| Ok::<_, Infallible>(case.run(watch));
    let Ok(checked) = watched(case, gigabytes, interrupt, run);
    checked
}

/// Check a case, or go on with a check that `file` keeps.
pub(crate) fn resume(
    case: &Case,
    file: &Path,
    gigabytes: u64,
    interrupt: &Interrupt,
) -> anyhow::Result<Checked> {
    let shown = file.display();
    watched(case, gigabytes, interrupt, |watch| case.resume(file, watch)).map_err(|error| {
        match error {
            KeptError::Io(error) => {
                anyhow::Error::new(error).context(format!("cannot keep the search in {shown}"))
            }
            error => Usage(format!(
                "cannot go on with {shown}: {error}; give the options of the first run, or remove \
                 the file"
            ))
            .into(),
        }
    })
}

type Watch<'a> = dyn FnMut(&Progress) -> bool + 'a;

fn watched<E>(
    case: &Case,
    gigabytes: u64,
    interrupt: &Interrupt,
    run: impl FnOnce(&mut Watch<'_>) -> Result<Report, E>,
) -> Result<Checked, E> {
    let most = gigabytes.saturating_mul(1_000_000_000);
    let name = case.algorithm.info().name;
    let mut meter = SearchMeter::new(name, "worlds");
    let mut stop = Stop::Worlds;
    let report = run(&mut |progress: &Progress| {
        meter.tell(progress);
        if interrupt.is_raised() {
            stop = Stop::Person;
        } else if progress.bytes > most {
            stop = Stop::Memory;
        }
        stop == Stop::Worlds
    })?;
    let stop = (report.verdict == Verdict::NotExhausted).then_some(stop);
    Ok(Checked { report, seconds: meter.seconds(), stop })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_says_how_far_how_fast_and_how_long() {
        let progress = Progress { states: 1_000_000, steps: 0, depth: 12, bytes: 2048 };
        let text = describe("lamport", "worlds", &progress, 10.0, Some(2_512_345));
        assert_eq!(
            text,
            "lamport: 1,000,000 worlds, 100,000 a second, depth 12, 2.00 KiB; \
             perhaps 2,500,000 in all, 15 seconds to go"
        );
        let text = describe("lamport", "worlds", &progress, 10.0, None);
        assert!(text.ends_with("; no end in sight"), "{text}");
        assert_eq!([0, 7, 99, 12_999].map(rounded), ["0", "7", "99", "12,000"]);
    }
}
