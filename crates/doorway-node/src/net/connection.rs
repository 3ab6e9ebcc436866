//! One connection: what comes is delivered, what waits is written, and silence ends it.

use std::future::{Future as _, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker, ready};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::sync::Notify;
use tokio::time::MissedTickBehavior;

use super::peer::{ConnectionHandle, End, Peer, count};
use super::{LinkHandler, Timing};
use crate::link::Decoder;

/// So many bytes are gathered for one write.
const CHUNK: usize = 32 << 10;

/// So many writes are made before others get their turn.
const ROUNDS: usize = 8;

/// There is room for so many bytes when a connection is read.
const ROOM: usize = 8 << 10;

/// A connection that is up.
///
/// One task reads and writes it. Besides, whoever has queued a message may write on his own thread:
/// the task is spared a wake-up, which costs more than the write.
pub(super) struct Connection<S> {
    peer: Arc<Peer>,
    number: u64,
    state: Mutex<StreamState<S>>,
    task: Arc<TaskWaker>,
}

/// The stream, and what is being written to it.
struct StreamState<S> {
    stream: S,
    buffer: Vec<u8>,
    /// How much of the buffer has been written.
    written: usize,
    /// Is a sign of life due?
    beat: bool,
}

/// Calls the task of a connection.
#[derive(Default)]
struct TaskWaker {
    notify: Notify,
    cut: AtomicBool,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.notify.notify_one();
    }
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ConnectionHandle for Connection<S> {
    fn flush(&self) {
        if let Some(mut state) = self.state.try_lock() {
            // If this stops half-way, the bell rings when it can go on.
            let waker = Waker::from(Arc::clone(&self.task));
            let written = state.poll_write(&mut Context::from_waker(&waker), self);
            if !matches!(written, Poll::Ready(Err(_))) {
                return;
            }
        }
        // Whoever is at it may just have missed the message; and errors are for the task.
        self.wake();
    }

    fn wake(&self) {
        self.task.notify.notify_one();
    }

    fn cut(&self) {
        self.task.cut.store(true, Ordering::Release);
        self.wake();
    }
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> StreamState<S> {
    /// Write until nothing waits.
    fn poll_write<T>(
        &mut self,
        context: &mut Context<'_>,
        connection: &Connection<T>,
    ) -> Poll<Result<(), End>> {
        for _ in 0..ROUNDS {
            if self.written == self.buffer.len() {
                self.buffer.clear();
                self.written = 0;
                let beat = std::mem::take(&mut self.beat);
                let peer = &connection.peer;
                if !peer.fill(connection.number, CHUNK, beat, &mut self.buffer) {
                    return Poll::Ready(Err(End::Replaced));
                }
            }
            if self.buffer.is_empty() {
                return Pin::new(&mut self.stream).poll_flush(context).map_err(End::Io);
            }
            while self.written < self.buffer.len() {
                let rest = &self.buffer[self.written..];
                match ready!(Pin::new(&mut self.stream).poll_write(context, rest))? {
                    0 => return Poll::Ready(Err(End::Io(io::ErrorKind::WriteZero.into()))),
                    more => {
                        self.written += more;
                        count(&connection.peer.traffic.bytes_out, more as u64);
                    }
                }
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Connection<S> {
    pub(super) fn new(peer: Arc<Peer>, number: u64, stream: S) -> Self {
        let state = StreamState { stream, buffer: Vec::new(), written: 0, beat: true };
        Self { peer, number, state: Mutex::new(state), task: Arc::default() }
    }

    /// Read and write until the end. The first thing written is a sign of life, by which the other
    /// side knows that its hello was heard.
    pub(super) async fn run(
        &self,
        handler: &impl LinkHandler,
        timing: &Timing,
        decoder: Decoder,
    ) -> End {
        self.wake();
        // In a fixed order, so that a simulation with the same seed goes the same way.
        tokio::select! {
            biased;
            end = self.read(handler, decoder) => end,
            end = self.write() => end,
            end = self.watch(timing) => end,
        }
    }

    async fn read(&self, handler: &impl LinkHandler, mut decoder: Decoder) -> End {
        loop {
            match self.peer.process_frames(handler, self.number, &mut decoder) {
                Ok(false) => {}
                Ok(true) => self.wake(),
                Err(end) => return end,
            }
            let room = decoder.room();
            room.reserve(ROOM);
            let read = poll_fn(|context| {
                let mut state = self.state.lock();
                pin!(state.stream.read_buf(room)).poll(context)
            });
            match read.await {
                Ok(0) => return End::Closed,
                Ok(more) => count(&self.peer.traffic.bytes_in, more as u64),
                Err(error) => return End::Io(error),
            }
        }
    }

    async fn write(&self) -> End {
        loop {
            self.task.notify.notified().await;
            if self.task.cut.load(Ordering::Acquire) {
                return End::Replaced;
            }
            // The stream knows one writer: whoever of us wrote last, the bell calls this task.
            let waker = Waker::from(Arc::clone(&self.task));
            let written = self.state.lock().poll_write(&mut Context::from_waker(&waker), self);
            if let Poll::Ready(Err(end)) = written {
                return end;
            }
            tokio::task::yield_now().await;
        }
    }

    /// Give signs of life while nothing else is written, and look for those of the peer.
    async fn watch(&self, timing: &Timing) -> End {
        let mut ticks = tokio::time::interval(timing.heartbeat);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.tick().await;
        let traffic = &self.peer.traffic;
        let mut known = traffic.bytes_in.load(Ordering::Relaxed);
        let mut silence = Duration::ZERO;
        loop {
            ticks.tick().await;
            let bytes = traffic.bytes_in.load(Ordering::Relaxed);
            silence = if bytes == known { silence + timing.heartbeat } else { Duration::ZERO };
            known = bytes;
            if silence >= timing.silence {
                return End::Silent(silence);
            }
            self.state.lock().beat = true;
            self.wake();
        }
    }
}
