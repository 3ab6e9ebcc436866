//! Etcd clients that are slow, too many, or malformed.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use doorway_daemon::settings::{Limits, Settings, default_limits};
use serde_json::json;

use super::client::{Grpc, bytes, fails, framed, inside, int, queue_txn};
use crate::common::settings::settings;
use crate::http::client::ask;
use crate::server::{self, Server};

#[test]
fn malformed_calls_fail_and_others_go_on() {
    let server = Server::new();
    let grpc = Grpc::of(&server);
    let send = |raw: Vec<u8>| {
        let mut stream = grpc.open("etcdserverpb.KV/Txn", &[]);
        stream.send_bytes(raw);
        stream.next().map(Option::unwrap_or_default)
    };
    fails(send(framed(&[0xff; 20])), 3, &["cannot be read"]);
    fails(send(framed(&[0x0a, 200])), 3, &["cannot be read"]);
    fails(send(vec![1, 0, 0, 0, 0]), 12, &["compressed"]);
    fails(send(vec![0, 255, 255, 255, 255]), 8, &["65536 at most"]);
    fails(send(framed(&[])), 3, &["not a transaction of a lock client"]);
    fails(grpc.call("etcdserverpb.KV/Compact", &[]), 12, &["KV/Compact", "docs/etcd.md"]);
    fails(grpc.call("no/such", &[]), 12, &["no/such"]);
    let serving = grpc.call("grpc.health.v1.Health/Check", &[]).unwrap();
    assert_eq!(serving.int(1), 1);
    grpc.lease(5);
}

/// A message of an error is a header, and clients accept a few kilobytes of them.
#[test]
fn an_error_does_not_quote_all_that_the_client_has_sent() {
    let server = Server::new();
    let grpc = Grpc::of(&server);
    let key = "k".repeat(30_000);
    let (code, text) = grpc.call("etcdserverpb.KV/Range", &[bytes(1, &key)]).unwrap_err();
    assert!(code == 3 && text.len() < 1500 && text.contains("is not a lock"), "{code}: {text}");
    let mut stream = grpc.open("etcdserverpb.Watch/Watch", &[]);
    let end = format!("{}l", &key[1..]);
    stream.send(&[inside(1, &[bytes(1, &key), bytes(2, end)])]);
    let refused = stream.next().unwrap().unwrap().text(6);
    assert!(refused.len() < 1500 && refused.contains("cannot be watched"), "{refused}");
    let body = json!({"TTL": key});
    let stream = server::connect(&server.name).unwrap();
    let said = ask(stream, "POST", "/v3/lease/grant", &[], Some(&body)).expect(400);
    let said = said["error"].as_str().unwrap();
    assert!(said.len() < 1500 && said.contains("is to be"), "{said}");
}

#[test]
fn limits_hold_as_at_every_other_door() {
    let limits = Limits { sessions: 2, connections: 2, waiting: 1, ..default_limits() };
    let server = Server::start(&Settings { limits, ..settings() });
    let (one, two) = (Grpc::of(&server), Grpc::of(&server));
    let (first, second) = (one.lease(5), two.lease(5));
    fails(one.call("etcdserverpb.Lease/LeaseGrant", &[int(1, 5)]), 8, &["limits.sessions"]);
    let lock = |name, lease| [bytes(1, name), int(2, lease)];
    for name in ["l", "m"] {
        one.call("v3lockpb.Lock/Lock", &lock(name, first)).unwrap();
    }
    let mut waits = two.open("v3lockpb.Lock/Lock", &[]);
    waits.send(&lock("l", second));
    server.waiting(1);
    fails(two.call("v3lockpb.Lock/Lock", &lock("m", second)), 8, &["limits.waiting"]);
    let mut third = server::connect(&server.name).unwrap();
    third.write_all(b"POST /v3/lease/grant HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let mut said = String::new();
    let _ = third.read_to_string(&mut said);
    assert!(said.contains("limits.connections"), "{said}");
    // What is released makes room.
    waits.reset();
    server.waiting(0);
    one.call("etcdserverpb.Lease/LeaseRevoke", &[int(1, first)]).unwrap();
    one.lease(5);
}

#[test]
fn random_bytes_end_only_their_own_connection() {
    let server = Server::new();
    let witness = Grpc::of(&server);
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 56) as u8
    };
    for round in 0..40 {
        let mut stream = server::connect(&server.name).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        let mut raw = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        if round % 2 == 0 {
            raw.extend([0, 0, 0, 4, 0, 0, 0, 0, 0]); // Settings, so that frames follow.
        }
        raw.extend((0..500).map(|_| random()));
        let _ = stream.write_all(&raw);
        let mut said = Vec::new();
        let _ = stream.read_to_end(&mut said);
    }
    witness.lease(5);
    drop(witness);
    server.until("all are gone", |service| service.connections() == 0);
}

