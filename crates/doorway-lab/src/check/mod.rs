//! The model checker. It explores every reachable world, breadth first, and runs the same code that
//! ships.
//!
//! [`Check`] begins with a [`World`]. It finds a shortest way to a violation, or shows that there
//! is none. Violations are:
//!
//! - too many nodes inside;
//! - a rejected message, or a broken contract;
//! - a deadlock: a node waits and nothing can happen;
//! - starvation: a cycle in which a node waits forever, although every message arrives and every
//!   node inside leaves;
//! - a world that a [`Judge`] rejects.
//!
//! Worlds are told apart by 64-bit fingerprints. [`Report::mix_up`] says how likely it is that two
//! different worlds had the same fingerprint.

pub mod assumptions;
mod case;
pub mod census;
mod codec;
mod duties;
mod interner;
mod pack;
mod resume;
mod round;
mod settled_rows;
mod tables;
#[cfg(test)]
mod tests;
mod trail;
mod waits;

use doorway_core::{NodeId, Phase};
pub use doorway_search::{
    ClientEvent, End, KeptError, Model, Progress, Scope, Successors, Tag, search,
};
use doorway_search::{KeptSearch, Lasso, Search, fair_round};

pub use case::{Case, History, Property};
pub use codec::Judge;
use codec::WorldCodec;
pub use pack::SearchTargets;
use pack::{MAX_FAULTS, PackedModel};
pub use round::starved_by;

use crate::{Choice, FOREVER, Violation, World};

/// The largest group that can be checked: a stored step has only a few bits for its node.
pub const MAX_NODES: usize = Tag::ACTORS;

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No reachable world violates anything.
    Holds,
    /// There is a violation, and this is a shortest way to it.
    Violated {
        /// What happens, in order.
        trace: Vec<Choice>,
        /// The choices that are then repeated forever, if the violation is starvation.
        cycle: Vec<Choice>,
        /// The violation.
        violation: Violation,
    },
    /// The search reached its limit or was stopped, so nothing is known.
    NotExhausted,
    /// The search found a violation in a settled world, but the algorithm does not show it from the
    /// first world on. So [`Algorithm::settle`](doorway_core::Algorithm::settle) is wrong, and
    /// nothing is known.
    Unconfirmed {
        /// The number of steps after which the search found the violation.
        steps: usize,
    },
}

/// What a user is told about [`Verdict::Unconfirmed`].
pub fn unconfirmed(steps: usize) -> String {
    format!(
        "the search found a violation after {steps} steps, but the algorithm does not show it when \
         these steps are taken; the algorithm's `settle` is wrong, and nothing is known; please \
         report this"
    )
}

/// What a check found, and how much it looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The result.
    pub verdict: Verdict,
    /// How many worlds and steps there are, how deep, and how much memory they took.
    pub progress: Progress,
    /// What was measured about waiting, if [`Check::waiting`] is set and everything else holds.
    pub waiting: Option<WaitBounds>,
}

/// What was measured about waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitBounds {
    /// The most entries of other nodes while one node waits; `None` if there is no bound.
    pub overtaken: Option<u32>,
    /// The fewest and the most messages of a run from beginning to end; `None` if runs do not end.
    pub messages: Option<(u64, u64)>,
}

impl Report {
    /// An upper bound for the chance that two worlds had the same fingerprint.
    pub fn mix_up(&self) -> f64 {
        let worlds = self.progress.states as f64;
        worlds * worlds / 2.0 / 2f64.powi(64)
    }
}

/// A check to be run.
pub struct Check<'a> {
    /// The first world.
    pub world: &'a World,
    /// Which violations end the search.
    pub targets: SearchTargets,
    /// Is starvation looked for, and overtaking measured? All steps are then kept in memory.
    pub waiting: bool,
    /// What else must be true of every world.
    pub judge: Option<&'a Judge>,
    /// Stop after this number of worlds.
    pub limit: u64,
    /// How many threads search.
    pub threads: usize,
}

impl<'a> Check<'a> {
    /// A check of all properties on one thread that stops after `limit` worlds.
    pub fn new(world: &'a World, limit: u64) -> Self {
        Self {
            world,
            targets: SearchTargets::default(),
            waiting: true,
            judge: None,
            limit,
            threads: 1,
        }
    }

    /// A check of the properties that show in a single world or step: all but starvation.
    pub fn safety(world: &'a World, limit: u64) -> Self {
        Self { waiting: false, ..Self::new(world, limit) }
    }

    /// Run the check.
    pub fn run(&self) -> Report {
        self.run_watched(&mut |_| true)
    }

    /// Run the check. `watch` is called with the progress from time to time and stops the check by
    /// returning `false`.
    pub fn run_watched(&self, watch: &mut dyn FnMut(&Progress) -> bool) -> Report {
        match self.run_from(None, watch) {
            Ok(report) => report,
            Err(error) => unreachable!("no file is read or written: {error}"),
        }
    }

