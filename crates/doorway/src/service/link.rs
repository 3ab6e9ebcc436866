//! A session with a node over a socket. It reconnects by itself and never blocks for long.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::Duration;

use doorway_client::{Endpoint, Event, Line, Moment, Setup, Stream, TlsConfig};
use doorway_protocol::Backoff;
use rustix::event::PollFlags;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::exit::{self, Exit};
use super::options::Start;
use super::start::Starter;

/// How long to wait before the next attempt to connect, at first and at most.
const DELAYS: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(250));

/// How long an attempt to connect may take. The event loop is blocked during that time.
const CONNECT: Duration = Duration::from_millis(500);

/// A session with a node, and its connection.
pub(crate) struct Link {
    endpoint: Endpoint,
    /// The addresses of a node over TCP. They are looked up once, because a lookup may block.
    addresses: VecDeque<SocketAddr>,
    /// The state of the session.
    pub(crate) machine: Line,
    stream: Option<Stream>,
    /// Starts a node if none runs; none if that is not allowed.
    starter: Option<Starter>,
    /// When to try to connect again.
    retry: Moment,
    backoff: Backoff,
    /// Why a node could not be started.
    cannot_start: Option<Exit>,
}

impl Link {
    /// A session with the node at this endpoint, not connected yet.
    pub(crate) fn new(
        endpoint: Endpoint,
        mut setup: Setup,
        tls: Option<TlsConfig>,
        start: Start,
    ) -> Result<Self, Exit> {
        let addresses = match &endpoint {
            Endpoint::Tcp(host, port) => match (host.as_str(), *port).to_socket_addrs() {
                Ok(addresses) => addresses.collect(),
                Err(error) => return Err(no_node(&endpoint, &error)),
            },
            _ => VecDeque::new(),
        };
        setup.network = matches!(endpoint, Endpoint::Tcp(..));
        let may_start = start != Start::Never && endpoint.is_own();
        let starter = may_start.then(|| Starter::new(start == Start::TellAlways));
        let now = Moment::now();
        let mut machine = Line::new(setup, now);
        if let Some(tls) = tls {
            machine.encrypt(tls);
        }
        Ok(Self {
            endpoint,
            addresses,
            machine,
            stream: None,
            starter,
            retry: now,
            backoff: Backoff::new(DELAYS.0, DELAYS.1),
            cannot_start: None,
        })
    }

    /// The endpoint of the node.
    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Connect for the first time, and start a node if none runs and that is allowed.
    pub(crate) fn open(&mut self) -> Result<(), Exit> {
        let stream = match (self.connect_first(), &mut self.starter) {
            (Ok(stream), _) => stream,
            (Err(error), Some(starter)) if is_nobody(&error) => starter.start(&self.endpoint)?,
            (Err(error), _) => return Err(no_node(&self.endpoint, &error)),
        };
        self.connected(stream);
        Ok(())
    }

    /// Connect to the next address of the node within this time.
    fn connect(&mut self, within: Duration) -> io::Result<Stream> {
        if !matches!(self.endpoint, Endpoint::Tcp(..)) {
            return self.endpoint.connect_within(within);
        }
        let address = self.addresses.pop_front().ok_or(ErrorKind::AddrNotAvailable)?;
        self.addresses.push_back(address);
        Stream::dial(&[address], within)
    }

    /// Connect to the first address of the node that answers.
    fn connect_first(&mut self) -> io::Result<Stream> {
        for _ in 1..self.addresses.len() {
            if let Ok(stream) = self.connect(CONNECT) {
                return Ok(stream);
            }
        }
        self.connect(CONNECT)
    }

    fn connected(&mut self, stream: Stream) {
        if let Some(starter) = &mut self.starter {
            starter.connected(&stream);
        }
        self.stream = Some(stream);
        self.backoff.reset();
        self.machine.connected(Moment::now());
        self.flush();
    }

