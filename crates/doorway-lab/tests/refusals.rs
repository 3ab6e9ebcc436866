//! What no correct peer sends is refused, and changes nothing.

use std::fmt::Debug;

use doorway_core::algorithms::carvalho_roucairol::{self, CarvalhoRoucairol};
use doorway_core::algorithms::central::{self, Central};
use doorway_core::algorithms::lamport::{self, Lamport};
use doorway_core::algorithms::le_lann::{self, LeLann};
use doorway_core::algorithms::majority::{self, Majority, WeightedMajority};
use doorway_core::algorithms::naimi_trehel::{self, NaimiTrehel};
use doorway_core::algorithms::raymond_k::{self, RaymondK};
use doorway_core::algorithms::readers_writers::{self, ReadersWriters};
use doorway_core::algorithms::ricart_agrawala::{self, RicartAgrawala};
use doorway_core::algorithms::ricart_agrawala_token::{self, RicartAgrawalaToken};
use doorway_core::algorithms::suzuki_kasami::{self, SuzukiKasami, Token};
use doorway_core::{
    Algorithm, CLOCK_LIMIT, Effects, Group, Input, Member, Mode, NodeId, Phase, Shape, Start,
    Wiring,
};

/// A node of a group of three.
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
        let group = A::INFO.group(3, shape).expect("a group of three exists");
        let member = Member::new(NodeId(me), &group, &Start::default());
        Self { group, member }
    }

    /// Node `me`, which has just asked.
    fn waiting(me: u32) -> Self {
        let mut node = Self::outside(me);
        node.step(Input::Acquire(Mode::Exclusive));
        node
    }

    fn step(&mut self, input: Input<A::Message>) -> Option<&'static str> {
        let mut out = Effects::default();
        self.member.step(&self.group, input, &mut out).expect("the contract is kept");
        out.rejected()
    }

    /// Hears a message that a correct peer may send.
    #[track_caller]
    fn hears(mut self, from: u32, message: A::Message) -> Self {
        assert_eq!(self.step(Input::Receive { from: NodeId(from), message }), None);
        self
    }

    /// Refuses a message and is as before.
    #[track_caller]
    fn refuses(mut self, from: u32, message: A::Message) -> Self
    where
        A: Debug,
    {
        let before = self.member.clone();
        let reason = self.step(Input::Receive { from: NodeId(from), message });
        assert!(reason.is_some(), "refused");
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

/// Else every later request would carry the same number, and two would get in.
#[test]
fn a_number_after_which_none_is_higher() {
    let last = CLOCK_LIMIT - 1;
    for beyond in [CLOCK_LIMIT, u64::MAX] {
        use lamport::Message::{Ack, Release};
        let asked = || Node::<Lamport>::outside(1).hears(0, lamport::Message::Request(1));
        asked().refuses(2, lamport::Message::Request(beyond)).refuses(2, Ack(beyond));
        asked().refuses(0, Release(beyond)).hears(0, Release(last));
        let node = Node::<RicartAgrawala>::outside(1);
        node.refuses(0, ricart_agrawala::Message::Request(beyond));
        let node = Node::<CarvalhoRoucairol>::outside(1);
        node.refuses(0, carvalho_roucairol::Message::Request(beyond));
        let node = Node::<ReadersWriters>::outside(1);
        node.refuses(0, readers_writers::Message::Request(beyond, Mode::Shared));
        Node::<RaymondK>::outside(1).refuses(0, raymond_k::Message::Request(beyond));
        Node::<Majority>::outside(1).refuses(0, majority::Message::Request(beyond));
        Node::<Majority>::waiting(1).refuses(0, majority::Message::Yes(1, beyond));
    }
    // The last number there is leaves room for the next, and is not forgotten.
    let mut node = Node::<Lamport>::outside(1).hears(0, lamport::Message::Request(last));
    assert_eq!(node.member.floor(), None);
    assert_eq!(node.step(Input::Acquire(Mode::Exclusive)), None);
}

#[test]
fn a_message_of_oneself_or_of_a_stranger() {
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
    use majority::Message::{Request, Yes};
    let shape = Shape { weights: Some(vec![1, 0, 1]), ..Shape::default() };
    Node::<WeightedMajority>::wired(1, &shape).refuses(0, Request(1));
    Node::<Majority>::waiting(1).refuses(0, Yes(2, 2)).hears(0, Yes(1, 1));
    // One node cannot fill a voter's memory: of its requests the last one waits.
    let often = (2..100).fold(Node::<Majority>::waiting(1), |voter, clock| {
        voter.hears(0, Request(clock)).hears(2, majority::Message::Release(clock))
    });
    assert_eq!(often.member, Node::<Majority>::waiting(1).hears(0, Request(99)).member);
}

#[test]
fn permissions() {
    use carvalho_roucairol::Message::{Reply, Request};
    Node::<CarvalhoRoucairol>::outside(1).refuses(0, Reply);
    Node::<CarvalhoRoucairol>::waiting(1).hears(0, Reply).refuses(0, Reply);
    Node::<CarvalhoRoucairol>::waiting(1).hears(2, Request(1)).refuses(2, Request(1));
    let shared = readers_writers::Message::Request(1, Mode::Shared);
    Node::<ReadersWriters>::outside(1).refuses(0, readers_writers::Message::Reply);
    Node::<ReadersWriters>::waiting(1).hears(2, shared.clone()).refuses(2, shared);
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

    // On a ring a token may come by on its way to another.
    let ring = Shape { wiring: Some(Wiring::Ring), ..Shape::default() };
    let outside = Node::<SuzukiKasami>::wired(1, &ring);
    let outside = outside.refuses(0, token(&[], 3)).refuses(0, token(&[1], 3));
    outside.refuses(2, token(&[0], 3)).refuses(2, Request(NodeId(2), 1)).hears(0, token(&[2], 3));

    let tree = Shape { wiring: Some(Wiring::Tree), ..Shape::default() };
    Node::<SuzukiKasami>::wired(1, &tree).refuses(2, Request(NodeId(2), 1));
}
