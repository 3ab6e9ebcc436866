//! How a node proves its name: by a certificate issued for `NODE.GROUP.doorway`.

use std::sync::Arc;

use parking_lot::RwLock;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{
    self, ClientConfig, DigitallySignedStruct, RootCertStore, ServerConfig, SignatureScheme,
};

use crate::config::TlsConfig;

/// The certificate of a node, and the authority that it trusts. Clones share one identity: renewing
/// one renews all.
#[derive(Clone, Debug)]
pub struct Identity(Arc<RwLock<TlsConfigs>>);

/// The protocol of connections between stores, as TLS names it. Links name none.
pub(super) const STORES: &[u8] = b"doorway-members/1";

/// The configurations of TLS, for connections that the node dials and for those that it accepts.
#[derive(Clone, Debug)]
struct TlsConfigs {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
    /// For connections that a node without a store accepts.
    links: Arc<ServerConfig>,
    /// For connections to the store of a node whose name is not known before.
    store: Arc<ClientConfig>,
}

/// Why an identity cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// A text is not PEM, or does not hold what is needed.
    #[error("cannot read the {what}: {why}")]
    Pem {
        /// Which text: `authority`, `certificate` or `key`.
        what: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// Certificates that cannot be used.
    #[error("cannot use the certificates: {0}")]
    Unusable(String),
}

impl Identity {
    /// Make an identity from PEM texts: the authority that all members trust, the node's
    /// certificate with any intermediate certificates, and its key.
    pub fn from_pem(authority: &[u8], chain: &[u8], key: &[u8]) -> Result<Self, IdentityError> {
        let shown = shown(authority, certificates("certificate", chain)?, key)?;
        Ok(Self(Arc::new(RwLock::new(shown))))
    }

    /// Use another certificate and trust another authority, from the next connection on.
    ///
    /// TLS sessions that were made with the old certificate cannot be resumed, because the new
    /// configuration does not know them.
    pub fn renew(&self, authority: &[u8], chain: &[u8], key: &[u8]) -> Result<(), IdentityError> {
        let shown = shown(authority, certificates("certificate", chain)?, key)?;
        *self.0.write() = shown;
        Ok(())
    }

    /// Renew the identity as [`Identity::renew`] does, but refuse a certificate that is not issued
    /// for this node.
    pub(crate) fn renew_as(
        &self,
        node: &str,
        group: &str,
        tls: &TlsConfig,
    ) -> Result<(), IdentityError> {
        let chain = certificates("certificate", &tls.certificate)?;
        if !name_of(node, group).is_some_and(|name| is_valid_for(Some(&chain), &name)) {
            let why = format!("the new certificate is not issued for `{node}.{group}.doorway`");
            return Err(IdentityError::Unusable(why));
        }
        self.renew(&tls.ca, &tls.certificate, &tls.key)
    }

    pub(super) fn client(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.0.read().client)
    }

    /// The configuration for callers, among them stores if this node has one.
    pub(super) fn server(&self, has_store: bool) -> Arc<ServerConfig> {
        let configs = self.0.read();
        Arc::clone(if has_store { &configs.server } else { &configs.links })
    }

    pub(super) fn store(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.0.read().store)
    }
}

fn shown(
    authority: &[u8],
    chain: Vec<CertificateDer<'static>>,
    key: &[u8],
) -> Result<TlsConfigs, IdentityError> {
    let provider = Arc::new(ring::default_provider());
    let mut roots = RootCertStore::empty();
    for certificate in certificates("authority", authority)? {
        roots.add(certificate).map_err(unusable)?;
    }
    let roots = Arc::new(roots);
    let key = PrivateKeyDer::from_pem_slice(key)
        .map_err(|why| IdentityError::Pem { what: "key", why: why.to_string() })?;
    let client = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&TLS13])
        .map_err(unusable)?
        .with_root_certificates(Arc::clone(&roots))
        .with_client_auth_cert(chain.clone(), key.clone_key())
        .map_err(unusable)?;
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider));
    let mut server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&TLS13])
        .map_err(unusable)?
        .with_client_cert_verifier(verifier.build().map_err(unusable)?)
        .with_single_cert(chain.clone(), key.clone_key())
        .map_err(unusable)?;
    let links = server.clone();
    server.alpn_protocols = vec![STORES.to_vec()];
    let any = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider));
    let any = AnyNode(any.build().map_err(unusable)?);
    let mut store = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .map_err(unusable)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(any))
        .with_client_auth_cert(chain, key)
        .map_err(unusable)?;
    store.alpn_protocols = vec![STORES.to_vec()];
    let (client, store) = (Arc::new(client), Arc::new(store));
    let (server, links) = (Arc::new(server), Arc::new(links));
    Ok(TlsConfigs { client, server, links, store })
}

/// Accepts the certificate of any node that the authority has signed. The name of the node is read
/// from the certificate afterwards. This is for addresses whose node is not known yet.
#[derive(Debug)]
struct AnyNode(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for AnyNode {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let nameless = || rustls::Error::General("the certificate is not that of a node".into());
        let own = webpki::EndEntityCert::try_from(end_entity).map_err(|_| nameless())?;
        let mut names = own.valid_dns_names().filter(|name| name.ends_with(".doorway"));
        let name = names.next().and_then(|name| ServerName::try_from(name).ok());
        let name = name.ok_or_else(nameless)?;
        self.0.verify_server_cert(end_entity, intermediates, &name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, cert, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, cert, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

/// The name of the node of this group for which the first certificate of a verified chain is
/// issued.
pub(super) fn node_of(chain: Option<&[CertificateDer<'_>]>, group: &str) -> Option<String> {
    let certificate = webpki::EndEntityCert::try_from(chain?.first()?).ok()?;
    let suffix = format!(".{group}.doorway");
    let name = certificate.valid_dns_names().find_map(|name| name.strip_suffix(&suffix))?;
    (!name.contains('.')).then(|| name.to_owned())
}

/// The name for which a node's certificate must be valid; `None` if it is not a valid DNS name.
pub(super) fn name_of(node: &str, group: &str) -> Option<ServerName<'static>> {
    ServerName::try_from(format!("{node}.{group}.doorway")).ok()
}

/// Is the first certificate of a chain, which TLS has verified, issued for `name`?
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
    if found.is_empty() { Err(wrong("it contains no certificate".to_owned())) } else { Ok(found) }
}

/// The reason, if TLS on either side refused the connection; `None` if the network failed.
pub(super) fn refusal(error: &std::io::Error) -> Option<String> {
    let inner = error.get_ref()?.downcast_ref::<rustls::Error>()?;
    Some(format!("TLS refused the connection: {inner}"))
}
