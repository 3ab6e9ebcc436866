//! Leases without end, at a node that keeps them by itself. Those that a group keeps are in
//! `promise`.

use doorway_protocol::Code;
use doorway_sessions::{LeaseAnswer, UNLIMITED};

use super::*;

/// An hour in milliseconds, which is far longer than any lease of these tests.
const LONG: u64 = 3_600_000;

/// A request for a lock without end.
fn endless(lock: &str, key: Option<&str>) -> Call {
    let Call::Acquire(mut asked) = lease(lock, key, 0) else { panic!("a request") };
    asked.ttl_ms = None;
    Call::Acquire(asked)
}

fn is_leased(out: &[Output]) -> bool {
    let without_end = |it: &LeaseAnswer| it.ttl == UNLIMITED;
    matches!(&answers(out)[..], [(_, Answer::Leased(it))] if without_end(it))
}

fn sync_of(out: &[Output]) -> Option<AskId> {
    out.iter().find_map(|output| match output {
        Output::Hold { ask, length, .. } if *length == UNLIMITED => Some(*ask),
        _ => None,
    })
}

fn is_dropped(out: &[Output]) -> bool {
    out.iter().any(|output| matches!(output, Output::DropHold { .. }))
}

impl TestNode {
    fn synced(&mut self, ms: u64, ask: AskId, kept: Result<(), Refusal>) -> Vec<Output> {
        self.step(ms, Input::Held { ask, length: UNLIMITED, kept })
    }

    /// Take the lock `a` without end.
    fn endless(&mut self) -> Fence {
        let (_, out) = self.call(0, endless("a", None));
        let ask = asked(&out).expect("the node is asked");
        self.grant(0, ask, 1);
        assert!(is_leased(&self.synced(0, ask, Ok(()))));
        Fence::new(1, 1)
    }
}

#[test]
fn a_lease_without_end_is_told_when_the_disk_has_it_and_ends_when_it_is_released() {
    let mut node = TestNode::new();
    let (_, out) = node.call(0, endless("a", None));
    let ask = asked(&out).expect("the node is asked");
    let out = node.grant(0, ask, 1);
    assert_eq!((sync_of(&out), answers(&out)), (Some(ask), Vec::new()), "the disk comes first");
    assert!(is_leased(&node.synced(1, ask, Ok(()))));
    node.pass(LONG);
    assert_eq!(node.sessions.held(), 1);
    let fence = Fence::new(1, 1);
    let (caller, out) = node.call(LONG, Call::Release(name("a"), fence));
    assert!(is_dropped(&out) && answers(&out).is_empty() && node.ledger.is_empty(), "{out:?}");
    let out = node.step(LONG, Input::Dropped(name("a"), fence, Ok(())));
    assert_eq!(answers(&out), [(caller, Answer::Released(true))]);
    assert!(node.sessions.is_clean());
}

#[test]
fn a_break_is_answered_when_the_disk_does_not_have_the_lease_any_more() {
    let refused = Refusal { code: Code::Unavailable, text: "the disk is broken".to_owned() };
    for (done, answer) in [
        (Ok(()), Answer::Broken(1)),
        (Err(refused.clone()), Answer::Refused(refused)), // A crash may bring the lock back.
    ] {
        let mut node = TestNode::new();
        let fence = node.endless();
        let (operator, out) = node.break_lock(1, "a", fence);
        assert!(is_dropped(&out) && answers(&out).is_empty() && node.ledger.is_empty(), "{out:?}");
        let out = node.step(2, Input::Dropped(name("a"), fence, done));
        assert_eq!(answers(&out), [(operator, answer)]);
    }
}

