//! Several producers, third repair: a lock guards the sum of their counters. A producer produces
//! only while it holds the lock, tells all others, and gives the lock back when all of them have
//! confirmed it. So the sum that the next holder computes is exact. Any algorithm for mutual
//! exclusion among the producers will do.

use std::collections::BTreeMap;
use std::sync::Arc;

use doorway_core::buffer::Consumer;
use doorway_core::{Channel, Effects, Group, Input, Mode, NodeId, NodeSet, Phase, Shape, Start};

use super::pair::{consume, contents, is_stale};
use crate::AnyAlgorithm;
use crate::erased::{AnyMember, AnyMessage};
use crate::problems::exchange::{Envelope, Exchange, Faults, LocalAction, Outgoing};

/// Producers that share a lock.
#[derive(Clone, Debug)]
pub(super) struct LockedBuffer {
    algorithm: AnyAlgorithm,
    group: Arc<Group>,
    capacity: u64,
    /// The number of items of each producer.
    items: u64,
    faults: Faults,
}

impl LockedBuffer {
    /// Producers that use this algorithm, or why they cannot.
    pub(super) fn new(
        algorithm: AnyAlgorithm,
        producers: usize,
        capacity: u64,
        items: u64,
        faults: Faults,
    ) -> Result<Self, String> {
        let info = algorithm.info();
        let group = info.group(producers, &Shape::default()).map_err(|error| error.to_string())?;
        if info.channel == Channel::Fifo && faults.overtake {
            return Err(format!(
                "{} needs messages in order; choose another --lock, or no overtaking",
                info.name
            ));
        }
        Ok(Self { algorithm, group: Arc::new(group), capacity, items, faults })
    }

    fn producers(&self) -> usize {
        self.group.size() as usize
    }

    /// Let the lock of a producer take a step, and send what it sends.
    fn step(
        &self,
        state: &mut State,
        process: usize,
        input: Input<AnyMessage>,
        out: &mut Outgoing<Body>,
    ) -> Result<bool, String> {
        let mut effects = Effects::default();
        let lock = &mut state.producers[process].lock;
        lock.step(&self.group, input, &mut effects).map_err(|breach| breach.to_string())?;
        if let Some(why) = effects.rejected() {
            return Err(format!("a producer refused {why}"));
        }
        let entered = effects.entered();
        out.mail.extend(effects.drain().map(|(to, message)| Envelope {
            from: process,
            to: to.index(),
            body: Body::Lock(message),
        }));
        Ok(entered)
    }
}

/// The messages.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Body {
    /// To the consumer: the n-th item of all.
    Item(u64, u8),
    /// To all producers: this number of items have been consumed.
    Credit(u64),
    /// To the other producers: the sender has produced this number of items.
    Made(u64),
    /// The answer to it.
    Noted,
    /// A message of the lock.
    Lock(AnyMessage),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Producer {
    lock: AnyMember,
    /// What it knows of the counters of all producers. Its own entry is exact, and inside all are.
    made: Vec<u64>,
    /// The image of the number of items consumed.
    consumed: u64,
    /// Its items that are not known to be consumed.
    unconfirmed: BTreeMap<u64, u8>,
    /// Whether it has produced since it entered.
    produced: bool,
    /// The producers that have not confirmed what it has produced.
    awaited: NodeSet,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    producers: Vec<Producer>,
    consumer: Consumer<u8>,
}

impl State {
    fn produced(&self) -> u64 {
        self.producers.iter().enumerate().map(|(number, producer)| producer.made[number]).sum()
    }
}

impl Exchange for LockedBuffer {
    type State = State;
    type Body = Body;

    fn names(&self) -> Vec<String> {
        super::names(self.producers())
    }

    fn faults(&self) -> Faults {
        self.faults
    }

    fn endures(&self, body: &Body) -> bool {
        matches!(body, Body::Item(..) | Body::Credit(_))
    }

    fn is_expected(&self, action: LocalAction) -> bool {
        // A producer that has the lock produces.
        matches!(
            action,
            LocalAction::Produce
                | LocalAction::Consume(_)
                | LocalAction::SendAgain
                | LocalAction::Release
        )
    }

    fn first(&self) -> (State, Vec<Envelope<Body>>) {
        let mut mail = Vec::new();
        let producer = |node: NodeId| {
            let mut effects = Effects::default();
            let begun = self.algorithm.begin(node, &self.group, &Start::default(), &mut effects);
            mail.extend(effects.drain().map(|(to, message)| Envelope {
                from: node.index(),
                to: to.index(),
                body: Body::Lock(message),
            }));
            Producer {
                lock: begun.expect("algorithms keep their contract, which other tests check"),
                made: vec![0; self.producers()],
                consumed: 0,
                unconfirmed: BTreeMap::new(),
                produced: false,
                awaited: NodeSet::new(),
            }
        };
        let producers = self.group.nodes().map(producer).collect();
        (State { producers, consumer: Consumer::new(self.capacity) }, mail)
    }

