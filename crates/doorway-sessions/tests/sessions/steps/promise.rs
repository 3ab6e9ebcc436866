//! What a node promises its clients if its own membership can end.

use doorway_protocol::{Code, Opening, Refusal, Reply, Request};
use doorway_sessions::{Answer, AskId, Call, Input, LeaseAnswer, NodeLease, Output, Setup};

use super::*;

/// The length of the node's lease, in milliseconds.
const LEASE: u64 = 2000;

/// The longest TTL of a client that sends heartbeats: half of a lease that is as short as this one,
/// which is less than [`TTL`].
const MOST: u32 = 1000;

/// The longest lease that the node can promise by itself: seven tenths of its own.
const MOST_OF_A_LEASE: u32 = 1400;

fn node() -> TestNode {
    TestNode::with(Setup { agreed: true, ..setup() })
}

impl TestNode {
    /// The lease of the node lasts until this time.
    fn lease(&mut self, ms: u64, until: u64) -> Vec<Output> {
        let lease = NodeLease { until: at(until), length: Duration::from_millis(LEASE) };
        self.step(ms, Input::Lease(lease))
    }
}

#[test]
fn a_node_that_is_no_member_opens_no_session_and_answers_questions() {
    let mut node = node();
    let connection = node.connect(0, From::Here);
    let out = node.hello(0, connection, From::Here, Opening::New { ttl_ms: 500, life: CONNECTION });
    let refusal = refused(&out).expect("a refusal");
    assert_eq!(refusal.code, Code::Unavailable);
    assert!(refusal.text.contains("not a member"), "{refusal}");
    let visit = node.connect(1, From::Here);
    assert_eq!(welcome(&node.hello(1, visit, From::Here, Opening::Visit)).session, None);
}

#[test]
fn no_client_counts_on_more_than_a_part_of_the_lease() {
    let mut node = node();
    node.lease(0, LEASE);
    let connection = node.connect(0, From::Network(1));
    let long = Opening::New { ttl_ms: TTL, life: CONNECTION };
    assert_eq!(welcome(&node.hello(0, connection, From::Network(1), long)).ttl_ms, MOST);
}

#[test]
fn a_session_that_lives_with_its_process_outlives_the_silence_of_its_client() {
    let mut node = node();
    node.lease(0, LEASE);
    let connection = node.connect(0, From::Here);
    let bound = Opening::New { ttl_ms: u32::MAX, life: CONNECTION };
    assert_eq!(welcome(&node.hello(0, connection, From::Here, bound)).ttl_ms, MOST);
    node.hold(0, connection, "orders", 1);
    node.lease(10, 100_000);
    node.pass(50_000);
    assert_eq!(node.sessions.held(), 1, "a client that is stopped keeps its lock");
}

#[test]
fn answers_go_on_while_a_renewal_is_four_tenths_of_a_lease_late() {
    let mut node = node();
    let length = Duration::from_secs(4);
    // A node counts on nine tenths of its lease.
    node.step(0, Input::Lease(NodeLease { until: at(3_600), length }));
    let connection = node.connect(0, From::Network(1));
    let opening = Opening::New { ttl_ms: 60_000, life: CONNECTION };
    assert_eq!(welcome(&node.hello(0, connection, From::Network(1), opening)).ttl_ms, 1_600);
    // The renewal was due after one tenth.
    let out = node.request(2_000, connection, Request::Alive(1));
    assert_eq!(told(&out), [(connection, Reply::Alive(1))]);
    assert_eq!(told(&node.request(2_001, connection, Request::Alive(2))), []);
}

#[test]
fn answers_wait_until_the_lease_lasts_long_enough() {
    let mut node = node();
    node.lease(0, LEASE);
    let (connection, _) = node.open(0, From::Network(1), 500, CONNECTION);
    let (other, _) = node.open(0, From::Network(2), 500, CONNECTION);
    // 500 ms before the end of the lease, an answer is still right for a client with that TTL.
    let out = node.request(1500, connection, Request::Alive(1));
    assert_eq!(told(&out), [(connection, Reply::Alive(1))]);
    let out = node.request(1501, connection, Request::Alive(2));
    assert_eq!(told(&out), []);
    let ask = node.acquire(1502, other, 1, "orders");
    assert_eq!(told(&node.grant(1503, ask, 1)), []);
    let waiting = [(connection, Reply::Alive(2)), (other, Reply::Granted(1, Fence::new(1, 1)))];
    assert_eq!(told(&node.lease(1600, 1600 + LEASE)), waiting);
    let out = node.request(1601, connection, Request::Alive(3));
    assert_eq!(told(&out), [(connection, Reply::Alive(3))]);
}

