//! One connection: it delivers what arrives, writes what waits, and ends when the peer is silent
//! for too long.

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

/// How many bytes are gathered for one write.
const CHUNK: usize = 32 << 10;

/// How many writes are made before other tasks get their turn.
const ROUNDS: usize = 8;

/// How many bytes the read buffer has room for at least.
const ROOM: usize = 8 << 10;

/// A connection that is up.
///
/// One task reads and writes it. In addition, a thread that has queued a message may write it
/// itself. That spares waking the task, which costs more than the write.
pub(super) struct Connection<S> {
    peer: Arc<Peer>,
    number: u64,
    state: Mutex<StreamState<S>>,
    task: Arc<TaskWaker>,
}

/// The stream, and the bytes that are being written to it.
struct StreamState<S> {
    stream: S,
    buffer: Vec<u8>,
    /// How much of the buffer has been written.
    written: usize,
    /// Is a heartbeat due?
    beat: bool,
}

/// Wakes the task of a connection.
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
            // If not everything can be written now, the task is woken when the stream is ready
            // again.
            let waker = Waker::from(Arc::clone(&self.task));
            let written = state.poll_write(&mut Context::from_waker(&waker), self);
            if !matches!(written, Poll::Ready(Err(_))) {
                return;
            }
        }
        // The thread that is writing may just have missed the message, and errors are handled by
        // the task.
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
    /// Write until nothing is left to write.
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

    /// Read and write until the connection ends. The first frame written is a heartbeat, which
    /// tells the other side that its hello has arrived.
    pub(super) async fn run(
        &self,
        handler: &impl LinkHandler,
        timing: &Timing,
        decoder: Decoder,
    ) -> End {
        self.wake();
        // Poll in a fixed order, so that a simulation with the same seed takes the same course.
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
                // The peer closed TCP without a goodbye of TLS, as a process does that ends. The
                // sequence numbers of messages show whether anything is missing.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return End::Closed,
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
            // The stream keeps the waker of the last writer only. All writers use this one, so it
            // is always the task that is woken.
            let waker = Waker::from(Arc::clone(&self.task));
            let written = self.state.lock().poll_write(&mut Context::from_waker(&waker), self);
            if let Poll::Ready(Err(end)) = written {
                return end;
            }
            tokio::task::yield_now().await;
        }
    }

    /// Request heartbeats while the connection is idle, and end it if the peer is silent for too
    /// long.
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
