//! A message that no correct peer sends is rejected, and changes nothing.

use std::fmt::Debug;

use doorway_core::algorithms::carvalho_roucairol::{self, CarvalhoRoucairol};
use doorway_core::algorithms::central::{self, Central};
use doorway_core::algorithms::lamport::{self, Lamport};
use doorway_core::algorithms::le_lann::{self, LeLann};
use doorway_core::algorithms::maekawa::{self, Maekawa};
use doorway_core::algorithms::maekawa_cyclic::{self, MaekawaCyclic};
use doorway_core::algorithms::maekawa_unordered::MaekawaUnordered;
use doorway_core::algorithms::majority::{self, Majority, WeightedMajority};
use doorway_core::algorithms::naimi_trehel::{self, NaimiTrehel};
use doorway_core::algorithms::raymond_echo::{self, RaymondEcho};
use doorway_core::algorithms::raymond_k::{self, RaymondK};
use doorway_core::algorithms::raymond_tree::{self, RaymondTree};
use doorway_core::algorithms::readers_writers::{self, ReadersWriters};
use doorway_core::algorithms::ricart_agrawala::{self, RicartAgrawala};
use doorway_core::algorithms::ricart_agrawala_ring::{self, RicartAgrawalaRing};
use doorway_core::algorithms::ricart_agrawala_token::{self, RicartAgrawalaToken};
use doorway_core::algorithms::suzuki_kasami::{self, SuzukiKasami, Token};
use doorway_core::quorums::Kind;
use doorway_core::tree::TreeShape;
use doorway_core::{
    Algorithm, CLOCK_LIMIT, Effects, Group, Input, Member, Mode, NodeId, Phase, Shape, Start,
    Wiring,
};

/// A node of a group, which has three nodes unless said otherwise.
struct Node<A: Algorithm> {
    group: Group,
    member: Member<A>,
}

impl<A: Algorithm> Node<A> {
    /// Node `me`, outside.
    fn outside(me: u32) -> Self {
        Self::wired(me, &Shape::default())
    }

    fn wired(me: u32, shape: &Shape) -> Self {
        Self::among(3, me, shape)
    }

    fn among(size: usize, me: u32, shape: &Shape) -> Self {
        let group = A::INFO.group(size, shape).expect("a group of this size exists");
        let start = Start::default();
        let member = Member::begin(NodeId(me), &group, &start, &mut Effects::default());
        Self { group, member: member.expect("the contract is kept") }
    }

    /// Node `me`, which has just asked.
    fn waiting(me: u32) -> Self {
        Self::outside(me).asks()
    }

    fn asks(mut self) -> Self {
        self.step(Input::Acquire(Mode::Exclusive));
        self
    }

    fn step(&mut self, input: Input<A::Message>) -> Effects<A::Message> {
        let mut out = Effects::default();
        self.member.step(&self.group, input, &mut out).expect("the contract is kept");
        out
    }

    /// Receives a message that a correct peer may send.
    #[track_caller]
    fn hears(mut self, from: u32, message: A::Message) -> Self {
        assert_eq!(self.step(Input::Receive { from: NodeId(from), message }).rejected(), None);
        self
    }

    /// Receives a message that a correct peer may send, and sends nothing for now.
    #[track_caller]
    fn defers(mut self, from: u32, message: A::Message) -> Self {
        let out = self.step(Input::Receive { from: NodeId(from), message });
        assert!(out.rejected().is_none() && out.sends().is_empty(), "{:?}", out.sends());
        self
    }

    /// Rejects a message, and its state does not change.
    #[track_caller]
    fn refuses(mut self, from: u32, message: A::Message) -> Self
    where
        A: Debug,
    {
        let before = self.member.clone();
        let out = self.step(Input::Receive { from: NodeId(from), message });
        assert!(out.rejected().is_some(), "refused");
        assert_eq!(self.member, before);
        self
    }
}

#[test]
fn central() {
    use central::Message::{Grant, Release, Request};
    Node::<Central>::outside(1).refuses(0, Request).refuses(0, Grant).refuses(0, Release);
    Node::<Central>::waiting(1).refuses(2, Grant);
    Node::<Central>::outside(0).refuses(1, Grant).refuses(1, Release);
    Node::<Central>::waiting(0).hears(1, Request).refuses(1, Request).refuses(1, Release);
}

#[test]
fn lamport() {
    use lamport::Message::{Ack, Release, Request};
    Node::<Lamport>::outside(1).refuses(0, Release(1));
    Node::<Lamport>::outside(1).hears(0, Request(1)).refuses(0, Request(2));
    let inside = Node::<Lamport>::waiting(1).hears(0, Ack(2)).hears(2, Ack(2));
    assert_eq!(inside.member.phase(), Phase::Inside);
    inside.refuses(0, Request(0));
}