#[test]
fn a_lease_over_http_is_refused_if_the_membership_ends_before_it_is_told() {
    let mut node = node();
    node.lease(0, LEASE);
    let (caller, out) = node.call(1501, lease("orders", None, 500));
    let ask = asked(&out).expect("the node is asked");
    assert_eq!(answers(&node.grant(1501, ask, 1)), []);
    // A refusal promises nothing, so it does not wait for the next lease.
    let told = answers(&node.lease(LEASE, 0));
    let [(to, Answer::Refused(refusal))] = &told[..] else { panic!("{told:?}") };
    assert_eq!((*to, refusal.code), (caller, Code::Unavailable));
    assert_eq!(answers(&node.lease(LEASE + 10, 2 * LEASE + 10)), []);
    // In time, it is told.
    node.lease(LEASE + 10, 2 * LEASE + 10);
    let (caller, out) = node.call(LEASE + 20, lease("others", None, 500));
    let ask = asked(&out).expect("the node is asked");
    let told = answers(&node.grant(LEASE + 20, ask, 2));
    assert!(matches!(&told[..], [(to, Answer::Leased(LeaseAnswer { .. }))] if *to == caller));
}

#[test]
fn a_lease_over_http_that_ended_while_its_answer_was_held_back_is_refused() {
    let mut node = node();
    node.lease(0, LEASE);
    node.pass(1_501);
    let (caller, out) = node.call(1_501, lease("orders", None, 500));
    let ask = asked(&out).expect("the node is asked");
    assert_eq!(answers(&node.grant(1_501, ask, 1)), []);
    node.pass(2_100);
    assert_eq!(node.sessions.held(), 0, "its time is over");
    let told = answers(&node.lease(2_100, 2_100 + LEASE));
    let [(to, Answer::Refused(refusal))] = &told[..] else { panic!("{told:?}") };
    assert_eq!((*to, refusal.code), (caller, Code::Gone));
}

#[test]
fn a_client_over_http_need_not_wait_for_the_node() {
    let mut node = node();
    node.lease(0, LEASE);
    node.pass(1_501);
    let (caller, out) = node.call(1_501, lease("orders", None, 500));
    let ask = asked(&out).expect("the node is asked");
    node.grant(1_501, ask, 1);
    let told = answers(&node.step(1_600, Input::CallTimedOut(caller)));
    let [(to, Answer::Refused(refusal))] = &told[..] else { panic!("{told:?}") };
    assert_eq!((*to, refusal.code), (caller, Code::Unavailable));
    assert_eq!(node.sessions.held(), 0, "nobody could ask for it again");
}

#[test]
fn a_renewal_over_http_without_an_answer_leaves_the_lease_alone() {
    for leave in [Input::CallTimedOut, |caller| Input::HangUp { connection: caller, closed: true }]
    {
        let mut node = node();
        node.lease(0, LEASE);
        let (_, out) = node.call(100, lease("orders", None, 1_000));
        let ask = asked(&out).expect("the node is asked");
        assert_eq!(answers(&node.grant(100, ask, 1)).len(), 1);
        node.pass(1_050);
        let (name, fence) = (Name::new("orders").unwrap(), Fence::new(1, 1));
        let (caller, out) = node.call(1_050, Call::Renew(name, fence, None));
        assert_eq!(answers(&out), [], "it waits for the lease of the node");
        node.step(1_060, leave(caller));
        assert_eq!(node.sessions.held(), 1, "the client still believes in its lease");
    }
}

