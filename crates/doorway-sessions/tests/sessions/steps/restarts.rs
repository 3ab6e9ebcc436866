//! What the next process makes of the ledger.

use doorway_protocol::{Code, DirectoryId, Fence, NodeIdentity, Reply, Request};
use doorway_sessions::Evidence;

use super::*;

#[test]
fn a_session_of_the_ledger_goes_on_and_everything_else_is_served_at_once() {
    let mut node = TestNode::new();
    let (connection, session) = node.open(0, From::Network(1), TTL, CONNECTION);
    node.hold(0, connection, "a", 1);
    let (mut node, out) = node.restart(100, |_| {});
    assert!(serves(&out));
    let ask = asked(&out).expect("the lock is held again");
    node.step(100, Input::Granted(ask, Fence::new(1, 1)));
    let out = node.resume(2000, From::Network(1), session, vec![claim("a", 1)]);
    assert_eq!(welcome(&out).lost, []);
    assert_eq!(node.sessions.held(), 1);
    let stranger = node.resume(2000, From::Network(2), session, vec![claim("a", 1)]);
    assert_eq!(refused(&stranger).map(|refusal| refusal.code), Some(Code::Gone));
    let out = node.pass(4000);
    assert_eq!(released(&out), [ask], "its TTL begins with its client's last message");
}

#[test]
fn a_session_of_a_process_is_watched_and_ends_with_the_process() {
    let mut node = TestNode::new();
    let (connection, session) = node.open(0, From::Here, u32::MAX, CONNECTION);
    node.hold(0, connection, "a", 1);
    let (mut node, out) = node.restart(100, |_| {});
    let own = (session, Evidence::Process(PROCESS));
    let watch = |it: &Output| matches!(it, Output::Watch(of, who) if (*of, *who) == own);
    assert!(out.iter().any(watch), "{out:?}");
    let ask = asked(&out).unwrap();
    node.step(100, Input::Granted(ask, Fence::new(1, 1)));
    node.pass(100_000_000);
    assert_eq!(node.sessions.held(), 1, "the process may be suspended");
    let out = node.step(100_000_000, Input::ProcessEnded(session));
    assert_eq!(released(&out), [ask]);
    assert!(node.sessions.is_clean() && node.ledger.is_empty());
}

#[test]
fn a_process_of_another_boot_is_gone() {
    let mut node = TestNode::new();
    let (local, _) = node.open(0, From::Here, u32::MAX, CONNECTION);
    let (remote, _) = node.open(0, From::Network(1), TTL, CONNECTION);
    node.hold(0, local, "a", 1);
    node.hold(0, remote, "b", 2);
    let (node, out) = node.restart(100, |former| former.same_boot = false);
    let reclaims = out.iter().filter(|it| matches!(it, Output::Reclaim { .. })).count();
    assert_eq!((reclaims, node.sessions.len()), (1, 1));
}

#[test]
fn clients_of_a_ledger_of_version_0_1_0_claim_what_they_held() {
    let mut node = TestNode::new();
    let (one, first) = node.open(0, From::Network(1), TTL, CONNECTION);
    let (two, second) = node.open(0, From::Network(2), TTL, CONNECTION);
    node.hold(0, one, "a", 1);
    node.hold(0, two, "b", 2);
    node.ledger.retain(|_, record| !matches!(record, Record::Grant(_)));
    let (mut node, out) = node.restart(100, |former| former.complete = false);
    assert!(!serves(&out));
    assert_eq!(node.sessions.reclaiming(), Some(at(2100)));
    let out = node.resume(200, From::Network(1), first, vec![claim("a", 1)]);
    assert_eq!(welcome(&out).lost, [], "the client is believed");
    let out = node.grant(200, asked(&out).unwrap(), 1);
    assert_eq!(told(&out), [], "it knows");
    assert!(!serves(&node.pass(1000)), "one is missing");
    let out = node.resume(1000, From::Network(2), second, vec![claim("b", 2)]);
    node.grant(1000, asked(&out).unwrap(), 2);
    let out = node.pass(1600);
    assert!(serves(&out) && out.iter().any(|it| matches!(it, Output::Settled)));
    let out = node.resume(1700, From::Network(2), second, vec![claim("b", 2), claim("c", 3)]);
    assert_eq!(welcome(&out).lost, [claim("c", 3)], "claims are not believed any more");
    assert_eq!(node.sessions.held(), 2);
}

