//! The bounded buffer between producers and a consumer that exchange messages (Raynal, "Algorithms
//! for Mutual Exclusion", MIT Press, 1986, section 6.2; the text derives the usual form, because
//! the book was not available).
//!
//! One producer and one consumer each own a counter and have a late image of the other's:
//! [`doorway_core::buffer`] says why that is safe. With several producers it is not, since each has
//! to know how much the others have produced, and a late image of that makes its guard weaker.
//! Three ways repair it: each producer has a share of the capacity, a token carries the number, or
//! a lock guards it.

#![expect(clippy::similar_names, reason = "a producer has produced, a consumer has consumed")]

mod locked;
mod naive;
mod pace;
mod pair;
mod split;
mod token;

use doorway_search::{Progress, Report, explore_watched};

pub use doorway_search::Outcome;
pub use pace::items_per_delay;

use super::exchange::{Action, Exchange, ExchangeSystem, Faults};
use crate::{AnyAlgorithm, Trace};

/// How several producers agree on the free places of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// There is one producer.
    Pair,
    /// Each producer has a share of the capacity.
    Split,
    /// A token carries the number of items produced.
    Token,
    /// A lock guards the number of items produced.
    Locked,
    /// Each producer adds up late images of what the others have produced: refuted.
    Naive,
}

impl Variant {
    /// Every variant, with its name and what it is.
    pub const ALL: [(&'static str, Self, &'static str); 5] = [
        ("buffer-pair", Self::Pair, "bounded buffer by messages, one producer and one consumer"),
        ("buffer-split", Self::Split, "several producers, each with a share of the capacity"),
        (
            "buffer-token",
            Self::Token,
            "several producers, a token has the number of items produced",
        ),
        (
            "buffer-locked",
            Self::Locked,
            "several producers, a lock guards the number of items produced",
        ),
        ("buffer-naive", Self::Naive, "several producers that add up late images of each other"),
    ];

    /// Where the variant fails, if it is refuted: a late image of what another producer has
    /// produced makes the guard weaker, so two producers take the last place.
    pub fn refuted(self) -> Option<Refuted> {
        let refuted = Refuted { fails: "2 producers and 1 place", check: "-n 2 --capacity 1" };
        (self == Self::Naive).then_some(refuted)
    }
}

/// A setting in which a refuted variant fails.
#[derive(Clone, Copy, Debug)]
pub struct Refuted {
    /// The setting in words.
    pub fails: &'static str,
    /// Options with which `doorway problems check` finds a violation.
    pub check: &'static str,
}

/// A buffer to be checked or walked.
#[derive(Clone, Copy, Debug)]
pub struct Buffer {
    /// How producers agree.
    pub variant: Variant,
    /// The number of places.
    pub capacity: u64,
    /// The number of producers.
    pub producers: usize,
    /// The number of items that each producer has. `None` means that producers never stop; then
    /// counters are made small again, so that a search ends. Producers with a lock, and those of
    /// the refuted variant, always have a number.
    pub items: Option<u64>,
    /// What the channels may do.
    pub faults: Faults,
    /// The lock of [`Variant::Locked`].
    pub lock: AnyAlgorithm,
}

/// What a search has found.
pub type Finding = Report<Action, String>;

/// The number of items of a producer that needs a number, unless one is given.
pub const ITEMS: u64 = 2;

/// The greatest capacity and the greatest number of producers that a search takes.
pub const MOST: u64 = 16;

impl Buffer {
    /// A buffer of a variant as `doorway problems` checks it unless told otherwise: two places, two
    /// producers if there are several, and channels with every fault.
    ///
    /// # Panics
    ///
    /// Never: the lock is one of the list.
    pub fn new(variant: Variant) -> Self {
        let lock = AnyAlgorithm::named("ricart-agrawala").expect("an algorithm of the list");
        let faults = match variant {
            Variant::Pair | Variant::Split | Variant::Token => Faults::ALL,
            Variant::Locked | Variant::Naive => Faults { overtake: true, ..Faults::NONE },
        };
        let producers = if variant == Variant::Pair { 1 } else { 2 };
        Self { variant, capacity: 2, producers, items: None, faults, lock }
    }

    /// Visit every state, if there are no more than `limit`. An error says why this cannot be
    /// asked.
    pub fn check(&self, limit: u64, threads: usize) -> Result<Finding, String> {
        self.check_watched(limit, threads, &mut |_| true)
    }