    fn local_actions(&self, state: &State) -> Vec<(usize, LocalAction)> {
        let mut actions = Vec::new();
        for (number, producer) in state.producers.iter().enumerate() {
            let left = producer.made[number] < self.items;
            let free = producer.made.iter().sum::<u64>() < producer.consumed + self.capacity;
            let action = match producer.lock.phase() {
                Phase::Outside if left => Some(LocalAction::Acquire),
                Phase::Inside if producer.produced && producer.awaited.is_empty() => {
                    Some(LocalAction::Release)
                }
                Phase::Inside if !producer.produced && free => Some(LocalAction::Produce),
                _ => None,
            };
            actions.extend(action.map(|action| (number, action)));
            let again = self.faults.again && !producer.unconfirmed.is_empty();
            actions.extend(again.then_some((number, LocalAction::SendAgain)));
        }
        let there = state.consumer.known_produced() > state.consumer.consumed();
        actions.extend(there.then_some((self.producers(), LocalAction::Consume(0))));
        actions.extend(self.faults.again.then_some((self.producers(), LocalAction::SendAgain)));
        actions
    }

    fn act(
        &self,
        state: &mut State,
        process: usize,
        action: LocalAction,
        out: &mut Outgoing<Body>,
    ) -> Result<String, String> {
        let consumer = self.producers();
        let send = |to, body| Envelope { from: process, to, body };
        Ok(match action {
            LocalAction::Acquire => {
                let entered = self.step(state, process, Input::Acquire(Mode::Exclusive), out)?;
                if entered { "gets the lock" } else { "asks for the lock" }.into()
            }
            LocalAction::Release => {
                state.producers[process].produced = false;
                self.step(state, process, Input::Release, out)?;
                "gives the lock back".into()
            }
            LocalAction::Produce => {
                let producer = &mut state.producers[process];
                producer.made[process] += 1;
                producer.produced = true;
                let number = producer.made.iter().sum();
                let item = contents(number, self.capacity);
                producer.unconfirmed.insert(number, item);
                out.mail.push(send(consumer, Body::Item(number, item)));
                let made = producer.made[process];
                for other in self.group.others(NodeId::at(process)) {
                    producer.awaited.insert(other);
                    out.mail.push(send(other.index(), Body::Made(made)));
                }
                format!("produces item {number}")
            }
            LocalAction::SendAgain if process < consumer => {
                let items = state.producers[process].unconfirmed.iter();
                out.mail
                    .extend(items.map(|(number, item)| send(consumer, Body::Item(*number, *item))));
                "sends again what is not known to be consumed".into()
            }
            LocalAction::Consume(_) | LocalAction::SendAgain => {
                let said = match action {
                    LocalAction::SendAgain => "sends its credit again".into(),
                    _ => format!("consumes item {}", consume(&mut state.consumer, self.capacity)?),
                };
                let consumed = state.consumer.consumed();
                out.mail.extend((0..consumer).map(|to| send(to, Body::Credit(consumed))));
                said
            }
            LocalAction::Pass | LocalAction::Crash => {
                return Err("a process did what it cannot do".into());
            }
        })
    }

    fn receive(
        &self,
        state: &mut State,
        Envelope { from, to, body }: Envelope<Body>,
        out: &mut Outgoing<Body>,
    ) -> Result<(), String> {
        match body {
            Body::Item(number, item) => {
                let taken = state.consumer.item(number, item);
                taken.map_err(|why| format!("the consumer refused {why}"))?;
            }
            Body::Credit(consumed) => {
                let producer = &mut state.producers[to];
                producer.consumed = producer.consumed.max(consumed);
                producer.unconfirmed.retain(|number, _| *number > producer.consumed);
            }
            Body::Made(made) => {
                let known = &mut state.producers[to].made[from];
                *known = made.max(*known);
                out.mail.push(Envelope { from: to, to: from, body: Body::Noted });
            }
            Body::Noted => {
                state.producers[to].awaited.remove(NodeId::at(from));
            }
            Body::Lock(message) => {
                let from = NodeId::at(from);
                self.step(state, to, Input::Receive { from, message }, out)?;
            }
        }
        Ok(())
    }

    fn check(&self, state: &State) -> Result<(), String> {
        let inside = |producer: &&Producer| producer.lock.phase() == Phase::Inside;
        if state.producers.iter().filter(inside).count() > 1 {
            return Err("two producers have the lock".into());
        }
        super::fits(state.produced() - state.consumer.consumed(), self.capacity)
    }

    fn is_done(&self, state: &State) -> bool {
        let idle = |producer: &Producer| {
            producer.unconfirmed.is_empty() && producer.lock.phase() == Phase::Outside
        };
        state.producers.iter().all(idle)
    }

    fn settle(&self, state: &mut State, mail: &mut Vec<Envelope<Body>>, _rebase: bool) {
        mail.retain(|Envelope { to, body, .. }| match body {
            Body::Item(number, _) => !is_stale(&state.consumer, *number),
            Body::Credit(consumed) => *consumed > state.producers[*to].consumed,
            Body::Made(_) | Body::Noted | Body::Lock(_) => true,
        });
    }
}
