//! The simulator: discrete events in virtual time, on the same nodes that every driver runs.
//!
//! One seed determines all random choices, so that a run can be repeated. [`Nodes`] checks mutual
//! exclusion and the contract at every step. A violation ends the run and is part of its
//! [`Report`].

mod accounts;
mod distribution;
mod engine;
mod line;
mod network;
mod options;
mod queue;
mod report;
mod states;

use std::collections::{BTreeMap, VecDeque};

use doorway_core::{Effects, Mode, NodeId, NodeSet, Shape, Start};

use crate::erased::{AnyAlgorithm, SentMessage, Troupe};
use crate::{Nodes, Trace, Violation};
use accounts::{Accounts, NOBODY, RequestId};
use distribution::{TICKS, ticks};
use network::{Letter, Letters, Order};
use queue::Queue;
use report::Heading;

pub use distribution::{Delay, Dice, Distribution};
pub use options::{Arrival, MAX_ENTRIES, Options, PATIENCE, Partition, Workload};
pub use report::Report;

/// An item of the event queue.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// The letter in this slot arrives.
    Deliver(u32),
    /// A client arrives at a node. The workload decides when the next one does.
    Come(NodeId),
    /// A client of [`Workload::Scripted`] arrives.
    Scripted(u32),
    /// The client of this request leaves.
    Leave(RequestId),
    /// The client of this request gives up, if it still waits.
    GiveUp(RequestId),
    /// A node crashes: the item of [`Options::crashes`] with this index.
    Crash(u32),
    /// The surviving nodes learn of the crash with this index.
    Detect(u32),
}

/// A client that wants the lock.
#[derive(Clone, Copy, Debug)]
struct Client {
    node: NodeId,
    mode: Mode,
    stay: Option<f64>,
    /// When it arrived.
    asked: u64,
}

/// A run of one algorithm.
#[derive(Debug)]
pub struct Simulation {
    algorithm: AnyAlgorithm,
    options: Options,
    nodes: Nodes<Box<dyn Troupe>>,
    now: u64,
    queue: Queue<Event>,
    letters: Letters,
    order: Order,
    /// Ticks per unit of [`Options::delay`]. Delays are scaled so that their mean is the unit of
    /// time of the run.
    per_delay: f64,
    sent: u64,
    dice: Dice,
    accounts: Accounts,
    /// Clients at a node whose algorithm is busy with an earlier client. A node without such
    /// clients has no entry.
    backlog: BTreeMap<NodeId, VecDeque<Client>>,
    /// How long a client stays inside, for requests whose [`Arrival`] says so.
    stays: BTreeMap<RequestId, u64>,
    crashed: NodeSet,
    /// The size of `crashed`, which would otherwise have to be counted at every event.
    crashes: u32,
    /// How many requests were given up.
    withdrawn: u64,
    /// How many scripted clients, crashes and detections are in the queue.
    expected: u64,
    effects: Effects<SentMessage>,
    events: u64,
    violation: Option<Violation>,
    trace: Trace,
    ending: Ending,
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ending {
    /// Entries are still wanted.
    Open,
    /// Enough entries are done. The run waits for the messages under way that they caused, so that
    /// the last requests are charged in full. Clients still arrive, because the load must not
    /// change.
    Settling {
        /// When the last counted entry was done.
        since: u64,
        /// How many letters under way were caused by a counted request.
        unsettled: u64,
    },
    /// The run is over.
    Ended,
}

/// The longest time that a run waits for messages after its last counted entry. A token that
/// circulates forever would keep it waiting.
const LONGEST_SETTLING: f64 = 100.0;

impl Simulation {
    /// A run at its beginning.
    pub fn new(algorithm: AnyAlgorithm, options: Options) -> Result<Self, String> {
        options.check(algorithm.info())?;
        let group = options.group.clone();
        let size = group.size() as usize;
        let start = Start::default();
        let mut troupe = algorithm.troupe(size);
        let mut opening = Vec::new();
        for node in group.nodes() {
            let mut out = Effects::default();
            let begun = troupe.begin(&group, &start, &mut out);
            begun.map_err(|breach| Violation::Breach { node, breach }.to_string())?;
            opening.extend(out.drain().map(|(to, message)| (node, to, message)));
        }
        let mut run = Self {
            algorithm,
            nodes: Nodes::new(group.clone(), &start, troupe),
            now: 0,
            queue: Queue::new(),
            letters: Letters::default(),
            order: Order::new(options.channel, &options.delay, size),
            per_delay: TICKS / options.delay.mean(),
            sent: 0,
            dice: Dice::new(options.seed),
            accounts: Accounts::new(size, options.warmup),
            backlog: BTreeMap::new(),
            stays: BTreeMap::new(),
            crashed: NodeSet::new(),
            crashes: 0,
            withdrawn: 0,
            expected: 0,
            effects: Effects::default(),
            events: 0,
            violation: None,
            trace: Trace {
                unit: "message delays",
                ..Trace::new(algorithm.info().name, group.size())
            },
            ending: Ending::Open,
            options,
        };
        run.schedule_first();
        for (node, to, message) in opening {
            run.send(node, to, message, NOBODY);
        }
        Ok(run)
    }