/// Otherwise every later request would carry the same number, and two nodes would get in.
#[test]
fn the_highest_number_is_rejected() {
    let last = CLOCK_LIMIT - 1;
    for beyond in [CLOCK_LIMIT, u64::MAX] {
        use lamport::Message::{Ack, Release};
        let asked = || Node::<Lamport>::outside(1).hears(0, lamport::Message::Request(1));
        asked().refuses(2, lamport::Message::Request(beyond)).refuses(2, Ack(beyond));
        asked().refuses(0, Release(beyond)).hears(0, Release(last));
        let node = Node::<RicartAgrawala>::outside(1);
        node.refuses(0, ricart_agrawala::Message::Request(beyond));
        let ring = ricart_agrawala_ring::Message::Request(NodeId(0), beyond);
        Node::<RicartAgrawalaRing>::outside(1).refuses(0, ring);
        let node = Node::<CarvalhoRoucairol>::outside(1);
        node.refuses(0, carvalho_roucairol::Message::Request(beyond));
        let node = Node::<ReadersWriters>::outside(1);
        node.refuses(0, readers_writers::Message::Request(beyond, Mode::Shared));
        Node::<RaymondK>::outside(1).refuses(0, raymond_k::Message::Request(beyond));
        Node::<Majority>::outside(1).refuses(0, majority::Message::Request(beyond));
        Node::<Majority>::waiting(1).refuses(0, majority::Message::Yes(1, beyond));
    }
    // The highest allowed number leaves room for the next one. A node that has it is not forgotten.
    let mut node = Node::<Lamport>::outside(1).hears(0, lamport::Message::Request(last));
    assert_eq!(node.member.floor(), None);
    assert_eq!(node.step(Input::Acquire(Mode::Exclusive)).rejected(), None);
}

#[test]
fn a_message_of_the_node_itself_or_of_a_stranger_is_rejected() {
    for from in [1, 3, u32::MAX] {
        Node::<Central>::outside(1).refuses(from, central::Message::Grant);
        let node = Node::<RicartAgrawala>::outside(1);
        node.refuses(from, ricart_agrawala::Message::Request(1));
        Node::<RicartAgrawalaToken>::outside(1)
            .refuses(from, ricart_agrawala_token::Message::Request(1));
    }
}

#[test]
fn le_lann() {
    Node::<LeLann>::waiting(1)
        .refuses(2, le_lann::Message::Token)
        .hears(0, le_lann::Message::Token);
}

#[test]
fn majority() {
    use majority::Message::{Inquire, Request, Yes};
    let shape = Shape { weights: Some(vec![1, 0, 1]), ..Shape::default() };
    Node::<WeightedMajority>::wired(1, &shape).refuses(0, Request(1));
    Node::<Majority>::waiting(1).refuses(0, Yes(2, 2)).hears(0, Yes(1, 1));
    Node::<Majority>::waiting(1).refuses(0, Inquire(2)).hears(0, Inquire(1));
    // A vote that was not called back is not returned.
    let lent = || Node::<Majority>::outside(1).hears(0, Request(1));
    assert_eq!(lent().defers(0, majority::Message::Relinquish(1)).member, lent().member);
    // One node cannot fill a voter's memory: only the last of its requests waits.
    let often = (2..100).fold(Node::<Majority>::waiting(1), |voter, clock| {
        voter.hears(0, Request(clock)).hears(2, majority::Message::Release(clock))
    });
    assert_eq!(often.member, Node::<Majority>::waiting(1).hears(0, Request(99)).member);
}

#[test]
fn raymond_k() {
    use raymond_k::Message::{Reply, Request};
    Node::<RaymondK>::outside(1).refuses(0, Reply { seq: 1, seats: 1 });
    let waiting = || Node::<RaymondK>::waiting(1).refuses(0, Reply { seq: 1, seats: 2 });
    let one = Reply { seq: 1, seats: 1 };
    waiting().hears(0, one.clone()).refuses(0, one);
    waiting().hears(2, Request(1)).refuses(2, Request(1));
    // An older request of the same node arrives late. It was satisfied long ago.
    let newer = waiting().hears(2, Request(3));
    let before = newer.member.clone();
    assert_eq!(newer.defers(2, Request(2)).member, before);
}

