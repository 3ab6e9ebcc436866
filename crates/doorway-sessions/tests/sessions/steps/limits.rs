//! Limits of clients, and permits.

use doorway_protocol::{Code, NamePattern, Request};
use doorway_sessions::principal::{PatternRights, Right};
use doorway_sessions::settings::{ClientSettings, Limits};

use super::*;

#[test]
fn a_client_of_another_machine_gets_half_of_all_sessions() {
    let mut setup = setup();
    setup.limits.sessions = 4;
    let mut node = TestNode::with(setup);
    node.open(0, From::Network(1), TTL, CONNECTION);
    node.open(0, From::Network(1), TTL, CONNECTION);
    let new = || doorway_protocol::Opening::New { ttl_ms: TTL, life: CONNECTION };
    let connection = node.connect(0, From::Network(1));
    let out = node.hello(0, connection, From::Network(1), new());
    assert_eq!(refused(&out).map(|refusal| refusal.code), Some(Code::Busy));
    node.open(0, From::Network(2), TTL, CONNECTION);
    node.open(0, From::Here, TTL, CONNECTION);
    let connection = node.connect(0, From::Here);
    let out = node.hello(0, connection, From::Here, new());
    assert_eq!(refused(&out).map(|refusal| refusal.code), Some(Code::Busy), "all are open");
}

#[test]
fn a_connection_too_many_is_turned_away() {
    let mut setup = setup();
    setup.limits.connections = 4;
    let mut node = TestNode::with(setup);
    let (one, two) = (node.connect(0, From::Network(1)), node.connect(0, From::Network(1)));
    let third = |node: &mut TestNode, remote| {
        let out = node.step(0, Input::Connect { connection: Connection(99), remote });
        refused(&out).map(|refusal| refusal.code)
    };
    assert_eq!(third(&mut node, true), Some(Code::Busy), "two have not said who they are");
    let identify =
        |connection| Input::Identify { connection, principal: principal(From::Network(1)) };
    node.step(0, identify(one));
    node.step(0, identify(two));
    let three = node.connect(0, From::Network(1));
    assert!(refused(&node.step(0, identify(three))).is_some(), "that client has half of all");
    node.connect(0, From::Here);
    assert_eq!(third(&mut node, false), Some(Code::Busy), "all are open");
    for connection in [one, two, three, Connection(4)] {
        node.hang_up(0, connection);
    }
    assert!(node.sessions.is_clean());
}

#[test]
fn a_connection_that_cannot_change_its_client_is_counted_once() {
    let mut setup = setup();
    setup.limits.connections = 4;
    let mut node = TestNode::with(setup);
    let identify = |connection, from| Input::Identify { connection, principal: principal(from) };
    let [one, two, three] = [1, 1, 2].map(|client| {
        let connection = node.connect(0, From::Network(client));
        node.step(0, identify(connection, From::Network(client)));
        connection
    });
    for _ in 0..9 {
        let out = node.step(0, identify(three, From::Network(1)));
        assert!(refused(&out).is_some(), "that client has half of all");
    }
    for connection in [one, two, three] {
        node.hang_up(0, connection);
    }
    assert!(node.sessions.is_clean());
}

#[test]
fn requests_beyond_a_limit_are_refused_and_withdrawn() {
    let mut setup = setup();
    (setup.limits.grants, setup.limits.waiting, setup.limits.queue) = (4, 2, 4);
    let mut node = TestNode::with(setup);
    let (one, _) = node.open(0, From::Network(1), TTL, CONNECTION);
    let wait = |node: &mut TestNode, connection, number, lock: &str| {
        let ask = node.acquire(0, connection, number, lock);
        let out = node.step(0, Input::Queued(ask));
        let withdrawn = out.iter().any(|it| matches!(it, Output::Abandon(of) if *of == ask));
        assert_eq!(withdrawn, !told(&out).is_empty());
        told(&out)
    };
    assert_eq!(wait(&mut node, one, 1, "a"), []);
    assert_eq!(wait(&mut node, one, 2, "a"), []);
    assert_refused!(wait(&mut node, one, 3, "b"), Code::Busy);
    let (two, _) = node.open(0, From::Network(1), TTL, CONNECTION);
    assert_refused!(wait(&mut node, two, 1, "a"), Code::Busy);
    let (three, _) = node.open(0, From::Network(2), TTL, CONNECTION);
    assert_eq!(wait(&mut node, three, 1, "a"), [], "another client has its own half");
    node.hold(0, one, "c", 11);
    node.hold(0, one, "d", 12);
    let out = node.request(0, one, Request::Acquire(13, ask("e")));
    assert_refused!(told(&out), Code::Busy);
    for connection in [one, two, three] {
        node.request(1, connection, Request::Bye);
        node.hang_up(1, connection);
    }
    assert!(node.sessions.is_clean() && node.ledger.is_empty());
}

