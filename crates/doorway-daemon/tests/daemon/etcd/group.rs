//! Etcd clients that know several nodes of one group, and send each call to another one.

use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use data_encoding::BASE64;
use serde_json::{Value, json};
use tokio_rustls::rustls::{ClientConnection, StreamOwned};

use super::client::{Grpc, bare_txn, bytes, inside, release_txn};
use crate::common::daemon::Daemon;
use crate::common::group::Group;
use crate::common::{addresses, until};
use crate::http::client::{Answer, ask};
use crate::server;

/// Three nodes that serve etcd clients.
pub(super) struct Nodes {
    pub(super) group: Group,
    pub(super) addresses: Vec<String>,
}

impl Nodes {
    pub(super) fn start() -> Self {
        let addresses = addresses(3);
        let at = |index: usize| format!("[etcd]\nlisten = \"{}\"\n", addresses[index]);
        Self { group: Group::start_each(at), addresses }
    }

    /// Ask one of the nodes as the client `ci`.
    fn post(&self, node: usize, path: &str, body: &Value) -> Answer {
        let stream = self.connect(node);
        ask(stream, "POST", &format!("/v3/{path}"), &[], Some(body))
    }

    fn connect(&self, node: usize) -> StreamOwned<ClientConnection, TcpStream> {
        self.group.connect(&self.addresses[node])
    }

    fn lease(&self, node: usize, ttl: i64) -> String {
        let granted = self.post(node, "lease/grant", &json!({"TTL": ttl})).expect(200);
        granted["ID"].as_str().expect("a number").to_owned()
    }
}

fn text(text: &str) -> String {
    BASE64.encode(text.as_bytes())
}

fn lock(name: &str, lease: &str) -> Value {
    json!({"name": text(name), "lease": lease})
}

#[test]
fn every_node_passes_calls_on_to_the_home_of_a_lease() {
    let nodes = Nodes::start();
    let lease = nodes.lease(0, 30);
    let held = nodes.post(1, "lock/lock", &lock("l", &lease)).expect(200);
    for node in [2, 0, 1] {
        let alive = nodes.post(node, "lease/keepalive", &json!({"ID": lease})).expect(200);
        assert_eq!(alive["result"]["TTL"], "30");
        let found = nodes.post(node, "kv/range", &json!({"key": held["key"]})).expect(200);
        assert_eq!(found["kvs"][0]["mod_revision"], held["header"]["revision"]);
    }
    // A client of another node waits, and gets the lock when the first one leaves it.
    let other = nodes.lease(2, 30);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| nodes.post(1, "lock/lock", &lock("l", &other)));
        let home = nodes.group.nodes[2].client();
        until("it waits at its home", || home.status().expect("a status").waiting == 1);
        assert!(!waiting.is_finished());
        nodes.post(2, "lock/unlock", &json!({"key": held["key"]})).expect(200);
        let next = waiting.join().expect("it ends").expect(200);
        let revision = |value: &Value| {
            let text = value["header"]["revision"].as_str().expect("a text").to_owned();
            text.parse::<u64>().expect("a number")
        };
        assert!(revision(&next) > revision(&held), "the fence grows");
    });
    nodes.post(0, "lease/revoke", &json!({"ID": other})).expect(200);
    let gone = nodes.post(1, "lease/keepalive", &json!({"ID": other})).expect(200);
    assert_eq!(gone["result"].get("TTL"), None);
}

#[test]
fn a_bare_key_is_found_and_deleted_through_any_node() {
    let nodes = Nodes::start();
    let lease = nodes.lease(0, 30);
    let acquire = |value: &str, lease: &str| {
        json!({
            "compare": [{"key": text("k"), "target": "VERSION", "version": 0}],
            "success": [{"request_put": {"key": text("k"), "value": text(value), "lease": lease}}],
            "failure": [{"request_range": {"key": text("k")}}],
        })
    };
    let held = nodes.post(1, "kv/txn", &acquire("mine", &lease)).expect(200);
    assert_eq!(held["succeeded"], true, "{held}");
    let other = nodes.lease(2, 30);
    let refused = nodes.post(2, "kv/txn", &acquire("yours", &other)).expect(200);
    let holder = &refused["responses"][0]["response_range"]["kvs"][0];
    assert_eq!(holder["value"], text("mine"), "{refused}");
    assert_eq!(holder["mod_revision"], held["header"]["revision"]);
    let release = json!({
        "compare": [{"key": text("k"), "target": "VALUE", "value": text("mine")}],
        "success": [{"request_delete_range": {"key": text("k")}}],
    });
    assert_eq!(nodes.post(2, "kv/txn", &release).expect(200)["succeeded"], true);
    let next = nodes.post(1, "kv/txn", &acquire("yours", &other)).expect(200);
    assert_eq!(next["succeeded"], true, "{next}");
}

