//! A network in memory, between machines whose clocks run at different rates.
//!
//! It carries connections as TCP does: in order, and each piece after a delay. What is sent while a
//! link is cut is lost, and its connection stays silent from then on. What is sent while a link is
//! held back arrives later. A process that ends without sending anything leaves its connections
//! open: the other side learns of it when it sends something to the next process of the machine.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use doorway_node::net::Network;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::plan::Dice;

/// The longest delay of a piece of a connection, in microseconds.
const LATENCY: u64 = 20_000;

/// How many pieces may be on their way in one direction of a connection.
const WINDOW: usize = 64;

/// The port of all nodes.
pub(crate) const PORT: u16 = 7400;

/// The name of a node, and of its machine.
pub(crate) fn name(node: usize) -> String {
    format!("n{node}")
}

/// The address of a node.
pub(crate) fn address(node: usize) -> String {
    format!("n{node}:{PORT}")
}

/// The network of a simulation.
pub(crate) struct SimulatedNetwork(Mutex<State>);

struct State {
    now: Duration,
    dice: Dice,
    hosts: Vec<Host>,
    /// How many faults cut what goes from one machine to another, and how many hold it back.
    faults: BTreeMap<(usize, usize), (u32, u32)>,
    connections: BTreeMap<u64, [Side; 2]>,
    last_connection: u64,
}

/// What the network knows of a machine.
#[derive(Default)]
struct Host {
    /// Counts the processes of the machine.
    process: u64,
    runs: bool,
    /// Connections that the process has not accepted yet, if it listens.
    backlog: Option<VecDeque<u64>>,
    acceptor: Option<Waker>,
}

/// One side of a connection: first the one that made it, then the other one.
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Default)]
struct Side {
    host: usize,
    process: u64,
    /// What is on its way to this side, and when it arrives.
    coming: VecDeque<(Duration, Piece)>,
    /// Something was lost on its way here, so nothing after it can arrive.
    gap: bool,
    inbox: VecDeque<u8>,
    established: bool,
    /// The other side has sent its last byte.
    ended: bool,
    reset: bool,
    /// This side has sent its last byte.
    finished: bool,
    /// The process has closed this side.
    closed: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

enum Piece {
    Open,
    Opened,
    Bytes(Vec<u8>),
    End,
    Reset,
}

impl SimulatedNetwork {
    pub(crate) fn new(hosts: usize, dice: Dice) -> Arc<Self> {
        Arc::new(Self(Mutex::new(State {
            now: Duration::ZERO,
            dice,
            hosts: (0..hosts).map(|_| Host::default()).collect(),
            faults: BTreeMap::new(),
            connections: BTreeMap::new(),
            last_connection: 0,
        })))
    }

    /// A process starts on a machine.
    pub(crate) fn start(self: &Arc<Self>, host: usize) -> Port {
        let mut state = self.0.lock();
        let machine = &mut state.hosts[host];
        machine.process += 1;
        machine.runs = true;
        Port { network: Arc::clone(self), host, process: machine.process }
    }

    /// The process of a machine ends, and sends nothing more.
    pub(crate) fn kill(&self, host: usize) {
        let machine = &mut self.0.lock().hosts[host];
        machine.process += 1;
        (machine.runs, machine.backlog, machine.acceptor) = (false, None, None);
    }

    /// From now on, what goes from one machine to another is lost.
    pub(crate) fn cut(&self, from: usize, to: usize) {
        self.0.lock().faults.entry((from, to)).or_default().0 += 1;
    }

    /// Undo one [`SimulatedNetwork::cut`].
    pub(crate) fn mend(&self, from: usize, to: usize) {
        self.0.lock().faults.entry((from, to)).or_default().0 -= 1;
    }

    /// From now on, what goes from one machine to another waits.
    pub(crate) fn hold_back(&self, from: usize, to: usize) {
        self.0.lock().faults.entry((from, to)).or_default().1 += 1;
    }

    /// Undo one [`SimulatedNetwork::hold_back`].
    pub(crate) fn let_go(&self, from: usize, to: usize) {
        self.0.lock().faults.entry((from, to)).or_default().1 -= 1;
    }

