//! Can every member be reached, and is it who it should be?

use std::io;
use std::net::{TcpListener, TcpStream, ToSocketAddrs as _};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use doorway_node::{MemberConfig, TlsConfig};
use parking_lot::Mutex;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

use super::{Finding, Verdict, dates};
use crate::certificate::{Facts, certificates, node_name};
use crate::settings::Settings;

/// How long a member may take for each step.
const PATIENCE: Duration = Duration::from_secs(3);

/// Within this time a member that does not accept our certificate says so.
const OBJECTION: Duration = Duration::from_millis(500);

/// Nodes give up a greeting after five seconds; one that takes this long is near it.
const SLOW: Duration = Duration::from_secs(1);

const AREA: &str = "members";

/// Dial every other member at the same time, and see whether this one can listen.
pub(super) fn reach(settings: &Settings, runs: bool) -> Vec<Finding> {
    let config = &settings.node;
    let Some(tls) = config.tls.as_ref().filter(|_| config.members.len() > 1) else {
        return vec![Finding::ok(AREA, "this node has no others")];
    };
    let mut findings = Vec::new();
    for member in config.members.iter().filter(|member| member.name == config.me && !runs) {
        findings.push(listens(member));
    }
    let others = config.members.iter().filter(|member| member.name != config.me);
    let others: Vec<&MemberConfig> = others.collect();
    findings.extend(thread::scope(|scope| {
        let asked = others.iter().map(|member| {
            scope.spawn(|| {
                let reached = dial(member, &config.group, tls);
                let answers = reached.verdict != Verdict::Wrong;
                let door = settings.http.as_deref().filter(|_| answers);
                let date = door.and_then(|door| dates::compare(member, door, &config.group, tls));
                [Some(reached), date]
            })
        });
        let asked: Vec<_> = asked.collect();
        let gone =
            |_| [Some(Finding::wrong(AREA, "a member could not be examined", "report this")), None];
        let found = asked.into_iter().flat_map(|one| one.join().unwrap_or_else(gone));
        found.flatten().collect::<Vec<_>>()
    }));
    findings
}

/// Could the node listen, were it started?
fn listens(member: &MemberConfig) -> Finding {
    let MemberConfig { name, address } = member;
    match TcpListener::bind(address) {
        Ok(_) => Finding::ok(AREA, format!("{name} (this node) can listen at {address}")),
        Err(error) => {
            let what = format!("{name} (this node) cannot listen at {address}: {error}");
            let remedy = "the address has to be one of this machine, and its port free";
            Finding::wrong(AREA, what, remedy)
        }
    }
}

fn dial(member: &MemberConfig, group: &str, tls: &TlsConfig) -> Finding {
    let MemberConfig { name, address } = member;
    let stream = match connect(address) {
        Ok(stream) => stream,
        Err(error) => {
            let what = format!("{name} cannot be reached at {address}: {error}");
            let remedy = format!("see whether `{name}` runs, its `address`, and the firewall");
            return Finding::wrong(AREA, what, remedy);
        }
    };
    let begin = Instant::now();
    let seen = Arc::new(Mutex::new(None));
    match greet(stream, &node_name(name, group), tls, &seen) {
        Ok(()) => {
            let took = begin.elapsed().saturating_sub(OBJECTION).as_millis();
            let until = seen.lock().as_ref().map_or_else(String::new, Facts::last_day);
            let what = format!(
                "{name} answers at {address} and accepts us (TLS took about {took} ms; its \
                 certificate is good until {until})"
            );
            if u128::from(SLOW.as_millis() as u64) < took {
                let remedy = "see to the network: a greeting that takes five seconds is given up";
                return Finding::warning(AREA, what, remedy);
            }
            Finding::ok(AREA, what)
        }
        Err(error) => refused(member, group, &error, seen.lock().as_ref()),
    }
}

/// What a handshake that failed tells.
fn refused(member: &MemberConfig, group: &str, error: &io::Error, seen: Option<&Facts>) -> Finding {
    let MemberConfig { name, address } = member;
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    let who = seen.map_or_else(String::new, |facts| facts.names.join(", "));
    match tls {
        Some(Error::AlertReceived(alert)) => {
            let what = format!("{name} at {address} does not accept our certificate: {alert:?}");
            let remedy = format!("see whether both have the same `ca`, and the clock of `{name}`");
            Finding::wrong(AREA, what, remedy)
        }
        Some(error) if seen.is_some() => {
            let what = format!("what answers at {address} shows a certificate for {who}: {error}");
            let remedy = format!(
                "{name} needs one for {}, of the authority in `ca`",
                node_name(name, group)
            );
            Finding::wrong(AREA, what, remedy)
        }
        _ => {
            let what = format!("what answers at {address} is no node: {error}");
            Finding::wrong(AREA, what, format!("see what listens there instead of `{name}`"))
        }
    }
}

pub(super) fn connect(address: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for found in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&found, PATIENCE) {
            Ok(stream) => {
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(PATIENCE))?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Shake hands with our certificate, and wait for an objection.
fn greet(
    mut stream: TcpStream,
    name: &str,
    tls: &TlsConfig,
    seen: &Arc<Mutex<Option<Facts>>>,
) -> io::Result<()> {
    let mut connection = begin(name, tls, seen)?;
    while connection.is_handshaking() {
        // Whoever says nothing runs into the time-out of the stream.
        if connection.complete_io(&mut stream)? == (0, 0) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    // To us the handshake is over before the other side has looked at our certificate.
    stream.set_read_timeout(Some(OBJECTION))?;
    let end = Instant::now() + OBJECTION;
    while Instant::now() < end {
        match connection.read_tls(&mut stream) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => {
                connection.process_new_packets().map_err(io::Error::other)?;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A connection with our certificate to whoever has one for this name.
pub(super) fn begin(
    name: &str,
    tls: &TlsConfig,
    seen: &Arc<Mutex<Option<Facts>>>,
) -> io::Result<ClientConnection> {
    let name = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
    let config = client(tls, seen).map_err(io::Error::other)?;
    ClientConnection::new(config, name).map_err(io::Error::other)
}

fn client(tls: &TlsConfig, seen: &Arc<Mutex<Option<Facts>>>) -> Result<Arc<ClientConfig>, String> {
    let told = |error: &dyn std::fmt::Display| error.to_string();
    let provider = Arc::new(ring::default_provider());
    let mut roots = RootCertStore::empty();
    for certificate in certificates(&tls.ca)? {
        roots.add(certificate).map_err(|error| told(&error))?;
    }
    let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    let inner = inner.build().map_err(|error| told(&error))?;
    let looking = Arc::new(Looking { inner, seen: Arc::clone(seen) });
    let key = PrivateKeyDer::from_pem_slice(&tls.key).map_err(|error| told(&error))?;
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| told(&error))?
        .dangerous() // Only in name: all is verified as ever, and looked at besides.
        .with_custom_certificate_verifier(looking)
        .with_client_auth_cert(certificates(&tls.certificate)?, key)
        .map_err(|error| told(&error))?;
    Ok(Arc::new(config))
}

/// Verifies as ever, and remembers whose certificate it was.
#[derive(Debug)]
struct Looking {
    inner: Arc<WebPkiServerVerifier>,
    seen: Arc<Mutex<Option<Facts>>>,
}

impl ServerCertVerifier for Looking {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        *self.seen.lock() = Facts::of(own).ok();
        self.inner.verify_server_cert(own, between, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}