    /// Handle up to `events` items of the queue. Returns whether the run has ended.
    pub fn advance(&mut self, events: u64) -> bool {
        let until = self.events.saturating_add(events);
        while self.ending != Ending::Ended && self.events < until {
            match self.queue.pop() {
                Some((at, event)) => {
                    self.now = at;
                    self.events += 1;
                    self.handle(event);
                    self.approach_end();
                }
                None => self.ending = Ending::Ended,
            }
        }
        self.accounts.pass_time(self.now);
        self.ending == Ending::Ended
    }

    /// End the run if enough entries are done or no node will ever enter again.
    fn approach_end(&mut self) {
        match self.ending {
            Ending::Open => {
                let enough = self.options.entries + self.options.warmup;
                if self.accounts.done() >= enough || self.is_over() {
                    self.close();
                } else if self.is_stuck() {
                    let waiting: Vec<_> = self.accounts.line.standing().collect();
                    self.violate(waiting[0], Violation::Stuck(waiting));
                }
            }
            Ending::Settling { since, unsettled } => {
                let settled = unsettled == 0 && (!self.is_scripted() || self.letters.is_empty());
                if settled || self.now - since > ticks(LONGEST_SETTLING) {
                    self.ending = Ending::Ended;
                }
            }
            Ending::Ended => {}
        }
    }

    fn close(&mut self) {
        self.accounts.close(self.now);
        let counted = |letter: &&Letter| self.accounts.is_counted(letter.cause);
        let unsettled = self.letters.iter().filter(counted).count() as u64;
        self.ending = Ending::Settling { since: self.now, unsettled };
    }

    /// Is the run in a deadlock: nodes wait, none is inside, and no message is under way that could
    /// let them in? New clients may still arrive, as in [`crate::World::stuck`].
    fn is_stuck(&self) -> bool {
        self.nodes.inside() == 0
            && self.accounts.line.length() > 0
            && self.letters.is_empty()
            && self.expected == 0
    }

    /// Have all clients left, and will no further client arrive?
    fn is_over(&self) -> bool {
        let gone = || self.nodes.inside() == 0 && self.accounts.line.length() == 0;
        self.crashes == self.options.group.size()
            || self.is_scripted() && self.expected == 0 && self.backlog.is_empty() && gone()
    }

    /// Are all clients scripted? Then there is no load to keep up, and the run ends with the last
    /// message.
    fn is_scripted(&self) -> bool {
        matches!(self.options.workload, Workload::Scripted(_))
    }

    /// Run to the end.
    pub fn run(mut self) -> Report {
        while !self.advance(u64::MAX) {}
        self.report()
    }

    /// How many entries are done, those of the warm-up included.
    pub fn entries_done(&self) -> u64 {
        self.accounts.done()
    }

    /// What happened, up to [`Options::trace`] events.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// The report on the run so far.
    pub fn report(&self) -> Report {
        let heading = Heading {
            algorithm: self.algorithm.info().name,
            n: self.options.group.size(),
            seed: self.options.seed,
            events: self.events,
            withdrawn: self.withdrawn,
            violation: self.violation.as_ref().map(Violation::to_string),
        };
        Report::new(heading, &self.accounts, TICKS)
    }
}

/// Run the algorithm called `name` on a group of `size` nodes. The options are the defaults,
/// changed by `change`. Returns the report and the trace, which has up to [`Options::trace`]
/// events.
pub fn run(
    name: &str,
    size: usize,
    shape: &Shape,
    change: impl FnOnce(&mut Options),
) -> Result<(Report, Trace), String> {
    let algorithm =
        AnyAlgorithm::named(name).ok_or_else(|| format!("no algorithm is called '{name}'"))?;
    let group = algorithm.info().group(size, shape).map_err(|error| error.to_string())?;
    let mut options = Options::new(algorithm.info(), group);
    change(&mut options);
    let mut run = Simulation::new(algorithm, options)?;
    while !run.advance(u64::MAX) {}
    Ok((run.report(), run.trace().clone()))
}
