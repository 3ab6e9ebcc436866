//! A peer: both directions of the link to it, and the state of its connection.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::LinkHandler;
use crate::link::{
    AckError, Frame, Hello, Inbox, Incarnation, MESSAGE_MAX, Outbox, ReceivedCount, Verdict,
    Versions,
};
use crate::members::SeatId;
use crate::messages::Message;

/// The number by which a node knows another member and itself. In a fixed group it is the place in
/// the list of members. In a group that agrees on its members it is the number of the seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub u64);

impl PeerId {
    /// The seat of the member, in a group that agrees on its members.
    pub fn seat(self) -> SeatId {
        SeatId(self.0)
    }
}

impl fmt::Display for PeerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Another member of the group, and the link of this node to that member.
pub struct Peer {
    id: PeerId,
    name: String,
    address: String,
    /// Does this node dial the peer? Otherwise it is dialled by the peer.
    dialled: bool,
    /// Locked from when a message is judged until it is delivered, so that no old connection
    /// delivers after a newer one has begun.
    inbox: Mutex<Inbox>,
    outbox: Mutex<SendHalf>,
    /// Is a connection up? This is not part of the inbox, so that it can be read while a message is
    /// delivered.
    up: AtomicBool,
    /// The version of the protocol that both sides support.
    version: AtomicU16,
    /// The number of this link among those to the peer.
    link: u64,
    /// How many messages wait in the outbox.
    unacknowledged: AtomicUsize,
    backlog: Backlog,
    since: Mutex<Option<Instant>>,
    /// The newest process of the peer that the group knows.
    process: AtomicU64,
    /// Notified when the group knows of a newer process of the peer.
    started: Notify,
    pub(super) traffic: TrafficCounters,
}

/// What waits to be written, and the connection to write it on.
#[derive(Default)]
struct SendHalf {
    outbox: Outbox,
    connection: Option<Arc<dyn ConnectionHandle>>,
}

/// A handle to a connection, which hides the type of its stream.
pub(super) trait ConnectionHandle: Send + Sync {
    /// Write what waits, on this thread if that is possible immediately.
    fn flush(&self);
    /// Have the task of the connection write what waits.
    fn wake(&self);
    /// Close the connection, because a newer one has taken its place.
    fn cut(&self);
}

/// A message is too long for a frame. It was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the message has {0} bytes, but at most {MESSAGE_MAX} are allowed")]
pub struct MessageTooLong(pub usize);

/// Counters of a link, over all of its connections.
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

/// The state of a link.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LinkReport {
    /// Is a connection up?
    pub up: bool,
    /// For how long the link has been up or down; `None` if there never was a connection.
    pub since: Option<Duration>,
    /// Messages that the peer has not acknowledged.
    pub unacknowledged: usize,
    /// The counters of the link.
    pub traffic: Traffic,
}

/// How many peers of a node have more messages waiting than they should. All peers share it, so
/// that a request for a lock needs to look at one number only.
#[derive(Clone, Debug)]
pub struct Backlog {
    limit: usize,
    full: Arc<AtomicUsize>,
}

impl Backlog {
    /// Peers should have fewer messages waiting than this.
    pub fn new(limit: usize) -> Self {
        Self { limit, full: Arc::default() }
    }

