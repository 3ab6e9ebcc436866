//! When sessions end.

use doorway_protocol::{ClockReading, Code, Fence, LeaseClock, Reply, Request};

use super::*;

#[test]
fn a_heartbeat_in_the_last_moment_counts_and_one_after_it_is_refused() {
    let mut node = TestNode::new();
    let (connection, session) = node.open(0, From::Network(1), TTL, CONNECTION);
    let held = node.hold(0, connection, "a", 1);
    node.pass(1999);
    node.step(1999, Input::Heard(connection));
    let out = node.pass(3998);
    assert!(released(&out).is_empty() && node.sessions.len() == 1);
    let out = node.pass(3999);
    assert_eq!(released(&out), [held]);
    let (lock, why) = (name("a"), "the session was silent for longer than its time to live");
    assert_eq!(told(&out), [(connection, Reply::Lost(lock, Fence::new(1, 1), why.into()))]);
    assert!(out.iter().any(|it| matches!(it, Output::Close(closed) if *closed == connection)));
    assert!(node.request(4000, connection, Request::Alive(9)).is_empty(), "nothing is answered");
    let out = node.resume(4000, From::Network(1), session, vec![claim("a", 1)]);
    assert_eq!(refused(&out).map(|refusal| refusal.code), Some(Code::Gone));
}

#[test]
fn heartbeats_keep_a_session_and_so_does_every_other_request() {
    let mut node = TestNode::new();
    let (connection, _) = node.open(0, From::Network(1), TTL, CONNECTION);
    let held = node.hold(0, connection, "a", 1);
    for beat in 1..=10 {
        let out = node.pass(beat * 1999);
        assert!(released(&out).is_empty(), "after {beat} heartbeats: {out:?}");
        let out = node.request(beat * 1999, connection, Request::Alive(beat));
        assert_eq!(told(&out), [(connection, Reply::Alive(beat))]);
    }
    node.pass(11 * 1999);
    let release = Request::Release(9, name("b"), Fence::new(1, 2));
    assert_eq!(node.request(11 * 1999, connection, release).len(), 1, "that it does not hold it");
    assert!(released(&node.pass(12 * 1999)).is_empty());
    assert_eq!(released(&node.pass(13 * 1999 + 1)), [held]);
}

#[test]
fn a_lease_is_renewed_until_it_has_ended() {
    let mut node = TestNode::new();
    let (_, out) = node.call(0, lease("a", None, 1000));
    let out = node.grant(0, asked(&out).unwrap(), 1);
    assert!(matches!(answers(&out)[..], [(_, Answer::Leased(_))]), "{out:?}");
    let renew = |ttl| Call::Renew(name("a"), Fence::new(1, 1), ttl);
    node.pass(999);
    let (call, out) = node.call(999, renew(Some(Duration::from_millis(1500))));
    let [Output::Rewrite(session, ..)] = out[..] else { panic!("first the ledger: {out:?}") };
    let out = node.step(999, Input::Rewritten(session, Ok(())));
    assert!(matches!(&answers(&out)[..], [(of, Answer::Leased(lease))]
            if *of == call && lease.ttl.as_millis() == 1500));
    node.pass(2498);
    assert_eq!(node.sessions.len(), 1);
    node.pass(2499);
    let (_, out) = node.call(2499, renew(None));
    assert!(matches!(&answers(&out)[..], [(_, Answer::Refused(it))] if it.code == Code::Gone));
    assert!(node.sessions.is_clean() && node.ledger.is_empty());
}

#[test]
fn a_tick_that_comes_too_late_gives_clients_time() {
    let mut node = TestNode::new();
    let (silent, _) = node.open(0, From::Network(1), TTL, CONNECTION);
    let (heard, _) = node.open(0, From::Network(2), TTL, CONNECTION);
    node.hold(0, silent, "a", 1);
    node.hold(0, heard, "b", 2);
    // The process was stopped for a while, and what clients sent meanwhile is not read yet.
    let out = node.step(60_000, Input::Tick);
    assert!(out.is_empty(), "{out:?}");
    assert_eq!(node.sessions.due(), at(60_250));
    node.step(60_100, Input::Heard(heard));
    let out = node.pass(60_250);
    assert_eq!((released(&out).len(), node.sessions.len()), (1, 1));
    node.step(60_300, Input::Heard(heard));
    node.pass(62_299);
    assert_eq!(node.sessions.held(), 1);
}

#[test]
fn a_session_of_a_process_ends_with_its_connection_and_not_before() {
    let mut node = TestNode::new();
    let (connection, _) = node.open(0, From::Here, u32::MAX, CONNECTION);
    let held = node.hold(0, connection, "a", 1);
    let out = node.pass(100_000_000);
    assert!(out.is_empty() && node.sessions.held() == 1, "a day of silence");
    assert_eq!(released(&node.hang_up(100_000_001, connection)), [held]);
    assert!(node.sessions.is_clean() && node.ledger.is_empty());
}

#[test]
fn only_a_process_that_the_node_sees_has_a_session_without_a_ttl() {
    let mut node = TestNode::new();
    node.open(0, From::Network(1), u32::MAX, CONNECTION);
    node.pass(u64::from(TTL));
    assert!(node.sessions.is_empty(), "a client of another machine has the longest TTL");
    for inherited in [false, true] {
        let mut node = TestNode::new();
        let life = Life::Connection { inherited };
        let (connection, session) = node.open(0, From::Hidden, u32::MAX, life);
        let held = node.hold(0, connection, "a", 1);
        node.step(1500, Input::Heard(connection));
        assert!(node.pass(1500 + u64::from(TTL) - 1).is_empty(), "session {session}");
        let out = node.pass(1500 + u64::from(TTL));
        assert_eq!(released(&out), [held], "nobody can tell whether its process lives");
    }
}

