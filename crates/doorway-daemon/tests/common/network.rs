//! A network between two sides that can be cut and paused.

#![expect(clippy::unwrap_used, reason = "where nobody can listen, nothing can be tested")]

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

#[derive(Default)]
struct State {
    /// Nothing arrives in either direction until it continues.
    held: Mutex<bool>,
    goes_on: Condvar,
    /// New connections are closed.
    closed: AtomicBool,
    /// How many were closed.
    refused: AtomicUsize,
    open: Mutex<Vec<TcpStream>>,
}

/// A proxy that forwards everything from one address to another.
pub(crate) struct Network {
    /// The address of the proxy.
    pub(crate) address: String,
    state: Arc<State>,
}

impl Network {
    /// A proxy in front of this address.
    pub(crate) fn new(target: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (state, target) = (Arc::<State>::default(), target.to_owned());
        let shared = Arc::clone(&state);
        // It ends with the process.
        thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let Some(far) = TcpStream::connect(&target).ok() else { continue };
                let _ = shared.carry(near, far);
            }
        });
        Self { address, state }
    }

    /// Cut all connections; new ones can be made.
    pub(crate) fn cut(&self) {
        for stream in self.state.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Forward nothing while connections stay open; or continue.
    pub(crate) fn hold(&self, held: bool) {
        *self.state.held.lock().unwrap() = held;
        self.state.goes_on.notify_all();
    }

    /// How many connections were refused.
    pub(crate) fn refused(&self) -> usize {
        self.state.refused.load(Ordering::SeqCst)
    }

    /// Cut all connections and refuse new ones; or accept them again.
    pub(crate) fn close(&self, closed: bool) {
        self.state.closed.store(closed, Ordering::SeqCst);
        if closed {
            self.cut();
        }
    }
}

impl State {
    fn carry(self: &Arc<Self>, near: TcpStream, far: TcpStream) -> std::io::Result<()> {
        if self.closed.load(Ordering::SeqCst) {
            self.refused.fetch_add(1, Ordering::SeqCst);
            return Ok(());
        }
        near.set_nodelay(true)?;
        far.set_nodelay(true)?;
        let mut open = self.open.lock().unwrap();
        open.retain(|stream| stream.peer_addr().is_ok());
        open.extend([near.try_clone()?, far.try_clone()?]);
        drop(open);
        for (from, to) in [(near.try_clone()?, far.try_clone()?), (far, near)] {
            let state = Arc::clone(self);
            thread::spawn(move || state.copy(from, to));
        }
        Ok(())
    }

    fn copy(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut bytes = [0; 16 << 10];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            drop(self.goes_on.wait_while(self.held.lock().unwrap(), |held| *held).unwrap());
            if to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }
}