#[test]
fn nobody_is_promised_more_than_the_lease_of_the_node_lasts_by_a_renewal() {
    let mut node = node();
    node.lease(0, LEASE);
    let (connection, _) = node.open(0, From::Here, 1_000, Life::Lease);
    node.hold(0, connection, "orders", 1);
    let visit = node.connect(1, From::Here);
    node.hello(1, visit, From::Here, Opening::Visit);
    let renew = |number| Request::Renew(number, Name::new("orders").unwrap(), Fence::new(1, 1));
    let out = node.request(1_000, visit, renew(1));
    assert_eq!(told(&out), [(visit, Reply::Done(1))]);
    let out = node.request(1_001, visit, renew(2));
    let told = told(&out);
    let [(_, Reply::Refused(2, refusal))] = &told[..] else { panic!("{told:?}") };
    assert_eq!(refusal.code, Code::Unavailable);
}

#[test]
fn a_node_that_is_no_member_refuses_leases_over_http() {
    let mut node = node();
    let (_, out) = node.call(0, lease("orders", None, 500));
    let told = answers(&out);
    let [(_, Answer::Refused(refusal))] = &told[..] else { panic!("{told:?}") };
    assert_eq!(refusal.code, Code::Unavailable);
}

#[test]
fn clients_that_count_on_a_longer_lease_connect_again_when_it_is_shortened() {
    let mut node = node();
    node.lease(0, LEASE);
    let (long, _) = node.open(0, From::Network(1), MOST, CONNECTION);
    let (short, _) = node.open(0, From::Network(2), 500, CONNECTION);
    let shorter = NodeLease { until: at(LEASE), length: Duration::from_millis(LEASE * 5 / 8) };
    let out = node.step(10, Input::Lease(shorter));
    assert!(matches!(&out[..], [Output::Close(closed)] if *closed == long), "{out:?}");
    let out = node.request(20, short, Request::Alive(1));
    assert_eq!(told(&out), [(short, Reply::Alive(1))]);
}

#[test]
fn a_shorter_lease_silences_only_the_sessions_that_are_too_long_for_it() {
    let mut node = node();
    let long = NodeLease { until: at(20_000), length: Duration::from_secs(20) };
    node.step(0, Input::Lease(long));
    let (old, _) = node.open(0, From::Network(1), TTL, CONNECTION);
    // From now on, every renewal gives less than the first client was told.
    node.lease(10, 10 + u64::from(MOST));
    let young = node.connect(10, From::Network(2));
    let opening = Opening::New { ttl_ms: TTL, life: CONNECTION };
    assert_eq!(welcome(&node.hello(10, young, From::Network(2), opening)).ttl_ms, MOST);
    assert_eq!(told(&node.request(10, old, Request::Alive(1))), []);
    let out = node.request(10, young, Request::Alive(1));
    assert_eq!(told(&out), [(young, Reply::Alive(1))]);
}

#[test]
fn that_a_lock_is_lost_is_told_although_the_lease_is_over() {
    let mut node = node();
    node.lease(0, LEASE);
    let (connection, session) = node.open(0, From::Network(1), 500, CONNECTION);
    node.hold(0, connection, "orders", 1);
    node.lease(100, 0);
    assert_eq!(told(&node.request(100, connection, Request::Alive(7))), []);
    let (name, fence) = (Name::new("orders").expect("a name"), Fence::new(1, 1));
    let out = node.step(101, Input::Lost { session, name, fence });
    let told = told(&out);
    assert!(matches!(&told[..], [(_, Reply::Lost(..))]), "{told:?}");
}

#[test]
fn a_grant_that_is_lost_before_it_is_told_is_never_told() {
    let mut node = node();
    node.lease(0, LEASE);
    let (connection, session) = node.open(0, From::Network(1), 500, CONNECTION);
    let ask = node.acquire(1502, connection, 7, "orders");
    assert_eq!(told(&node.grant(1503, ask, 1)), []);
    assert_eq!(told(&node.request(1504, connection, Request::Alive(8))), []);
    // The node loses its membership, and another node grants the lock.
    let (name, fence) = (Name::new("orders").expect("a name"), Fence::new(1, 1));
    assert_eq!(told(&node.step(LEASE, Input::Lost { session, name, fence })), []);
    node.lease(LEASE, 0);
    // It is a member again.
    let told = told(&node.lease(LEASE + 10, 2 * LEASE + 10));
    let [(_, Reply::Refused(7, refusal)), (_, Reply::Alive(8))] = &told[..] else {
        panic!("{told:?}")
    };
    assert_eq!(refusal.code, Code::Unavailable);
    assert!(refusal.text.contains("lost before the answer could be given"), "{refusal}");
}

