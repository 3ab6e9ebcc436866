//! Several producers, first repair: the capacity is split among them, so that each is in a pair
//! with the consumer, and no producer has to know of another.

use doorway_core::buffer::{Message, Producer};

use super::pair::{Pair, Sides};
use crate::problems::exchange::{Envelope, Exchange, Faults, LocalAction, Outgoing};

/// A pair for each producer. Their capacities add up to that of the buffer.
#[derive(Clone, Debug)]
pub(super) struct Split {
    lanes: Vec<Pair>,
    capacity: u64,
}

impl Split {
    /// Give each producer its share of the capacity, as even as possible. `None` if a producer
    /// would get nothing.
    pub(super) fn new(producers: usize, capacity: u64, faults: Faults) -> Option<Self> {
        let count = producers as u64;
        let share = |lane: u64| capacity / count + u64::from(lane < capacity % count);
        let lanes = (0..count).map(|lane| Pair { capacity: share(lane), faults }).collect();
        (count > 0 && capacity >= count).then_some(Self { lanes, capacity })
    }

    /// The process of the whole that a process of a lane is.
    fn outer(&self, lane: usize, process: usize) -> usize {
        if process == 0 { lane } else { self.lanes.len() }
    }
}

/// A message of a lane.
type Body = (usize, Message<u8>);

impl Exchange for Split {
    type State = Vec<Sides>;
    type Body = Body;

    fn names(&self) -> Vec<String> {
        super::names(self.lanes.len())
    }

    fn faults(&self) -> Faults {
        self.lanes[0].faults
    }

    fn first(&self) -> (Vec<Sides>, Vec<Envelope<Body>>) {
        (self.lanes.iter().map(|lane| lane.first().0).collect(), Vec::new())
    }

    fn local_actions(&self, state: &Vec<Sides>) -> Vec<(usize, LocalAction)> {
        let mut actions = Vec::new();
        for (lane, (pair, sides)) in self.lanes.iter().zip(state).enumerate() {
            for (process, action) in pair.local_actions(sides) {
                let action = if matches!(action, LocalAction::Consume(_)) {
                    LocalAction::Consume(lane)
                } else {
                    action
                };
                // The consumer sends all credits again at once.
                let first = lane == 0 || process == 0 || action != LocalAction::SendAgain;
                actions.extend(first.then_some((self.outer(lane, process), action)));
            }
        }
        actions
    }

    fn act(
        &self,
        state: &mut Vec<Sides>,
        process: usize,
        action: LocalAction,
        out: &mut Outgoing<Body>,
    ) -> Result<String, String> {
        let mut said = String::new();
        let lanes = match action {
            LocalAction::Consume(lane) => lane..lane + 1,
            _ if process < self.lanes.len() => process..process + 1,
            _ => 0..self.lanes.len(),
        };
        for lane in lanes {
            let inner = usize::from(process == self.lanes.len());
            let mut mail = Outgoing { mail: Vec::new(), cut: false };
            said = self.lanes[lane].act(&mut state[lane], inner, action, &mut mail)?;
            out.mail.extend(mail.mail.into_iter().map(|Envelope { from, to, body }| Envelope {
                from: self.outer(lane, from),
                to: self.outer(lane, to),
                body: (lane, body),
            }));
        }
        if let LocalAction::Consume(lane) = action {
            said = format!("{said} of producer {}", lane + 1);
        }
        Ok(said)
    }

    fn receive(
        &self,
        state: &mut Vec<Sides>,
        envelope: Envelope<Body>,
        _out: &mut Outgoing<Body>,
    ) -> Result<(), String> {
        let (lane, body) = envelope.body;
        let (from, to) = (0, 0); // A pair looks at the message only.
        let mut out = Outgoing { mail: Vec::new(), cut: false };
        self.lanes[lane].receive(&mut state[lane], Envelope { from, to, body }, &mut out)
    }

    fn check(&self, state: &Vec<Sides>) -> Result<(), String> {
        let mut items = 0;
        for (lane, sides) in self.lanes.iter().zip(state) {
            lane.check(sides)?;
            let produced = sides.producer.as_ref().map_or(0, Producer::produced);
            items += produced.saturating_sub(sides.consumer.consumed());
        }
        super::fits(items, self.capacity)
    }

    fn is_done(&self, state: &Vec<Sides>) -> bool {
        self.lanes.iter().zip(state).all(|(lane, sides)| lane.is_done(sides))
    }

    fn settle(&self, state: &mut Vec<Sides>, mail: &mut Vec<Envelope<Body>>, rebase: bool) {
        for (lane, (pair, sides)) in self.lanes.iter().zip(state).enumerate() {
            let mut inner = Vec::new();
            mail.retain(|Envelope { from, to, body: (of, body) }| {
                if *of == lane {
                    inner.push(Envelope { from: *from, to: *to, body: body.clone() });
                }
                *of != lane
            });
            pair.settle(sides, &mut inner, rebase);
            let wrap = |Envelope { from, to, body }| Envelope { from, to, body: (lane, body) };
            mail.extend(inner.into_iter().map(wrap));
        }
    }
}
