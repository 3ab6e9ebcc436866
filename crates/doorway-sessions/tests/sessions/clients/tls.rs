//! Sessions over TCP with TLS, with both clients.

use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use doorway_client::blocking::Client;
use doorway_client::{Endpoint, Error, Line, Moment, Options, TlsConfig};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::version::TLS13;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

use super::host::Host;
use super::{LONG, options};

/// A certificate authority.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut parameters = CertificateParams::new(vec![]).expect("the certificates are valid");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("the certificates are valid");
        let pem = parameters.self_signed(&key).expect("the certificates are valid").pem();
        Self { pem, issuer: Issuer::new(parameters, key) }
    }

    fn issue(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().expect("the certificates are valid");
        let parameters =
            CertificateParams::new(vec![name.to_owned()]).expect("the certificates are valid");
        (
            parameters.signed_by(&key, &self.issuer).expect("the certificates are valid").pem(),
            key.serialize_pem(),
        )
    }

    /// A node that asks its clients for certificates.
    fn host(&self) -> Host {
        let config = self.node();
        Host::tcp(Duration::from_secs(2), move |stream: TcpStream| {
            let connection =
                ServerConnection::new(Arc::clone(&config)).expect("the certificates are valid");
            StreamOwned::new(connection, stream)
        })
    }

    fn node(&self) -> Arc<ServerConfig> {
        let (chain, key) = self.issue("one.group.doorway");
        let provider = Arc::new(ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots
            .add(
                CertificateDer::from_pem_slice(self.pem.as_bytes())
                    .expect("the certificates are valid"),
            )
            .expect("the certificates are valid");
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let chain =
            CertificateDer::from_pem_slice(chain.as_bytes()).expect("the certificates are valid");
        let key =
            PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("the certificates are valid");
        let config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .expect("the certificates are valid")
            .with_client_cert_verifier(verifier.build().expect("the certificates are valid"))
            .with_single_cert(vec![chain], key)
            .expect("the certificates are valid");
        Arc::new(config)
    }

    fn options(&self, node: &str) -> Options {
        let (chain, key) = self.issue("ci.client.group.doorway");
        let pem = self.pem.as_bytes();
        let tls = TlsConfig::with_identity(pem, node, chain.as_bytes(), key.as_bytes())
            .expect("the certificates are valid");
        options().tls(tls)
    }
}

#[test]
fn the_blocking_client_works_over_tls() {
    let authority = Authority::new();
    let host = authority.host();
    let client = Client::connect(&host.endpoint, &authority.options("one.group.doorway")).unwrap();
    let grant = client.acquire("a").enter().unwrap();
    host.crash();
    assert!(matches!(client.acquire("a").try_now().enter(), Err(Error::NotFree(_))));
    grant.release().unwrap();
}

#[test]
fn another_name_or_another_authority_is_refused() {
    let authority = Authority::new();
    let host = authority.host();
    let wrong = [
        authority.options("two.group.doorway"),
        Authority::new().options("one.group.doorway"),
        options().tls(TlsConfig::new(authority.pem.as_bytes(), "one.group.doorway").unwrap()),
    ];
    for options in wrong {
        let error = Client::connect(&host.endpoint, &options).unwrap_err();
        assert!(matches!(error, Error::Refused(_)), "{error}");
    }
    let error = Client::connect(&host.endpoint, &options()).unwrap_err().to_string();
    assert!(error.contains("certificates"), "{error}");
    let error = TlsConfig::new(b"nothing", "one.group.doorway").unwrap_err().to_string();
    assert_eq!(error, "cannot use the authority: it holds no certificate in PEM");
}

#[test]
fn bytes_after_the_close_of_tls_are_ignored() {
    let authority = Authority::new();
    let config = authority.node();
    let mut client = ClientEnd::new(&authority.options("one.group.doorway"));
    let mut node = ServerConnection::new(config).unwrap();
    client.exchange(&mut node);
    node.send_close_notify();
    let mut bytes = vec![];
    node.write_tls(&mut bytes).unwrap();
    bytes.extend_from_slice(&[23, 3, 3, 0, 5, 1, 2, 3, 4, 5]);
    client.line.receive(Moment::now(), &bytes);
    assert!(client.line.must_close(), "the connection cannot be used any more");
    client.line.receive(Moment::now(), &bytes);
}

/// The client's end of an encrypted connection, without a socket.
struct ClientEnd {
    line: Line,
}

impl ClientEnd {
    fn new(options: &Options) -> Self {
        let mut line = Line::new(options.setup(), Moment::now());
        line.encrypt(options.tls.clone().expect("certificates"));
        line.connected_to(Moment::now(), &Endpoint::Tcp("one".to_owned(), 7000));
        Self { line }
    }

    /// Let both ends send everything that they have to send.
    fn exchange(&mut self, node: &mut ServerConnection) {
        for _ in 0..4 {
            let bytes = std::mem::take(self.line.outgoing());
            node.read_tls(&mut &bytes[..]).expect("memory does not fail");
            node.process_new_packets().expect("both ends agree");
            let mut bytes = vec![];
            while node.wants_write() {
                node.write_tls(&mut bytes).expect("memory does not fail");
            }
            self.line.receive(Moment::now(), &bytes);
        }
        assert!(!node.is_handshaking() && !self.line.must_close());
    }
}

#[tokio::test]
async fn the_async_client_works_over_tls() {
    let authority = Authority::new();
    let host = authority.host();
    let options = authority.options("one.group.doorway");
    let client = doorway_client::Client::connect(&host.endpoint, &options).await.unwrap();
    let lock = tokio::time::timeout(LONG, client.acquire("a").enter()).await.unwrap();
    lock.unwrap().release().await.unwrap();
}
