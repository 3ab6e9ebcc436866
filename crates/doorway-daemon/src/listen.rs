//! Accepts clients on a Unix socket, and on TCP with TLS.
//!
//! The first bytes of a connection tell its protocol: the framed protocol begins with a zero, the
//! Redis protocol with `*`, and HTTP with a letter. Clients of etcd begin with `PRI`, as HTTP/2
//! does, or ask for a path below `/v3/`.

mod bind;
mod wrong_port;

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use doorway_node::members::BoxedFuture;
use doorway_protocol::{MAGIC, Scope};
use doorway_sessions::outbox::Outbox;
use doorway_sessions::principal::{Principal, Rights};
use parking_lot::RwLock;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::server::TlsStream;

use crate::certificate::node_name;
use crate::etcd;
use crate::http::{self, Problem};
use crate::log_limit::LogLimit;
use crate::native;
use crate::redis;
use crate::reload::SharedSettings;
use crate::service::{Entry, Peer, Process, Service};
use crate::settings::Settings;
use crate::socket::Socket;
use crate::task::boxed;
use crate::tls::{Certificates, ReloadError};

pub use crate::settings::Proof;
pub use bind::{ReservedSocket, SocketFile, bind_unix, reserve};

/// The first byte of a TLS connection.
const TLS_HANDSHAKE: u8 = 22;

/// The pause after a connection could not be accepted, mostly because too many files are open.
const PAUSE: Duration = Duration::from_millis(100);

/// How long a client that has just connected may take to show its protocol when the service stops.
const FIRST_WORDS: Duration = Duration::from_millis(200);

static ACCEPT: LogLimit = LogLimit::new();
static HANDSHAKE: LogLimit = LogLimit::new();

/// The TLS configuration of connections over TCP. A new one applies to the next connection.
#[derive(Clone)]
pub struct SharedTls(Arc<RwLock<Arc<ServerConfig>>>);

impl SharedTls {
    /// Share a TLS configuration.
    pub fn new(config: Arc<ServerConfig>) -> Self {
        Self(Arc::new(RwLock::new(config)))
    }

    /// Use another configuration from now on.
    pub fn set(&self, config: Arc<ServerConfig>) {
        *self.0.write() = config;
    }

    fn get(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.0.read())
    }
}

impl fmt::Debug for SharedTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedTls(..)") // Keys do not belong in a log.
    }
}

