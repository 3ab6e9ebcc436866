//! The explorer: every schedule of a few processes, on the same steps that the locks take.
//!
//! A state consists of the places of all processes and the values of the registers. A step is one
//! access of one process. Every state that can be reached is visited, breadth first, so a schedule
//! that lets two processes in is a shortest one. The answers about waiting for ever assume weak
//! fairness: every process that is not outside keeps taking steps, if it can. States are told apart
//! by 64-bit fingerprints; [`Report::mix_up`] tells how likely it is that two were taken for one.

mod alone;
mod memory;
mod model;
mod order;
mod program;
mod schedule;
mod story;
mod verdicts;

use std::format;
use std::path::Path;
use std::string::String;
use std::vec::Vec;

use doorway_search::{End, KeptSearch, Scope, Search, fingerprint};
pub use doorway_search::{KeptError, Progress};

use crate::algorithms::{self, Task};
use crate::{Algorithm, Bypass, Claims, Info, Withdraws, Word};
pub use alone::{SoloAccesses, alone};
use model::ProcessModel;
use program::Program;
pub use schedule::{Line, PlacedLine};
pub use story::{MAX_STEPS, Moment, StepChoice, choices_of, tell};

/// The most processes that can be explored.
pub const MAX_PROCESSES: usize = 8;

/// How memory and semaphores behave, and what is left out.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Writes wait in a buffer of at most four before others see them: total store order, as on
    /// x86.
    pub buffers: bool,
    /// The letters of the fences that are left out.
    pub dropped: String,
    /// A unit of a semaphore may be taken by any process, even by one that did not sleep.
    pub barging: bool,
    /// A unit of a semaphore goes to the process that has slept longest, not to any that sleeps.
    pub queued: bool,
    /// No state with a greater number than this is visited. Without a bound, numbers wrap around as
    /// bytes do.
    pub bound: Option<usize>,
}

/// A check of an algorithm: what to explore.
///
/// ```
/// use doorway_threads::{algorithms::peterson::Peterson, check::Check};
///
/// assert_eq!(Check::of::<Peterson>(2).run().exclusion, Some(true));
/// let check = Check::named("peterson", 2).ok_or("there is such an algorithm")?;
/// assert_eq!(check.run().exclusion, Some(true));
/// # Ok::<(), &str>(())
/// ```
pub struct Check {
    /// The number of processes.
    pub n: usize,
    /// How memory and semaphores behave.
    pub rules: Rules,
    /// Whether to answer questions about waiting, for which the graph of all steps is kept. They
    /// are never answered with store buffers.
    pub waiting: bool,
    /// Give up if there are more states than this.
    pub limit: u64,
    /// The number of threads.
    pub threads: usize,
    program: Program,
}

/// What a check has found. A property that was not decided is `None`.
#[derive(Clone, Debug)]
pub struct Report {
    /// The number of states and steps, the depth, and the memory that the search took.
    pub progress: Progress,
    /// Whether every state was visited, or as many as needed to refute exclusion.
    pub exhausted: bool,
    /// The bound on numbers, if there is one.
    pub bound: Option<usize>,
    /// Whether never two processes are inside that may not be inside together.
    pub exclusion: Option<bool>,
    /// Whether one process gets in if some want in.
    pub deadlock_free: Option<bool>,
    /// Whether each process that wants in gets in.
    pub lockout_free: Option<bool>,
    /// How often a waiting process is overtaken.
    pub bypass: Option<Bypass>,
    /// Whether it is first come, first served after the doorway.
    pub fifo: Option<bool>,
    /// A schedule that leads to a violation: two processes inside, none that ever enters, or one
    /// locked out that should not be.
    pub schedule: Vec<Line>,
    /// The steps that are then repeated for ever.
    pub cycle: Vec<Line>,
    /// Every register by its name, with its first value.
    pub registers: Vec<(String, Word)>,
}

impl Report {
    /// Whether every claim holds, as far as it was decided.
    pub fn meets(&self, claims: &Claims, n: usize) -> bool {
        let met = |found: Option<bool>, claimed: bool| !claimed || found != Some(false);
        let bypass = match (self.bypass, (claims.bypass)(n)) {
            (Some(Bypass::Unbounded), Bypass::AtMost { .. }) => false,
            (Some(Bypass::AtMost { all, one }), Bypass::AtMost { all: most, one: most_of_one }) => {
                all <= most && one <= most_of_one
            }
            _ => true,
        };
        met(self.exclusion, claims.exclusion)
            && met(self.deadlock_free, claims.deadlock_free)
            && met(self.lockout_free, (claims.lockout_free)(n))
            && met(self.fifo, (claims.fifo)(n))
            && bypass
    }

    /// The approximate probability that two states had the same fingerprint.
    pub fn mix_up(&self) -> f64 {
        let states = self.progress.states as f64;
        states * states / 2.0 / 2f64.powi(64)
    }
}

impl Check {
    /// Check everything for `n` processes, on memory that is sequentially consistent.
    pub fn of<A: Algorithm>(n: usize) -> Self {
        Self::new(n, Program::of::<A>())
    }

