//! Bytes in and out, without waiting for either.

use std::net::Shutdown;
use std::os::fd::AsFd;
use std::sync::Arc;

use doorway_protocol::{Life, Moment};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::Session;
use crate::endpoint::Stream;

impl Stream {
    /// Read what is there; wait for it if the flags do not say otherwise.
    pub(crate) fn receive(&self, buffer: &mut [u8], flags: RecvFlags) -> Result<usize, Errno> {
        recv(self.as_fd(), buffer, flags).map(|(count, _)| count)
    }

    /// Let whoever reads from it find that it has ended.
    fn hang_up(&self) {
        // It fails only if it has ended already.
        let _ = match self {
            Self::Unix(stream) => stream.shutdown(Shutdown::Both),
            Self::Tcp(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

impl Session {
    /// There is a connection.
    pub(crate) fn connect(&mut self, stream: Arc<Stream>) {
        self.stream = Some(stream);
        self.line.connected(Moment::now());
        self.flush();
    }

    /// The connection is no more. Whoever looks after the session makes the next one.
    pub(crate) fn disconnect(&mut self) {
        if let Some(stream) = self.stream.take() {
            stream.hang_up();
            self.line.disconnected(Moment::now());
            self.kick();
        }
    }

    /// Nobody needs the session any more, which ends now unless it lives without a connection.
    pub(super) fn leave(&mut self, life: Life) {
        self.closing = true;
        if matches!(life, Life::Connection { .. }) {
            self.line.bye();
            self.flush();
        }
        self.disconnect();
        self.kick();
    }

    /// Send what can be sent now.
    pub(crate) fn flush(&mut self) {
        let Some(stream) = &self.stream else { return };
        let outgoing = self.line.outgoing();
        let mut sent = 0;
        let mut failed = None;
        while sent < outgoing.len() {
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            match send(stream.as_fd(), &outgoing[sent..], flags) {
                Ok(count) => sent += count,
                Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) => {
                    outgoing.drain(..sent);
                    return self.kick();
                }
                // What came before the end is still to be read, and then the end itself.
                Err(Errno::PIPE | Errno::CONNRESET) => break,
                Err(why) => {
                    failed = Some(why);
                    break;
                }
            }
        }
        outgoing.clear();
        outgoing.shrink_to(1 << 16);
        if let Some(why) = failed {
            // The rest of a frame is missing, so nothing more can be said on this connection.
            self.line.break_connection(&format!("cannot send to the node: {why}"));
            self.kick();
        }
    }

    /// Could not everything be sent?
    pub(crate) fn is_blocked(&mut self) -> bool {
        self.stream.is_some() && !self.line.outgoing().is_empty()
    }

    /// This was read from that connection.
    pub(crate) fn received(&mut self, stream: &Arc<Stream>, read: Result<&[u8], Errno>) {
        if !self.stream.as_ref().is_some_and(|current| Arc::ptr_eq(current, stream)) {
            return; // It is not the one that we have.
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

    /// Hand out what has happened, and hang up where that is due.
    pub(crate) fn settle(&mut self) {
        self.dispatch();
        if self.stream.is_some() && self.line.must_close() {
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
    fn what_cannot_be_sent_ends_the_connection() {
        let endpoint = Endpoint::Abstract("nowhere".to_owned());
        let mut session = Session::new(&endpoint, &Options::default(), Box::new(|| ())).unwrap();
        let unconnected = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        session.connect(Arc::new(Stream::Unix(UnixStream::from(unconnected))));
        session.settle();
        assert!(session.stream.is_none() && session.line.wants_connection());
    }
}
