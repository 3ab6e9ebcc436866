//! Requests over HTTP.

use doorway_protocol::{Code, Fence};

use super::*;

/// The fences of answers.
fn leased(out: &[Output]) -> Vec<(Connection, Fence)> {
    let fence = |(connection, answer)| match answer {
        Answer::Leased(lease) => (connection, lease.fence),
        other => panic!("{other:?}"),
    };
    answers(out).into_iter().map(fence).collect()
}

#[test]
fn a_repeated_request_keeps_its_place_and_is_granted_once() {
    let mut node = TestNode::new();
    let (first, out) = node.call(0, lease("a", Some("k"), 1000));
    let ask = asked(&out).unwrap();
    node.step(0, Input::Queued(ask));
    node.step(500, Input::HangUp { connection: first, closed: true });
    let (second, out) = node.call(600, lease("a", Some("k"), 1000));
    assert!(asked(&out).is_none(), "the node is not asked again: {out:?}");
    let (third, _) = node.call(700, lease("a", Some("k"), 1000));
    let fence = Fence::new(1, 1);
    let out = node.grant(800, ask, 1);
    assert_eq!(leased(&out), [(second, fence), (third, fence)]);
    let (late, out) = node.call(900, lease("a", Some("k"), 1000));
    assert_eq!(leased(&out), [(late, fence)], "it is still held");
    let (_, out) = node.call(1000, Call::Release(name("a"), fence));
    assert!(matches!(answers(&out)[..], [(_, Answer::Released(true))]) && released(&out) == [ask]);
    let (_, out) = node.call(1100, lease("a", Some("k"), 1000));
    assert!(asked(&out).is_none(), "a late copy gets nothing");
    assert!(matches!(&answers(&out)[..], [(_, Answer::Refused(it))] if it.code == Code::Gone));
    let (_, out) = node.call(1200, lease("b", Some("k"), 1000));
    assert!(matches!(&answers(&out)[..], [(_, Answer::Different(_))]), "{out:?}");
    assert!(node.sessions.is_clean());
    node.pass(12_000);
    let (_, out) = node.call(12_000, lease("a", Some("k"), 1000));
    assert!(asked(&out).is_some(), "the request is forgotten by now");
}

#[test]
fn a_repeated_request_finds_its_grant_after_a_crash() {
    let mut node = TestNode::new();
    let (_, out) = node.call(0, lease("a", Some("k"), 2000));
    node.grant(0, asked(&out).unwrap(), 1);
    let (mut node, out) = node.restart(100, |_| {});
    node.step(100, Input::Granted(asked(&out).unwrap(), Fence::new(1, 1)));
    let (again, out) = node.call(200, lease("a", Some("k"), 2000));
    assert_eq!(leased(&out), [(again, Fence::new(1, 1))]);
    let (_, out) = node.call(300, Call::Withdraw(name("a"), "k".to_owned()));
    assert!(matches!(answers(&out)[..], [(_, Answer::Withdrawn(true))]));
    assert!(node.sessions.is_clean() && node.ledger.is_empty());
}

#[test]
fn a_lease_whose_client_waits_does_not_expire() {
    let mut node = TestNode::new();
    let (caller, out) = node.call(0, lease("a", Some("k"), 1000));
    let ask = asked(&out).unwrap();
    node.step(0, Input::Queued(ask));
    node.pass(60_000);
    assert_eq!(node.sessions.len(), 1);
    let out = node.step(60_000, Input::CallTimedOut(caller));
    assert!(matches!(&answers(&out)[..], [(_, Answer::Refused(it))] if it.code == Code::NotFree));
    node.pass(60_999);
    assert_eq!(node.sessions.len(), 1, "the request keeps its place for a TTL");
    let out = node.pass(61_000);
    assert!(out.iter().any(|it| matches!(it, Output::Abandon(of) if *of == ask)));
    assert!(node.sessions.is_clean());
}

#[test]
fn the_lease_of_a_call_that_waited_begins_with_its_grant() {
    let mut node = TestNode::new();
    let (caller, out) = node.call(0, lease("a", None, 1000));
    let ask = asked(&out).unwrap();
    node.step(0, Input::Queued(ask));
    node.pass(60_000);
    let out = node.grant(60_000, ask, 1);
    assert_eq!(leased(&out), [(caller, Fence::new(1, 1))]);
    node.hang_up(60_000, caller);
    node.pass(60_999);
    assert_eq!(node.sessions.held(), 1, "the client was told that it has a whole TTL");
    node.pass(61_000);
    assert!(node.sessions.is_clean());
}

#[test]
fn a_request_without_a_key_ends_with_its_call() {
    let mut node = TestNode::new();
    for end in [Input::CallTimedOut as fn(Connection) -> Input, |connection| Input::HangUp {
        connection,
        closed: true,
    }] {
        let (caller, out) = node.call(0, lease("a", None, 1000));
        let ask = asked(&out).unwrap();
        node.step(0, Input::Queued(ask));
        let out = node.step(1, end(caller));
        assert!(out.iter().any(|it| matches!(it, Output::Abandon(of) if *of == ask)));
        assert!(node.sessions.is_clean());
    }
}

