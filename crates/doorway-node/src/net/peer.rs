//! A peer: both halves of the link to it, and what is known of the connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use doorway_core::NodeId;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::LinkHandler;
use crate::link::{
    AckError, Frame, Hello, Inbox, Incarnation, MESSAGE_MAX, Outbox, ReceivedCount, Verdict,
};
use crate::messages::Message;

/// Another member, and the link to it.
pub struct Peer {
    id: NodeId,
    name: String,
    address: String,
    /// Locked from the judgement of a message until it is delivered: so no connection delivers
    /// after a newer one has begun.
    inbox: Mutex<Inbox>,
    outbox: Mutex<SendHalf>,
    /// Is a connection up? Beside the inbox, so that one can ask while something is delivered.
    up: AtomicBool,
    /// How many messages wait in the outbox, for those who ask at every acquire.
    unacknowledged: AtomicUsize,
    since: Mutex<Option<Instant>>,
    pub(super) traffic: TrafficCounters,
}

/// What waits to be written, and where to.
#[derive(Default)]
struct SendHalf {
    outbox: Outbox,
    connection: Option<Arc<dyn ConnectionHandle>>,
}

/// A connection, as the peer that it leads to sees it.
pub(super) trait ConnectionHandle: Send + Sync {
    /// Write what waits, on this thread if that is possible at once.
    fn flush(&self);
    /// Have it written soon.
    fn wake(&self);
    /// End it: there is a newer one.
    fn cut(&self);
}

/// A message that no frame has room for. It was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message of {0} bytes, of which {MESSAGE_MAX} are allowed")]
pub struct TooLong(pub usize);

/// What went over a link, with all its connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Traffic {
    /// Messages that were delivered.
    pub messages_in: u64,
    /// Messages that were sent.
    pub messages_out: u64,
    /// Bytes that were read, before TLS.
    pub bytes_in: u64,
    /// Bytes that were written, before TLS.
    pub bytes_out: u64,
    /// Connections that came up.
    pub connections: u64,
}

/// How a link stands.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LinkReport {
    /// Is a connection up?
    pub up: bool,
    /// For how long that has been so; `None` if there never was a connection.
    pub since: Option<Duration>,
    /// Messages that the peer has not acknowledged.
    pub unacknowledged: usize,
    /// What went over it.
    pub traffic: Traffic,
}

#[derive(Default)]
pub(super) struct TrafficCounters {
    pub(super) messages_in: AtomicU64,
    pub(super) messages_out: AtomicU64,
    pub(super) bytes_in: AtomicU64,
    pub(super) bytes_out: AtomicU64,
    pub(super) connections: AtomicU64,
}

