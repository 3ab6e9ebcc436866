//! Redis clients over TCP: tokens, certificates and rights.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use doorway_daemon::listen::Protocols;

use super::client::{Raw, request};
use crate::common::PATIENCE;
use crate::http::remote::{CI, RUNNER, Remote, TOKEN};

#[test]
fn clients_prove_who_they_are_by_a_token_or_a_certificate() {
    let remote = Remote::serving(Protocols::Redis);
    let raw = || Raw::new(remote.connect(None));
    let mut unknown = raw();
    for line in ["PING", "SET k v NX PX 900", "GET k", "HELLO 3", "INFO", "SELECT 1"] {
        unknown.refused(line, &["-NOAUTH Authentication required", "AUTH token"]);
    }
    assert_eq!(unknown.line(&format!("AUTH {TOKEN}")), "+OK");
    assert_eq!(unknown.line("SET k mine NX PX 900"), "+OK");
    assert_eq!(raw().line(&format!("AUTH all {TOKEN}")), "+OK");
    assert_eq!(raw().line(&format!("AUTH default {TOKEN}")), "+OK");
    let mut hello = raw();
    assert!(hello.line(&format!("HELLO 3 AUTH all {TOKEN}")).contains(":3"));
    assert_eq!(hello.line("GET none"), "nil");
    for wrong in ["AUTH nobody", &format!("AUTH ci {TOKEN}"), "HELLO 2 AUTH all nobody"] {
        let mut raw = raw();
        raw.refused(wrong, &["-WRONGPASS"]);
        assert_eq!(raw.reply(), "", "tokens cannot be tried at leisure");
    }
    let mut shown = Raw::new(remote.connect(Some("ci")));
    assert_eq!(shown.line("SET deploy/k mine NX PX 900"), "+OK");
    let mut stranger = Raw::new(remote.connect(Some("stranger")));
    stranger.refused("PING", &["-NOAUTH"]);
}

#[test]
fn rights_and_limits_are_those_of_the_client() {
    let remote = Remote::serving(Protocols::Redis);
    let mut ci = Raw::new(remote.connect(None));
    assert_eq!(ci.line(&format!("AUTH ci {CI}")), "+OK");
    ci.refused("SET k mine NX PX 900", &["-NOPERM client ci may not acquire `k`"]);
    ci.refused("GET k", &["-NOPERM client ci may not inspect `k`"]);
    ci.refused("SET %x mine NX PX 900", &["-"]);
    assert_eq!(ci.line("SET deploy/k mine NX PX 2000"), "+OK");
    ci.refused("SET deploy/l mine NX PX 2001", &["2000 ms", "[limits]"]);
    ci.refused("DEL deploy/k", &["-NOPERM DEL takes a lock", "DELIFEQ", "\"break\""]);
    let mut all = Raw::new(remote.connect(None));
    assert_eq!(all.line(&format!("AUTH {TOKEN}")), "+OK");
    // The lease belongs to its client, even if others know the value.
    assert_eq!(all.line("DELIFEQ deploy/k mine"), ":0");
    assert_eq!(all.line("PEXPIRE deploy/k 2000"), ":0");
    assert_eq!(all.line("DOORWAY.FENCE deploy/k mine"), "nil");
    assert_eq!(all.line("DEL deploy/k"), ":1", "it has the right to break it");
    assert_eq!(ci.line("DELIFEQ deploy/k mine"), ":0");
}

#[test]
fn a_client_that_may_only_acquire_sets_and_extends() {
    let remote = Remote::serving(Protocols::Redis);
    let mut runner = Raw::new(remote.connect(None));
    assert_eq!(runner.line(&format!("AUTH runner {RUNNER}")), "+OK");
    runner.refused("GET deploy/k", &["-NOPERM client runner may not inspect `deploy/k`"]);
    assert_eq!(runner.line("SET deploy/k mine XX PX 900"), "nil", "nobody holds it");
    assert_eq!(runner.line("SET deploy/k mine NX PX 900"), "+OK");
    assert_eq!(runner.line("SET deploy/k mine XX PX 900"), "+OK");
    runner.refused("SET deploy/k yours XX PX 900", &["-ERR", "held with another value"]);
    runner.refused("SET k mine XX PX 900", &["-NOPERM client runner may not acquire `k`"]);
}

#[test]
fn clients_at_the_wrong_port_are_told_where_they_are() {
    let remote = Remote::serving(Protocols::Redis);
    let mut plain = TcpStream::connect(remote.address).unwrap();
    plain.set_read_timeout(Some(PATIENCE)).unwrap();
    plain.write_all(&request(&["PING"])).unwrap();
    let mut said = String::new();
    plain.read_to_string(&mut said).unwrap();
    assert!(said.starts_with("-ERR ") && said.contains("does not use TLS"), "{said}");
    assert!(said.contains("rediss://"), "{said}");
    let mut http = remote.connect(None);
    http.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let mut said = String::new();
    let _ = http.read_to_string(&mut said);
    assert!(said.starts_with("HTTP/1.1 421") && said.contains("port for Redis clients"), "{said}");
    let other = Remote::start();
    let mut redis = Raw::new(other.connect(None));
    redis.refused("PING", &["this is the HTTP port", "[redis]"]);
}

/// Nobody who has not proved who they are needs a long request.
#[test]
fn a_request_before_the_token_is_short() {
    let remote = Remote::serving(Protocols::Redis);
    let long = "x".repeat(5000);
    let many = "$1\r\nx\r\n".repeat(700);
    for request in ["*2\r\n$4\r\nPING\r\n$5000\r\n".to_owned(), format!("*1000\r\n{many}")] {
        let mut raw = Raw::new(remote.connect(None));
        raw.send(request.as_bytes());
        let reply = raw.reply();
        assert!(reply.starts_with("-ERR Protocol error: "), "{reply}");
        assert!(reply.contains("4096 bytes before the client has proved who it is"), "{reply}");
    }
    let mut known = Raw::new(remote.connect(None));
    // The limit is one of a request: more of them may follow at once.
    known.send(&[request(&["AUTH", TOKEN]), request(&["PING", &long])].concat());
    assert_eq!((known.reply(), known.reply().len()), ("+OK".to_owned(), 5002));
}
