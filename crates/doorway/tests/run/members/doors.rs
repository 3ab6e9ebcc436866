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
fn group(door: &str) -> Group {
    let mut group = Group::on(Machine::local(3), 3, Pace::QUICK);
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
    let mut group = group("redis");
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

/// Take the lock `l` with a new lease of this time. Returns its fence.
fn etcd_lock(group: &Group, node: usize, ttl: u64) -> u64 {
    let lease = &etcd(group, node, "lease/grant", &json!({"TTL": ttl}))["ID"];
    // The name is base64.
    let held = etcd(group, node, "lock/lock", &json!({"name": "bA==", "lease": lease}));
    let revision = held["header"]["revision"].as_str().expect("a revision");
    revision.parse().expect("a number")
}

#[test]
fn a_long_lease_of_an_etcd_client_outlives_its_node() {
    let mut group = group("etcd");
    let begin = Instant::now();
    let fence = etcd_lock(&group, 2, TTL);
    group.kill(2);
    is_kept_closed(&group, "l");
    let said = group.mistake(1, "run -n l -- true", 1);
    assert!(said.contains("promised by an earlier process of c"), "{said}");
    let next = etcd_lock(&group, 0, 60);
    assert!(begin.elapsed() > Duration::from_secs(TTL), "not before its end");
    assert!(next > fence, "{next} {fence}");
}