#[test]
fn a_grant_that_comes_after_the_request_was_withdrawn_is_given_back() {
    let mut node = TestNode::new();
    let (caller, out) = node.call(0, lease("a", Some("k"), 1000));
    let ask = asked(&out).unwrap();
    node.step(0, Input::Queued(ask));
    let (_, out) = node.call(1, Call::Withdraw(name("a"), "k".to_owned()));
    let answers = answers(&out);
    let [(of, Answer::Refused(_)), (_, Answer::Withdrawn(true))] = &answers[..] else {
        panic!("{answers:?}");
    };
    assert_eq!(*of, caller);
    assert_eq!(released(&node.step(2, Input::Granted(ask, Fence::new(1, 1)))), [ask]);
    assert!(node.sessions.is_clean());
}

/// A request for a lock with a lease that has an owner.
fn owned(lock: &str, owner: &str) -> Call {
    let Call::Acquire(mut lease) = lease(lock, None, 2000) else { unreachable!() };
    lease.key = Some(LeaseKey::Owner(owner.to_owned()));
    Call::Acquire(lease)
}

#[test]
fn an_owner_gets_a_lock_once_and_again_after_its_release() {
    let mut node = TestNode::new();
    let (first, out) = node.call(0, owned("a", "me"));
    let out = node.grant(0, asked(&out).unwrap(), 1);
    assert_eq!(leased(&out), [(first, Fence::new(1, 1))]);
    let (_, out) = node.call(100, owned("a", "me"));
    assert!(asked(&out).is_none(), "another process may use the same name: {out:?}");
    assert!(matches!(&answers(&out)[..], [(_, Answer::Refused(it))] if it.code == Code::NotFree));
    let (_, out) = node.call(200, Call::Withdraw(name("a"), "you".to_owned()));
    assert!(matches!(answers(&out)[..], [(_, Answer::Withdrawn(false))]));
    let (_, out) = node.call(300, Call::Withdraw(name("a"), "me".to_owned()));
    assert!(matches!(answers(&out)[..], [(_, Answer::Withdrawn(true))]));
    let (_, out) = node.call(400, owned("a", "me"));
    assert!(asked(&out).is_some(), "a name may be used again at once: {out:?}");
}

#[test]
fn an_owner_is_known_after_a_crash() {
    let mut node = TestNode::new();
    let (_, out) = node.call(0, owned("a", "me"));
    node.grant(0, asked(&out).unwrap(), 1);
    let (mut node, out) = node.restart(100, |_| {});
    node.step(100, Input::Granted(asked(&out).unwrap(), Fence::new(1, 1)));
    let (_, out) = node.call(200, owned("a", "me"));
    assert!(matches!(&answers(&out)[..], [(_, Answer::Refused(it))] if it.code == Code::NotFree));
    let (_, out) = node.call(300, Call::Withdraw(name("a"), "me".to_owned()));
    assert!(matches!(answers(&out)[..], [(_, Answer::Withdrawn(true))]));
    assert!(node.sessions.is_clean() && node.ledger.is_empty());
}

#[test]
fn an_owner_that_hangs_up_before_the_grant_holds_nothing() {
    let mut node = TestNode::new();
    let (first, out) = node.call(0, owned("a", "me"));
    node.step(0, Input::Queued(asked(&out).unwrap()));
    node.step(100, Input::HangUp { connection: first, closed: true });
    assert!(node.sessions.is_clean());
}

/// A request for a lease that its client never renews.
fn unattended(lock: &str) -> Call {
    let Call::Acquire(mut asked) = lease(lock, None, u32::MAX) else { panic!("a request") };
    asked.unattended = true;
    Call::Acquire(asked)
}

#[test]
fn an_unattended_lease_has_a_limit_of_its_own_and_outlives_a_crash() {
    let limits = setup().limits;
    let (other, longest) = (limits.ttl.as_millis() as u64, limits.terraform_ttl.as_millis() as u64);
    assert!(longest > other, "otherwise this shows nothing");
    let mut node = TestNode::new();
    let (_, out) = node.call(0, unattended("a"));
    let out = node.grant(0, asked(&out).unwrap(), 1);
    assert!(
        matches!(&answers(&out)[..], [(_, Answer::Leased(it))] if it.ttl == limits.terraform_ttl)
    );
    let (_, out) = node.call(0, lease("b", None, u32::MAX));
    node.grant(0, asked(&out).unwrap(), 2);
    node.pass(longest - 1);
    assert_eq!(node.sessions.held(), 1, "the other lease has ended");
    let (mut node, out) = node.restart(longest, |_| {});
    node.step(longest, Input::Granted(asked(&out).unwrap(), Fence::new(1, 1)));
    node.pass(2 * longest - 1);
    assert_eq!(node.sessions.held(), 1, "its whole time begins again");
    node.pass(2 * longest);
    assert!(node.sessions.is_clean() && node.ledger.is_empty());
}