    /// Visit every state, and tell `watch` the progress now and then. If it returns `false`, the
    /// search stops.
    pub fn check_watched(
        &self,
        limit: u64,
        threads: usize,
        watch: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<Finding, String> {
        self.with(Search { limit, threads, watch })
    }

    /// Walk at random for this number of steps, let everything arrive, and return what happened.
    pub fn walk(&self, seed: u64, steps: usize) -> Result<Trace, String> {
        self.with(Walk { seed, steps, title: self.title() })
    }

    /// The counterexample of a finding, or if there is none the example of a walk, to be drawn.
    pub fn draw(&self, finding: &Finding) -> Result<Trace, String> {
        let title = match finding.outcome {
            Outcome::Violated(..) => format!("{}: counterexample", self.title()),
            Outcome::Stuck(_) => format!("{}: the way to a state without a way on", self.title()),
            _ => self.title(),
        };
        self.with(Draw { actions: finding.path(), title })
    }

    fn title(&self) -> String {
        let name = Variant::ALL.iter().find(|(_, variant, _)| *variant == self.variant);
        let name = name.map_or("", |(name, ..)| *name);
        let producers = match self.producers {
            1 => "1 producer".to_owned(),
            many => format!("{many} producers"),
        };
        format!("{name}, {producers}, capacity {}", self.capacity)
    }

    /// Check the numbers, and run a task with the exchange.
    fn with<T: Task>(&self, task: T) -> Result<T::Output, String> {
        let Self { variant, capacity, producers, faults, .. } = *self;
        if !(1..=MOST).contains(&capacity) {
            return Err(format!(
                "a buffer that is searched has 1 to {MOST} places, not {capacity}"
            ));
        }
        let allowed = if variant == Variant::Pair { 1..=1 } else { 1..=MOST as usize };
        if !allowed.contains(&producers) {
            return Err(match variant {
                Variant::Pair => {
                    "buffer-pair has one producer; see buffer-split, -token, -locked".into()
                }
                _ => format!("a search takes 1 to {MOST} producers, not {producers}"),
            });
        }
        if faults.crash && variant != Variant::Pair {
            return Err("only the processes of buffer-pair can start again after a crash".into());
        }
        if faults.again && matches!(variant, Variant::Naive) {
            return Err("the producers of buffer-naive do not send again".into());
        }
        let items = self.items.unwrap_or(ITEMS);
        Ok(match variant {
            Variant::Pair => task.run(&ExchangeSystem(pair::Pair { capacity, faults })),
            Variant::Split => {
                let split = split::Split::new(producers, capacity, faults).ok_or_else(|| {
                    format!("{capacity} places cannot be split among {producers} producers")
                })?;
                task.run(&ExchangeSystem(split))
            }
            Variant::Token => {
                task.run(&ExchangeSystem(token::Token { producers, capacity, faults }))
            }
            Variant::Locked => {
                let locked =
                    locked::LockedBuffer::new(self.lock, producers, capacity, items, faults)?;
                task.run(&ExchangeSystem(locked))
            }
            Variant::Naive => {
                task.run(&ExchangeSystem(naive::Naive { producers, capacity, items, faults }))
            }
        })
    }
}

/// Something to do with an exchange of any type.
trait Task {
    type Output;

    fn run<X>(self, searched: &ExchangeSystem<X>) -> Self::Output
    where
        X: Exchange + Sync,
        X::State: Send + Sync,
        X::Body: Send + Sync;
}

struct Search<'a> {
    limit: u64,
    threads: usize,
    watch: &'a mut dyn FnMut(&Progress) -> bool,
}

impl Task for Search<'_> {
    type Output = Finding;

    fn run<X>(self, searched: &ExchangeSystem<X>) -> Finding
    where
        X: Exchange + Sync,
        X::State: Send + Sync,
        X::Body: Send + Sync,
    {
        explore_watched(searched, self.limit, self.threads, self.watch)
    }
}

struct Walk {
    seed: u64,
    steps: usize,
    title: String,
}

impl Task for Walk {
    type Output = Trace;

    fn run<X: Exchange>(self, searched: &ExchangeSystem<X>) -> Trace {
        searched.trace(self.title, &searched.walk(self.seed, self.steps))
    }
}

struct Draw<'a> {
    actions: &'a [Action],
    title: String,
}

impl Task for Draw<'_> {
    type Output = Trace;

    fn run<X: Exchange>(self, searched: &ExchangeSystem<X>) -> Trace {
        searched.trace(self.title, self.actions)
    }
}

/// The names of several producers and the consumer.
fn names(producers: usize) -> Vec<String> {
    let producers = (1..=producers).map(|number| format!("producer {number}"));
    producers.chain(["consumer".to_owned()]).collect()
}

/// Whether this number of items fits into the buffer.
fn fits(items: u64, capacity: u64) -> Result<(), String> {
    if items > capacity {
        return Err(format!("the buffer has {items} items and room for {capacity}"));
    }
    Ok(())
}
