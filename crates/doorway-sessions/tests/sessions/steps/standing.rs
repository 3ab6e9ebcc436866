//! Leases that may hold several locks.

use doorway_protocol::{Code, Fence};
use doorway_sessions::{LeaseOpening, LeaseTime, NodeLease, StandingAsk};

use super::*;

/// The secret of a lease, and the number that clients know it by.
const SECRET: Secret = Secret([0x12; 16]);
const LEASE: u64 = 0x1212_1212_1212 >> 1;

/// For how much longer than its time to live the node keeps such a lease.
const GRACE: u64 = 1000;

fn open(node: &mut TestNode, ms: u64, ttl_ms: u32) -> u64 {
    let label = "etcd lease".to_owned();
    let opening = LeaseOpening { ttl_ms, label, remote: true, secret: SECRET };
    let (_, out) = node.call(ms, Call::Open(Box::new(opening)));
    match answers(&out)[..] {
        [(_, Answer::Alive(LeaseTime { session, ttl }))] => {
            assert_eq!(ttl, Duration::from_millis(ttl_ms.into()));
            session
        }
        _ => panic!("{out:?}"),
    }
}

fn with(lock: &str, request: u64, joins: bool) -> Call {
    let ask = ask(lock);
    Call::AcquireWith(Box::new(StandingAsk { lease: LEASE, request, ask, joins, label: None }))
}

fn refused_with(out: &[Output], code: Code) -> bool {
    matches!(&answers(out)[..], [(_, Answer::Refused(refusal))] if refusal.code == code)
}

#[test]
fn a_lease_holds_several_locks_and_lives_without_any() {
    let mut node = TestNode::new();
    let session = open(&mut node, 0, 2000);
    let (one, out) = node.call(0, with("a", 11, true));
    let first = asked(&out).unwrap();
    let (two, out) = node.call(0, with("b", 12, true));
    let second = asked(&out).unwrap();
    // Each call gets the answer to its own request.
    let out = node.grant(100, second, 2);
    assert!(matches!(answers(&out)[..], [(to, Answer::Leased(_))] if to == two), "{out:?}");
    let out = node.grant(100, first, 1);
    assert!(matches!(answers(&out)[..], [(to, Answer::Leased(_))] if to == one), "{out:?}");
    assert_eq!(node.sessions.held(), 2);
    let (_, out) = node.call(200, Call::Unlock(LEASE, name("a"), Some(99)));
    assert!(matches!(answers(&out)[..], [(_, Answer::Withdrawn(false))]), "another request");
    let (_, out) = node.call(200, Call::Unlock(LEASE, name("a"), Some(11)));
    assert!(
        matches!(answers(&out)[..], [(_, Answer::Withdrawn(true))]) && released(&out) == [first]
    );
    let (_, out) = node.call(200, Call::Unlock(LEASE, name("b"), None));
    assert!(matches!(answers(&out)[..], [(_, Answer::Withdrawn(true))]));
    assert_eq!((node.sessions.held(), node.sessions.len()), (0, 1), "the lease lives on");
    let (_, out) = node.call(1000, Call::KeepAlive(LEASE));
    assert!(matches!(answers(&out)[..], [(_, Answer::Alive(it))] if it.session == session));
    let (_, out) = node.call(1000, Call::Revoke(LEASE));
    assert!(matches!(answers(&out)[..], [(_, Answer::Released(true))]));
    let (_, out) = node.call(1000, Call::KeepAlive(LEASE));
    assert!(refused_with(&out, Code::Gone), "{out:?}");
    assert!(node.sessions.is_clean() && node.ledger.is_empty());
}

