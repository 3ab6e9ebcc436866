//! Links over a network: connections with mutual TLS, which are made again whenever they break.

mod connection;
mod dial;
mod handshake;
mod listen;
mod notices;
mod peer;
mod stores;
mod tls;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::link::Hello;
use crate::members::{BoxedFuture, BoxedStream, Caller};
use crate::messages::Message;
use notices::Notices;
pub use peer::{Backlog, LinkReport, MessageTooLong, Peer, PeerId, Traffic};
pub use stores::StoreDialer;
pub use tls::{Identity, IdentityError};

/// A network that connections are made on: TCP, or a simulation of it.
pub trait Network: Send + Sync + 'static {
    /// A connection.
    type Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static;
    /// A listening socket.
    type Listener: Send + Sync + 'static;

    /// Listen for connections at an address, `host:port`.
    fn bind(&self, address: &str) -> impl Future<Output = io::Result<Self::Listener>> + Send;

    /// Accept the next connection. Returns it with the caller's address.
    fn accept(
        &self,
        listener: &Self::Listener,
    ) -> impl Future<Output = io::Result<(Self::Stream, SocketAddr)>> + Send;

    /// Connect to an address.
    fn connect(&self, address: &str) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

/// The TCP network of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tcp;

impl Network for Tcp {
    type Stream = TcpStream;
    type Listener = TcpListener;

    async fn bind(&self, address: &str) -> io::Result<TcpListener> {
        TcpListener::bind(address).await
    }

    async fn accept(&self, listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
        let (stream, from) = listener.accept().await?;
        stream.set_nodelay(true)?;
        Ok((stream, from))
    }

    async fn connect(&self, address: &str) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

/// The callbacks of the links to their node. For one peer, all methods but `hello` are called by
/// one thread at a time, in the order of events, and under a lock of that peer. So none of them may
/// wait for that peer.
pub trait LinkHandler: Send + Sync + 'static {
    /// The hello for any peer. The link fills in what was received from the peer.
    fn hello(&self) -> Hello;

    /// May this incarnation of the peer connect? Returns why not. Nothing has changed yet.
    fn admit(&self, peer: PeerId, hello: &Hello) -> Result<(), String>;

    /// A connection is up. What is sent from now on is kept until the peer has it.
    fn up(&self, peer: PeerId, hello: &Hello);

    /// A message has arrived, exactly once and in order.
    fn deliver(&self, from: PeerId, message: Message);

    /// The connection has ended, for this reason. `closed` is true if the peer closed it, as a peer
    /// does when it stops.
    fn down(&self, peer: PeerId, closed: bool, why: &str);

    /// Whether the node has a store, because its group agrees on its members.
    fn has_store(&self) -> bool {
        false
    }

    /// The store of another node has connected, to agree on the members of the group. The future
    /// ends when the connection does. Without a store, the connection is closed.
    fn store(&self, _stream: BoxedStream, _caller: Caller) -> BoxedFuture<'static, ()> {
        Box::pin(async {})
    }
}

/// The timeouts of links.
#[derive(Clone, Debug)]
pub struct Timing {
    /// How often an idle connection sends a heartbeat.
    pub heartbeat: Duration,
    /// After how long without a byte a connection is closed.
    pub silence: Duration,
    /// How long a handshake may take.
    pub handshake: Duration,
    /// The first pause before dialling again. Each further pause is twice as long.
    pub pause: Duration,
    /// The longest pause between dials.
    pub longest_pause: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            heartbeat: Duration::from_millis(500),
            silence: Duration::from_secs(3),
            handshake: Duration::from_secs(5),
            pause: Duration::from_millis(50),
            longest_pause: Duration::from_secs(2),
        }
    }
}

/// All links of a node.
pub struct Mesh<N, U> {
    network: N,
    identity: Identity,
    peers: watch::Receiver<Vec<Arc<Peer>>>,
    handler: Arc<U>,
    timing: Timing,
    seed: u64,
    notices: Notices,
}

impl<N: Network, U: LinkHandler> Mesh<N, U> {
    /// The links of a node to its peers, none of them up. The list of peers may change at any time.
    /// The pauses between dials are drawn from `seed`.
    pub fn new(
        network: N,
        identity: Identity,
        peers: watch::Receiver<Vec<Arc<Peer>>>,
        handler: Arc<U>,
        timing: Timing,
        seed: u64,
    ) -> Self {
        let notices = Notices::default();
        Self { network, identity, peers, handler, timing, seed, notices }
    }

    /// Keep the links up until `stop` completes. When this returns, all connections and tasks are
    /// gone.
    pub async fn run(self: Arc<Self>, listener: N::Listener, stop: impl Future<Output = ()>) {
        let (mut dialled, mut accepted) = (JoinSet::new(), JoinSet::new());
        tokio::select! {
            biased;
            () = stop => {}
            () = dial::dial_all(&self, &mut dialled) => {}
            () = listen::accept_all(&self, &listener, &mut accepted) => {}
        }
        dialled.shutdown().await;
        accepted.shutdown().await;
    }
}
