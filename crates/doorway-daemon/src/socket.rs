//! A Unix socket that wakes its task only for reading, unless a write is blocked.
//!
//! A Unix socket becomes writable whenever the other side reads. If the reactor watched for both,
//! it would wake its thread each time a client reads a reply, with nothing to do: one more wake-up
//! for each request. So the socket is watched for writing only while a write is blocked, which is
//! rare.
//!
//! With its first bytes a client may pass a descriptor, which is kept. All others are closed.
//!
//! The reactor watches one descriptor only for one purpose, so a blocked write needs a second one.
//! If the process has none left, the write is tried again from time to time.

use std::io::{self, IoSliceMut, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, recvmsg};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::time::{Sleep, sleep};

/// When a blocked write is tried again that cannot be watched.
const RETRY: Duration = Duration::from_millis(10);

/// A connection through a Unix socket.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: AsyncFd<UnixStream>,
    /// How the end of the block is noticed, while something could not be written.
    blocked: Option<BlockWatch>,
    /// Makes a second handle to the socket.
    duplicate: fn(&UnixStream) -> io::Result<UnixStream>,
    /// Whether the first bytes have been read.
    has_begun: bool,
    /// The descriptor that came with them.
    pub(crate) passed: Option<OwnedFd>,
}

/// How the end of a block is noticed.
#[derive(Debug)]
enum BlockWatch {
    /// The reactor watches a second handle to the socket.
    Watched(AsyncFd<UnixStream>),
    /// There is no descriptor for a second handle. The write is tried again after this.
    Retried(Pin<Box<Sleep>>),
}

impl Socket {
    /// Wrap a connection.
    pub(crate) fn new(stream: tokio::net::UnixStream) -> io::Result<Self> {
        let stream = watch(stream.into_std()?, Interest::READABLE)?;
        let duplicate = UnixStream::try_clone;
        Ok(Self { stream, blocked: None, duplicate, has_begun: false, passed: None })
    }
}

/// Read the first bytes of a connection, and the descriptor that came with them.
fn read_first(stream: &UnixStream, into: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let count = recvmsg(stream, &mut [IoSliceMut::new(into)], &mut control, flags)?.bytes;
    let passed = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut passed) => passed.next(),
        _ => None,
    });
    Ok((count, passed))
}

/// Read bytes after the first ones. The system closes descriptors that came with them, and ends the
/// read behind them. Returned beside the number of bytes is whether that happened.
fn read_more(stream: &UnixStream, into: &mut [u8]) -> io::Result<(usize, bool)> {
    let mut none = RecvAncillaryBuffer::default();
    let flags = RecvFlags::CMSG_CLOEXEC;
    let read = recvmsg(stream, &mut [IoSliceMut::new(into)], &mut none, flags)?;
    Ok((read.bytes, read.flags.contains(ReturnFlags::CTRUNC)))
}