#[test]
fn a_lease_ends_with_its_time_also_while_it_waits() {
    let mut node = TestNode::new();
    open(&mut node, 0, 2000);
    let (caller, out) = node.call(0, with("a", 11, true));
    node.step(0, Input::Queued(asked(&out).unwrap()));
    node.pass(1000);
    node.call(1000, Call::KeepAlive(LEASE));
    assert_eq!(answers(&node.pass(3000 + GRACE - 1)), []);
    let out = node.pass(3000 + GRACE + 500);
    assert!(matches!(&answers(&out)[..], [(to, Answer::Refused(it))]
        if *to == caller && it.code == Code::Gone));
    assert!(node.sessions.is_clean());
}

#[test]
fn a_lease_that_is_kept_alive_lives_on() {
    let mut node = TestNode::new();
    let session = open(&mut node, 0, 2000);
    let (_, out) = node.call(0, with("a", 11, true));
    let ask = asked(&out).unwrap();
    node.grant(0, ask, 1);
    for beat in 1..=8 {
        assert_eq!(released(&node.pass(beat * 1999)), []);
        let (_, out) = node.call(beat * 1999, Call::KeepAlive(LEASE));
        assert!(matches!(answers(&out)[..], [(_, Answer::Alive(it))]
            if it.session == session && it.ttl == Duration::from_secs(2)));
    }
    assert_eq!(released(&node.pass(8 * 1999 + 2500 + GRACE)), [ask]);
}

#[test]
fn what_a_lease_holds_is_lost_when_its_time_is_over() {
    let mut node = TestNode::new();
    open(&mut node, 0, 2000);
    let (_, out) = node.call(0, with("a", 11, true));
    let ask = asked(&out).unwrap();
    node.grant(1500, ask, 1);
    // The grant is not a heartbeat.
    assert_eq!(released(&node.pass(2000 + GRACE - 1)), []);
    assert_eq!(released(&node.pass(2500 + GRACE)), [ask]);
    assert!(node.sessions.is_clean() && node.ledger.is_empty());
}

/// An etcd client hears of a loss only by its lease.
#[test]
fn a_lease_that_has_lost_a_lock_cannot_be_kept_alive() {
    let mut node = TestNode::new();
    let session = open(&mut node, 0, 2000);
    let mut asks = Vec::new();
    for (request, lock) in [(11, "a"), (12, "b")] {
        let (_, out) = node.call(0, with(lock, request, true));
        asks.push(asked(&out).unwrap());
        node.grant(0, asks[asks.len() - 1], request);
    }
    node.step(100, Input::Lost { session, name: name("a"), fence: Fence::new(1, 11) });
    let (_, out) = node.call(200, Call::KeepAlive(LEASE));
    assert!(refused_with(&out, Code::Gone), "{out:?}");
    let (_, out) = node.call(200, with("c", 13, true));
    assert!(refused_with(&out, Code::Gone), "{out:?}");
    // The client may believe in the other lock until its time to live is over.
    assert_eq!(released(&node.pass(2000 + GRACE - 1)), []);
    assert_eq!(released(&node.pass(2500 + GRACE)), [asks[1]]);
    assert!(node.sessions.is_clean());
}

#[test]
fn the_same_request_joins_and_any_other_is_refused() {
    let mut node = TestNode::new();
    open(&mut node, 0, 2000);
    let (one, out) = node.call(0, with("a", 11, true));
    let ask = asked(&out).unwrap();
    node.step(0, Input::Queued(ask));
    let (two, out) = node.call(10, with("a", 12, true));
    assert!(asked(&out).is_none(), "the node is asked once");
    let (_, out) = node.call(10, with("a", 13, false));
    assert!(refused_with(&out, Code::NotFree), "{out:?}");
    // One of the two does not want it any more, but the other does.
    assert_eq!(answers(&node.hang_up(20, two)), []);
    let out = node.grant(30, ask, 1);
    assert!(matches!(answers(&out)[..], [(to, Answer::Leased(_))] if to == one), "{out:?}");
    let (again, out) = node.call(40, with("a", 14, true));
    assert!(matches!(&answers(&out)[..], [(to, Answer::Leased(it))]
        if *to == again && it.fence == Fence::new(1, 1)));
    let (_, out) = node.call(40, with("a", 15, false));
    assert!(refused_with(&out, Code::NotFree), "{out:?}");
}