    /// Does any peer have too many messages waiting?
    pub fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed) > 0
    }

    /// The limit of messages that may wait for one peer.
    pub fn limit(&self) -> usize {
        self.limit
    }

    fn update(&self, before: usize, now: usize) {
        if before < self.limit && now >= self.limit {
            self.full.fetch_add(1, Ordering::Relaxed);
        } else if before >= self.limit && now < self.limit {
            self.full.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.backlog.update(self.unacknowledged(), 0);
    }
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
    #[error("nothing was received for {0:?}")]
    Silent(Duration),
    #[error("a newer connection took its place")]
    Replaced,
    #[error("the peer is not a member any more")]
    Retired,
    #[error("{0}")]
    Frame(#[from] crate::link::FrameError),
    #[error("{0}")]
    AckError(#[from] AckError),
    #[error("message {0} arrived, but earlier ones are missing")]
    Gap(u64),
    #[error("message {0} cannot be decoded")]
    Garbled(u64),
    #[error("a {0} frame at the wrong time")]
    OutOfPlace(&'static str),
    #[error("the peer closed it: {0:?}")]
    Bye(String),
}

impl Peer {
    /// Make a peer that was never connected. This node dials the peer, or is `dialled` by it: the
    /// two sides must agree on that.
    pub fn new(id: PeerId, name: String, address: String, dialled: bool, backlog: Backlog) -> Self {
        let (inbox, outbox, up, link, unacknowledged, since) = Default::default();
        let (process, started, version) = Default::default();
        let traffic = TrafficCounters::default();
        Self {
            id,
            name,
            address,
            dialled,
            inbox,
            outbox,
            up,
            version,
            link,
            unacknowledged,
            backlog,
            since,
            process,
            started,
            traffic,
        }
    }

    /// The group knows of this process of the peer. If it is a new one, the peer is dialled at
    /// once: it listens, and the pause after earlier attempts may be long.
    pub fn has_process(&self, number: u64) {
        if self.process.fetch_max(number, Ordering::Relaxed) < number {
            self.started.notify_one();
        }
    }

    /// Wait until the group knows of a newer process of the peer.
    pub(super) async fn started(&self) {
        self.started.notified().await;
    }

    /// Number the link, because there was one to this peer before: see [`Incarnation::of_link`].
    #[must_use]
    pub fn link(mut self, link: u64) -> Self {
        self.link = link;
        self
    }

    /// What the hellos of this link say.
    pub(super) fn hello(&self, hello: Hello) -> Hello {
        Hello { incarnation: hello.incarnation.of_link(self.link), ..hello }
    }

    /// The number of the peer.
    pub fn id(&self) -> PeerId {
        self.id
    }

    /// Does this node dial the peer?
    pub fn is_dialled(&self) -> bool {
        self.dialled
    }

    /// The name of the peer.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The address at which the peer listens.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Send a message. This never waits. While the peer is unreachable the message is kept. It is
    /// dropped if the peer was never connected, or if the peer restarts.
    pub fn send(&self, message: &Message) -> Result<(), MessageTooLong> {
        if let Some(connection) = self.push(message)? {
            connection.wake();
        }
        Ok(())
    }

    /// Queue a message without writing it. The caller must call [`flush`](Self::flush) as soon as
    /// it holds no lock.
    pub fn queue(&self, message: &Message) -> Result<(), MessageTooLong> {
        self.push(message).map(drop)
    }

    fn push(&self, message: &Message) -> Result<Option<Arc<dyn ConnectionHandle>>, MessageTooLong> {
        let bytes =
            postcard::to_allocvec(message).expect("encoding plain data into memory cannot fail");
        if bytes.len() > MESSAGE_MAX {
            return Err(MessageTooLong(bytes.len()));
        }
        count(&self.traffic.messages_out, 1);
        let mut sending = self.outbox.lock();
        sending.outbox.push(bytes);
        self.update_unacknowledged(&sending.outbox);
        Ok(sending.connection.clone())
    }

    /// Write what was queued, on this thread if no other thread is writing and the network accepts
    /// it.
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

    /// Does the peer understand the messages of this version of the protocol?
    pub fn speaks(&self, version: u16) -> bool {
        self.version.load(Ordering::Acquire) >= version
    }

    /// How many messages the peer has not acknowledged.
    pub fn unacknowledged(&self) -> usize {
        self.unacknowledged.load(Ordering::Relaxed)
    }

    /// Update the published number of messages in the outbox.
    fn update_unacknowledged(&self, outbox: &Outbox) {
        let now = outbox.unacknowledged();
        let before = self.unacknowledged.swap(now, Ordering::Relaxed);
        self.backlog.update(before, now);
    }

    /// The state of the link.
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

    /// Begin a connection, which ends the one before. Returns its number, and what has been
    /// received from the peer.
    pub(super) fn greet(&self, handler: &impl LinkHandler) -> (u64, ReceivedCount) {
        let mut inbox = self.inbox.lock();
        let open = inbox.is_open();
        let greeting = inbox.greet();
        if open {
            self.gone(handler, &End::Replaced);
        }
        greeting
    }

    /// The handshake is complete: both sides have exchanged hellos. `me` is our own incarnation.
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
        let version = Versions::SPOKEN.common(hello.versions).unwrap_or_default();
        self.version.store(version, Ordering::Release);
        self.up.store(true, Ordering::Release);
        *self.since.lock() = Some(Instant::now());
        count(&self.traffic.connections, 1);
        handler.up(self.id, hello);
        Ok(())
    }

    /// Close the connection, if there is one, because the peer is not a member any more.
    pub fn retire(&self, handler: &impl LinkHandler) {
        let mut inbox = self.inbox.lock();
        let open = inbox.is_open();
        // The connection is outdated from here on, so nothing of it is delivered.
        inbox.greet();
        if open {
            self.gone(handler, &End::Retired);
        }
    }

    /// Note that a connection has ended.
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
        handler.down(self.id, matches!(why, End::Closed), &why.to_string());
    }

    /// Append what is to be written on a connection, with a heartbeat if one is due and nothing
    /// else is written. Returns `false` if the connection has been replaced.
    pub(super) fn fill(&self, number: u64, limit: usize, beat: bool, out: &mut Vec<u8>) -> bool {
        let outbox = &mut self.outbox.lock().outbox;
        outbox.fill(number, limit, out)
            && (!beat || !out.is_empty() || outbox.heartbeat(number, out))
    }

    /// Process all frames that have arrived on a connection. Returns whether an acknowledgement
    /// should be written now.
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
