//! Several producers, as one would write it first: each adds up the counters of all, its own and
//! late images of the others'. **Refuted**: a late image of another producer's counter makes the
//! sum too small and the guard weaker, so two producers take the last place.

use std::collections::BTreeSet;

use crate::problems::exchange::{Envelope, Exchange, Faults, LocalAction, Outgoing};

/// Producers that tell each other how much they have produced.
#[derive(Clone, Copy, Debug)]
pub(super) struct Naive {
    pub(super) producers: usize,
    pub(super) capacity: u64,
    /// The number of items of each producer.
    pub(super) items: u64,
    pub(super) faults: Faults,
}

/// The messages.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Body {
    /// To the consumer: the n-th item of the sender.
    Item(u64),
    /// To the other producers: the sender has produced this number of items.
    Made(u64),
    /// To all producers: this number of items have been consumed.
    Credit(u64),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    /// What each producer knows of the counters of all producers. Its own entry is exact.
    made: Vec<Vec<u64>>,
    /// What each producer knows of the number of items consumed.
    known: Vec<u64>,
    /// The items that have arrived, by producer: how many were consumed, and which others are
    /// there.
    lanes: Vec<(u64, BTreeSet<u64>)>,
}

impl State {
    fn consumed(&self) -> u64 {
        self.lanes.iter().map(|(consumed, _)| consumed).sum()
    }

    fn produced(&self) -> u64 {
        (0..self.made.len()).map(|producer| self.made[producer][producer]).sum()
    }
}

impl Exchange for Naive {
    type State = State;
    type Body = Body;

    fn names(&self) -> Vec<String> {
        super::names(self.producers)
    }

    fn faults(&self) -> Faults {
        self.faults
    }

    fn first(&self) -> (State, Vec<Envelope<Body>>) {
        let count = self.producers;
        let lanes = vec![(0, BTreeSet::new()); count];
        (State { made: vec![vec![0; count]; count], known: vec![0; count], lanes }, Vec::new())
    }

    fn local_actions(&self, state: &State) -> Vec<(usize, LocalAction)> {
        let mut actions = Vec::new();
        for producer in 0..self.producers {
            let sum: u64 = state.made[producer].iter().sum();
            let free = sum < state.known[producer] + self.capacity;
            let left = state.made[producer][producer] < self.items;
            actions.extend((free && left).then_some((producer, LocalAction::Produce)));
        }
        for (lane, (consumed, there)) in state.lanes.iter().enumerate() {
            let next = there.contains(&(consumed + 1));
            actions.extend(next.then_some((self.producers, LocalAction::Consume(lane))));
        }
        actions
    }

    fn act(
        &self,
        state: &mut State,
        process: usize,
        action: LocalAction,
        out: &mut Outgoing<Body>,
    ) -> Result<String, String> {
        let mut send = |to, body| out.mail.push(Envelope { from: process, to, body });
        match action {
            LocalAction::Produce => {
                state.made[process][process] += 1;
                let made = state.made[process][process];
                send(self.producers, Body::Item(made));
                let others = (0..self.producers).filter(|other| *other != process);
                others.for_each(|other| send(other, Body::Made(made)));
                Ok(format!("produces item {made}"))
            }
            LocalAction::Consume(lane) => {
                let (consumed, there) = &mut state.lanes[lane];
                *consumed += 1;
                there.remove(consumed);
                let total = state.consumed();
                (0..self.producers).for_each(|producer| send(producer, Body::Credit(total)));
                Ok(format!("consumes an item of producer {}", lane + 1))
            }
            _ => Err("a process did what it cannot do".into()),
        }
    }

    fn receive(
        &self,
        state: &mut State,
        Envelope { from, to, body }: Envelope<Body>,
        _out: &mut Outgoing<Body>,
    ) -> Result<(), String> {
        match body {
            Body::Item(number) => {
                let (consumed, there) = &mut state.lanes[from];
                if number > *consumed {
                    there.insert(number);
                }
            }
            Body::Made(made) => state.made[to][from] = state.made[to][from].max(made),
            Body::Credit(consumed) => state.known[to] = state.known[to].max(consumed),
        }
        Ok(())
    }

    fn check(&self, state: &State) -> Result<(), String> {
        super::fits(state.produced() - state.consumed(), self.capacity)
    }

    fn is_done(&self, state: &State) -> bool {
        state.produced() == state.consumed()
    }

    fn settle(&self, state: &mut State, mail: &mut Vec<Envelope<Body>>, _rebase: bool) {
        mail.retain(|Envelope { from, to, body }| match *body {
            Body::Item(number) => {
                let (consumed, there) = &state.lanes[*from];
                number > *consumed && !there.contains(&number)
            }
            Body::Made(made) => made > state.made[*to][*from],
            Body::Credit(consumed) => consumed > state.known[*to],
        });
    }
}
