//! What is written and when, and what happens at the end.

use std::hash::BuildHasher as _;

use doorway_protocol::{Code, Fence, Reply, Request};
use rustc_hash::FxBuildHasher;

use super::*;

#[test]
fn a_grant_is_told_only_after_it_was_written() {
    let mut node = TestNode::new();
    let (connection, _) = node.open(0, From::Network(1), TTL, CONNECTION);
    let ask = node.acquire(0, connection, 5, "a");
    let out = node.step(0, Input::Granted(ask, Fence::new(1, 1)));
    let [Output::Write(of, records)] = &out[..] else { panic!("{out:?}") };
    assert_eq!((*of, records.len()), (ask, 2), "the session and its first grant");
    let out = node.step(0, Input::Written(ask, Ok(())));
    assert_eq!(told(&out), [(connection, Reply::Granted(5, Fence::new(1, 1)))]);
    let second = node.acquire(0, connection, 6, "b");
    let out = node.step(0, Input::Granted(second, Fence::new(1, 2)));
    let [Output::Write(_, records)] = &out[..] else { panic!("{out:?}") };
    assert_eq!(records.len(), 1, "the session is in the ledger already");
}

#[test]
fn a_grant_that_cannot_be_written_is_refused_and_given_back() {
    let mut node = TestNode::new();
    let (connection, _) = node.open(0, From::Network(1), TTL, CONNECTION);
    let ask = node.acquire(0, connection, 5, "a");
    node.step(0, Input::Granted(ask, Fence::new(1, 1)));
    let out = node.step(0, Input::Written(ask, Err("the disk is full".to_owned())));
    assert_refused!(told(&out), Code::Unavailable);
    assert_eq!(released(&out), [ask]);
    assert!(node.ledger.is_empty(), "what was written of it is erased");
    assert_eq!(node.sessions.held(), 0);
    node.hold(1, connection, "a", 2);
    node.request(2, connection, Request::Bye);
    node.hang_up(2, connection);
    assert!(node.sessions.is_clean() && node.ledger.is_empty());
}

#[test]
fn a_grant_leaves_the_ledger_before_the_node_gets_it_back() {
    let mut node = TestNode::new();
    let (connection, _) = node.open(0, From::Network(1), TTL, CONNECTION);
    let ask = node.hold(0, connection, "a", 1);
    let out = node.request(1, connection, Request::Release(2, name("a"), Fence::new(1, 1)));
    let erase = out.iter().position(|it| matches!(it, Output::Erase(_))).unwrap();
    let release = out.iter().position(|it| matches!(it, Output::Release(of) if *of == ask));
    assert!(erase < release.unwrap(), "{out:?}");
    assert_eq!(told(&out), [(connection, Reply::Released(2, true))]);
}

#[test]
fn a_stop_releases_nothing_and_erases_nothing() {
    let mut node = TestNode::new();
    let (remote, _) = node.open(0, From::Network(1), TTL, CONNECTION);
    let (local, session) = node.open(0, From::Here, u32::MAX, CONNECTION);
    node.hold(0, remote, "a", 1);
    node.hold(0, local, "b", 2);
    let (caller, _) = node.call(0, lease("a", None, TTL));
    let ledger = node.ledger.clone();
    let mut out = node.step(1, Input::Stop);
    let closes = |output: &&Output| matches!(output, Output::Close(_));
    assert_eq!(out.iter().filter(closes).count(), 2);
    assert!(matches!(&answers(&out)[..], [(of, Answer::Refused(_))] if *of == caller));
    assert_refused!(
        told(&node.request(2, remote, Request::Acquire(9, ask("c")))),
        Code::Unavailable
    );
    let fence = Fence::new(1, 1);
    out.extend(node.step(2, Input::Lost { session, name: name("b"), fence }));
    out.extend(node.step(2, Input::ProcessEnded(session)));
    out.extend(node.hang_up(2, remote));
    out.extend(node.hang_up(2, local));
    out.extend(node.pass(1_000_000));
    assert!(released(&out).is_empty(), "{out:?}");
    assert_eq!((node.ledger, node.sessions.held()), (ledger, 2));
}

