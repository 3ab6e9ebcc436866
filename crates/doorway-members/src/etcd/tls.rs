//! The certificates with which etcd is reached.

use std::sync::Arc;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// The certificates with which etcd is reached, as PEM texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EtcdCertificates {
    /// The authority that has issued the certificates of etcd.
    pub authority: Vec<u8>,
    /// The certificate of this client and its key, if etcd asks for one.
    pub client: Option<(Vec<u8>, Vec<u8>)>,
}

impl EtcdCertificates {
    /// Check that the certificates can be used. The error says which text cannot.
    pub fn check(&self) -> Result<(), String> {
        self.config().map(drop)
    }

    pub(super) fn config(&self) -> Result<Arc<ClientConfig>, String> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates("the authority", &self.authority)? {
            let unusable = |error| format!("the authority cannot be used: {error}");
            roots.add(certificate).map_err(unusable)?;
        }
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots);
        let config = match &self.client {
            None => builder.with_no_client_auth(),
            Some((chain, key)) => {
                let chain = certificates("the client's certificate", chain)?;
                let key = PrivateKeyDer::from_pem_slice(key)
                    .map_err(|error| format!("the client's key is not a key in PEM: {error}"))?;
                builder.with_client_auth_cert(chain, key).map_err(|error| {
                    format!("the client's certificate and key do not belong together: {error}")
                })?
            }
        };
        Ok(Arc::new(config))
    }
}

fn certificates(what: &str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let all = all.map_err(|error| format!("{what} is not PEM: {error}"))?;
    if all.is_empty() {
        return Err(format!("{what} has no certificate"));
    }
    Ok(all)
}
