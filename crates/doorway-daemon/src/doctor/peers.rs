//! Dials every member, and checks who answers.

use std::io;
use std::net::{TcpListener, TcpStream, ToSocketAddrs as _};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use doorway_node::{MemberConfig, TlsConfig};
use doorway_protocol::MembersReport;
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

/// How long to wait for each step of a member.
const PATIENCE: Duration = Duration::from_secs(3);

/// How long to wait for a member to object to our certificate.
const OBJECTION: Duration = Duration::from_millis(500);

/// A greeting that takes longer is worth a warning: nodes give up after five seconds.
const SLOW: Duration = Duration::from_secs(1);

const AREA: &str = "members";

/// Dial all other members at the same time, and check whether this one can listen. `agreed` are the
/// members of a group that agrees on them, as the node reports them.
pub(super) fn reach(
    settings: &Settings,
    runs: bool,
    agreed: Option<&MembersReport>,
) -> Vec<Finding> {
    let config = &settings.node;
    let has_peers = config.members.len() > 1 || settings.members.is_some();
    let Some(tls) = config.tls.as_ref().filter(|_| has_peers) else {
        return vec![Finding::ok(AREA, "this node is alone")];
    };
    let mut findings = Vec::new();
    for member in config.members.iter().filter(|member| member.name == config.me && !runs) {
        findings.push(listens(member, &config.group, tls));
    }
    if settings.members.is_some() && agreed.is_none() {
        let what = "only the running node knows the other members, so they were not dialled";
        findings.push(Finding::ok(AREA, what));
    }
    let seats = agreed
        .into_iter()
        .flat_map(|report| &report.seats)
        .map(|seat| MemberConfig { name: seat.name.clone(), address: seat.address.clone() });
    let all: Vec<MemberConfig> = config.members.iter().cloned().chain(seats).collect();
    let others = all.iter().filter(|member| member.name != config.me);
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

/// Whether the node could listen if it were started.
fn listens(member: &MemberConfig, group: &str, tls: &TlsConfig) -> Finding {
    let MemberConfig { name, address } = member;
    match TcpListener::bind(address) {
        Ok(_) => Finding::ok(AREA, format!("{name} (this node) can listen at {address}")),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_node(member, group, tls) => {
            let what = format!(
                "{name} (this node) runs and listens at {address}, but does not answer at its \
                 socket"
            );
            Finding::warning(AREA, what, "restart it: it makes its socket when it starts")
        }
        Err(error) => {
            let what = format!("{name} (this node) cannot listen at {address}: {error}");
            let remedy = "use an address of this machine and a port that is free";
            Finding::wrong(AREA, what, remedy)
        }
    }
}

/// Which of these members answer at their addresses. All are dialled at the same time, and those
/// that say nothing within this time do not answer.
pub(crate) fn answering(
    members: Vec<MemberConfig>,
    group: &str,
    tls: &TlsConfig,
    within: Duration,
) -> Vec<MemberConfig> {
    let (send, answers) = mpsc::channel();
    for member in members {
        let (group, tls, send) = (group.to_owned(), tls.clone(), send.clone());
        // Nobody waits for the end of the thread: finding the address of a name has no time limit.
        thread::spawn(move || {
            if is_node(&member, &group, &tls) {
                let _ = send.send(member); // It is too late.
            }
        });
    }
    drop(send);
    let end = Instant::now() + within;
    let next = || answers.recv_timeout(end.saturating_duration_since(Instant::now())).ok();
    let mut found: Vec<_> = std::iter::from_fn(next).collect();
    found.sort_by(|one, other| one.name.cmp(&other.name));
    found
}

/// Whether the member itself answers at its address.
fn is_node(member: &MemberConfig, group: &str, tls: &TlsConfig) -> bool {
    let seen = Arc::new(Mutex::new(None));
    let greeted = connect(&member.address)
        .and_then(|stream| greet(stream, &node_name(&member.name, group), tls, &seen));
    match greeted {
        Ok(()) => true,
        // It has shown the right certificate; that it hangs up on its own does not matter.
        Err(error) => error.kind() == io::ErrorKind::UnexpectedEof && seen.lock().is_some(),
    }
}

fn dial(member: &MemberConfig, group: &str, tls: &TlsConfig) -> Finding {
    let MemberConfig { name, address } = member;
    let stream = match connect(address) {
        Ok(stream) => stream,
        Err(error) => {
            let what = format!("{name} cannot be reached at {address}: {error}");
            let remedy = format!("check that `{name}` runs, its `address`, and the firewall");
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
                let remedy = "check the network: nodes give up a greeting after five seconds";
                return Finding::warning(AREA, what, remedy);
            }
            Finding::ok(AREA, what)
        }
        Err(error) => refused(member, group, &error, seen.lock().as_ref()),
    }
}

/// What a failed handshake says about a member.
fn refused(member: &MemberConfig, group: &str, error: &io::Error, seen: Option<&Facts>) -> Finding {
    let MemberConfig { name, address } = member;
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    let who = seen.map_or_else(String::new, |facts| facts.names.join(", "));
    match tls {
        Some(Error::AlertReceived(alert)) => {
            let what = format!("{name} at {address} does not accept our certificate: {alert:?}");
            let remedy = format!("check that both have the same `ca`, and the clock of `{name}`");
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
            let what = format!("what answers at {address} is not a node: {error}");
            Finding::wrong(AREA, what, format!("find out what listens there instead of `{name}`"))
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

/// Complete a TLS handshake with our certificate, and wait for an objection to it.
fn greet(
    mut stream: TcpStream,
    name: &str,
    tls: &TlsConfig,
    seen: &Arc<Mutex<Option<Facts>>>,
) -> io::Result<()> {
    let mut connection = start_tls(name, tls, seen)?;
    while connection.is_handshaking() {
        // A peer that says nothing runs into the timeout of the stream.
        if connection.complete_io(&mut stream)? == (0, 0) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    // On our side the handshake is over before the other side has checked our certificate.
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

/// A connection that shows our certificate, and demands one for this name.
pub(super) fn start_tls(
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
    let looking = Arc::new(RememberingVerifier { inner, seen: Arc::clone(seen) });
    let key = PrivateKeyDer::from_pem_slice(&tls.key).map_err(|error| told(&error))?;
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| told(&error))?
        // Only by name: the verifier verifies everything, and remembers the certificate.
        .dangerous()
        .with_custom_certificate_verifier(looking)
        .with_client_auth_cert(certificates(&tls.certificate)?, key)
        .map_err(|error| told(&error))?;
    Ok(Arc::new(config))
}

/// A verifier that verifies as usual and remembers the certificate.
#[derive(Debug)]
struct RememberingVerifier {
    inner: Arc<WebPkiServerVerifier>,
    seen: Arc<Mutex<Option<Facts>>>,
}

impl ServerCertVerifier for RememberingVerifier {
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
