//! Requests of sessions, of HTTP, of Redis clients and of etcd clients (gRPC and JSON), with random
//! changes, at the socket of a real service.
//!
//! The service may refuse anything, but it must not panic, must answer or close the connection, and
//! must go on serving others. A panic ends the process of the service: see `common::daemon`.
//!
//! One seed draws everything. `FUZZ_SEED=7 FUZZ_CASES=100000` does more, and a failure names the
//! case and its bytes.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use doorway_client::{Options, blocking};
use doorway_protocol::{
    Ask, ClientInfo, Fence, Hello, Life, MAGIC, MembersRequest, Mode, Opening, Request, SessionId,
    VERSIONS, Wait, put,
};

use crate::common::daemon::Daemon;
use crate::common::{addresses, group, until};
use crate::etcd::client::{Field, bytes, framed, inside, int, message, queue_txn};
use crate::http::client::{exchange, request as http};
use crate::redis::client::{RELEASE, request as redis};
use crate::server::connect;
use crate::service::client::{CONNECTION, NO_TTL, name};

/// How many changed requests are sent, unless `FUZZ_CASES` says otherwise.
const CASES: u64 = 20_000;

/// How often a client that does nothing wrong looks whether the service serves.
const WITNESS: u64 = 100;

/// How long an answer, or the end of the connection, may take. No request of the corpus waits for
/// longer, and no limit of the service either.
const PATIENCE: Duration = Duration::from_mins(1);

/// How long an etcd client leaves its side of the connection open if the answer is not complete. A
/// service that sees the end of a connection of HTTP/2 does not answer its calls any more.
const OPEN: Duration = Duration::from_millis(5);

/// What a connection of HTTP/2 begins with.
const HTTP2: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Random numbers (`SplitMix64`).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below this one.
    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

/// What a number in a request may be replaced by.
const NUMBERS: [&str; 12] = [
    "0",
    "-1",
    "1",
    "65536",
    "65537",
    "4294967295",
    "4294967296",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
    "0.5",
    "99999999999999999999999999",
];

/// What may be put in between.
const PARTS: [&[u8]; 5] = [b"\r\n", b"\0", b"\xff\xff\xff\xff", b"{}", b"\""];

/// Change a request in one to four ways.
fn change(random: &mut Random, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = random.pick(corpus).clone();
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len() + 1);
        match random.below(9) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 if at < bytes.len() => bytes[at] = random.next() as u8,
            2 => bytes.insert(at, random.next() as u8),
            3 if at < bytes.len() => drop(bytes.remove(at)),
            4 => bytes.truncate(at),
            5 => {
                let end = at + random.below(bytes.len() - at + 1);
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
            6 => {
                let other = random.pick(corpus);
                let from = random.below(other.len());
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
            7 => replace_number(random, &mut bytes, at),
            _ => {
                let part = random.pick(&PARTS);
                bytes.splice(at..at, part.iter().copied());
            }
        }
    }
    bytes
}