#[test]
fn a_drain_takes_no_lock_from_a_holder() {
    let mut node = TestNode::new();
    let (holder, _) = node.open(0, From::Network(1), TTL, CONNECTION);
    let (waiter, _) = node.open(0, From::Network(2), TTL, CONNECTION);
    let held = node.hold(0, holder, "a", 1);
    let waits = node.acquire(0, waiter, 5, "a");
    node.step(0, Input::Queued(waits));
    let out = node.step(1, Input::Drain(Duration::from_mins(1)));
    let stopping = |connection| (connection, Reply::Stopping(60_000));
    assert_eq!(told(&out)[..2], [stopping(holder), stopping(waiter)]);
    let [(_, Reply::Refused(5, why))] = &told(&out)[2..] else { panic!("{out:?}") };
    assert_eq!(why.code, Code::Unavailable);
    assert!(why.text.contains("was drained"), "it does not come back: {why}");
    assert!(released(&out).is_empty() && !drained(&out));
    assert!(out.iter().any(|it| matches!(it, Output::Abandon(of) if *of == waits)));
    assert_refused!(
        told(&node.request(2, waiter, Request::Acquire(6, ask("b")))),
        Code::Unavailable
    );
    let newcomer = node.connect(2, From::Network(3));
    let new = doorway_protocol::Opening::New { ttl_ms: TTL, life: CONNECTION };
    let out = node.hello(2, newcomer, From::Network(3), new);
    assert_eq!(refused(&out).map(|refusal| refusal.code), Some(Code::Unavailable));
    node.step(1500, Input::Heard(holder));
    node.pass(3000);
    assert_eq!(node.sessions.held(), 1, "heartbeats count until the end");
    let out = node.request(3000, holder, Request::Release(7, name("a"), Fence::new(1, 1)));
    assert!(released(&out) == [held] && drained(&out), "{out:?}");
}

#[test]
fn while_a_node_drains_its_holders_come_back_and_questions_are_answered() {
    let mut node = TestNode::new();
    let (holder, session) = node.open(0, From::Network(1), TTL, CONNECTION);
    node.hold(0, holder, "a", 1);
    node.step(1, Input::Drain(Duration::from_mins(1)));
    node.hang_up(2, holder);
    let visitor = node.connect(2, From::Here);
    let out = node.hello(2, visitor, From::Here, doorway_protocol::Opening::Visit);
    assert_eq!(refused(&out), None, "an operator can still ask");
    let out = node.resume(3, From::Network(1), session, vec![claim("a", 1)]);
    assert_eq!(welcome(&out).lost, []);
    let out = node.resume(3, From::Network(2), 77, Vec::new());
    assert_eq!(refused(&out).map(|refusal| refusal.code), Some(Code::Unavailable));
}

#[test]
fn a_drain_of_a_node_where_nothing_is_held_is_over_at_once() {
    let mut node = TestNode::new();
    let out = node.step(0, Input::Drain(Duration::from_mins(1)));
    assert!(matches!(out[..], [Output::Drained]), "{out:?}");
}

#[test]
fn a_ttl_that_cannot_be_written_is_refused_and_not_taken_over() {
    let mut node = TestNode::new();
    let (_, out) = node.call(0, lease("a", None, 1000));
    let ask = asked(&out).unwrap();
    node.grant(0, ask, 1);
    let longer = Some(Duration::from_millis(1500));
    let (call, out) = node.call(500, Call::Renew(name("a"), Fence::new(1, 1), longer));
    let [Output::Rewrite(session, ..)] = out[..] else { panic!("first the ledger: {out:?}") };
    let out = node.step(500, Input::Rewritten(session, Err("the disk is full".to_owned())));
    let [(of, Answer::Refused(refusal))] = &answers(&out)[..] else { panic!("{out:?}") };
    assert_eq!((*of, refusal.code), (call, Code::Unavailable), "{refusal}");
    node.pass(1499);
    assert_eq!(node.sessions.held(), 1);
    let out = node.pass(1500);
    assert_eq!(released(&out), [ask], "the TTL is that of the ledger");
}

