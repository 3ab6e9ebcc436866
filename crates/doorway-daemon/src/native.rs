//! One connection of the framed protocol.
//!
//! It reads what is there, handles all whole frames, and writes all answers at once. While a client
//! does not read its answers, nothing more is read from it.

mod requests;

use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use doorway_protocol::{Claims, Code, FrameError, Frames, Hello, Opening, Refusal, Request};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::time::{Sleep, sleep, timeout};

use crate::listen::Doors;
use crate::principal::Principal;
use crate::seldom::Seldom;
use crate::service::outbox::{Found, Outbox};
use crate::service::{Connected, Entry, Peer, Service, Session, refusal, stopping};
use requests::Requests;

/// How long a client may take to say who it is.
pub(crate) const HELLO: Duration = Duration::from_secs(5);

/// How long a connection that ends may take to write its last words.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How much is read at a time.
const CHUNK: usize = 2048;

/// Beyond so many bytes of answers nothing more is handled before they are written.
const ENOUGH: usize = 1 << 16;

/// So many frames are handled before others have a turn, and of those that ask for a report the
/// fewer: they take that much longer.
const TURN: usize = 128;
const REPORT: usize = 16;

/// Lines about clients that make no sense come once in a while.
static GARBAGE: Seldom = Seldom::new();
static SLOW: Seldom = Seldom::new();

/// A connection.
struct Wire<S> {
    stream: S,
    frames: Frames,
    outbox: Arc<Outbox>,
    writing: Vec<u8>,
    /// So many of these bytes are written.
    written: usize,
    unflushed: bool,
    last_words: Option<Pin<Box<Sleep>>>,
}

/// What comes next.
#[derive(Debug)]
enum Next {
    /// Bytes have come.
    Read,
    /// All is written, and there is more to handle.
    Written,
    /// The client has closed the connection, or it is broken.
    Gone,
    /// The client does not read.
    Slow,
    /// This side has said all it had to say.
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
    let connected = match entry {
        Ok(connected) => connected,
        Err(turned) => {
            let mut wire = Wire::new(stream, frames, Arc::default());
            return wire.refuse(turned.refusal.clone()).await;
        }
    };
    let outbox = Arc::clone(&connected.outbox);
    let mut wire = Wire::new(stream, frames, Arc::clone(&outbox));
    let greeted = tokio::select! {
        biased;
        greeted = timeout(HELLO, greet(service, &connected, &mut wire, peer, doors)) => greeted,
        () = outbox.closed() => Ok(Err(Some(stopping()))),
    };
    match greeted {
        Ok(Ok(greeted)) => wire.converse(service, greeted).await,
        Ok(Err(Some(refusal))) => wire.refuse(refusal).await,
        Ok(Err(None)) => {}
        Err(_) => GARBAGE.then(|| tracing::debug!("a client did not say in time who it is")),
    }
}

/// Hear who it is, and answer. No refusal: it has gone, or makes no sense.
async fn greet<S: AsyncRead + AsyncWrite + Unpin>(
    service: &Service,
    connected: &Connected,
    wire: &mut Wire<S>,
    mut peer: Peer,
    doors: &Doors,
) -> Result<(Principal, Option<Arc<Session>>), Option<Refusal>> {
    while !wire.frames.magic().map_err(|error| garbled(&error))? {
        wire.read().await.ok_or(None)?;
    }
    let hello: Hello = wire.frame().await?;
    let token = hello.token.as_deref().and_then(|token| doors.by_token(token));
    let principal = token.or_else(|| peer.principal.take()).ok_or_else(|| {
        let text = match hello.token {
            Some(_) => "the token is not known here",
            None => "this node does not know you: show a client certificate or a token",
        };
        refusal(Code::Forbidden, if peer.remote { text } else { "this node serves its own user" })
    })?;
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
    let greeted = service.greet(&mut peer, &principal, hello, claims, &wire.outbox)?;
    wire.outbox.greet(&Ok(greeted.welcome), &greeted.then);
    Ok((principal, greeted.session))
}

/// Refuse a frame that claims more than fits, and more than anyone may have together.
fn count_claims(
    service: &Service,
    held: usize,
    waiting: usize,
    count: &mut usize,
) -> Result<(), Refusal> {
    let (limits, fits) = (service.limits(), Claims::MAX);
    // Besides what a session may have there are requests that were on their way.
    let most = limits.grants.saturating_add(limits.waiting).saturating_add(fits);
    // A frame without any counts too, or they could come for ever.
    *count += (held + waiting).max(1);
    if held <= fits && waiting <= fits && *count <= most {
        return Ok(());
    }
    let text = format!("more claims than anyone can have: {fits} in a frame, {most} in all");
    Err(refusal(Code::Invalid, text))
}

