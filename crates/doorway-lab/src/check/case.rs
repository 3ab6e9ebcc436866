//! A check of an algorithm known by name: what the command line, the tables and the tests ask for.

use std::fmt;
use std::sync::Arc;

use doorway_core::algorithms::{self, Task};
use doorway_core::{Algorithm, Channel, Fault, Group, Info, Mode, Start};

use super::{Check, Judge, Progress, Report, Sought};
use crate::watch::{Charged, Fenced, Ordered, charge, fence, order};
use crate::{Choice, Limits, Victims, Violation, World, script};

/// A group, its network and what may happen to it.
#[derive(Clone, Debug)]
pub struct Case {
    /// Who there is.
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
    pub sought: Sought,
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
}

impl Case {
    /// Every node asks so often, exclusively, over the channels that the algorithm assumes, and
    /// nothing fails.
    pub fn new(info: &Info, group: Group, acquires: u32) -> Self {
        Self {
            acquires: vec![(acquires, Mode::Exclusive); group.size() as usize],
            group: Arc::new(group),
            channel: info.channel,
            faults: Vec::new(),
            limit: 10_000_000,
            threads: 1,
            sought: Sought::default(),
            waiting: true,
            history: None,
        }
    }

    /// The world in which it begins.
    pub fn world<A: Algorithm>(&self) -> World<A> {
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
        World::new(self.group.clone(), &Start::default(), self.channel, limits)
    }

    /// Check the algorithm of this name, telling `watch` now and then how it stands, until it says
    /// `false`. `None` if there is no such algorithm.
    pub fn run(&self, name: &str, watch: &mut dyn FnMut(&Progress) -> bool) -> Option<Report> {
        struct Run<'a>(&'a Case, &'a mut dyn FnMut(&Progress) -> bool);
        impl Task for Run<'_> {
            type Output = Report;

            fn run<A: Algorithm>(self) -> Report {
                let Self(case, watch) = self;
                match case.history {
                    None => case.check::<A>(None, watch),
                    Some(History::Fences) => {
                        case.check::<Fenced<A>>(Some(&|world| fence::check(world)), watch)
                    }
                    Some(History::Order) => {
                        case.check::<Ordered<A>>(Some(&|world| order::check(world)), watch)
                    }
                    Some(History::Price) => {
                        case.check::<Charged<A>>(Some(&|world| charge::check(world)), watch)
                    }
                }
            }
        }
        algorithms::with(name, Run(self, watch))
    }

    fn check<A: Algorithm>(
        &self,
        judge: Option<&Judge<A>>,
        watch: &mut dyn FnMut(&Progress) -> bool,
    ) -> Report {
        let world = self.world::<A>();
        let check = Check {
            threads: self.threads,
            sought: self.sought,
            // Whoever waits for ever does so without a history too.
            waiting: self.waiting && judge.is_none(),
            judge,
            ..Check::new(&world, self.limit)
        };
        check.run_watched(watch)
    }

    /// The commands of a script that make the choices of a counterexample, first those that lead to
    /// it and then those of its cycle. `None` if there is no such algorithm.
    pub fn tell(
        &self,
        name: &str,
        trace: &[Choice],
        cycle: &[Choice],
    ) -> Option<(Vec<String>, Vec<String>)> {
        struct Tell<'a>(&'a Case, &'a [Choice], &'a [Choice]);
        impl Task for Tell<'_> {
            type Output = (Vec<String>, Vec<String>);

            fn run<A: Algorithm>(self) -> Self::Output {
                let Self(case, trace, cycle) = self;
                let (trace, there) = script::tell(&case.world::<A>(), trace);
                (trace, script::tell(&there, cycle).0)
            }
        }
        algorithms::with(name, Tell(self, trace, cycle))
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