/// Let the reactor watch a descriptor.
#[allow(deprecated, reason = "its successor is unsafe, and what is watched here never changes")]
pub(crate) fn watch<T: AsRawFd>(what: T, interest: Interest) -> io::Result<AsyncFd<T>> {
    AsyncFd::with_interest(what, interest)
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { stream, has_begun, passed, .. } = &mut *self;
        loop {
            let mut ready = ready!(stream.poll_read_ready(context))?;
            let space = into.initialize_unfilled();
            let most = space.len();
            // The system ends a read behind bytes with a descriptor, so more may be there.
            let read = if *has_begun {
                read_more(stream.get_ref(), space)
            } else {
                read_first(stream.get_ref(), space).map(|(count, descriptor)| {
                    *passed = descriptor;
                    (count, true)
                })
            };
            match read {
                Ok((count, more)) => {
                    if !more && (1..most).contains(&count) {
                        // Nothing is left: the next bytes make it ready again.
                        ready.clear_ready();
                    }
                    *has_begun = true;
                    into.advance(count);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready.clear_ready(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        loop {
            // Readiness is asked for before the write; otherwise a wake-up in between would be
            // lost.
            let ready = match &mut this.blocked {
                Some(BlockWatch::Watched(same)) => Some(ready!(same.poll_write_ready(context))?),
                Some(BlockWatch::Retried(pause)) => {
                    ready!(pause.as_mut().poll(context));
                    None
                }
                None => None,
            };
            match (this.stream.get_ref().write(bytes), ready) {
                (Err(error), _) if error.kind() == io::ErrorKind::Interrupted => {}
                (Err(error), Some(mut ready)) if error.kind() == io::ErrorKind::WouldBlock => {
                    ready.clear_ready();
                }
                (Err(error), None) if error.kind() == io::ErrorKind::WouldBlock => {
                    let same = (this.duplicate)(this.stream.get_ref());
                    this.blocked = Some(match same.and_then(|it| watch(it, Interest::WRITABLE)) {
                        Ok(same) => BlockWatch::Watched(same),
                        Err(_) => BlockWatch::Retried(Box::pin(sleep(RETRY))),
                    });
                }
                (done, _) => {
                    this.blocked = None;
                    return Poll::Ready(done);
                }
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.stream.get_ref().shutdown(std::net::Shutdown::Write))
    }
}

#[cfg(test)]
mod tests {
    use std::io::IoSlice;
    use std::os::fd::AsFd as _;

    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn more_than_the_other_side_reads_at_a_time_arrives_in_order() {
        let (one, two) = tokio::net::UnixStream::pair().unwrap();
        let (mut one, mut two) = (Socket::new(one).unwrap(), Socket::new(two).unwrap());
        let sent: Vec<u8> = (0..3_000_000_u32).map(|number| (number % 251) as u8).collect();
        let expected = sent.clone();
        let writer = tokio::spawn(async move {
            one.write_all(&sent).await.unwrap();
            one.shutdown().await.unwrap();
            one
        });
        tokio::task::yield_now().await; // Now it is blocked.
        let mut got = Vec::new();
        let read = timeout(Duration::from_secs(20), two.read_to_end(&mut got)).await;
        assert_eq!(read.unwrap().unwrap(), expected.len());
        assert!(got == expected);
        let one = writer.await.unwrap();
        assert!(one.blocked.is_none(), "nobody watches for what is not waited for");
    }

    #[tokio::test]
    async fn a_process_without_descriptors_still_writes_what_was_blocked() {
        let (one, two) = tokio::net::UnixStream::pair().unwrap();
        let (mut one, mut two) = (Socket::new(one).unwrap(), Socket::new(two).unwrap());
        one.duplicate = |_| Err(rustix::io::Errno::MFILE.into());
        let writer = tokio::spawn(async move { one.write_all(&vec![7; 3_000_000]).await });
        tokio::task::yield_now().await; // Now it is blocked.
        let mut got = Vec::new();
        let read = timeout(Duration::from_secs(20), two.read_to_end(&mut got)).await;
        assert_eq!(read.unwrap().unwrap(), 3_000_000);
        writer.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn bytes_behind_a_descriptor_are_read_also_if_nothing_comes_after_them() {
        let (mut one, two) = UnixStream::pair().unwrap();
        two.set_nonblocking(true).unwrap();
        let mut two = Socket::new(tokio::net::UnixStream::from_std(two).unwrap()).unwrap();
        let mut bytes = [0; 64];
        one.write_all(b"first").unwrap();
        assert_eq!(two.read(&mut bytes).await.unwrap(), 5);
        let descriptor = [one.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(&descriptor)));
        let sent = sendmsg(&one, &[IoSlice::new(b"with")], &mut control, SendFlags::empty());
        assert_eq!(sent, Ok(4));
        one.write_all(b"behind").unwrap();
        let mut got = Vec::new();
        while got.len() < 10 {
            let read = timeout(Duration::from_secs(20), two.read(&mut bytes)).await;
            got.extend_from_slice(&bytes[..read.expect("nothing is forgotten").unwrap()]);
        }
        assert_eq!(got, b"withbehind");
        assert!(two.passed.is_none());
    }

    #[tokio::test]
    async fn bytes_and_the_end_are_heard_of_while_waiting() {
        let (one, two) = tokio::net::UnixStream::pair().unwrap();
        let (mut one, mut two) = (Socket::new(one).unwrap(), Socket::new(two).unwrap());
        let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
        tokio::spawn(async move {
            let mut bytes = [0; 8];
            loop {
                let count = two.read(&mut bytes).await.unwrap();
                tell.send(count).unwrap();
                if count == 0 {
                    return;
                }
            }
        });
        for length in [3, 8, 5] {
            one.write_all(&vec![7; length]).await.unwrap();
            let count = timeout(Duration::from_secs(20), told.recv()).await.unwrap();
            assert_eq!(count, Some(length));
        }
        drop(one);
        assert_eq!(timeout(Duration::from_secs(20), told.recv()).await.unwrap(), Some(0));
    }
}
