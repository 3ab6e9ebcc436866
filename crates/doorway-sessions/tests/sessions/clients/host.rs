//! The sessions of a node in a shell of its own, with real sockets and the real clock.
//!
//! Its threads look for work again and again: an encrypted stream cannot be waited for together
//! with the shell.

use std::io::{ErrorKind, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use doorway_client::{Endpoint, Moment};
use doorway_sessions::{Connection, Input};

use crate::shell::Shell;

/// A node that listens.
pub(crate) struct Host {
    pub(crate) endpoint: Endpoint,
    world: Arc<World>,
    /// The thread that accepts connections, and waits for the threads that serve them.
    listener: Option<JoinHandle<()>>,
}

struct World {
    shell: Mutex<Shell>,
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
        Self::start(Endpoint::Abstract(name), Shell::new(Moment::now(), ttl, false, None), accept)
    }

    /// A node that listens on TCP; `secure` encrypts a connection.
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
        Self::start(endpoint, Shell::new(Moment::now(), ttl, true, None), accept)
    }

    fn start<S: Read + Write + Send + 'static>(
        endpoint: Endpoint,
        shell: Shell,
        mut accept: impl FnMut() -> Option<S> + Send + 'static,
    ) -> Self {
        let world = Arc::new(World {
            shell: Mutex::new(shell),
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
                    shared.shell().pass(Moment::now());
                }
                // Nothing wakes this thread: it accepts connections and lets the time of the node
                // pass.
                thread::sleep(Duration::from_micros(500));
            }
            drop(accept);
            for thread in serving {
                thread.join().expect("no other thread panicked");
            }
        });
        Self { endpoint, world, listener: Some(listener) }
    }

    /// Kill the node, and start it again.
    pub(crate) fn crash(&self) {
        let mut shell = self.world.shell();
        shell.kill();
        shell.start(false);
    }

    /// Tell all clients that the node stops in this many milliseconds.
    pub(crate) fn drain(&self, ms: u64) {
        self.world.shell().run(Input::Drain(Duration::from_millis(ms)));
    }

    /// Neither read nor write, or begin to do so again.
    pub(crate) fn mute(&self, on: bool) {
        self.world.mute.store(on, SeqCst);
    }

    /// How many heartbeats the node has received.
    pub(crate) fn heartbeats(&self) -> usize {
        self.world.shell().heartbeats
    }

    /// How many connections there have been.
    pub(crate) fn connections(&self) -> usize {
        self.world.connections.load(SeqCst)
    }

    /// How many requests wait for a lock.
    pub(crate) fn waiting(&self) -> usize {
        self.world.shell().locks.waiting()
    }

    /// How many locks are held, and how many sessions are open.
    pub(crate) fn count(&self) -> (usize, usize) {
        let shell = self.world.shell();
        (shell.locks.held(), shell.sessions.len())
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
    fn shell(&self) -> MutexGuard<'_, Shell> {
        self.shell.lock().expect("no other thread panicked")
    }

    fn serve(&self, number: usize, mut stream: impl Read + Write) {
        let connection = Connection(number as u64);
        self.shell().connect(connection, std::process::id());
        let mut buffer = [0; 4096];
        while !self.over.load(SeqCst) {
            if self.mute.load(SeqCst) {
                // The node hangs for as long as the test says.
                thread::sleep(Duration::from_millis(1));
                continue;
            }
            match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => {
                    let mut shell = self.shell();
                    shell.pass(Moment::now());
                    shell.receive(connection, &buffer[..count]);
                }
                Err(why) if why.kind() == ErrorKind::WouldBlock => {}
                Err(_) => break,
            }
            let (out, open) = {
                let mut shell = self.shell();
                let out = shell.outgoing(connection).map(std::mem::take).unwrap_or_default();
                let open = shell.is_connected(connection) && !shell.is_closing(connection);
                (out, open)
            };
            let written = stream.write_all(&out).and_then(|()| stream.flush());
            if !open || !out.is_empty() && written.is_err() {
                break;
            }
            // Bytes of the client, or a step of another connection, may give this one something to
            // write, and no call waits for both.
            thread::sleep(Duration::from_micros(200));
        }
        self.shell().hang_up(connection);
    }
}