/// Finds the client that a proof belongs to; `None` if there is none.
pub type PrincipalLookup = Arc<dyn Fn(Proof<'_>) -> Option<Principal> + Send + Sync>;

/// Serves an HTTP connection.
pub type HttpDoor = Arc<dyn Fn(BufferedStream, Peer) -> BoxedFuture<'static, ()> + Send + Sync>;

/// Serves a connection of a Redis client.
pub type RedisDoor = Arc<dyn Fn(BufferedStream, Peer) -> BoxedFuture<'static, ()> + Send + Sync>;

/// Serves a connection of an etcd client.
pub type EtcdDoor = Arc<dyn Fn(BufferedStream, Peer) -> BoxedFuture<'static, ()> + Send + Sync>;

/// What is needed to let clients in.
#[derive(Clone, Default)]
pub struct Doors {
    /// The TLS configuration for TCP. Without one nobody connects over TCP.
    pub tls: Option<SharedTls>,
    /// The certificate files of `tls`, which are read again when they change.
    pub certificates: Option<Arc<Certificates>>,
    /// Identifies clients over TCP.
    pub identify: Option<PrincipalLookup>,
    /// The settings by which clients are identified. They may be reloaded.
    pub settings: Option<SharedSettings>,
    /// Serves HTTP. Without it HTTP connections are closed.
    pub http: Option<HttpDoor>,
    /// Serves the Redis protocol. Without it Redis clients are told that it is off.
    pub redis: Option<RedisDoor>,
    /// Serves etcd clients. Without it they are not served at the Unix socket.
    pub etcd: Option<EtcdDoor>,
    /// Where the service listens over TCP, to tell clients that come to the wrong port.
    pub addresses: Addresses,
}

/// Where a service listens over TCP.
#[derive(Clone, Debug, Default)]
pub struct Addresses {
    /// The address for sessions.
    pub sessions: Option<String>,
    /// The address for HTTP.
    pub http: Option<String>,
    /// The address for Redis clients.
    pub redis: Option<String>,
    /// The address for etcd clients.
    pub etcd: Option<String>,
}

impl Doors {
    /// The doors that the settings describe, without HTTP, Redis and etcd, which the caller adds.
    pub fn from_settings(settings: &Settings) -> Result<Self, ReloadError> {
        let certificates = match &settings.tls {
            None => None,
            Some(files) => {
                let name = node_name(&settings.node.me, &settings.node.group);
                Some(Certificates::open(files.clone(), name)?)
            }
        };
        let tls = certificates.as_ref().map(|certificates| SharedTls::new(certificates.server()));
        let current = Arc::new(RwLock::new(settings.clone()));
        let known = Arc::clone(&current);
        let identify: PrincipalLookup = Arc::new(move |proof| known.read().principal(proof));
        let addresses = Addresses {
            sessions: settings.sessions.clone(),
            http: settings.http.clone(),
            redis: settings.redis.clone(),
            etcd: settings.etcd.clone(),
        };
        let (identify, settings) = (Some(identify), Some(current));
        let (http, redis, etcd) = (None, None, None);
        Ok(Self { tls, certificates, identify, settings, http, redis, etcd, addresses })
    }

    pub(crate) fn by_token(&self, token: &str) -> Option<Principal> {
        self.identify.as_ref().and_then(|identify| identify(Proof::Token(token)))
    }
}

impl fmt::Debug for Doors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Doors").finish_non_exhaustive()
    }
}

/// A stream of bytes in both directions.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A connection whose first bytes have been read already. Reading from it returns them first.
pub struct BufferedStream {
    stream: Box<dyn Stream>,
    bytes: Vec<u8>,
    taken: usize,
    /// Whether the connection is admitted, until [`BufferedStream::entry`] takes it.
    entry: Option<Entry>,
}

impl BufferedStream {
    /// Take the decision whether the connection is admitted.
    pub(crate) fn entry(&mut self) -> Option<Entry> {
        self.entry.take()
    }

    /// Whether the first bytes of the connection are these.
    pub(crate) fn begins_with(&self, bytes: &[u8]) -> bool {
        self.bytes.starts_with(bytes)
    }
}

impl AsyncRead for BufferedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let rest = &this.bytes[this.taken..];
        if rest.is_empty() {
            return Pin::new(&mut this.stream).poll_read(context, into);
        }
        let part = rest.len().min(into.remaining());
        into.put_slice(&rest[..part]);
        this.taken += part;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for BufferedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl fmt::Debug for BufferedStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BufferedStream").finish_non_exhaustive()
    }
}

/// Takes the descriptor that a client has passed with its first bytes.
trait TakePassed {
    fn take_passed(&mut self) -> Option<OwnedFd>;
}

impl TakePassed for Socket {
    fn take_passed(&mut self) -> Option<OwnedFd> {
        self.passed.take()
    }
}

/// A client over the network cannot pass descriptors.
impl TakePassed for TlsStream<TcpStream> {
    fn take_passed(&mut self) -> Option<OwnedFd> {
        None
    }
}

/// Accept clients on a Unix socket, forever.
pub fn accept_unix(
    service: Service,
    listener: UnixListener,
    doors: Doors,
) -> BoxedFuture<'static, ()> {
    Box::pin(accept_from_unix(service, listener, doors))
}

async fn accept_from_unix(service: Service, listener: UnixListener, doors: Doors) {
    let doors = Arc::new(doors);
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // A connection beyond the limit is closed at once.
                let Some(entry) = service.connect(false) else { continue };
                let (service, doors) = (service.clone(), Arc::clone(&doors));
                tokio::spawn(boxed(async move {
                    let peer = unix_peer(&service, &stream);
                    let socket = match Socket::new(stream) {
                        Ok(socket) => std::future::ready(Ok((socket, peer))),
                        Err(error) => return not_accepted(&error).await,
                    };
                    let _ = serve_connection(&service, entry, socket, &doors, Protocols::All).await;
                }));
            }
            Err(error) => not_accepted(&error).await,
        }
    }
}

