//! The parts of states, each stored once, and the steps of a node, each computed once.

use std::fmt::Debug;
use std::hash::Hash;
use std::rc::Rc;

use doorway_core::{Algorithm, NodeId, Start};
use doorway_node::locks::{
    AlgorithmMachine, ClientId, Lock, LockEffects, Pace, Payload, Rule, TypedMachine,
};
use rustc_hash::FxHashMap;

use super::{Client, Event};

/// One node: its lock, its clock as a shard keeps it, and what its clients may still do.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Node<A> {
    lock: Lock<TypedMachine<A>>,
    clock: u32,
    asks: Vec<u8>,
    /// Grants in a row that passed between clients of this node while another node waited.
    row: u32,
    /// How many clients waited as the visit began.
    crowd: u32,
    /// How many rounds the visit may have.
    rounds: u32,
}

impl<A: Algorithm> Node<A> {
    pub(crate) fn waits(&self, client: u8) -> bool {
        self.lock.place(ClientId(client.into())).is_some()
    }

    pub(crate) fn is_inside(&self, client: u8) -> bool {
        self.lock.inside().any(|(inside, _)| inside == ClientId(client.into()))
    }

    pub(crate) fn asks(&self, client: u8) -> u8 {
        self.asks[usize::from(client)]
    }

    /// Are there no clients here, and is nothing held or requested for any?
    pub(crate) fn free(&self) -> bool {
        let machine = self.lock.machine();
        let idle = self.lock.is_idle() && !self.lock.lingers();
        idle && machine.is_none_or(|m| m.held() == 0 && m.waiting().is_none())
    }

    pub(crate) fn lingers(&self) -> bool {
        self.lock.lingers()
    }

    pub(crate) fn is_disputed(&self) -> bool {
        self.lock.machine().is_some_and(AlgorithmMachine::wanted)
    }
}

impl<A: Algorithm> Node<A> {
    /// Check that a visit of the lock is no longer than its bound, and that the lock lingers only
    /// where a client may use it.
    fn watch_visit(
        &mut self,
        rule: &Rule,
        event: Event,
        wanted: bool,
        moves: &LockEffects,
    ) -> Result<(), String> {
        if self.lock.machine().is_none_or(|machine| machine.held() == 0) {
            (self.row, self.crowd, self.rounds) = (0, 0, 0);
            return Ok(());
        }
        let granted = moves.granted.len() as u32;
        let quick = matches!(event, Event::Leave(_, Pace::Quick));
        if quick && self.row >= self.crowd * self.rounds && self.rounds < rule.handovers {
            self.rounds += 1;
        }
        let most = (self.crowd * self.rounds).max(1);
        let begins = moves.entries > 0 || !wanted || !self.is_disputed();
        if granted > 0 && begins {
            self.crowd = self.lock.waiters() as u32 + granted;
            (self.row, self.rounds) = (granted, rule.handovers.min(1));
        } else if granted > 0 {
            self.row += granted;
            if self.row > most {
                return Err(format!("{} grants while another node waits, not {most}", self.row));
            }
        }
        if self.lingers() && (self.row >= most || !self.lock.is_idle()) {
            return Err("the lock lingers although nobody may use it, or somebody does".to_owned());
        }
        Ok(())
    }
}

/// The result of a step of a node.
pub(crate) struct StepOutcome {
    pub(crate) part: u32,
    pub(crate) sends: Vec<(u32, u32)>,
    pub(crate) grants: Vec<(u8, u32)>,
}

type Message = (u32, Payload);
type Steps = FxHashMap<(u32, Event, Option<u32>), Rc<Result<StepOutcome, String>>>;

/// The store of all parts of states.
pub(crate) struct Parts<'a, A> {
    rule: &'a Rule,
    clients: &'a [Client],
    nodes: Interner<(u32, Node<A>)>,
    lines: Interner<Vec<u32>>,
    messages: Interner<Message>,
    steps: Steps,
}