#[test]
fn evidence_that_cannot_be_written_is_refused() {
    let mut node = TestNode::new();
    let (connection, session) = node.open(0, From::Here, u32::MAX, CONNECTION);
    node.hold(0, connection, "a", 1);
    let out = node.step(1, Input::HolderSeen(connection, 8));
    assert!(matches!(out[..], [Output::Rewrite(of, ..)] if of == session), "{out:?}");
    let out = node.step(1, Input::Rewritten(session, Err("the disk is full".to_owned())));
    assert_refused!(told(&out), Code::Unavailable);
    node.step(2, Input::HolderSeen(connection, 9));
    let out = node.step(2, Input::Rewritten(session, Ok(())));
    assert_eq!(told(&out), [(connection, Reply::Done(9))]);
    let out = node.step(3, Input::HolderSeen(connection, 10));
    assert_eq!(told(&out), [(connection, Reply::Done(10))], "the ledger knows it already");
}

/// The reasons that are reported: none if the ledger can be written again.
fn troubles(out: &[Output]) -> Vec<Option<&str>> {
    out.iter()
        .filter_map(|output| match output {
            Output::LedgerTrouble(why) => Some(why.as_deref()),
            _ => None,
        })
        .collect()
}

fn probes(out: &[Output]) -> usize {
    out.iter().filter(|it| matches!(it, Output::Probe)).count()
}

#[test]
fn a_ledger_in_trouble_is_probed_every_second_until_it_can_be_written() {
    let mut node = TestNode::new();
    assert_eq!(probes(&node.pass(10_000)), 0, "no probe without a reason");
    let (connection, _) = node.open(10_000, From::Here, u32::MAX, CONNECTION);
    let ask = node.acquire(10_000, connection, 5, "a");
    node.step(10_000, Input::Granted(ask, Fence::new(1, 1)));
    let full = || Err("full".to_owned());
    let out = node.step(10_000, Input::Written(ask, full()));
    assert_eq!(troubles(&out), [Some("full")]);
    assert_eq!(node.sessions.ledger_trouble(), Some((at(10_000), "full")));

    // On a full disk some records can be written, which ends nothing.
    node.hold(10_001, connection, "b", 2);
    assert!(node.sessions.ledger_trouble().is_some());
    let out = node.step(10_002, Input::LedgerFailed("read-only".to_owned()));
    assert!(troubles(&out).is_empty(), "it is reported once");
    assert_eq!(node.sessions.ledger_trouble(), Some((at(10_000), "read-only")));

    assert_eq!(probes(&node.pass(10_900)), 0);
    let out = node.pass(11_600);
    assert_eq!(probes(&out), 1);
    assert!(troubles(&node.step(11_600, Input::Probed(full()))).is_empty());
    let out = node.pass(20_000);
    assert!((4..=9).contains(&probes(&out)), "{}", probes(&out));
    let out = node.step(20_000, Input::Probed(Ok(())));
    assert_eq!(troubles(&out), [None]);
    assert_eq!(node.sessions.ledger_trouble(), None);
    assert_eq!(probes(&node.pass(30_000)), 0);
}

#[test]
fn nothing_is_probed_after_a_stop() {
    let mut node = TestNode::new();
    node.step(0, Input::LedgerFailed("full".to_owned()));
    assert!(probes(&node.pass(5000)) > 0);
    node.step(5000, Input::Stop);
    assert_eq!(probes(&node.pass(10_000)), 0);
}

/// What a client that holds `a` wants erased when it releases the lock.
fn released_unerased(node: &mut TestNode, ms: u64, holder: Connection, fence: u64) -> Vec<u32> {
    let release = Request::Release(2, name("a"), Fence::new(1, fence));
    let out = node.step_unerased(ms, Input::Request(holder, release));
    assert_eq!(told(&out), [(holder, Reply::Released(2, true))]);
    assert!(released(&out).is_empty(), "the ledger has it: {out:?}");
    let erase = |output: &Output| match output {
        Output::Erase(place) => Some(*place),
        _ => None,
    };
    out.iter().filter_map(erase).collect()
}

