//! Grants that clients keep until somebody else wants the lock.

use doorway_protocol::{Ask, Code, Fence, Life, Mode, Reply, Request, Wait};
use doorway_sessions::{Input, Output};

use super::{
    AskId, CONNECTION, Connection, From, TTL, TestNode, answers, ask, asked, assert_refused, claim,
    lease, name, released, told,
};

fn fence(clock: u64) -> Fence {
    Fence::new(1, clock)
}

/// The numbers that the node is asked to reserve, for a client that wants to keep a lock.
fn numbers(out: &[Output]) -> u32 {
    let numbers = out.iter().find_map(|output| match output {
        Output::Acquire { numbers, .. } => Some(*numbers),
        _ => None,
    });
    numbers.expect("the node is asked")
}

impl TestNode {
    /// Keep the lock `a` with a fence of clock 5.
    fn keep(&mut self, ms: u64, connection: Connection) -> AskId {
        let out = self.request(ms, connection, Request::Keep(1, ask("a")));
        let (ask, more) = (asked(&out).expect("the node is asked"), numbers(&out));
        assert!(more >= 100, "{more}");
        let out = self.step(ms, Input::GrantedToKeep(ask, fence(5), more));
        assert!(matches!(out[..], [Output::Write(..)]), "{out:?}");
        let out = self.step(ms, Input::Written(ask, Ok(())));
        assert_eq!(told(&out), [(connection, Reply::Kept { number: 1, fence: fence(5), more })]);
        ask
    }

    fn client(&mut self) -> Connection {
        self.open(0, From::Here, TTL, CONNECTION).0
    }
}

fn wanted(connection: Connection) -> Vec<(Connection, Reply)> {
    vec![(connection, Reply::Wanted(name("a"), fence(5)))]
}

#[test]
fn a_keeper_is_told_once_that_its_lock_is_wanted() {
    let mut node = TestNode::new();
    let (keeper, other) = (node.client(), node.client());
    let kept = node.keep(0, keeper);
    let out = node.request(1, other, Request::Acquire(1, ask("a")));
    assert_eq!(told(&out), wanted(keeper));
    let waits = asked(&out).unwrap();
    node.step(1, Input::Queued(waits));
    let out = node.request(2, other, Request::Acquire(2, ask("a")));
    assert_eq!(told(&out), [], "it was told before");
    node.step(2, Input::Queued(asked(&out).unwrap()));
    assert_eq!(told(&node.step(2, Input::Wanted(name("a")))), []);
    // It is outside, and releases the lock.
    let out = node.request(3, keeper, Request::Release(7, name("a"), fence(5)));
    assert_eq!(released(&out), [kept]);
    assert_eq!(told(&out), [(keeper, Reply::Released(7, true))]);
    let out = node.grant(3, waits, 2000);
    assert_eq!(told(&out), [(other, Reply::Granted(1, fence(2000)))]);
}

#[test]
fn clients_of_other_nodes_and_of_other_protocols_want_it_too() {
    let mut node = TestNode::new();
    let keeper = node.client();
    node.keep(0, keeper);
    assert_eq!(told(&node.step(1, Input::Wanted(name("b")))), []);
    assert_eq!(told(&node.step(1, Input::Wanted(name("a")))), wanted(keeper));
    let mut node = TestNode::new();
    let keeper = node.client();
    node.keep(0, keeper);
    let (_, out) = node.call(1, lease("a", None, TTL));
    assert_eq!((told(&out), numbers(&out)), (wanted(keeper), 0), "calls never keep a lock");
}

