//! What a node promises its clients if its own membership can end.

use doorway_daemon::sessions::{Answer, Input, LeaseAnswer, NodeLease, Output, Setup};
use doorway_protocol::{Code, Opening, Reply, Request};

use super::*;

/// The length of the node's lease, in milliseconds. Seven tenths of it are less than [`TTL`].
const LEASE: u64 = 2000;
const MOST: u32 = 1400;

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
    assert!(refusal.text.contains("no member"), "{refusal}");
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
    // A lease is not renewed by heartbeats, so its owner must be told instead.
    let connection = node.connect(0, From::Network(1));
    let lease = Opening::New { ttl_ms: MOST + 1, life: Life::Lease };
    let refusal = refused(&node.hello(0, connection, From::Network(1), lease)).expect("a refusal");
    assert_eq!(refusal.code, Code::Invalid);
    assert!(refusal.text.contains("at most 1.4 s"), "{refusal}");
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
    let (caller, out) = node.call(LEASE + 20, lease("others", None, 500));
    let ask = asked(&out).expect("the node is asked");
    let told = answers(&node.grant(LEASE + 20, ask, 2));
    assert!(matches!(&told[..], [(to, Answer::Leased(LeaseAnswer { .. }))] if *to == caller));
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
