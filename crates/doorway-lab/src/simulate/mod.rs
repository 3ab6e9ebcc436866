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
use network::{Letters, Order};
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
    violation: Option<Violation>,
    trace: Trace,
    done: bool,
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
            accounts: Accounts::new(size),
            backlog: BTreeMap::new(),
            stays: BTreeMap::new(),
            crashed: NodeSet::new(),
            effects: Effects::default(),
            events: 0,
            violation: None,
            trace: Trace::new(A::INFO.name, group.size()),
            done: false,
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
        let until = self.events + events;
        let enough = self.options.entries + self.options.warmup;
        while !self.done && self.events < until {
            match self.queue.pop() {
                Some((at, event)) => {
                    self.now = at;
                    self.events += 1;
                    self.handle(event);
                }
                None => self.fall_silent(),
            }
            self.done |= self.accounts.done.len() as u64 >= enough;
        }
        self.accounts.pass_time(self.now);
        self.done
    }

    /// Run to the end.
    pub fn run(mut self) -> Report {
        while !self.advance(u64::MAX / 2) {}
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
        let time = self.now as f64 / self.unit;
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
            throughput: over_time(self.accounts.entries as f64),
            jain: figures.jain,
            overtakes_max: self.accounts.overtakes_max,
            queue_mean: over_time(self.accounts.waiting_time as f64 / self.unit),
            load_mean: figures.load_mean,
            load_max: figures.load_max,
            time,
            events: self.events,
            violations: self.violation.iter().map(Violation::to_string).collect(),
        }
    }
}
