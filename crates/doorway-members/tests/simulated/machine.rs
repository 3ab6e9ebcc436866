//! A machine: a process with a runtime and a clock of its own.
//!
//! The clock runs faster or slower than the time of the simulation. A machine can be paused, as a
//! process is by SIGSTOP or a virtual machine by its host: none of its tasks runs, and when it goes
//! on, its clock has jumped.

use std::convert::Infallible;
use std::pin::Pin;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, advance, sleep_until};

/// The clock of a process, with which it can tell the time of the simulation. The process itself
/// must not look at that, but the referee does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MachineClock {
    /// When the process began, by the time of the simulation.
    began: Duration,
    /// When the process began, by its own clock.
    began_here: Instant,
    /// How fast the clock runs.
    rate: f64,
}

impl MachineClock {
    /// The time of the simulation.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began + self.in_simulation(self.began_here.elapsed())
    }

    /// How long a time by this clock takes in the simulation.
    pub(crate) fn in_simulation(&self, time: Duration) -> Duration {
        time.div_f64(self.rate)
    }

    fn at(&self, time: Duration) -> Instant {
        self.began_here + time.saturating_sub(self.began).mul_f64(self.rate)
    }
}

/// What a process does. It ends only by a failure.
pub(crate) type Program = Pin<Box<dyn Future<Output = Result<Infallible, String>>>>;

/// A machine on which a process runs, or none does.
pub(crate) struct Machine {
    rate: f64,
    process: Option<Process>,
    paused: bool,
}

struct Process {
    /// None only while the process ends.
    program: Option<Program>,
    clock: MachineClock,
    runtime: Runtime,
}

impl Machine {
    /// A machine whose clock runs at this rate, in thousandths.
    pub(crate) fn new(rate: u32) -> Self {
        Self { rate: f64::from(rate) / 1000.0, process: None, paused: false }
    }

    /// Start a process at this time of the simulation.
    pub(crate) fn start(&mut self, now: Duration, program: impl FnOnce(MachineClock) -> Program) {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.expect("a runtime");
        let began_here = runtime.block_on(async { Instant::now() });
        let clock = MachineClock { began: now, began_here, rate: self.rate };
        let program = Some(program(clock));
        self.process = Some(Process { program, clock, runtime });
    }

    /// End the process at once.
    pub(crate) fn kill(&mut self) {
        self.process = None;
        self.paused = false;
    }

    /// Stop all tasks of the process.
    pub(crate) fn pause(&mut self) {
        self.paused = true;
    }

    /// Let the process go on. Its clock says that time has passed.
    pub(crate) fn go_on(&mut self, now: Duration) {
        self.paused = false;
        if let Some(process) = &self.process {
            let missed = process.clock.at(now);
            process.runtime.block_on(async move {
                advance(missed.saturating_duration_since(Instant::now())).await;
            });
        }
    }

    /// Let the process run until this time of the simulation, if it is not paused. Fails if its
    /// program fails.
    pub(crate) fn run_until(&mut self, now: Duration) -> Result<(), String> {
        let Some(Process { program: Some(program), clock, runtime }) = &mut self.process else {
            return Ok(());
        };
        if self.paused {
            return Ok(());
        }
        let end = clock.at(now);
        runtime.block_on(async {
            tokio::select! {
                biased;
                failed = program => failed.map(|never| match never {}),
                () = sleep_until(end) => Ok(()),
            }
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The program must go before the runtime does.
        let _context = self.runtime.enter();
        self.program = None;
    }
}
