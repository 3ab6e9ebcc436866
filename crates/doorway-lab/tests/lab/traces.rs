//! Traces to draw: worlds driven by fixed schedules.

use std::collections::BTreeMap;
use std::sync::Arc;

use doorway_core::algorithms::le_lann::LeLann;
use doorway_core::algorithms::ricart_agrawala::RicartAgrawala;
use doorway_core::{Algorithm, Channel, Mode, NodeId, Shape, Start};
use doorway_lab::trace::EventKind;
use doorway_lab::{AnyAlgorithm, ChannelPosition, Choice, Limits, Trace, Violation, World};

fn world<A: Algorithm>(size: usize, change: impl Fn(&mut Limits)) -> World {
    let group = Arc::new(A::INFO.group(size, &Shape::default()).expect("small groups exist"));
    let mut limits = Limits::reliable(&group, 1);
    change(&mut limits);
    World::new(AnyAlgorithm::of::<A>(), group, &Start::default(), Channel::Unordered, limits)
}

/// A run step by step: `pick` picks one of the choices each time, until it picks none.
fn stepwise(
    title: &str,
    mut world: World,
    mut pick: impl FnMut(usize, &[Choice]) -> Option<Choice>,
) -> Trace {
    let mut trace = Trace::new(title, world.group().size());
    for step in world.opening() {
        trace.record(0.0, step);
    }
    let mut now = 0;
    while let Some(choice) = pick(now, &world.choices()) {
        now += 1;
        trace.record(now as f64, &world.apply(choice));
    }
    trace
}

/// A run in message delays: message number `i` takes `delay(i)`, requests come at the given times,
/// and a node inside leaves after `inside`.
fn timed(
    title: &str,
    mut world: World,
    mut requests: Vec<(f64, u32)>,
    inside: f64,
    until: f64,
    delay: impl Fn(u64) -> f64,
) -> Trace {
    let mut trace = Trace::new(title, world.group().size());
    trace.unit = "message delays";
    let mut due = BTreeMap::new();
    let mut leaves: Vec<(f64, u32)> = Vec::new();
    let opening = world.opening().to_vec();
    let mut now = 0.0;
    for step in &opening {
        trace.record(now, step);
    }
    loop {
        for (_, letter) in world.under_way() {
            due.entry(letter.id).or_insert(now + delay(letter.id));
        }
        let arrivals = world
            .under_way()
            .map(|(position, letter)| (due[&letter.id], Choice::Deliver(position)));
        let asks =
            requests.iter().map(|&(at, n)| (at, Choice::Acquire(NodeId(n), Mode::Exclusive)));
        let exits = leaves.iter().map(|&(at, node)| (at, Choice::Release(NodeId(node))));
        let next = exits.chain(asks).chain(arrivals).min_by(|a, b| a.0.total_cmp(&b.0));
        let Some((at, choice)) = next.filter(|(at, _)| *at <= until) else { return trace };
        now = at;
        match choice {
            Choice::Acquire(node, _) => requests.retain(|request| *request != (at, node.0)),
            Choice::Release(node) => leaves.retain(|leave| leave.1 != node.0),
            _ => {}
        }
        let step = world.apply(choice);
        trace.record(now, &step);
        if step.entered {
            let entered = match choice {
                Choice::Deliver(position) => position.to,
                Choice::Acquire(node, _) => node,
                other => panic!("nobody enters by {other:?}"),
            };
            leaves.push((now + inside, entered.0));
        }
    }
}

fn uneven(id: u64) -> f64 {
    0.6 + ((id * id * 7 + id * 11) % 19) as f64 / 20.0
}

/// Three nodes that ask at almost the same time.
pub(crate) fn three() -> Trace {
    let requests = vec![(0.0, 0), (0.4, 2), (1.1, 1)];
    let world = world::<RicartAgrawala>(3, |_| {});
    timed("ricart-agrawala", world, requests, 1.2, 1e9, uneven)
}

/// Thirteen nodes, two of which ask.
pub(crate) fn thirteen() -> Trace {
    let requests = vec![(0.0, 3), (0.5, 9)];
    let world = world::<RicartAgrawala>(13, |_| {});
    timed("ricart-agrawala", world, requests, 1.0, 1e9, uneven)
}

