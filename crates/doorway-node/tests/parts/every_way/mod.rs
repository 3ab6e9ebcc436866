//! Explores all that can happen to one lock of a small group whose clients acquire, try, give up
//! and leave at any time, breadth first.

mod parts;

use std::collections::VecDeque;

use doorway_core::{Algorithm, Mode};
use doorway_node::locks::Rule;
use rustc_hash::FxHashMap;

use parts::{Parts, Turn};

/// A client of the group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client {
    pub(crate) node: u32,
    pub(crate) mode: Mode,
    /// How often it acquires or tries.
    pub(crate) asks: u8,
}

/// What can happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Event {
    Ask(u8),
    Try(u8),
    GiveUp(u8),
    Leave(u8),
    /// The oldest message from a node, by its number, arrives.
    Arrive(u32, u32),
}

/// A state: a part for each node, a channel for each pair of nodes, the highest fence of an
/// exclusive grant so far, and the highest of any grant.
type Row = Box<[u32]>;

/// All states, and the steps between them except those in which a client gives up.
pub(crate) struct Ways {
    pub(crate) states: usize,
    /// The states in which each client waits, and the reversed steps.
    waiting: Vec<Vec<bool>>,
    backwards: Vec<Vec<u32>>,
}

/// One lock of a small group.
pub(crate) struct World<'a, A> {
    parts: Parts<'a, A>,
    clients: &'a [Client],
    rule: &'a Rule,
    size: usize,
}

