//! The outbox of a connection: replies and news that are still to be written.
//!
//! Everything that a client is told goes through its outbox, in the order in which it happened. The
//! service appends bytes and wakes the connection; the connection takes all bytes and writes them
//! at once. A client expects the greeting first, so what happens before is told after the greeting.

use std::future::poll_fn;
use std::task::{Poll, Waker};

use doorway_protocol::{Code, Greeting, Refusal, Reply, put};
use parking_lot::{Mutex, MutexGuard};

/// How many bytes may wait for a client that does not read.
pub const BACKLOG: usize = 1 << 20;

/// What a connection has yet to write.
#[derive(Debug, Default)]
pub struct Outbox(Mutex<OutboxBuffer>);

#[derive(Debug, Default)]
struct OutboxBuffer {
    bytes: Vec<u8>,
    /// How many of the bytes tell of losses. Those must reach the client, and there are no more
    /// losses than grants, so they do not count when a client reads too slowly.
    losses: usize,
    /// The client was greeted. Until then `bytes` are kept back.
    greeted: bool,
    /// The connection, while it waits.
    waker: Option<Waker>,
    /// No more is taken; when the bytes are written, the connection ends.
    closing: bool,
    /// The client reads too slowly: there is nothing to write any more.
    backlog_full: bool,
}

/// What a connection finds in its outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutboxState {
    /// There may be bytes.
    Open,
    /// These bytes are the last.
    Closing,
    /// The client has not read what it was told.
    BacklogFull,
}

impl Outbox {
    /// Tell the client something, unless its connection ends.
    pub fn tell(&self, reply: &Reply) {
        let mut pending = self.0.lock();
        if !pending.closing {
            pending.append(reply);
            pending.written();
        }
        OutboxBuffer::wake(pending);
    }

    /// Greet the client, and tell it what it has to know first. What it was told before comes after
    /// that. A client that is refused learns nothing else.
    pub fn greet(&self, greeting: &Greeting, then: &[Reply]) {
        let mut pending = self.0.lock();
        debug_assert!(!pending.greeted, "a client is greeted once");
        let early = std::mem::take(&mut pending.bytes);
        put(greeting, &mut pending.bytes);
        if greeting.is_ok() {
            for reply in then {
                pending.append(reply);
            }
            pending.bytes.extend(early);
        }
        pending.greeted = true;
        pending.written();
        OutboxBuffer::wake(pending);
    }

    /// End the connection once it has written what is here.
    pub fn close(&self) {
        let mut pending = self.0.lock();
        pending.closing = true;
        OutboxBuffer::wake(pending);
    }

    /// Take all bytes, in exchange for a buffer that is empty. Before the greeting there are none:
    /// the node may have to wait with it.
    pub fn take(&self, empty: &mut Vec<u8>) -> OutboxState {
        let mut pending = self.0.lock();
        debug_assert!(empty.is_empty());
        if pending.greeted {
            std::mem::swap(&mut pending.bytes, empty);
            pending.losses = 0;
        }
        pending.found()
    }

    /// How many bytes wait for the connection.
    pub fn bytes(&self) -> usize {
        self.0.lock().bytes.len()
    }

    /// What is there for the connection. If there is nothing, the waker is woken as soon as there
    /// is something. A connection that is busy with writing has no use for more bytes.
    pub fn watch(&self, waker: &Waker, busy: bool) -> Option<OutboxState> {
        let mut pending = self.0.lock();
        let bytes = !busy && pending.greeted && !pending.bytes.is_empty();
        if bytes || pending.closing || pending.backlog_full {
            return Some(pending.found());
        }
        match &mut pending.waker {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
        None
    }

    /// Wait until the connection is to end.
    pub async fn closed(&self) {
        poll_fn(|context| match self.watch(context.waker(), true) {
            Some(_) => Poll::Ready(()),
            None => Poll::Pending,
        })
        .await;
    }
}

impl OutboxBuffer {
    /// Append a reply. If it is too long for a frame, which limits should prevent, the client gets
    /// a refusal instead.
    fn append(&mut self, reply: &Reply) {
        let before = self.bytes.len();
        if let (false, Some(number)) = (put(reply, &mut self.bytes), reply.number()) {
            let text = "the answer is longer than a frame may be".to_owned();
            put(&Reply::Refused(number, Refusal { code: Code::Busy, text }), &mut self.bytes);
        }
        if matches!(reply, Reply::Lost(..)) {
            self.losses += self.bytes.len() - before;
        }
    }

