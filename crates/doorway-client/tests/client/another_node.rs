//! What a machine does when the address of its node leads to another node.

use std::time::Duration;

use doorway_client::machine::{Event, SessionMachine, Setup, UNLIMITED};
use doorway_client::{Code, Fence, Moment, Refusal, Wait};
use doorway_protocol::{
    DirectoryId, Greeting, NodeIdentity, Opening, Reply, Request, Scope, Secret, SessionId,
    Welcome, put,
};

use super::messages::{CONNECTION, ask, at, hello, reply, setup};

fn one() -> NodeIdentity {
    NodeIdentity { name: "one".to_owned(), directory: DirectoryId([3; 16]) }
}

fn greet(machine: &mut SessionMachine, now: Moment, greeting: &Greeting) {
    let mut bytes = vec![];
    put(greeting, &mut bytes);
    machine.receive(now, &bytes);
}

/// The node welcomes the machine to a session with a TTL, or without one.
fn welcome(machine: &mut SessionMachine, now: Moment, version: u16, ttl: Duration) {
    let welcome = Welcome {
        version,
        node: "one".to_owned(),
        scope: Scope::Cluster,
        session: Some((SessionId(7), Secret([1; 16]))),
        ttl_ms: ttl.as_millis() as u32,
        lost: vec![],
        directory: Some(one().directory),
    };
    greet(machine, now, &Ok(welcome));
    assert!(matches!(machine.event(), Some(Event::Welcome { .. })));
}

/// A machine that has asked for the lock `a` in a session with this TTL, and the number of the
/// request.
fn asking(ttl: Duration, version: u16) -> (SessionMachine, u64) {
    let network = ttl != UNLIMITED;
    let setup = Setup { session: Some((ttl, CONNECTION)), ..setup(CONNECTION, network) };
    let mut machine = SessionMachine::new(setup, at(0));
    machine.connected(at(0));
    let number = machine.acquire(at(0), ask("a", Wait::Forever));
    hello(&mut machine);
    welcome(&mut machine, at(1), version, ttl);
    (machine, number)
}

/// A machine that holds the lock `a`.
fn holding(ttl: Duration, version: u16) -> SessionMachine {
    let (mut machine, number) = asking(ttl, version);
    reply(&mut machine, at(2), &Reply::Granted(number, Fence::new(1, 5)));
    assert!(matches!(machine.event(), Some(Event::Granted { .. })));
    machine
}

/// The machine connects again, and another node answers. Returns what the machine wanted.
fn astray(machine: &mut SessionMachine, ms: u64) -> Opening {
    machine.connected(at(ms));
    let (opening, ..) = hello(machine);
    let text = "the session is one of node one, and this is node two".to_owned();
    greet(machine, at(ms + 1), &Err(Refusal { code: Code::Elsewhere, text }));
    assert!(machine.must_close());
    machine.disconnected(at(ms + 2));
    opening
}

const TEN: Duration = Duration::from_secs(10);

#[test]
fn a_session_is_resumed_with_the_node_that_gave_it() {
    for (version, named) in [(1, None), (2, None), (3, Some(one()))] {
        let mut machine = holding(TEN, version);
        machine.disconnected(at(100));
        machine.connected(at(200));
        let Opening::Resume { node, held, .. } = hello(&mut machine).0 else { panic!("new") };
        assert_eq!((node, held.len()), (named, 1), "version {version}");
    }
}

#[test]
fn what_another_node_does_not_know_is_held_until_the_session_expires() {
    let mut machine = holding(TEN, 3);
    machine.disconnected(at(100));
    for ms in [200, 3000, 9400] {
        assert!(matches!(astray(&mut machine, ms), Opening::Resume { .. }));
        assert_eq!(machine.event(), None, "its own node may still hold the lock for it");
        assert!(machine.is_bound() && machine.is_turned_away());
    }
    assert_eq!(machine.next_due(), at(9500));
    machine.tick(at(9499));
    assert_eq!(machine.event(), None);
    machine.tick(at(9500));
    assert!(matches!(machine.event(), Some(Event::Lost { .. })));
    machine.connected(at(9600));
    assert!(matches!(hello(&mut machine).0, Opening::New { .. }), "and the other node serves it");
}

#[test]
fn a_client_that_finds_its_own_node_again_goes_on() {
    let mut machine = holding(TEN, 3);
    machine.disconnected(at(100));
    astray(&mut machine, 200);
    machine.connected(at(5000));
    assert!(matches!(hello(&mut machine).0, Opening::Resume { .. }));
    welcome(&mut machine, at(5001), 3, TEN);
    machine.tick(at(14_499));
    assert_eq!(machine.event(), None, "the welcome counts from when the hello was sent");
    machine.tick(at(14_500));
    assert!(matches!(machine.event(), Some(Event::Lost { .. })));
}

#[test]
fn requests_that_wait_are_sent_to_the_other_node_at_once() {
    let (mut machine, number) = asking(TEN, 3);
    machine.disconnected(at(100));
    astray(&mut machine, 200);
    assert_eq!(machine.event(), None, "nothing was held");
    machine.connected(at(210));
    let (opening, _, sent) = hello(&mut machine);
    assert!(matches!(opening, Opening::New { .. }), "{opening:?}");
    assert_eq!(sent, [Request::Acquire(number, ask("a", Wait::Forever))]);
}

/// Nothing would ever end such a session at the client.
#[test]
fn what_is_held_without_a_ttl_is_lost_when_another_node_answers() {
    let mut machine = holding(UNLIMITED, 3);
    machine.disconnected(at(100));
    astray(&mut machine, 200);
    assert!(matches!(machine.event(), Some(Event::Lost { .. })));
    assert_eq!(machine.event(), None);
}