/// Fences are compared for one lock only, so grants of two locks may have the same one.
#[test]
fn a_loss_is_told_although_another_grant_with_its_fence_is_held_back() {
    let mut node = node();
    node.lease(0, LEASE);
    let (connection, session) = node.open(0, From::Network(1), 500, CONNECTION);
    node.hold(0, connection, "orders", 1);
    let ask = node.acquire(1502, connection, 7, "bills");
    assert_eq!(told(&node.grant(1503, ask, 1)), []);
    let (name, fence) = (Name::new("orders").expect("a name"), Fence::new(1, 1));
    let lost = told(&node.step(1504, Input::Lost { session, name: name.clone(), fence }));
    assert!(matches!(&lost[..], [(_, Reply::Lost(lock, ..))] if *lock == name), "{lost:?}");
    let waiting = [(connection, Reply::Granted(7, fence))];
    assert_eq!(told(&node.lease(1600, 1600 + LEASE)), waiting);
}

#[test]
fn a_greeting_that_is_held_back_does_not_confirm_what_is_lost() {
    let mut node = node();
    node.lease(0, LEASE);
    let (connection, session) = node.open(0, From::Network(1), 500, CONNECTION);
    node.hold(0, connection, "orders", 1);
    node.hang_up(100, connection);
    let again = node.connect(400, From::Network(1));
    node.lease(400, 500);
    let claims = vec![claim("orders", 1)];
    let out = node.resume_over(401, again, From::Network(1), session, claims, Vec::new());
    assert!(out.iter().all(|output| !matches!(output, Output::Greet(..))), "{out:?}");
    let (name, fence) = (Name::new("orders").expect("a name"), Fence::new(1, 1));
    let out = node.step(402, Input::Lost { session, name, fence });
    assert!(out.iter().any(|it| matches!(it, Output::Close(it) if *it == again)), "{out:?}");
    assert_eq!(told(&out), []);
    let out = node.lease(410, 410 + LEASE);
    assert!(out.iter().all(|output| !matches!(output, Output::Greet(..))), "{out:?}");
}

/// What the group is asked to keep, and for how many milliseconds.
fn held(out: &[Output]) -> Vec<(AskId, u64)> {
    let of = |output: &Output| match output {
        Output::Hold { ask, length, .. } => Some((*ask, length.as_millis() as u64)),
        _ => None,
    };
    out.iter().filter_map(of).collect()
}

/// What the group need not keep any more.
fn dropped(out: &[Output]) -> Vec<Fence> {
    let of = |output: &Output| match output {
        Output::DropHold { fence, .. } => Some(*fence),
        _ => None,
    };
    out.iter().filter_map(of).collect()
}

/// A node that allows leases of a minute.
fn patient() -> Setup {
    Setup { agreed: true, ..shell::setup(Duration::from_mins(1)) }
}

impl TestNode {
    /// The node grants a request, and nothing is written yet.
    fn granted(&mut self, ms: u64, ask: AskId, fence: u64) -> Vec<Output> {
        self.step(ms, Input::Granted(ask, Fence::new(1, fence)))
    }

    /// The group keeps a grant for this many milliseconds, and the ledger is written.
    fn kept(&mut self, ms: u64, ask: AskId, length: u64) -> Vec<Output> {
        let length = Duration::from_millis(length);
        let mut out = self.step(ms, Input::Held { ask, length, kept: Ok(()) });
        for output in out.clone() {
            match output {
                Output::Write(ask, _) => out.extend(self.step(ms, Input::Written(ask, Ok(())))),
                Output::Rewrite(session, ..) => {
                    out.extend(self.step(ms, Input::Rewritten(session, Ok(()))));
                }
                _ => {}
            }
        }
        out
    }

