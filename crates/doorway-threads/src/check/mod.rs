//! The explorer: every schedule of so many processes, on the very steps that the locks take.
//!
//! A state is where all processes are and what the registers hold; a step is one access of one
//! process. Everything that can be reached is looked at, breadth first, so a schedule that lets
//! two in is a shortest one. What is said about waiting for ever assumes weak fairness: whoever is
//! not outside keeps taking steps, if it can. States are told apart by 64-bit fingerprints;
//! [`Report::mix_up`] says how likely it is that two were taken for one.

mod alone;
mod memory;
mod model;
mod order;
mod schedule;
mod verdicts;

use std::string::String;
use std::vec::Vec;

pub use doorway_search::Progress;
use doorway_search::{End, Scope, Search};

use crate::{Algorithm, Bypass, Claims, Withdraws};
pub use alone::{Alone, alone};
use memory::Layout;
use model::{ProcessModel, Withdraw};
pub use schedule::Line;

/// The most processes that can be explored.
pub const MAX_PROCESSES: usize = 8;

/// What memory does, and what is left out.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Writes wait in a buffer, four at most, before others see them: total store order, as on x86.
    pub buffers: bool,
    /// The fences that are left out, by their names.
    pub dropped: String,
    /// What is given to a semaphore may be taken by anyone, also by one who did not sleep.
    pub barging: bool,
    /// What is given to a semaphore goes to the one who has slept longest, not to any who sleeps.
    pub queued: bool,
    /// Nothing beyond this number is looked at; without it, numbers go around the end of a byte.
    pub bound: Option<usize>,
}

/// A check to be made.
pub struct Check<A: Algorithm> {
    /// How many processes there are.
    pub n: usize,
    /// What memory does.
    pub rules: Rules,
    /// Is waiting looked into? It takes the memory of all steps. Never where writes are buffered.
    pub waiting: bool,
    /// Give up beyond so many states.
    pub limit: u64,
    /// How many threads work.
    pub threads: usize,
    withdraw: Option<Withdraw<A::At>>,
}

/// What was found. Nothing is said of a property that could not be decided.
#[derive(Clone, Debug)]
pub struct Report {
    /// How many states and steps there are, how deep, and how much memory they took.
    pub progress: Progress,
    /// Was every state looked at, or as many as needed to refute something?
    pub exhausted: bool,
    /// The largest number that was looked at, if there is a limit.
    pub bound: Option<usize>,
    /// Is at most one inside, or none but those who may be together?
    pub exclusion: Option<bool>,
    /// Does one get in if some want in?
    pub deadlock_free: Option<bool>,
    /// Does everyone get in who wants in?
    pub lockout_free: Option<bool>,
    /// How often is one overtaken?
    pub bypass: Option<Bypass>,
    /// Is it first come, first served after the doorway?
    pub fifo: Option<bool>,
    /// How it comes to what is wrong: two inside, nobody entering, or one locked out that should
    /// not be.
    pub schedule: Vec<Line>,
    /// What then happens again and again.
    pub cycle: Vec<Line>,
}

impl Report {
    /// Is everything true that is claimed, as far as it was decided?
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

    /// About how likely it is that two states had the same fingerprint.
    pub fn mix_up(&self) -> f64 {
        let states = self.progress.states as f64;
        states * states / 2.0 / 2f64.powi(64)
    }
}

impl<A: Algorithm> Check<A> {
    /// Everything is looked into, on memory that keeps order, for so many processes.
    pub fn new(n: usize) -> Self {
        let rules = Rules { bound: A::INFO.bound, ..Rules::default() };
        Self { n, rules, waiting: true, limit: u64::MAX, threads: 1, withdraw: None }
    }

    /// Writes are buffered, and these fences are left out. Only exclusion is decided.
    pub fn buffered(n: usize, dropped: &str) -> Self {
        let check = Self::new(n);
        let rules = Rules { buffers: true, dropped: dropped.into(), ..check.rules };
        Self { rules, waiting: false, ..check }
    }

    /// Whoever waits may give up at any time.
    pub fn giving_up(self) -> Self
    where
        A: Withdraws,
    {
        Self { withdraw: Some(A::withdraw), ..self }
    }

    /// Does the algorithm serve so many, and are they few enough for a state to fit into its row?
    pub fn fits(&self) -> bool {
        A::INFO.serves(self.n)
            && (1..=MAX_PROCESSES).contains(&self.n)
            && Layout::new::<A>(self.n, &self.rules).fits()
    }

    /// Make it.
    ///
    /// # Panics
    ///
    /// If it does not [fit](Self::fits).
    pub fn run(&self) -> Report {
        self.run_watched(&mut |_| true)
    }

    /// Make it, telling `watch` now and then how it stands, until it says `false`.
    pub fn run_watched(&self, watch: &mut dyn FnMut(&Progress) -> bool) -> Report {
        assert!(self.fits(), "a state of {} processes does not fit", self.n);
        let model = ProcessModel::<A>::new(self.n, &self.rules, self.withdraw);
        let waiting = self.waiting && !self.rules.buffers;
        let scope = Scope { limit: self.limit, threads: self.threads, record: waiting };
        let mut search = Search::new(&model, scope);
        let end = search.run(watch);
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
        };
        match end {
            End::Limit | End::Stopped => {}
            End::Wrong(steps) => {
                report.exclusion = Some(false);
                report.schedule = model.schedule(&model.first_row(), &steps).0;
            }
            End::Exhausted => {
                report.exclusion = Some(true);
                if waiting {
                    model.look_into_waiting(&search, &mut report);
                }
            }
        }
        report
    }
}
