//! Everything that can happen to one lock of a small group whose clients acquire, try, give up and
//! leave at any time.
//!
//! Shipped: `Lock`.

mod parts;

use std::cell::RefCell;

use doorway_core::{Algorithm, Mode};
use doorway_node::locks::{Pace, Rule};
use doorway_search::System;

use parts::{Parts, StepOutcome};

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
    Leave(u8, Pace),
    /// The lock lingers at a node no longer.
    EndLinger(u32),
    /// The oldest message from a node, by its number, arrives.
    Arrive(u32, u32),
}

/// A state: a part for each node, a channel for each pair of nodes, the highest fence of an
/// exclusive grant so far, and the highest of any grant.
pub(crate) type Row = Box<[u32]>;

/// One lock of a small group.
pub(crate) struct World<'a, A> {
    parts: RefCell<Parts<'a, A>>,
    clients: &'a [Client],
    rule: &'a Rule,
    size: usize,
}

impl<'a, A: Algorithm + 'static> World<'a, A> {
    pub(crate) fn new(rule: &'a Rule, clients: &'a [Client]) -> Self {
        let size = rule.group.size() as usize;
        Self { parts: RefCell::new(Parts::new(rule, clients)), clients, rule, size }
    }

    fn line(&self, from: usize, to: usize) -> usize {
        self.size + from * self.size + to
    }
}

impl<A: Algorithm + 'static> System for World<'_, A> {
    type State = Row;
    type Action = Event;
    type Violation = String;

    fn first(&self) -> Row {
        let mut parts = self.parts.borrow_mut();
        let mut row: Vec<u32> = (0..self.size as u32).map(|node| parts.begin(node)).collect();
        let empty = parts.line(Vec::new());
        row.extend(vec![empty; self.size * self.size]);
        row.extend([0, 0]);
        row.into()
    }

    fn actions(&self, row: &Row) -> Vec<Event> {
        let parts = self.parts.borrow();
        let mut events = Vec::new();
        for (client, number) in self.clients.iter().zip(0u8..) {
            let node = parts.node(row[client.node as usize]);
            if node.waits(number) {
                events.push(Event::GiveUp(number));
            } else if node.is_inside(number) {
                events.push(Event::Leave(number, Pace::Slow));
                // With fewer rounds than that, these make no difference.
                let paces = [(1, Pace::Late), (2, Pace::Quick)];
                let rounds = self.rule.handovers;
                let paces = paces.into_iter().filter(|(least, _)| *least <= rounds);
                let paces = paces.filter(|_| node.is_disputed());
                events.extend(paces.map(|(_, pace)| Event::Leave(number, pace)));
            } else if node.asks(number) > 0 {
                events.extend([Event::Ask(number), Event::Try(number)]);
            }
        }
        for node in 0..self.size {
            if parts.node(row[node]).lingers() {
                events.push(Event::EndLinger(node as u32));
            }
        }
        for from in 0..self.size {
            for to in 0..self.size {
                if !parts.messages(row[self.line(from, to)]).is_empty() {
                    events.push(Event::Arrive(from as u32, to as u32));
                }
            }
        }
        events
    }

    fn apply(&self, row: &mut Row, event: Event) -> Result<(), String> {
        let mut parts = self.parts.borrow_mut();
        let (actor, message) = match event {
            Event::Arrive(from, to) => {
                let line = self.line(from as usize, to as usize);
                let (first, rest) = parts.pop(row[line]);
                row[line] = rest;
                (to as usize, Some(first))
            }
            Event::EndLinger(node) => (node as usize, None),
            Event::Ask(client)
            | Event::Try(client)
            | Event::GiveUp(client)
            | Event::Leave(client, _) => (self.clients[usize::from(client)].node as usize, None),
        };
        let turn = parts.step(actor as u32, row[actor], event, message);
        let StepOutcome { part, sends, grants } = turn.as_ref().as_ref().map_err(String::clone)?;
        row[actor] = *part;
        for (to, message) in sends {
            let line = self.line(actor, *to as usize);
            row[line] = parts.push(row[line], *message);
        }
        let [.., exclusive, any] = &mut **row else { unreachable!("a row has fences") };
        for (client, fence) in grants {
            let mode = self.clients[usize::from(*client)].mode;
            let floor = if mode == Mode::Exclusive { *any } else { *exclusive };
            if !self.rule.info.permits && *fence <= floor {
                return Err(format!("fence {fence} after {floor}"));
            }
            *any = (*any).max(*fence);
            if mode == Mode::Exclusive {
                *exclusive = (*exclusive).max(*fence);
            }
        }
        Ok(())
    }

    fn check(&self, row: &Row) -> Result<(), String> {
        let parts = self.parts.borrow();
        let inside =
            self.clients.iter().zip(0u8..).filter(|(client, number)| {
                parts.node(row[client.node as usize]).is_inside(*number)
            });
        let modes: Vec<Mode> = inside.map(|(client, _)| client.mode).collect();
        let shared = modes.iter().all(|mode| *mode == Mode::Shared);
        let room = modes.len() <= self.rule.group.permits() as usize;
        if shared || room { Ok(()) } else { Err(format!("{} are inside", modes.len())) }
    }

    /// No client waits or is inside, and the lock is free. A client that waits for ever would keep
    /// this from being reached.
    fn is_goal(&self, row: &Row) -> bool {
        let parts = self.parts.borrow();
        row[..self.size].iter().all(|part| parts.node(*part).free())
    }

    fn is_expected(&self, event: &Event) -> bool {
        !matches!(event, Event::GiveUp(_) | Event::Leave(_, Pace::Late | Pace::Quick))
    }
}
