//! The handshake of a connection: both sides prove their names by TLS and exchange hellos.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::connection::Connection;
use super::peer::{End, Peer};
use super::tls;
use super::{LinkHandler, Mesh, Network};
use crate::link::{Decoder, Frame, FrameError, Hello, Refusal};
use crate::members::Caller;

/// The longest hello that is accepted. It limits the memory that an unknown caller can make this
/// node use.
const HELLO_MAX: usize = 16 << 10;

/// How many characters of an unproved name are shown in the log.
const NAME_SHOWN: usize = 63;

/// Why a handshake failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("it does not follow the protocol: {0}")]
    Frame(#[from] FrameError),
    #[error("{0}")]
    Refused(#[from] Refusal),
    #[error("`{node}` refuses this node: {why:?}")]
    Told { node: String, why: String },
    #[error("{0}")]
    Unexpected(&'static str),
    #[error("{0}")]
    Ended(#[from] End),
    #[error("the other side closed the connection during the handshake")]
    Closed,
    #[error("the handshake took too long")]
    Late,
}

impl Failure {
    /// The name of the node that was refused, if it gave one.
    pub(super) fn node(&self) -> Option<&str> {
        if let Self::Refused(refusal) = self { Some(refusal.node()) } else { None }
    }

    /// What to log about the failure. None if only the network failed.
    pub(super) fn notice(&self) -> Option<String> {
        match self {
            Self::Io(error) => tls::refusal(error),
            Self::Ended(End::AckError(_)) => Some(self.to_string()),
            Self::Ended(_) | Self::Closed | Self::Late => None,
            other => Some(other.to_string()),
        }
    }
}

/// A connection after its handshake. The decoder may already hold bytes that arrived after the
/// hello.
pub(super) struct NewConnection<S> {
    pub(super) connection: Arc<Connection<S>>,
    pub(super) peer: Arc<Peer>,
    pub(super) number: u64,
    pub(super) decoder: Decoder,
}

type ClientStream<N> = tokio_rustls::client::TlsStream<<N as Network>::Stream>;
type ServerStream<N> = tokio_rustls::server::TlsStream<<N as Network>::Stream>;

/// Do the handshake with a peer that this node has dialled. TLS has checked that the certificate is
/// issued for the peer's name.
pub(super) async fn dialled<N: Network, U: LinkHandler>(
    mesh: &Mesh<N, U>,
    peer: &Arc<Peer>,
    stream: N::Stream,
) -> Result<NewConnection<ClientStream<N>>, Failure> {
    let handler = &*mesh.handler;
    let mut ours = peer.hello(handler.hello());
    let name = tls::name_of(peer.name(), &ours.group);
    let name =
        name.ok_or(Failure::Unexpected("the name of the peer cannot be part of a certificate"))?;
    let connector = TlsConnector::from(mesh.identity.client());
    let mut stream = connector.connect(name, stream).await?;
    let (number, received) = peer.greet(handler);
    ours.received = received;
    write(&mut stream, &Frame::Hello(ours.clone())).await?;
    let mut decoder = Decoder::default();
    let theirs = hear_hello(&mut stream, &mut decoder, peer.name()).await?;
    if let Err(refusal) = meet(handler, peer, &ours, &theirs) {
        return Err(refuse(&mut stream, refusal).await);
    }
    let connection = Arc::new(Connection::new(Arc::clone(peer), number, stream));
    peer.resume(handler, number, ours.incarnation, &theirs, Arc::clone(&connection) as _)?;
    Ok(NewConnection { connection, peer: Arc::clone(peer), number, decoder })
}

/// Who has called.
pub(super) enum IncomingCall<S> {
    /// A peer, to make a link.
    Link(NewConnection<S>),
    /// The store of another node.
    Store(S, Caller),
}

/// Do the handshake with a caller.
pub(super) async fn accepted<N: Network, U: LinkHandler>(
    mesh: &Mesh<N, U>,
    stream: N::Stream,
) -> Result<IncomingCall<ServerStream<N>>, Failure> {
    let handler = &*mesh.handler;
    let acceptor = TlsAcceptor::from(mesh.identity.server(handler.has_store()));
    let mut stream = acceptor.accept(stream).await?;
    if stream.get_ref().1.alpn_protocol() == Some(tls::STORES) {
        let chain = stream.get_ref().1.peer_certificates();
        let name = tls::node_of(chain, &handler.hello().group).ok_or(Failure::Unexpected(
            "the certificate of the caller is not that of a node of this group",
        ))?;
        return Ok(IncomingCall::Store(stream, Caller { name }));
    }
    let mut decoder = Decoder::default();
    let theirs = hear_hello(&mut stream, &mut decoder, "the caller").await?;
    let known = recognise(mesh, &stream, &theirs);
    let (peer, mut ours) = match known {
        Ok(known) => known,
        Err(refusal) => return Err(refuse(&mut stream, refusal).await),
    };
    let (number, received) = peer.greet(handler);
    let me = ours.incarnation;
    ours.received = received;
    write(&mut stream, &Frame::Hello(ours)).await?;
    // The hello may be old: its sender may have restarted while the hello was on its way. The next
    // byte proves that the sender still runs, because it is sent in answer to our hello. One byte
    // is enough; the frame may be long.
    if decoder.room().is_empty() {
        fetch_some(&mut stream, &mut decoder).await?;
    }
    let connection = Arc::new(Connection::new(Arc::clone(&peer), number, stream));
    peer.resume(handler, number, me, &theirs, Arc::clone(&connection) as _)?;
    Ok(IncomingCall::Link(NewConnection { connection, peer, number, decoder }))
}

/// Find out which peer has dialled us, and whether it may.
fn recognise<N: Network, U: LinkHandler>(
    mesh: &Mesh<N, U>,
    stream: &ServerStream<N>,
    theirs: &Hello,
) -> Result<(Arc<Peer>, Hello), Refusal> {
    let name = tls::name_of(&theirs.node, &theirs.group);
    let chain = stream.get_ref().1.peer_certificates();
    if !name.is_some_and(|name| tls::is_valid_for(chain, &name)) {
        // The name is not proved, so it may be any text of any length.
        return Err(Refusal::Name(theirs.node.chars().take(NAME_SHOWN).collect()));
    }
    let peers = mesh.peers.borrow().clone();
    let mut callers = peers.iter().filter(|peer| !peer.is_dialled());
    let found = callers.find(|peer| peer.name() == theirs.node);
    let ours = mesh.handler.hello();
    let Some(peer) = found else {
        ours.meet(theirs)?;
        return Err(Refusal::Stranger(theirs.node.clone()));
    };
    meet(&*mesh.handler, peer, &ours, theirs)?;
    Ok((Arc::clone(peer), peer.hello(ours)))
}

fn meet(
    handler: &impl LinkHandler,
    peer: &Peer,
    ours: &Hello,
    theirs: &Hello,
) -> Result<(), Refusal> {
    ours.meet(theirs)?;
    if theirs.node != peer.name() {
        return Err(Refusal::Name(theirs.node.clone()));
    }
    let node = || peer.name().to_owned();
    handler.admit(peer.id(), theirs).map_err(|why| Refusal::Unwanted { node: node(), why })
}

/// Tell the other side why it is refused, and close the connection.
async fn refuse(stream: &mut (impl AsyncWrite + Unpin), refusal: Refusal) -> Failure {
    // It does not matter if this does not arrive.
    let _ = write(stream, &Frame::Bye(&refusal.to_string())).await;
    let _ = stream.shutdown().await;
    Failure::Refused(refusal)
}

async fn write(stream: &mut (impl AsyncWrite + Unpin), frame: &Frame<'_>) -> io::Result<()> {
    let mut bytes = Vec::new();
    frame.encode(&mut bytes);
    stream.write_all(&bytes).await?;
    stream.flush().await
}

async fn hear_hello(
    stream: &mut (impl AsyncRead + Unpin),
    decoder: &mut Decoder,
    node: &str,
) -> Result<Hello, Failure> {
    fetch(stream, decoder).await?;
    match decoder.frame()? {
        Some(Frame::Hello(hello)) => Ok(hello),
        Some(Frame::Bye(why)) => {
            Err(Failure::Told { node: node.to_owned(), why: why.chars().take(300).collect() })
        }
        _ => Err(Failure::Unexpected("the first frame is not a hello")),
    }
}

/// Read until a whole frame has arrived.
async fn fetch(
    stream: &mut (impl AsyncRead + Unpin),
    decoder: &mut Decoder,
) -> Result<(), Failure> {
    while !decoder.is_ready() {
        if decoder.room().len() > HELLO_MAX {
            return Err(Failure::Unexpected("its hello is too long"));
        }
        fetch_some(stream, decoder).await?;
    }
    Ok(())
}

async fn fetch_some(
    stream: &mut (impl AsyncRead + Unpin),
    decoder: &mut Decoder,
) -> Result<(), Failure> {
    match stream.read_buf(decoder.room()).await {
        Ok(0) => Err(Failure::Closed),
        Ok(_) => Ok(()),
        // Closed without a goodbye of TLS.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(Failure::Closed),
        Err(error) => Err(Failure::Io(error)),
    }
}
