//! Runs a check: measures the time, shows the progress, and stops at limits or on Ctrl-C.

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::Context as _;
use doorway_lab::check::{Case, Progress, Report, Verdict};
use doorway_lab::numbers::grouped;
use indicatif::HumanBytes;

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

/// Show the progress of a search; `of` names what it goes through.
pub(crate) fn tell(meter: &mut Meter, name: &str, of: &str, progress: &Progress) {
    let seconds = meter.seconds();
    meter.tell(|| {
        let rate = (progress.states as f64 / seconds) as u64;
        format!(
            "{name}: {} {of}, {} a second, {}",
            grouped(progress.states),
            grouped(rate),
            HumanBytes(progress.bytes)
        )
    });
}

/// Check a case in at most this many gigabytes of memory.
pub(crate) fn check(case: &Case, gigabytes: u64, interrupt: &Interrupt) -> Checked {
    let most = gigabytes.saturating_mul(1_000_000_000);
    let name = case.algorithm.info().name;
    let mut meter = Meter::new();
    let mut stop = Stop::Worlds;
    let mut watch = |progress: &Progress| {
        tell(&mut meter, name, "worlds", progress);
        if interrupt.is_raised() {
            stop = Stop::Person;
        } else if progress.bytes > most {
            stop = Stop::Memory;
        }
        stop == Stop::Worlds
    };
    let report = case.run(&mut watch);
    let stop = (report.verdict == Verdict::NotExhausted).then_some(stop);
    Checked { report, seconds: meter.seconds(), stop }
}