/// Which protocols a listener accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocols {
    /// The framed protocol of sessions.
    Native,
    /// HTTP.
    Http,
    /// The Redis protocol.
    Redis,
    /// The gRPC of etcd, and its JSON gateway.
    Etcd,
    /// All that the service has.
    All,
}

/// Accept clients over TCP, forever. Without certificates every connection fails.
pub fn accept_tcp(
    service: Service,
    listener: TcpListener,
    doors: Doors,
    speaks: Protocols,
) -> BoxedFuture<'static, ()> {
    Box::pin(accept_from_tcp(service, listener, doors, speaks))
}

async fn accept_from_tcp(service: Service, listener: TcpListener, doors: Doors, speaks: Protocols) {
    let doors = Arc::new(doors);
    loop {
        match listener.accept().await {
            Ok((stream, from)) => {
                let Some(entry) = service.connect(true) else { continue };
                let (service, doors) = (service.clone(), Arc::clone(&doors));
                tokio::spawn(boxed(async move {
                    let shaken = tls(stream, &doors, speaks);
                    if let Err(error) =
                        serve_connection(&service, entry, shaken, &doors, speaks).await
                    {
                        HANDSHAKE
                            .then(|| tracing::debug!(%from, "a TLS handshake failed: {error}"));
                    }
                }));
            }
            Err(error) => not_accepted(&error).await,
        }
    }
}

/// Pause after a failure to accept, so that the loop neither spins nor floods the log.
async fn not_accepted(error: &io::Error) {
    ACCEPT.then(|| tracing::warn!("a connection could not be accepted: {error}"));
    sleep(PAUSE).await;
}

/// Complete the TLS handshake, and identify the client by its certificate.
async fn tls(
    stream: TcpStream,
    doors: &Doors,
    speaks: Protocols,
) -> io::Result<(TlsStream<TcpStream>, Peer)> {
    let config = doors.tls.as_ref().map(SharedTls::get);
    let config = match &doors.certificates {
        Some(certificates) if speaks == Protocols::Etcd => Some(certificates.etcd_server()),
        _ => config,
    };
    let config = config.ok_or_else(|| io::Error::other("there are no certificates"))?;
    stream.set_nodelay(true)?;
    let from = stream.peer_addr().ok().map(|from| from.ip());
    // With keepalive a client whose machine is gone is noticed after some time.
    rustix::net::sockopt::set_socket_keepalive(&stream, true)?;
    let mut first = [0];
    if timeout(native::HELLO, stream.peek(&mut first)).await?? > 0 && first[0] != TLS_HANDSHAKE {
        wrong_port::refuse_plain(stream, speaks).await;
        return Err(io::Error::other("the client does not use TLS"));
    }
    let stream = timeout(native::HELLO, TlsAcceptor::from(config).accept(stream)).await??;
    let shown = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
    let identify = doors.identify.as_ref();
    let principal =
        shown.zip(identify).and_then(|(shown, identify)| identify(Proof::Certificate(shown)));
    let peer = Peer { principal, process: None, passed: None, remote: true, from };
    Ok((stream, peer))
}

/// Identify the process that opened a Unix socket. The node of one user serves only that user and
/// root.
fn unix_peer(service: &Service, stream: &UnixStream) -> Peer {
    let Ok(shown) = stream.peer_cred() else { return Peer::default() };
    let own = rustix::process::geteuid().as_raw();
    let uid = shown.uid();
    let welcome = service.scope() != Scope::User || uid == own || uid == 0;
    let principal = welcome.then(|| Principal {
        name: format!("uid {uid}"),
        uid: Some(uid),
        rights: Rights::all(),
    });
    let process = shown.pid().and_then(|pid| Process::peer(stream, pid));
    Peer { principal, process, passed: None, remote: false, from: None }
}

