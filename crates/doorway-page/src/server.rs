//! The server of `doorway lab`: a socket on loopback, the guard, the files and the interface.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderMap, Request, StatusCode, Uri};
use axum::middleware::from_fn_with_state;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::files;
use crate::guard::{ClientPort, Guard, Token, pass};
use crate::lab::{self, Schedule};
use crate::live::{self, Dial};

/// How long a client may take to send the head of a request, or stay idle between two requests.
const HEAD: Duration = Duration::from_mins(1);

/// How long a connection may stay without a request that the guard lets in to the interface. Every
/// user of the machine can connect, and must not take the places of the page.
const STRANGER: Duration = Duration::from_secs(5);

/// How many connections are served at once. A browser opens six.
const CONNECTIONS: usize = 64;

/// How the guard answers those that it does not let in.
const REFUSED: [StatusCode; 4] = [
    StatusCode::UNAUTHORIZED,
    StatusCode::FORBIDDEN,
    StatusCode::METHOD_NOT_ALLOWED,
    StatusCode::MISDIRECTED_REQUEST,
];

/// What the page shows first.
#[derive(Clone, Debug, Default)]
pub enum First {
    /// The shelf of stories.
    #[default]
    Shelf,
    /// A script, at its end if it ends with a violation.
    Script {
        /// Its name, for the heading.
        name: String,
        /// Its text.
        text: String,
    },
    /// What real nodes have recorded.
    Recording(Box<doorway_lab::Trace>),
    /// The moment that a link names: what comes after `#` in it.
    Link(String),
    /// A schedule between threads, at its end.
    Threads(Schedule),
    /// The live page of the node to which this connects, with the laboratory beside it.
    Live(LiveNode),
}

/// The node of a live page.
#[derive(Clone)]
pub struct LiveNode {
    /// Connects to the node.
    pub dial: Dial,
    /// The page first shows only locks whose names begin with this.
    pub prefix: String,
}

impl fmt::Debug for LiveNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveNode").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

/// A server that has its socket and can begin to answer.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    guard: Guard,
    /// What the address has instead of the token where others can read it.
    ticket: Token,
    first: First,
}

impl Server {
    /// Listen on loopback, on this port or on any free one for 0. To be called on a runtime.
    pub async fn bind(port: u16, token: Token, first: First) -> io::Result<Self> {
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await?;
        let port = listener.local_addr()?.port();
        let guard = Guard::new(token, port);
        let ticket = guard.ticket()?;
        Ok(Self { listener, guard, ticket, first })
    }

    /// The address to open in a browser, with the token in its fragment.
    pub fn address(&self) -> String {
        self.address_with('t', &self.guard.token)
    }

    /// The address to give to a program that opens it in a browser: instead of the token it has a
    /// ticket, because every user of the machine can read the arguments of programs.
    pub fn ticket_address(&self) -> String {
        self.address_with('k', &self.ticket)
    }

    fn address_with(&self, key: char, word: &Token) -> String {
        let port = self.guard.port;
        let (path, place) = match &self.first {
            First::Shelf => ("", String::new()),
            // The live page opens its recordings in the laboratory of this server.
            First::Live(LiveNode { prefix, .. }) if prefix.is_empty() => {
                ("page", "&lab".to_owned())
            }
            First::Live(LiveNode { prefix, .. }) => {
                ("page", format!("&lab&prefix={}", escaped(prefix)))
            }
            First::Script { .. } | First::Recording(_) => ("", "&/first".to_owned()),
            First::Link(place) => ("", format!("&{}", tame(place))),
            First::Threads(schedule) => ("", format!("&/threads?{}", schedule.query())),
        };
        format!("http://127.0.0.1:{port}/{path}#{key}={}{place}", word.text())
    }

    /// Answer requests for ever.
    pub async fn run(self) -> io::Result<()> {
        let router = router(self.guard, self.first);
        let room = Arc::new(Semaphore::new(CONNECTIONS));
        loop {
            let permit = room.clone().acquire_owned().await.map_err(io::Error::other)?;
            let Ok((stream, client)) = self.listener.accept().await else {
                // A connection that is gone already, or no descriptor at the moment.
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            };
            let router = TowerToHyperService::new(router.clone());
            let known = Arc::new(AtomicBool::new(false));
            let let_in = Arc::clone(&known);
            let service = service_fn(move |mut request: Request<Incoming>| {
                request.extensions_mut().insert(ClientPort(client.port()));
                let is_call =
                    ["/api/", "/v1/"].iter().any(|it| request.uri().path().starts_with(it));
                let (answer, let_in) = (router.call(request), Arc::clone(&let_in));
                async move {
                    let answer = answer.await?;
                    if is_call && !REFUSED.contains(&answer.status()) {
                        let_in.store(true, Ordering::Relaxed);
                    }
                    Ok::<_, Infallible>(answer)
                }
            });
            tokio::spawn(async move {
                let connection = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(HEAD)
                    .serve_connection(TokioIo::new(stream), service);
                let mut connection = pin!(connection);
                // A client that goes away is not an error of the server.
                if timeout(STRANGER, connection.as_mut()).await.is_err() {
                    if known.load(Ordering::Relaxed) {
                        let _ = connection.await;
                    } else {
                        connection.as_mut().graceful_shutdown();
                        let _ = timeout(STRANGER, connection).await;
                    }
                }
                drop(permit);
            });
        }
    }
}

/// An address in which every byte is escaped that may not stand in one, and no other.
fn tame(address: &str) -> String {
    let escape = |byte: u8| match byte {
        0x21..=0x7e if !b"\"<>\\^`{|}#".contains(&byte) => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    address.bytes().map(escape).collect()
}

/// A text in which every byte is escaped that may not stand in an address.
fn escaped(text: &str) -> String {
    let escape = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'/' => {
            char::from(byte).to_string()
        }
        other => format!("%{other:02X}"),
    };
    text.bytes().map(escape).collect()
}

/// The routes behind the guard.
fn router(guard: Guard, first: First) -> Router {
    let live = match &first {
        First::Live(LiveNode { dial, .. }) => live::router(Arc::clone(dial)),
        _ => Router::new(),
    };
    Router::new()
        .nest("/api", lab::router(first))
        .route("/picture.css", axum::routing::get(lab::picture_css))
        .fallback(async |headers: HeaderMap, uri: Uri| files::answer(&headers, uri.path()))
        .merge(live)
        .layer(from_fn_with_state(guard, pass))
}