#[test]
fn a_process_without_a_ttl_does_not_delay_a_node_whose_ledger_is_damaged() {
    let mut node = TestNode::new();
    let (connection, _) = node.open(0, From::Here, u32::MAX, CONNECTION);
    node.hold(0, connection, "a", 1);
    let (node, _) = node.restart(100, |former| former.lacking = true);
    assert_eq!(node.sessions.reclaiming(), Some(at(100 + u64::from(TTL))));
}

#[test]
fn of_two_grants_of_a_lock_in_the_ledger_the_later_one_counts() {
    let mut node = TestNode::new();
    let (one, _) = node.open(0, From::Network(1), TTL, CONNECTION);
    let (two, _) = node.open(0, From::Network(2), TTL, CONNECTION);
    node.hold(0, one, "a", 1);
    let grant = node.ledger.values().find(|record| matches!(record, Record::Grant(_)));
    let stale = grant.cloned().expect("the grant");
    node.hold(0, one, "b", 3);
    node.request(0, one, Request::Release(9, name("a"), Fence::new(1, 1)));
    node.ledger.insert(50, stale); // It could not be erased.
    let ask = node.acquire(0, two, 5, "a");
    node.grant(0, ask, 2);
    let (_, out) = node.restart(100, |_| {});
    let reclaimed = out.iter().filter_map(|it| match it {
        Output::Reclaim { fence, .. } => Some(*fence),
        _ => None,
    });
    let fences = [3, 2, 1].map(|fence| Fence::new(1, fence));
    assert_eq!(reclaimed.collect::<Vec<_>>(), fences, "the node refuses the last one");
}

#[test]
fn a_damaged_ledger_grants_nothing_before_the_longest_ttl_is_over() {
    let damaged = |former: &mut LedgerContents| {
        former.damaged = true;
        former.lacking = true;
        former.ttl = Duration::from_secs(5);
    };
    let (mut node, out) = TestNode::new().restart(0, damaged);
    assert!(!serves(&out));
    let out = node.resume(10, From::Network(1), 7, vec![claim("a", 1)]);
    assert_eq!(welcome(&out).lost, [], "a client of another machine is believed");
    let ask = asked(&out).expect("its lock is held again");
    node.grant(10, ask, 1);
    let mut out = node.pass(4000);
    assert!(!serves(&out) && released(&out) == [ask], "a TTL passes meanwhile");
    out = node.pass(4999);
    assert!(!serves(&out));
    out = node.pass(5000);
    assert!(serves(&out));
}

#[test]
fn a_node_that_drains_goes_on_to_wait_for_former_holders_and_then_serves() {
    let mut node = TestNode::new();
    let (connection, restored) = node.open(0, From::Network(1), TTL, CONNECTION);
    node.hold(0, connection, "a", 1);
    let (mut node, out) = node.restart(100, |former| former.lacking = true);
    node.step(100, Input::Granted(asked(&out).unwrap(), Fence::new(1, 1)));
    let out = node.step(200, Input::Drain(Duration::from_secs(1)));
    assert!(!serves(&out) && !drained(&out), "{out:?}");
    assert_eq!(node.sessions.reclaiming(), Some(at(2100)));
    // The ledger lacks one grant of a session that it has, and all of another session.
    for (from, session, held) in [
        (From::Network(1), restored, vec![claim("a", 1), claim("b", 2)]),
        (From::Network(2), 77, vec![claim("c", 3)]),
    ] {
        let out = node.resume(300, from, session, held.clone());
        assert_eq!(welcome(&out).lost, [], "the client is believed");
        node.grant(300, asked(&out).expect("a lock is held again"), held.last().unwrap().request);
    }
    assert_eq!(node.sessions.held(), 3);
    let out = node.resume(400, From::Here, 78, vec![claim("d", 4)]);
    assert_eq!(refused(&out).map(|refusal| refusal.code), Some(Code::Unavailable));
    let out = node.pass(2100);
    assert!(serves(&out) && !drained(&out), "the other nodes wait for that: {out:?}");
    assert_eq!(node.sessions.reclaiming(), None);
    let out = node.resume(2200, From::Network(2), 79, vec![claim("e", 5)]);
    assert_eq!(refused(&out).map(|refusal| refusal.code), Some(Code::Unavailable));
    let out = node.pass(3000);
    assert!(drained(&out) && node.sessions.held() == 0, "their clients are silent: {out:?}");
}

