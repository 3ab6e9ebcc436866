//! The certificates of this node: checks them, and reads them again when their files change.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use doorway_node::TlsConfig;
use parking_lot::RwLock;
use time::OffsetDateTime;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::ServerCertVerifier as _;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{
    CertificateError, Error, RootCertStore, ServerConfig, SupportedProtocolVersion,
};

use crate::certificate::{Facts, SOON_DAYS, certificates};
use crate::settings::TlsFiles;

/// How often the files are looked at.
const LOOK: Duration = Duration::from_secs(5);

/// How often the log warns about a certificate that ends soon.
const REMIND: Duration = Duration::from_hours(24);

/// One of the three files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsFile {
    /// The authority.
    Ca,
    /// The certificate of this node.
    Certificate,
    /// Its key.
    Key,
}

/// Something that is wrong with one of the files.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}; {remedy}")]
pub struct TlsProblem {
    /// The file.
    pub which: TlsFile,
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub remedy: String,
}

/// Check that a node can use these certificates under this name, and that other nodes accept them.
/// Returns everything that is wrong.
pub fn check(tls: &TlsConfig, name: &str) -> Vec<TlsProblem> {
    let mut troubles = Vec::new();
    let mut wrong = |which, what: String, remedy: &str| {
        troubles.push(TlsProblem { which, what, remedy: remedy.to_owned() });
    };
    let roots = match roots(&tls.ca) {
        Ok(roots) => Some(roots),
        Err(what) => {
            wrong(TlsFile::Ca, what, "it has to be the ca.crt that `doorway ca init` made");
            None
        }
    };
    let chain = certificates(&tls.certificate);
    if let Err(what) = &chain {
        wrong(TlsFile::Certificate, what.clone(), "`doorway ca node` makes one");
    }
    if let (Some(roots), Ok(chain)) = (roots, &chain)
        && let Err(error) = verify(roots, chain, name)
    {
        let (what, remedy) = describe(&error, chain, name);
        wrong(TlsFile::Certificate, what, &remedy);
    }
    match PrivateKeyDer::from_pem_slice(&tls.key) {
        Err(error) => {
            let what = format!("it holds no key: {error}");
            wrong(TlsFile::Key, what, "`doorway ca node` makes one beside the certificate");
        }
        Ok(key) => {
            if let Ok(chain) = chain
                && let Err(error) = CertifiedKey::from_der(chain, key, &ring::default_provider())
            {
                let what = format!("it is not the key of the certificate: {error}");
                wrong(TlsFile::Key, what, "use the two files that were made together");
            }
        }
    }
    troubles
}

fn roots(pem: &[u8]) -> Result<Arc<RootCertStore>, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem)? {
        let facts = Facts::of(&certificate)?;
        if !facts.authority {
            return Err("it is not the certificate of an authority".to_owned());
        }
        if facts.until < OffsetDateTime::now_utc() {
            return Err(format!("it ended on {}", facts.last_day()));
        }
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    Ok(Arc::new(roots))
}