/// Between the answers to "who holds the lock?" and "which key does this holder have?" the holder
/// changes. To a client that tries for the lock it only matters that the lock is not free.
#[test]
fn a_bare_key_whose_holder_changes_is_not_free_and_no_error() {
    const TXN: &str = "etcdserverpb.KV/Txn";
    let nodes = Nodes::start();
    let at = |node: usize| Grpc::at(nodes.group.nodes[node].socket.trim_start_matches('@'));
    let (holder, other) = (at(0), at(1));
    let (one, two, lease) = (holder.lease(60), holder.lease(60), other.lease(60));
    let done = AtomicBool::new(false);
    let (refused, failed) = thread::scope(|scope| {
        scope.spawn(|| {
            for lease in [one, two].into_iter().cycle() {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                // It may be held by the other client.
                let _ = holder.call(TXN, &bare_txn("k", "theirs", lease));
                let _ = holder.call(TXN, &release_txn("k", "theirs"));
            }
        });
        let (mut refused, mut failed) = (0, None);
        while refused < 300 && failed.is_none() {
            match other.call(TXN, &bare_txn("k", "mine", lease)) {
                Ok(answer) if answer.int(2) == 1 => {
                    let _ = other.call(TXN, &release_txn("k", "mine"));
                }
                Ok(answer) => {
                    refused += 1;
                    let holder = answer.at(3).at(1).at(2);
                    assert_eq!(holder.text(1), "k", "it is told a holder");
                }
                Err(failure) => failed = Some(failure),
            }
        }
        done.store(true, Ordering::Relaxed);
        (refused, failed)
    });
    assert_eq!((refused, failed), (300, None));
}

#[test]
fn a_call_that_is_given_up_is_withdrawn_at_the_home_of_its_lease() {
    let nodes = Nodes::start();
    let (one, other) = (nodes.lease(0, 30), nodes.lease(2, 30));
    let held = nodes.post(0, "lock/lock", &lock("l", &one)).expect(200);
    let mut stream = nodes.connect(1);
    let body = lock("l", &other).to_string();
    let request = crate::http::client::request("POST", "/v3/lock/lock", &[], Some(body.as_str()));
    std::io::Write::write_all(&mut stream, &request).expect("it is sent");
    std::io::Write::flush(&mut stream).expect("it is sent");
    let keys = || {
        let left = nodes.post(2, "lease/timetolive", &json!({"ID": other, "keys": true}));
        left.expect(200).get("keys").is_some()
    };
    until("it waits", keys);
    drop(stream);
    until("it waits no longer", || !keys());
    nodes.post(0, "lock/unlock", &json!({"key": held["key"]})).expect(200);
}

#[test]
fn a_call_about_a_lease_of_a_node_that_is_away_gets_a_sentence() {
    let mut nodes = Nodes::start();
    let lease = nodes.lease(0, 30);
    nodes.group.nodes[0].kill();
    let alive = json!({"ID": lease});
    until("the node counts as away", || nodes.post(1, "lease/keepalive", &alive).status == 503);
    let refused = nodes.post(2, "lock/lock", &lock("l", &lease)).expect(503);
    let told = refused["error"].as_str().expect("a text");
    assert!(told.contains("the node n1") && told.contains("does not answer"), "{told}");
}

/// How many bytes a node has sent to the others.
fn sent(node: &Daemon) -> f64 {
    let stream = server::connect(node.socket.trim_start_matches('@')).expect("somebody listens");
    let page = ask(stream, "GET", "/metrics", &[], None).body;
    let counts = page.lines().filter(|line| line.starts_with("doorway_link_bytes_sent_total{"));
    let counts = counts.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    counts.sum()
}

#[test]
fn watches_of_a_lock_share_their_questions_to_other_nodes() {
    let nodes = Nodes::start();
    let lease = nodes.lease(2, 60);
    let held = nodes.post(2, "lock/lock", &lock("l", &lease)).expect(200);
    let node = &nodes.group.nodes[0];
    let grpc = Grpc::at(node.socket.trim_start_matches('@'));
    let watch = || {
        let mut stream = grpc.open("etcdserverpb.Watch/Watch", &[]);
        stream.send(&[inside(1, &[bytes(1, "l/"), bytes(2, "l0")])]);
        stream.next().expect("no error").expect("it is created");
        stream
    };
    let rate = || {
        let (before, begun) = (sent(node), Instant::now());
        // A rate is measured over real time.
        thread::sleep(Duration::from_secs(3));
        (sent(node) - before) / begun.elapsed().as_secs_f64()
    };
    let mut watches = vec![watch()];
    let alone = rate();
    watches.extend((0..100).map(|_| watch()));
    let together = rate();
    assert!(together < 3.0 * alone, "{alone} and {together} bytes in a second");
    nodes.post(1, "lock/unlock", &json!({"key": held["key"]})).expect(200);
    for mut watch in watches {
        let news = watch.next().expect("no error").expect("an answer");
        assert_eq!(news.at(11).int(1), 1, "the key is deleted");
    }
}
