//! Clients of Redis and of etcd in a group that agrees on its members: a lease that is longer than
//! a node can promise by itself is kept by the group, and outlives its node.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::group::{Group, LEASE, Machine, Pace};
use crate::place::{PATIENCE, until};

/// The time to live of the lease that outlives its node, in seconds.
const TTL: u64 = 6;

/// Three nodes that serve such clients at their Unix sockets.
fn group(door: &str, pace: Pace) -> Group {
    let mut group = Group::on(Machine::local(3), 3, pace);
    fs::write(group.place.file("ci.token"), "the-token-of-the-client-called-ci").expect("a token");
    for node in 0..3 {
        let path = group.place.file(&format!("{}.toml", group.name(node)));
        let mut settings = fs::read_to_string(&path).expect("its settings");
        let _ = write!(
            settings,
            "[{door}]\nlisten = \"127.0.0.1:0\"\n\
             [[client]]\nname = \"ci\"\ntoken_file = \"ci.token\"\n\
             rights = [{{ names = \"*\", may = [\"acquire\"] }}]\n"
        );
        fs::write(path, settings).expect("its settings");
    }
    group.found(3);
    group
}

fn connect(group: &Group, node: usize) -> UnixStream {
    let stream = group.connect(node);
    stream.set_read_timeout(Some(PATIENCE)).expect("a time can be set");
    stream
}

/// The group keeps this lock closed for a client of the node that died.
fn is_kept_closed(group: &Group, lock: &str) {
    let kept = || group.answer(0, &format!("who {lock}")).contains("kept closed");
    until("the lock is kept closed", kept);
}

/// Send words to the door for Redis clients. Returns the first line of the reply, or the text of a
/// bulk string.
fn redis(stream: &mut BufReader<UnixStream>, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let mut request = format!("*{}\r\n", words.len());
    for word in words {
        let _ = write!(request, "${}\r\n{word}\r\n", word.len());
    }
    stream.get_mut().write_all(request.as_bytes()).expect("a request");
    let mut read = || {
        let mut line = String::new();
        stream.read_line(&mut line).expect("a reply");
        line.trim_end().to_owned()
    };
    let first = read();
    if first.starts_with('$') && first != "$-1" { read() } else { first }
}

#[test]
fn a_long_lease_of_a_redis_client_outlives_its_node() {
    assert!(Duration::from_secs(TTL) > LEASE);
    let mut group = group("redis", Pace::QUICK);
    let begin = Instant::now();
    let mut holder = BufReader::new(connect(&group, 2));
    let set = format!("SET k mine NX PX {}", TTL * 1000);
    assert_eq!(redis(&mut holder, &set), "+OK");
    let fence: u64 = redis(&mut holder, "DOORWAY.FENCE k mine").parse().expect("a fence");
    let mut other = BufReader::new(connect(&group, 0));
    assert_eq!(redis(&mut other, "SET k yours NX PX 60000"), "$-1");
    group.kill(2);
    is_kept_closed(&group, "k");
    assert_eq!(redis(&mut other, "SET k yours NX PX 60000"), "$-1", "nobody else gets in");
    until("the lease is over", || redis(&mut other, "SET k yours NX PX 60000") == "+OK");
    assert!(begin.elapsed() > Duration::from_secs(TTL), "not before its end");
    let next: u64 = redis(&mut other, "DOORWAY.FENCE k yours").parse().expect("a fence");
    assert!(next > fence, "{next} {fence}");
}

/// Call the JSON gateway of etcd. Returns the body of the response.
fn etcd(group: &Group, node: usize, path: &str, body: &Value) -> Value {
    let (mut stream, body) = (connect(group, node), body.to_string());
    let head = format!(
        "POST /v3/{path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).expect("a request");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("a response");
    let (head, body) = response.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 200 "), "{response}");
    serde_json::from_str(body).expect("JSON")
}

/// The locks `k` and `l` as base64, which the gateway wants.
const K: &str = "aw==";
const L: &str = "bA==";

fn etcd_lease(group: &Group, node: usize, ttl: u64) -> Value {
    etcd(group, node, "lease/grant", &json!({"TTL": ttl}))["ID"].clone()
}

/// Take a lock with a new lease of this time. Returns its fence.
fn etcd_lock(group: &Group, node: usize, lock: &str, ttl: u64) -> u64 {
    let lease = etcd_lease(group, node, ttl);
    let held = etcd(group, node, "lock/lock", &json!({"name": lock, "lease": lease}));
    let revision = held["header"]["revision"].as_str().expect("a revision");
    revision.parse().expect("a number")
}

#[test]
fn a_long_lease_of_an_etcd_client_outlives_its_node() {
    let mut group = group("etcd", Pace::QUICK);
    let begin = Instant::now();
    let fence = etcd_lock(&group, 2, L, TTL);
    group.kill(2);
    is_kept_closed(&group, "l");
    let said = group.mistake(1, "run -n l -- true", 1);
    assert!(said.contains("promised by an earlier process of c"), "{said}");
    let next = etcd_lock(&group, 0, L, 60);
    assert!(begin.elapsed() > Duration::from_secs(TTL), "not before its end");
    assert!(next > fence, "{next} {fence}");
}

/// The node that died had promised one lock for less than its own lease, and the group keeps the
/// other one. As long as it does so, the other nodes know the holder, but nobody knows its key.
#[test]
fn a_short_lease_of_an_etcd_client_ends_with_its_node_and_the_holder_of_a_long_one_is_known() {
    let mut group = group("etcd", Pace::LONGER);
    let short = etcd_lock(&group, 2, L, 2);
    let fence = etcd_lock(&group, 2, K, 60);
    group.kill(2);
    assert!(etcd_lock(&group, 0, L, 60) > short, "it passes on");
    is_kept_closed(&group, "k");
    let lease = etcd_lease(&group, 0, 60);
    let attempt = json!({
        "compare": [{"key": K, "target": "VERSION", "version": 0}],
        "success": [{"request_put": {"key": K, "value": "", "lease": lease}}],
        "failure": [{"request_range": {"key": K}}],
    });
    let refused = etcd(&group, 0, "kv/txn", &attempt);
    assert_eq!(refused.get("succeeded"), None, "it is not free: {refused}");
    let found = etcd(&group, 1, "kv/range", &json!({"key": K}));
    let leader = etcd(&group, 0, "election/leader", &json!({"name": K}));
    let told = &refused["responses"][0]["response_range"]["kvs"][0];
    for kv in [told, &found["kvs"][0], &leader["kv"]] {
        assert_eq!(kv["mod_revision"], fence.to_string(), "{kv}");
    }
}
