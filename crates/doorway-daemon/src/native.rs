//! One connection of the framed protocol.
//!
//! It reads the available bytes, handles all whole frames, and writes all replies at once. While a
//! client does not read its replies, nothing more is read from that client.

mod requests;

use std::io;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use doorway_protocol::{Claims, Code, FrameError, Frames, Hello, Opening, Refusal, Request};
use doorway_sessions::outbox::{Outbox, OutboxState};
use doorway_sessions::principal::Principal;
use doorway_sessions::refusals::{refusal, stopping};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::time::{Sleep, sleep, timeout};

use crate::listen::Doors;
use crate::log_limit::LogLimit;
use crate::service::{Entry, OpenConnection, Peer, Service};
use requests::Requests;

/// How long a client may take to send its hello.
pub(crate) const HELLO: Duration = Duration::from_secs(5);

/// How long a connection that ends may take to write its last replies.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How many bytes are read at a time.
const CHUNK: usize = 2048;

/// With more bytes of replies than this, they are written before more requests are handled.
const ENOUGH: usize = 1 << 16;

/// How many frames are handled before other connections get a turn. A frame that asks for a report
/// takes longer, and counts as `REPORT` frames.
const TURN: usize = 128;
const REPORT: usize = 16;

/// Limits the lines in the log about misbehaving clients.
static GARBAGE: LogLimit = LogLimit::new();
static SLOW: LogLimit = LogLimit::new();

/// A connection.
struct Wire<S> {
    stream: S,
    frames: Frames,
    outbox: Arc<Outbox>,
    writing: Vec<u8>,
    /// How many of these bytes have been written.
    written: usize,
    unflushed: bool,
    /// Nothing can be written any more. What the client has sent before is still read.
    is_unwritable: bool,
    last_words: Option<Pin<Box<Sleep>>>,
}

/// What became of the frames that were read.
struct FramesOutcome {
    /// There may be more whole frames.
    more: bool,
    /// A request was passed on to the sessions.
    by_sessions: bool,
}

impl FramesOutcome {
    const MORE: Self = Self { more: true, by_sessions: false };
}

/// What happened next on a connection.
#[derive(Debug)]
enum ConnectionEvent {
    /// Bytes have arrived.
    Read,
    /// All replies are written, and there are more frames to handle.
    Written,
    /// The client has closed the connection, or the connection is broken.
    Gone,
    /// The client does not read its replies.
    Slow,
    /// All replies are written, and the connection is to be closed.
    Done,
}

/// Serve a connection of which the first bytes have been read.
pub(crate) async fn serve<S>(
    service: &Service,
    entry: Entry,
    stream: S,
    begun: &[u8],
    peer: Peer,
    doors: &Doors,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut frames = Frames::default();
    frames.feed(begun);
    let mut connected = match entry {
        Ok(connected) => connected,
        Err(turned) => return refuse(stream, turned.refusal.clone()).await,
    };
    let (outbox, from) = (Arc::clone(&connected.outbox), peer.from);
    let mut wire = Wire::new(stream, frames, Arc::clone(&outbox));
    let greeted = tokio::select! {
        biased;
        greeted = timeout(HELLO, greet(service, &connected, &mut wire, peer, doors)) => greeted,
        () = outbox.closed() => Ok(Err(Some(stopping()))),
    };
    match greeted {
        Ok(Ok(principal)) => wire.converse(service, &mut connected, principal, from).await,
        Ok(Err(Some(refusal))) => wire.refuse(refusal).await,
        Ok(Err(None)) => {}
        Err(_) => GARBAGE.then(|| tracing::debug!("a client did not send its hello in time")),
    }
}

/// Refuse a client without reading its hello.
pub(crate) async fn refuse<S: AsyncRead + AsyncWrite + Unpin>(stream: S, refusal: Refusal) {
    Wire::new(stream, Frames::default(), Arc::default()).refuse(refusal).await;
}

/// Read the hello of a client and answer it. An error without a refusal means that the client has
/// gone, or does not speak the protocol.
async fn greet<S: AsyncRead + AsyncWrite + Unpin>(
    service: &Service,
    connected: &OpenConnection,
    wire: &mut Wire<S>,
    mut peer: Peer,
    doors: &Doors,
) -> Result<Arc<Principal>, Option<Refusal>> {
    while !wire.frames.magic().map_err(|error| garbled(&error))? {
        wire.read().await.ok_or(None)?;
    }
    let hello: Hello = wire.frame().await?;
    let token = hello.token.as_deref().and_then(|token| doors.by_token(token));
    let principal = token.or_else(|| peer.principal.take()).ok_or_else(|| {
        let text = match hello.token {
            Some(_) => "the node does not know this token",
            None => "the node does not know this client: show a client certificate or a token",
        };
        refusal(
            Code::Forbidden,
            if peer.remote { text } else { "this node serves only the user who runs it" },
        )
    })?;
    let principal = Arc::new(principal);
    connected.belongs(&principal)?;
    let (mut claims, mut count, mut more) = (Vec::new(), 0, false);
    if let Opening::Resume { held, waiting, more: others, .. } = &hello.opening {
        more = *others;
        count_claims(service, held.len(), waiting.len(), &mut count)?;
    }
    while more {
        let next: Claims = wire.frame().await?;
        more = next.more;
        count_claims(service, next.held.len(), next.waiting.len(), &mut count)?;
        claims.push(next);
    }
    service.greet(connected, peer, &principal, hello, claims)?;
    Ok(principal)
}

