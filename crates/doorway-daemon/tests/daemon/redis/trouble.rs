//! Redis clients that are slow, too many, or malformed.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use doorway_daemon::settings::{Limits, Settings, default_limits};

use super::client::{Raw, request};
use crate::common::daemon::Daemon;
use crate::common::settings::settings;
use crate::server::Server;

#[test]
fn malformed_requests_get_an_error_and_end_only_their_own_connection() {
    let server = Server::new();
    let mut witness = Raw::of(&server);
    assert_eq!(witness.line("PING"), "+PONG");
    let huge = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$70000\r\n{}", "x".repeat(70_000));
    for (bytes, part) in [
        ("*1\r\n:1\r\n", "expected `$`, got `:`"),
        ("*99999\r\n", "1024 arguments"),
        ("*1\r\n$99999999999\r\n", "digits"),
        ("*-1\r\n", "a number"),
        ("*2\r\n$4\r\nPINGPING\r\n", "does not end"),
        (huge.as_str(), "65536 bytes"),
    ] {
        let mut raw = Raw::of(&server);
        raw.send(bytes.as_bytes());
        let reply = raw.reply();
        assert!(reply.starts_with("-ERR Protocol error: "), "{reply}");
        assert!(reply.contains(part), "{reply}");
        assert_eq!(raw.reply(), "", "nothing after it can be understood");
    }
    assert_eq!(witness.line("PING"), "+PONG");
    drop(witness);
    server.until("all are gone", |service| service.connections() == 0);
}

#[test]
fn truncated_requests_and_slow_clients_do_not_block_others() {
    let server = Server::new();
    let whole = request(&["SET", "k", "mine", "NX", "PX", "5000"]);
    let slow: Vec<_> = (1..whole.len())
        .map(|end| {
            let mut raw = Raw::of(&server);
            raw.send(&whole[..end]);
            raw
        })
        .collect();
    let count = slow.len();
    server.until("all are there", |service| service.connections() == count);
    let mut raw = Raw::of(&server);
    assert_eq!(raw.line("SET k yours NX PX 5000"), "+OK");
    assert_eq!(raw.line("DELIFEQ k yours"), ":1");
    drop((raw, slow));
    server.until("all are gone", |service| service.connections() == 0);
    assert_eq!(server.service.held(), 0);
}

/// The client sends for as long as the service takes it, and reads nothing.
#[test]
fn a_client_that_does_not_read_costs_nothing_but_its_own_connection() {
    let server = Server::new();
    let mut stream: UnixStream = crate::server::connect(&server.name).unwrap();
    stream.set_write_timeout(Some(std::time::Duration::from_millis(200))).unwrap();
    let flood: Vec<u8> = request(&["ECHO", &"x".repeat(1000)]).repeat(60);
    let mut sent = 0;
    while let Ok(count) = stream.write(&flood) {
        sent += count;
        assert!(sent < 50_000_000, "the service reads without end");
    }
    let mut other = Raw::of(&server);
    assert_eq!(other.line("SET k mine NX PX 5000"), "+OK");
    assert_eq!(other.line("DELIFEQ k mine"), ":1");
    let mut some = [0; 1000];
    assert!(stream.read(&mut some).unwrap() > 0, "the replies are still there");
}

#[test]
fn limits_hold_as_at_every_other_door() {
    let limits = Limits { sessions: 2, connections: 2, ..default_limits() };
    let server = Server::start(&Settings { limits, ..settings() });
    let mut raw = Raw::of(&server);
    for key in ["a", "b"] {
        assert_eq!(raw.line(&format!("SET {key} mine NX PX 5000")), "+OK");
    }
    raw.refused("SET c mine NX PX 5000", &["-TRYAGAIN", "limits.sessions"]);
    let mut second = Raw::of(&server);
    assert_eq!(second.line("PING"), "+PONG");
    let mut third = Raw::of(&server);
    let reply = third.line("PING");
    assert!(reply.starts_with("-ERR") && reply.contains("limits.connections"), "{reply}");
    assert_eq!(second.line("DELIFEQ a mine"), ":1");
    assert_eq!(second.line("SET c mine NX PX 5000"), "+OK");
}

#[test]
fn connections_end_when_the_service_stops() {
    let server = Server::new();
    let mut raw = Raw::of(&server);
    assert_eq!(raw.line("SET k mine NX PX 5000"), "+OK");
    server.runtime.block_on(server.service.stop());
    assert_eq!(raw.reply(), "");
}

#[test]
fn a_node_without_the_table_says_that_it_does_not_serve_redis_clients() {
    let daemon = Daemon::alone("");
    let mut raw = Raw::at(&daemon);
    raw.refused("PING", &["no port for Redis clients", "[redis]"]);
}