/// Read the first bytes, and serve the protocol that they belong to. If the service stops before
/// they were read, they are waited for a little longer: a client that has just connected is told
/// that the service stops, in its own protocol.
async fn serve_connection<S>(
    service: &Service,
    entry: Entry,
    opening: impl Future<Output = io::Result<(S, Peer)>>,
    doors: &Doors,
    speaks: Protocols,
) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + TakePassed + Unpin + Send + 'static,
{
    let first = async {
        let (mut stream, mut peer) = opening.await?;
        let mut bytes = Vec::with_capacity(1024);
        let read = timeout(native::HELLO, stream.read_buf(&mut bytes)).await;
        peer.passed = stream.take_passed();
        if peer.passed.is_some() {
            peer.process = None; // So a connection has one descriptor of a process at most.
        }
        io::Result::Ok(matches!(read, Ok(Ok(1..))).then_some((stream, peer, bytes)))
    };
    let outbox = entry.as_ref().ok().map(|connected| &*connected.outbox);
    // The handshake has a large state, which is dropped before the connection is served.
    let first = until_stopped(outbox, Box::pin(first)).await?;
    let Some((stream, peer, bytes)) = first else { return Ok(()) };
    let (node, addresses) = (service.node().name(), &doors.addresses);
    let (begins, all) = (FirstByte::with(bytes[0]), speaks == Protocols::All);
    match (begins, speaks) {
        (FirstByte::Framed, Protocols::Native | Protocols::All) => {
            native::serve(service, entry, stream, &bytes, peer, doors).await;
        }
        (FirstByte::Framed, _) => {
            native::refuse(stream, wrong_port::not_for_sessions(node, speaks, addresses)).await;
        }
        (FirstByte::Redis, _) if speaks != Protocols::Redis && !(all && doors.redis.is_some()) => {
            redis::refuse(stream, &wrong_port::not_for_redis(node, speaks, addresses)).await;
        }
        (FirstByte::Other, Protocols::Native | Protocols::Etcd)
        | (FirstByte::Letter, Protocols::Native | Protocols::Redis) => {
            let text = wrong_port::not_for_http(node, speaks, addresses);
            http::refuse(stream, Problem::misdirected(text)).await;
        }
        _ => {
            let for_redis = speaks == Protocols::Redis || begins == FirstByte::Redis;
            let for_etcd = speaks == Protocols::Etcd
                || all && ETCD.iter().any(|beginning| bytes.starts_with(beginning));
            let door = match (for_redis, for_etcd, &doors.etcd) {
                (true, ..) => &doors.redis,
                (false, true, Some(_)) => &doors.etcd,
                _ => &doors.http,
            };
            let begun =
                BufferedStream { stream: Box::new(stream), bytes, taken: 0, entry: Some(entry) };
            if let Some(door) = door {
                door(begun, peer).await;
            }
        }
    }
    Ok(())
}

/// Wait for the first bytes of a connection, and only a little longer if the service stops.
async fn until_stopped<T>(
    outbox: Option<&Outbox>,
    mut first: impl Future<Output = io::Result<Option<T>>> + Unpin,
) -> io::Result<Option<T>> {
    let stopped = async {
        match outbox {
            Some(outbox) => outbox.closed().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        first = &mut first => first,
        () = stopped => timeout(FIRST_WORDS, first).await.unwrap_or(Ok(None)),
    }
}

/// What a connection of an etcd client begins with: HTTP/2, or a path of the JSON gateway.
const ETCD: [&[u8]; 2] = [etcd::PREFACE, b"POST /v3/"];

/// The protocol of which the first byte of a connection is typical.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FirstByte {
    /// The framed protocol.
    Framed,
    /// The Redis protocol: an array.
    Redis,
    /// HTTP: the name of a method.
    Letter,
    /// None that is known.
    Other,
}

impl FirstByte {
    fn with(first: u8) -> Self {
        match first {
            _ if first == MAGIC[0] => Self::Framed,
            b'*' => Self::Redis,
            b'A'..=b'Z' => Self::Letter,
            _ => Self::Other,
        }
    }
}