/// Add to a counter.
pub(super) fn count(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum End {
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("the peer closed the connection")]
    Closed,
    #[error("no sign of life for {0:?}")]
    Silent(Duration),
    #[error("a newer connection took its place")]
    Replaced,
    #[error("{0}")]
    Frame(#[from] crate::link::FrameError),
    #[error("{0}")]
    AckError(#[from] AckError),
    #[error("message {0} came before those that are missing")]
    Gap(u64),
    #[error("message {0} cannot be read")]
    Garbled(u64),
    #[error("a {0} frame out of place")]
    OutOfPlace(&'static str),
    #[error("the peer says: {0:?}")]
    Bye(String),
}

impl Peer {
    /// A peer that was never met.
    pub fn new(id: NodeId, name: String, address: String) -> Self {
        let (inbox, outbox, up, unacknowledged, since) = Default::default();
        let traffic = TrafficCounters::default();
        Self { id, name, address, inbox, outbox, up, unacknowledged, since, traffic }
    }

    /// Its number.
    pub fn id(&self) -> NodeId {
        self.id
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it listens.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Send a message. It never waits. While the peer is away the message is kept; it is dropped if
    /// the peer was never met, or starts anew.
    pub fn send(&self, message: &Message) -> Result<(), TooLong> {
        if let Some(connection) = self.push(message)? {
            connection.wake();
        }
        Ok(())
    }

    /// The same, to be followed by [`flush`](Self::flush) as soon as no lock is held.
    pub fn queue(&self, message: &Message) -> Result<(), TooLong> {
        self.push(message).map(drop)
    }

    fn push(&self, message: &Message) -> Result<Option<Arc<dyn ConnectionHandle>>, TooLong> {
        let bytes = postcard::to_allocvec(message).expect("a message that can be written");
        if bytes.len() > MESSAGE_MAX {
            return Err(TooLong(bytes.len()));
        }
        count(&self.traffic.messages_out, 1);
        let mut sending = self.outbox.lock();
        sending.outbox.push(bytes);
        self.update_unacknowledged(&sending.outbox);
        Ok(sending.connection.clone())
    }

    /// Write what was queued, on this thread if nobody else is at it and the network takes it.
    pub fn flush(&self) {
        let connection = self.outbox.lock().connection.clone();
        if let Some(connection) = connection {
            connection.flush();
        }
    }

    /// Is a connection up?
    pub fn is_up(&self) -> bool {
        self.up.load(Ordering::Acquire)
    }

    /// How many messages the peer has not acknowledged.
    pub fn unacknowledged(&self) -> usize {
        self.unacknowledged.load(Ordering::Relaxed)
    }

    /// What waits in the outbox has changed.
    fn update_unacknowledged(&self, outbox: &Outbox) {
        self.unacknowledged.store(outbox.unacknowledged(), Ordering::Relaxed);
    }

    /// How the link stands.
    pub fn report(&self) -> LinkReport {
        let up = self.is_up();
        let since = self.since.lock().map(|since| since.elapsed());
        let unacknowledged = self.unacknowledged();
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let traffic = Traffic {
            messages_in: read(&self.traffic.messages_in),
            messages_out: read(&self.traffic.messages_out),
            bytes_in: read(&self.traffic.bytes_in),
            bytes_out: read(&self.traffic.bytes_out),
            connections: read(&self.traffic.connections),
        };
        LinkReport { up, since, unacknowledged, traffic }
    }

    /// Begin a connection, which ends the one before: its number, and what has been received.
    pub(super) fn greet(&self, handler: &impl LinkHandler) -> (u64, ReceivedCount) {
        let mut inbox = self.inbox.lock();
        let open = inbox.is_open();
        let greeting = inbox.greet();
        if open {
            self.gone(handler, &End::Replaced);
        }
        greeting
    }

    /// Both sides have greeted each other on this connection, we in our life `me`.
    pub(super) fn resume(
        &self,
        handler: &impl LinkHandler,
        number: u64,
        me: Incarnation,
        hello: &Hello,
        connection: Arc<dyn ConnectionHandle>,
    ) -> Result<(), End> {
        let mut inbox = self.inbox.lock();
        if !inbox.resume(number, hello.incarnation) {
            return Err(End::Replaced);
        }
        let mut sending = self.outbox.lock();
        let resumed = sending.outbox.resume(number, me, hello.incarnation, hello.received);
        if let Err(breach) = resumed {
            inbox.close(number);
            return Err(End::AckError(breach));
        }
        self.update_unacknowledged(&sending.outbox);
        sending.connection = Some(connection);
        drop(sending);
        self.up.store(true, Ordering::Release);
        *self.since.lock() = Some(Instant::now());
        count(&self.traffic.connections, 1);
        handler.up(self.id, hello);
        Ok(())
    }

    /// The connection is gone.
    pub(super) fn close(&self, handler: &impl LinkHandler, number: u64, why: &End) {
        let mut inbox = self.inbox.lock();
        if inbox.close(number) {
            self.gone(handler, why);
        }
    }

    fn gone(&self, handler: &impl LinkHandler, why: &End) {
        let connection = self.outbox.lock().connection.take();
        if let Some(connection) = connection {
            connection.cut();
        }
        self.up.store(false, Ordering::Release);
        *self.since.lock() = Some(Instant::now());
        tracing::debug!(peer = %self.id, "link down: {why}");
        handler.down(self.id, &why.to_string());
    }

    /// Append what is to be written on a connection; with a sign of life, if there must be one.
    pub(super) fn fill(&self, number: u64, limit: usize, beat: bool, out: &mut Vec<u8>) -> bool {
        let outbox = &mut self.outbox.lock().outbox;
        outbox.fill(number, limit, out)
            && (!beat || !out.is_empty() || outbox.heartbeat(number, out))
    }

    /// Take what has come on a connection. Is it time to write an acknowledgement?
    pub(super) fn process_frames(
        &self,
        handler: &impl LinkHandler,
        number: u64,
        decoder: &mut crate::link::Decoder,
    ) -> Result<bool, End> {
        let mut inbox = self.inbox.lock();
        if !inbox.is_current(number) {
            return Err(End::Replaced);
        }
        let mut has = None;
        let mut heard = Ok(());
        while heard.is_ok() {
            heard = match decoder.frame() {
                Ok(None) => break,
                Ok(Some(Frame::Ack(received))) => {
                    has = Some(received);
                    Ok(())
                }
                Ok(Some(Frame::Data { number: message, received, message: bytes })) => {
                    has = Some(received);
                    self.take(handler, &mut inbox, number, message, bytes)
                }
                Ok(Some(Frame::Bye(why))) => Err(End::Bye(why.to_owned())),
                Ok(Some(Frame::Hello(_))) => Err(End::OutOfPlace("hello")),
                Err(wrong) => Err(End::Frame(wrong)),
            };
        }
        let outbox = &mut self.outbox.lock().outbox;
        let owes = outbox.set_received(inbox.received());
        if let Some(has) = has {
            outbox.acknowledge(has)?;
            self.update_unacknowledged(outbox);
        }
        heard.map(|()| owes)
    }

    fn take(
        &self,
        handler: &impl LinkHandler,
        inbox: &mut Inbox,
        number: u64,
        message: u64,
        bytes: &[u8],
    ) -> Result<(), End> {
        match inbox.judge(number, message) {
            Verdict::Deliver => {
                let read = postcard::from_bytes(bytes).map_err(|_| End::Garbled(message))?;
                handler.deliver(self.id, read);
                inbox.delivered();
                count(&self.traffic.messages_in, 1);
                Ok(())
            }
            Verdict::Duplicate => Ok(()),
            Verdict::Gap => Err(End::Gap(message)),
            Verdict::Stale => Err(End::Replaced),
        }
    }
}
