//! A session with a node over a socket. It reconnects by itself and never blocks for long.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::Duration;

use doorway_client::{Endpoint, Endpoints, Event, Line, Moment, Route, Setup, Stream, TlsConfig};
use doorway_protocol::Backoff;
use rustix::event::PollFlags;
use rustix::net::{RecvFlags, recv};

use super::dial::Dial;
use super::exit::{self, Exit};
use super::options::Start;
use super::start::Starter;

/// How long to wait before the next attempt to connect, at first and at most.
const DELAYS: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(250));

/// How long an attempt to connect to a Unix socket may take. The event loop is blocked during that
/// time, but only if the backlog of the node is full.
const CONNECT: Duration = Duration::from_millis(500);

/// How long an attempt to connect over TCP may take.
const DIAL: Duration = Duration::from_secs(5);

/// How long a command that does not wait gives a node to accept its connection, and again to answer
/// over a network.
pub(crate) const QUICK: Duration = Duration::from_secs(2);

/// How long a request waits for a node that cannot be reached, unless it has a deadline.
const PATIENCE: Duration = Duration::from_secs(10);

/// For how long a command tries to reach a node, as long as none has welcomed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Persistence {
    /// It tries every endpoint once, and does not wait long for an answer.
    Once,
    /// It tries again for some time if the network may be at fault, and once if nobody listens.
    Usual,
    /// It tries again until the deadline of its request.
    Deadline,
}

/// A session with a node, and its connection.
pub(crate) struct Link {
    route: Route,
    /// The addresses of the hosts of TCP endpoints. They are looked up once, because a lookup may
    /// block.
    addresses: BTreeMap<String, Vec<SocketAddr>>,
    /// The state of the session.
    pub(crate) machine: Line,
    stream: Option<Stream>,
    /// The attempt to connect over TCP that is under way.
    dial: Option<Dial>,
    persistence: Persistence,
    /// True once a node has welcomed this client.
    is_welcome: bool,
    /// Starts a node if none runs; none if that is not allowed.
    starter: Option<Starter>,
    /// Why there is no hope of a node.
    hopeless: Option<Exit>,
}

impl Link {
    /// A session with one of the nodes at these endpoints, not connected yet.
    pub(crate) fn new(
        endpoints: Endpoints,
        mut setup: Setup,
        tls: Option<TlsConfig>,
        start: Start,
        persistence: Persistence,
    ) -> Self {
        setup.nodes = endpoints.iter().count();
        let tcp = endpoints.iter().filter(|endpoint| is_tcp(endpoint)).count();
        setup.patience = match persistence {
            Persistence::Once => QUICK * u32::try_from(setup.nodes + tcp).unwrap_or(u32::MAX),
            Persistence::Usual | Persistence::Deadline => PATIENCE,
        };
        let may_start = start != Start::Never && endpoints.iter().any(Endpoint::is_own);
        let starter = may_start.then(|| Starter::new(start == Start::TellAlways));
        let mut machine = Line::new(setup, Moment::now());
        if let Some(tls) = tls {
            machine.encrypt(tls);
        }
        Self {
            route: Route::new(endpoints, Backoff::new(DELAYS.0, DELAYS.1)),
            addresses: BTreeMap::new(),
            machine,
            stream: None,
            dial: None,
            persistence,
            is_welcome: false,
            starter,
            hopeless: None,
        }
    }

    /// The endpoint of the node, or of the next attempt to connect.
    pub(crate) fn endpoint(&self) -> &Endpoint {
        self.route.endpoint()
    }

    /// Begin to connect, and start a node if none runs and that is allowed. Fails if there is no
    /// hope of a node.
    pub(crate) fn open(&mut self) -> Result<(), Exit> {
        let now = Moment::now();
        match self.connect(now, CONNECT) {
            Err(error) if is_nobody(&error) && self.endpoint().is_own() => {
                match &mut self.starter {
                    Some(starter) => {
                        let stream = starter.start(self.route.endpoint())?;
                        self.connected(stream);
                    }
                    None => self.failed(now, &error),
                }
            }
            Err(error) => self.failed(now, &error),
            Ok(stream) => stream.into_iter().for_each(|stream| self.connected(stream)),
        }
        self.hopeless().map_or(Ok(()), Err)
    }

    /// Connect to the current endpoint, or begin to do so over TCP.
    fn connect(&mut self, now: Moment, within: Duration) -> io::Result<Option<Stream>> {
        let Endpoint::Tcp(host, port) = self.route.endpoint() else {
            return self.route.endpoint().connect_within(within).map(Some);
        };
        let name = self.route.endpoint().to_string();
        let known = self.addresses.get(&name).cloned();
        let look_up = || Ok((host.as_str(), *port).to_socket_addrs()?.collect());
        let addresses: Vec<_> = known.map_or_else(look_up, Ok::<_, io::Error>)?;
        self.addresses.insert(name, addresses.clone());
        let limit = if self.persistence == Persistence::Once { QUICK } else { DIAL };
        self.dial = Some(Dial::begin(addresses, now, limit)?);
        Ok(None)
    }

    fn connected(&mut self, stream: Stream) {
        if let Some(starter) = &mut self.starter {
            starter.connected(&stream);
        }
        self.stream = Some(stream);
        self.machine.connected_to(Moment::now(), self.route.endpoint());
        self.flush();
    }

