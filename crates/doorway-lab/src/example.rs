//! A small run that shows what an algorithm does: a few nodes ask, each shortly after the one
//! before, and every message takes one unit of time.

use std::sync::Arc;

use doorway_core::{Algorithm, Group, Mode, NodeId, Start};

use crate::{Choice, Limits, Trace, World};

/// How long a node stays inside.
const INSIDE: u32 = 2;
/// How long the run goes on when all have left, for a token may circulate for ever.
const AFTERMATH: u32 = 3;
/// A run is cut short here: a refuted algorithm may keep a node waiting for ever.
const LONGEST: u32 = 100;

/// Let each of `askers` enter once: the first asks at time 1, the next at time 2, and so on.
pub fn example<A: Algorithm>(group: Arc<Group>, askers: &[NodeId]) -> Trace {
    let limits = Limits::reliable(&group, 1);
    let mut trace = Trace::new(A::INFO.name, group.size());
    trace.unit = "message delays";
    let world = World::<A>::new(group, &Start::default(), A::INFO.channel, limits);
    let mut run = Run { world, trace, now: 0, inside: Vec::new(), left: 0 };
    for step in run.world.opening() {
        run.trace.record(0.0, step);
    }
    let mut aftermath = 0;
    while run.now < LONGEST && aftermath < AFTERMATH {
        run.now += 1;
        run.deliver();
        run.leave();
        if let Some(node) = askers.get(run.now as usize - 1) {
            run.choose(Choice::Acquire(*node, Mode::Exclusive));
        }
        if run.left == askers.len() {
            let quiet = run.world.under_way().next().is_none();
            aftermath = if quiet { AFTERMATH } else { aftermath + 1 };
        }
    }
    run.trace
}

struct Run<A: Algorithm> {
    world: World<A>,
    trace: Trace,
    now: u32,
    /// Who is inside, and since when.
    inside: Vec<(NodeId, u32)>,
    /// How many have left.
    left: usize,
}

impl<A: Algorithm> Run<A> {
    /// Everything under way arrives, but nothing that is sent in answer.
    fn deliver(&mut self) {
        let mut sent: Vec<u64> = self.world.under_way().map(|(_, letter)| letter.id).collect();
        sent.sort_unstable();
        for id in sent {
            let mut under_way = self.world.under_way();
            let parcel = under_way.find(|(_, letter)| letter.id == id).map(|(parcel, _)| parcel);
            drop(under_way);
            if let Some(parcel) = parcel {
                self.choose(Choice::Deliver(parcel));
            }
        }
    }

    /// Those who have been inside long enough leave.
    fn leave(&mut self) {
        let due = |since: u32| self.now >= since + INSIDE;
        let (leavers, stayers) = self.inside.iter().partition(|(_, since)| due(*since));
        self.inside = stayers;
        for (node, _) in Vec::into_iter(leavers) {
            self.choose(Choice::Release(node));
            self.left += 1;
        }
    }

    fn choose(&mut self, choice: Choice) {
        let step = self.world.apply(choice);
        self.trace.record(f64::from(self.now), &step);
        let node = match choice {
            Choice::Acquire(node, _) | Choice::Release(node) => node,
            Choice::Deliver(parcel) => parcel.to,
            _ => return,
        };
        if step.entered {
            self.inside.push((node, self.now));
        }
    }
}

#[cfg(test)]
mod tests {
    use doorway_core::Shape;
    use doorway_core::algorithms::{ALL, Task, with};

    use super::*;
    use crate::trace::What;

    struct Example;

    impl Task for Example {
        type Output = Trace;

        fn run<A: Algorithm>(self) -> Trace {
            let group = A::INFO.group(3, &Shape::default()).unwrap();
            example::<A>(Arc::new(group), &[NodeId(1), NodeId(2)])
        }
    }

    #[test]
    fn in_every_algorithm_both_enter_and_leave_again() {
        for entry in ALL.iter().filter(|entry| entry.info.refuted.is_none()) {
            let trace = with(entry.info.name, Example).unwrap();
            let nodes = |test: fn(&What) -> bool| {
                let found = trace.events.iter().filter(|event| test(&event.what));
                found.map(|event| event.node).collect::<Vec<_>>()
            };
            let both = [NodeId(1), NodeId(2)];
            let mut entered = nodes(|what| *what == What::Enter);
            entered.sort_unstable();
            assert_eq!(entered, both, "{}", entry.info.name);
            assert_eq!(nodes(|what| *what == What::Release).len(), 2, "{}", entry.info.name);
            assert!(trace.events.iter().all(|event| event.at < 60.0), "{}", entry.info.name);
        }
    }
}
