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

use doorway_core::{Algorithm, Effects, Input, Mode, NodeId, NodeSet, Start};

use crate::{Nodes, Trace, Violation};
use accounts::{Accounts, NOBODY, RequestId};
use law::TICKS;
use network::{Letter, Letters, Order};
use queue::Queue;
use report::Figures;

pub use law::{Delay, Dice, Law};
pub use options::{Arrival, Options, Partition, Workload};
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
    /// Ticks in a mean message delay, the unit of all times but the delays themselves.
    unit: f64,
    queue: Queue<Event>,
    letters: Letters<A::Message>,
    order: Order,
    sent: u64,
    dice: Dice,
    accounts: Accounts,
    /// Clients that came to a node whose algorithm is busy with an earlier one.
    backlog: BTreeMap<NodeId, VecDeque<Client>>,
    /// How long those stay inside who do not follow the common law.
    stays: BTreeMap<RequestId, u64>,
    crashed: NodeSet,
    effects: Effects<A::Message>,
    events: u64,
    /// When the last counted entry was done.
    closed_at: Option<u64>,
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
        /// Letters under way that a counted request caused.
        unsettled: u64,
        /// Not longer than this: what circulates for ever settles never.
        until: u64,
    },
    /// Over.
    Ended,
}

impl<A: Algorithm> Simulation<A> {
    /// A run at its beginning.
    pub fn new(options: Options) -> Result<Self, String> {
        options.check(&A::INFO)?;
        let group = options.group.clone();
        let size = group.size() as usize;
        let mut run = Self {
            nodes: Nodes::new(group.clone(), &Start::default()),
            now: 0,
            unit: options.delay.mean() * TICKS,
            queue: Queue::new(),
            letters: Letters::new(),
            order: Order::new(options.channel, &options.delay, size),
            sent: 0,
            dice: Dice::new(options.seed),
            accounts: Accounts::new(size, options.warmup),
            backlog: BTreeMap::new(),
            stays: BTreeMap::new(),
            crashed: NodeSet::new(),
            effects: Effects::default(),
            events: 0,
            violation: None,
            trace: Trace { unit: "message delays", ..Trace::new(A::INFO.name, group.size()) },
            ending: Ending::Open,
            closed_at: None,
            options,
        };
        run.schedule_first();
        for node in group.nodes() {
            run.step(node, Input::Start, NOBODY);
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
                }
                None => self.fall_silent(),
            }
            self.approach_end();
        }
        self.accounts.pass_time(self.now);
        self.ending == Ending::Ended
    }

    fn approach_end(&mut self) {
        match self.ending {
            Ending::Open if self.entries_done() >= self.options.entries + self.options.warmup => {
                self.closed_at = Some(self.now);
                self.accounts.close();
                let counted = |letter: &&Letter<A::Message>| self.accounts.is_counted(letter.cause);
                let unsettled = self.letters.iter().filter(counted).count() as u64;
                let until = self.now + (100.0 * self.unit) as u64;
                self.ending = Ending::Settling { unsettled, until };
            }
            Ending::Settling { unsettled, until } if unsettled == 0 || self.now > until => {
                self.ending = Ending::Ended;
            }
            _ => {}
        }
    }

    /// Run to the end.
    pub fn run(mut self) -> Report {
        while !self.advance(u64::MAX) {}
        self.report()
    }

    /// How many entries are done, those of the warm-up included.
    pub fn entries_done(&self) -> u64 {
        self.accounts.done.len() as u64
    }

    /// What happened, as far as the options asked for it.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// The figures so far.
    pub fn report(&self) -> Report {
        let figures = Figures::of(&self.accounts, self.options.warmup);
        let time = self.closed_at.unwrap_or(self.now) as f64 / self.unit;
        let over_time = |value: f64| if time > 0.0 { value / time } else { 0.0 };
        Report {
            algorithm: A::INFO.name,
            n: self.options.group.size(),
            entries: figures.messages.count,
            seed: self.options.seed,
            messages_per_entry: figures.messages.mean,
            messages_ci: figures.messages.ci,
            messages_min: figures.messages.min,
            messages_max: figures.messages.max,
            bytes_per_entry: figures.bytes_per_entry,
            sync_delay: self.accounts.sync_delay.value(self.unit),
            response_time: self.accounts.response.value(self.unit),
            throughput: over_time(self.accounts.closed_entries() as f64),
            jain: figures.jain,
            overtakes_max: self.accounts.overtakes_max,
            queue_mean: over_time(self.accounts.waiting_time as f64 / self.unit),
            load_mean: figures.load_mean,
            load_max: figures.load_max,
            time,
            events: self.events,
            violations: u32::from(self.violation.is_some()),
            violation: self.violation.as_ref().map(Violation::to_string),
        }
    }
}
