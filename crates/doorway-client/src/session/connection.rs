//! The connection of a session: sending and receiving without waiting.

use std::io;
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use doorway_protocol::{Life, Moment};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use super::Session;
use crate::endpoint::Stream;

/// How long a caller waits for bytes before it looks at its session again.
const GLANCE: Duration = Duration::from_secs(1);

impl Stream {
    /// Read what has arrived. With no flags, wait until something arrives.
    pub(crate) fn receive(&self, buffer: &mut [u8], flags: RecvFlags) -> Result<usize, Errno> {
        recv(self.as_fd(), buffer, flags).map(|(count, _)| count)
    }

    /// Let blocking reads fail after this time.
    fn set_read_timeout(&self, time: Duration) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.set_read_timeout(Some(time)),
            Self::Tcp(stream) => stream.set_read_timeout(Some(time)),
        }
    }

    /// Close the connection in both directions, so that a thread that reads from it wakes up.
    fn hang_up(&self) {
        // This fails only if the connection has ended already.
        let _ = match self {
            Self::Unix(stream) => stream.shutdown(Shutdown::Both),
            Self::Tcp(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

impl Session {
    /// Use a new connection to the current endpoint of the route.
    pub(crate) fn connect(&mut self, stream: Arc<Stream>) {
        // The machine may refuse a request of a caller that reads, without the node. If this fails,
        // the caller learns that only with the next bytes.
        let _ = stream.set_read_timeout(GLANCE);
        self.stream = Some(stream);
        self.line.connected_to(Moment::now(), self.route.endpoint());
        self.flush();
    }

    /// The current endpoint of the route cannot be reached.
    pub(crate) fn cannot_connect(&mut self, why: &io::Error) {
        self.line.cannot_connect(&self.route.endpoint().to_string(), &why.to_string());
        self.route.failed(Moment::now(), self.line.is_bound());
    }

    /// Close the connection. The driver makes the next one.
    pub(crate) fn disconnect(&mut self) {
        if let Some(stream) = self.stream.take() {
            let now = Moment::now();
            stream.hang_up();
            self.line.disconnected(now);
            let bound = self.line.is_bound();
            if self.line.is_turned_away() {
                self.route.failed(now, bound);
            } else {
                self.route.ended(now, bound);
            }
            self.kick();
        }
    }

    /// The last copy of the client is gone. The session ends, unless it lives without a connection.
    pub(super) fn leave(&mut self, life: Life) {
        self.closing = true;
        if matches!(life, Life::Connection { .. }) {
            self.line.bye();
            self.flush();
        }
        self.disconnect();
        self.kick();
    }

    /// Send as much as the connection takes now.
    pub(crate) fn flush(&mut self) {
        let Some(stream) = &self.stream else { return };
        if self.line.flush(stream) || self.line.must_close() {
            self.kick();
        }
    }

    /// Is something left that could not be sent?
    pub(crate) fn is_blocked(&mut self) -> bool {
        self.stream.is_some() && !self.line.outgoing().is_empty()
    }

    /// Handle the result of reading from a connection.
    pub(crate) fn received(&mut self, stream: &Arc<Stream>, read: Result<&[u8], Errno>) {
        if !self.stream.as_ref().is_some_and(|current| Arc::ptr_eq(current, stream)) {
            return; // The session uses another connection by now.
        }
        match read {
            Ok([]) => self.disconnect(),
            Ok(bytes) => {
                self.line.receive(Moment::now(), bytes);
                self.flush();
            }
            Err(Errno::WOULDBLOCK | Errno::INTR) => {}
            Err(_) => self.disconnect(),
        }
        self.settle();
    }

    /// Hand out events, and close the connection if it must be closed.
    pub(crate) fn settle(&mut self) {
        self.dispatch();
        if self.line.is_talking() && !self.route.is_served() {
            self.route.serves(Moment::now());
        }
        if self.stream.is_some() && self.line.must_close() {
            self.flush();
            self.disconnect();
            self.dispatch();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use rustix::net::{AddressFamily, SocketType, socket};

    use super::*;
    use crate::endpoint::Endpoint;
    use crate::options::Options;

    #[test]
    fn a_connection_that_cannot_send_is_closed() {
        let endpoint = Endpoint::Abstract("nowhere".to_owned());
        let mut session =
            Session::new(&endpoint.into(), &Options::default(), Box::new(|| ())).unwrap();
        let unconnected = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        session.connect(Arc::new(Stream::Unix(UnixStream::from(unconnected))));
        session.settle();
        assert!(session.stream.is_none() && session.line.wants_connection());
    }
}
