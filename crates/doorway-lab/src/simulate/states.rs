//! The states of the nodes of a simulated run.

use std::collections::BTreeMap;

use doorway_core::{Channel, NodeId, Start};

use super::Simulation;
use crate::trace::{Event, EventKind};
use crate::{ChannelPosition, Choice, FOREVER, Limits, Trace, World};

impl Simulation {
    /// What happened, up to [`Options::trace`](super::Options::trace) events, with the state of the
    /// acting node after each of its steps.
    ///
    /// The simulator does not keep these states. A world of the same group repeats the run; it
    /// counts its messages as the simulator does.
    pub fn trace_with_states(&self) -> Trace {
        let mut trace = self.trace.clone();
        let mut world = self.first_world();
        trace.note_begin(&world);
        let mut arrivals = arrivals(&trace);
        let mut states = BTreeMap::new();
        let mut last_step = None;
        for (index, event) in trace.events.iter().enumerate() {
            if let Some(choice) = choice(&world, event, &mut arrivals) {
                world.apply(choice);
                last_step = Some((event.node, index));
            }
            // A step is told by several events, and the last of them has the state.
            if let Some((node, index_before)) = last_step
                && node == event.node
            {
                states.remove(&index_before);
                states.insert(index, world.nodes().member(node).algorithm_text());
                last_step = Some((node, index));
            }
        }
        trace.states = states;
        trace
    }

    /// The world in which the run begins. Everything that the simulator does may happen in it.
    fn first_world(&self) -> World {
        let group = &self.options.group;
        let limits = Limits {
            losses: u32::MAX,
            duplicates: u32::MAX,
            crashes: u32::MAX,
            detection: true,
            withdrawing: true,
            ..Limits::reliable(group, FOREVER)
        };
        // The run says which message arrives, so the order in a channel does not matter.
        World::new(self.algorithm, group.clone(), &Start::default(), Channel::Fifo, limits)
    }
}

/// How often each message arrives or is lost.
fn arrivals(trace: &Trace) -> BTreeMap<u64, usize> {
    let mut arrivals = BTreeMap::new();
    for event in &trace.events {
        if let EventKind::Receive { id } | EventKind::Lose { id } = event.what {
            *arrivals.entry(id).or_default() += 1;
        }
    }
    arrivals
}

/// The choice that an event of a simulated run tells of. `arrivals` counts for each message how
/// often it has yet to arrive or be lost.
fn choice(world: &World, event: &Event, arrivals: &mut BTreeMap<u64, usize>) -> Option<Choice> {
    let node = event.node;
    match event.what {
        EventKind::Acquire(mode) => Some(Choice::Acquire(node, mode)),
        EventKind::Release => Some(Choice::Release(node)),
        EventKind::Withdraw => Some(Choice::Withdraw(node)),
        EventKind::Crash => Some(Choice::Crash(node)),
        EventKind::Detect(failed) => Some(Choice::Detect { node, failed }),
        EventKind::Receive { id } | EventKind::Lose { id } => {
            let left = arrivals.entry(id).or_default();
            *left = left.saturating_sub(1);
            // What was on its way to a node that has crashed is gone.
            let position = position(world, node, id)?;
            match event.what {
                // Another copy of it is still to come.
                EventKind::Lose { .. } if *left > 0 => None,
                EventKind::Lose { .. } => Some(Choice::Drop(position)),
                _ if *left > 0 => Some(Choice::Duplicate(position)),
                _ => Some(Choice::Deliver(position)),
            }
        }
        EventKind::Enter
        | EventKind::Send { .. }
        | EventKind::Forget
        | EventKind::View { .. }
        | EventKind::Stop(_)
        | EventKind::Act(_)
        | EventKind::Violate(_) => None,
    }
}

/// Where the message with this number is on its way to a node.
fn position(world: &World, to: NodeId, id: u64) -> Option<ChannelPosition> {
    let mut under_way = world.under_way();
    under_way.find(|(position, letter)| position.to == to && letter.id == id).map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use doorway_core::Shape;
    use doorway_core::algorithms::ALL;

    use super::*;
    use crate::AnyAlgorithm;
    use crate::simulate::{Delay, Distribution, Options, Workload};

    /// A run of three nodes with faults, as far as the algorithm allows.
    fn run(algorithm: AnyAlgorithm, seed: u64, faults: bool) -> Simulation {
        let info = algorithm.info();
        let mut options = Options::new(info, info.group(3, &Shape::default()).unwrap());
        options.workload = Workload::Closed { think: Distribution::Exponential(3.0) };
        options.delay = Delay::Distribution(Distribution::Exponential(1.0));
        (options.seed, options.entries, options.trace) = (seed, 30, 2_000);
        options.withdraw = if info.withdraws { 0.2 } else { 0.0 };
        options.shared = if info.shared { 0.5 } else { 0.0 };
        if faults {
            (options.loss, options.duplicate) = (0.01, 0.01);
            (options.crashes, options.detect) = (vec![(20.0, NodeId(2))], Some(2.0));
        }
        let mut run = Simulation::new(algorithm, options).unwrap();
        while !run.advance(u64::MAX) {}
        run
    }

    /// The world sends what the simulator sent, and its nodes enter where those of the run did.
    #[test]
    fn a_world_repeats_the_run_of_every_algorithm() {
        for entry in ALL {
            for (seed, faults) in [(1, false), (2, false), (3, true), (4, true)] {
                let run = run(AnyAlgorithm::from(entry), seed, faults);
                let mut world = run.first_world();
                let mut arrivals = arrivals(run.trace());
                let (mut sends, mut entries) = (VecDeque::new(), 0);
                for step in world.opening() {
                    sends.extend(step.sends.clone());
                }
                for event in &run.trace().events {
                    if let Some(choice) = choice(&world, event, &mut arrivals) {
                        let step = world.apply(choice);
                        if step.violation.is_some() {
                            break; // The run ends here too, and tells no more of the step.
                        }
                        sends.extend(step.sends);
                        entries += u32::from(step.entered);
                    }
                    match &event.what {
                        EventKind::Send { id, to, message } => {
                            let (receiver, letter) = sends.pop_front().expect("a message");
                            let sent = (letter.id, receiver, format!("{:?}", letter.body));
                            assert_eq!(sent, (*id, *to, message.clone()), "{}", entry.info.name);
                        }
                        EventKind::Enter => entries -= 1,
                        _ => {}
                    }
                }
                assert_eq!((sends.len(), entries), (0, 0), "{}", entry.info.name);
            }
        }
    }

    #[test]
    fn every_step_has_a_state() {
        let run = run(AnyAlgorithm::named("raymond-tree").unwrap(), 1, false);
        let trace = run.trace_with_states();
        assert_eq!(trace.events, run.trace().events);
        assert_eq!(trace.begin.len(), 3);
        let is_step =
            |event: &&Event| !matches!(event.what, EventKind::Send { .. } | EventKind::Enter);
        assert_eq!(trace.states.len(), trace.events.iter().filter(is_step).count());
        assert!(trace.states.values().all(|state| state.contains("holder")), "{:?}", trace.states);
    }
}