/// Verify a certificate as both sides of a link do: as that of a server and as that of a client.
fn verify(
    roots: Arc<RootCertStore>,
    chain: &[CertificateDer<'static>],
    name: &str,
) -> Result<(), Error> {
    let provider = Arc::new(ring::default_provider());
    let general = |error: &dyn std::fmt::Display| Error::General(error.to_string());
    let name = ServerName::try_from(name.to_owned()).map_err(|error| general(&error))?;
    let [own, between @ ..] = chain else { return Err(Error::NoCertificatesPresented) };
    let now = UnixTime::now();
    let server = WebPkiServerVerifier::builder_with_provider(Arc::clone(&roots), provider.clone());
    let server = server.build().map_err(|error| general(&error))?;
    server.verify_server_cert(own, between, &name, &[], now)?;
    let client = WebPkiClientVerifier::builder_with_provider(roots, provider);
    let client = client.build().map_err(|error| general(&error))?;
    client.verify_client_cert(own, between, now).map(drop)
}

/// Describe what is wrong with a certificate, and what to do.
fn describe(error: &Error, chain: &[CertificateDer<'static>], name: &str) -> (String, String) {
    let facts = chain.first().and_then(|own| Facts::of(own).ok());
    let ended = facts.as_ref().map_or_else(String::new, Facts::last_day);
    let begins = facts.as_ref().map_or_else(String::new, |facts| facts.from.date().to_string());
    let names = facts.map_or_else(String::new, |facts| facts.names.join(", "));
    let Error::InvalidCertificate(why) = error else {
        return (format!("it cannot be used: {error}"), "`doorway ca node` makes one".to_owned());
    };
    match why {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => (
            format!("it ended on {ended}"),
            "`doorway ca node --renew` makes the next one".to_owned(),
        ),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => (
            format!("it is valid only from {begins}"),
            "set the clock of this machine, or of the one that made it".to_owned(),
        ),
        // A node may not use the certificate of a client.
        CertificateError::NotValidForName
        | CertificateError::NotValidForNameContext { .. }
        | CertificateError::InvalidPurpose
        | CertificateError::InvalidPurposeContext { .. } => {
            (format!("it is for {names}"), format!("this node needs one for {name}"))
        }
        CertificateError::UnknownIssuer | CertificateError::BadSignature => (
            "it was not issued by the authority in `ca`".to_owned(),
            "all members need certificates of one authority".to_owned(),
        ),
        other => (
            format!("other nodes will not accept it: {other:?}"),
            "use `doorway ca node`".to_owned(),
        ),
    }
}

/// Messages about the certificates that end soon.
pub fn ending(tls: &TlsConfig, now: OffsetDateTime) -> Vec<String> {
    let mut soon = Vec::new();
    for (what, remedy, pem) in [
        ("the certificate of this node", "doorway ca node --renew", &tls.certificate),
        ("the certificate of the authority", "doorway ca init", &tls.ca),
    ] {
        for facts in Facts::all(pem).unwrap_or_default() {
            let days = facts.days_left(now);
            if days < SOON_DAYS {
                let day = facts.last_day();
                soon.push(format!("{what} ends on {day}, in {days} days: see `{remedy}`"));
            }
        }
    }
    soon
}

impl TlsFiles {
    /// Read the three files.
    pub fn read(&self) -> Result<TlsConfig, (TlsFile, io::Error)> {
        let read = |which, path: &Path| fs::read(path).map_err(|error| (which, error));
        Ok(TlsConfig {
            ca: read(TlsFile::Ca, &self.ca)?,
            certificate: read(TlsFile::Certificate, &self.certificate)?,
            key: read(TlsFile::Key, &self.key)?,
        })
    }

    /// The path of one of the files.
    pub fn path(&self, which: TlsFile) -> &PathBuf {
        match which {
            TlsFile::Ca => &self.ca,
            TlsFile::Certificate => &self.certificate,
            TlsFile::Key => &self.key,
        }
    }

    /// A value that changes when one of the files does.
    fn stamp(&self) -> Vec<Option<(u64, i64, i64, u64)>> {
        let stamp = |path: &PathBuf| {
            let meta = fs::metadata(path).ok()?;
            Some((meta.ino(), meta.mtime(), meta.mtime_nsec(), meta.len()))
        };
        [&self.ca, &self.certificate, &self.key].map(stamp).to_vec()
    }
}

/// The certificates that the service shows to clients. They can change while it runs.
#[derive(Debug)]
pub struct Certificates {
    files: TlsFiles,
    /// The name that the certificate must be for.
    name: String,
    current: RwLock<ServerConfigs>,
    /// When the current certificates end.
    ends: RwLock<Vec<End>>,
}

/// The TLS configurations of a server.
#[derive(Debug)]
struct ServerConfigs {
    usual: Arc<ServerConfig>,
    /// For clients of etcd. Those of version 3.5 do not speak TLS 1.3, and all of them insist on
    /// agreeing on a protocol.
    etcd: Arc<ServerConfig>,
}

/// When a certificate ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The file of the certificate.
    pub which: TlsFile,
    /// The time at which it ends.
    pub at: OffsetDateTime,
}

/// Why new certificates are not used. The former ones stay in use.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// A file cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The contents of a file cannot be used.
    #[error("{}: {trouble}", path.display())]
    TlsProblem {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        trouble: TlsProblem,
    },
    /// The TLS library refuses them.
    #[error("cannot use the certificates: {0}")]
    Unusable(String),
}

impl Certificates {
    /// Read the certificates of the node of this name.
    pub fn open(files: TlsFiles, name: String) -> Result<Arc<Self>, ReloadError> {
        let tls = checked(&files, &name)?;
        let (current, ends) = (RwLock::new(servers(&tls)?), RwLock::new(ends(&tls)));
        Ok(Arc::new(Self { files, name, current, ends }))
    }

