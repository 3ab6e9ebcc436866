//! What etcdctl and the lock service do, call by call.

use std::time::Duration;

use serde_json::json;

use super::client::{Grpc, ReceivedMessage, Stream, bytes, fails, inside, int, queue_txn};
use crate::server::Server;

const TXN: &str = "etcdserverpb.KV/Txn";
const RANGE: &str = "etcdserverpb.KV/Range";
const DELETE: &str = "etcdserverpb.KV/DeleteRange";
const REVOKE: &str = "etcdserverpb.Lease/LeaseRevoke";
const WATCH: &str = "etcdserverpb.Watch/Watch";
const LOCK: &str = "v3lockpb.Lock/Lock";
const UNLOCK: &str = "v3lockpb.Lock/Unlock";

/// The range by which a waiting client looks for its predecessor.
fn predecessor(grpc: &Grpc, lock: &str, created: i64) -> Result<ReceivedMessage, (u16, String)> {
    let fields = [
        bytes(1, format!("{lock}/")),
        bytes(2, format!("{lock}0")),
        int(3, 1),
        int(5, 2),
        int(6, 2),
        int(13, created - 1),
    ];
    grpc.call(RANGE, &fields)
}

/// Watch a key.
fn watch(grpc: &Grpc, key: &[u8], start: i64) -> Stream {
    let mut stream = grpc.open(WATCH, &[]);
    stream.send(&[inside(1, &[bytes(1, key), int(3, start)])]);
    let created = stream.next().expect("no error").expect("an answer");
    assert_eq!(created.int(3), 1, "it is created");
    stream
}

/// A client that waits for a lock: the revision of its key, and the watch of its predecessor.
fn wait(grpc: &Grpc, lock: &str, lease: i64) -> (i64, Stream) {
    let entered = grpc.call(TXN, &queue_txn(lock, lease)).expect("an answer");
    assert_eq!(entered.int(2), 1, "the key was put");
    let created = entered.revision();
    let first = entered.all(3)[1].at(1).at(2);
    assert_eq!(first.int(2), created - 1, "another key is the first");
    let found = predecessor(grpc, lock, created).expect("an answer");
    let key = found.at(2).at(1).0;
    assert_eq!(key, first.at(1).0);
    (created, watch(grpc, &key, found.revision()))
}

/// Acquire a lock at once: the fence.
fn enter(grpc: &Grpc, lock: &str, lease: i64) -> i64 {
    let entered = grpc.call(TXN, &queue_txn(lock, lease)).expect("an answer");
    let first = entered.all(3)[1].at(1).at(2);
    assert_eq!(first.int(2), entered.revision(), "its key is the first");
    entered.revision()
}

fn delete(grpc: &Grpc, lock: &str, lease: i64) -> i64 {
    let deleted = grpc.call(DELETE, &[bytes(1, format!("{lock}/{lease:x}"))]);
    deleted.expect("an answer").int(2)
}

#[test]
fn a_waiting_client_gets_the_lock_by_the_deletion_of_its_predecessor() {
    let server = Server::new();
    let (one, other) = (Grpc::of(&server), Grpc::of(&server));
    let (first, second) = (one.lease(5), other.lease(5));
    let fence = enter(&one, "l", first);
    let (created, mut watch) = wait(&other, "l", second);
    assert!(watch.is_silent(Duration::from_millis(100)));
    assert_eq!(delete(&one, "l", first), 1);
    assert_eq!(delete(&one, "l", first), 0);
    let news = watch.next().unwrap().unwrap();
    let event = news.at(11);
    assert_eq!(event.int(1), 1, "a deletion");
    let found = predecessor(&other, "l", created).unwrap();
    assert!(found.all(2).is_empty(), "there is none any more");
    assert!(found.revision() > fence, "the fence grows");
    let own = other.call(RANGE, &[bytes(1, format!("l/{second:x}"))]).unwrap();
    assert_eq!((own.revision(), own.at(2).int(3)), (found.revision(), found.revision()));
    assert_eq!(own.at(2).int(2), created, "the create revision does not change");
    assert_eq!(delete(&other, "l", second), 1);
    server.until("nothing is held", |service| service.held() == 0);
}

#[test]
fn the_watch_of_a_client_whose_lease_ends_is_cancelled_and_sees_no_deletion() {
    let server = Server::new();
    let grpc = Grpc::of(&server);
    let (holder, revoked, expired) = (grpc.lease(5), grpc.lease(5), grpc.lease(1));
    enter(&grpc, "l", holder);
    let (created, mut one) = wait(&grpc, "l", revoked);
    let (_, mut two) = wait(&grpc, "l", expired);
    grpc.call(REVOKE, &[int(1, revoked)]).unwrap();
    let end = one.next().unwrap().unwrap();
    assert_eq!((end.int(4), end.all(11).len()), (1, 0), "cancelled, without an event");
    assert!(end.text(6).contains("lease not found"), "{}", end.text(6));
    // An empty answer would mean that the client has the lock.
    fails(predecessor(&grpc, "l", created), 5, &["lease not found"]);
    let end = two.next().unwrap().unwrap();
    assert_eq!((end.int(4), end.all(11).len()), (1, 0), "its time is over");
    assert_eq!(delete(&grpc, "l", holder), 1);
    server.until("nothing is held", |service| service.held() == 0);
}

