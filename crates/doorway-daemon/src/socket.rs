//! A Unix socket that wakes its task only for reading, unless a write is blocked.
//!
//! A Unix socket becomes writable whenever the other side reads. If the reactor watched for both,
//! it would wake its thread each time a client reads a reply, with nothing to do: one more wake-up
//! for each request. So the socket is watched for writing only while a write is blocked, which is
//! rare.
//!
//! With its first bytes a client may pass a descriptor, which is kept. All others are closed.

use std::io::{self, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};

/// A connection through a Unix socket.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: AsyncFd<UnixStream>,
    /// A second handle to the socket, while something could not be written.
    blocked: Option<AsyncFd<UnixStream>>,
    /// Whether the first bytes have been read.
    has_begun: bool,
    /// The descriptor that came with them.
    pub(crate) passed: Option<OwnedFd>,
}

impl Socket {
    /// Wrap a connection.
    pub(crate) fn new(stream: tokio::net::UnixStream) -> io::Result<Self> {
        let stream = watch(stream.into_std()?, Interest::READABLE)?;
        Ok(Self { stream, blocked: None, has_begun: false, passed: None })
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

/// Let the reactor watch a descriptor.
#[allow(deprecated, reason = "its successor is unsafe, and what is watched here never changes")]
fn watch<T: AsRawFd>(what: T, interest: Interest) -> io::Result<AsyncFd<T>> {
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
            let read = if *has_begun {
                stream.get_ref().read(space)
            } else {
                read_first(stream.get_ref(), space).map(|(count, descriptor)| {
                    *passed = descriptor;
                    count
                })
            };
            match read {
                Ok(count) => {
                    // The system ends a read after bytes with a descriptor, so more may be there.
                    if *has_begun && (1..most).contains(&count) {
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
            let ready = match &this.blocked {
                Some(blocked) => Some(ready!(blocked.poll_write_ready(context))?),
                None => None,
            };
            match (this.stream.get_ref().write(bytes), ready) {
                (Err(error), _) if error.kind() == io::ErrorKind::Interrupted => {}
                (Err(error), Some(mut ready)) if error.kind() == io::ErrorKind::WouldBlock => {
                    ready.clear_ready();
                }
                (Err(error), None) if error.kind() == io::ErrorKind::WouldBlock => {
                    let same = this.stream.get_ref().try_clone()?;
                    this.blocked = Some(watch(same, Interest::WRITABLE)?);
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
    use std::time::Duration;

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
