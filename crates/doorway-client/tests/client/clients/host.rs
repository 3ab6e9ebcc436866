//! The model of a node, with real sockets and the real clock.

use std::io::{ErrorKind, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use doorway_client::{Endpoint, Moment};
use doorway_protocol::{Reply, put};

use crate::server::Server;

/// A model of a node that listens.
pub(crate) struct Host {
    pub(crate) endpoint: Endpoint,
    world: Arc<World>,
    /// The thread that accepts connections, and waits for the threads that serve them.
    listener: Option<JoinHandle<()>>,
}

struct World {
    server: Mutex<Server>,
    /// Whether the node neither reads nor writes.
    mute: AtomicBool,
    over: AtomicBool,
    connections: AtomicUsize,
}

static NAMES: AtomicUsize = AtomicUsize::new(0);

impl Host {
    /// A node that listens on an abstract Unix socket.
    pub(crate) fn unix(ttl: Duration) -> Self {
        let number = NAMES.fetch_add(1, SeqCst);
        let name = format!("doorway-clients-{}-{number}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).expect("the system provides sockets");
        let listener = UnixListener::bind_addr(&address).expect("the system provides sockets");
        listener.set_nonblocking(true).expect("the system provides sockets");
        let accept = move || {
            let (stream, _) = listener.accept().ok()?;
            stream.set_nonblocking(true).expect("the system provides sockets");
            Some(stream)
        };
        Self::start(Endpoint::Abstract(name), Server::new(ttl.as_nanos() as u64, false), accept)
    }

    /// A node that listens on TCP; `secure` encrypts a connection.
    #[cfg(feature = "tls")]
    pub(crate) fn tcp<S: Read + Write + Send + 'static>(
        ttl: Duration,
        mut secure: impl FnMut(std::net::TcpStream) -> S + Send + 'static,
    ) -> Self {
        let listener =
            std::net::TcpListener::bind("127.0.0.1:0").expect("the system provides sockets");
        listener.set_nonblocking(true).expect("the system provides sockets");
        let port = listener.local_addr().expect("the system provides sockets").port();
        let accept = move || {
            let (stream, _) = listener.accept().ok()?;
            stream.set_nonblocking(true).expect("the system provides sockets");
            Some(secure(stream))
        };
        let endpoint = Endpoint::Tcp("127.0.0.1".to_owned(), port);
        Self::start(endpoint, Server::new(ttl.as_nanos() as u64, true), accept)
    }

    fn start<S: Read + Write + Send + 'static>(
        endpoint: Endpoint,
        mut server: Server,
        mut accept: impl FnMut() -> Option<S> + Send + 'static,
    ) -> Self {
        server.pass(Moment::now().0);
        let world = Arc::new(World {
            server: Mutex::new(server),
            mute: AtomicBool::new(false),
            over: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
        });
        let shared = Arc::clone(&world);
        let listener = thread::spawn(move || {
            let mut serving = vec![];
            while !shared.over.load(SeqCst) {
                if let Some(stream) = accept() {
                    let number = shared.connections.fetch_add(1, SeqCst);
                    let world = Arc::clone(&shared);
                    serving.push(thread::spawn(move || world.serve(number, stream)));
                }
                if !shared.mute.load(SeqCst) {
                    shared.server.lock().expect("no other thread panicked").pass(Moment::now().0);
                }
                thread::sleep(Duration::from_micros(500));
            }
            drop(accept);
            for thread in serving {
                thread.join().expect("no other thread panicked");
            }
        });
        Self { endpoint, world, listener: Some(listener) }
    }

    /// Forget everything, as a node does that is killed and started again.
    pub(crate) fn crash(&self) {
        self.world.server.lock().expect("no other thread panicked").crash();
    }

    /// Tell all clients that the node stops in this many milliseconds.
    pub(crate) fn stopping(&self, ms: u64) {
        let mut server = self.world.server.lock().expect("no other thread panicked");
        for connection in server.connections.values_mut() {
            put(&Reply::Stopping(ms), &mut connection.out);
        }
    }

    /// Neither read nor write, or begin to do so again.
    pub(crate) fn mute(&self, on: bool) {
        self.world.mute.store(on, SeqCst);
    }

    /// How many heartbeats the node has received.
    pub(crate) fn heartbeats(&self) -> usize {
        self.world.server.lock().expect("no other thread panicked").heartbeats
    }

    /// How many connections there have been.
    pub(crate) fn connections(&self) -> usize {
        self.world.connections.load(SeqCst)
    }

    /// How many locks are held, and how many sessions are open.
    pub(crate) fn count(&self) -> (usize, usize) {
        let server = self.world.server.lock().expect("no other thread panicked");
        let held = server.locks.values().filter(|lock| lock.holder.is_some()).count();
        (held, server.sessions())
    }
}

impl Drop for Host {
    /// Stop to listen, and close all connections.
    fn drop(&mut self) {
        self.world.over.store(true, SeqCst);
        let ended = self.listener.take().map(JoinHandle::join);
        assert!(thread::panicking() || ended.is_none_or(|ended| ended.is_ok()));
    }
}

impl World {
    fn serve(&self, number: usize, mut stream: impl Read + Write) {
        self.server.lock().expect("no other thread panicked").connect(number);
        let mut buffer = [0; 4096];
        while !self.over.load(SeqCst) {
            if self.mute.load(SeqCst) {
                thread::sleep(Duration::from_millis(1));
                continue;
            }
            match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => {
                    let mut server = self.server.lock().expect("no other thread panicked");
                    server.pass(Moment::now().0);
                    server.receive(number, &buffer[..count]);
                }
                Err(why) if why.kind() == ErrorKind::WouldBlock => {}
                Err(_) => break,
            }
            let out = match self
                .server
                .lock()
                .expect("no other thread panicked")
                .connections
                .get_mut(&number)
            {
                Some(connection) => std::mem::take(&mut connection.out),
                None => break,
            };
            if !out.is_empty() && stream.write_all(&out).and_then(|()| stream.flush()).is_err() {
                break;
            }
            thread::sleep(Duration::from_micros(200));
        }
        self.server.lock().expect("no other thread panicked").disconnect(number);
    }
}
