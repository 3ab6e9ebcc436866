//! What a seed decides: the group, its locks, and its faults.

use std::time::Duration;

use doorway_node::RuleConfig;
use doorway_node::locks::served;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng as _, SeedableRng as _};

/// Random numbers from a seed.
pub(crate) struct Dice(ChaCha8Rng);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64() % end
    }

    /// A time in whole milliseconds, the step of the simulation.
    pub(crate) fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below(to - from))
    }
}

/// All that a seed decides, except for what the clients draw themselves.
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) size: usize,
    pub(crate) rules: Vec<RuleConfig>,
    pub(crate) names: Vec<String>,
    /// Clients of each node.
    pub(crate) clients: u64,
    pub(crate) handovers: u32,
    pub(crate) keep_idle: usize,
    /// The longest delay of a message without faults.
    pub(crate) latency: Duration,
    pub(crate) faults: Vec<Fault>,
}

/// A fault that lasts for a while.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) from: Duration,
    pub(crate) to: Duration,
    pub(crate) what: FaultKind,
}

/// The kinds of faults, with the numbers of nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FaultKind {
    /// What two nodes send each other is lost.
    Cut(usize, usize),
    /// What the first node sends the second is lost.
    CutOneWay(usize, usize),
    /// What two nodes send each other is held back.
    Hold(usize, usize),
    /// Messages between two nodes take up to this long.
    Slow(usize, usize, Duration),
    /// A node stops by itself, and its connections are closed.
    Stop(usize),
    /// A node ends without sending anything, as in a power failure.
    PowerCut(usize),
}

impl Plan {
    pub(crate) fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let size = if dice.below(8) == 0 { 5 } else { 3 };
        let rules = rules(&mut dice);
        let name = |rule: &RuleConfig, which| rule.pattern.replace('*', which);
        let names = rules.iter().flat_map(|rule| ["one", "two"].map(|which| name(rule, which)));
        Self {
            seed,
            size,
            names: names.collect(),
            rules,
            clients: 1 + dice.below(3),
            handovers: dice.below(4) as u32,
            keep_idle: [0, 64, 65_536][dice.below(3) as usize],
            latency: dice.millis(2, 12),
            faults: faults(&mut dice, size),
        }
    }

    /// How many clients may be inside a lock.
    pub(crate) fn permits(&self, name: &str) -> usize {
        let fits = |rule: &&RuleConfig| name.starts_with(rule.pattern.trim_end_matches('*'));
        self.rules.iter().find(fits).map_or(1, |rule| rule.permits as usize)
    }

    /// The time after which there are no more faults.
    pub(crate) fn calm(&self) -> Duration {
        let ends = self.faults.iter().map(|fault| fault.to);
        ends.max().unwrap_or_default().max(Duration::from_millis(400))
    }
}

/// Three algorithms, each with names of its own.
fn rules(dice: &mut Dice) -> Vec<RuleConfig> {
    let mut algorithms = served();
    let mut rules = Vec::new();
    for _ in 0..3 {
        let algorithm = algorithms.swap_remove(dice.below(algorithms.len() as u64) as usize);
        let permits = if algorithm == "raymond-k" { 2 + dice.below(4) as u32 } else { 1 };
        let (pattern, algorithm) = (format!("{algorithm}/*"), algorithm.to_owned());
        rules.push(RuleConfig::new(pattern, algorithm, permits));
    }
    rules
}

/// Up to fifteen faults, some of them at once, none of which undoes another.
fn faults(dice: &mut Dice, size: usize) -> Vec<Fault> {
    let mut faults: Vec<Fault> = Vec::new();
    for _ in 0..dice.below(16) {
        // Faults close to the beginning or end of another fault are interesting: there are
        // handshakes and changes of views.
        let eventful = faults.last().map(|last| [last.from, last.to][dice.below(2) as usize]);
        let from = match eventful {
            Some(moment) if dice.below(2) == 0 => moment + dice.millis(1, 40),
            _ => dice.millis(20, 1500),
        };
        let to = from + dice.millis(5, 400);
        let first = dice.below(size as u64) as usize;
        let second = (first + 1 + dice.below(size as u64 - 1) as usize) % size;
        let what = match dice.below(10) {
            0 => FaultKind::Cut(first, second),
            1 => FaultKind::CutOneWay(first, second),
            2 | 3 => FaultKind::Hold(first, second),
            4 => FaultKind::Slow(first, second, dice.millis(20, 200)),
            5 | 6 => FaultKind::Stop(first),
            _ => FaultKind::PowerCut(first),
        };
        let fault = Fault { from, to, what };
        if !faults.iter().any(|other| fault.collides(other)) {
            faults.push(fault);
        }
    }
    faults
}

impl Fault {
    /// Would the end of one of the two end the other, or a node end that does not run?
    fn collides(&self, other: &Self) -> bool {
        let meet = self.from <= other.to && other.from <= self.to;
        meet && match (self.what.node(), other.what.node()) {
            (Some(one), Some(two)) => one == two,
            (None, None) => self.what.pair() == other.what.pair(),
            (Some(_), None) => self.what.silences(other.what),
            (None, Some(_)) => other.what.silences(self.what),
        }
    }
}

impl FaultKind {
    /// The node that ends.
    fn node(self) -> Option<usize> {
        match self {
            Self::Stop(node) | Self::PowerCut(node) => Some(node),
            _ => None,
        }
    }

    /// The nodes between which the fault is, the lower number first.
    fn pair(self) -> Option<(usize, usize)> {
        match self {
            Self::Cut(a, b) | Self::CutOneWay(a, b) | Self::Hold(a, b) | Self::Slow(a, b, _) => {
                Some((a.min(b), a.max(b)))
            }
            Self::Stop(_) | Self::PowerCut(_) => None,
        }
    }

    /// Does this power failure need a channel that the other fault controls?
    fn silences(self, other: Self) -> bool {
        let Self::PowerCut(node) = self else { return false };
        other.pair().is_some_and(|(a, b)| a == node || b == node)
    }
}
