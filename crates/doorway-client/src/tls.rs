//! TLS for sessions over a network, without a socket.

use std::io::{Read, Write};
use std::sync::Arc;

use doorway_protocol::{Code, Moment, Refusal};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::version::TLS13;
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use crate::machine::SessionMachine;

/// Which nodes a client trusts, and how it proves its own identity.
#[derive(Clone, Debug)]
pub struct TlsConfig {
    config: Arc<ClientConfig>,
    /// The name in the certificate of the node; none if that is its host.
    server: Option<ServerName<'static>>,
}

/// Why a [`TlsConfig`] cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot use the {what}: {why}")]
pub struct TlsError {
    what: &'static str,
    why: String,
}

impl TlsConfig {
    /// Trust a node whose certificate comes from this authority (PEM) and is issued for the name
    /// `server`, such as `NODE.GROUP.doorway`. The client shows no certificate of its own; a token
    /// can prove its rights.
    pub fn new(authority: &[u8], server: &str) -> Result<Self, TlsError> {
        Self::build(authority, server, None)
    }

    /// Trust a node as [`TlsConfig::new`] does, and prove the client's identity with a certificate
    /// `chain` and its `key` (both PEM).
    pub fn with_identity(
        authority: &[u8],
        server: &str,
        chain: &[u8],
        key: &[u8],
    ) -> Result<Self, TlsError> {
        Self::build(authority, server, Some((chain, key)))
    }

    fn build(
        authority: &[u8],
        server: &str,
        identity: Option<(&[u8], &[u8])>,
    ) -> Result<Self, TlsError> {
        let wrong = |what| move |why: rustls::Error| TlsError { what, why: why.to_string() };
        let mut roots = RootCertStore::empty();
        for certificate in certificates("authority", authority)? {
            roots.add(certificate).map_err(wrong("authority"))?;
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&TLS13])
            .map_err(wrong("version of TLS"))?
            .with_root_certificates(roots);
        let config = match identity {
            None => builder.with_no_client_auth(),
            Some((chain, key)) => {
                let chain = certificates("certificate", chain)?;
                let key = PrivateKeyDer::from_pem_slice(key)
                    .map_err(|why| TlsError { what: "key", why: why.to_string() })?;
                builder.with_client_auth_cert(chain, key).map_err(wrong("certificate"))?
            }
        };
        let server = ServerName::try_from(server.to_owned()).map_err(|why| TlsError {
            what: "name of the node",
            why: format!("{server:?}: {why}"),
        })?;
        Ok(Self { config: Arc::new(config), server: Some(server) })
    }

    /// Trust a node whose certificate is issued for the host of its endpoint, instead of one name
    /// for all nodes.
    pub fn by_host(mut self) -> Self {
        self.server = None;
        self
    }
}

fn certificates(what: &'static str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found = found.map_err(|why| TlsError { what, why: why.to_string() })?;
    if found.is_empty() {
        return Err(TlsError { what, why: "it holds no certificate in PEM".to_owned() });
    }
    Ok(found)
}

/// One encrypted connection.
#[derive(Debug)]
pub(crate) struct Encryption {
    connection: ClientConnection,
    /// What is to be sent, encrypted.
    outgoing: Vec<u8>,
}

impl Encryption {
    pub(crate) fn new(config: &TlsConfig, host: &str) -> Result<Self, Refusal> {
        let by_host = || ServerName::try_from(host.to_owned()).map_err(|why| refusal(&why));
        let server = config.server.clone().map_or_else(by_host, Ok)?;
        let connection = ClientConnection::new(Arc::clone(&config.config), server);
        let mut connection = connection.map_err(|why| refusal(&why))?;
        // What a machine sends is bounded by its requests, so the buffer needs no limit.
        connection.set_buffer_limit(None);
        Ok(Self { connection, outgoing: Vec::new() })
    }

    pub(crate) fn receive(&mut self, machine: &mut SessionMachine, now: Moment, mut bytes: &[u8]) {
        if self.connection.is_handshaking() && bytes.starts_with(b"HTTP/") {
            return machine.not_a_node("it answers with HTTP, and TLS is expected");
        }
        while !bytes.is_empty() && !machine.must_close() {
            let ended = match self.decrypt(&mut bytes) {
                Ok(ended) => ended,
                Err(why) if machine.is_talking() => return machine.break_connection(&why),
                Err(why) => return machine.close(refusal(&why)),
            };
            let mut plain = [0; 4096];
            while let Ok(count @ 1..) = self.connection.reader().read(&mut plain) {
                machine.receive(now, &plain[..count]);
            }
            if ended {
                // rustls takes no more bytes, so this loop would never end.
                return machine.break_connection("the node has ended the connection");
            }
        }
    }

    /// Decrypt some of the bytes; true if the node has closed the connection.
    fn decrypt(&mut self, bytes: &mut &[u8]) -> Result<bool, String> {
        // Reading from memory fails only if the other side sends more than rustls buffers.
        let taken = self.connection.read_tls(bytes).map_err(|why| why.to_string())?;
        let state = self.connection.process_new_packets().map_err(|why| why.to_string())?;
        Ok(taken == 0 || state.peer_has_closed())
    }

    pub(crate) fn outgoing(&mut self, machine: &mut SessionMachine) -> &mut Vec<u8> {
        let plain = machine.outgoing();
        if !plain.is_empty() {
            self.connection.writer().write_all(plain).expect("writing to memory succeeds");
            plain.clear();
        }
        while self.connection.wants_write() {
            self.connection.write_tls(&mut self.outgoing).expect("writing to memory succeeds");
        }
        &mut self.outgoing
    }
}

fn refusal(why: &impl ToString) -> Refusal {
    let text = format!("cannot talk to the node over TLS: {}", why.to_string());
    Refusal { code: Code::Forbidden, text }
}
