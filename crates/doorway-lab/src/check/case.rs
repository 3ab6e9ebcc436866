//! A check described as data. The command line, the tables and the tests build it.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use doorway_core::{Channel, Fault, Group, Mode, Start};

use super::{Check, Judge, KeptError, Progress, Report, SearchTargets, resume};
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
    /// For each node, how many requests it makes and in which mode; [`crate::FOREVER`] if it never
    /// stops.
    pub acquires: Vec<(u32, Mode)>,
    /// The faults that may happen, each once.
    pub faults: Vec<Fault>,
    /// May waiting clients give up, if the algorithm can withdraw a request?
    pub withdrawing: bool,
    /// Stop after this number of worlds.
    pub limit: u64,
    /// How many threads search.
    pub threads: usize,
    /// Which violations end the search.
    pub targets: SearchTargets,
    /// Is starvation looked for, and overtaking measured?
    pub waiting: bool,
    /// The history that nodes keep and that is then judged, if any.
    pub history: Option<History>,
}

/// A property that is judged by a history which the nodes keep.
///
/// A history multiplies the number of worlds, so each of these properties has a check of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum History {
    /// Does the fencing number grow with each grant?
    Fences,
    /// Is a request granted before all requests that happened after it?
    Order,
    /// Do the requests of each node cost as many messages as is claimed per request?
    Price,
}

impl History {
    /// All properties, with the names that options use.
    pub const ALL: [(&str, Self); 3] =
        [("fences", Self::Fences), ("order", Self::Order), ("price", Self::Price)];

    /// The name that options use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fences => "fences",
            Self::Order => "order",
            Self::Price => "price",
        }
    }

    /// The algorithm with nodes that keep this history.
    pub(crate) fn watch(self, algorithm: AnyAlgorithm) -> AnyAlgorithm {
        match self {
            Self::Fences => algorithm.watched::<Fences>(),
            Self::Order => algorithm.watched::<Order>(),
            Self::Price => algorithm.watched::<Charges>(),
        }
    }

    /// The predicate that judges the history.
    pub(crate) fn judge(self) -> &'static Judge {
        match self {
            Self::Fences => &fence::check::<Fences>,
            Self::Order => &order::check::<Order>,
            Self::Price => &charge::check,
        }
    }
}

impl Case {
    /// A case in which every node makes `acquires` exclusive requests over the channels that the
    /// algorithm assumes, and nothing fails.
    pub fn new(algorithm: AnyAlgorithm, group: Group, acquires: u32) -> Self {
        Self {
            algorithm,
            acquires: vec![(acquires, Mode::Exclusive); group.size() as usize],
            group: Arc::new(group),
            channel: algorithm.info().channel,
            faults: Vec::new(),
            withdrawing: false,
            limit: 10_000_000,
            threads: 1,
            targets: SearchTargets::default(),
            waiting: true,
            history: None,
        }
    }

    /// The first world of the case.
    pub fn world(&self) -> World {
        let mut limits =
            Limits { acquires: self.acquires.clone(), ..Limits::reliable(&self.group, 0) };
        limits.withdrawing = self.withdrawing;
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

    /// Run the check. `watch` is called with the progress from time to time and stops the check by
    /// returning `false`.
    pub fn run(&self, watch: &mut dyn FnMut(&Progress) -> bool) -> Report {
        self.check(&self.world()).run_watched(watch)
    }

    /// Run the check, or go on with it. If it stops before its end, `file` keeps what is known, and
    /// the next call with this case and this file goes on from there. The file is removed when the
    /// check has ended. The first progress that `watch` gets is that of the earlier calls.
    pub fn resume(
        &self,
        file: &Path,
        watch: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<Report, KeptError> {
        self.check(&self.world()).run_from(Some(&resume::kept(file, self)), watch)
    }

    fn check<'a>(&self, world: &'a World) -> Check<'a> {
        let judge: Option<&Judge> = self.history.map(History::judge);
        Check {
            threads: self.threads,
            targets: self.targets,
            // Starvation does not depend on a history, so it is looked for without one.
            waiting: self.waiting && judge.is_none(),
            judge,
            ..Check::new(world, self.limit)
        }
    }

    /// The script commands that make the choices of a counterexample: those of `trace`, and those
    /// of `cycle`.
    pub fn tell(&self, trace: &[Choice], cycle: &[Choice]) -> (Vec<String>, Vec<String>) {
        let (trace, there) = script::tell(&self.world(), trace);
        (trace, script::tell(&there, cycle).0)
    }
}

/// A property that can be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Property {
    /// Mutual exclusion: no more nodes are inside than the group allows.
    Exclusion,
    /// No message of a correct peer is rejected, and the contract is kept.
    Refusal,
    /// No deadlock: while a node waits, something can happen.
    Stuck,
    /// No starvation: no node waits forever.
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

    /// The name of the property in a run whose nodes keep this history. A claim is about a history,
    /// so it has the name of the history.
    pub fn name_with(self, history: Option<History>) -> String {
        let claim = history.filter(|_| self == Self::Claim);
        claim.map_or_else(|| self.to_string(), |history| history.name().to_owned())
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