#[test]
fn a_request_that_does_not_wait_gets_a_lock_that_is_kept_outside() {
    let mut node = TestNode::new();
    let (keeper, other) = (node.client(), node.client());
    let kept = node.keep(0, keeper);
    let hurried = Ask { wait: Wait::No, ..ask("a") };
    let out = node.request(1, other, Request::Acquire(1, hurried.clone()));
    let Some(Output::Acquire { ask: tried, wait, .. }) = out.last() else { panic!("{out:?}") };
    assert!(matches!(wait, Wait::Ms(_)), "the keeper has to answer first: {wait:?}");
    node.step(1, Input::Queued(*tried));
    let out = node.request(2, keeper, Request::Release(7, name("a"), fence(5)));
    assert_eq!(released(&out), [kept]);
    let out = node.grant(2, *tried, 2000);
    assert_eq!(told(&out), [(other, Reply::Granted(1, fence(2000)))]);
    // Nobody keeps the lock now, so the next request does not wait for anybody.
    let out = node.request(3, keeper, Request::Acquire(8, hurried));
    assert!(matches!(out[..], [Output::Acquire { wait: Wait::No, .. }]), "{out:?}");
}

#[test]
fn a_request_that_does_not_wait_is_refused_when_the_keeper_is_inside() {
    let mut node = TestNode::new();
    let (keeper, other) = (node.client(), node.client());
    let kept = node.keep(0, keeper);
    let waits = node.request(1, other, Request::Acquire(1, ask("a")));
    node.step(1, Input::Queued(asked(&waits).unwrap()));
    let out = node.request(1, other, Request::Acquire(2, Ask { wait: Wait::No, ..ask("a") }));
    let tried = asked(&out).unwrap();
    node.step(1, Input::Queued(tried));
    let out = node.request(2, keeper, Request::InUse(name("a"), fence(5)));
    assert!(matches!(out[..], [Output::Abandon(ask), ..] if ask == tried), "{out:?}");
    assert_refused!(told(&out), Code::NotFree);
    // From now on the grant is like any other.
    let out = node.request(3, other, Request::Acquire(3, Ask { wait: Wait::No, ..ask("a") }));
    let [Output::Acquire { ask: third, wait: Wait::No, .. }] = out[..] else { panic!("{out:?}") };
    node.step(3, Input::Refused(third, super::super::shell::not_free()));
    let out = node.request(4, keeper, Request::Release(7, name("a"), fence(5)));
    assert_eq!(released(&out), [kept]);
    assert!(answers(&out).is_empty());
}

#[test]
fn a_request_that_does_not_wait_is_refused_when_another_client_gets_the_lock() {
    let mut node = TestNode::new();
    let (keeper, other) = (node.client(), node.client());
    node.keep(0, keeper);
    let first = asked(&node.request(1, other, Request::Acquire(1, ask("a")))).unwrap();
    node.step(1, Input::Queued(first));
    let hurried = Ask { wait: Wait::No, ..ask("a") };
    let tried = asked(&node.request(1, other, Request::Acquire(2, hurried))).unwrap();
    node.step(1, Input::Queued(tried));
    node.request(2, keeper, Request::Release(7, name("a"), fence(5)));
    let out = node.grant(2, first, 2000);
    let told = told(&out);
    assert!(matches!(told[0].1, Reply::Granted(1, _)), "{told:?}");
    assert!(matches!(told[1].1, Reply::Refused(2, _)), "{told:?}");
}

#[test]
fn a_resumed_session_keeps_nothing() {
    let mut node = TestNode::new();
    let from = From::Network(1);
    let (keeper, session) = node.open(0, from, TTL, CONNECTION);
    let kept = node.keep(0, keeper);
    node.step(1, Input::HangUp { connection: keeper, closed: false });
    // The client was outside, so it does not claim the lock.
    assert_eq!(released(&node.resume(2, from, session, vec![])), [kept]);

    let mut node = TestNode::new();
    let (keeper, session) = node.open(0, from, TTL, CONNECTION);
    node.keep(0, keeper);
    node.step(1, Input::HangUp { connection: keeper, closed: false });
    let again = node.connect(2, from);
    let inside = vec![claim("a", 5)];
    let out = node.resume_over(2, again, from, session, inside, vec![]);
    assert_eq!((released(&out), told(&out)), (vec![], vec![]));
    assert_eq!(told(&node.step(3, Input::Wanted(name("a")))), [], "it was inside");

    // The answer was lost with the connection.
    let mut node = TestNode::new();
    let (keeper, session) = node.open(0, from, TTL, CONNECTION);
    node.keep(0, keeper);
    node.step(1, Input::HangUp { connection: keeper, closed: false });
    let again = node.connect(2, from);
    let out = node.resume_over(2, again, from, session, vec![], vec![1]);
    let Some(Output::Greet(_, _, then)) = out.last() else { panic!("{out:?}") };
    assert_eq!(then[..], [Reply::Granted(1, fence(5))]);
    assert_eq!(told(&node.step(3, Input::Wanted(name("a")))), []);
}