    fn not_kept(&mut self, ms: u64, ask: AskId, length: u64) -> Vec<Output> {
        let refusal = Refusal { code: Code::Unavailable, text: "no".to_owned() };
        let length = Duration::from_millis(length);
        self.step(ms, Input::Held { ask, length, kept: Err(refusal) })
    }

    /// A lease of 5 seconds over HTTP that the group keeps, with the fence 1.
    fn long_lease(&mut self) -> (AskId, Fence) {
        self.lease(0, 1_000_000);
        let (_, out) = self.call(0, lease("orders", None, 5000));
        let ask = asked(&out).expect("the node is asked");
        assert_eq!(held(&self.granted(1, ask, 1)), [(ask, 5000)]);
        assert_eq!(answers(&self.kept(2, ask, 5000)).len(), 1);
        (ask, Fence::new(1, 1))
    }
}

#[test]
fn a_long_lease_is_told_when_the_group_keeps_it() {
    let mut node = TestNode::with(patient());
    node.lease(0, LEASE);
    let (_, out) = node.call(0, lease("short", None, MOST_OF_A_LEASE));
    let ask = asked(&out).expect("the node is asked");
    let out = node.grant(0, ask, 1);
    assert_eq!((held(&out), answers(&out).len()), (Vec::new(), 1), "it pays nothing");
    let (caller, out) = node.call(0, lease("long", None, MOST_OF_A_LEASE + 1));
    let ask = asked(&out).expect("the node is asked");
    let out = node.granted(10, ask, 2);
    assert_eq!((held(&out), answers(&out).len()), (vec![(ask, 1401)], 0));
    assert!(!out.iter().any(|it| matches!(it, Output::Announce(_))), "nobody is told: {out:?}");
    let told = answers(&node.kept(20, ask, 1401));
    assert!(matches!(&told[..], [(to, Answer::Leased(_))] if *to == caller), "{told:?}");

    let (_, out) = node.call(20, lease("other", None, MOST_OF_A_LEASE + 1));
    let ask = asked(&out).expect("the node is asked");
    node.granted(20, ask, 3);
    let out = node.not_kept(30, ask, 1401);
    let told = answers(&out);
    assert!(matches!(&told[..], [(_, Answer::Refused(_))]), "{told:?}");
    assert_eq!((released(&out), dropped(&out)), (vec![ask], vec![Fence::new(1, 3)]));
}

#[test]
fn a_request_does_not_wait_for_ever_for_the_group_to_agree() {
    let mut node = TestNode::with(patient());
    node.lease(0, 1_000_000);
    let (connection, _) = node.open(0, From::Here, 5000, Life::Lease);
    let ask = node.acquire(0, connection, 1, "orders");
    assert_eq!(held(&node.granted(100, ask, 3)), [(ask, 5000)]);
    node.request(4000, connection, Request::Alive(2)); // It does not end meanwhile.
    let out = node.pass(5000);
    assert_eq!((told(&out), released(&out)), (vec![], vec![]));
    let out = node.pass(5600);
    let refused = told(&out);
    assert!(
        matches!(&refused[..], [(to, Reply::Refused(1, why))]
            if *to == connection && why.code == Code::Unavailable),
        "{refused:?}"
    );
    assert_eq!((released(&out), dropped(&out)), (vec![ask], vec![Fence::new(1, 3)]));
    let out = node.kept(5700, ask, 5000);
    assert!(told(&out).is_empty() && node.sessions.held() == 0, "the agreement comes too late");
}

#[test]
fn a_release_is_answered_when_the_group_does_not_keep_the_lease_any_more() {
    let mut node = TestNode::with(patient());
    let (ask, fence) = node.long_lease();
    let (caller, out) = node.call(10, Call::Release(name("orders"), fence));
    assert_eq!((released(&out), dropped(&out)), (vec![ask], vec![fence]));
    assert_eq!(answers(&out), []);
    let out = node.step(20, Input::Dropped(name("orders"), fence, Ok(())));
    assert_eq!(answers(&out), [(caller, Answer::Released(true))]);
    assert!(node.sessions.is_clean());
}

