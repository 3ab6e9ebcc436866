//! Connecting over TCP without blocking: the event loop waits until the network answers.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use doorway_client::{Moment, Stream};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::socket_error;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};

/// An attempt to connect to a host, at one of its addresses after the other.
pub(crate) struct Dial {
    socket: OwnedFd,
    /// When the attempt at this address ends.
    until: Moment,
    /// The addresses that were not tried yet.
    left: VecDeque<SocketAddr>,
    /// How long to try each address.
    each: Duration,
}

impl Dial {
    /// Begin to connect. All addresses together get the time `limit`.
    pub(crate) fn begin(
        addresses: Vec<SocketAddr>,
        now: Moment,
        limit: Duration,
    ) -> io::Result<Self> {
        let each = limit / u32::try_from(addresses.len().max(1)).unwrap_or(u32::MAX);
        Self::next(addresses.into(), now, each, io::ErrorKind::AddrNotAvailable.into())
    }

    /// Begin with the first of the addresses for which that is possible.
    fn next(
        mut left: VecDeque<SocketAddr>,
        now: Moment,
        each: Duration,
        mut failed: io::Error,
    ) -> io::Result<Self> {
        while let Some(address) = left.pop_front() {
            match begin(address) {
                Ok(socket) => return Ok(Self { socket, until: now.after(each), left, each }),
                Err(error) => failed = error.into(),
            }
        }
        Err(failed)
    }

    /// When to look again at the latest.
    pub(crate) fn until(&self) -> Moment {
        self.until
    }

    /// The connection if it is made, or the attempt if that takes more time. It fails if no address
    /// answers.
    pub(crate) fn finish(self, now: Moment) -> io::Result<Result<Stream, Self>> {
        let mut ready = [PollFd::new(&self.socket, PollFlags::OUT)];
        let no_time = Timespec { tv_sec: 0, tv_nsec: 0 };
        let error = if poll(&mut ready, Some(&no_time)).is_ok_and(|count| count > 0) {
            match socket_error(&self.socket)? {
                Ok(()) => {
                    let stream = TcpStream::from(self.socket);
                    stream.set_nodelay(true)?;
                    return Ok(Ok(Stream::Tcp(stream)));
                }
                Err(error) => error.into(),
            }
        } else if now >= self.until {
            io::ErrorKind::TimedOut.into()
        } else {
            return Ok(Err(self));
        };
        Self::next(self.left, now, self.each, error).map(Err)
    }
}

impl AsFd for Dial {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Begin to connect to an address.
fn begin(address: SocketAddr) -> Result<OwnedFd, Errno> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    match connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread::sleep;

    use super::*;

    fn finish(mut dial: Dial) -> io::Result<Stream> {
        loop {
            match dial.finish(Moment::now())? {
                Ok(stream) => return Ok(stream),
                Err(more) => dial = more,
            }
            sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn the_addresses_of_a_host_are_tried_one_after_the_other() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let good = listener.local_addr().unwrap();
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let dial = |addresses| Dial::begin(addresses, Moment::now(), Duration::from_mins(1));
        finish(dial(vec![free, good]).unwrap()).unwrap();
        let refused = dial(vec![free]).and_then(finish).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        assert!(dial(vec![]).is_err());
    }
}