#[test]
fn a_key_that_is_put_again_is_the_same_request() {
    let server = Server::new();
    let grpc = Grpc::of(&server);
    let (first, second) = (grpc.lease(5), grpc.lease(5));
    let fence = enter(&grpc, "l", first);
    let again = grpc.call(TXN, &queue_txn("l", first)).unwrap();
    assert_eq!((again.int(2), again.revision()), (0, fence), "it is there already");
    let own = again.all(3)[0].at(1).at(2);
    assert_eq!(own.int(2), again.all(3)[1].at(1).at(2).int(2), "and it is the first");
    let (created, _watch) = wait(&grpc, "l", second);
    let again = grpc.call(TXN, &queue_txn("l", second)).unwrap();
    assert_eq!(again.all(3)[0].at(1).at(2).int(2), created);
    assert_eq!(server.service.status().waiting, 1);
    assert_eq!(delete(&grpc, "l", second), 1, "it waits no longer");
    server.until("nobody waits", |service| service.status().waiting == 0);
}

#[test]
fn heartbeats_are_answered_with_the_time_to_live() {
    let server = Server::new();
    let grpc = Grpc::of(&server);
    let lease = grpc.lease(2);
    enter(&grpc, "l", lease);
    let mut beats = grpc.open("etcdserverpb.Lease/LeaseKeepAlive", &[]);
    for _ in 0..2 {
        beats.send(&[int(1, lease)]);
        let alive = beats.next().unwrap().unwrap();
        assert_eq!((alive.int(2), alive.int(3)), (lease, 2));
    }
    let times = grpc.call("etcdserverpb.Lease/LeaseTimeToLive", &[int(1, lease), int(2, 1)]);
    let times = times.unwrap();
    assert_eq!((times.int(4), times.text(5)), (2, format!("l/{lease:x}")));
    server.until("it ends without heartbeats", |service| service.held() == 0);
    beats.send(&[int(1, lease)]);
    assert_eq!(beats.next().unwrap().unwrap().int(3), 0, "it has no time left");
    fails(grpc.call(REVOKE, &[int(1, lease)]), 5, &["etcdserver: requested lease not found"]);
    let times = grpc.call("etcdserverpb.Lease/LeaseTimeToLive", &[int(1, lease)]).unwrap();
    assert_eq!(times.int(3), -1);
}

#[test]
fn the_lock_service_waits_and_a_reset_call_gets_nothing() {
    let server = Server::new();
    let grpc = Grpc::of(&server);
    let (one, two) = (grpc.lease(5), grpc.lease(5));
    let lock = |lease| grpc.call(LOCK, &[bytes(1, "l"), int(2, lease)]);
    let held = lock(one).unwrap();
    assert_eq!(held.text(2), format!("l/{one:x}"));
    let again = lock(one).unwrap();
    assert_eq!(again.revision(), held.revision(), "the same name and lease are the same hold");
    let mut given_up = grpc.open(LOCK, &[]);
    given_up.send(&[bytes(1, "l"), int(2, two)]);
    server.waiting(1);
    let mut patient = grpc.open(LOCK, &[]);
    patient.send(&[bytes(1, "l"), int(2, two)]);
    assert!(patient.is_silent(Duration::from_millis(50)));
    given_up.reset();
    assert_eq!(lock(one).unwrap().revision(), held.revision(), "the reset was read before this");
    assert_eq!(server.service.status().waiting, 1, "another call wants the same");
    patient.reset();
    server.waiting(0);
    grpc.call(UNLOCK, &[bytes(1, held.text(2))]).unwrap();
    grpc.call(UNLOCK, &[bytes(1, held.text(2))]).unwrap();
    assert_eq!(server.service.held(), 0);
    let next = lock(two).unwrap();
    assert!(next.revision() > held.revision());
    // Without a lease, one of a minute is made. A call that is given up leaves nothing of it.
    let sessions = server.service.sessions();
    let mut unnamed = grpc.open(LOCK, &[]);
    unnamed.send(&[bytes(1, "l")]);
    server.waiting(1);
    unnamed.reset();
    server.until("its lease is gone", |service| service.sessions() == sessions);
    fails(lock(7), 2, &["etcdserver: requested lease not found"]);
}