#[test]
fn a_break_is_answered_when_the_group_does_not_keep_the_lease_any_more() {
    let mut node = TestNode::with(patient());
    let (ask, fence) = node.long_lease();
    let (operator, out) = node.break_lock(10, "orders", fence);
    assert_eq!((released(&out), dropped(&out)), (vec![ask], vec![fence]));
    assert_eq!(answers(&out), []);
    let out = node.step(20, Input::Dropped(name("orders"), fence, Ok(())));
    assert_eq!(answers(&out), [(operator, Answer::Broken(1))]);
}

/// A crash may bring the lock back until its end is durable, so nobody is told before.
#[test]
fn a_repeated_break_or_release_waits_until_the_first_one_is_durable() {
    let late = Refusal { code: Code::Unavailable, text: "no quorum".to_owned() };
    let fence = Fence::new(1, 1);
    let end =
        |node: &mut TestNode, done| node.step(30, Input::Dropped(name("orders"), fence, done));
    for breaks_first in [true, false] {
        let mut node = TestNode::with(patient());
        node.long_lease();
        let (first, _) = if breaks_first {
            node.break_lock(10, "orders", fence)
        } else {
            node.call(10, Call::Release(name("orders"), fence))
        };
        // While the group has not answered.
        let (second, out) = node.break_lock(20, "orders", fence);
        assert_eq!((dropped(&out), answers(&out)), (vec![fence], vec![]));
        let told = answers(&end(&mut node, Err(late.clone())));
        let before =
            if breaks_first { Answer::Refused(late.clone()) } else { Answer::Released(true) };
        assert_eq!(told, [(first, before), (second, Answer::Refused(late.clone()))]);
        // After it was not known.
        let (operator, out) = node.break_lock(40, "orders", fence);
        assert_eq!((dropped(&out), answers(&out)), (vec![fence], vec![]));
        let (client, out) = node.call(40, Call::Release(name("orders"), fence));
        assert_eq!((dropped(&out), answers(&out)), (vec![fence], vec![]));
        let told = answers(&end(&mut node, Ok(())));
        assert_eq!(told, [(operator, Answer::Broken(1)), (client, Answer::Released(false))]);
        // After it is durable.
        let (operator, out) = node.break_lock(50, "orders", fence);
        assert_eq!((dropped(&out), answers(&out)), (vec![], vec![(operator, Answer::Broken(0))]));
    }
}

#[test]
fn a_lease_becomes_longer_when_the_group_has_agreed() {
    let mut node = TestNode::with(patient());
    let (ask, fence) = node.long_lease();
    let (_, out) = node.call(10, Call::Renew(name("orders"), fence, None));
    assert_eq!((held(&out), answers(&out).len()), (Vec::new(), 1), "a renewal pays nothing");
    let more = |ms| Call::Renew(name("orders"), fence, Some(Duration::from_millis(ms)));
    let (first, out) = node.call(20, more(8000));
    assert_eq!((held(&out), answers(&out)), (vec![(ask, 8000)], Vec::new()));
    let (second, _) = node.call(21, more(9000));
    let told = |out: &[Output]| -> Vec<(Connection, u64)> {
        let ttl = |answer| match answer {
            Answer::Leased(lease) => lease.ttl.as_millis() as u64,
            other => panic!("{other:?}"),
        };
        answers(out).into_iter().map(|(to, answer)| (to, ttl(answer))).collect()
    };
    assert_eq!(told(&node.kept(30, ask, 8000)), [(first, 8000)]);
    assert_eq!(told(&node.kept(40, ask, 9000)), [(second, 9000)]);
    let (_, out) = node.call(50, more(20_000));
    assert_eq!(answers(&out), []);
    let refused = answers(&node.not_kept(60, ask, 20_000));
    assert!(matches!(&refused[..], [(_, Answer::Refused(_))]), "{refused:?}");
    assert_eq!(node.sessions.held(), 1, "it is as long as before");
}

