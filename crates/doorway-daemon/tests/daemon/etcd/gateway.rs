//! Bare keys, and everything that is not served, over the JSON gateway.

use data_encoding::BASE64;
use serde_json::{Value, json};

use crate::common::daemon::Daemon;
use crate::common::group;
use crate::http::client::{Answer, ask};
use crate::server::{self, Server};

fn text(text: &str) -> String {
    BASE64.encode(text.as_bytes())
}

fn post(server: &Server, path: &str, body: &Value) -> Answer {
    server.send("POST", &format!("/v3/{path}"), Some(body))
}

fn lease(server: &Server, ttl: i64) -> String {
    let granted = post(server, "lease/grant", &json!({"TTL": ttl})).expect(200);
    granted["ID"].as_str().expect("a number").to_owned()
}

/// The transaction by which a client creates a bare key.
fn acquire(key: &str, value: &str, lease: &str) -> Value {
    json!({
        "compare": [{"key": text(key), "target": "CREATE", "create_revision": 0}],
        "success": [{"request_put": {"key": text(key), "value": text(value), "lease": lease}}],
        "failure": [{"request_range": {"key": text(key)}}],
    })
}

/// The transaction by which a client deletes a bare key of its own.
fn release(key: &str, value: &str) -> Value {
    json!({
        "compare": [{"key": text(key), "target": "VALUE", "value": text(value)}],
        "success": [{"request_delete_range": {"key": text(key)}}],
    })
}

#[test]
fn a_bare_key_is_a_lock_that_its_value_releases() {
    let server = Server::new();
    let (one, two) = (lease(&server, 5), lease(&server, 5));
    let held = post(&server, "kv/txn", &acquire("k", "mine", &one)).expect(200);
    assert_eq!(held["succeeded"], true);
    let fence = held["header"]["revision"].clone();
    let refused = post(&server, "kv/txn", &acquire("k", "yours", &two)).expect(200);
    assert_eq!(refused.get("succeeded"), None, "{refused}");
    let holder = &refused["responses"][0]["response_range"]["kvs"][0];
    assert_eq!((&holder["value"], &holder["mod_revision"]), (&json!(text("mine")), &fence));
    // The same lease does not get it twice either, because two threads may share it.
    let again = post(&server, "kv/txn", &acquire("k", "mine", &one)).expect(200);
    assert_eq!(again.get("succeeded"), None, "{again}");
    let wrong = post(&server, "kv/txn", &release("k", "yours")).expect(200);
    assert_eq!(wrong.get("succeeded"), None, "{wrong}");
    let found = post(&server, "kv/range", &json!({"key": text("k")})).expect(200);
    assert_eq!(found["kvs"][0]["value"], text("mine"));
    assert_eq!(post(&server, "kv/txn", &release("k", "mine")).expect(200)["succeeded"], true);
    let next = post(&server, "kv/txn", &acquire("k", "yours", &two)).expect(200);
    let number = |value: &Value| value.as_str().unwrap().parse::<i64>().unwrap();
    assert!(number(&next["header"]["revision"]) > number(&fence), "the fence grows");
    let alive = post(&server, "lease/keepalive", &json!({"ID": two})).expect(200);
    assert_eq!(alive["result"]["TTL"], "5");
    post(&server, "lease/revoke", &json!({"ID": two})).expect(200);
    assert_eq!(server.service.held(), 0);
    let gone = post(&server, "lease/keepalive", &json!({"ID": two})).expect(200);
    assert_eq!(gone["result"].get("TTL"), None);
}

#[test]
fn a_lease_may_use_one_value_for_several_keys() {
    let server = Server::new();
    let (one, two) = (lease(&server, 5), lease(&server, 5));
    for key in ["a", "b"] {
        let held = post(&server, "kv/txn", &acquire(key, "host", &one)).expect(200);
        assert_eq!(held["succeeded"], true, "{held}");
    }
    assert_eq!(post(&server, "kv/txn", &release("b", "host")).expect(200)["succeeded"], true);
    let taken = post(&server, "kv/txn", &acquire("a", "other", &two)).expect(200);
    assert_eq!(taken.get("succeeded"), None, "only b was released: {taken}");
    let free = post(&server, "kv/txn", &acquire("b", "other", &two)).expect(200);
    assert_eq!(free["succeeded"], true, "{free}");
}

#[test]
fn a_transaction_has_few_operations() {
    let server = Server::new();
    let mut long = acquire("k", "v", &lease(&server, 5));
    let range = json!({"request_range": {"key": text("k")}});
    long["failure"] = Value::from(vec![range; 100]);
    let refused = post(&server, "kv/txn", &long).expect(400);
    let told = refused["error"].as_str().unwrap_or_default();
    assert!(told.contains("more operations than a lock needs"), "{refused}");
}