#[test]
fn a_client_that_goes_away_while_it_waits_withdraws_its_request_only() {
    let mut node = TestNode::new();
    open(&mut node, 0, 2000);
    let (caller, out) = node.call(0, with("a", 11, true));
    let ask = asked(&out).unwrap();
    node.step(0, Input::Queued(ask));
    let out = node.hang_up(10, caller);
    assert!(out.iter().any(|output| matches!(output, Output::Abandon(it) if *it == ask)));
    assert_eq!(node.sessions.len(), 1);
    let (_, out) = node.call(20, with("a", 12, true));
    assert!(asked(&out).is_some());
}

#[test]
fn a_lease_of_another_client_cannot_be_used() {
    let mut node = TestNode::new();
    open(&mut node, 0, 2000);
    let (_, out) = node.call(0, with("a", 11, true));
    node.grant(0, asked(&out).unwrap(), 1);
    node.connections += 1;
    let mut other = |call| {
        let connection = Connection(5000);
        node.step(10, Input::Call(connection, principal(From::Network(2)), call))
    };
    assert!(refused_with(&other(Call::KeepAlive(LEASE)), Code::Gone));
    assert!(refused_with(&other(with("b", 12, true)), Code::Gone));
    let out = other(Call::Revoke(LEASE));
    assert!(matches!(answers(&out)[..], [(_, Answer::Released(false))]));
    let out = other(Call::Unlock(LEASE, name("a"), None));
    assert!(matches!(answers(&out)[..], [(_, Answer::Withdrawn(false))]));
    assert_eq!(node.sessions.held(), 1);
}

#[test]
fn a_lease_that_holds_something_goes_on_after_a_crash() {
    let mut node = TestNode::new();
    open(&mut node, 0, 2000);
    let (_, out) = node.call(0, with("a", 11, true));
    node.grant(0, asked(&out).unwrap(), 1);
    let (mut node, out) = node.restart(100, |_| {});
    node.step(100, Input::Granted(asked(&out).unwrap(), Fence::new(1, 1)));
    let (_, out) = node.call(200, Call::KeepAlive(LEASE));
    assert!(matches!(answers(&out)[..], [(_, Answer::Alive(_))]), "{out:?}");
    let (_, out) = node.call(300, Call::Unlock(LEASE, name("a"), Some(11)));
    assert!(matches!(answers(&out)[..], [(_, Answer::Withdrawn(true))]));
    assert_eq!(node.sessions.len(), 1, "it is still a lease that lives without locks");
    node.pass(2300 + GRACE + 500);
    assert!(node.sessions.is_clean() && node.ledger.is_empty());
}

/// A node whose own membership lasts until this moment, and is renewed for this long each time.
fn member(until: u64, length: u64) -> TestNode {
    let mut node = TestNode::with(Setup { agreed: true, ..setup() });
    renew(&mut node, 0, until, length);
    node
}

fn renew(node: &mut TestNode, ms: u64, until: u64, length: u64) -> Vec<Output> {
    let lease = NodeLease { until: at(until), length: Duration::from_millis(length) };
    node.step(ms, Input::Lease(lease))
}

#[test]
fn a_heartbeat_is_answered_only_if_the_membership_of_the_node_lasts_for_it() {
    let mut node = member(3000, 3000);
    open(&mut node, 0, 1000);
    let (_, out) = node.call(0, with("a", 11, true));
    let out = node.grant(500, asked(&out).unwrap(), 1);
    assert!(matches!(answers(&out)[..], [(_, Answer::Leased(_))]), "{out:?}");
    // The client may count on its lock until 2001, and the node has to keep it until 3001.
    let (caller, out) = node.call(1001, Call::KeepAlive(LEASE));
    assert_eq!(answers(&out), []);
    let told = answers(&renew(&mut node, 1100, 4100, 3000));
    assert!(matches!(told[..], [(to, Answer::Alive(_))] if to == caller), "{told:?}");
    let (_, out) = node.call(2101, Call::KeepAlive(LEASE));
    assert_eq!(answers(&out), []);
    let told = answers(&renew(&mut node, 4100, 4100, 3000));
    assert!(matches!(&told[..], [(_, Answer::Refused(it))] if it.code == Code::Unavailable));
}