#[test]
fn a_drain_is_not_over_while_former_holders_may_come_back() {
    let (mut node, _) = TestNode::new().restart(0, |former| former.lacking = true);
    let out = node.step(10, Input::Drain(Duration::from_secs(1)));
    assert!(!drained(&out) && !node.sessions.is_drained() && !node.sessions.leaves_nothing());
    let out = node.pass(1999);
    assert!(!serves(&out) && !drained(&out), "{out:?}");
    let out = node.pass(2000);
    assert!(serves(&out) && drained(&out), "{out:?}");
    assert!(node.sessions.is_drained() && node.sessions.leaves_nothing());
    assert!(!drained(&node.pass(10_000)), "it is said once");
}

/// What a node with a damaged ledger answers to a client that claims a lock of session 7.
fn claims_at_a_damaged_node(node: Option<NodeIdentity>) -> Result<Vec<Claim>, Code> {
    let lacking = |former: &mut LedgerContents| (former.lacking, former.last) = (true, 1000);
    let (mut damaged, _) = TestNode::new().restart(0, lacking);
    let connection = damaged.connect(10, From::Network(1));
    let claims = (vec![claim("a", 1)], vec![]);
    let out = damaged.resume_named(10, connection, From::Network(1), node, 7, claims);
    match refused(&out) {
        Some(refusal) => Err(refusal.code),
        None => Ok(welcome(&out).lost),
    }
}

#[test]
fn a_node_with_a_damaged_ledger_believes_only_the_clients_of_its_own_sessions() {
    let own = shell::identity();
    assert_eq!(claims_at_a_damaged_node(Some(own.clone())), Ok(vec![]));
    let another = NodeIdentity { name: "two".to_owned(), ..own.clone() };
    assert_eq!(
        claims_at_a_damaged_node(Some(another)),
        Err(Code::Elsewhere),
        "the other node may still keep the session"
    );
    let emptied = NodeIdentity { directory: DirectoryId([8; 16]), ..own };
    assert_eq!(
        claims_at_a_damaged_node(Some(emptied)),
        Err(Code::Gone),
        "this node kept it, and has lost its directory"
    );
    assert_eq!(claims_at_a_damaged_node(None), Err(Code::Gone), "a client of version 0.1.0");
}

#[test]
fn a_client_that_does_not_name_the_node_of_its_session_goes_on_without_claims() {
    let lacking = |former: &mut LedgerContents| (former.lacking, former.last) = (true, 1000);
    let (mut node, _) = TestNode::new().restart(0, lacking);
    let from = From::Network(1);
    for held in [vec![], vec![claim("a", 1)]] {
        let connection = node.connect(10, from);
        let out = node.resume_named(10, connection, from, None, 7, (held.clone(), vec![3]));
        assert_eq!(welcome(&out).lost, held, "nothing is believed");
        assert_eq!(asked(&out), None);
    }
}

#[test]
fn the_secret_of_a_session_in_the_ledger_proves_that_the_session_is_ours() {
    let renamed = NodeIdentity { name: "before".to_owned(), ..shell::identity() };
    for named in [None, Some(renamed)] {
        let mut node = TestNode::new();
        let (connection, session) = node.open(0, From::Network(1), TTL, CONNECTION);
        node.hold(0, connection, "a", 1);
        let (mut node, out) = node.restart(100, |_| {});
        node.step(100, Input::Granted(asked(&out).unwrap(), Fence::new(1, 1)));
        let connection = node.connect(200, From::Network(1));
        let claims = (vec![claim("a", 1)], vec![]);
        let out = node.resume_named(200, connection, From::Network(1), named, session, claims);
        assert_eq!(welcome(&out).lost, []);
    }
}