#[test]
fn a_lease_without_end_that_the_disk_does_not_have_is_refused() {
    let mut node = TestNode::new();
    let (_, out) = node.call(0, endless("a", None));
    let ask = asked(&out).expect("the node is asked");
    node.grant(0, ask, 1);
    let failed = Refusal { code: Code::Unavailable, text: "the disk is full".to_owned() };
    let out = node.synced(1, ask, Err(failed.clone()));
    assert!(matches!(&answers(&out)[..], [(_, Answer::Refused(why))] if *why == failed));
    assert!(node.sessions.is_clean() && node.ledger.is_empty());
    // The disk may also be too slow.
    let (_, out) = node.call(1, endless("a", None));
    let ask = asked(&out).expect("the node is asked");
    node.grant(1, ask, 2);
    let out = node.pass(6000);
    assert!(matches!(&answers(&out)[..], [(_, Answer::Refused(_))]), "{out:?}");
    assert!(node.sessions.is_clean() && node.ledger.is_empty());
}

#[test]
fn the_next_process_keeps_a_lease_without_end() {
    let mut node = TestNode::new();
    let fence = node.endless();
    let (mut node, out) = node.restart(100, |former| former.same_boot = false);
    let ask = asked(&out).expect("the node is asked");
    let out = node.step(100, Input::Granted(ask, fence));
    assert_eq!(sync_of(&out), None, "the disk has it already");
    node.pass(LONG);
    assert_eq!(node.sessions.held(), 1);
    let (_, out) = node.call(LONG, Call::Release(name("a"), fence));
    assert!(is_dropped(&out) && node.ledger.is_empty(), "{out:?}");
}

#[test]
fn a_lease_without_end_whose_client_does_not_know_of_it_ends() {
    let mut node = TestNode::new();
    for asks_again in [true, false] {
        let (caller, out) = node.call(0, endless("a", Some("me")));
        let ask = asked(&out).expect("the node is asked");
        node.step(0, Input::Queued(ask));
        let out = node.step(0, Input::CallTimedOut(caller));
        let told = answers(&out);
        let place = "keeps its place for 10000 ms";
        assert!(matches!(&told[..], [(_, Answer::Refused(it))] if it.text.contains(place)));
        node.grant(5000, ask, 1);
        node.synced(5000, ask, Ok(()));
        if asks_again {
            let (_, out) = node.call(6000, endless("a", Some("me")));
            assert!(is_leased(&out), "{out:?}");
        }
        node.pass(LONG);
        assert_eq!(node.sessions.held(), u64::from(asks_again));
        node.call(LONG, Call::Withdraw(name("a"), "me".to_owned()));
        node = TestNode::new();
    }
}

#[test]
fn a_client_that_waits_for_a_lease_without_end_sends_heartbeats() {
    let mut node = TestNode::new();
    let connection = node.connect(0, From::Network(1));
    let new = doorway_protocol::Opening::New { ttl_ms: u32::MAX, life: Life::Lease };
    let out = node.hello(0, connection, From::Network(1), new);
    assert_eq!(welcome(&out).ttl_ms, 10_000);
    let ask = node.acquire(0, connection, 1, "a");
    node.step(0, Input::Queued(ask));
    node.request(9000, connection, Request::Alive(2));
    node.pass(18_000);
    node.grant(18_000, ask, 1);
    let out = node.synced(18_000, ask, Ok(()));
    assert_eq!(told(&out), [(connection, Reply::Granted(1, Fence::new(1, 1)))]);
    node.hang_up(18_000, connection);
    node.pass(LONG);
    assert_eq!(node.sessions.held(), 1);
    // Without heartbeats, it gives up its place.
    let mut node = TestNode::new();
    let (connection, _) = node.open(0, From::Network(1), u32::MAX, Life::Lease);
    let ask = node.acquire(0, connection, 1, "a");
    node.step(0, Input::Queued(ask));
    let out = node.pass(11_000);
    assert!(out.iter().any(|it| matches!(it, Output::Abandon(its) if *its == ask)), "{out:?}");
}