    /// Deliver everything that arrives until now.
    pub(crate) fn deliver(&self, now: Duration) {
        let mut wakers = Vec::new();
        let mut state = self.0.lock();
        state.now = now;
        let all: Vec<u64> = state.connections.keys().copied().collect();
        for connection in all {
            for side in 0..2 {
                while let Some(piece) = state.arrived(connection, side) {
                    state.receive(connection, side, piece, &mut wakers);
                }
            }
            state.forget_if_dead(connection);
        }
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl State {
    fn faults(&self, from: usize, to: usize) -> (u32, u32) {
        self.faults.get(&(from, to)).copied().unwrap_or_default()
    }

    fn sides(&mut self, connection: u64) -> &mut [Side; 2] {
        self.connections.get_mut(&connection).expect("a connection is kept while it is in use")
    }

    /// Send something to a side of a connection.
    fn send(&mut self, connection: u64, to: usize, piece: Piece) {
        let arrives = self.now + Duration::from_micros(self.dice.below(LATENCY));
        let sides = self.sides(connection);
        let (sender, host) = (sides[1 - to].host, sides[to].host);
        let cut = self.faults(sender, host).0 > 0;
        let side = &mut self.sides(connection)[to];
        side.gap |= cut;
        if !side.gap {
            let last = side.coming.back().map_or(Duration::ZERO, |(last, _)| *last);
            side.coming.push_back((arrives.max(last), piece));
        }
    }

    /// Take the next piece that has arrived at a side.
    fn arrived(&mut self, connection: u64, to: usize) -> Option<Piece> {
        let now = self.now;
        let sides = self.sides(connection);
        let (sender, host) = (sides[1 - to].host, sides[to].host);
        let (cut, held) = self.faults(sender, host);
        // A machine that is down answers nothing. The sender tries again until it is up.
        let waits = held > 0 || !self.hosts[host].runs;
        let side = &mut self.sides(connection)[to];
        if waits || side.coming.front().is_none_or(|(arrives, _)| *arrives > now) {
            return None;
        }
        if cut > 0 {
            side.gap = true;
            side.coming.clear();
        }
        side.coming.pop_front().map(|(_, piece)| piece)
    }

    /// A piece has arrived at a side.
    fn receive(&mut self, connection: u64, to: usize, piece: Piece, wakers: &mut Vec<Waker>) {
        let host = self.sides(connection)[to].host;
        let machine = &mut self.hosts[host];
        let process = machine.process;
        if matches!(piece, Piece::Open) {
            let answer = match &mut machine.backlog {
                Some(backlog) => {
                    backlog.push_back(connection);
                    wakers.extend(machine.acceptor.take());
                    let side = &mut self.sides(connection)[to];
                    (side.process, side.established) = (process, true);
                    Piece::Opened
                }
                None => Piece::Reset,
            };
            return self.send(connection, 1 - to, answer);
        }
        let [one, two] = self.sides(connection);
        let (side, other) = if to == 0 { (one, two) } else { (two, one) };
        wakers.extend(other.writer.take());
        if side.process != process || side.closed {
            if !matches!(piece, Piece::Reset) {
                self.send(connection, 1 - to, Piece::Reset);
            }
            return;
        }
        match piece {
            Piece::Open => {}
            Piece::Opened => side.established = true,
            Piece::Bytes(bytes) => side.inbox.extend(bytes),
            Piece::End => side.ended = true,
            Piece::Reset => side.reset = true,
        }
        wakers.extend(side.reader.take());
        wakers.extend(side.writer.take());
    }

    /// Forget a connection that no process has open any more.
    fn forget_if_dead(&mut self, connection: u64) {
        let hosts = &self.hosts;
        let Some(sides) = self.connections.get(&connection) else { return };
        let open = |side: &Side| !side.closed && side.process == hosts[side.host].process;
        if !sides.iter().any(open) {
            self.connections.remove(&connection);
        }
    }
}

/// The network as a process of a machine sees it.
#[derive(Clone)]
pub(crate) struct Port {
    network: Arc<SimulatedNetwork>,
    host: usize,
    process: u64,
}

impl Network for Port {
    type Stream = Stream;
    type Listener = ();

    async fn bind(&self, _address: &str) -> io::Result<()> {
        let mut state = self.network.0.lock();
        let host = &mut state.hosts[self.host];
        if host.process != self.process {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        host.backlog = Some(VecDeque::new());
        Ok(())
    }

    async fn accept(&self, _listener: &()) -> io::Result<(Stream, SocketAddr)> {
        std::future::poll_fn(|context| {
            let mut state = self.network.0.lock();
            let host = &mut state.hosts[self.host];
            if host.process != self.process {
                return Poll::Pending; // The process was killed.
            }
            let Some(connection) = host.backlog.as_mut().and_then(VecDeque::pop_front) else {
                host.acceptor = Some(context.waker().clone());
                return Poll::Pending;
            };
            let caller = state.sides(connection)[0].host as u8;
            let caller = SocketAddr::from((Ipv4Addr::new(10, 0, 0, caller), PORT));
            Poll::Ready(Ok((Stream { port: self.clone(), connection, side: 1 }, caller)))
        })
        .await
    }

    async fn connect(&self, address: &str) -> io::Result<Stream> {
        let host = address.trim_start_matches('n').split(':').next();
        let host = host.and_then(|host| host.parse().ok()).expect("an address of this network");
        let connection = {
            let mut state = self.network.0.lock();
            state.last_connection += 1;
            let connection = state.last_connection;
            let here = Side { host: self.host, process: self.process, ..Side::default() };
            let there = Side { host, ..Side::default() };
            state.connections.insert(connection, [here, there]);
            state.send(connection, 1, Piece::Open);
            connection
        };
        let stream = Stream { port: self.clone(), connection, side: 0 };
        std::future::poll_fn(|context| {
            stream.poll(|side| {
                if side.reset {
                    return Poll::Ready(Err(io::Error::from(io::ErrorKind::ConnectionRefused)));
                }
                if side.established {
                    return Poll::Ready(Ok(()));
                }
                side.reader = Some(context.waker().clone());
                Poll::Pending
            })
        })
        .await?;
        Ok(stream)
    }
}

/// One side of a connection, for its process.
pub(crate) struct Stream {
    port: Port,
    connection: u64,
    side: usize,
}

impl Stream {
    /// Look for something in this side of the connection. A process that was killed finds nothing.
    fn poll<T>(&self, look: impl FnOnce(&mut Side) -> Poll<T>) -> Poll<T> {
        let mut state = self.port.network.0.lock();
        if self.is_dead(&state) {
            return Poll::Pending;
        }
        look(&mut state.sides(self.connection)[self.side])
    }

    /// Whether the process of this side was killed. It sends nothing more, although what it leaves
    /// behind is dropped, and its connections may be forgotten.
    fn is_dead(&self, state: &State) -> bool {
        state.hosts[self.port.host].process != self.port.process
    }

    /// Send the last byte, if that was not done yet.
    fn finish(&self, state: &mut State) {
        if self.is_dead(state) {
            return;
        }
        let side = &mut state.sides(self.connection)[self.side];
        if !std::mem::replace(&mut side.finished, true) {
            state.send(self.connection, 1 - self.side, Piece::End);
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll(|side| {
            if side.inbox.is_empty() {
                if side.reset {
                    return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
                }
                if side.ended {
                    return Poll::Ready(Ok(()));
                }
                side.reader = Some(context.waker().clone());
                return Poll::Pending;
            }
            let (first, _) = side.inbox.as_slices();
            let count = first.len().min(buffer.remaining());
            buffer.put_slice(&first[..count]);
            side.inbox.drain(..count);
            Poll::Ready(Ok(()))
        })
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut state = self.port.network.0.lock();
        if self.is_dead(&state) {
            return Poll::Pending;
        }
        let sides = state.sides(self.connection);
        if sides[self.side].reset || sides[self.side].finished {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if sides[1 - self.side].coming.len() >= WINDOW {
            sides[self.side].writer = Some(context.waker().clone());
            return Poll::Pending;
        }
        state.send(self.connection, 1 - self.side, Piece::Bytes(bytes.to_vec()));
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.finish(&mut self.port.network.0.lock());
        Poll::Ready(Ok(()))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let mut state = self.port.network.0.lock();
        self.finish(&mut state);
        if !self.is_dead(&state) {
            state.sides(self.connection)[self.side].closed = true;
        }
    }
}
