//! A check with its clock, its progress, and its ways to be stopped.

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::Context as _;
use doorway_lab::check::{Case, Progress, Report, Verdict};
use indicatif::{HumanBytes, HumanCount};

use crate::progress::Meter;

/// Raised when the person presses Ctrl-C.
#[derive(Clone, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listen from now on. The second Ctrl-C ends the process, as every other would have.
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

/// Why a check came to no end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// There are more worlds than the limit.
    Worlds,
    /// They take more memory than allowed.
    Memory,
    /// The person said so.
    Person,
}

/// What a check found, and what it took.
pub(crate) struct Checked {
    pub(crate) report: Report,
    pub(crate) seconds: f64,
    /// Set where the verdict is that it was not exhausted.
    pub(crate) stop: Option<Stop>,
}

/// How many threads can work at once.
pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Tell how a search through so many of something stands.
pub(crate) fn tell(meter: &mut Meter, name: &str, of: &str, progress: &Progress) {
    let seconds = meter.seconds();
    meter.tell(|| {
        let rate = (progress.states as f64 / seconds) as u64;
        format!(
            "{name}: {} {of}, {} a second, {}",
            HumanCount(progress.states),
            HumanCount(rate),
            HumanBytes(progress.bytes)
        )
    });
}

/// Check a case in at most this many gigabytes.
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
