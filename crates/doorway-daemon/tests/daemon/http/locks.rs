//! Every route of locks, with its errors.

use serde_json::json;

use super::client::{exchange, request};
use crate::common::Place;
use crate::common::settings::settings;
use crate::server::Server;

#[test]
fn a_lock_is_acquired_inspected_listed_and_released() {
    let server = Server::new();
    let body = json!({ "ttl_ms": 5000.0, "label": "nightly backup" });
    let lease = server.post("backup", "acquire", &body).expect(200);
    assert_eq!(lease["lock"], "backup");
    assert_eq!((&lease["ttl_ms"], &lease["expires_in_ms"]), (&json!(5000), &json!(5000)));
    let fence = lease["fence"].as_str().unwrap();
    assert_eq!(lease["view"], fence.parse::<u64>().unwrap() >> 40);
    let report = server.get("/v1/locks/backup").expect(200);
    let holder = &report["holders"][0];
    assert_eq!((&holder["fence"], &holder["session"]), (&lease["fence"], &lease["session"]));
    assert_eq!((&holder["client"], &holder["shared"]), (&json!("nightly backup"), &json!(false)));
    let locks = server.get("/v1/locks?prefix=back").expect(200);
    assert_eq!(locks["locks"][0]["lock"], "backup");
    assert_eq!(server.get("/v1/locks?prefix=x").expect(200)["locks"], json!([]));
    assert_eq!(server.get("/v1/locks?after=backup").expect(200)["locks"], json!([]));
    assert!(server.release("backup", fence));
    assert!(!server.release("backup", fence), "it may be asked again");
    assert_eq!(server.get("/v1/locks/backup").expect(200)["holders"], json!([]));
    assert_eq!(server.service.sessions(), 0, "the lease ended with what it held");
}

#[test]
fn a_request_waits_for_a_held_lock_until_its_timeout() {
    let server = Server::new();
    let fence = server.acquire("a", &json!({}));
    server.post("a", "acquire", &json!({})).problem(409, "not-free", "`a` is not free");
    server.post("a", "acquire", &json!({ "wait_ms": 20 })).problem(409, "not-free", "in time");
    assert_eq!(server.service.status().waiting, 0, "nobody can come back for that place");
    assert_eq!(server.service.sessions(), 1);
    std::thread::scope(|scope| {
        let next = scope.spawn(|| server.acquire("a", &json!({ "wait_ms": 20_000 })));
        server.waiting(1);
        let waiter = server.get("/v1/locks/a").expect(200)["waiters"][0].clone();
        assert_eq!((&waiter["node"], &waiter["place"]), (&json!("node"), &json!(0)));
        assert!(server.release("a", &fence));
        let next: u64 = next.join().unwrap().parse().unwrap();
        assert!(next > fence.parse::<u64>().unwrap());
    });
}

#[test]
fn locks_are_shared_or_have_permits() {
    let server = Server::new();
    server.acquire("s", &json!({ "shared": true }));
    server.acquire("s", &json!({ "shared": true }));
    server.post("s", "acquire", &json!({})).problem(409, "not-free", "`s`");
    server.acquire("p", &json!({ "permits": 2 }));
    server.acquire("p", &json!({ "permits": 2 }));
    server.post("p", "acquire", &json!({ "permits": 2 })).problem(409, "not-free", "`p`");
    server.post("p", "acquire", &json!({ "permits": 3 })).problem(422, "not-served", "2 permits");
    let both = json!({ "permits": 2, "shared": true });
    server.post("q", "acquire", &both).problem(422, "not-served", "not both");
    assert_eq!(server.service.sessions(), 4, "who is refused leaves nothing behind");
}

#[test]
fn a_lease_lasts_only_while_it_is_renewed() {
    let server = Server::new();
    let fence = server.acquire("a", &json!({ "ttl_ms": 500 }));
    let renewed = server.post("a", "renew", &json!({ "fence": fence, "ttl_ms": 1500 })).expect(200);
    assert_eq!((&renewed["ttl_ms"], &renewed["fence"]), (&json!(1500), &json!(fence)));
    server.post("a", "renew", &json!({ "fence": fence, "ttl_ms": 1 })).expect(200);
    server.until("the lease ends", |service| service.held() == 0);
    server.post("a", "renew", &json!({ "fence": fence })).problem(404, "gone", &fence);
    assert!(!server.release("a", &fence));
    server.acquire("a", &json!({}));
}

#[test]
fn breaking_a_lock_requires_its_fence() {
    let server = Server::new();
    let fence = server.acquire("a", &json!({}));
    server.post("a", "break", &json!({ "fence": "1" })).problem(404, "gone", &fence);
    let broken = server.post("a", "break", &json!({ "fence": fence })).expect(200);
    assert_eq!(broken, json!({ "broken": true }));
    assert_eq!(server.service.sessions(), 0, "the lease has no more use");
    server.post("a", "renew", &json!({ "fence": fence })).problem(404, "gone", "`a`");
    server.post("a", "break", &json!({ "fence": fence })).problem(
        404,
        "gone",
        "no client holds it",
    );
}