/// A ring on which the token circulates; visits are long, so that pauses are cut.
pub(crate) fn ring() -> Trace {
    let requests = vec![(1.5, 3), (3.2, 1), (40.0, 4)];
    timed("le-lann", world::<LeLann>(5, |_| {}), requests, 9.0, 46.0, |_| 1.0)
}

/// A reply is lost, and its receiver waits forever.
pub(crate) fn loss() -> Trace {
    let mut lost = false;
    let world = world::<RicartAgrawala>(3, |limits| limits.losses = 1);
    let pick = |now: usize, choices: &[Choice]| {
        let drop = choices.iter().find(|choice| matches!(choice, Choice::Drop(_)));
        if now == 4 && !lost {
            lost = true;
            return drop.copied();
        }
        let kept = |choice: &&Choice| !matches!(choice, Choice::Drop(_));
        choices.iter().rfind(kept).copied()
    };
    stepwise("ricart-agrawala, one message lost", world, pick)
}

/// A duplicated token lets two nodes in.
pub(crate) fn doubled() -> Trace {
    let world = world::<LeLann>(3, |limits| {
        limits.duplicates = 1;
        limits.acquires[1].0 = 2;
    });
    let position = |from, to| ChannelPosition { from: NodeId(from), to: NodeId(to), index: 0 };
    let story = [
        Choice::Acquire(NodeId(1), Mode::Exclusive),
        Choice::Duplicate(position(0, 1)),
        Choice::Acquire(NodeId(2), Mode::Exclusive),
        Choice::Release(NodeId(1)),
        Choice::Deliver(position(1, 2)),
        Choice::Acquire(NodeId(1), Mode::Exclusive),
        Choice::Deliver(position(0, 1)),
    ];
    stepwise("le-lann, the token doubled", world, |now, choices| {
        story.get(now).copied().filter(|choice| choices.contains(choice))
    })
}

/// A node crashes while inside, and the others learn of it.
pub(crate) fn crash() -> Trace {
    let world = world::<RicartAgrawala>(3, |limits| {
        limits.crashes = 1;
        limits.detection = true;
    });
    let pick = |now: usize, choices: &[Choice]| {
        let crash = Choice::Crash(NodeId(0));
        if now == 7 && choices.contains(&crash) {
            return Some(crash);
        }
        choices
            .iter()
            .find(|choice| !matches!(choice, Choice::Crash(_) | Choice::Release(_)))
            .copied()
    };
    stepwise("ricart-agrawala, a node crashes", world, pick)
}

/// A trace written by hand, of things that the algorithms above do not do: node 1 begins inside,
/// node 2 holds two permits and waits for a third, node 3 reads and then forgets, and the texts
/// contain special characters.
pub(crate) fn odd() -> Trace {
    let mut trace = Trace::new("<odd> & \"hostile\"; #1 %%", 4);
    let node = NodeId;
    let send =
        |id, to, message: &str| EventKind::Send { id, to: node(to), message: message.into() };
    let events = [
        (0.0, 1, EventKind::Acquire(Mode::Exclusive)),
        (0.0, 1, EventKind::Enter),
        (1.0, 2, EventKind::Acquire(Mode::Shared)),
        (1.0, 2, send(0, 0, "Ask<u8>; #end\n")),
        (2.0, 1, EventKind::Acquire(Mode::Exclusive)),
        (3.0, 1, EventKind::Enter),
        (4.0, 0, EventKind::Receive { id: 0 }),
        (4.0, 0, EventKind::Release),
        (4.0, 0, send(1, 2, "Privilege { queue: [2, 3, 4], granted: [1, 2, 3, 4] }")),
        (4.0, 0, send(2, 77, "Stray")),
        (5.0, 2, EventKind::Receive { id: 1 }),
        (5.0, 2, EventKind::Enter),
        (6.0, 1, EventKind::Acquire(Mode::Exclusive)),
        (6.0, 3, EventKind::Receive { id: 99 }),
        (7.0, 2, EventKind::Release),
        (8.0, 2, EventKind::Forget),
        (9.0, 3, EventKind::Violate(Violation::Rejected { node: node(3), reason: "<nonsense>" })),
        (9.0, 3, EventKind::Crash),
    ];
    for (at, who, what) in events {
        trace.push(at, node(who), what);
    }
    trace
}
