//! Limits of clients, and permits.

use doorway_protocol::{Code, Request};

use super::*;

#[test]
fn a_client_of_another_machine_gets_half_of_all_sessions() {
    let mut setup = setup();
    setup.limits.sessions = 4;
    let mut desk = Desk::with(setup);
    desk.open(0, From::Network(1), TTL, CONNECTION);
    desk.open(0, From::Network(1), TTL, CONNECTION);
    let new = || doorway_protocol::Opening::New { ttl_ms: TTL, life: CONNECTION };
    let connection = desk.connect(0, From::Network(1));
    let out = desk.hello(0, connection, From::Network(1), new());
    assert_eq!(refused(&out).map(|refusal| refusal.code), Some(Code::Busy));
    desk.open(0, From::Network(2), TTL, CONNECTION);
    desk.open(0, From::Here, TTL, CONNECTION);
    let connection = desk.connect(0, From::Here);
    let out = desk.hello(0, connection, From::Here, new());
    assert_eq!(refused(&out).map(|refusal| refusal.code), Some(Code::Busy), "all are open");
}

#[test]
fn a_connection_too_many_is_turned_away() {
    let mut setup = setup();
    setup.limits.connections = 4;
    let mut desk = Desk::with(setup);
    let (one, two) = (desk.connect(0, From::Network(1)), desk.connect(0, From::Network(1)));
    let third = |desk: &mut Desk, remote| {
        let out = desk.step(0, Input::Connect { connection: Connection(99), remote });
        refused(&out).map(|refusal| refusal.code)
    };
    assert_eq!(third(&mut desk, true), Some(Code::Busy), "two have not said who they are");
    let identify =
        |connection| Input::Identify { connection, principal: principal(From::Network(1)) };
    desk.step(0, identify(one));
    desk.step(0, identify(two));
    let three = desk.connect(0, From::Network(1));
    assert!(refused(&desk.step(0, identify(three))).is_some(), "that client has half of all");
    desk.connect(0, From::Here);
    assert_eq!(third(&mut desk, false), Some(Code::Busy), "all are open");
    for connection in [one, two, three, Connection(4)] {
        desk.hang_up(0, connection);
    }
    assert!(desk.sessions.is_clean());
}

#[test]
fn requests_beyond_a_limit_are_refused_and_withdrawn() {
    let mut setup = setup();
    (setup.limits.grants, setup.limits.waiting, setup.limits.queue) = (4, 2, 4);
    let mut desk = Desk::with(setup);
    let (one, _) = desk.open(0, From::Network(1), TTL, CONNECTION);
    let wait = |desk: &mut Desk, connection, number, lock: &str| {
        let ask = desk.acquire(0, connection, number, lock);
        let out = desk.step(0, Input::Queued(ask));
        let withdrawn = out.iter().any(|it| matches!(it, Output::Abandon(of) if *of == ask));
        assert_eq!(withdrawn, !told(&out).is_empty());
        told(&out)
    };
    assert_eq!(wait(&mut desk, one, 1, "a"), []);
    assert_eq!(wait(&mut desk, one, 2, "a"), []);
    assert_refused!(wait(&mut desk, one, 3, "b"), Code::Busy);
    let (two, _) = desk.open(0, From::Network(1), TTL, CONNECTION);
    assert_refused!(wait(&mut desk, two, 1, "a"), Code::Busy);
    let (three, _) = desk.open(0, From::Network(2), TTL, CONNECTION);
    assert_eq!(wait(&mut desk, three, 1, "a"), [], "another client has its own half");
    desk.hold(0, one, "c", 11);
    desk.hold(0, one, "d", 12);
    let out = desk.request(0, one, Request::Acquire(13, ask("e")));
    assert_refused!(told(&out), Code::Busy);
    for connection in [one, two, three] {
        desk.request(1, connection, Request::Bye);
        desk.hang_up(1, connection);
    }
    assert!(desk.sessions.is_clean() && desk.ledger.is_empty());
}

#[test]
fn all_clients_that_use_a_name_agree_on_its_permits() {
    let mut desk = Desk::new();
    let (connection, session) = desk.open(0, From::Network(1), TTL, CONNECTION);
    let permits = |number| Ask { permits: Some(number), ..ask("a") };
    let out = desk.request(0, connection, Request::Acquire(1, permits(3)));
    let Some(Output::Acquire { ask, name: at_node, .. }) = out.first() else { panic!("{out:?}") };
    assert_eq!(at_node.as_str(), "%k/3/a");
    desk.grant(0, *ask, 1);
    for other in [permits(2), super::ask("a")] {
        let out = desk.request(0, connection, Request::Acquire(2, other));
        assert_refused!(told(&out), Code::NotServed);
    }
    let shared = Ask { mode: Mode::Shared, ..permits(3) };
    assert_refused!(
        told(&desk.request(0, connection, Request::Acquire(2, shared))),
        Code::NotServed
    );
    // The next process holds the same lock again.
    let (mut desk, out) = desk.restart(100, |_| {});
    let Some(Output::Reclaim { ask, name: at_node, .. }) =
        out.iter().find(|it| matches!(it, Output::Reclaim { .. }))
    else {
        panic!("{out:?}")
    };
    assert_eq!(at_node.as_str(), "%k/3/a");
    desk.step(100, Input::Granted(*ask, Fence::new(1, 1)));
    let claims = vec![Claim { permits: Some(3), ..claim("a", 1) }];
    assert_eq!(welcome(&desk.resume(200, From::Network(1), session, claims)).lost, []);
}

#[test]
fn a_configured_number_of_permits_cannot_be_changed() {
    let mut setup = setup();
    setup.rules = vec![(doorway_protocol::NamePattern::new("pool/*"), 5)];
    let mut desk = Desk::with(setup);
    let (connection, _) = desk.open(0, From::Network(1), TTL, CONNECTION);
    let permits = |number| Ask { permits: Some(number), ..ask("pool/a") };
    let out = desk.request(0, connection, Request::Acquire(1, permits(4)));
    assert_refused!(told(&out), Code::NotServed);
    let out = desk.request(0, connection, Request::Acquire(2, permits(5)));
    let Some(Output::Acquire { name: at_node, .. }) = out.first() else { panic!("{out:?}") };
    assert_eq!(at_node.as_str(), "pool/a");
}
