//! Locks by the Redis protocol.

use std::thread::sleep;
use std::time::Duration;

use serde_json::json;

use super::client::{RELEASE, Raw, request};
use crate::common::group;
use crate::etcd::client::{Grpc, bytes, int};
use crate::server::Server;

pub(super) const EXTEND: &str = "if redis.call('get', KEYS[1]) == ARGV[1] then \
     return redis.call('pexpire', KEYS[1], ARGV[2]) else return 0 end";
const ADD: &str = "local token = redis.call('get', KEYS[1])
     if not token or token ~= ARGV[1] then return 0 end
     local expiration = redis.call('pttl', KEYS[1])
     if not expiration then expiration = 0 end
     if expiration < 0 then return 0 end
     local newttl = ARGV[2]
     if ARGV[3] == \"0\" then newttl = ARGV[2] + expiration end
     redis.call('pexpire', KEYS[1], newttl)
     return 1";
pub(super) const ACQUIRE_ALL: &str = "for i, key in ipairs(KEYS) do
       if redis.call(\"exists\", key) == 1 then return 0 end
     end
     for i, key in ipairs(KEYS) do redis.call(\"set\", key, ARGV[1], \"PX\", ARGV[2]) end
     return #KEYS";
pub(super) const EXTEND_ALL: &str = "for i, key in ipairs(KEYS) do
       if redis.call(\"get\", key) ~= ARGV[1] then return 0 end
     end
     for i, key in ipairs(KEYS) do redis.call(\"set\", key, ARGV[1], \"PX\", ARGV[2]) end
     return #KEYS";
pub(super) const RELEASE_ALL: &str = "local count = 0
     for i, key in ipairs(KEYS) do
       if redis.call(\"get\", key) == ARGV[1] then
         redis.pcall(\"del\", key)
         count = count + 1
       end
     end
     return count";

/// The number of a reply.
pub(super) fn number(reply: &str) -> i64 {
    reply.strip_prefix(':').and_then(|it| it.parse().ok()).unwrap_or_else(|| panic!("{reply}"))
}

#[test]
fn a_lock_is_acquired_extended_and_released_by_its_value() {
    let server = Server::new();
    let (mut one, mut other) = (Raw::of(&server), Raw::of(&server));
    assert_eq!(one.line("SET k mine NX PX 5000"), "+OK");
    assert_eq!(other.line("SET k yours NX PX 5000"), "nil");
    assert_eq!(other.line("GET k"), "\"mine\"");
    assert_eq!(other.line("EXISTS k none k"), ":2");
    assert!((4000..=5000).contains(&number(&other.line("PTTL k"))));
    assert_eq!(other.line("TTL k"), ":5");
    assert_eq!(other.ask(&["EVAL", RELEASE, "1", "k", "yours"]), ":0");
    assert_eq!(other.ask(&["EVAL", EXTEND, "1", "k", "yours", "9000"]), ":0");
    assert_eq!(other.ask(&["EVAL", EXTEND, "1", "k", "mine", "20000"]), ":1");
    assert!(number(&one.line("PTTL k")) > 15_000);
    assert_eq!(one.ask(&["EVAL", ADD, "1", "k", "mine", "20000", "0"]), ":1");
    assert!(number(&one.line("PTTL k")) > 35_000, "it was added");
    assert_eq!(one.ask(&["EVAL", ADD, "1", "k", "mine", "7000", "1"]), ":1");
    assert!((6000..=7000).contains(&number(&one.line("PTTL k"))), "it was replaced");
    assert_eq!(one.line("EXPIRE k 30"), ":1");
    assert_eq!(one.line("TTL k"), ":30");
    assert_eq!(one.line("EXPIRE none 30"), ":0");
    // Another connection may release it: the value decides.
    assert_eq!(other.ask(&["EVAL", RELEASE, "1", "k", "mine"]), ":1");
    assert_eq!(other.ask(&["EVAL", RELEASE, "1", "k", "mine"]), ":0");
    assert_eq!(one.line("GET k"), "nil");
    assert_eq!((one.line("PTTL k"), one.line("TTL k")), (":-2".to_owned(), ":-2".to_owned()));
    assert_eq!(other.line("SET k yours NX EX 5"), "+OK");
    assert_eq!(one.line("DELIFEQ k mine"), ":0");
    assert_eq!(one.line("DELEX k IFEQ yours"), ":1");
    assert_eq!(server.service.held(), 0);
    assert_eq!(server.service.sessions(), 0, "nothing is left");
}

/// Many programs use one value for all their processes.
#[test]
fn a_value_that_holds_a_lock_does_not_get_it_again() {
    let server = Server::new();
    let mut raw = Raw::of(&server);
    assert_eq!(raw.line("SET k locked NX PX 5000"), "+OK");
    assert_eq!(raw.line("SET k locked NX PX 5000"), "nil");
    assert_eq!(raw.line("DELIFEQ k locked"), ":1");
    assert_eq!(raw.line("SET k locked NX PX 5000"), "+OK", "a value may be used again at once");
}

#[test]
fn a_lease_ends_by_itself_and_its_lock_goes_to_others() {
    let server = Server::new();
    let mut raw = Raw::of(&server);
    assert_eq!(raw.line("SET k mine NX PX 500"), "+OK");
    server.until("the lease ends", |service| service.held() == 0);
    assert_eq!(raw.ask(&["EVAL", EXTEND, "1", "k", "mine", "9000"]), ":0");
    assert_eq!(raw.line("SET k yours NX PX 5000"), "+OK");
    assert_eq!(raw.ask(&["EVAL", RELEASE, "1", "k", "mine"]), ":0", "it is not released by others");
    assert_eq!(raw.line("GET k"), "\"yours\"");
}

#[test]
fn a_lock_is_not_taken_from_its_holder() {
    let server = Server::new();
    let mut raw = Raw::of(&server);
    assert_eq!(raw.line("SET k mine PX 5000"), "+OK", "it is free");
    raw.refused("SET k yours PX 5000", &["`k` is held with another value", "NX PX"]);
    raw.refused("PSETEX k 5000 yours", &["held with another value"]);
    raw.refused("SET k yours XX PX 5000", &["held with another value"]);
    assert_eq!(raw.line("SET none mine XX PX 5000"), "nil");
    assert_eq!(raw.line("SET k mine XX EX 30"), "+OK");
    assert_eq!(raw.line("TTL k"), ":30");
    assert_eq!(raw.line("SETEX k 20 mine"), "+OK");
    assert_eq!(raw.line("TTL k"), ":20");
    raw.refused("SET k mine", &["forever", "SET key value NX PX milliseconds"]);
    raw.refused("SET k mine NX", &["forever", "timeout=10"]);
    // Over the Unix socket every client may break locks.
    assert_eq!(raw.line("DEL k none"), ":1");
    assert_eq!(raw.line("EXISTS k"), ":0");
}

#[test]
fn a_time_to_live_beyond_the_limit_is_an_error() {
    let server = Server::new();
    let mut raw = Raw::of(&server);
    raw.refused("SET k mine NX PX 60001", &["60001 ms", "60000 ms", "`ttl` under [limits]"]);
    raw.refused("SET k mine NX PX 3000000000000000", &["[limits]"]);
    assert_eq!(raw.line("SET k mine NX PX 60000"), "+OK");
    raw.refused("PEXPIRE k 60001", &["[limits]"]);
    let reply = raw.ask(&["EVAL", ADD, "1", "k", "mine", "50000", "0"]);
    assert!(reply.starts_with("-ERR") && reply.contains("[limits]"), "{reply}");
    assert_eq!(raw.line("DELIFEQ k mine"), ":1", "the errors changed nothing");
}

#[test]
fn scripts_are_known_by_their_hash_after_they_were_sent() {
    let server = Server::new();
    let mut raw = Raw::of(&server);
    let hash = "e9f69f2beb755be68b5e456ee2ce9aadfbc4ebf4";
    assert!(raw.ask(&["EVALSHA", hash, "1", "k", "mine"]).starts_with("-NOSCRIPT"));
    assert_eq!(raw.ask(&["SCRIPT", "EXISTS", hash]), "[:0]");
    let loaded = raw.ask(&["SCRIPT", "LOAD", RELEASE]);
    let loaded = loaded.trim_matches('"');
    assert_eq!(loaded.len(), 40);
    let mut other = Raw::of(&server);
    assert_eq!(other.ask(&["SCRIPT", "EXISTS", loaded, hash]), "[:1 :0]");
    assert_eq!(other.line("SET k mine NX PX 5000"), "+OK");
    assert_eq!(other.ask(&["EVALSHA", &loaded.to_uppercase(), "1", "k", "mine"]), ":1");
    for what in [&["EVAL", "return 1", "0"][..], &["SCRIPT", "LOAD", "return 1"]] {
        let reply = raw.ask(what);
        assert!(reply.starts_with("-ERR this is not a script that Doorway knows"), "{reply}");
    }
    let reply = raw.ask(&["EVAL", RELEASE, "2", "k", "l", "mine"]);
    assert!(reply.contains("for one key"), "{reply}");
    let reply = raw.ask(&["EVAL", RELEASE, "1", "k"]);
    assert!(reply.contains("needs the value"), "{reply}");
    let reply = raw.ask(&["EVAL", EXTEND, "1", "k", "mine"]);
    assert!(reply.contains("needs a time to live"), "{reply}");
}

#[test]
fn several_keys_are_acquired_together_or_not_at_all() {
    let server = Server::new();
    let mut raw = Raw::of(&server);
    assert_eq!(raw.ask(&["EVAL", ACQUIRE_ALL, "3", "c", "a", "b", "mine", "5000"]), ":3");
    assert_eq!(raw.ask(&["EVAL", EXTEND_ALL, "3", "a", "b", "c", "mine", "20000"]), ":3");
    assert!(number(&raw.line("PTTL b")) > 15_000);
    assert_eq!(raw.ask(&["EVAL", EXTEND_ALL, "2", "a", "none", "mine", "20000"]), ":0");
    assert_eq!(raw.ask(&["EVAL", ACQUIRE_ALL, "2", "x", "b", "yours", "5000"]), ":0");
    assert_eq!(raw.ask(&["EVAL", ACQUIRE_ALL, "2", "b", "x", "yours", "5000"]), ":0");
    assert_eq!(raw.line("EXISTS x"), ":0", "what was acquired first is released");
    assert_eq!(raw.ask(&["EVAL", RELEASE_ALL, "2", "a", "b", "yours"]), ":0");
    assert_eq!(raw.ask(&["EVAL", RELEASE_ALL, "3", "a", "b", "none", "mine"]), ":2");
    assert_eq!(raw.line("GET c"), "\"mine\"");
    assert_eq!(server.service.held(), 1);
}

#[test]
fn each_database_has_locks_of_its_own() {
    let server = Server::new();
    let (mut zero, mut three) = (Raw::of(&server), Raw::of(&server));
    assert_eq!(three.line("SELECT 3"), "+OK");
    assert_eq!(zero.line("SET k mine NX PX 5000"), "+OK");
    assert_eq!(three.line("SET k mine NX PX 5000"), "+OK");
    assert_eq!(zero.line("EXISTS db3/k"), ":1", "so it is called elsewhere");
    three.refused("SELECT 16", &["from 0 to 15"]);
    assert_eq!(three.line("DELIFEQ k mine"), ":1");
    assert_eq!(zero.line("GET k"), "\"mine\"");
}

#[test]
fn the_fence_is_the_one_that_other_doors_tell() {
    let server = Server::new();
    let mut raw = Raw::of(&server);
    assert_eq!(raw.line("DOORWAY.FENCE k"), "nil");
    assert_eq!(raw.line("SET k mine NX PX 5000"), "+OK");
    let told = raw.line("DOORWAY.FENCE k");
    assert_eq!(raw.line("DOORWAY.FENCE k mine"), told);
    assert_eq!(raw.line("DOORWAY.FENCE k yours"), "nil");
    let seen = server.get("/v1/locks/k").expect(200);
    assert_eq!(format!("\"{}\"", seen["holders"][0]["fence"].as_str().unwrap()), told);
    assert!(seen["holders"][0]["client"].as_str().unwrap().starts_with("redis:mine"), "{seen}");
    assert_eq!(raw.line("DELIFEQ k mine"), ":1");
    assert_eq!(raw.line("SET k mine NX PX 5000"), "+OK");
    let fence = |text: &str| text.trim_matches('"').parse::<u64>().unwrap();
    assert!(fence(&raw.line("DOORWAY.FENCE k")) > fence(&told));
}

#[test]
fn locks_of_other_doors_are_locks_here() {
    let server = Server::new();
    let mut raw = Raw::of(&server);
    let fence = server.acquire("k", &json!({ "ttl_ms": 9000 }));
    assert_eq!(raw.line("SET k mine NX PX 5000"), "nil");
    assert_eq!(raw.line("GET k"), format!("\"doorway:{fence}\""));
    assert!((8000..=9000).contains(&number(&raw.line("PTTL k"))));
    assert!(server.release("k", &fence));
    assert_eq!(raw.line("SET k mine NX PX 5000"), "+OK");
    server.post("k", "acquire", &json!({})).problem(409, "not-free", "k");
}

/// `EXPIRE` names no value, so it must not reach what the same client holds by other means.
#[test]
fn a_time_to_live_is_set_only_for_locks_of_redis_clients() {
    let server = Server::new();
    let mut raw = Raw::of(&server);
    server.acquire("k", &json!({ "ttl_ms": 9000 }));
    let terraform = json!({ "ID": "0a1b2c3d" });
    server.send("LOCK", "/v1/terraform/prod", Some(&terraform)).expect(200);
    let etcd = Grpc::of(&server);
    let lease = etcd.lease(30);
    etcd.call("v3lockpb.Lock/Lock", &[bytes(1, "e"), int(2, lease)]).expect("the lock");
    let mut visitor = server.client();
    visitor.visit();
    let window = visitor.once("backup", Duration::from_hours(1), 1).expect("the window").0;
    for lock in ["k", "prod", "e", window.as_str()] {
        let left = number(&raw.line(&format!("PTTL {lock}")));
        for line in [format!("EXPIRE {lock} 1"), format!("PEXPIRE {lock} 1000")] {
            raw.refused(&line, &[&format!("-ERR `{lock}`"), "not acquired by a Redis client"]);
        }
        assert!(number(&raw.line(&format!("PTTL {lock}"))) > left - 2000, "{lock} is as before");
    }
    // A value that is too long to be shown is a value all the same.
    let long = "x".repeat(2000);
    assert_eq!(raw.ask(&["SET", "l", &long, "NX", "PX", "5000"]), "+OK");
    assert_eq!((raw.line("EXPIRE l 30"), raw.line("TTL l")), (":1".to_owned(), ":30".to_owned()));
}

/// A window is never granted twice, so its lock is held for as long as the node has said.
#[test]
fn no_client_shortens_a_window() {
    let server = Server::new();
    let mut visitor = server.client();
    visitor.visit();
    let (window, fence, _) = visitor.once("backup", Duration::from_hours(1), 1).expect("it");
    let path = window.as_str().replace('/', "%2F").replace(':', "%3A");
    let body = json!({ "fence": fence.to_string(), "ttl_ms": 1000 });
    server.post(&path, "renew", &body).problem(400, "invalid", "a window of `doorway run");
}

#[test]
fn values_of_any_bytes_are_owners() {
    let server = Server::new();
    let mut raw = Raw::of(&server);
    let long = "x".repeat(2000);
    for value in ["a b\r\n\"c\"", "", "ä", long.as_str()] {
        assert_eq!(raw.ask(&["SET", "k", value, "NX", "PX", "5000"]), "+OK");
        let got = raw.line("GET k");
        if value.len() < 25 {
            assert_eq!(got, format!("\"{}\"", value.as_bytes().escape_ascii()));
        } else {
            assert!(got.starts_with("\"doorway:"), "{got}");
        }
        assert_eq!(raw.ask(&["EVAL", RELEASE, "1", "k", value]), ":1");
    }
}

#[test]
fn connections_begin_as_redis_clients_expect() {
    let server = Server::new();
    let mut raw = Raw::of(&server);
    assert_eq!(raw.line("PING"), "+PONG");
    assert_eq!(raw.line("ping hello"), "\"hello\"");
    assert_eq!(raw.line("ECHO hello"), "\"hello\"");
    assert!(raw.line("HELLO").starts_with("[\"server\" \"doorway\" "));
    let hello = raw.line("HELLO 3 AUTH default anything SETNAME me");
    assert!(hello.contains("\"proto\" :3") && hello.contains("\"modules\" []"), "{hello}");
    raw.refused("HELLO 4", &["-NOPROTO"]);
    assert_eq!(raw.line("CLIENT SETINFO LIB-NAME redis-py"), "+OK");
    assert_eq!(raw.line("CLIENT SETNAME me"), "+OK");
    assert!(number(&raw.line("CLIENT ID")) > 0);
    raw.refused("CLIENT MAINT_NOTIFICATIONS ON", &["-ERR", "CLIENT ID"]);
    assert_eq!(raw.line("COMMAND DOCS"), "[]");
    assert!(raw.line("INFO server").contains("redis_version:"));
    assert_eq!(raw.line("SCRIPT FLUSH"), "+OK");
    raw.refused("FLUSHALL", &["unknown command 'FLUSHALL'", "locks and no other data"]);
    raw.refused("GET", &["write GET key"]);
    // Several requests at once are answered in their order.
    let many: Vec<u8> =
        (0..300).flat_map(|number| request(&["ECHO", &number.to_string()])).collect();
    raw.send(&many);
    for number in 0..300 {
        assert_eq!(raw.reply(), format!("\"{number}\""));
    }
    assert_eq!(raw.line("QUIT"), "+OK");
    assert_eq!(raw.reply(), "", "the connection ends");
}

#[test]
fn an_owner_is_known_after_a_crash_of_the_node() {
    let mut daemon = group::remote("[redis]\nlisten = \"127.0.0.1:0\"\n");
    let mut raw = Raw::at(&daemon);
    assert_eq!(raw.line("SET k mine NX PX 30000"), "+OK");
    let fence = raw.line("DOORWAY.FENCE k mine");
    daemon.crash();
    daemon.ready();
    let mut raw = Raw::at(&daemon);
    while raw.line("DOORWAY.FENCE k mine") != fence {
        sleep(Duration::from_millis(10)); // The node takes back what it had promised.
    }
    assert_eq!(raw.line("GET k"), "\"mine\"");
    assert_eq!(raw.line("SET k yours NX PX 5000"), "nil");
    assert_eq!(raw.ask(&["EVAL", EXTEND, "1", "k", "mine", "20000"]), ":1");
    assert_eq!(raw.line("DELIFEQ k yours"), ":0");
    assert_eq!(raw.line("DELIFEQ k mine"), ":1");
    assert_eq!(raw.line("SET k yours NX PX 5000"), "+OK");
}
