//! A check described as data: what the command line, the tables and the tests ask for.

use std::fmt;
use std::sync::Arc;

use doorway_core::{Channel, Fault, Group, Mode, Start};

use super::{Check, Judge, Progress, Report, SearchTargets};
use crate::erased::AnyAlgorithm;
use crate::watch::{Charges, Fences, Order, charge, fence, order};
use crate::{Choice, Limits, Victims, Violation, World, script};

/// A group, its network and what may happen to it.
#[derive(Clone, Debug)]
pub struct Case {
    /// The algorithm.
    pub algorithm: AnyAlgorithm,
    /// The nodes and how they are arranged.
    pub group: Arc<Group>,
    /// Do channels keep order?
    pub channel: Channel,
    /// How often each node asks, and how; [`crate::FOREVER`] for ever.
    pub acquires: Vec<(u32, Mode)>,
    /// What may fail, each once.
    pub faults: Vec<Fault>,
    /// Give up beyond so many worlds.
    pub limit: u64,
    /// How many threads work.
    pub threads: usize,
    /// What ends the search.
    pub targets: SearchTargets,
    /// Is waiting looked into?
    pub waiting: bool,
    /// What nodes write down, and what is then asked of it.
    pub history: Option<History>,
}

/// What can be asked of worlds whose nodes write a history: it multiplies the worlds, so each has a
/// check of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum History {
    /// Do the fences of grants grow?
    Fences,
    /// Is a request served before all those that happened after it?
    Order,
    /// Do the requests of each node cost together what is claimed for each?
    Price,
}

impl History {
    /// All of them, with the names by which they are known.
    pub const ALL: [(&str, Self); 3] =
        [("fences", Self::Fences), ("order", Self::Order), ("price", Self::Price)];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fences => "fences",
            Self::Order => "order",
            Self::Price => "price",
        }
    }

    /// The algorithm with nodes that write this history.
    pub(crate) fn watch(self, algorithm: AnyAlgorithm) -> AnyAlgorithm {
        match self {
            Self::Fences => algorithm.watched::<Fences>(),
            Self::Order => algorithm.watched::<Order>(),
            Self::Price => algorithm.watched::<Charges>(),
        }
    }

    /// What is asked of it.
    pub(crate) fn judge(self) -> &'static Judge {
        match self {
            Self::Fences => &fence::check::<Fences>,
            Self::Order => &order::check::<Order>,
            Self::Price => &charge::check,
        }
    }
}

impl Case {
    /// Every node asks so often, exclusively, over the channels that the algorithm assumes, and
    /// nothing fails.
    pub fn new(algorithm: AnyAlgorithm, group: Group, acquires: u32) -> Self {
        Self {
            algorithm,
            acquires: vec![(acquires, Mode::Exclusive); group.size() as usize],
            group: Arc::new(group),
            channel: algorithm.info().channel,
            faults: Vec::new(),
            limit: 10_000_000,
            threads: 1,
            targets: SearchTargets::default(),
            waiting: true,
            history: None,
        }
    }

    /// The world in which it begins.
    pub fn world(&self) -> World {
        let mut limits =
            Limits { acquires: self.acquires.clone(), ..Limits::reliable(&self.group, 0) };
        for fault in &self.faults {
            match fault {
                Fault::Loss => limits.losses = 1,
                Fault::Duplication => limits.duplicates = 1,
                Fault::CrashOutside | Fault::CrashInside => {
                    limits.victims = match (limits.crashes, fault) {
                        (0, Fault::CrashOutside) => Victims::Outside,
                        (0, _) => Victims::Inside,
                        _ => Victims::Anyone,
                    };
                    (limits.crashes, limits.detection) = (1, true);
                }
            }
        }
        let algorithm =
            self.history.map_or(self.algorithm, |history| history.watch(self.algorithm));
        World::new(algorithm, self.group.clone(), &Start::default(), self.channel, limits)
    }

    /// Check it, telling `watch` now and then how it stands, until it says `false`.
    pub fn run(&self, watch: &mut dyn FnMut(&Progress) -> bool) -> Report {
        let judge: Option<&Judge> = self.history.map(History::judge);
        let world = self.world();
        let check = Check {
            threads: self.threads,
            targets: self.targets,
            // A node that waits for ever does so without a history too.
            waiting: self.waiting && judge.is_none(),
            judge,
            ..Check::new(&world, self.limit)
        };
        check.run_watched(watch)
    }

    /// The commands of a script that make the choices of a counterexample, first those that lead to
    /// it and then those of its cycle.
    pub fn tell(&self, trace: &[Choice], cycle: &[Choice]) -> (Vec<String>, Vec<String>) {
        let (trace, there) = script::tell(&self.world(), trace);
        (trace, script::tell(&there, cycle).0)
    }
}

/// What can be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Property {
    /// No more are inside than may be.
    Exclusion,
    /// No message of a correct peer is refused, and the contract is kept.
    Refusal,
    /// Wherever someone waits, something can happen.
    Stuck,
    /// Nobody waits for ever.
    Starvation,
    /// A claim about every world.
    Claim,
}

impl Property {
    /// The property that a violation violates.
    pub fn violated_by(violation: &Violation) -> Self {
        match violation {
            Violation::Together(_) => Self::Exclusion,
            Violation::Rejected { .. } | Violation::Breach { .. } => Self::Refusal,
            Violation::Stuck(_) => Self::Stuck,
            Violation::Starved(_) => Self::Starvation,
            Violation::Claim(_) => Self::Claim,
        }
    }
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exclusion => "exclusion",
            Self::Refusal => "refusal",
            Self::Stuck => "stuck",
            Self::Starvation => "starvation",
            Self::Claim => "claim",
        })
    }
}