#[test]
fn a_grant_is_broken_by_the_fence_of_any_of_its_entries() {
    for (number, broken) in [(4, false), (5, true), (6, true), (1005, true), (1006, false)] {
        let mut node = TestNode::new();
        let keeper = node.client();
        node.keep(0, keeper);
        let (_, out) = node.break_lock(1, "a", fence(number));
        let lost = told(&out);
        assert_eq!(lost.len(), usize::from(broken), "{number}: {out:?}");
        let known =
            |(_, reply): &(_, Reply)| matches!(reply, Reply::Lost(_, it, _) if *it == fence(5));
        assert!(lost.iter().all(known), "by the fence that the client was told: {lost:?}");
        assert_eq!(told(&node.step(2, Input::Wanted(name("a")))).len(), usize::from(!broken));
    }
}

#[test]
fn a_keeper_that_is_silent_loses_its_lock_with_its_session() {
    let mut node = TestNode::new();
    let (keeper, other) = (node.client(), node.client());
    let kept = node.keep(0, keeper);
    let waits = node.request(1, other, Request::Acquire(1, ask("a")));
    node.step(1, Input::Queued(asked(&waits).unwrap()));
    for ms in [500, 1000, 1500] {
        node.step(ms, Input::Heard(other));
    }
    let out = node.pass(u64::from(TTL) + 1);
    assert_eq!(released(&out), [kept]);
    assert!(!node.sessions.is_clean());
}

#[test]
fn only_an_exclusive_lock_of_a_session_with_a_ttl_is_kept() {
    let mut node = TestNode::new();
    let keeper = node.client();
    let keep = |node: &mut TestNode, connection, number, ask| {
        numbers(&node.request(0, connection, Request::Keep(number, ask)))
    };
    assert!(keep(&mut node, keeper, 1, ask("a")) > 0);
    assert_eq!(keep(&mut node, keeper, 2, Ask { permits: Some(2), ..ask("b") }), 0);
    assert_eq!(keep(&mut node, keeper, 3, Ask { mode: Mode::Shared, ..ask("c") }), 0);
    let (endless, _) = node.open(0, From::Here, u32::MAX, CONNECTION);
    assert_eq!(keep(&mut node, endless, 1, ask("d")), 0, "the session lives with its process");
    let (inherited, _) = node.open(0, From::Here, TTL, Life::Connection { inherited: true });
    assert_eq!(keep(&mut node, inherited, 1, ask("f")), 0, "it may live on without its process");
    let (lease, _) = node.open(0, From::Here, TTL, Life::Lease);
    assert_eq!(keep(&mut node, lease, 1, ask("e")), 0, "other sessions may release its locks");
    // A session that has half of what it may have gets the rest for use only.
    let many = node.client();
    for number in 1..=100 {
        let numbers = keep(&mut node, many, number, ask(&format!("many {number}")));
        assert_eq!(numbers > 0, number <= 50, "{number}");
    }
}

#[test]
fn a_lock_that_is_wanted_by_the_time_it_is_granted_is_not_kept() {
    let mut node = TestNode::new();
    let keeper = node.client();
    let out = node.request(0, keeper, Request::Keep(1, ask("a")));
    let out = node.grant(0, asked(&out).unwrap(), 5);
    assert_eq!(told(&out), [(keeper, Reply::Granted(1, fence(5)))]);
    assert_eq!(told(&node.step(1, Input::Wanted(name("a")))), []);
}
