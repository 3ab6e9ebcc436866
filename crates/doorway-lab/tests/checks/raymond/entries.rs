//! Raymond's algorithm for K entries at once.

use doorway_core::algorithms::raymond_k::{Message, RaymondK};
use doorway_core::algorithms::ricart_agrawala::{self, RicartAgrawala};
use doorway_core::{Algorithm, Channel, Effects, Group, Holder, Info, Mode, NodeId, Shape, Start};
use doorway_lab::Choice;

use super::{acquire, apply, settle, world, worlds};

fn permits(permits: u32, seats: u32) -> Shape {
    Shape { permits: Some(permits), seats: Some(seats), ..Shape::default() }
}

fn holders(permits: &[u32]) -> Start {
    let holder = |(node, permits): (usize, &u32)| Holder {
        node: NodeId::at(node),
        mode: Mode::Exclusive,
        permits: *permits,
    };
    let inside = permits.iter().enumerate().filter(|(_, permits)| **permits > 0);
    Start { holders: inside.map(holder).collect(), floor: 5 }
}

fn count(k: u32, seats: u32, start: &Start, channel: Channel, acquires: &[u32]) -> u64 {
    worlds::<RaymondK>(&permits(k, seats), start, channel, acquires)
}

#[test]
fn k_entries_with_one_seat_hold() {
    let count = |k, channel, acquires: &[u32]| count(k, 1, &Start::default(), channel, acquires);
    assert_eq!(count(2, Channel::Fifo, &[1, 1, 1]), 7_223);
    assert_eq!(count(2, Channel::Unordered, &[1, 1, 1]), 11_434);
    assert_eq!(count(3, Channel::Fifo, &[1, 1, 1]), 14_606);
    assert_eq!(count(3, Channel::Unordered, &[1, 1, 1]), 28_765);
    assert_eq!(count(2, Channel::Fifo, &[2, 1, 1]), 41_714);
}

/// Several permits per node, and more permits than nodes.
#[test]
fn k_entries_with_several_seats_hold() {
    let count = |k, channel, acquires: &[u32]| count(k, 2, &Start::default(), channel, acquires);
    assert_eq!(count(2, Channel::Unordered, &[2, 2]), 1_444);
    assert_eq!(count(3, Channel::Unordered, &[2, 2]), 20_342);
    assert_eq!(count(4, Channel::Unordered, &[2, 2]), 19_057);
    assert_eq!(count(3, Channel::Fifo, &[3, 2]), 19_712);
    assert_eq!(count(2, Channel::Unordered, &[1, 1, 1]), 12_311);
    assert_eq!(count(3, Channel::Fifo, &[1, 1, 1]), 25_199);
    assert_eq!(count(4, Channel::Fifo, &[1, 1, 1]), 42_043);
}

#[test]
fn k_entries_may_begin_with_several_holders_of_several_permits() {
    let count = |k, held: &[u32], acquires: &[u32]| {
        count(k, 2, &holders(held), Channel::Unordered, acquires)
    };
    assert_eq!(count(3, &[2, 1], &[2, 2]), 34_343);
    assert_eq!(count(3, &[1, 2], &[2, 1]), 2_916);
    assert_eq!(count(4, &[2, 2], &[1, 1]), 368);
    assert_eq!(count(4, &[0, 2, 2], &[1, 1, 0]), 6_034);
    assert_eq!(count(4, &[2, 1, 1], &[1, 1, 0]), 8_452);
}

/// The example of section 3: X stays inside while Y enters m times, at three messages each, and one
/// reply of X answers all requests of Y.
#[test]
fn k_entries_save_messages_while_a_node_stays_inside() {
    let [x, y] = [NodeId(0), NodeId(1)];
    for m in 0..10 {
        let mut world = world::<RaymondK>(
            &permits(2, 1),
            &Start::default(),
            Channel::Unordered,
            &[1, u32::try_from(m).unwrap(), 0],
        );
        let mut sent = apply(&mut world, acquire(x)) + settle(&mut world);
        for _ in 0..m {
            sent += apply(&mut world, acquire(y)) + settle(&mut world);
            sent += apply(&mut world, Choice::Release(y)) + settle(&mut world);
        }
        sent += apply(&mut world, Choice::Release(x)) + settle(&mut world);
        assert_eq!(sent, if m == 0 { 4 } else { 3 * m + 5 });
    }
}

/// Two algorithms side by side, which must behave the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct AlgorithmPair(RicartAgrawala, RaymondK);

type Pair = (ricart_agrawala::Message, Message);

impl AlgorithmPair {
    fn compare(
        out: &mut Effects<Pair>,
        one: &Effects<ricart_agrawala::Message>,
        other: &Effects<Message>,
    ) {
        let to = |sends: &[(NodeId, _)]| sends.iter().map(|(to, _)| *to).collect::<Vec<_>>();
        let others: Vec<_> = other.sends().iter().map(|(to, _)| *to).collect();
        if to(one.sends()) != others || one.entered() != other.entered() {
            return out.reject("the two differ");
        }
        for ((to, left), (_, right)) in one.sends().iter().zip(other.sends()) {
            out.send(*to, (left.clone(), right.clone()));
        }
        if one.entered() {
            out.enter();
        }
    }
}

impl Algorithm for AlgorithmPair {
    type Message = Pair;

    const INFO: Info = RaymondK::INFO;

    fn new(me: NodeId, group: &Group, start: &Start) -> Self {
        Self(RicartAgrawala::new(me, group, start), RaymondK::new(me, group, start))
    }

    fn acquire(&mut self, group: &Group, mode: Mode, out: &mut Effects<Pair>) {
        let (mut one, mut other) = (Effects::default(), Effects::default());
        self.0.acquire(group, mode, &mut one);
        self.1.acquire(group, mode, &mut other);
        Self::compare(out, &one, &other);
    }

    fn receive(&mut self, group: &Group, from: NodeId, pair: Pair, out: &mut Effects<Pair>) {
        let (mut one, mut other) = (Effects::default(), Effects::default());
        self.0.receive(group, from, pair.0, &mut one);
        self.1.receive(group, from, pair.1, &mut other);
        Self::compare(out, &one, &other);
    }

    fn release(&mut self, group: &Group, out: &mut Effects<Pair>) {
        let (mut one, mut other) = (Effects::default(), Effects::default());
        self.0.release(group, &mut one);
        self.1.release(group, &mut other);
        Self::compare(out, &one, &other);
    }

    fn wanted(&self) -> bool {
        self.0.wanted()
    }

    fn floor(&self) -> Option<u64> {
        self.0.floor().filter(|floor| self.1.floor() == Some(*floor))
    }
}

#[test]
fn with_one_permit_it_behaves_like_ricart_and_agrawala() {
    let quiet = Start::default();
    let count = worlds::<AlgorithmPair>(&permits(1, 1), &quiet, Channel::Unordered, &[2, 2, 1]);
    let alone = worlds::<RicartAgrawala>(&Shape::default(), &quiet, Channel::Unordered, &[2, 2, 1]);
    assert_eq!(count, alone);
}