    /// The TLS configuration for the next connection.
    pub fn server(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current.read().usual)
    }

    /// The TLS configuration for the next connection of an etcd client.
    pub fn etcd_server(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current.read().etcd)
    }

    /// Read the files again. The next connection gets the new certificates; if anything is wrong
    /// with them, the old ones stay in use.
    pub fn reload(&self) -> Result<TlsConfig, ReloadError> {
        let tls = checked(&self.files, &self.name)?;
        *self.current.write() = servers(&tls)?;
        *self.ends.write() = ends(&tls);
        Ok(tls)
    }

    /// When the current certificates end. Of several certificates in one file, the first end
    /// counts.
    pub fn ends(&self) -> Vec<End> {
        self.ends.read().clone()
    }

    /// Reload forever: whenever a file changes, and at every SIGHUP. `renewed` gets the new
    /// certificates and passes them on to listeners and to the links between nodes.
    pub async fn watch(
        &self,
        mut renewed: impl FnMut(&TlsConfig, Arc<ServerConfig>) -> Result<(), String> + Send,
    ) {
        use tokio::signal::unix::{SignalKind, signal};
        let mut hangup = signal(SignalKind::hangup())
            .inspect_err(|error| {
                tracing::warn!(
                    "SIGHUP will not reload the certificates, only a change of their files: {error}"
                );
            })
            .ok();
        let mut stamp = self.files.stamp();
        let mut reminded = tokio::time::Instant::now();
        loop {
            let asked = tokio::select! {
                Some(()) = async { hangup.as_mut()?.recv().await } => true,
                () = tokio::time::sleep(LOOK) => false,
            };
            let found = self.files.stamp();
            if asked || found != stamp {
                stamp = found;
                self.renew(&mut renewed);
            }
            if reminded.elapsed() >= REMIND {
                reminded = tokio::time::Instant::now();
                self.remind();
            }
        }
    }

    fn renew(&self, renewed: &mut impl FnMut(&TlsConfig, Arc<ServerConfig>) -> Result<(), String>) {
        let tls = match self.reload() {
            Ok(tls) => tls,
            Err(error) => {
                tracing::error!(
                    "the new certificates cannot be used, the old ones stay in use: {error}"
                );
                return;
            }
        };
        match renewed(&tls, self.server()) {
            Ok(()) => {
                let day = Facts::all(&tls.certificate).ok();
                let day = day.and_then(|all| all.first().map(Facts::last_day)).unwrap_or_default();
                tracing::info!(until = day, "the certificates were read again");
            }
            Err(error) => {
                tracing::error!("links to other nodes keep their old certificates: {error}");
            }
        }
    }

    /// Log a warning for each certificate that ends soon.
    pub fn remind(&self) {
        let Ok(tls) = self.files.read() else { return };
        for soon in ending(&tls, OffsetDateTime::now_utc()) {
            tracing::warn!("{soon}");
        }
    }
}

fn ends(tls: &TlsConfig) -> Vec<End> {
    let end = |(which, pem): (TlsFile, &[u8])| {
        let all = Facts::all(pem).ok()?;
        all.iter().map(|facts| facts.until).min().map(|at| End { which, at })
    };
    let files: [(TlsFile, &[u8]); 2] =
        [(TlsFile::Certificate, &tls.certificate), (TlsFile::Ca, &tls.ca)];
    files.into_iter().filter_map(end).collect()
}

fn checked(files: &TlsFiles, name: &str) -> Result<TlsConfig, ReloadError> {
    let tls = files.read().map_err(|(which, error)| {
        let path = files.path(which).clone();
        ReloadError::Read { path, error }
    })?;
    match check(&tls, name).into_iter().next() {
        None => Ok(tls),
        Some(trouble) => {
            Err(ReloadError::TlsProblem { path: files.path(trouble.which).clone(), trouble })
        }
    }
}

fn servers(tls: &TlsConfig) -> Result<ServerConfigs, ReloadError> {
    let usual = Arc::new(server(tls, &[&TLS13])?);
    let mut etcd = server(tls, &[&TLS13, &TLS12])?;
    etcd.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(ServerConfigs { usual, etcd: Arc::new(etcd) })
}

/// The TLS configuration of a server: it shows our certificate, and accepts a client certificate of
/// our authority without requiring one.
fn server(
    tls: &TlsConfig,
    versions: &[&'static SupportedProtocolVersion],
) -> Result<ServerConfig, ReloadError> {
    let unusable = |error: &dyn std::fmt::Display| ReloadError::Unusable(error.to_string());
    let provider: Arc<CryptoProvider> = Arc::new(ring::default_provider());
    let roots = roots(&tls.ca).map_err(ReloadError::Unusable)?;
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider));
    let verifier = verifier.allow_unauthenticated().build().map_err(|error| unusable(&error))?;
    let chain = certificates(&tls.certificate).map_err(ReloadError::Unusable)?;
    let key = PrivateKeyDer::from_pem_slice(&tls.key).map_err(|error| unusable(&error))?;
    ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .map_err(|error| unusable(&error))?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)
        .map_err(|error| unusable(&error))
}