/// A session may hold several locks. That its client knew of one of them says nothing about the
/// others.
#[test]
fn a_lease_without_end_ends_if_its_client_knows_of_none_of_its_locks() {
    let mut node = TestNode::new();
    let (connection, _) = node.open(0, From::Network(1), u32::MAX, Life::Lease);
    let first = node.acquire(0, connection, 1, "a");
    node.grant(0, first, 1);
    node.synced(0, first, Ok(()));
    let second = node.acquire(1, connection, 2, "b");
    node.step(1, Input::Queued(second));
    node.hang_up(2, connection);
    node.grant(3, second, 2);
    node.synced(3, second, Ok(()));
    node.pass(LONG);
    assert_eq!(node.sessions.held(), 2, "the client knows of the first one");
    node.break_lock(LONG, "a", Fence::new(1, 1));
    node.pass(LONG + 1000);
    assert_eq!(node.sessions.held(), 0);
}

#[test]
fn a_lease_without_end_stays_one() {
    let mut node = TestNode::new();
    let fence = node.endless();
    let (_, out) = node.call(10, Call::Renew(name("a"), fence, None));
    assert!(is_leased(&out), "{out:?}");
    let (_, out) = node.call(20, Call::Renew(name("a"), fence, Some(Duration::from_secs(1))));
    let says = |it: &Refusal| it.text.contains("is held without end, and stays so");
    assert!(matches!(&answers(&out)[..], [(_, Answer::Refused(it))] if says(it)), "{out:?}");
    node.pass(LONG);
    assert_eq!(node.sessions.held(), 1);
}

#[test]
fn a_client_that_renews_a_lease_without_end_knows_of_it() {
    let mut node = TestNode::new();
    let (caller, out) = node.call(0, endless("a", Some("me")));
    let ask = asked(&out).expect("the node is asked");
    node.step(0, Input::Queued(ask));
    node.step(0, Input::CallTimedOut(caller));
    node.grant(5000, ask, 1);
    node.synced(5000, ask, Ok(()));
    let (_, out) = node.call(6000, Call::Renew(name("a"), Fence::new(1, 1), None));
    assert!(is_leased(&out), "{out:?}");
    node.pass(LONG);
    assert_eq!(node.sessions.held(), 1);
}

#[test]
fn a_stop_gives_back_a_lease_without_end_that_was_not_told() {
    let mut node = TestNode::new();
    let (_, out) = node.call(0, endless("a", None));
    let ask = asked(&out).expect("the node is asked");
    node.grant(0, ask, 1);
    let out = node.step(1, Input::Stop);
    assert!(matches!(&answers(&out)[..], [(_, Answer::Refused(_))]), "{out:?}");
    let released = out.iter().any(|it| matches!(it, Output::Release(its) if *its == ask));
    assert!(released && is_dropped(&out), "{out:?}");
    let (mut node, out) = node.restart(100, |_| {});
    assert_eq!(asked(&out), None, "the next process has nothing to keep");
    node.pass(LONG);
    assert!(node.sessions.is_clean() && node.ledger.is_empty());
}

#[test]
fn a_node_may_keep_no_leases_without_end() {
    let all = setup();
    let mut limits = all.limits.clone();
    limits.endless = false;
    for (setup, why) in [
        (Setup { limits, ..all.clone() }, "set `endless = true` under [limits]"),
        (Setup { ledger: false, ..all }, "it has no data directory"),
    ] {
        let mut node = TestNode::with(setup);
        let (_, out) = node.call(0, endless("a", None));
        let told = answers(&out);
        let says = |it: &Refusal| it.code == Code::Forbidden && it.text.contains(why);
        assert!(matches!(&told[..], [(_, Answer::Refused(it))] if says(it)), "{told:?}");
        let connection = node.connect(0, From::Here);
        let new = doorway_protocol::Opening::New { ttl_ms: u32::MAX, life: Life::Lease };
        assert!(refused(&node.hello(0, connection, From::Here, new)).is_some_and(|it| says(&it)));
    }
}
