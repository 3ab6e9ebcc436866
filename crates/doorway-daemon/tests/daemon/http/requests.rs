//! Repeated requests.

use std::io::Write as _;

use doorway_daemon::settings::Settings;
use doorway_node::Config;
use serde_json::json;

use super::client::request;
use crate::common::Place;
use crate::common::settings::settings;
use crate::server::Server;

#[test]
fn a_request_that_was_granted_gets_the_same_grant_again() {
    let server = Server::new();
    let body = json!({ "request_id": "r1" });
    let fence = server.acquire("a", &body);
    assert_eq!(server.acquire("a", &body), fence);
    assert_eq!(server.acquire("a", &json!({ "request_id": "r1", "wait_ms": 5000 })), fence);
    server.post("a", "acquire", &json!({ "request_id": "r2" })).problem(409, "not-free", "`a`");
    assert_eq!((server.service.status().grants, server.service.sessions()), (1, 1));
    let other = server.post("b", "acquire", &body);
    other.problem(422, "invalid", "a different request");
    let other = server.post("a", "acquire", &json!({ "request_id": "r1", "shared": true }));
    other.problem(422, "invalid", "a different request");
    assert!(server.release("a", &fence));
    server.post("a", "acquire", &body).problem(404, "gone", "\"r1\" was granted");
    server.acquire("a", &json!({ "request_id": "r2" }));
}

