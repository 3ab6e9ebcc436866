//! A session on a line, which may be encrypted.

use std::ops::{Deref, DerefMut};

use doorway_protocol::Moment;

use crate::machine::{SessionMachine, Setup};
#[cfg(feature = "tls")]
use crate::tls::{Encryption, TlsConfig};

/// A [`SessionMachine`] and what stands between it and the bytes of a connection: nothing, or TLS.
///
/// It is driven like the machine, of which [`connected`](Line::connected),
/// [`disconnected`](Line::disconnected), [`receive`](Line::receive) and
/// [`outgoing`](Line::outgoing) speak of the bytes of the connection.
#[derive(Debug)]
pub struct Line {
    machine: SessionMachine,
    #[cfg(feature = "tls")]
    config: Option<TlsConfig>,
    #[cfg(feature = "tls")]
    encryption: Option<Encryption>,
}

impl Line {
    /// A session on a line of its own.
    pub fn new(setup: Setup, now: Moment) -> Self {
        Self {
            machine: SessionMachine::new(setup, now),
            #[cfg(feature = "tls")]
            config: None,
            #[cfg(feature = "tls")]
            encryption: None,
        }
    }

    /// Encrypt every connection.
    #[cfg(feature = "tls")]
    pub fn encrypt(&mut self, config: TlsConfig) {
        self.config = Some(config);
    }

    /// There is a connection.
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

    /// There is no connection any more.
    pub fn disconnected(&mut self, now: Moment) {
        #[cfg(feature = "tls")]
        {
            self.encryption = None;
        }
        self.machine.disconnected(now);
    }

    /// These bytes came from the connection.
    pub fn receive(&mut self, now: Moment, bytes: &[u8]) {
        #[cfg(feature = "tls")]
        if let Some(encryption) = &mut self.encryption {
            return encryption.receive(&mut self.machine, now, bytes);
        }
        self.machine.receive(now, bytes);
    }

    /// What is to be sent. Whoever sends it takes it away.
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
