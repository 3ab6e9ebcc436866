//! A session over a connection that may be encrypted.

use std::io;
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};

use doorway_protocol::Moment;

use crate::endpoint::Endpoint;
use crate::machine::{SessionMachine, Setup};
#[cfg(feature = "tls")]
use crate::tls::{Encryption, TlsConfig};

/// A [`SessionMachine`] together with the TLS layer between it and its connection, if there is one.
///
/// It is driven like the machine. Its own methods [`connected_to`](Line::connected_to),
/// [`disconnected`](Line::disconnected), [`receive`](Line::receive) and
/// [`outgoing`](Line::outgoing) take and give the bytes of the connection, which may be encrypted;
/// all other methods are those of the machine.
#[derive(Debug)]
pub struct Line {
    machine: SessionMachine,
    holder: Option<Holder>,
    #[cfg(feature = "tls")]
    config: Option<TlsConfig>,
    #[cfg(feature = "tls")]
    encryption: Option<Encryption>,
}

impl Line {
    /// A session that is still to be opened, on connections that are not encrypted.
    pub fn new(setup: Setup, now: Moment) -> Self {
        Self {
            machine: SessionMachine::new(setup, now),
            holder: None,
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

    /// The bytes that are to be written to the connection. The caller removes what it has written.
    pub fn outgoing(&mut self) -> &mut Vec<u8> {
        #[cfg(feature = "tls")]
        if let Some(encryption) = &mut self.encryption {
            return encryption.outgoing(&mut self.machine);
        }
        self.machine.outgoing()
    }
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
