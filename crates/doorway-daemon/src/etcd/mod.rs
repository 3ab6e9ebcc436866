//! The gRPC of etcd, for programs that take their locks with an etcd client.
//!
//! Only what lock clients need is there. A lease of etcd is a session, and the key of a lease is a
//! lock that the session holds or waits for. Revisions are fences. Clients prove who they are as
//! over HTTP: on the Unix socket the system says it, and over TCP every client needs a certificate,
//! or the token of a user.
//!
//! - `wire`: Protocol Buffers and their JSON; `messages`: the messages of etcd.
//! - `grpc`: messages in the bodies of HTTP/2; `status`: why a call failed.
//! - `ids`: the numbers of leases and revisions, which name their node.
//! - `keys`: which lock a key means; `shapes`: which transactions are known.
//! - `home`: leases and keys at the node where they are at home; `routes`: the way to this node.
//! - `calls`, `kv`, `watch`: what clients call, translated for `home`.
//! - `holders`: the holders of locks, for all watches of the node.
//! - `label`: the description of a lease.
//! - `connection`: one connection, from its first byte to its last.
//! - `gateway`: the same calls with JSON.
//! - `reflection`: which calls and messages there are, for tools that ask.

mod calls;
mod connection;
mod gateway;
mod grpc;
mod holders;
mod home;
mod ids;
mod keys;
mod kv;
mod label;
mod messages;
mod reflection;
mod routes;
mod shapes;
mod status;
mod watch;
mod wire;

use std::sync::Arc;

pub(crate) use connection::PREFACE;

use crate::listen::{Doors, EtcdDoor};
use crate::service::Service;
use calls::Identity;
use routes::Routes;

/// What all connections share.
struct EtcdContext {
    routes: Arc<Routes>,
    doors: Doors,
    identity: Identity,
}

/// Make the function that serves connections of etcd clients, with the tokens and certificates of
/// `doors`.
pub fn door(service: &Service, doors: &Doors) -> EtcdDoor {
    let identity = Identity {
        cluster_id: ids::hash(service.node().group()),
        member_id: ids::hash(service.node().name()),
    };
    let shared =
        Arc::new(EtcdContext { routes: Routes::new(service), doors: doors.clone(), identity });
    Arc::new(move |stream, peer| Box::pin(connection::serve(Arc::clone(&shared), stream, peer)))
}
