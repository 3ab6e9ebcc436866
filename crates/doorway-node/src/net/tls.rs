//! How a node proves who it is: a certificate whose name is the node's, `NODE.GROUP.doorway`.

use std::sync::Arc;

use parking_lot::RwLock;
use tokio_rustls::rustls::client::ResolvesClientCert;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore, ServerConfig, SignatureScheme};

/// The certificate of a node, and whom it trusts.
#[derive(Clone, Debug)]
pub struct Identity {
    pub(super) client: Arc<ClientConfig>,
    pub(super) server: Arc<ServerConfig>,
    keys: Arc<Keys>,
}

/// Why an identity cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// A text that is no PEM, or holds nothing of what is needed.
    #[error("cannot read the {what}: {why}")]
    Pem {
        /// Which text.
        what: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// Certificates that cannot be used.
    #[error("cannot use the certificates: {0}")]
    Unusable(String),
}

impl Identity {
    /// An identity out of PEM texts: the authority that all members trust, the node's certificate
    /// with those between it and the authority, and its key.
    pub fn from_pem(authority: &[u8], chain: &[u8], key: &[u8]) -> Result<Self, IdentityError> {
        let provider = Arc::new(ring::default_provider());
        let mut roots = RootCertStore::empty();
        for certificate in certificates("authority", authority)? {
            roots.add(certificate).map_err(unusable)?;
        }
        let roots = Arc::new(roots);
        let keys = Arc::new(Keys { current: RwLock::new(certified(&provider, chain, key)?) });
        let client = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&TLS13])
            .map_err(unusable)?
            .with_root_certificates(Arc::clone(&roots))
            .with_client_cert_resolver(Arc::clone(&keys) as Arc<dyn ResolvesClientCert>);
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider));
        let server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .map_err(unusable)?
            .with_client_cert_verifier(verifier.build().map_err(unusable)?)
            .with_cert_resolver(Arc::clone(&keys) as Arc<dyn ResolvesServerCert>);
        Ok(Self { client: Arc::new(client), server: Arc::new(server), keys })
    }

    /// Show another certificate from the next connection on.
    pub fn renew(&self, chain: &[u8], key: &[u8]) -> Result<(), IdentityError> {
        *self.keys.current.write() = certified(self.client.crypto_provider(), chain, key)?;
        Ok(())
    }
}

/// The name that a node's certificate must be valid for; `None` if it cannot be a name.
pub(super) fn name_of(node: &str, group: &str) -> Option<ServerName<'static>> {
    ServerName::try_from(format!("{node}.{group}.doorway")).ok()
}

/// Is the first of these certificates, which were found trustworthy, the one of `name`?
pub(super) fn is_valid_for(chain: Option<&[CertificateDer<'_>]>, name: &ServerName<'_>) -> bool {
    let Some(certificate) = chain.and_then(<[_]>::first) else { return false };
    let certificate = webpki::EndEntityCert::try_from(certificate);
    certificate.is_ok_and(|own| own.verify_is_valid_for_subject_name(name).is_ok())
}

fn unusable(why: impl Into<Box<dyn std::error::Error>>) -> IdentityError {
    IdentityError::Unusable(why.into().to_string())
}

fn certificates(
    what: &'static str,
    pem: &[u8],
) -> Result<Vec<CertificateDer<'static>>, IdentityError> {
    let wrong = |why: String| IdentityError::Pem { what, why };
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found = found.map_err(|why| wrong(why.to_string()))?;
    if found.is_empty() { Err(wrong("it holds no certificate".to_owned())) } else { Ok(found) }
}

fn certified(
    provider: &CryptoProvider,
    chain: &[u8],
    key: &[u8],
) -> Result<Arc<CertifiedKey>, IdentityError> {
    let chain = certificates("certificate", chain)?;
    let key = PrivateKeyDer::from_pem_slice(key)
        .map_err(|why| IdentityError::Pem { what: "key", why: why.to_string() })?;
    CertifiedKey::from_der(chain, key, provider).map(Arc::new).map_err(unusable)
}

/// What the node shows of itself, to those it dials and to those who dial it.
#[derive(Debug)]
struct Keys {
    current: RwLock<Arc<CertifiedKey>>,
}

impl ResolvesServerCert for Keys {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current.read()))
    }
}

impl ResolvesClientCert for Keys {
    fn resolve(
        &self,
        _authorities: &[&[u8]],
        _schemes: &[SignatureScheme],
    ) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current.read()))
    }

    fn has_certs(&self) -> bool {
        true
    }
}

/// Did the TLS of either side say no, rather than the network?
pub(super) fn refusal(error: &std::io::Error) -> Option<String> {
    let inner = error.get_ref()?.downcast_ref::<rustls::Error>()?;
    Some(format!("certificate or TLS not accepted: {inner}"))
}