    /// Drop everything if more bytes wait than may wait.
    fn written(&mut self) {
        if self.bytes.len() - self.losses > BACKLOG {
            self.backlog_full = true;
        }
        if self.backlog_full {
            (self.bytes, self.losses) = (Vec::new(), 0);
        }
    }

    /// Wake the connection, so that it looks into its outbox.
    fn wake(mut pending: MutexGuard<'_, Self>) {
        let waker = pending.waker.take();
        drop(pending);
        waker.into_iter().for_each(Waker::wake);
    }

    fn found(&self) -> OutboxState {
        match (self.backlog_full, self.closing) {
            (true, _) => OutboxState::BacklogFull,
            (false, true) => OutboxState::Closing,
            (false, false) => OutboxState::Open,
        }
    }
}

#[cfg(test)]
mod tests {
    use doorway_protocol::{Code, Fence, Frames, Name, Refusal, Scope, Welcome};

    use super::*;

    fn welcome() -> Welcome {
        let (node, scope) = ("node".to_owned(), Scope::User);
        let (session, lost, directory) = (None, Vec::new(), None);
        Welcome { version: 1, node, scope, ttl_ms: 0, session, lost, directory }
    }

    fn taken(outbox: &Outbox) -> Frames {
        let (mut bytes, mut frames) = (Vec::new(), Frames::default());
        outbox.take(&mut bytes);
        frames.feed(&bytes);
        frames
    }

    #[test]
    fn what_happens_before_the_greeting_is_told_after_it() {
        let outbox = Outbox::default();
        outbox.tell(&Reply::Stopping(7));
        let mut early = Vec::new();
        assert_eq!((outbox.take(&mut early), early.len()), (OutboxState::Open, 0));
        assert_eq!(outbox.watch(Waker::noop(), false), None, "nothing can be written yet");
        outbox.greet(&Ok(welcome()), &[Reply::Alive(1)]);
        outbox.tell(&Reply::Alive(2));
        let mut frames = taken(&outbox);
        assert!(frames.take::<Greeting>().unwrap().is_some_and(|greeting| greeting.is_ok()));
        for reply in [Reply::Alive(1), Reply::Stopping(7), Reply::Alive(2)] {
            assert_eq!(frames.take().unwrap(), Some(reply));
        }
    }

    #[test]
    fn who_reads_slowly_hears_of_all_losses_and_not_of_all_else() {
        let outbox = Outbox::default();
        outbox.greet(&Ok(welcome()), &[]);
        let lost = |number: u64| {
            let lock = Name::new(&format!("orders/{number}")).expect("a name");
            Reply::Lost(lock, Fence::new(1, 1), "the node stops".to_owned())
        };
        (0..50_000).for_each(|number| outbox.tell(&lost(number)));
        assert!(outbox.bytes() > BACKLOG);
        let mut frames = taken(&outbox);
        assert!(frames.take::<Greeting>().unwrap().is_some());
        for number in 0..50_000 {
            assert_eq!(frames.take().unwrap(), Some(lost(number)));
        }
        (0..200_000).for_each(|number| outbox.tell(&Reply::Alive(number)));
        assert_eq!(outbox.take(&mut Vec::new()), OutboxState::BacklogFull);
    }

    #[test]
    fn who_is_refused_learns_why_even_where_all_connections_end() {
        let outbox = Outbox::default();
        outbox.tell(&Reply::Stopping(7));
        outbox.close();
        outbox.greet(&Err(Refusal { code: Code::Unavailable, text: "why".into() }), &[]);
        let mut frames = taken(&outbox);
        assert!(frames.take::<Greeting>().unwrap().is_some_and(|greeting| greeting.is_err()));
        assert_eq!(frames.take::<Reply>().unwrap(), None);
    }
}