#[test]
fn the_end_of_a_connection_over_a_network_proves_nothing() {
    let mut node = TestNode::new();
    let (connection, session) = node.open(0, From::Network(1), TTL, CONNECTION);
    node.hold(0, connection, "a", 1);
    assert!(released(&node.hang_up(1, connection)).is_empty());
    let out = node.resume(1000, From::Network(1), session, vec![claim("a", 1)]);
    assert_eq!(welcome(&out).lost, []);
    node.pass(2999);
    assert_eq!(node.sessions.held(), 1, "the TTL counts from the hello");
}

#[test]
fn a_request_that_is_granted_before_its_client_repeats_it_is_granted_once() {
    let mut node = TestNode::new();
    let (connection, session) = node.open(0, From::Network(1), TTL, CONNECTION);
    let ask = node.acquire(0, connection, 5, "a");
    node.step(0, Input::Queued(ask));
    node.hang_up(100, connection);
    let connection = node.connect(200, From::Network(1));
    node.resume_over(200, connection, From::Network(1), session, Vec::new(), vec![5]);
    let out = node.grant(300, ask, 1);
    let granted = [(connection, Reply::Granted(5, Fence::new(1, 1)))];
    assert_eq!(told(&out), granted);
    let repeated = node.request(400, connection, Request::Acquire(5, super::ask("a")));
    assert_eq!((asked(&repeated), told(&repeated)), (None, granted.to_vec()));
    assert_eq!(node.sessions.held(), 1);
}

#[test]
fn a_session_that_lives_with_a_process_needs_no_connection_and_no_heartbeats() {
    let mut node = TestNode::new();
    let life = Life::Process { pid: PROCESS.pid };
    let (connection, session) = node.open(0, From::Here, TTL, life);
    let held = node.hold(0, connection, "a", 1);
    assert!(released(&node.hang_up(1, connection)).is_empty());
    node.pass(100_000_000);
    assert_eq!(node.sessions.held(), 1, "a day without a connection");
    let out = node.step(100_000_001, Input::ProcessEnded(session));
    assert_eq!(released(&out), [held]);
    assert!(node.sessions.is_clean() && node.ledger.is_empty());
}

/// A process that inherited the connection of a dead process sends no heartbeats.
#[test]
fn an_inherited_connection_keeps_its_session_when_the_process_has_ended() {
    let mut node = TestNode::new();
    let inherited = Life::Connection { inherited: true };
    let (connection, session) = node.open(0, From::Here, TTL, inherited);
    let held = node.hold(0, connection, "a", 1);
    node.step(1, Input::ProcessEnded(session));
    node.pass(60_000);
    assert_eq!(node.sessions.held(), 1, "its child has the connection");
    assert_eq!(released(&node.hang_up(60_001, connection)), [held]);
    let (connection, _) = node.open(70_000, From::Here, TTL, inherited);
    let held = node.hold(70_000, connection, "a", 2);
    let out = node.pass(70_000 + u64::from(TTL));
    assert_eq!(released(&out), [held], "a living process that sends no heartbeats hangs");
}

#[test]
fn a_lease_is_renewed_over_other_connections_of_its_client() {
    let mut node = TestNode::new();
    let (connection, _) = node.open(0, From::Here, TTL, Life::Lease);
    let held = node.hold(0, connection, "a", 1);
    node.hang_up(1, connection);
    let visitor = node.connect(1, From::Here);
    node.hello(1, visitor, From::Here, doorway_protocol::Opening::Visit);
    for number in 1..6 {
        let now = number * 1900;
        assert!(released(&node.pass(now)).is_empty());
        let out = node.request(now, visitor, Request::Renew(number, name("a"), Fence::new(1, 1)));
        assert_eq!(told(&out), [(visitor, Reply::Done(number))]);
    }
    assert!(released(&node.pass(5 * 1900 + 1999)).is_empty());
    assert_eq!(released(&node.pass(5 * 1900 + 2000)), [held]);
}

/// A time service may slew a clock by 8.3 %, and that which is not slewed may be 0.1 % wrong.
#[test]
fn a_node_with_a_slewed_clock_does_not_end_a_session_too_early() {
    for slew in [917, 1000, 1083] {
        let mut node = TestNode::new();
        let (connection, _) = node.open(0, From::Network(1), TTL, CONNECTION);
        node.hold(0, connection, "a", 1);
        let mut clock = LeaseClock::slower();
        clock.read(ClockReading::default());
        let ended = |ms: &u64| {
            let now = clock.read(ClockReading { boot: ms * 1000 * slew, raw: ms * 1_001_000 });
            node.sessions.step(now, Input::Tick, &mut Vec::new());
            node.sessions.is_empty()
        };
        let ended = (0..10_000).find(ended).expect("its client is silent");
        // A client whose clock is 0.1 % too slow counts a twentieth less than the TTL.
        let least = u64::from(TTL) * 999 / 1001;
        assert!((least..2 * least).contains(&ended), "{slew}: ended after {ended} ms");
    }
}