    /// The current endpoint cannot be reached: go on with the next one, or give up.
    fn failed(&mut self, now: Moment, error: &io::Error) {
        use ErrorKind::{
            ConnectionRefused, ConnectionReset, HostUnreachable, NetworkUnreachable, TimedOut,
        };
        let place = self.route.endpoint().to_string();
        self.machine.cannot_connect(&place, &error.to_string());
        let network = [ConnectionRefused, ConnectionReset, HostUnreachable, NetworkUnreachable];
        let may_pass = match self.persistence {
            _ if error.kind() == ErrorKind::PermissionDenied => false,
            Persistence::Once => false,
            Persistence::Usual if is_tcp(self.route.endpoint()) => {
                error.kind() == TimedOut || network.contains(&error.kind())
            }
            Persistence::Usual => error.kind() == TimedOut,
            Persistence::Deadline => true,
        };
        let exit = (!may_pass && !self.is_welcome).then(|| self.no_node(error));
        self.go_on(now, exit);
    }

    /// Go on with the next endpoint. If there is none, and another attempt cannot help, the command
    /// ends.
    fn go_on(&mut self, now: Moment, exit: Option<Exit>) {
        self.route.failed(now, self.machine.is_bound());
        if self.route.rounds() > 0 {
            self.hopeless = exit;
        }
    }

    /// Do what is due: heartbeats, an attempt to reconnect, sending. This takes no longer than
    /// until `until`, when something else is due.
    pub(crate) fn tick(&mut self, now: Moment, until: Moment) {
        self.machine.tick(now);
        if self.stream.is_some() && self.machine.must_close() {
            self.flush();
            self.disconnected(now);
        }
        if self.stream.is_none() && self.machine.wants_connection() {
            self.reconnect(now, until.since(now).min(CONNECT));
        }
        self.flush();
    }

    /// Go on to connect, if that is due.
    fn reconnect(&mut self, now: Moment, within: Duration) {
        let stream = if let Some(dial) = self.dial.take() {
            dial.finish(now).map(|finished| match finished {
                Ok(stream) => Some(stream),
                Err(dial) => {
                    self.dial = Some(dial);
                    None
                }
            })
        } else if now >= self.route.due() && !within.is_zero() {
            self.connect(now, within)
        } else {
            return;
        };
        match stream {
            Ok(stream) => stream.into_iter().for_each(|stream| self.connected(stream)),
            Err(error) => {
                let endpoint = self.route.endpoint();
                if let Some(starter) = &mut self.starter
                    && is_nobody(&error)
                    && endpoint.is_own()
                {
                    self.hopeless = starter.start_again(endpoint, now).err();
                    self.route.failed(now, self.machine.is_bound());
                } else {
                    self.failed(now, &error);
                }
            }
        }
    }

    /// When to call [`Link::tick`] again at the latest.
    pub(crate) fn next_due(&self) -> Moment {
        let due = self.machine.next_due();
        match &self.dial {
            _ if self.stream.is_some() || !self.machine.wants_connection() => due,
            Some(dial) => due.min(dial.until()),
            None => due.min(self.route.due()),
        }
    }

    /// Whether there is a connection to a node.
    pub(crate) fn is_connected(&self) -> bool {
        self.stream.is_some()
    }

    /// The socket, and the events to wait for on it.
    pub(crate) fn interest(&mut self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        if let Some(dial) = &self.dial {
            return Some((dial.as_fd(), PollFlags::OUT));
        }
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
        if self.machine.is_talking() {
            self.is_welcome = true;
            self.route.serves(now);
        }
        self.flush();
    }

    /// Send as much as the socket takes without blocking.
    pub(crate) fn flush(&mut self) {
        if let Some(stream) = &self.stream {
            self.machine.flush(stream);
        }
    }

    fn disconnected(&mut self, now: Moment) {
        self.stream = None;
        self.machine.disconnected(now);
        if self.machine.is_turned_away() {
            // The node of this user may have ended just now. Then another one is started.
            let is_replaced = self.starter.is_some() && self.endpoint().is_own();
            let gives_up =
                self.persistence == Persistence::Once && !self.is_welcome && !is_replaced;
            let exit = gives_up.then(|| Exit::new(exit::UNAVAILABLE, self.machine.no_node(now)));
            self.go_on(now, exit);
        } else {
            self.route.ended(now, self.machine.is_bound());
        }
    }

    /// Why there is no hope of a node, if there is none. Commands that cannot go on without one
    /// end.
    pub(crate) fn hopeless(&mut self) -> Option<Exit> {
        self.hopeless.take()
    }

    /// May the command wait for a node that is away? Not if none has ever welcomed it: then the
    /// address may be wrong.
    pub(crate) fn outlasts_nodes(&self) -> bool {
        self.is_welcome || self.persistence == Persistence::Deadline
    }

    /// Be as patient as commands that wait, from now on.
    pub(crate) fn be_patient(&mut self) {
        self.persistence = Persistence::Usual;
        self.machine.set_patience(PATIENCE);
    }

    /// The next event of the session.
    pub(crate) fn event(&mut self) -> Option<Event> {
        self.machine.event()
    }

    /// The error of a command that finds no node at the current endpoint, or at any.
    fn no_node(&mut self, error: &io::Error) -> Exit {
        let endpoint = self.route.endpoint();
        if error.kind() == ErrorKind::PermissionDenied {
            // The error says who may use the socket.
            return Exit::new(exit::REFUSED, format!("cannot use the node at {endpoint}: {error}"));
        }
        let text = if self.route.endpoints().iter().count() > 1 {
            self.machine.no_node(Moment::now())
        } else if endpoint.is_own() && is_nobody(error) {
            format!(
                "no node runs for this user at {endpoint}; `doorway run` and `doorway lock` start \
                 one"
            )
        } else {
            format!("no node at {endpoint}: {error} (is it running? `doorway doctor` looks closer)")
        };
        Exit::new(exit::UNAVAILABLE, text)
    }
}

/// True if the error means that no process listens at the endpoint.
fn is_nobody(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound)
}

fn is_tcp(endpoint: &Endpoint) -> bool {
    matches!(endpoint, Endpoint::Tcp(..))
}