    /// Check the algorithm of the list that has this name. Unlike [`of`](Self::of), this adds no
    /// code to the program that calls it.
    pub fn named(name: &str, n: usize) -> Option<Self> {
        struct New(usize);
        impl Task for New {
            type Output = Check;

            fn run<A: Algorithm>(self) -> Check {
                Check::of::<A>(self.0)
            }
        }
        algorithms::with(name, New(n))
    }

    /// Check everything for `n` processes, of which every waiting one may give up at any time.
    pub fn giving_up<A: Withdraws>(n: usize) -> Self {
        Self::new(n, Program::giving_up::<A>())
    }

    fn new(n: usize, program: Program) -> Self {
        let rules = Rules { bound: program.info.bound, ..Rules::default() };
        Self { n, rules, waiting: true, limit: u64::MAX, threads: 1, program }
    }

    /// Check exclusion only, with store buffers and without these fences.
    pub fn buffered(self, dropped: &str) -> Self {
        let rules = Rules { buffers: true, dropped: dropped.into(), ..self.rules };
        Self { rules, waiting: false, ..self }
    }

    /// What the algorithm declares.
    pub fn info(&self) -> &'static Info {
        self.program.info
    }

    /// Whether the algorithm serves this number of processes, and a state of them fits into a row.
    pub fn fits(&self) -> bool {
        self.info().serves(self.n) && (1..=MAX_PROCESSES).contains(&self.n) && self.model().fits()
    }

    /// Run the check.
    ///
    /// # Panics
    ///
    /// If the check does not [fit](Self::fits).
    pub fn run(&self) -> Report {
        self.run_watched(&mut |_| true)
    }

    /// Run the check, and tell `watch` the progress now and then. If it returns `false`, the check
    /// stops.
    pub fn run_watched(&self, watch: &mut dyn FnMut(&Progress) -> bool) -> Report {
        let model = self.fitting_model();
        let mut search = Search::new(&model, self.scope());
        let end = search.run(watch);
        self.report(&model, &search, end)
    }

    /// Run the check, or go on with it. If it stops before its end, `file` keeps what is known, and
    /// the next call with this check and this file goes on from there. The file is removed when the
    /// check has ended. The first progress that `watch` gets is that of the earlier calls.
    ///
    /// # Panics
    ///
    /// If the check does not [fit](Self::fits).
    pub fn resume(
        &self,
        file: &Path,
        watch: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<Report, KeptError> {
        let model = self.fitting_model();
        let file = KeptSearch::new(file, self.title());
        let mut search = file.open(&model, self.scope())?;
        // The search asks again after its first round, so that every run makes some progress.
        let _ = watch(&search.progress());
        let end = search.run(watch);
        let report = self.report(&model, &search, end);
        if report.exhausted {
            // The report counts more than a file that stays.
            drop(file.remove());
        } else {
            file.keep(&search)?;
        }
        Ok(report)
    }

    /// What is searched: a title that tells this check from all others, and the algorithm's code of
    /// today from that of yesterday.
    fn title(&self) -> String {
        let Self { n, rules, program, .. } = self;
        // Algorithms share code.
        let source: Vec<&str> = algorithms::ALL.iter().map(|entry| entry.source).collect();
        let (record, gives_up) = (self.scope().record, program.withdraw.is_some());
        let version = env!("CARGO_PKG_VERSION");
        let details = format!("{source:?} {n} {rules:?} {record} {gives_up} {version}");
        let words: Vec<u32> = details.bytes().map(u32::from).collect();
        format!("{}, {n} processes, case {:016x}", program.info.name, fingerprint(&words))
    }

    fn scope(&self) -> Scope {
        let record = self.waiting && !self.rules.buffers;
        Scope { limit: self.limit, threads: self.threads, record }
    }

    fn model(&self) -> ProcessModel<'_> {
        ProcessModel::new(self.program, self.n, &self.rules)
    }

    fn fitting_model(&self) -> ProcessModel<'_> {
        assert!(self.fits(), "a state of {} processes does not fit", self.n);
        self.model()
    }

    /// What the end of a search says. If its steps are recorded, waiting is looked into.
    fn report(&self, model: &ProcessModel<'_>, search: &Search<'_>, end: End) -> Report {
        let mut report = Report {
            progress: search.progress(),
            exhausted: !matches!(end, End::Limit | End::Stopped),
            bound: self.rules.bound,
            exclusion: None,
            deadlock_free: None,
            lockout_free: None,
            bypass: None,
            fifo: None,
            schedule: Vec::new(),
            cycle: Vec::new(),
            registers: model.registers(&model.first_row()),
        };
        match end {
            End::Limit | End::Stopped => {}
            End::Wrong(steps) => {
                report.exclusion = Some(false);
                report.schedule = schedule::schedule(model, &model.first_row(), &steps).0;
            }
            End::Exhausted => {
                report.exclusion = Some(true);
                if self.scope().record {
                    verdicts::look_into_waiting(model, search, &mut report);
                }
            }
        }
        report
    }
}
