//! A session over a connection that may be encrypted.

use std::ops::{Deref, DerefMut};

use doorway_protocol::Moment;

use crate::machine::{SessionMachine, Setup};
#[cfg(feature = "tls")]
use crate::tls::{Encryption, TlsConfig};

/// A [`SessionMachine`] together with the TLS layer between it and its connection, if there is one.
///
/// It is driven like the machine. Its own methods [`connected`](Line::connected),
/// [`disconnected`](Line::disconnected), [`receive`](Line::receive) and
/// [`outgoing`](Line::outgoing) take and give the bytes of the connection, which may be encrypted;
/// all other methods are those of the machine.
#[derive(Debug)]
pub struct Line {
    machine: SessionMachine,
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
            #[cfg(feature = "tls")]
            config: None,
            #[cfg(feature = "tls")]
            encryption: None,
        }
    }

    /// Encrypt every connection from now on.
    #[cfg(feature = "tls")]
    pub fn encrypt(&mut self, config: TlsConfig) {
        self.config = Some(config);
    }

    /// Tell the machine that a connection was made.
    pub fn connected(&mut self, now: Moment) {
        self.machine.connected(now);
        #[cfg(feature = "tls")]
        if let Some(config) = &self.config {
            match Encryption::new(config) {
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