impl<'a, A: Algorithm + 'static> World<'a, A> {
    pub(crate) fn new(rule: &'a Rule, clients: &'a [Client]) -> Self {
        let size = rule.group.size() as usize;
        Self { parts: Parts::new(rule, clients), clients, rule, size }
    }

    /// Visit every reachable state. If one is wrong, panic and show how it was reached.
    pub(crate) fn explore(mut self) -> Ways {
        let first = self.first();
        let mut known = FxHashMap::from_iter([(first.clone(), 0u32)]);
        let mut open = VecDeque::from([first]);
        let mut origins = vec![(0, None)];
        let mut waiting = vec![Vec::new(); self.clients.len()];
        let mut backwards = vec![Vec::new()];
        let mut at = 0;
        while let Some(row) = open.pop_front() {
            let waits =
                self.clients.iter().zip(0..).map(|(client, number)| {
                    self.parts.node(row[client.node as usize]).waits(number)
                });
            waiting.iter_mut().zip(waits).for_each(|(all, waits)| all.push(waits));
            let mut quiet = true;
            for event in self.events(&row) {
                let story = || story(&origins, at, event);
                let next = self.apply(&row, event, &story);
                let fresh = known.len() as u32;
                let to = *known.entry(next).or_insert_with_key(|next| {
                    open.push_back(next.clone());
                    origins.push((at, Some(event)));
                    backwards.push(Vec::new());
                    fresh
                });
                if !matches!(event, Event::GiveUp(_)) {
                    quiet = false;
                    backwards[to as usize].push(at);
                }
            }
            if quiet {
                let free = (0..self.size).all(|node| self.parts.node(row[node]).free());
                assert!(free, "the end is not free: {:?}", path(&origins, at));
            }
            at += 1;
        }
        Ways { states: known.len(), waiting, backwards }
    }

    fn first(&mut self) -> Row {
        let nodes = (0..self.size as u32).map(|node| self.parts.begin(node));
        let nodes: Vec<u32> = nodes.collect();
        let empty = self.parts.line(Vec::new());
        let lines = vec![empty; self.size * self.size];
        nodes.into_iter().chain(lines).chain([0, 0]).collect()
    }

    fn events(&self, row: &[u32]) -> Vec<Event> {
        let mut events = Vec::new();
        for (client, number) in self.clients.iter().zip(0u8..) {
            let node = self.parts.node(row[client.node as usize]);
            if node.waits(number) {
                events.push(Event::GiveUp(number));
            } else if node.is_inside(number) {
                events.push(Event::Leave(number));
            } else if node.asks(number) > 0 {
                events.extend([Event::Ask(number), Event::Try(number)]);
            }
        }
        for from in 0..self.size {
            for to in 0..self.size {
                if !self.parts.messages(row[self.line(from, to)]).is_empty() {
                    events.push(Event::Arrive(from as u32, to as u32));
                }
            }
        }
        events
    }

    fn line(&self, from: usize, to: usize) -> usize {
        self.size + from * self.size + to
    }

    fn apply(&mut self, row: &[u32], event: Event, story: &dyn Fn() -> String) -> Row {
        let mut next: Row = row.into();
        let (actor, message) = match event {
            Event::Arrive(from, to) => {
                let line = self.line(from as usize, to as usize);
                let (first, rest) = self.parts.pop(row[line]);
                next[line] = rest;
                (to as usize, Some(first))
            }
            Event::Ask(client)
            | Event::Try(client)
            | Event::GiveUp(client)
            | Event::Leave(client) => (self.clients[usize::from(client)].node as usize, None),
        };
        let turn = self.parts.step(actor as u32, row[actor], event, message);
        let Turn { part, sends, grants } = match &*turn {
            Ok(turn) => turn,
            Err(wrong) => panic!("{wrong}: {}", story()),
        };
        next[actor] = *part;
        for (to, message) in sends {
            let line = self.line(actor, *to as usize);
            next[line] = self.parts.push(next[line], *message);
        }
        let [.., exclusive, any] = &mut *next else { unreachable!("a row has fences") };
        for (client, fence) in grants {
            let mode = self.clients[usize::from(*client)].mode;
            let floor = if mode == Mode::Exclusive { *any } else { *exclusive };
            let grows = self.rule.info.permits || *fence > floor;
            assert!(grows, "fence {fence} after {floor}: {}", story());
            *any = (*any).max(*fence);
            if mode == Mode::Exclusive {
                *exclusive = (*exclusive).max(*fence);
            }
        }
        self.check_inside(&next, story);
        next
    }

    fn check_inside(&self, row: &[u32], story: &dyn Fn() -> String) {
        let inside = self.clients.iter().zip(0u8..).filter(|(client, number)| {
            self.parts.node(row[client.node as usize]).is_inside(*number)
        });
        let modes: Vec<Mode> = inside.map(|(client, _)| client.mode).collect();
        let shared = modes.iter().all(|mode| *mode == Mode::Shared);
        let room = modes.len() <= self.rule.group.permits() as usize;
        assert!(shared || room, "{} are inside: {}", modes.len(), story());
    }
}

impl Ways {
    /// From every state in which a client waits, a state must be reachable in which it does not
    /// wait any more, without any client giving up.
    pub(crate) fn assert_live(&self) {
        for (client, waiting) in self.waiting.iter().enumerate() {
            let mut hopeful: Vec<bool> = waiting.iter().map(|waits| !waits).collect();
            let mut open: Vec<u32> = (0..).zip(&hopeful).filter(|s| *s.1).map(|s| s.0).collect();
            while let Some(state) = open.pop() {
                for before in &self.backwards[state as usize] {
                    if !std::mem::replace(&mut hopeful[*before as usize], true) {
                        open.push(*before);
                    }
                }
            }
            let lost = hopeful.iter().filter(|hopeful| !**hopeful).count();
            assert_eq!(lost, 0, "states in which client {client} waits for ever");
        }
    }
}

type Origins = Vec<(u32, Option<Event>)>;

fn path(origins: &Origins, mut at: u32) -> Vec<Event> {
    let mut events = Vec::new();
    while let (before, Some(event)) = origins[at as usize] {
        events.push(event);
        at = before;
    }
    events.reverse();
    events
}

fn story(origins: &Origins, at: u32, last: Event) -> String {
    format!("{:?}, then {last:?}", path(origins, at))
}