/// Refuse a frame with too many claims, and more claims in all than a session may have.
fn count_claims(
    service: &Service,
    held: usize,
    waiting: usize,
    count: &mut usize,
) -> Result<(), Refusal> {
    let fits = Claims::MAX;
    // In addition to what a session may hold, requests may have been on their way.
    let most = service.claims_limit().saturating_add(fits);
    // A frame without claims counts as one, or a client could send such frames forever.
    *count += (held + waiting).max(1);
    if held <= fits && waiting <= fits && *count <= most {
        return Ok(());
    }
    let text = format!("too many claims: {fits} are allowed in a frame, {most} in all");
    Err(refusal(Code::Invalid, text))
}

/// Log that a connection does not follow the protocol, at most once a second.
fn garbled(error: &FrameError) -> Option<Refusal> {
    GARBAGE.then(|| tracing::debug!("a connection does not follow the protocol: {error}"));
    None
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    fn new(stream: S, frames: Frames, outbox: Arc<Outbox>) -> Self {
        let (writing, last_words) = (Vec::new(), None);
        let (unflushed, is_unwritable) = (false, false);
        Self { stream, frames, outbox, writing, written: 0, unflushed, is_unwritable, last_words }
    }

    /// Read some bytes; `None` if the connection has ended.
    async fn read(&mut self) -> Option<()> {
        let space = self.frames.space();
        space.reserve(CHUNK);
        (self.stream.read_buf(space).await.ok()? > 0).then_some(())
    }

    /// Wait for one whole frame.
    async fn frame<T: serde::de::DeserializeOwned>(&mut self) -> Result<T, Option<Refusal>> {
        loop {
            if let Some(value) = self.frames.take().map_err(|error| garbled(&error))? {
                return Ok(value);
            }
            self.read().await.ok_or(None)?;
        }
    }

    /// Send a refusal, and close the connection.
    async fn refuse(&mut self, refusal: Refusal) {
        self.outbox.greet(&Err(refusal), &[]);
        self.outbox.close();
        while !matches!(
            self.next(true).await,
            ConnectionEvent::Done | ConnectionEvent::Gone | ConnectionEvent::Slow
        ) {
            if self.is_unwritable {
                break;
            }
        }
    }

    /// Handle requests until one side closes the connection.
    async fn converse(
        &mut self,
        service: &Service,
        connected: &mut OpenConnection,
        principal: Arc<Principal>,
        from: Option<IpAddr>,
    ) {
        let mut requests = Requests::new(service, principal, from, Arc::clone(&self.outbox));
        // The welcome is written before the first request is handled. If the node is killed then,
        // the client still reads it, and resumes the session that may have been granted a lock.
        let mut welcomed = false;
        let mut read = false;
        loop {
            let handled = if welcomed {
                self.handle(connected, &mut requests)
            } else {
                Ok(FramesOutcome::MORE)
            };
            welcomed = true;
            let FramesOutcome { more, by_sessions } = match handled {
                Ok(handled) => handled,
                Err(error) => {
                    garbled(&error);
                    connected.closed = true;
                    break;
                }
            };
            // The sessions count a request as a sign of life by themselves.
            if std::mem::take(&mut read) && !by_sessions {
                service.heard(connected);
            }
            match self.next(more).await {
                ConnectionEvent::Read => read = true,
                ConnectionEvent::Written => tokio::task::yield_now().await,
                ConnectionEvent::Gone => {
                    connected.closed = true;
                    break;
                }
                ConnectionEvent::Done => break,
                ConnectionEvent::Slow => {
                    SLOW.then(|| tracing::warn!("a client does not read its replies"));
                    break;
                }
            }
        }
    }

    /// Handle whole frames.
    fn handle(
        &mut self,
        connected: &OpenConnection,
        requests: &mut Requests,
    ) -> Result<FramesOutcome, FrameError> {
        let mut left = TURN;
        let mut by_sessions = false;
        while left > 0 {
            let Some(request) = self.frames.take()? else {
                return Ok(FramesOutcome { more: false, by_sessions });
            };
            let quick =
                matches!(request, Request::Acquire(..) | Request::Release(..) | Request::Alive(_));
            left = left.saturating_sub(if quick { 1 } else { REPORT });
            if self.is_unwritable && matches!(request, Request::Acquire(..)) {
                continue; // A grant that nobody learns of would only keep others out.
            }
            by_sessions |= requests.handle(connected, request);
            if self.outbox.bytes() > ENOUGH {
                break;
            }
        }
        Ok(FramesOutcome { more: true, by_sessions })
    }

    /// Write all replies; then read, unless there are more frames to handle.
    async fn next(&mut self, more: bool) -> ConnectionEvent {
        std::future::poll_fn(|context| self.poll_next(more, context)).await
    }

    fn poll_next(&mut self, more: bool, context: &mut Context<'_>) -> Poll<ConnectionEvent> {
        loop {
            if self.is_unwritable {
                return self.poll_rest(more, context);
            }
            let busy = match self.poll_write(context) {
                Poll::Ready(Ok(())) => false,
                Poll::Ready(Err(_)) => {
                    self.is_unwritable = true;
                    continue;
                }
                Poll::Pending => true,
            };
            if !busy {
                self.writing.clear();
                self.writing.shrink_to(ENOUGH);
                self.written = 0;
                match self.outbox.take(&mut self.writing) {
                    OutboxState::BacklogFull => return Poll::Ready(ConnectionEvent::Slow),
                    OutboxState::Closing if self.writing.is_empty() => {
                        return Poll::Ready(ConnectionEvent::Done);
                    }
                    _ if !self.writing.is_empty() => continue,
                    _ if more => return Poll::Ready(ConnectionEvent::Written),
                    _ => {}
                }
                if let Poll::Ready(next) = self.poll_read(context) {
                    return Poll::Ready(next);
                }
            }
            match self.outbox.watch(context.waker(), busy) {
                None => return Poll::Pending,
                Some(OutboxState::BacklogFull) => return Poll::Ready(ConnectionEvent::Slow),
                Some(OutboxState::Closing) if busy => {
                    let last = self.last_words.get_or_insert_with(|| Box::pin(sleep(LAST_WORDS)));
                    ready!(last.as_mut().poll(context));
                    return Poll::Ready(ConnectionEvent::Slow);
                }
                Some(_) => {}
            }
        }
    }

    /// Read what a client has sent that does not take replies any more: it may have said goodbye
    /// before it closed the connection.
    fn poll_rest(&mut self, more: bool, context: &mut Context<'_>) -> Poll<ConnectionEvent> {
        if more {
            return Poll::Ready(ConnectionEvent::Written);
        }
        if let Poll::Ready(next) = self.poll_read(context) {
            return Poll::Ready(next);
        }
        let last = self.last_words.get_or_insert_with(|| Box::pin(sleep(LAST_WORDS)));
        last.as_mut().poll(context).map(|()| ConnectionEvent::Gone)
    }

    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(rest) = self.writing.get(self.written..).filter(|rest| !rest.is_empty()) {
            let wrote = ready!(Pin::new(&mut self.stream).poll_write(context, rest))?;
            if wrote == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            (self.written, self.unflushed) = (self.written + wrote, true);
        }
        if self.unflushed {
            ready!(Pin::new(&mut self.stream).poll_flush(context))?;
            self.unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<ConnectionEvent> {
        let space = self.frames.space();
        space.reserve(CHUNK);
        let read = pin!(self.stream.read_buf(space)).poll(context);
        read.map(|read| {
            if matches!(read, Ok(1..)) { ConnectionEvent::Read } else { ConnectionEvent::Gone }
        })
    }
}

#[cfg(test)]
mod tests {
    use doorway_protocol::{Reply, put};
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::UnixStream;

    use super::*;
    use crate::socket::Socket;

    /// The node finds out that its client is gone when it writes a reply.
    #[tokio::test]
    async fn a_goodbye_is_read_also_if_the_last_reply_cannot_be_written() {
        let (node, mut client) = UnixStream::pair().unwrap();
        let outbox = Arc::new(Outbox::default());
        let mut wire = Wire::new(Socket::new(node).unwrap(), Frames::default(), outbox);
        wire.outbox.greet(&Err(stopping()), &[]);
        assert!(
            matches!(wire.next(true).await, ConnectionEvent::Written),
            "the greeting is written"
        );
        let mut bytes = Vec::new();
        put(&Request::Bye, &mut bytes);
        client.write_all(&bytes).await.unwrap();
        drop(client);
        wire.outbox.tell(&Reply::Alive(1));
        assert!(matches!(wire.next(false).await, ConnectionEvent::Read));
        assert_eq!(wire.frames.take(), Ok(Some(Request::Bye)));
        assert!(matches!(wire.next(false).await, ConnectionEvent::Gone));
    }
}