impl<'a, A: Algorithm + 'static> Parts<'a, A> {
    pub(crate) fn new(rule: &'a Rule, clients: &'a [Client]) -> Self {
        Self {
            rule,
            clients,
            nodes: Interner::new(),
            lines: Interner::new(),
            messages: Interner::new(),
            steps: FxHashMap::default(),
        }
    }

    pub(crate) fn begin(&mut self, me: u32) -> u32 {
        let mut effects = LockEffects::default();
        let mut lock = Lock::default();
        start(&mut lock, me, self.rule, &mut effects).expect("a start");
        if !effects.sends.is_empty() {
            // A node that sends as it begins does so when the lock is first used there.
            lock = Lock::default();
        }
        let mine = |client: &Client| if client.node == me { client.asks } else { 0 };
        let asks = self.clients.iter().map(mine).collect();
        self.nodes.put((me, Node { lock, clock: 0, asks, row: 0, crowd: 0, rounds: 0 }))
    }

    pub(crate) fn node(&self, part: u32) -> &Node<A> {
        &self.nodes.get(part).1
    }

    pub(crate) fn line(&mut self, messages: Vec<u32>) -> u32 {
        self.lines.put(messages)
    }

    pub(crate) fn messages(&self, line: u32) -> &[u32] {
        self.lines.get(line)
    }

    pub(crate) fn pop(&mut self, line: u32) -> (u32, u32) {
        let (first, rest) = self.lines.get(line).split_first().expect("a message");
        (*first, self.lines.put(rest.to_vec()))
    }

    pub(crate) fn push(&mut self, line: u32, message: u32) -> u32 {
        let mut messages = self.lines.get(line).clone();
        messages.push(message);
        self.lines.put(messages)
    }

    /// Compute what an event does to a node.
    pub(crate) fn step(
        &mut self,
        me: u32,
        part: u32,
        event: Event,
        message: Option<u32>,
    ) -> Rc<Result<StepOutcome, String>> {
        if let Some(known) = self.steps.get(&(part, event, message)) {
            return Rc::clone(known);
        }
        let turn = Rc::new(self.take_step(me, part, event, message));
        self.steps.insert((part, event, message), Rc::clone(&turn));
        turn
    }

    fn take_step(
        &mut self,
        me: u32,
        part: u32,
        event: Event,
        message: Option<u32>,
    ) -> Result<StepOutcome, String> {
        let mut node = self.node(part).clone();
        let wanted = node.is_disputed();
        let mut moves = LockEffects::default();
        let message = message.map(|message| self.messages.get(message).clone());
        if node.lock.machine().is_none() {
            start(&mut node.lock, me, self.rule, &mut moves)?;
        }
        act(&mut node, self.rule, self.clients, event, message, &mut moves)?;
        node.watch_visit(self.rule, event, wanted, &moves)?;
        let mut grants = Vec::new();
        for ClientId(client) in moves.granted {
            node.clock = next(node.clock, me, self.rule);
            grants.push((client as u8, node.clock));
        }
        let clock = node.clock;
        let send = |(to, payload): (NodeId, Payload)| (to.0, self.messages.put((clock, payload)));
        let sends = moves.sends.into_iter().map(send).collect();
        Ok(StepOutcome { part: self.nodes.put((me, node)), sends, grants })
    }
}

/// Begin a lock at a node, as a shard does.
fn start<A: Algorithm>(
    lock: &mut Lock<TypedMachine<A>>,
    me: u32,
    rule: &Rule,
    moves: &mut LockEffects,
) -> Result<(), String> {
    let machine = TypedMachine::begin(NodeId(me), &rule.group, &Start::default(), &mut moves.sends);
    let machine = Box::new(machine.map_err(|fault| fault.to_string())?);
    lock.start(rule, machine, moves).map_err(|fault| fault.to_string())
}

fn act<A: Algorithm>(
    node: &mut Node<A>,
    rule: &Rule,
    clients: &[Client],
    event: Event,
    message: Option<Message>,
    moves: &mut LockEffects,
) -> Result<(), String> {
    let lock = &mut node.lock;
    let done = match event {
        Event::Ask(client) | Event::Try(client) => {
            let mode = clients[usize::from(client)].mode;
            node.asks[usize::from(client)] -= 1;
            if matches!(event, Event::Ask(_)) {
                lock.acquire(rule, ClientId(client.into()), mode, moves)
            } else {
                lock.try_acquire(rule, ClientId(client.into()), mode, moves)
            }
        }
        Event::GiveUp(client) => {
            lock.leave(rule, ClientId(client.into()), Pace::Slow, moves).map(|was| assert!(was))
        }
        Event::Leave(client, pace) => {
            lock.leave(rule, ClientId(client.into()), pace, moves).map(|was| assert!(was))
        }
        Event::EndLinger(_) => lock.end_linger(rule, moves),
        Event::Arrive(from, _) => {
            let (clock, payload) = message.expect("a message arrives");
            node.clock = node.clock.max(clock);
            lock.receive(rule, NodeId(from), &payload, moves)
        }
    };
    done.map_err(|fault| fault.to_string())
}

/// The clock of the next grant, as shards count.
fn next(clock: u32, me: u32, rule: &Rule) -> u32 {
    let size = rule.group.size();
    let fits = |clock: &u32| !rule.info.permits || clock % size == me;
    (clock + 1..=clock + size).find(fits).expect("a number that fits")
}

/// Values that are stored once, each with its number.
struct Interner<T> {
    numbers: FxHashMap<Rc<T>, u32>,
    values: Vec<Rc<T>>,
}

impl<T: Eq + Hash> Interner<T> {
    fn new() -> Self {
        Self { numbers: FxHashMap::default(), values: Vec::new() }
    }

    fn put(&mut self, value: T) -> u32 {
        if let Some(number) = self.numbers.get(&value) {
            return *number;
        }
        let (value, number) = (Rc::new(value), self.values.len() as u32);
        self.values.push(Rc::clone(&value));
        self.numbers.insert(value, number);
        number
    }

    fn get(&self, number: u32) -> &T {
        &self.values[number as usize]
    }
}
