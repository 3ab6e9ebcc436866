//! HTTP: the same service for whoever has no client of ours.
//!
//! A connection is served by hyper, and its requests by the routes of `api`. A lock that is
//! acquired here is held by a lease, a session that lives by its time alone; `leases` finds the
//! one that belongs to a request that comes again. Nobody needs a token on the Unix socket, where
//! the system says who it is; over TCP everyone needs one, or a certificate: see `gate`.

mod api;
mod body;
mod events;
mod gate;
mod leases;
mod locks;
mod node;
mod problem;
mod words;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;

use crate::listen::{Begun, Doors, HttpDoor};
use crate::principal::Principal;
use crate::seldom::Seldom;
use crate::service::{Connected, Peer, Service};
use crate::settings::Settings;

/// How long a client may take for the head of a request, and be idle between two.
const HEAD: Duration = Duration::from_secs(30);

/// How many bytes the head of a request may have.
const HEAD_BYTES: usize = 1 << 16;

/// How long a connection may go on with its answers when the service stops.
const LAST_WORDS: Duration = Duration::from_millis(400);

static TROUBLE: Seldom = Seldom::new();

/// Who is at the other end, as far as the connection proves it.
struct Connection {
    principal: Option<Principal>,
    remote: bool,
    connected: Connected,
}

/// Serve HTTP for a service. What the doors know of tokens and certificates holds here too. To be
/// called on a runtime.
pub fn door(service: &Service, settings: &Settings, doors: &Doors) -> HttpDoor {
    let router = api::router(service, settings, doors);
    Arc::new(move |stream, peer| Box::pin(serve(router.clone(), stream, peer)))
}

/// The document of all routes, in JSON.
pub fn document() -> String {
    api::document()
}

async fn serve(router: Router, mut stream: Begun, peer: Peer) {
    let connected = match stream.entry() {
        Some(Ok(connected)) => connected,
        Some(Err(turned)) => return refuse(stream, turned.refusal.clone().into()).await,
        None => return,
    };
    let outbox = Arc::clone(&connected.outbox);
    let Peer { principal, remote, process } = peer;
    drop(process); // Nobody asks for it here, and it is a file.
    let end = Arc::new(Connection { principal, remote, connected });
    let answering = TowerToHyperService::new(router);
    let requests = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Arc::clone(&end));
        answering.call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), requests);
    let mut connection = pin!(connection);
    let served = tokio::select! {
        served = &mut connection => served,
        () = outbox.closed() => {
            connection.as_mut().graceful_shutdown();
            // Events go on for ever, and some clients do not read.
            timeout(LAST_WORDS, connection).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = served {
        TROUBLE.then(|| tracing::debug!("a connection of HTTP ended: {error}"));
    }
}

/// Say no to a whole connection.
async fn refuse(mut stream: Begun, problem: problem::Problem) {
    let body = problem.body();
    let head = format!(
        "HTTP/1.1 {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         retry-after: 1\r\nconnection: close\r\n\r\n",
        problem.status(),
        body.len()
    );
    // Whoever does not read it learns it from the end of the connection.
    let told = async {
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body.as_bytes()).await?;
        stream.shutdown().await
    };
    let _ = timeout(LAST_WORDS, told).await;
}