#[test]
fn an_election_has_one_leader_whose_value_all_see() {
    let server = Server::new();
    let (grpc, other) = (Grpc::of(&server), Grpc::of(&server));
    let (one, two) = (grpc.lease(5), other.lease(5));
    fails(grpc.call("v3electionpb.Election/Leader", &[bytes(1, "e")]), 2, &["no leader"]);
    let mut observer = other.open("v3electionpb.Election/Observe", &[]);
    observer.send(&[bytes(1, "e")]);
    let campaign = [bytes(1, "e"), int(2, one), bytes(3, "first")];
    let won = grpc.call("v3electionpb.Election/Campaign", &campaign).unwrap();
    let leader = won.at(2);
    assert_eq!(observer.next().unwrap().unwrap().at(2).text(5), "first");
    let mut second = other.open("v3electionpb.Election/Campaign", &[]);
    second.send(&[bytes(1, "e"), int(2, two), bytes(3, "second")]);
    server.waiting(1);
    let proclaim = [bytes(1, &leader.0), bytes(2, "still first")];
    grpc.call("v3electionpb.Election/Proclaim", &proclaim).unwrap();
    assert_eq!(observer.next().unwrap().unwrap().at(2).text(5), "still first");
    let shown = other.call("v3electionpb.Election/Leader", &[bytes(1, "e")]).unwrap().at(2);
    assert_eq!((shown.text(5), shown.text(1)), ("still first".to_owned(), leader.text(2)));
    let stale = [bytes(1, "e"), bytes(2, leader.text(2)), int(3, leader.int(3) + 1), int(4, one)];
    grpc.call("v3electionpb.Election/Resign", &[inside(1, &stale)]).unwrap();
    assert_eq!(server.service.status().waiting, 1, "it was created with another revision");
    grpc.call("v3electionpb.Election/Resign", &[bytes(1, &leader.0)]).unwrap();
    let won = second.next().unwrap().unwrap();
    assert_eq!(won.at(2).int(4), two);
    assert_eq!(observer.next().unwrap().unwrap().at(2).text(5), "second");
    fails(grpc.call("v3electionpb.Election/Proclaim", &proclaim), 2, &["not leader"]);
}

#[test]
fn a_lock_that_an_operator_breaks_ends_its_key_and_goes_to_the_next_client() {
    let server = Server::new();
    let (one, other) = (Grpc::of(&server), Grpc::of(&server));
    let (first, second) = (one.lease(30), other.lease(30));
    let fence = enter(&one, "l", first);
    let key = format!("l/{first:x}");
    let mut seen = watch(&other, key.as_bytes(), fence + 1);
    let (created, mut granted) = wait(&other, "l", second);
    server.post("l", "break", &json!({"fence": fence.to_string()})).expect(200);
    assert_eq!(seen.next().unwrap().unwrap().at(11).int(1), 1, "the key is deleted");
    assert_eq!(granted.next().unwrap().unwrap().at(11).int(1), 1, "the next client has the lock");
    let found = predecessor(&other, "l", created).unwrap();
    assert!(found.revision() > fence);
    // The client that has lost the lock can neither find its key nor release another one.
    assert!(one.call(RANGE, &[bytes(1, &key)]).unwrap().all(2).is_empty());
    assert_eq!(delete(&one, "l", first), 0);
    assert_eq!(server.service.held(), 1);
    // It hears of that by its lease, which has no time left.
    let mut beats = one.open("etcdserverpb.Lease/LeaseKeepAlive", &[]);
    beats.send(&[int(1, first)]);
    assert_eq!(beats.next().unwrap().unwrap().int(3), 0);
    fails(one.call(TXN, &queue_txn("l", first)), 5, &["lease not found"]);
    assert_eq!(delete(&other, "l", second), 1);
}

/// An observer of an election watches the key of the leader until it is deleted, and asks again. If
/// the leader is not an etcd client, it is shown a key that nobody has put.
#[test]
fn a_holder_that_is_not_an_etcd_client_has_a_key_that_can_be_watched() {
    let server = Server::new();
    let grpc = Grpc::of(&server);
    let fence = server.acquire("e", &json!({ "ttl_ms": 30_000 }));
    let revision: i64 = fence.parse().unwrap();
    let owner = [bytes(1, "e/"), bytes(2, "e0"), int(3, 1), int(5, 1), int(6, 2)];
    let shown = grpc.call(RANGE, &owner).unwrap().at(2);
    assert_eq!((shown.text(1), shown.int(3)), (format!("e/doorway-{fence}"), revision));
    let found = grpc.call(RANGE, &[bytes(1, shown.text(1))]).unwrap();
    assert_eq!((found.at(2).text(1), found.revision()), (shown.text(1), revision));
    let mut seen = watch(&grpc, shown.text(1).as_bytes(), revision + 1);
    assert!(seen.is_silent(Duration::from_millis(300)), "it is there");
    assert!(server.release("e", &fence));
    let event = seen.next().unwrap().unwrap().at(11);
    assert_eq!((event.int(1), event.at(2).text(1)), (1, shown.text(1)), "it is deleted");
    assert!(grpc.call(RANGE, &[bytes(1, shown.text(1))]).unwrap().all(2).is_empty());
}