#[test]
fn simultaneous_requests_with_one_id_are_one_request() {
    let server = Server::new();
    let held = server.acquire("a", &json!({}));
    let body = json!({ "request_id": "r", "wait_ms": 20_000 });
    let fences = std::thread::scope(|scope| {
        let all: Vec<_> = (0..8).map(|_| scope.spawn(|| server.acquire("a", &body))).collect();
        server.until("all are there", |service| service.connections() == 8);
        server.waiting(1);
        server.release("a", &held);
        all.into_iter().map(|one| one.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(fences.iter().all(|fence| *fence == fences[0]), "{fences:?}");
    assert_eq!((server.service.held(), server.service.sessions()), (1, 1));
}

/// A client that sends a request and disconnects.
fn leave(server: &Server, body: &serde_json::Value) {
    let waiting = server.service.status().waiting;
    let mut stream = server.connect();
    let bytes = request("POST", "/v1/locks/a/acquire", &[], Some(&body.to_string()));
    stream.write_all(&bytes).expect("somebody reads");
    server.waiting(waiting + 1);
    drop(stream);
    server.until("it is gone", |service| service.connections() == 0);
}

#[test]
fn a_client_that_disconnects_while_waiting_keeps_its_place() {
    let server = Server::new();
    let held = server.acquire("a", &json!({}));
    let body = json!({ "request_id": "r", "wait_ms": 20_000, "ttl_ms": 20_000 });
    leave(&server, &body);
    std::thread::scope(|scope| {
        let later = scope.spawn(|| server.acquire("a", &json!({ "wait_ms": 20_000 })));
        server.waiting(2);
        let again = scope.spawn(|| server.acquire("a", &body));
        server.until("it is back", |service| service.connections() == 2);
        server.release("a", &held);
        let first = again.join().unwrap();
        assert!(server.release("a", &first));
        let later = later.join().unwrap();
        assert!(later.parse::<u64>().unwrap() > first.parse::<u64>().unwrap());
    });
}

#[test]
fn a_grant_to_a_disconnected_client_waits_for_it() {
    let server = Server::new();
    let held = server.acquire("a", &json!({}));
    let body = json!({ "request_id": "r", "wait_ms": 20_000, "ttl_ms": 20_000 });
    leave(&server, &body);
    server.release("a", &held);
    server.until("it is granted", |service| service.status().grants == 2);
    let fence = server.acquire("a", &body);
    assert_eq!(server.service.status().grants, 2);
    assert!(server.release("a", &fence));
}

#[test]
fn a_request_without_an_id_ends_with_its_connection() {
    let server = Server::new();
    server.acquire("a", &json!({ "ttl_ms": 60_000 }));
    leave(&server, &json!({ "wait_ms": 20_000, "ttl_ms": 60_000 }));
    server.waiting(0);
    server.until("its lease is gone", |service| service.sessions() == 1);
}

#[test]
fn a_place_is_given_up_if_the_client_does_not_come_back() {
    let server = Server::new();
    server.acquire("a", &json!({ "ttl_ms": 30_000 }));
    leave(&server, &json!({ "request_id": "r", "wait_ms": 20_000, "ttl_ms": 500 }));
    server.waiting(0);
    assert_eq!(server.service.sessions(), 1);
    // It was never granted, so it may be requested once more.
    let again = server.post("a", "acquire", &json!({ "request_id": "r", "ttl_ms": 500 }));
    again.problem(409, "not-free", "`a`");
}

#[test]
fn a_request_keeps_its_place_after_its_timeout_until_it_is_withdrawn() {
    let server = Server::new();
    let held = server.acquire("a", &json!({ "ttl_ms": 30_000 }));
    let body = json!({ "request_id": "r", "wait_ms": 10, "ttl_ms": 20_000 });
    server.post("a", "acquire", &body).problem(409, "not-free", "keeps its place for 20000 ms");
    assert_eq!(server.service.status().waiting, 1);
    let now = json!({ "request_id": "r", "ttl_ms": 20_000 });
    server.post("a", "acquire", &now).problem(409, "not-free", "keeps its place");
    assert_eq!(server.service.status().waiting, 1);
    let id = json!({ "request_id": "r" });
    assert_eq!(server.post("b", "withdraw", &id).expect(200), json!({ "withdrawn": false }));
    assert_eq!(server.post("a", "withdraw", &id).expect(200), json!({ "withdrawn": true }));
    assert_eq!(server.post("a", "withdraw", &id).expect(200), json!({ "withdrawn": false }));
    assert_eq!((server.service.status().waiting, server.service.sessions()), (0, 1));
    server.post("a", "acquire", &body).problem(404, "gone", "withdrawn");
    server.release("a", &held);
    server.acquire("a", &json!({ "request_id": "s" }));
    let id = json!({ "request_id": "s" });
    assert_eq!(server.post("a", "withdraw", &id).expect(200), json!({ "withdrawn": true }));
    assert_eq!(server.service.held(), 0, "what was granted is released");
}

#[test]
fn leases_and_requests_outlive_a_crash_of_the_node() {
    let place = Place::new();
    let node = Config { data: Some(place.path().to_owned()), ..settings().node };
    let settings = Settings { node, ..settings() };
    let body = json!({ "request_id": "r", "ttl_ms": 5000, "label": "a job" });
    let server = Server::start(&settings);
    let fence = server.acquire("a", &body);
    server.crash();
    let server = Server::start(&settings);
    let holders = server.get("/v1/locks/a").expect(200)["holders"].clone();
    assert_eq!(holders[0]["client"], "a job");
    assert_eq!(server.acquire("a", &body), fence, "the same request");
    server.post("a", "renew", &json!({ "fence": fence, "ttl_ms": 6000 })).expect(200);
    let other = server.post("a", "acquire", &json!({ "request_id": "s" }));
    other.problem(409, "not-free", "`a`");
    assert!(server.release("a", &fence));
    let next: u64 = server.acquire("a", &json!({ "request_id": "s" })).parse().unwrap();
    assert!(next > fence.parse::<u64>().unwrap());
}

/// A copy of a request that does not wait arrives just when the first one is granted.
#[test]
fn an_impatient_copy_takes_nothing_from_a_patient_one() {
    let server = Server::new();
    let mut held = server.acquire("a", &json!({}));
    for round in 0..100 {
        let id = format!("r{round}");
        let patient = json!({ "request_id": id, "wait_ms": 20_000 });
        let impatient = json!({ "request_id": id, "wait_ms": 0 });
        let fence = std::thread::scope(|scope| {
            let waits = scope.spawn(|| server.acquire("a", &patient));
            server.waiting(1);
            let copies: Vec<_> = (0..3)
                .map(|_| scope.spawn(|| server.post("a", "acquire", &impatient).status))
                .collect();
            server.release("a", &held);
            for copy in copies {
                let status = copy.join().unwrap();
                assert!([200, 409].contains(&status), "{status}");
            }
            waits.join().unwrap()
        });
        assert_eq!(server.service.held(), 1, "round {round}: what was granted is held");
        held = fence;
    }
}