/// A member with a lease that holds a lock for longer than the lease of the node.
fn member_with_a_hold() -> TestNode {
    let mut node = member(2000, 2000);
    open(&mut node, 0, 2000);
    let (caller, out) = node.call(0, with("a", 11, true));
    let ask = asked(&out).expect("it asks");
    let out = node.step(0, Input::Granted(ask, Fence::new(1, 1)));
    let length = Duration::from_millis(2000 + GRACE);
    assert!(matches!(&out[..], [Output::Hold { length: its, .. }] if *its == length), "{out:?}");
    let out = node.step(100, Input::Held { ask, length, kept: Ok(()) });
    assert!(matches!(out[..], [Output::Write(..)]), "{out:?}");
    let out = node.step(100, Input::Written(ask, Ok(())));
    assert!(matches!(answers(&out)[..], [(to, Answer::Leased(_))] if to == caller), "{out:?}");
    node
}

/// If the node ended before the group has agreed, the lock would stay closed.
#[test]
fn a_drain_is_not_over_while_the_group_keeps_a_lock_that_was_released() {
    let mut node = member_with_a_hold();
    let out = node.step(1000, Input::Drain(Duration::from_secs(10)));
    assert!(!drained(&out), "{out:?}");
    let (_, out) = node.call(1100, Call::Revoke(LEASE));
    assert!(!drained(&out) && !node.sessions.leaves_nothing(), "{out:?}");
    let out = node.step(1200, Input::Dropped(name("a"), Fence::new(1, 1), Ok(())));
    assert!(drained(&out) && node.sessions.leaves_nothing(), "{out:?}");
}

#[test]
fn the_group_keeps_what_a_longer_lease_holds() {
    let mut node = member_with_a_hold();
    // The membership of the node need not last for it.
    let (_, out) = node.call(1000, Call::KeepAlive(LEASE));
    assert!(matches!(answers(&out)[..], [(_, Answer::Alive(it))] if it.ttl.as_millis() == 2000));
    let (_, out) = node.call(1100, Call::Revoke(LEASE));
    assert!(out.iter().any(|output| matches!(output, Output::DropHold { .. })));
    assert_eq!(answers(&out), [], "not before the group does not keep it any more");
    let out = node.step(1200, Input::Dropped(name("a"), Fence::new(1, 1), Ok(())));
    assert!(matches!(answers(&out)[..], [(_, Answer::Released(true))]), "{out:?}");
}

/// The node waits for the renewal of its own lease, and the client waits for its answer no longer.
/// The client could neither use the lock nor know that it has to release it.
#[test]
fn a_grant_whose_answer_is_withheld_ends_with_its_call() {
    let mut node = member(10_000, 10_000);
    open(&mut node, 0, 2000);
    // Of another lock the client was told before. The fences of two locks may be equal.
    let (_, out) = node.call(0, with("told", 10, false));
    let ask = asked(&out).unwrap();
    assert!(matches!(answers(&node.grant(0, ask, 1))[..], [(_, Answer::Leased(_))]));
    let leave: [fn(_) -> _; 2] =
        [Input::CallTimedOut, |caller| Input::HangUp { connection: caller, closed: true }];
    for (request, leave) in (11..).zip(leave) {
        let (caller, out) = node.call(8000, with("a", request, false));
        let ask = asked(&out).unwrap();
        assert_eq!(answers(&node.grant(8000, ask, 1)), [], "the answer waits");
        let out = node.step(8000, leave(caller));
        assert_eq!(released(&out), [ask]);
        assert_eq!(node.sessions.held(), 1, "what the client knows of is kept");
    }
}