#[test]
fn a_fence_is_a_string_so_that_it_is_not_rounded() {
    let server = Server::new();
    let fence = server.acquire("a", &json!({}));
    let number: u64 = fence.parse().unwrap();
    let too_high = u64::MAX.to_string();
    for wrong in [json!(number), json!("0"), json!("+1"), json!("01"), json!(too_high), json!("x")]
    {
        server.post("a", "renew", &json!({ "fence": wrong })).problem(400, "invalid", "fence");
    }
    assert!(server.release("a", &fence));
}

#[test]
fn names_are_percent_encoded() {
    let server = Server::new();
    let lease = server.post("deploy%2Fweb%20%C3%A4", "acquire", &json!({})).expect(200);
    assert_eq!(lease["lock"], "deploy/web ä");
    let report = server.get("/v1/locks/deploy%2Fweb%20%C3%A4").expect(200);
    assert_eq!(report["holders"][0]["fence"], lease["fence"]);
    let long = "x".repeat(201);
    for (name, text) in [
        ("%25k", "must not begin with `%`"),
        ("a%00", "control character"),
        ("%FF", "path"),
        (long.as_str(), "at most 200 bytes"),
    ] {
        server.post(name, "acquire", &json!({})).problem(400, "invalid", text);
    }
    server.post("a/b", "acquire", &json!({})).problem(404, "not-found", "/openapi.json");
}

#[test]
fn invalid_requests_are_explained_and_change_nothing() {
    let server = Server::new();
    let send = |headers: &[(&str, &str)], body: &str| {
        let path = "/v1/locks/a/acquire";
        exchange(server.connect(), &request("POST", path, headers, Some(body)))
    };
    send(&[], "{").problem(400, "invalid", "the body");
    send(&[], "").problem(400, "invalid", "the body");
    send(&[], "[]").problem(400, "invalid", "the body");
    send(&[], r#"{"wait": 1}"#).problem(400, "invalid", "unknown field `wait`");
    send(&[], r#"{"ttl_ms": -1}"#).problem(400, "invalid", "-1");
    send(&[], r#"{"ttl_ms": "1"}"#).problem(400, "invalid", "number");
    send(&[], r#"{"ttl_ms": 1.5}"#).problem(400, "invalid", "not a whole number");
    send(&[], r#"{"ttl_ms": 4294967296}"#).problem(400, "invalid", "to 4294967295");
    send(&[], r#"{"wait_ms": 600001}"#).problem(400, "invalid", "600000");
    send(&[], r#"{"request_id": ""}"#).problem(400, "invalid", "1 to 200");
    send(&[("content-type", "text/plain")], "{}").problem(415, "invalid", "application/json");
    send(&[("content-type", "")], "{}").problem(415, "invalid", "application/json");
    send(&[], &format!("{}{{}}", " ".repeat(1 << 16))).problem(413, "invalid", "65536");
    let longest = format!(r#"{{"label": "{}"}}"#, "l".repeat((1 << 16) - 20));
    assert_eq!(send(&[], &longest).status, 200);
    for path in ["/", "/v1", "/v1/locks/a/steal", "/v2/status"] {
        server.get(path).problem(404, "not-found", "/openapi.json");
    }
    let answer = server.get("/v1/locks/a/acquire");
    answer.problem(405, "invalid", "method");
    assert!(answer.head.contains("allow: post"), "{answer:?}");
    server.get("/v1/locks?prefx=a").problem(400, "invalid", "prefx");
    server.get("/v1/locks?after=%00").problem(400, "invalid", "after");
    assert_eq!(server.service.held(), 1);
}

#[test]
fn a_lease_without_end_needs_the_consent_of_the_node() {
    let body = json!({ "ttl_ms": null });
    let server = Server::new();
    server.post("a", "acquire", &body).problem(403, "forbidden", "`endless = true` under [limits]");
    let place = Place::new();
    let mut settings = settings();
    settings.limits.endless = true;
    let forgetful = Server::start(&settings);
    forgetful.post("a", "acquire", &body).problem(403, "forbidden", "it has no data directory");
    settings.node.data = Some(place.path().to_owned());
    let server = Server::start(&settings);
    let lease = server.post("a", "acquire", &body).expect(200);
    assert_eq!((&lease["ttl_ms"], &lease["expires_in_ms"]), (&json!(null), &json!(null)));
    let fence = lease["fence"].as_str().unwrap();
    let renewed = server.post("a", "renew", &json!({ "fence": fence })).expect(200);
    assert_eq!(renewed["ttl_ms"], json!(null));
    server.post("a", "acquire", &body).problem(409, "not-free", "not free");
    assert!(server.release("a", fence));
    assert_eq!(server.service.sessions(), 0);
    let lease = server.post("a", "acquire", &body).expect(200);
    let broken = server.post("a", "break", &json!({ "fence": lease["fence"] })).expect(200);
    assert_eq!((&broken["broken"], server.service.sessions()), (&json!(true), 0));
}