/// It is logged, once in a while.
fn garbled(error: &FrameError) -> Option<Refusal> {
    GARBAGE.then(|| tracing::debug!("a connection makes no sense: {error}"));
    None
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    fn new(stream: S, frames: Frames, outbox: Arc<Outbox>) -> Self {
        let (writing, last_words) = (Vec::new(), None);
        Self { stream, frames, outbox, writing, written: 0, unflushed: false, last_words }
    }

    /// Read some bytes; none if the connection has ended.
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

    /// Say why not, and end.
    async fn refuse(&mut self, refusal: Refusal) {
        self.outbox.greet(&Err(refusal), &[]);
        self.outbox.close();
        while !matches!(self.next(true).await, Next::Done | Next::Gone | Next::Slow) {}
    }

    /// Talk until one of both has had enough.
    async fn converse(&mut self, service: &Service, greeted: (Principal, Option<Arc<Session>>)) {
        let (principal, session) = greeted;
        let outbox = Arc::clone(&self.outbox);
        let mut requests = Requests::new(service, principal, session.clone(), outbox);
        let mut closed = true;
        let mut over = false;
        loop {
            let handled = if over { Ok(false) } else { self.handle(&mut requests) };
            let more = match handled {
                Ok(more) => more,
                Err(error) => {
                    garbled(&error);
                    break;
                }
            };
            match self.next(more).await {
                Next::Read => {
                    // An answer would tell the client that it was heard in time. Of one whose time
                    // was over just before only the last words remain to be written.
                    over = session.as_ref().is_some_and(|session| service.alive(session).is_err());
                    if over {
                        self.outbox.close();
                    }
                }
                Next::Written => tokio::task::yield_now().await,
                Next::Gone | Next::Done => break,
                Next::Slow => {
                    closed = false;
                    SLOW.then(|| {
                        let client = session.as_ref().map_or("", |session| session.client());
                        tracing::warn!(client, "a client does not read what it is told");
                    });
                    break;
                }
            }
        }
        if let Some(session) = &session {
            service.disconnected(session, &self.outbox, closed);
        }
    }

    /// Handle whole frames: are there more?
    fn handle(&mut self, requests: &mut Requests) -> Result<bool, FrameError> {
        let mut left = TURN;
        while left > 0 {
            let Some(request) = self.frames.take()? else { return Ok(false) };
            let quick =
                matches!(request, Request::Acquire(..) | Request::Release(..) | Request::Alive(_));
            left = left.saturating_sub(if quick { 1 } else { REPORT });
            requests.handle(request);
            if self.outbox.len() > ENOUGH {
                break;
            }
        }
        Ok(true)
    }

    /// Write all that there is to say; then read, unless there is more to handle.
    async fn next(&mut self, more: bool) -> Next {
        std::future::poll_fn(|context| self.poll_next(more, context)).await
    }

    fn poll_next(&mut self, more: bool, context: &mut Context<'_>) -> Poll<Next> {
        loop {
            let busy = match self.poll_write(context) {
                Poll::Ready(Ok(())) => false,
                Poll::Ready(Err(_)) => return Poll::Ready(Next::Gone),
                Poll::Pending => true,
            };
            if !busy {
                self.writing.clear();
                self.writing.shrink_to(ENOUGH);
                self.written = 0;
                match self.outbox.take(&mut self.writing) {
                    Found::Overflown => return Poll::Ready(Next::Slow),
                    Found::Closing if self.writing.is_empty() => return Poll::Ready(Next::Done),
                    _ if !self.writing.is_empty() => continue,
                    _ if more => return Poll::Ready(Next::Written),
                    _ => {}
                }
                if let Poll::Ready(next) = self.poll_read(context) {
                    return Poll::Ready(next);
                }
            }
            match self.outbox.watch(context.waker(), busy) {
                None => return Poll::Pending,
                Some(Found::Overflown) => return Poll::Ready(Next::Slow),
                Some(Found::Closing) if busy => {
                    let last = self.last_words.get_or_insert_with(|| Box::pin(sleep(LAST_WORDS)));
                    ready!(last.as_mut().poll(context));
                    return Poll::Ready(Next::Slow);
                }
                Some(_) => {}
            }
        }
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

    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<Next> {
        let space = self.frames.space();
        space.reserve(CHUNK);
        let read = pin!(self.stream.read_buf(space)).poll(context);
        read.map(|read| if matches!(read, Ok(1..)) { Next::Read } else { Next::Gone })
    }
}