#[test]
fn raymond_tree() {
    use raymond_tree::Message::{Privilege, Request};
    let chain = Shape { tree: Some(TreeShape::Chain), ..Shape::default() };
    let middle = || Node::<RaymondTree>::wired(1, &chain);
    middle().refuses(0, Privilege).hears(2, Request).refuses(2, Request);
    middle().asks().refuses(2, Privilege).hears(0, Privilege).refuses(0, Privilege);
    Node::<RaymondTree>::wired(0, &chain).refuses(2, Request);
}

#[test]
fn raymond_echo() {
    use raymond_echo::Message::{Echo, Explore, Go, Privilege, Request, Wake};
    let wave = |node| Explore(NodeId(node));
    // The wave of node 1 arrives from node 1, and from node 3 after it has been there.
    let fresh = Node::<RaymondEcho>::outside(1).refuses(0, Echo(NodeId(0))).refuses(0, wave(3));
    let fresh = fresh.refuses(0, Go).refuses(0, Request).refuses(0, Privilege).refuses(0, Wake);
    Node::<RaymondEcho>::outside(0).hears(1, Wake).hears(2, Wake);
    let reached = fresh.hears(0, wave(0)).refuses(0, wave(0)).refuses(0, Go);
    let done = reached.hears(2, wave(0)).refuses(2, wave(0)).refuses(2, Go).refuses(0, Request);
    done.hears(0, Go).refuses(0, Go).refuses(2, Request).hears(0, Request);
    // A better wave that arrives after the tree is complete is rejected.
    let second = Node::<RaymondEcho>::outside(1).hears(2, wave(2)).hears(0, wave(2));
    second.hears(2, Go).refuses(0, wave(0));
}

#[test]
fn permissions() {
    use carvalho_roucairol::Message::{Reply, Request};
    Node::<CarvalhoRoucairol>::outside(1).refuses(0, Reply);
    Node::<CarvalhoRoucairol>::waiting(1).hears(0, Reply).refuses(0, Reply);
    Node::<CarvalhoRoucairol>::waiting(1).hears(2, Request(1)).refuses(2, Request(1));
    // No node gets in together with us by a number that is too low.
    let inside = Node::<CarvalhoRoucairol>::waiting(1).hears(0, Reply).hears(2, Reply);
    inside.defers(0, Request(0));
    let (ask, agree) = (ricart_agrawala::Message::Request(0), ricart_agrawala::Message::Reply);
    let inside = Node::<RicartAgrawala>::waiting(1).hears(0, agree.clone()).hears(2, agree);
    inside.defers(0, ask);
    let shared = readers_writers::Message::Request(1, Mode::Shared);
    Node::<ReadersWriters>::outside(1).refuses(0, readers_writers::Message::Reply);
    Node::<ReadersWriters>::waiting(1).hears(2, shared.clone()).refuses(2, shared);
}

/// A request comes from the predecessor, and once.
#[test]
fn ricart_agrawala_ring() {
    let request = |node, clock| ricart_agrawala_ring::Message::Request(NodeId(node), clock);
    let outside = || Node::<RicartAgrawalaRing>::outside(1);
    outside().refuses(2, request(2, 1)).refuses(0, request(3, 1)).refuses(0, request(1, 1));
    let waiting = || Node::<RicartAgrawalaRing>::waiting(1);
    waiting().defers(0, request(2, 1)).refuses(0, request(2, 1)).refuses(0, request(2, 2));
    let inside = waiting().refuses(0, request(1, 2)).hears(0, request(1, 1));
    assert_eq!(inside.member.phase(), Phase::Inside);
    // No node gets in together with us by a number that is too low.
    inside.refuses(0, request(1, 1)).defers(0, request(0, 0));
    // A request that was given up ends when it comes home, and does not count for the next one.
    let mut again = waiting();
    again.step(Input::Withdraw);
    let again = again.refuses(0, request(1, 2)).asks().hears(0, request(1, 1));
    assert_eq!(again.member.phase(), Phase::Waiting);
    again.refuses(0, request(1, 1)).hears(0, request(1, 2));
}

#[test]
fn ricart_agrawala_token() {
    use ricart_agrawala_token::Message::Token;
    Node::<RicartAgrawalaToken>::outside(0).refuses(1, Token(vec![0; 3]));
    Node::<RicartAgrawalaToken>::outside(1).refuses(0, Token(vec![0; 3]));
    let waiting = Node::<RicartAgrawalaToken>::waiting(1);
    waiting.refuses(0, Token(vec![0; 2])).refuses(0, Token(vec![0; 4])).hears(0, Token(vec![0; 3]));
}