#[test]
fn one_stream_watches_a_limited_number_of_keys() {
    let server = Server::new();
    let grpc = Grpc::of(&server);
    let mut stream = grpc.open("etcdserverpb.Watch/Watch", &[]);
    for number in 0..257 {
        stream.send(&[inside(1, &[bytes(1, format!("k{number}"))])]);
        let created = stream.next().unwrap().unwrap();
        assert_eq!((created.int(3), created.int(4)), (1, i64::from(number == 256)), "{number}");
    }
    // One that is cancelled makes room.
    stream.send(&[inside(2, &[int(1, 7)])]);
    assert_eq!(stream.next().unwrap().unwrap().int(4), 1);
    stream.send(&[inside(1, &[bytes(1, "a"), bytes(2, "b")])]);
    let refused = stream.next().unwrap().unwrap();
    assert!(refused.int(4) == 1 && refused.text(6).contains("cannot be watched"));
    stream.send(&[inside(1, &[bytes(1, "again")])]);
    assert_eq!(stream.next().unwrap().unwrap().int(4), 0);
}

/// Some clients do not cancel a watch that has told them of their grant.
#[test]
fn a_watch_whose_grant_was_told_makes_room_for_another_one() {
    const TXN: &str = "etcdserverpb.KV/Txn";
    let server = Server::new();
    let grpc = Grpc::of(&server);
    let (first, second) = (grpc.lease(60), grpc.lease(60));
    grpc.call(TXN, &queue_txn("l", first)).unwrap();
    let created = grpc.call(TXN, &queue_txn("l", second)).unwrap().revision();
    grpc.call("etcdserverpb.Lease/LeaseRevoke", &[int(1, first)]).unwrap();
    let mut stream = grpc.open("etcdserverpb.Watch/Watch", &[]);
    for number in 0..600 {
        stream.send(&[inside(1, &[bytes(1, format!("l/waits-{created:x}"))])]);
        let made = stream.next().unwrap().unwrap();
        assert_eq!((made.int(3), made.int(4)), (1, 0), "{number}: {}", made.text(6));
        let told = stream.next().unwrap().unwrap();
        assert_eq!((told.int(2), told.at(11).int(1)), (made.int(2), 1), "the lock is granted");
    }
    // A client that does cancel it gets an answer, once.
    for _ in 0..2 {
        stream.send(&[inside(2, &[int(1, 599)])]);
    }
    let cancelled = stream.next().unwrap().unwrap();
    assert_eq!((cancelled.int(2), cancelled.int(4)), (599, 1));
    stream.send(&[inside(1, &[bytes(1, "k")])]);
    assert_eq!(stream.next().unwrap().unwrap().int(3), 1, "nothing else comes before");
}

#[test]
fn one_connection_watches_a_limited_number_of_keys() {
    let server = Server::new();
    let grpc = Grpc::of(&server);
    let mut streams: Vec<_> = (0..5).map(|_| grpc.open("etcdserverpb.Watch/Watch", &[])).collect();
    let mut refused = Vec::new();
    for number in 0..1030 {
        let stream = &mut streams[number / 250];
        stream.send(&[inside(1, &[bytes(1, format!("k{number}"))])]);
        let created = stream.next().unwrap().unwrap();
        if created.int(4) == 1 {
            assert!(created.text(6).contains("a connection may"), "{}", created.text(6));
            refused.push(number);
        }
    }
    assert_eq!(refused, (1024..1030).collect::<Vec<_>>());
    let other = Grpc::of(&server);
    let mut stream = other.open("etcdserverpb.Watch/Watch", &[]);
    stream.send(&[inside(1, &[bytes(1, "k")])]);
    assert_eq!(stream.next().unwrap().unwrap().int(4), 0, "others are not affected");
}

#[test]
fn a_request_whose_client_vanishes_ends_with_its_lease() {
    let server = Server::new();
    let holder = Grpc::of(&server);
    let lease = holder.lease(30);
    holder.call("v3lockpb.Lock/Lock", &[bytes(1, "l"), int(2, lease)]).unwrap();
    let gone = Grpc::of(&server);
    let other = gone.lease(1);
    gone.call("etcdserverpb.KV/Txn", &queue_txn("l", other)).unwrap();
    server.waiting(1);
    drop(gone);
    server.waiting(0);
    assert_eq!(server.service.held(), 1);
}
