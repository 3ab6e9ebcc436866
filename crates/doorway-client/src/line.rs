//! A session over a connection that may be encrypted.

use std::io;
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::Arc;

use doorway_protocol::{Life, Moment};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::endpoint::{Endpoint, Stream};
use crate::machine::{SessionMachine, Setup};
#[cfg(feature = "tls")]
use crate::tls::{Encryption, TlsConfig};

/// A [`SessionMachine`] together with the TLS layer between it and its connection, if there is one.
///
/// It is driven like the machine. Its own methods [`connected_to`](Line::connected_to),
/// [`disconnected`](Line::disconnected), [`receive`](Line::receive), [`flush`](Line::flush) and
/// [`outgoing`](Line::outgoing) take and give the bytes of the connection, which may be encrypted;
/// all other methods are those of the machine.
#[derive(Debug)]
pub struct Line {
    machine: SessionMachine,
    holder: Option<Holder>,
    /// The process that the session lives with, as evidence for the node.
    process: Option<Arc<OwnedFd>>,
    /// Whether that descriptor goes with the next bytes, which are the first of a connection.
    passes: bool,
    #[cfg(feature = "tls")]
    config: Option<TlsConfig>,
    #[cfg(feature = "tls")]
    encryption: Option<Encryption>,
}

impl Line {
    /// A session that is still to be opened, on connections that are not encrypted.
    pub fn new(setup: Setup, now: Moment) -> Self {
        let process = match setup.session {
            Some((_, Life::Process { pid })) => open_process(pid).map(Arc::new),
            _ => None,
        };
        Self {
            machine: SessionMachine::new(setup, now),
            holder: None,
            process,
            passes: false,
            #[cfg(feature = "tls")]
            config: None,
            #[cfg(feature = "tls")]
            encryption: None,
        }
    }

    /// Encrypt every connection over TCP from now on.
    #[cfg(feature = "tls")]
    pub fn encrypt(&mut self, config: TlsConfig) {
        self.config = Some(config);
    }

    /// Tell the machine that a connection to this endpoint was made.
    pub fn connected_to(&mut self, now: Moment, endpoint: &Endpoint) {
        let network = matches!(endpoint, Endpoint::Tcp(..));
        self.machine.connected_to(now, &endpoint.to_string(), network);
        self.passes = !network;
        #[cfg(feature = "tls")]
        if let (Some(config), Endpoint::Tcp(host, _)) = (&self.config, endpoint) {
            match Encryption::new(config, host) {
                Ok(encryption) => self.encryption = Some(encryption),
                Err(refusal) => self.machine.close(refusal),
            }
        }
    }

    /// Tell the machine that the connection has ended.
    pub fn disconnected(&mut self, now: Moment) {
        #[cfg(feature = "tls")]
        {
            self.encryption = None;
        }
        self.machine.disconnected(now);
    }

    /// Handle bytes that were read from the connection.
    pub fn receive(&mut self, now: Moment, bytes: &[u8]) {
        #[cfg(feature = "tls")]
        if let Some(encryption) = &mut self.encryption {
            return encryption.receive(&mut self.machine, now, bytes);
        }
        self.machine.receive(now, bytes);
        if let Some(name) = self.machine.take_holder() {
            self.hold(now, name);
        }
    }

    /// Hold the socket that shows the node, also after it was restarted, that the processes of the
    /// session exist. Without it, the node can only look for this process.
    fn hold(&mut self, now: Moment, name: String) {
        if self.holder.as_ref().is_none_or(|holder| holder.name != name) {
            self.holder = Holder::bind(name).ok();
        }
        if self.holder.is_some() {
            self.machine.show_holder(now);
        }
    }

    /// The socket that the processes of the session hold open, for other processes to inherit.
    pub fn holder(&self) -> Option<BorrowedFd<'_>> {
        self.holder.as_ref().map(|holder| holder.socket.as_fd())
    }

    /// Send what is outgoing as far as possible without waiting. True if something is left.
    ///
    /// With the first bytes of a connection goes the descriptor of the process that the session
    /// lives with, so that the node can mistake no other process for it.
    pub fn flush(&mut self, stream: &Stream) -> bool {
        let process = self.process.clone().filter(|_| self.passes);
        let outgoing = self.outgoing();
        let mut sent = 0;
        let failed = loop {
            if sent == outgoing.len() {
                break None;
            }
            let pass = process.as_ref().filter(|_| sent == 0).map(|process| process.as_fd());
            match stream.send(&outgoing[sent..], pass) {
                Ok(count) => sent += count,
                Err(Errno::INTR) => {}
                Err(why) => break Some(why),
            }
        };
        if failed == Some(Errno::WOULDBLOCK) {
            outgoing.drain(..sent);
        } else {
            outgoing.clear();
            outgoing.shrink_to(1 << 16);
        }
        self.passes &= sent == 0;
        match failed {
            Some(Errno::WOULDBLOCK) => return true,
            // The node has closed the connection. What it sent before is still to be read, and then
            // the end of the connection.
            None | Some(Errno::PIPE | Errno::CONNRESET) => {}
            // Part of a frame may be missing, so the connection cannot be used any more.
            Some(why) => {
                self.machine.break_connection(&format!("cannot send to the node: {why}"));
            }
        }
        false
    }

    /// The bytes that are to be written to the connection. The caller removes what it has written.
    pub fn outgoing(&mut self) -> &mut Vec<u8> {
        #[cfg(feature = "tls")]
        if let Some(encryption) = &mut self.encryption {
            return encryption.outgoing(&mut self.machine);
        }
        self.machine.outgoing()
    }
}

/// The descriptor of a process. Without one, the node has only its number.
fn open_process(pid: u32) -> Option<OwnedFd> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw)?;
    pidfd_open(pid, PidfdFlags::empty()).ok()
}

/// A socket that is held open, and never used.
#[derive(Debug)]
struct Holder {
    name: String,
    socket: OwnedFd,
}

impl Holder {
    fn bind(name: String) -> io::Result<Self> {
        let address = SocketAddr::from_abstract_name(&name)?;
        let socket = UnixListener::bind_addr(&address)?.into();
        Ok(Self { name, socket })
    }
}

impl Deref for Line {
    type Target = SessionMachine;

    fn deref(&self) -> &SessionMachine {
        &self.machine
    }
}

impl DerefMut for Line {
    fn deref_mut(&mut self) -> &mut SessionMachine {
        &mut self.machine
    }
}
