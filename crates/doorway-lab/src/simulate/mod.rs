//! The simulator: discrete events under a seeded clock, on the very nodes that every driver runs.
//!
//! One seed rules everything, so that a run is a value. Exclusion and the contract are checked at
//! every step by [`Nodes`]; a violation ends the run and is part of its [`Report`].

mod accounts;
mod engine;
mod law;
mod line;
mod network;
mod options;
mod queue;
mod report;

use std::collections::{BTreeMap, VecDeque};

use doorway_core::algorithms::{self, Task};
use doorway_core::{Algorithm, Effects, Mode, NodeId, NodeSet, Shape, Start};

use crate::{Nodes, Trace, Violation};
use accounts::{Accounts, NOBODY, RequestId};
use law::{TICKS, ticks};
use network::{Letter, Letters, Order};
use queue::Queue;
use report::Heading;

pub use law::{Delay, Dice, Law};
pub use options::{Arrival, MAX_ENTRIES, Options, Partition, Workload};
pub use report::Report;

/// An item of the event queue.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// The letter in this slot arrives.
    Deliver(u32),
    /// A client comes to a node, and by the workload's rule another will.
    Come(NodeId),
    /// The client of a script comes.
    Scripted(u32),
    /// The client of this request leaves.
    Leave(RequestId),
    /// A crash of the options happens.
    Crash(u32),
    /// The survivors are told of it.
    Detect(u32),
}

/// Someone who wants in.
#[derive(Clone, Copy, Debug)]
struct Client {
    node: NodeId,
    mode: Mode,
    stay: Option<f64>,
    /// When it came.
    asked: u64,
}

/// A run of one algorithm.
#[derive(Clone, Debug)]
pub struct Simulation<A: Algorithm> {
    options: Options,
    nodes: Nodes<A>,
    now: u64,
    queue: Queue<Event>,
    letters: Letters<A::Message>,
    order: Order,
    /// Ticks in a unit of the delays, which are scaled so that their mean is one unit of the run.
    per_delay: f64,
    sent: u64,
    dice: Dice,
    accounts: Accounts,
    /// Clients that came to a node whose algorithm is busy with an earlier one; no queue is empty.
    backlog: BTreeMap<NodeId, VecDeque<Client>>,
    /// How long those stay inside who do not follow the common law.
    stays: BTreeMap<RequestId, u64>,
    crashed: NodeSet,
    /// How many they are: the set would have to be counted, at every event.
    crashes: u32,
    /// Events in the queue that are no thinking client: scripted clients, crashes, detections.
    expected: u64,
    effects: Effects<A::Message>,
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
    /// Enough entries are done; what they caused and is still under way is awaited, so that the
    /// last requests are charged in full. Clients go on coming, or the load would change.
    Settling {
        /// When the last counted entry was done.
        since: u64,
        /// Letters under way that a counted request caused.
        unsettled: u64,
    },
    /// Over.
    Ended,
}

/// How long a run settles: what circulates for ever settles never.
const LONGEST_SETTLING: f64 = 100.0;

impl<A: Algorithm> Simulation<A> {
    /// A run at its beginning.
    pub fn new(options: Options) -> Result<Self, String> {
        options.check(&A::INFO)?;
        let group = options.group.clone();
        let size = group.size() as usize;
        let begun = Nodes::begin(group.clone(), &Start::default());
        let (nodes, opening) = begun.map_err(|violation| violation.to_string())?;
        let mut run = Self {
            nodes,
            now: 0,
            queue: Queue::new(),
            letters: Letters::new(),
            order: Order::new(options.channel, &options.delay, size),
            per_delay: TICKS / options.delay.mean(),
            sent: 0,
            dice: Dice::new(options.seed),
            accounts: Accounts::new(size, options.warmup),
            backlog: BTreeMap::new(),
            stays: BTreeMap::new(),
            crashed: NodeSet::new(),
            crashes: 0,
            expected: 0,
            effects: Effects::default(),
            events: 0,
            violation: None,
            trace: Trace { unit: "message delays", ..Trace::new(A::INFO.name, group.size()) },
            ending: Ending::Open,
            options,
        };
        run.schedule_first();
        for (node, mut effects) in group.nodes().zip(opening) {
            for (to, message) in effects.drain() {
                run.send(node, to, message, NOBODY);
            }
        }
        Ok(run)
    }

    /// Take up to `events` items from the queue; true when the run has ended.
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

    /// Has the run reached its end, or will nobody ever enter again?
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
        let counted = |letter: &&Letter<A::Message>| self.accounts.is_counted(letter.cause);
        let unsettled = self.letters.iter().filter(counted).count() as u64;
        self.ending = Ending::Settling { since: self.now, unsettled };
    }

    /// Is nobody inside, while some wait and nothing is under way that could let them in? New
    /// clients may still come, as in [`crate::World::stuck`].
    fn is_stuck(&self) -> bool {
        self.nodes.inside() == 0
            && self.accounts.line.length() > 0
            && self.letters.is_empty()
            && self.expected == 0
    }

    /// Will no client ever come again, and are all that came gone?
    fn is_over(&self) -> bool {
        let gone = || self.nodes.inside() == 0 && self.accounts.line.length() == 0;
        self.crashes == self.options.group.size()
            || self.is_scripted() && self.expected == 0 && self.backlog.is_empty() && gone()
    }

    /// Does everything happen as told? Then there is no load to keep up, and all of it is watched.
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

    /// What happened, as far as the options asked for it.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// The figures so far.
    pub fn report(&self) -> Report {
        let heading = Heading {
            algorithm: A::INFO.name,
            n: self.options.group.size(),
            seed: self.options.seed,
            events: self.events,
            violation: self.violation.as_ref().map(Violation::to_string),
        };
        Report::new(heading, &self.accounts, TICKS)
    }
}

/// Run the algorithm called `name` on a group of `size`, with the usual options but for what
/// `change` changes: its figures, and its trace as far as the options asked for one.
pub fn run(
    name: &str,
    size: usize,
    shape: &Shape,
    change: impl FnOnce(&mut Options),
) -> Result<(Report, Trace), String> {
    let task = Named { size, shape, change };
    algorithms::with(name, task).unwrap_or_else(|| Err(format!("no algorithm is called '{name}'")))
}

struct Named<'a, C> {
    size: usize,
    shape: &'a Shape,
    change: C,
}

impl<C: FnOnce(&mut Options)> Task for Named<'_, C> {
    type Output = Result<(Report, Trace), String>;

    fn run<A: Algorithm>(self) -> Self::Output {
        let group = A::INFO.group(self.size, self.shape).map_err(|error| error.to_string())?;
        let mut options = Options::new(&A::INFO, group);
        (self.change)(&mut options);
        let mut run = Simulation::<A>::new(options)?;
        while !run.advance(u64::MAX) {}
        Ok((run.report(), run.trace().clone()))
    }
}