/// Found by the simulation with seed 233628.
#[test]
fn what_was_broken_while_claims_are_believed_cannot_be_claimed_again() {
    let mut node = TestNode::new();
    let (connection, session) = node.open(0, From::Network(1), TTL, CONNECTION);
    node.hold(0, connection, "a", 1);
    let (mut node, out) = node.restart(100, |former| former.lacking = true);
    node.step(100, Input::Granted(asked(&out).unwrap(), Fence::new(1, 1)));
    let (operator, out) = node.break_lock(200, "a", Fence::new(1, 1));
    assert_eq!(answers(&out), [(operator, Answer::Broken(1))]);
    let out = node.resume(300, From::Network(1), session, vec![claim("a", 1)]);
    assert_eq!(asked(&out), None, "the lock is not held again");
    assert_eq!(welcome(&out).lost, [claim("a", 1)]);
}

/// Found by the simulation with seed 725324.
#[test]
fn a_claim_that_cannot_be_written_is_held_and_keeps_the_ledger_unsettled() {
    let lacking = |former: &mut LedgerContents| former.lacking = true;
    let settles = |out: &[Output]| out.iter().any(|it| matches!(it, Output::Settled));
    let (mut node, _) = TestNode::new().restart(0, lacking);
    let connection = node.connect(10, From::Network(1));
    let out = node.resume_over(10, connection, From::Network(1), 7, vec![claim("a", 1)], vec![]);
    let ask = asked(&out).expect("the client is believed");
    node.step(10, Input::Granted(ask, Fence::new(1, 1)));
    let out = node.step(10, Input::Written(ask, Err("the disk is full".to_owned())));
    assert!(released(&out).is_empty() && told(&out).is_empty(), "the client is inside: {out:?}");
    assert_eq!(node.sessions.held(), 1);
    assert!(node.ledger.is_empty(), "what was written of it is erased");
    let mut out = Vec::new();
    for ms in (1000..=4000).step_by(1000) {
        node.step(ms, Input::Heard(connection));
        out.extend(node.pass(ms));
    }
    assert!(serves(&out) && !settles(&out), "the next process has to believe the client too");
    let mut stopped = node.sessions.clone();
    stopped.step(at(4050), Input::Stop, &mut Vec::new());
    assert!(!stopped.is_settled(), "also if this one stops gracefully");
    node.request(4100, connection, Request::Release(9, name("a"), Fence::new(1, 1)));
    assert!(settles(&node.pass(5000)) && node.sessions.is_settled(), "nothing is missing any more");
}

#[test]
fn a_session_that_claims_two_locks_is_written_once() {
    let lacking = |former: &mut LedgerContents| former.lacking = true;
    let (mut node, _) = TestNode::new().restart(0, lacking);
    let out = node.resume(10, From::Network(1), 7, vec![claim("a", 1), claim("b", 2)]);
    let asks: Vec<_> = out.iter().filter_map(|it| asked(std::slice::from_ref(it))).collect();
    assert_eq!(asks.len(), 2);
    // The node answers both before anything is written.
    for (ask, fence) in asks.iter().zip(1..) {
        node.step(10, Input::Granted(*ask, Fence::new(1, fence)));
    }
    let written_twice = contents(node.ledger.clone());
    for ask in &asks {
        node.step(10, Input::Written(*ask, Ok(())));
    }
    let sessions = |node: &TestNode| {
        node.ledger.values().filter(|it| matches!(it, Record::Session(_))).count()
    };
    assert_eq!((node.ledger.len(), sessions(&node)), (3, 1));
    node.pass(u64::from(TTL) + 10);
    assert!(node.ledger.is_empty(), "{:?}", node.ledger);
    // If the process ends meanwhile, the next one finds the session twice.
    let (node, out) = node.restart(3000, |former| former.records = written_twice.records);
    let reclaims = out.iter().filter(|it| matches!(it, Output::Reclaim { .. })).count();
    let erased = out.iter().filter(|it| matches!(it, Output::Erase(_))).count();
    assert_eq!((node.sessions.len(), reclaims, erased), (1, 2, 1));
}