    /// Do what is due: heartbeats, an attempt to reconnect, sending. This takes no longer than
    /// until `until`, when something else is due.
    pub(crate) fn tick(&mut self, now: Moment, until: Moment) {
        self.machine.tick(now);
        if self.stream.is_some() && self.machine.must_close() {
            self.flush();
            self.disconnected(now);
        }
        let within = until.since(now).min(CONNECT);
        let due = now >= self.retry && !within.is_zero();
        if self.stream.is_none() && self.machine.wants_connection() && due {
            match self.connect(within) {
                Ok(stream) => self.connected(stream),
                Err(error) => {
                    if let Some(starter) = &mut self.starter
                        && is_nobody(&error)
                    {
                        self.cannot_start = starter.start_again(&self.endpoint, now).err();
                    }
                    self.retry = now.after(self.backoff.next_delay());
                }
            }
        }
        self.flush();
    }

    /// When to call [`Link::tick`] again at the latest.
    pub(crate) fn next_due(&self) -> Moment {
        let due = self.machine.next_due();
        let waits = self.stream.is_none() && self.machine.wants_connection();
        if waits { due.min(self.retry) } else { due }
    }

    /// The socket, and the events to wait for on it.
    pub(crate) fn interest(&mut self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        let more = !self.machine.outgoing().is_empty();
        let flags = if more { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        Some((self.stream.as_ref()?.as_fd(), flags))
    }

    /// The descriptor of the session, for a command to inherit. None over TCP: the node ends such a
    /// session if it gets no heartbeats, and only this process sends them.
    pub(crate) fn session(&self) -> Option<BorrowedFd<'_>> {
        match self.stream.as_ref()? {
            Stream::Unix(stream) => Some(stream.as_fd()),
            Stream::Tcp(_) => None,
        }
    }

    /// Read what has arrived on the socket.
    pub(crate) fn read(&mut self, now: Moment) {
        let Some(stream) = &self.stream else { return };
        let mut bytes = [0; 8192];
        loop {
            match recv(stream, &mut bytes, RecvFlags::DONTWAIT) {
                Ok((_, count @ 1..)) => {
                    self.machine.receive(now, &bytes[..count]);
                    if count < bytes.len() {
                        break;
                    }
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => break,
                Ok(_) | Err(_) => {
                    self.disconnected(now);
                    break;
                }
            }
        }
        self.flush();
    }

    /// Send as much as the socket takes without blocking.
    pub(crate) fn flush(&mut self) {
        let Some(stream) = &self.stream else { return };
        let outgoing = self.machine.outgoing();
        while !outgoing.is_empty() {
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            match send(stream, outgoing, flags) {
                Ok(count) => drop(outgoing.drain(..count)),
                Err(rustix::io::Errno::INTR) => {}
                // A closed connection is noticed when it is read, after its last message.
                Err(_) => break,
            }
        }
    }

    fn disconnected(&mut self, now: Moment) {
        self.stream = None;
        self.retry = now;
        self.backoff.reset();
        self.machine.disconnected(now);
    }

    /// Why the last attempt to start a node failed. Commands that cannot go on without one end.
    pub(crate) fn cannot_start(&mut self) -> Option<Exit> {
        self.cannot_start.take()
    }

    /// The next event of the session.
    pub(crate) fn event(&mut self) -> Option<Event> {
        self.machine.event()
    }
}

/// True if the error means that no process listens at the endpoint.
fn is_nobody(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound)
}

/// The error of a command that finds no node.
fn no_node(endpoint: &Endpoint, error: &io::Error) -> Exit {
    if error.kind() == ErrorKind::PermissionDenied {
        // The error says who may use the socket.
        return Exit::new(exit::REFUSED, format!("cannot use the node at {endpoint}: {error}"));
    }
    let text = if endpoint.is_own() && is_nobody(error) {
        format!(
            "no node runs for this user at {endpoint}; `doorway run` and `doorway lock` start one"
        )
    } else {
        format!("no node at {endpoint}: {error} (is it running? `doorway doctor` looks closer)")
    };
    Exit::new(exit::UNAVAILABLE, text)
}
