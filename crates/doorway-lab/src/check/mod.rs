//! The checker: every world that can be reached, breadth first, on the very code that ships.
//!
//! [`Check`] takes a [`World`] at its beginning. It finds the shortest way to something that must
//! never happen, or shows that there is none: too many inside, a refused message, a broken
//! contract, a world in which someone waits and nothing can happen, a cycle in which someone waits
//! for ever though every message arrives and everyone leaves, or a world that a [`Judge`]
//! rejects. Worlds are told apart by 64-bit fingerprints; [`Report::mix_up`] says how likely it is
//! that two were taken for one.

pub mod assumptions;
mod case;
pub mod census;
mod codec;
mod duties;
mod interner;
mod pack;
mod round;
mod tables;
#[cfg(test)]
mod tests;
mod trail;
mod waits;

use doorway_core::{NodeId, Phase};
pub use doorway_search::{Deed, End, Model, Progress, Scope, Successors, Tag, search};
use doorway_search::{Search, fair_round};

pub use case::{Case, History, Property};
pub use codec::Judge;
use codec::WorldCodec;
pub use pack::SearchTargets;
use pack::{MAX_FAULTS, PackedModel};
pub use round::starved_by;

use crate::{Choice, FOREVER, Violation, World};

/// The largest group that can be checked: a step is kept with its node in a few bits.
pub const MAX_NODES: usize = Tag::ACTORS;

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No reachable world violates anything.
    Holds,
    /// A shortest way to a violation.
    Violated {
        /// What happens, in order.
        trace: Vec<Choice>,
        /// What then happens again and again, if the violation is that someone waits for ever.
        cycle: Vec<Choice>,
        /// What goes wrong.
        violation: Violation,
    },
    /// The limit was reached, or it was stopped: this says nothing.
    NotExhausted,
}

/// What a check found, and how much it looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The answer.
    pub verdict: Verdict,
    /// How many worlds and steps there are, how deep, and how much memory they took.
    pub progress: Progress,
    /// What was found out about waiting, if it was asked for and everything else holds.
    pub waiting: Option<Waiting>,
}

/// What is known about waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// How many entries of others there are at most while a node waits; `None`: any number.
    pub overtaken: Option<u32>,
    /// The fewest and the most messages that a run has from beginning to end; `None` if runs do
    /// not end.
    pub messages: Option<(u64, u64)>,
}

impl Report {
    /// An upper bound for the chance that two worlds had the same fingerprint.
    pub fn mix_up(&self) -> f64 {
        let worlds = self.progress.states as f64;
        worlds * worlds / 2.0 / 2f64.powi(64)
    }
}

/// A check to be made.
pub struct Check<'a> {
    /// The beginning.
    pub world: &'a World,
    /// What ends the search.
    pub targets: SearchTargets,
    /// Is waiting looked into? It takes the memory of all steps.
    pub waiting: bool,
    /// What else must be true of every world.
    pub judge: Option<&'a Judge>,
    /// How far to go.
    pub limit: u64,
    /// On how many threads.
    pub threads: usize,
}

impl<'a> Check<'a> {
    /// Everything is looked for, on one thread, in at most so many worlds.
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

    /// Only what can be seen in a single world or step.
    pub fn safety(world: &'a World, limit: u64) -> Self {
        Self { waiting: false, ..Self::new(world, limit) }
    }

    /// Make it.
    pub fn run(&self) -> Report {
        self.run_watched(&mut |_| true)
    }

    /// Make it, telling `watch` now and then how it stands, until it says `false`.
    pub fn run_watched(&self, watch: &mut dyn FnMut(&Progress) -> bool) -> Report {
        let limits = self.world.limits();
        let settling = limits.acquires.iter().any(|(times, _)| *times == FOREVER);
        let faults = limits.losses.max(limits.duplicates);
        assert!(!settling || faults == 0, "worlds are settled exactly while no message fails");
        assert!(faults.max(limits.crashes) < MAX_FAULTS, "at most {MAX_FAULTS} faults of a kind");
        assert!(self.world.group().size() as usize <= MAX_NODES, "at most {MAX_NODES} nodes");
        let codec = WorldCodec::new(self.world, self.targets, settling, self.judge);
        let packed = codec.packed();
        let scope = Scope { limit: self.limit, threads: self.threads, record: self.waiting };
        let mut search = Search::new(&packed, scope);
        let end = search.run(watch);
        let report = |verdict, waiting| Report { verdict, progress: search.progress(), waiting };
        match end {
            End::Limit | End::Stopped => report(Verdict::NotExhausted, None),
            End::Wrong(steps) => {
                let (world, trace, violation) = codec.trail(self.world, &steps);
                let violation = violation
                    .filter(|violation| self.targets.is(violation))
                    .or_else(|| world.stuck().filter(|_| self.targets.stuck))
                    .or_else(|| self.judge.and_then(|judge| judge(&world)).map(Violation::Claim))
                    .expect("the search ends where something is wrong");
                report(Verdict::Violated { trace, cycle: Vec::new(), violation }, None)
            }
            End::Exhausted if !self.waiting => report(Verdict::Holds, None),
            End::Exhausted => {
                let progress = search.progress();
                let mut go_on = || watch(&progress);
                match self.look_into_waiting(&codec, &packed, &search, &mut go_on) {
                    None => report(Verdict::NotExhausted, None),
                    Some((verdict, waiting)) => report(verdict, Some(waiting)),
                }
            }
        }
    }

    /// What there is to say about waiting, unless it is stopped.
    fn look_into_waiting(
        &self,
        codec: &WorldCodec<'_>,
        packed: &PackedModel<'_>,
        search: &Search<'_>,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Option<(Verdict, Waiting)> {
        let first = self.world.live_in(Phase::Waiting);
        let first = first.iter().fold(0, |bits, node| bits | 1 << node.index());
        let size = self.world.group().size() as usize;
        let (mut waiting, rounds) = waits::look(search.graph(), first, size, go_on)?;
        let limits = self.world.limits();
        if limits.losses + limits.duplicates + limits.crashes > 0 {
            // A run may end before what can still fail has failed.
            waiting.messages = None;
        }
        let duties = |row: &[u32]| codec.duties(&packed.tables(), row);
        let Some(lasso) = fair_round(search, &duties, rounds) else {
            return Some((Verdict::Holds, waiting));
        };
        let (there, trace, _) = codec.trail(self.world, &search.way(lasso.state));
        let (_, cycle, _) = codec.trail(&there, &lasso.round);
        let violation = Violation::Starved(NodeId(lasso.node as u32));
        Some((Verdict::Violated { trace, cycle, violation }, waiting))
    }
}
