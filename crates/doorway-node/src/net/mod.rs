//! Links over a real network: connections with mutual TLS, made anew whenever they break.

mod connection;
mod dial;
mod handshake;
mod listen;
mod notices;
mod peer;
mod tls;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use doorway_core::NodeId;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::link::Hello;
use crate::messages::Message;
use notices::Notices;
pub use peer::{LinkReport, Peer, TooLong, Traffic};
pub use tls::{Identity, IdentityError};

/// Where connections come from: TCP, or a simulation of it.
pub trait Network: Send + Sync + 'static {
    /// A connection.
    type Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static;
    /// What accepts connections.
    type Listener: Send + Sync + 'static;

    /// Begin to accept connections at an address, `host:port`.
    fn bind(&self, address: &str) -> impl Future<Output = io::Result<Self::Listener>> + Send;

    /// The next connection, and from where it comes.
    fn accept(
        &self,
        listener: &Self::Listener,
    ) -> impl Future<Output = io::Result<(Self::Stream, SocketAddr)>> + Send;

    /// Connect to an address.
    fn connect(&self, address: &str) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

/// The network of this machine.
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

/// The node above the links. Of one peer, all but `hello` is called by one thread at a time, in the
/// order of events, and under a lock of that peer: so none of it may wait for that peer.
pub trait LinkHandler: Send + Sync + 'static {
    /// What to say first to any peer; what was received of it is filled in.
    fn hello(&self) -> Hello;

    /// May this life of the peer be met? Nothing has changed yet.
    fn admit(&self, peer: NodeId, hello: &Hello) -> Result<(), String>;

    /// A connection is up: what is sent from now on is kept until the peer has it.
    fn up(&self, peer: NodeId, hello: &Hello);

    /// A message has arrived, exactly once and in order.
    fn deliver(&self, from: NodeId, message: Message);

    /// The connection is gone.
    fn down(&self, peer: NodeId, why: &str);
}

/// How long things take.
#[derive(Clone, Debug)]
pub struct Timing {
    /// An idle connection gives a sign of life so often.
    pub heartbeat: Duration,
    /// A connection is dropped after so long without a byte.
    pub silence: Duration,
    /// A connection must have proved who it is within this time.
    pub handshake: Duration,
    /// The first pause before dialling again; each further one is twice as long.
    pub pause: Duration,
    /// The longest pause.
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
    me: NodeId,
    peers: Vec<Arc<Peer>>,
    handler: Arc<U>,
    timing: Timing,
    seed: u64,
    notices: Notices,
}

impl<N: Network, U: LinkHandler> Mesh<N, U> {
    /// All links, none of them up: of node `me`, which dials the peers with higher numbers and is
    /// dialled by the others. The pauses between dials are drawn from `seed`.
    pub fn new(
        network: N,
        identity: Identity,
        me: NodeId,
        peers: Vec<Arc<Peer>>,
        handler: Arc<U>,
        timing: Timing,
        seed: u64,
    ) -> Self {
        let notices = Notices::default();
        Self { network, identity, me, peers, handler, timing, seed, notices }
    }

    /// Keep the links up until `stop`. When this returns, all of it is gone.
    pub async fn run(self: Arc<Self>, listener: N::Listener, stop: impl Future<Output = ()>) {
        let mut tasks = JoinSet::new();
        for peer in self.peers.iter().filter(|peer| peer.id() > self.me) {
            tasks.spawn(dial::keep_up(Arc::clone(&self), Arc::clone(peer)));
        }
        tokio::select! {
            biased;
            () = stop => {}
            () = listen::accept_all(&self, &listener, &mut tasks) => {}
        }
        tasks.shutdown().await;
    }
}
