//! The Redis protocol, for programs that take their locks with a Redis client.
//!
//! Only what lock clients need is there: a key is a lock, and a lock is held by a lease, as over
//! HTTP. Clients prove who they are as over HTTP, too: on the Unix socket the system says it, and
//! over TCP every client needs a certificate, or a token with `AUTH`.
//!
//! - `resp`: requests and replies as bytes.
//! - `command`: which command a request is.
//! - `script`: which script of a lock client a Lua text is.
//! - `owner`: values, by which a lease is found again.
//! - `locks`: commands about locks, translated for the service.
//! - `redlock`: locks that a client acquires at several nodes of a group.
//! - `connection`: one connection, from its first byte to its last.

mod command;
mod connection;
mod locks;
mod owner;
mod redlock;
mod resp;
mod script;

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

use crate::listen::{Doors, RedisDoor};
use crate::service::Service;
use redlock::Redlock;
use resp::{Reply, Version};
use script::Scripts;

/// How long a connection that ends may take to write its last reply.
const LAST_WORDS: Duration = Duration::from_millis(400);

/// What all connections share.
struct RedisContext {
    service: Service,
    doors: Doors,
    scripts: Scripts,
    redlock: Option<Arc<Redlock>>,
}

/// Make the function that serves connections of Redis clients, with the tokens and certificates of
/// `doors`. With `redlock`, a lock that a client holds at another member counts here, too.
pub fn door(service: &Service, doors: &Doors, redlock: bool) -> RedisDoor {
    let redlock = redlock.then(|| Redlock::new(service));
    let (service, doors) = (service.clone(), doors.clone());
    let context = RedisContext { service, doors, scripts: Scripts::default(), redlock };
    let shared = Arc::new(context);
    Arc::new(move |stream, peer| Box::pin(connection::serve(Arc::clone(&shared), stream, peer)))
}

/// Refuse a whole connection, for this reason.
pub(crate) async fn refuse(mut stream: impl AsyncWrite + Unpin, text: &str) {
    let mut bytes = Vec::new();
    resp::write(&Reply::error(text), Version::Two, &mut bytes);
    // A client that does not read the reply sees the end of the connection.
    let told = async {
        stream.write_all(&bytes).await?;
        stream.shutdown().await
    };
    let _ = timeout(LAST_WORDS, told).await;
}