#[test]
fn a_lost_lease_stays_with_the_group_until_its_client_cannot_believe_in_it() {
    let lose = |node: &mut TestNode, fence| {
        let out = node.step(1000, Input::Lost { session: 1, name: name("orders"), fence });
        assert_eq!(dropped(&out), [], "the client may not know");
        assert_eq!(node.sessions.held(), 0);
    };
    let mut silent = TestNode::with(patient());
    let (_, fence) = silent.long_lease();
    lose(&mut silent, fence);
    let drops = |node: &mut TestNode, from: u64, to: u64| -> Vec<Fence> {
        let ticks = (from..to).step_by(100);
        ticks.flat_map(|ms| dropped(&node.step(ms, Input::Tick))).collect()
    };
    assert_eq!(drops(&mut silent, 1000, 5000), []);
    assert_eq!(drops(&mut silent, 5000, 5600), [fence]);

    let mut told = TestNode::with(patient());
    let (_, fence) = told.long_lease();
    lose(&mut told, fence);
    let (caller, out) = told.call(1100, Call::Release(name("orders"), fence));
    assert_eq!(dropped(&out), [fence], "the client has given it up");
    let out = told.step(1200, Input::Dropped(name("orders"), fence, Ok(())));
    assert_eq!(answers(&out), [(caller, Answer::Released(false))]);
}

#[test]
fn a_restored_lease_goes_on_and_is_kept_by_the_group_again() {
    let mut node = TestNode::with(patient());
    let (_, fence) = node.long_lease();
    let ledger = node.ledger;
    let mut former = contents(ledger.clone());
    former.last = 1000;
    let sessions = Sessions::new(patient(), at(100));
    let mut node = TestNode { sessions, ledger, connections: 1000 };
    node.lease(100, 0);
    let out = node.step(100, Input::Restored(Box::new(former)));
    let reclaims = |out: &[Output]| {
        out.iter().find_map(|it| match it {
            Output::Reclaim { ask, .. } => Some(*ask),
            _ => None,
        })
    };
    let ask = reclaims(&out).expect("it is held again");
    let out = node.granted(110, ask, 1);
    assert_eq!(held(&out).iter().map(|(of, _)| *of).collect::<Vec<_>>(), [ask]);
    assert_eq!(node.sessions.held(), 1);
    // The group has removed the former process.
    let out = node.not_kept(120, ask, 5000);
    assert_eq!((released(&out), dropped(&out)), (vec![ask], Vec::new()));
    assert_eq!(node.sessions.held(), 0);
    assert_eq!(fence, Fence::new(1, 1));
}

#[test]
fn what_the_group_keeps_is_renewed_only_while_the_node_is_a_member() {
    let mut node = TestNode::with(patient());
    let (_, fence) = node.long_lease();
    let visit = node.connect(3, From::Network(1));
    node.hello(3, visit, From::Network(1), Opening::Visit);
    let renew = |number| Request::Renew(number, name("orders"), fence);
    assert_eq!(told(&node.request(4, visit, renew(1))), [(visit, Reply::Done(1))]);
    node.lease(5, 10);
    let told = told(&node.request(11, visit, renew(2)));
    let [(_, Reply::Refused(2, refusal))] = &told[..] else { panic!("{told:?}") };
    assert_eq!(refusal.code, Code::Unavailable);
}

#[test]
fn a_released_lease_that_was_to_become_longer_is_not_kept() {
    let mut node = TestNode::with(patient());
    node.lease(0, 1_000_000);
    let (_, out) = node.call(0, lease("orders", None, 1000));
    let ask = asked(&out).expect("the node is asked");
    node.grant(0, ask, 1);
    let fence = Fence::new(1, 1);
    let longer = Call::Renew(name("orders"), fence, Some(Duration::from_secs(5)));
    let (call, out) = node.call(10, longer);
    assert_eq!(held(&out), [(ask, 5000)]);
    node.call(20, Call::Release(name("orders"), fence));
    let out = node.kept(30, ask, 5000);
    assert_eq!(dropped(&out), [fence], "nobody else would drop it");
    let told = answers(&out);
    assert!(matches!(&told[..], [(to, Answer::Refused(_))] if *to == call), "{told:?}");
}

