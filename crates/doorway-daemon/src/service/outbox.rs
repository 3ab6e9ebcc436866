//! What a connection has yet to write: answers, and news that nobody asked for.
//!
//! Everything that a client is told goes through here, so that it is told in the order in which it
//! happened. Whoever has news writes them as bytes and wakes the connection; the connection itself
//! takes all that is there and writes it at once.

use std::task::Waker;

use doorway_protocol::{Code, Refusal, Reply, put};
use parking_lot::Mutex;

/// How many bytes may wait for a client that does not read.
pub(crate) const BACKLOG: usize = 1 << 20;

/// What a connection has yet to write.
#[derive(Debug, Default)]
pub(crate) struct Outbox(Mutex<Pending>);

#[derive(Debug, Default)]
struct Pending {
    bytes: Vec<u8>,
    /// The connection, while it waits.
    waker: Option<Waker>,
    /// No more is taken; when the bytes are written, the connection ends.
    closing: bool,
    /// The client reads too slowly: there is nothing to write any more.
    overflown: bool,
}

/// What a connection finds in its outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// There may be bytes.
    Open,
    /// These bytes are the last.
    Closing,
    /// The client has not read what it was told.
    Overflown,
}

impl Outbox {
    /// Tell the client something, unless its connection ends.
    pub(crate) fn tell(&self, reply: &Reply) {
        self.with(|bytes| {
            // Limits keep answers short. Should one be too long all the same, its client hears so.
            if let (false, Some(number)) = (put(reply, bytes), reply.number()) {
                let text = "the answer is longer than a frame may be".to_owned();
                put(&Reply::Refused(number, Refusal { code: Code::Busy, text }), bytes);
            }
        });
    }

    /// Write frames; the writer must not wait for anything.
    pub(crate) fn with(&self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut pending = self.0.lock();
        if pending.closing || pending.overflown {
            return;
        }
        write(&mut pending.bytes);
        if pending.bytes.len() > BACKLOG {
            pending.bytes = Vec::new();
            pending.overflown = true;
        }
        let waker = pending.waker.take();
        drop(pending);
        waker.into_iter().for_each(Waker::wake);
    }

    /// End the connection once it has written what is here.
    pub(crate) fn close(&self) {
        let mut pending = self.0.lock();
        pending.closing = true;
        let waker = pending.waker.take();
        drop(pending);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Take all bytes, in exchange for a buffer that is empty.
    pub(crate) fn take(&self, empty: &mut Vec<u8>) -> Found {
        let mut pending = self.0.lock();
        debug_assert!(empty.is_empty());
        std::mem::swap(&mut pending.bytes, empty);
        pending.found()
    }

    /// How many bytes wait?
    pub(crate) fn len(&self) -> usize {
        self.0.lock().bytes.len()
    }

    /// Is there anything? If not, the waker is woken as soon as there is. Who is busy with writing
    /// has no use for more bytes.
    pub(crate) fn watch(&self, waker: &Waker, busy: bool) -> Option<Found> {
        let mut pending = self.0.lock();
        let bytes = !busy && !pending.bytes.is_empty();
        if bytes || pending.closing || pending.overflown {
            return Some(pending.found());
        }
        match &mut pending.waker {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
        None
    }
}

impl Pending {
    fn found(&self) -> Found {
        match (self.overflown, self.closing) {
            (true, _) => Found::Overflown,
            (false, true) => Found::Closing,
            (false, false) => Found::Open,
        }
    }
}