/// Replace the first number in digits from this place on.
fn replace_number(random: &mut Random, bytes: &mut Vec<u8>, at: usize) {
    let Some(begin) = bytes[at..].iter().position(u8::is_ascii_digit).map(|it| at + it) else {
        return;
    };
    let digits = bytes[begin..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = random.pick(&NUMBERS);
    bytes.splice(begin..begin + digits, number.bytes());
}

/// Connections of the framed protocol: a hello, and one request of each kind.
fn frames() -> Vec<Vec<u8>> {
    let who = ClientInfo { label: "fuzz".into(), host: "here".into(), pid: 1 };
    let ask = |wait| Ask { lock: name("x"), mode: Mode::Exclusive, permits: None, wait };
    let requests = vec![
        Request::Acquire(1, ask(Wait::No)),
        Request::Acquire(2, Ask { permits: Some(3), ..ask(Wait::Ms(1)) }),
        Request::Acquire(3, Ask { mode: Mode::Shared, ..ask(Wait::Forever) }),
        Request::Withdraw(3),
        Request::Release(4, name("x"), Fence::new(1, 1)),
        Request::Renew(5, name("x"), Fence::new(1, 1)),
        Request::Alive(6),
        Request::Inspect(7, name("x")),
        Request::List { number: 8, prefix: "x".into(), after: Some(name("x")) },
        Request::Status(9),
        Request::Break(10, name("x"), Fence::new(1, 1)),
        Request::AwaitFree(11, name("x")),
        Request::Evidence(12),
        Request::Members(13, MembersRequest::Show),
        Request::Members(14, MembersRequest::Arranged),
        Request::Once {
            number: 15,
            lock: name("x"),
            period_ms: 3_600_000,
            key: [1; 16],
            who: who.clone(),
        },
        Request::Windows(16, name("x")),
        Request::Bye,
    ];
    let openings = [
        Opening::Visit,
        Opening::New { ttl_ms: 1000, life: CONNECTION },
        Opening::New { ttl_ms: NO_TTL, life: Life::Connection { inherited: true } },
        Opening::New { ttl_ms: 600, life: Life::Lease },
        Opening::Resume {
            node: None,
            session: SessionId(1),
            secret: doorway_protocol::Secret([7; 16]),
            ttl_ms: 1000,
            life: CONNECTION,
            held: vec![crate::service::client::claim("x", Fence::new(1, 1))],
            waiting: vec![1],
            more: false,
        },
    ];
    let begin = |opening: &Opening| {
        let mut bytes = MAGIC.to_vec();
        let opening = opening.clone();
        let hello = Hello { versions: VERSIONS, who: who.clone(), token: None, opening };
        put(&hello, &mut bytes);
        bytes
    };
    let one = requests.iter().map(|request| {
        let mut bytes = begin(&openings[1]);
        put(request, &mut bytes);
        bytes
    });
    let all = openings.iter().map(|opening| {
        let mut bytes = begin(opening);
        for request in &requests {
            put(request, &mut bytes);
        }
        bytes
    });
    one.chain(all).collect()
}

/// Requests over HTTP, one of each route.
fn http_requests() -> Vec<Vec<u8>> {
    let gets = [
        "/health",
        "/metrics",
        "/v1/status",
        "/v1/members",
        "/v1/group",
        "/v1/locks",
        "/v1/locks?prefix=x&order=wait&group=true&limit=10",
        "/v1/locks/x",
        "/v1/locks/%C3%BCber%2Funs",
        "/v1/locks/x/record?ms=1",
    ];
    let posts = [
        ("acquire", r#"{"ttl_ms":600,"wait_ms":1,"request_id":"r","shared":true,"label":"l"}"#),
        ("acquire", r#"{"ttl_ms":600,"permits":3}"#),
        ("renew", r#"{"fence":"1099511627777","ttl_ms":600}"#),
        ("release", r#"{"fence":"1099511627777"}"#),
        ("withdraw", r#"{"request_id":"r"}"#),
        ("break", r#"{"fence":"1099511627777"}"#),
    ];
    let terraform = r#"{"ID":"0a1b","Operation":"apply","Info":"","Who":"a@b","Version":"1.11.4",
        "Created":"2026-11-17T15:49:57.123456789Z","Path":""}"#;
    let gets = gets.iter().map(|path| http("GET", path, &[], None));
    let posts = posts.iter().map(|(what, body)| {
        http("POST", &format!("/v1/locks/x/{what}"), &[("authorization", "Basic YTpi")], Some(body))
    });
    let locks = ["LOCK", "UNLOCK", "POST", "DELETE"];
    let locks = locks.iter().map(|it| http(it, "/v1/terraform/x", &[], Some(terraform)));
    gets.chain(posts).chain(locks).collect()
}

/// Requests of Redis clients, one of each command.
fn redis_requests() -> Vec<Vec<u8>> {
    let lines = [
        "PING",
        "HELLO 3 AUTH user password SETNAME me",
        "AUTH user password",
        "SELECT 3",
        "CLIENT SETNAME me",
        "COMMAND DOCS",
        "INFO server",
        "SET k v NX PX 600",
        "SET k v XX EX 1",
        "SET k v PX 600",
        "PSETEX k 600 v",
        "SETEX k 1 v",
        "GET k",
        "EXISTS k l m",
        "TTL k",
        "PTTL k",
        "EXPIRE k 1",
        "PEXPIRE k 600",
        "DELIFEQ k v",
        "DELEX k IFEQ v",
        "DEL k l",
        "DOORWAY.FENCE k v",
        "SCRIPT EXISTS 0123456789012345678901234567890123456789",
        "EVALSHA 0123456789012345678901234567890123456789 1 k v",
        "ECHO x",
        "QUIT",
    ];
    let words = lines.iter().map(|line| redis(&line.split(' ').collect::<Vec<_>>()));
    let scripts = [redis(&["EVAL", RELEASE, "1", "k", "v"]), redis(&["SCRIPT", "LOAD", RELEASE])];
    let mut all: Vec<_> = words.chain(scripts).collect();
    all.push(all.concat());
    all
}

/// Calls of etcd clients, one of each kind, each with its messages. They use this lease.
fn etcd_calls(lease: i64) -> Vec<(&'static str, Vec<Vec<Field>>)> {
    let owner = [bytes(1, "q/"), bytes(2, "q0"), int(3, 1), int(5, 1), int(6, 2)];
    let leader = inside(1, &[bytes(1, "e"), bytes(2, format!("e/{lease:x}")), int(3, 1)]);
    let reflection = vec![
        vec![bytes(7, "")],
        vec![bytes(3, "rpc.proto")],
        vec![bytes(4, "etcdserverpb.KV")],
        vec![bytes(6, "etcdserverpb.KV")],
        vec![inside(5, &[bytes(1, "etcdserverpb.KV"), int(2, 1)])],
    ];
    let watches = vec![
        vec![inside(1, &[bytes(1, "k"), int(3, 1), int(7, 4)])],
        vec![inside(1, &[bytes(1, "q/"), bytes(2, "q0")])],
        vec![inside(3, &[])],
        vec![inside(2, &[int(1, 4)])],
    ];
    let mut calls = vec![
        ("etcdserverpb.Lease/LeaseKeepAlive", vec![vec![int(1, lease)]; 3]),
        ("etcdserverpb.Watch/Watch", watches),
        ("v3electionpb.Election/Observe", vec![vec![bytes(1, "e")]; 2]),
        ("grpc.reflection.v1.ServerReflection/ServerReflectionInfo", reflection.clone()),
        ("grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", reflection),
    ];
    let with_one = vec![
        ("v3electionpb.Election/Proclaim", vec![leader.clone(), bytes(2, "v")]),
        ("v3electionpb.Election/Resign", vec![leader]),
        ("etcdserverpb.Lease/LeaseGrant", vec![int(1, 1)]),
        ("etcdserverpb.Lease/LeaseTimeToLive", vec![int(1, lease), int(2, 1)]),
        ("etcdserverpb.Lease/LeaseRevoke", vec![int(1, 7)]),
        ("etcdserverpb.KV/Range", vec![bytes(1, "k")]),
        ("etcdserverpb.KV/Range", owner.to_vec()),
        ("etcdserverpb.KV/Put", vec![bytes(1, "k"), bytes(2, "v"), int(3, lease)]),
        ("etcdserverpb.KV/DeleteRange", vec![bytes(1, "k")]),
        ("etcdserverpb.KV/Txn", queue_txn("q", lease)),
        ("v3lockpb.Lock/Lock", vec![bytes(1, "l"), int(2, lease)]),
        ("v3lockpb.Lock/Unlock", vec![bytes(1, format!("l/{lease:x}"))]),
        ("v3electionpb.Election/Campaign", vec![bytes(1, "e"), int(2, lease), bytes(3, "v")]),
        ("v3electionpb.Election/Leader", vec![bytes(1, "e")]),
        ("etcdserverpb.Auth/Authenticate", vec![bytes(1, "user"), bytes(2, "password")]),
        ("grpc.health.v1.Health/Check", vec![bytes(1, "etcd")]),
    ];
    calls.extend(with_one.into_iter().map(|(path, fields)| (path, vec![fields])));
    calls
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u8, content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags, 0, 0, 0, stream], content].concat()
}

/// A header of HTTP/2 with a name that has this number; its value is not compressed.
fn header(name: u8, value: &str) -> Vec<u8> {
    [&[name, value.len() as u8], value.as_bytes()].concat()
}

/// A call over HTTP/2: a frame of this stream with the head, and one for each message.
fn call(stream: u8, path: &str, messages: &[Vec<Field>]) -> Vec<u8> {
    // POST and http; then the path, the authority, and `content-type` have numbers, too.
    let mut head = vec![0x83, 0x86];
    head.extend(header(4, &format!("/{path}")));
    head.extend(header(1, "doorway"));
    head.extend([&[15, 16][..], &header(0, "application/grpc")[1..]].concat());
    let mut frames = frame(1, 4, stream, &head);
    for (number, fields) in messages.iter().enumerate() {
        let is_last = u8::from(number + 1 == messages.len());
        frames.extend(frame(0, is_last, stream, &framed(&message(fields))));
    }
    frames
}

/// Connections of gRPC: one with each call, and one with all of them.
fn grpc_requests(lease: i64) -> Vec<Vec<u8>> {
    let calls = etcd_calls(lease);
    let begin = [HTTP2, &frame(4, 0, 0, &[])].concat();
    let one = calls.iter().map(|(path, all)| [begin.clone(), call(1, path, all)].concat());
    let mut requests: Vec<_> = one.collect();
    let numbered = calls.iter().zip((1..).step_by(2));
    let all = numbered.flat_map(|((path, all), stream)| call(stream, path, all));
    requests.push(begin.iter().copied().chain(all).collect());
    requests
}

/// Requests of the JSON gateway, one of each path.
fn gateway_requests(lease: i64) -> Vec<Vec<u8>> {
    // The keys and names are `k`, `l`, `e` and a prefix, in base64.
    let acquire = r#"{"compare":[{"key":"aw==","target":"CREATE","create_revision":"0"}],
        "success":[{"request_put":{"key":"aw==","value":"bWluZQ==","lease":LEASE}}],
        "failure":[{"request_range":{"key":"aw=="}}]}"#;
    let release = r#"{"compare":[{"key":"aw==","target":"VALUE","value":"bWluZQ=="}],
        "success":[{"request_delete_range":{"key":"aw=="}}]}"#;
    let bodies = [
        ("lease/grant", r#"{"TTL":1}"#),
        ("lease/keepalive", r#"{"ID":LEASE}"#),
        ("lease/timetolive", r#"{"ID":"LEASE","keys":true}"#),
        ("lease/revoke", r#"{"ID":7}"#),
        ("kv/txn", acquire),
        ("kv/txn", release),
        ("kv/range", r#"{"key":"aw=="}"#),
        ("kv/range", r#"{"key":"AA==","range_end":"AA=="}"#),
        ("kv/put", r#"{"key":"aw==","value":"dg==","lease":"LEASE"}"#),
        ("kv/deleterange", r#"{"key":"aw=="}"#),
        ("lock/lock", r#"{"name":"bA==","lease":LEASE}"#),
        ("lock/unlock", r#"{"key":"bC8x"}"#),
        ("election/campaign", r#"{"name":"ZQ==","lease":LEASE,"value":"dg=="}"#),
        ("election/leader", r#"{"name":"ZQ=="}"#),
        (
            "election/proclaim",
            r#"{"leader":{"name":"ZQ==","key":"ZS8x","rev":"1","lease":LEASE},"value":"dg=="}"#,
        ),
        ("election/resign", r#"{"leader":{"name":"ZQ==","key":"ZS8x","rev":"1","lease":"LEASE"}}"#),
        ("auth/authenticate", r#"{"name":"user","password":"password"}"#),
    ];
    let request = |(path, body): &(&str, &str)| {
        let body = body.replace("LEASE", &lease.to_string());
        http("POST", &format!("/v3/{path}"), &[], Some(&body))
    };
    bodies.iter().map(request).collect()
}

/// Whether an answer over HTTP/2 is complete: a call has ended, or the connection.
fn is_answered(mut bytes: &[u8]) -> bool {
    while let Some((head, rest)) = bytes.split_first_chunk::<9>() {
        let [high, middle, low, kind, flags, ..] = *head;
        let ends = matches!(kind, 0 | 1) && flags & 1 == 1 || matches!(kind, 3 | 7);
        let length = u32::from_be_bytes([0, high, middle, low]) as usize;
        if ends || rest.len() < length {
            return ends;
        }
        bytes = &rest[length..];
    }
    false
}

/// Read the answer to a call over HTTP/2. If it is not complete, wait no longer than this for more.
fn answer(stream: &mut UnixStream, silence: Duration) -> Vec<u8> {
    stream.set_read_timeout(Some(silence)).expect("a time");
    let (mut said, mut some) = (Vec::new(), [0; 4096]);
    while !is_answered(&said)
        && let Ok(count @ 1..) = stream.read(&mut some)
    {
        said.extend(&some[..count]);
    }
    said
}

/// A service, and how to start it again if a request has drained it.
struct Target(Daemon);

impl Target {
    fn new() -> Self {
        let [redis, etcd] = addresses(2).try_into().expect("two");
        Self(group::remote(&format!(
            "[redis]\nlisten = \"{redis}\"\n[etcd]\nlisten = \"{etcd}\"\n\
             [limits]\nttl = \"1h\"\n"
        )))
    }

    fn connect(&self) -> std::io::Result<UnixStream> {
        connect(self.0.socket.trim_start_matches('@'))
    }

    /// A lease of an etcd client that lasts longer than the test.
    fn lease(&self) -> i64 {
        let grant = http("POST", "/v3/lease/grant", &[], Some(r#"{"TTL":3600}"#));
        let granted = exchange(self.connect().expect("it listens"), &grant).expect(200);
        granted["ID"].as_str().expect("a number").parse().expect("a number")
    }

    /// Send a request, and read until the connection ends. False if nobody listens.
    fn send(&self, bytes: &[u8]) -> bool {
        let Ok(mut stream) = self.connect() else { return false };
        // A request that is refused early may find the connection closed.
        let _ = stream.write_all(bytes);
        if bytes.starts_with(HTTP2) {
            answer(&mut stream, OPEN);
        }
        stream.set_read_timeout(Some(PATIENCE)).expect("a time");
        let _ = stream.shutdown(Shutdown::Write);
        let mut some = [0; 4096];
        loop {
            match stream.read(&mut some) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    panic!("neither an answer nor an end within {PATIENCE:?}")
                }
                Err(_) => return true,
            }
        }
    }

    /// A client that does nothing wrong gets a lock, or is told why not.
    fn serve(&self) -> Result<(), String> {
        let options = Options::default().ttl(Duration::from_secs(10));
        let client = blocking::Client::connect(self.0.endpoint(), &options);
        let client = client.map_err(|error| error.to_string())?;
        let grant = client.acquire("witness").within(PATIENCE).enter();
        let grant = grant.map_err(|error| error.to_string())?;
        grant.release().map_err(|error| error.to_string())
    }

    /// Go on after a request that was changed into one to drain the node. The node may have ended
    /// by that, but by nothing else.
    fn go_on(&mut self, listens: bool) {
        if listens {
            let Err(why) = self.serve() else { return };
            assert!(why.contains("the node is stopping"), "it does not serve: {why}");
            self.0.kill();
        } else {
            let status = self.0.ended();
            assert!(status.success(), "the service ended: {status}");
        }
        self.0.spawn();
        self.0.ready();
        until("it serves", || self.serve().is_ok());
    }
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |value| value.parse().expect("a number"))
}

#[test]
fn changed_requests_neither_end_the_service_nor_stop_it() {
    let mut target = Target::new();
    let lease = target.lease();
    let (grpc, gateway) = (grpc_requests(lease), gateway_requests(lease));
    let corpora = [frames(), http_requests(), redis_requests(), grpc, gateway];
    for bytes in corpora.iter().flatten() {
        assert!(target.send(bytes), "the corpus itself is harmless: {}", bytes.escape_ascii());
    }
    target.serve().expect("and leaves nothing behind");
    // The service understands the frames: its answer to the last kind of call is the message "I
    // serve".
    let mut stream = target.connect().expect("it listens");
    stream.write_all(&corpora[3][etcd_calls(lease).len() - 1]).expect("it is taken");
    let said = answer(&mut stream, PATIENCE);
    assert!(said.windows(7).any(|it| it == [0, 0, 0, 0, 2, 8, 1]), "{}", said.escape_ascii());
    let seed = number("FUZZ_SEED", 1);
    for case in 0..number("FUZZ_CASES", CASES) {
        let mut random = Random(seed << 32 | case);
        let corpus = random.pick(&corpora);
        let bytes = change(&mut random, corpus);
        let _reported = RequestReport { seed, case, bytes: &bytes };
        let listens = target.send(&bytes);
        if !listens || case % WITNESS == 0 {
            target.go_on(listens);
        }
    }
    target.go_on(true);
}

/// Tells which request it was if the test fails.
struct RequestReport<'a> {
    seed: u64,
    case: u64,
    bytes: &'a [u8],
}

impl Drop for RequestReport<'_> {
    fn drop(&mut self) {
        let Self { seed, case, bytes } = self;
        if std::thread::panicking() {
            let bytes = bytes.escape_ascii();
            eprintln!("FUZZ_SEED={seed}, case {case} or one shortly before it: {bytes}");
        }
    }
}
