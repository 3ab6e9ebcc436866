//! Clients that are slow, too many, or malformed.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use doorway_daemon::settings::{Limits, Settings, default_limits};
use serde_json::json;

use super::client::exchange;
use crate::common::settings::settings;
use crate::server::Server;

#[test]
fn many_slow_connections_do_not_block_others() {
    let server = Server::new();
    let slow: Vec<UnixStream> = (0..300)
        .map(|_| {
            let mut stream = server.connect();
            stream.write_all(b"POST /v1/locks/a/acq").unwrap();
            stream
        })
        .collect();
    server.until("all are there", |service| service.connections() == 300);
    let fence = server.acquire("a", &json!({}));
    assert!(server.release("a", &fence));
    drop(slow);
    server.until("all are gone", |service| service.connections() == 0);
}

#[test]
fn more_connections_than_allowed_are_refused() {
    let limits = Limits { connections: 2, ..default_limits() };
    let server = Server::start(&Settings { limits, ..settings() });
    let mut held: Vec<UnixStream> = (0..2).map(|_| server.connect()).collect();
    for stream in &mut held {
        stream.write_all(b"G").unwrap();
    }
    server.until("both are there", |service| service.connections() == 2);
    server.get("/health").problem(429, "busy", "limits.connections");
    drop(held);
    server.until("both are gone", |service| service.connections() == 0);
    server.get("/health").expect(200);
}

#[test]
fn more_sessions_than_allowed_are_refused() {
    let limits = Limits { sessions: 2, ..default_limits() };
    let server = Server::start(&Settings { limits, ..settings() });
    for lock in ["a", "b"] {
        server.acquire(lock, &json!({}));
    }
    let refused = server.post("c", "acquire", &json!({ "request_id": "r" }));
    refused.problem(429, "busy", "limits.sessions");
    assert!(refused.head.contains("retry-after"), "{refused:?}");
}

#[test]
fn garbage_ends_only_its_own_connection() {
    let server = Server::new();
    let head = "x: y\r\n".repeat(20_000);
    for garbage in [
        "x".repeat(1 << 18).into_bytes(),
        b"\xff\xfe\xfd\r\n\r\n".to_vec(),
        b"GET / HTTP/9.9\r\n\r\n".to_vec(),
        format!("GET / HTTP/1.1\r\nhost: a\r\n{head}\r\n").into_bytes(),
        b"POST /v1/locks/a/acquire HTTP/1.1\r\ncontent-length: -1\r\n\r\n".to_vec(),
    ] {
        let mut stream = server.connect();
        let _ = stream.write_all(&garbage);
        let mut told = Vec::new();
        let _ = stream.read_to_end(&mut told);
        let told = String::from_utf8_lossy(&told);
        assert!(told.is_empty() || told.starts_with("HTTP/1.1 4"), "{told}");
    }
    server.until("all are gone", |service| service.connections() == 0);
    server.get("/health").expect(200);
}

#[test]
fn a_connection_serves_one_request_after_the_other() {
    let server = Server::new();
    let one = "GET /health HTTP/1.1\r\nhost: a\r\n\r\n";
    let last = "GET /v1/status HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    let answers = exchange(server.connect(), format!("{one}{one}{last}").as_bytes());
    assert_eq!(answers.body.matches("HTTP/1.1 200").count(), 2, "{answers:?}");
    assert!(answers.body.contains("\"members\""), "{answers:?}");
}