#[test]
fn a_grant_whose_record_cannot_be_erased_goes_back_to_the_node_later() {
    let mut node = TestNode::new();
    let full = || Err("full".to_owned());
    let (holder, _) = node.open(0, From::Here, u32::MAX, CONNECTION);
    let first = node.hold(0, holder, "a", 1);
    let places = released_unerased(&mut node, 1, holder, 1);
    let mut out = Vec::new();
    for place in &places {
        out.extend(node.step_unerased(1, Input::Erased(*place, full())));
    }
    assert_eq!(troubles(&out), [Some("full")]);
    assert!(released(&out).is_empty(), "{out:?}");

    // Another grant, whose record can be erased, perhaps at the same place.
    let second = node.hold(2, holder, "a", 2);
    let mut out = Vec::new();
    for place in released_unerased(&mut node, 3, holder, 2) {
        out.extend(node.step_unerased(3, Input::Erased(place, Ok(()))));
    }
    assert_eq!(released(&out), [second]);

    // The end of a record of which nothing is known yet is not reported by a probe.
    let third = node.hold(4, holder, "a", 3);
    let places = released_unerased(&mut node, 5, holder, 3);
    assert_eq!(released(&node.step_unerased(6, Input::AllErased)), [first]);
    let out = node.step_unerased(6, Input::Probed(full()));
    assert!(released(&out).is_empty(), "{out:?}");
    for place in places {
        assert!(released(&node.step_unerased(7, Input::Erased(place, full()))).is_empty());
    }
    assert_eq!(released(&node.step_unerased(1000, Input::AllErased)), [third]);
    assert!(released(&node.step_unerased(2000, Input::AllErased)).is_empty());
}

#[test]
fn a_drain_is_not_over_before_the_records_of_all_grants_are_erased() {
    let full = || Err("full".to_owned());
    let mut node = TestNode::new();
    let (holder, _) = node.open(0, From::Here, u32::MAX, CONNECTION);
    let held = node.hold(0, holder, "a", 1);
    node.step(1, Input::Drain(Duration::from_mins(1)));
    for place in released_unerased(&mut node, 2, holder, 1) {
        let out = node.step_unerased(2, Input::Erased(place, full()));
        assert!(released(&out).is_empty() && !drained(&out), "{out:?}");
    }
    node.step_unerased(3, Input::HangUp { connection: holder, closed: true });
    assert_eq!((node.sessions.len(), node.sessions.held()), (0, 0));
    assert!(!node.sessions.leaves_nothing() && !node.sessions.is_drained());
    let out = node.step_unerased(2000, Input::AllErased);
    assert!(released(&out) == [held] && drained(&out), "{out:?}");
    assert!(node.sessions.leaves_nothing() && node.sessions.is_drained());
    assert!(!drained(&node.step_unerased(2000, Input::Probed(Ok(())))), "it is said once");

    // A record that is erased at once.
    let mut node = TestNode::new();
    let (holder, _) = node.open(0, From::Here, u32::MAX, CONNECTION);
    node.hold(0, holder, "a", 1);
    node.step(1, Input::Drain(Duration::from_mins(1)));
    let [place] = released_unerased(&mut node, 2, holder, 1)[..] else { panic!("one record") };
    let out = node.step_unerased(2, Input::Erased(place, Ok(())));
    assert!(released(&out).len() == 1 && drained(&out), "{out:?}");
}

/// The decision is a part of the state: what a search takes for equal behaves equally.
#[test]
fn a_grant_that_waits_for_its_record_is_a_part_of_the_state() {
    let hash = |node: &TestNode| FxBuildHasher.hash_one(&node.sessions);
    let release = |erased: Result<(), String>| {
        let mut node = TestNode::new();
        let (holder, _) = node.open(0, From::Here, u32::MAX, CONNECTION);
        node.hold(0, holder, "a", 1);
        // Another record could not be erased before, so both ledgers are in trouble.
        node.step(0, Input::LedgerFailed("full".to_owned()));
        for place in released_unerased(&mut node, 0, holder, 1) {
            node.step_unerased(0, Input::Erased(place, erased.clone()));
        }
        hash(&node)
    };
    assert_ne!(release(Ok(())), release(Err("full".to_owned())));
}