#[test]
fn maekawa() {
    use maekawa::Message::{Failed, Inquire, Locked, Release, Relinquish, Request};
    // Node 2 asks itself and node 3, and is asked by node 1.
    let pairs = Shape { quorums: Some(Kind::Majority.into()), ..Shape::default() };
    let outside = || Node::<Maekawa>::wired(1, &pairs);
    outside().refuses(0, Relinquish).refuses(0, Release);
    outside().hears(0, Request(1)).refuses(0, Request(1)).refuses(0, Request(2));
    let waiting = || outside().asks().refuses(0, Relinquish).refuses(0, Release);
    waiting().hears(2, Locked(1)).refuses(2, Locked(1)).refuses(2, Failed).defers(2, Inquire(1));
    // A message about a lock that we do not have, as if it had overtaken LOCKED.
    let before = waiting().member;
    assert_eq!(waiting().defers(2, Inquire(1)).member, before);
    // On unordered channels the next request may overtake the release, but the same request may not
    // arrive again.
    let unordered = Node::<MaekawaUnordered>::wired(1, &pairs).hears(0, Request(1));
    unordered.refuses(0, Request(1)).hears(0, Request(2)).refuses(0, Request(3));
}

#[test]
fn maekawa_cyclic() {
    use maekawa_cyclic::Message;
    // Node 3 asks 1, 3 and 5, then 2, 3 and 5. Node 1 asks 1, 2 and 4, then 1, 3 and 5.
    let turns = Shape { quorums: Some(Kind::Triangle.into()), ..Shape::default() };
    let request = |node, turn| Message::Request(maekawa_cyclic::Visit { node: NodeId(node), turn });
    let node = |me| Node::<MaekawaCyclic>::among(5, me, &turns);
    // A request waits at a member once, even if it claims another turn.
    let locked = node(4).hears(2, request(0, 1));
    locked.defers(2, request(2, 0)).refuses(1, request(2, 1)).refuses(2, request(2, 0));
    // A node's own request comes by while the node waits, in its turn, and once.
    node(2).refuses(0, request(2, 0)).asks().refuses(0, request(2, 1));
    node(2).asks().hears(0, request(2, 0)).refuses(0, request(2, 0));
    // A lock comes from the last member, to a node that waits.
    node(2).refuses(4, Message::Locked).asks().refuses(0, Message::Locked);
}

#[test]
fn naimi_trehel() {
    use naimi_trehel::Message;
    Node::<NaimiTrehel>::outside(1).refuses(0, Message::Token);
    Node::<NaimiTrehel>::outside(1).refuses(0, Message::Request(NodeId(1)));
    Node::<NaimiTrehel>::outside(1).refuses(0, Message::Request(NodeId(3)));
    Node::<NaimiTrehel>::outside(1).refuses(0, Message::Request(NodeId(0)));
}

#[test]
fn suzuki_kasami() {
    use suzuki_kasami::Message::{Privilege, Request};
    let token = |queue: &[u32], served| {
        let queue = queue.iter().map(|node| NodeId(*node)).collect();
        Privilege(Token { queue, served: vec![0; served] })
    };
    let outside = Node::<SuzukiKasami>::outside(1);
    outside.refuses(0, Request(NodeId(1), 1)).refuses(0, Request(NodeId(3), 1));
    Node::<SuzukiKasami>::outside(0).refuses(1, token(&[0], 3));
    Node::<SuzukiKasami>::outside(1).refuses(0, token(&[1], 3)).refuses(0, token(&[2], 3));
    let waiting = Node::<SuzukiKasami>::waiting(1);
    let waiting = waiting.refuses(0, token(&[1], 2)).refuses(0, token(&[1, 3], 3));
    waiting.refuses(0, token(&[1, 2, 2, 2], 3)).hears(0, token(&[1, 2], 3));
    Node::<SuzukiKasami>::outside(1).refuses(0, Request(NodeId(2), 1));

    // On a ring a token may come by on its way to another node.
    let ring = Shape { wiring: Some(Wiring::Ring), ..Shape::default() };
    let outside = Node::<SuzukiKasami>::wired(1, &ring);
    let outside = outside.refuses(0, token(&[], 3)).refuses(0, token(&[1], 3));
    // A request that has come round the ring, and one of a stranger.
    let outside = outside.refuses(0, Request(NodeId(1), 1)).refuses(0, Request(NodeId(3), 1));
    outside.refuses(2, token(&[0], 3)).refuses(2, Request(NodeId(2), 1)).hears(0, token(&[2], 3));

    let tree = Shape { wiring: Some(Wiring::Tree), ..Shape::default() };
    Node::<SuzukiKasami>::wired(1, &tree).refuses(2, Request(NodeId(2), 1));
}