#[test]
fn a_lease_of_unknown_length_is_no_lease() {
    let mut node = node();
    node.step(0, Input::Lease(NodeLease { until: at(LEASE), length: Duration::ZERO }));
    let connection = node.connect(0, From::Here);
    let out = node.hello(0, connection, From::Here, Opening::New { ttl_ms: 500, life: CONNECTION });
    assert_eq!(refused(&out).map(|refusal| refusal.code), Some(Code::Unavailable));
}

#[test]
fn a_group_keeps_a_lease_without_end_until_its_client_gives_it_up() {
    let without_end = u64::from(u32::MAX);
    let mut node = TestNode::with(patient());
    node.lease(0, 1_000_000);
    let (connection, session) = node.open(0, From::Here, u32::MAX, Life::Lease);
    let ask = node.acquire(0, connection, 1, "orders");
    assert_eq!(held(&node.granted(1, ask, 1)), [(ask, without_end)], "also if it were shorter");
    let fence = Fence::new(1, 1);
    let out = node.kept(2, ask, without_end);
    assert_eq!(told(&out), [(connection, Reply::Granted(1, fence))]);
    assert!(node.pass(900_000).is_empty() && node.sessions.held() == 1);
    // The node loses its membership, and the client does not know that.
    node.step(900_000, Input::Lost { session, name: name("orders"), fence });
    assert_eq!(node.sessions.held(), 0);
    assert_eq!(dropped(&node.pass(4_000_000)), []);
    let (_, out) = node.call(4_000_000, Call::Release(name("orders"), fence));
    assert_eq!(dropped(&out), [], "another client cannot give it up");
    let visitor = node.connect(4_000_000, From::Here);
    node.hello(4_000_000, visitor, From::Here, Opening::Visit);
    let release = Request::Release(2, name("orders"), fence);
    assert_eq!(dropped(&node.request(4_000_000, visitor, release)), [fence]);
}

/// A lease without end over HTTP, by a request that may be repeated.
fn without_end() -> Call {
    let Call::Acquire(mut asked) = lease("orders", Some("me"), 0) else { panic!("a request") };
    asked.ttl_ms = None;
    Call::Acquire(asked)
}

#[test]
fn a_restored_lease_without_end_is_told_when_the_group_keeps_it_again() {
    let length = u64::from(u32::MAX);
    let mut node = TestNode::with(patient());
    node.lease(0, 1_000_000);
    let (_, out) = node.call(0, without_end());
    let ask = asked(&out).expect("the node is asked");
    node.granted(1, ask, 1);
    assert_eq!(answers(&node.kept(2, ask, length)).len(), 1);
    let mut former = contents(node.ledger);
    former.last = 1000;
    let mut node = TestNode::with(patient());
    let out = node.step(100, Input::Restored(Box::new(former)));
    let ask = asked(&out).expect("it is held again");
    node.granted(100, ask, 1);
    node.lease(100, 1_000_000);
    let (caller, out) = node.call(110, without_end());
    assert_eq!(answers(&out), [], "a time to live would be wrong");
    let told = answers(&node.kept(120, ask, length));
    let endless = |ttl: Duration| ttl == doorway_sessions::UNLIMITED;
    assert!(
        matches!(&told[..], [(to, Answer::Leased(it))] if *to == caller && endless(it.ttl)),
        "{told:?}"
    );
}

#[test]
fn a_lease_without_end_of_which_nobody_is_told_ends() {
    let mut node = TestNode::with(patient());
    node.lease(0, 1000);
    let (caller, out) = node.call(0, without_end());
    let ask = asked(&out).expect("the node is asked");
    node.granted(900, ask, 1);
    // The lease of the node has to be renewed before it answers, and the client does not wait.
    assert_eq!(answers(&node.kept(1000, ask, u64::from(u32::MAX))), []);
    node.hang_up(1100, caller);
    node.lease(1200, 1_000_000);
    node.pass(10_900);
    assert_eq!(node.sessions.held(), 1, "the request may be repeated");
    let out = node.pass(11_700);
    assert_eq!((released(&out), dropped(&out)), (vec![ask], vec![Fence::new(1, 1)]));
}