#[test]
fn the_lock_service_works_with_json() {
    let server = Server::new();
    let lease = lease(&server, 5);
    let held = post(&server, "lock/lock", &json!({"name": text("l"), "lease": lease})).expect(200);
    assert!(held["key"].is_string() && server.service.held() == 1);
    let listed = post(&server, "kv/range", &json!({"key": "AA==", "range_end": "AA=="}));
    assert_eq!(listed.expect(200)["kvs"][0]["key"], text("l"));
    post(&server, "lock/unlock", &json!({"key": held["key"]})).expect(200);
    assert_eq!(server.service.held(), 0);
}

#[test]
fn what_is_not_served_gets_a_sentence() {
    let server = Server::new();
    let lease = lease(&server, 5);
    let refused = |path: &str, body: &Value, status: u16, part: &str| {
        let answer = post(&server, path, body);
        let body = answer.expect(status);
        assert!(body["error"].as_str().is_some_and(|told| told.contains(part)), "{body}");
    };
    let mut nested = acquire("k", "v", &lease);
    nested["success"] = json!([{"request_put": {"key": text("other"), "value": text("v")}}]);
    refused("kv/txn", &nested, 400, "not a transaction of a lock client");
    refused("kv/txn", &acquire("k", "v", "0"), 400, "a lock needs a lease");
    refused("kv/txn", &acquire("k", "v", "7"), 404, "requested lease not found");
    refused("kv/txn", &acquire("%k", "v", &lease), 400, "reserved");
    refused("kv/txn", &acquire("", "v", &lease), 400, "must not be empty");
    refused("kv/txn", &acquire("k", &"v".repeat(5000), &lease), 400, "4096");
    refused("kv/put", &json!({"key": text("k"), "value": text("v")}), 400, "creates none");
    refused("kv/deleterange", &json!({"key": "AA==", "range_end": "AA=="}), 400, "single keys");
    refused("kv/range", &json!({"key": text("a"), "range_end": text("z")}), 400, "not a prefix");
    refused("kv/range", &json!({"key": text("k"), "revision": 5}), 400, "not kept");
    refused("lease/grant", &json!({"TTL": 100_000}), 400, "too large lease TTL");
    refused("lease/grant", &json!({"TTL": 0}), 400, "1 s to 60 s");
    refused("lease/grant", &json!({"TTL": 5, "ID": 7}), 400, "leave ID 0");
    refused("lease/leases", &json!({}), 501, "docs/etcd.md");
    refused("kv/range", &json!({"no": 1}), 400, "no field `no`");
    assert_eq!(server.service.held(), 0);
}

#[test]
fn a_lease_and_its_keys_survive_a_crash_of_the_node() {
    let mut daemon = group::remote("[etcd]\nlisten = \"127.0.0.1:0\"\n");
    let post = |daemon: &Daemon, path: &str, body: &Value| {
        let stream = server::connect(daemon.socket.trim_start_matches('@')).unwrap();
        ask(stream, "POST", &format!("/v3/{path}"), &[], Some(body)).expect(200)
    };
    let lease = post(&daemon, "lease/grant", &json!({"TTL": 30}))["ID"].clone();
    let id = lease.as_str().unwrap();
    let bare = post(&daemon, "kv/txn", &acquire("k", "mine", id));
    let queued = post(&daemon, "lock/lock", &json!({"name": text("l"), "lease": id}));
    daemon.crash();
    daemon.ready();
    let alive = post(&daemon, "lease/keepalive", &json!({"ID": id}));
    assert_eq!(alive["result"]["TTL"], "30");
    let found = post(&daemon, "kv/range", &json!({"key": text("k")}));
    assert_eq!(found["kvs"][0]["value"], text("mine"));
    assert_eq!(found["kvs"][0]["mod_revision"], bare["header"]["revision"]);
    let found = post(&daemon, "kv/range", &json!({"key": queued["key"]}));
    assert_eq!(found["kvs"][0]["mod_revision"], queued["header"]["revision"]);
    assert_eq!(post(&daemon, "kv/txn", &release("k", "other")).get("succeeded"), None);
    assert_eq!(post(&daemon, "kv/txn", &release("k", "mine"))["succeeded"], true);
    post(&daemon, "lock/unlock", &json!({"key": queued["key"]}));
    let found = post(&daemon, "kv/range", &json!({"key": queued["key"]}));
    assert_eq!(found.get("kvs"), None);
    let left = post(&daemon, "lease/timetolive", &json!({"ID": id, "keys": true}));
    assert_eq!((left.get("keys"), &left["grantedTTL"]), (None, &json!("30")));
}