#[test]
fn what_cannot_be_held_again_is_lost() {
    let mut node = TestNode::new();
    let (connection, session) = node.open(0, From::Network(1), TTL, CONNECTION);
    node.hold(0, connection, "a", 1);
    let (mut node, out) = node.restart(100, |_| {});
    let text = "another client holds it".to_owned();
    let refusal = Refusal { code: Code::Gone, text };
    node.step(100, Input::Refused(asked(&out).unwrap(), refusal));
    let out = node.resume(200, From::Network(1), session, vec![claim("a", 1)]);
    assert_eq!(welcome(&out).lost, [claim("a", 1)]);
    assert_eq!(node.sessions.held(), 0);
}

#[test]
fn a_release_that_was_not_heard_is_made_up_for() {
    let mut node = TestNode::new();
    let (connection, session) = node.open(0, From::Network(1), TTL, CONNECTION);
    let held = node.hold(0, connection, "a", 1);
    let out = node.resume(10, From::Network(1), session, Vec::new());
    assert_eq!(released(&out), [held], "the client does not speak of it any more");
    assert!(out.iter().any(|it| matches!(it, Output::Close(old) if *old == connection)));
    let over = node.request(11, connection, Request::Acquire(2, ask("b")));
    assert!(over.is_empty(), "the session goes on over another connection");
}

#[test]
fn a_broken_lock_is_lost_and_released() {
    let mut node = TestNode::new();
    let (connection, _) = node.open(0, From::Network(1), TTL, CONNECTION);
    let held = node.hold(0, connection, "a", 1);
    let (lock, fence) = (name("a"), Fence::new(1, 1));
    let (operator, out) = node.break_lock(1, "a", fence);
    let lost = Reply::Lost(lock, fence, "broken by uid 1000".to_owned());
    assert_eq!((told(&out), released(&out)), (vec![(connection, lost)], vec![held]));
    assert_eq!(answers(&out), [(operator, Answer::Broken(1))]);
    let (operator, out) = node.break_lock(2, "a", fence);
    assert_eq!(answers(&out), [(operator, Answer::Broken(0))]);
}

#[test]
fn a_client_without_a_connection_learns_of_a_broken_lock_when_it_resumes() {
    let mut node = TestNode::new();
    let (connection, session) = node.open(0, From::Network(1), TTL, CONNECTION);
    let held = node.hold(0, connection, "a", 1);
    node.hold(0, connection, "b", 2);
    let (other, _) = node.open(0, From::Network(2), TTL, CONNECTION);
    node.step(1, Input::HangUp { connection, closed: false });
    let fence = Fence::new(1, 1);
    let (_, out) = node.break_lock(2, "a", fence);
    assert_eq!((told(&out), released(&out)), (Vec::new(), vec![held]));
    // Another client may have the lock already when the first one is back.
    node.hold(3, other, "a", 3);
    let out = node.resume(4, From::Network(1), session, vec![claim("a", 1), claim("b", 2)]);
    assert_eq!(welcome(&out).lost, [claim("a", 1)]);
    assert_eq!(node.sessions.held(), 2);
}

#[test]
fn a_claim_with_the_number_of_a_waiting_request_does_not_displace_that_request() {
    let node = TestNode::new();
    let (mut node, _) = node.restart(0, |former| former.lacking = true);
    let connection = node.connect(0, From::Network(1));
    node.resume_over(0, connection, From::Network(1), 5, Vec::new(), Vec::new());
    let waits = node.acquire(1, connection, 7, "a");
    node.step(1, Input::Queued(waits));
    node.step(2, Input::HangUp { connection, closed: false });
    let connection = node.connect(3, From::Network(1));
    let claims = vec![Claim { request: 7, ..claim("b", 1) }, claim("c", 2)];
    let out = node.resume_over(3, connection, From::Network(1), 5, claims.clone(), vec![7]);
    assert_eq!(welcome(&out).lost, claims[..1], "the number belongs to another request");
    let reclaimed = asked(&out).expect("the other claim is good");
    node.grant(3, reclaimed, 2);
    let out = node.grant(4, waits, 3);
    assert_eq!(told(&out), [(connection, Reply::Granted(7, Fence::new(1, 3)))]);
    let out = node.request(5, connection, Request::Bye);
    assert_eq!(released(&out).len(), 2, "{out:?}");
    node.hang_up(5, connection);
    assert!(node.sessions.is_clean() && node.ledger.is_empty());
}
