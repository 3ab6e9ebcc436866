//! HTTP, for programs that do not use `doorway-client`.
//!
//! hyper serves each connection, and the routes of `api` its requests. A lock that is acquired over
//! HTTP is held by a lease, which is a session with a time to live and no connection. On the Unix
//! socket the system says who the client is, so it needs no token. Over TCP every client needs a
//! token or a certificate: see `gate`.

mod api;
mod events;
mod extract;
mod gate;
mod group;
mod locks;
mod node;
mod page;
mod problem;
mod schemas;
mod terraform;

use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use doorway_sessions::principal::Principal;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

use crate::listen::{BufferedStream, Doors, HttpDoor};
use crate::log_limit::LogLimit;
use crate::service::{OpenConnection, Peer, Service};
use crate::settings::Settings;

pub(crate) use problem::Problem;

/// How long a client may take to send the head of a request, or stay idle between two requests.
const HEAD: Duration = Duration::from_secs(30);

/// How many bytes the head of a request may have.
const HEAD_BYTES: usize = 1 << 16;

/// How long a connection may go on writing responses when the service stops.
const LAST_WORDS: Duration = Duration::from_millis(400);

static TROUBLE: LogLimit = LogLimit::new();

/// A connection, and the client that it belongs to as far as the connection proves it.
struct Connection {
    principal: Option<Principal>,
    remote: bool,
    from: Option<IpAddr>,
    connected: OpenConnection,
}

/// Make the function that serves HTTP connections of a service, with the tokens and certificates of
/// `doors`. To be called on a runtime.
pub fn door(service: &Service, settings: &Settings, doors: &Doors) -> HttpDoor {
    let router = api::router(service, settings, doors);
    Arc::new(move |stream, peer| Box::pin(serve(router.clone(), stream, peer)))
}

/// The `OpenAPI` document of all routes, as JSON.
pub fn document() -> String {
    api::document()
}

async fn serve(router: Router, mut stream: BufferedStream, peer: Peer) {
    let connected = match stream.entry() {
        Some(Ok(connected)) => connected,
        Some(Err(turned)) => return refuse(stream, turned.refusal.clone().into()).await,
        None => return,
    };
    let outbox = Arc::clone(&connected.outbox);
    let Peer { principal, remote, from, process, passed } = peer;
    drop((process, passed)); // They are not needed here, and hold descriptors.
    let end = Arc::new(Connection { principal, remote, from, connected });
    let answering = TowerToHyperService::new(router);
    let requests = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Arc::clone(&end));
        terraform::translate_method(&mut request);
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
            // A stream of events never ends, and some clients do not read.
            timeout(LAST_WORDS, connection).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = served {
        TROUBLE.then(|| tracing::debug!("an HTTP connection ended: {error}"));
    }
}

/// Refuse a whole connection.
pub(crate) async fn refuse(mut stream: impl AsyncWrite + Unpin, problem: Problem) {
    let body = problem.body();
    let again = if problem.is_passing() { "retry-after: 1\r\n" } else { "" };
    let head = format!(
        "HTTP/1.1 {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         {again}connection: close\r\n\r\n",
        problem.status(),
        body.len()
    );
    // A client that does not read the response sees the end of the connection.
    let told = async {
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body.as_bytes()).await?;
        stream.shutdown().await
    };
    let _ = timeout(LAST_WORDS, told).await;
}
