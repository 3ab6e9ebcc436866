//! Telling clients that come to the wrong port, or without TLS, what they have reached.

use std::time::Duration;

use doorway_protocol::{Code, MAGIC, Refusal};
use doorway_sessions::refusals::refusal;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{Addresses, Protocols};
use crate::http::{self, Problem};
use crate::native;
use crate::redis;

/// How long a client without TLS may take to send its first bytes.
const PATIENCE: Duration = Duration::from_secs(1);

/// The refusal of a session at a port for something else. Its code lets the client try another
/// node.
pub(super) fn not_for_sessions(node: &str, speaks: Protocols, addresses: &Addresses) -> Refusal {
    let sessions = match &addresses.sessions {
        Some(address) => format!("sessions are at {address}"),
        None => "it has no port for sessions (`listen` under [sessions])".to_owned(),
    };
    let port = port(speaks);
    refusal(Code::Unavailable, format!("this is {port} of the node {node}; {sessions}"))
}

/// Why HTTP is refused at a port for something else.
pub(super) fn not_for_http(node: &str, speaks: Protocols, addresses: &Addresses) -> String {
    let http = match &addresses.http {
        Some(address) => format!("HTTP is at {address}"),
        None => "it has no port for HTTP (`listen` under [http])".to_owned(),
    };
    format!("this is {} of the node {node}; {http}", port(speaks))
}

/// Why a Redis client is refused at a port for something else.
pub(super) fn not_for_redis(node: &str, speaks: Protocols, addresses: &Addresses) -> String {
    let redis = match &addresses.redis {
        Some(address) => format!("Redis clients are served at {address}"),
        None => "it has no port for Redis clients (`listen` under [redis])".to_owned(),
    };
    format!("this is {} of the node {node}; {redis}", port(speaks))
}

fn port(speaks: Protocols) -> &'static str {
    match speaks {
        Protocols::Native => "the port for sessions",
        Protocols::Redis => "the port for Redis clients",
        Protocols::Etcd => "the port for etcd clients",
        Protocols::Http => "the HTTP port",
        Protocols::All => "the Unix socket",
    }
}

/// Refuse a client that does not use TLS, in the protocol that it seems to speak.
pub(super) async fn refuse_plain(mut stream: TcpStream, speaks: Protocols) {
    // If a connection is closed while bytes are unread, the system may drop what was written.
    let mut bytes = [0; 4096];
    let Ok(Ok(1..)) = timeout(PATIENCE, stream.read(&mut bytes)).await else { return };
    let what = match speaks {
        Protocols::Native => "sessions",
        Protocols::Redis => "Redis clients",
        Protocols::Etcd => "etcd clients",
        Protocols::Http | Protocols::All => "HTTP",
    };
    let text = format!("this port is for {what} with TLS, and the client does not use TLS");
    if bytes[0] == MAGIC[0] {
        native::refuse(stream, refusal(Code::Unavailable, text)).await;
    } else if bytes[0] == b'*' {
        redis::refuse(stream, &format!("{text}: use TLS (rediss://, redis-cli --tls)")).await;
    } else if bytes[0].is_ascii_uppercase() {
        http::refuse(stream, Problem::invalid(format!("{text}: use https://"))).await;
    }
}