#[test]
fn all_clients_that_use_a_name_agree_on_its_permits() {
    let mut node = TestNode::new();
    let (connection, session) = node.open(0, From::Network(1), TTL, CONNECTION);
    let permits = |number| Ask { permits: Some(number), ..ask("a") };
    let out = node.request(0, connection, Request::Acquire(1, permits(3)));
    let Some(Output::Acquire { ask, name: at_node, .. }) = out.first() else { panic!("{out:?}") };
    assert_eq!(at_node.as_str(), "%k/3/a");
    node.grant(0, *ask, 1);
    for other in [permits(2), super::ask("a")] {
        let out = node.request(0, connection, Request::Acquire(2, other));
        assert_refused!(told(&out), Code::NotServed);
    }
    let shared = Ask { mode: Mode::Shared, ..permits(3) };
    assert_refused!(
        told(&node.request(0, connection, Request::Acquire(2, shared))),
        Code::NotServed
    );
    // The next process holds the same lock again.
    let (mut node, out) = node.restart(100, |_| {});
    let Some(Output::Reclaim { ask, name: at_node, .. }) =
        out.iter().find(|it| matches!(it, Output::Reclaim { .. }))
    else {
        panic!("{out:?}")
    };
    assert_eq!(at_node.as_str(), "%k/3/a");
    node.step(100, Input::Granted(*ask, Fence::new(1, 1)));
    let claims = vec![Claim { permits: Some(3), ..claim("a", 1) }];
    assert_eq!(welcome(&node.resume(200, From::Network(1), session, claims)).lost, []);
}

#[test]
fn a_configured_number_of_permits_cannot_be_changed() {
    let mut setup = setup();
    setup.rules = vec![(NamePattern::new("pool/*"), 5)];
    let mut node = TestNode::with(setup);
    let (connection, _) = node.open(0, From::Network(1), TTL, CONNECTION);
    let permits = |number| Ask { permits: Some(number), ..ask("pool/a") };
    let out = node.request(0, connection, Request::Acquire(1, permits(4)));
    assert_refused!(told(&out), Code::NotServed);
    let out = node.request(0, connection, Request::Acquire(2, permits(5)));
    let Some(Output::Acquire { name: at_node, .. }) = out.first() else { panic!("{out:?}") };
    assert_eq!(at_node.as_str(), "pool/a");
}

#[test]
fn rights_that_a_reload_takes_away_end_at_once_and_what_is_held_stays() {
    let mut node = TestNode::new();
    let (connection, _) = node.open(0, From::Network(1), TTL, CONNECTION);
    node.hold(0, connection, "a", 1);
    let reload = |node: &mut TestNode, may: &[Right]| {
        let pattern = NamePattern::new("*");
        let rights = Rights(vec![PatternRights { pattern, may: may.to_vec() }]);
        let client = ClientSettings { name: "1".to_owned(), token: None, rights };
        node.step(1, Input::Configure(Box::new(setup().limits), vec![client]));
    };
    reload(&mut node, &[Right::Inspect]);
    let out = node.request(2, connection, Request::Acquire(2, ask("b")));
    assert_refused!(told(&out), Code::Forbidden);
    reload(&mut node, &[Right::Acquire]);
    node.hold(3, connection, "b", 3);
    reload(&mut node, &[]);
    for (number, lock, fence) in [(4, "a", 1), (5, "b", 3)] {
        let release = Request::Release(number, name(lock), Fence::new(1, fence));
        let out = node.request(4, connection, release);
        assert_eq!(told(&out), [(connection, Reply::Released(number, true))]);
    }
    let (other, _) = node.open(5, From::Here, TTL, CONNECTION);
    node.hold(5, other, "a", 6);
}

#[test]
fn as_many_claims_are_allowed_as_the_reloaded_limits_allow_or_as_there_are() {
    let mut setup = setup();
    (setup.limits.grants, setup.limits.waiting) = (8, 2);
    let mut node = TestNode::with(setup.clone());
    assert_eq!(node.sessions.claims_limit(), 10);
    let (connection, _) = node.open(0, From::Network(1), TTL, CONNECTION);
    for number in 1..=8 {
        node.hold(0, connection, &format!("lock/{number}"), number);
    }
    let mut reload = |grants, waiting| {
        let limits = Limits { grants, waiting, ..setup.limits.clone() };
        node.step(1, Input::Configure(Box::new(limits), Vec::new()));
        node.sessions.claims_limit()
    };
    assert_eq!(reload(1, 1), 8, "what is held may be claimed");
    assert_eq!(reload(20, 4), 24);
}