    /// Run the check. If it stops before its end, it is kept in the file, and the next run goes on
    /// there.
    fn run_from(
        &self,
        file: Option<&KeptSearch<'_>>,
        watch: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<Report, KeptError> {
        let limits = self.world.limits();
        let settling = limits.acquires.iter().any(|(times, _)| *times == FOREVER);
        let faults = limits.losses.max(limits.duplicates);
        assert!(
            !settling || faults == 0,
            "a node that never stops asking needs reliable channels: no losses, no duplicates"
        );
        assert!(faults.max(limits.crashes) < MAX_FAULTS, "at most {MAX_FAULTS} faults of a kind");
        assert!(self.world.group().size() as usize <= MAX_NODES, "at most {MAX_NODES} nodes");
        let codec = WorldCodec::new(self.world, self.targets, settling, self.judge);
        let packed = codec.packed();
        let scope = Scope { limit: self.limit, threads: self.threads, record: self.waiting };
        let mut search = match file {
            Some(file) => file.open(&packed, scope)?,
            None => Search::new(&packed, scope),
        };
        if file.is_some() {
            // The search asks again after its first round, so that every run makes some progress.
            let _ = watch(&search.progress());
        }
        let end = search.run(watch);
        let report = self.judge(&codec, &packed, &search, end, watch);
        if let Some(file) = file {
            match report.verdict {
                Verdict::NotExhausted => file.keep(&search)?,
                // The verdict counts more than a file that stays.
                Verdict::Holds | Verdict::Violated { .. } | Verdict::Unconfirmed { .. } => {
                    drop(file.remove());
                }
            }
        }
        Ok(report)
    }

    /// What the end of a search says.
    fn judge(
        &self,
        codec: &WorldCodec<'_>,
        packed: &PackedModel<'_>,
        search: &Search<'_>,
        end: End,
        watch: &mut dyn FnMut(&Progress) -> bool,
    ) -> Report {
        let report = |verdict, waiting| Report { verdict, progress: search.progress(), waiting };
        match end {
            End::Limit | End::Stopped => report(Verdict::NotExhausted, None),
            End::Wrong(steps) => {
                let unconfirmed = Verdict::Unconfirmed { steps: steps.len() };
                report(self.replay(codec, &steps).unwrap_or(unconfirmed), None)
            }
            End::Exhausted if !self.waiting => report(Verdict::Holds, None),
            End::Exhausted => {
                let progress = search.progress();
                let mut go_on = || watch(&progress);
                match self.look_into_waiting(codec, packed, search, &mut go_on) {
                    None => report(Verdict::NotExhausted, None),
                    Some((verdict, waiting)) => report(verdict, Some(waiting)),
                }
            }
        }
    }

    /// Take the steps of the search from the first world on, without settling. `None` if that does
    /// not end at a violation.
    fn replay(&self, codec: &WorldCodec<'_>, steps: &[u32]) -> Option<Verdict> {
        let (world, trace, violation) = codec.trail(self.world, steps)?;
        let violation = violation
            .filter(|violation| self.targets.is(violation))
            .or_else(|| world.stuck().filter(|_| self.targets.stuck))
            .or_else(|| self.judge.and_then(|judge| judge(&world)).map(Violation::Claim))?;
        Some(Verdict::Violated { trace, cycle: Vec::new(), violation })
    }

    /// Take the steps to a lasso and those of its round from the first world on, without settling.
    /// `None` if these steps cannot be taken.
    fn replay_lasso(&self, codec: &WorldCodec<'_>, way: &[u32], lasso: &Lasso) -> Option<Verdict> {
        let (there, trace, _) = codec.trail(self.world, way)?;
        let (_, cycle, _) = codec.trail(&there, &lasso.round)?;
        let violation = Violation::Starved(NodeId(lasso.node as u32));
        Some(Verdict::Violated { trace, cycle, violation })
    }

    /// Look for starvation and measure overtaking. `None` if the check was stopped.
    fn look_into_waiting(
        &self,
        codec: &WorldCodec<'_>,
        packed: &PackedModel<'_>,
        search: &Search<'_>,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Option<(Verdict, WaitBounds)> {
        let first = self.world.live_in(Phase::Waiting);
        let first = first.iter().fold(0, |bits, node| bits | 1 << node.index());
        let size = self.world.group().size() as usize;
        let (mut waiting, rounds) = waits::look(search.graph(), first, size, go_on)?;
        let limits = self.world.limits();
        if limits.losses + limits.duplicates + limits.crashes > 0 {
            // A run may end before all allowed faults have happened.
            waiting.messages = None;
        }
        let duties = |row: &[u32]| codec.duties(&packed.tables(), row);
        let Some(lasso) = fair_round(search, &duties, rounds) else {
            return Some((Verdict::Holds, waiting));
        };
        let way = search.way(lasso.state);
        let unconfirmed = Verdict::Unconfirmed { steps: way.len() + lasso.round.len() };
        Some((self.replay_lasso(codec, &way, &lasso).unwrap_or(unconfirmed), waiting))
    }
}
