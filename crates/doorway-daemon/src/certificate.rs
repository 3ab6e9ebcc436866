//! The contents of a certificate: the names it is for, and when it ends.

use std::net::IpAddr;

use time::OffsetDateTime;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer as _;

/// A certificate that ends within this number of days causes warnings.
pub const SOON_DAYS: i64 = 30;

/// The name for which the certificate of a node is issued.
pub fn node_name(node: &str, group: &str) -> String {
    format!("{node}.{group}.doorway")
}

/// The name for which the certificate of a client is issued.
pub fn client_name(client: &str, group: &str) -> String {
    format!("{client}.client.{group}.doorway")
}

/// The contents of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The names it is for.
    pub names: Vec<String>,
    /// The addresses it is for.
    pub addresses: Vec<IpAddr>,
    /// The organization that its subject names; our authorities put their group there.
    pub organization: Option<String>,
    /// From when it is valid.
    pub from: OffsetDateTime,
    /// Until when it is valid.
    pub until: OffsetDateTime,
    /// Whether it may issue other certificates.
    pub authority: bool,
}

impl Facts {
    /// Read one certificate.
    pub fn of(certificate: &CertificateDer<'_>) -> Result<Self, String> {
        let parsed = X509Certificate::from_der(certificate.as_ref());
        let (_, parsed) = parsed.map_err(|error| format!("it is not a certificate: {error}"))?;
        let mut facts = Self {
            names: Vec::new(),
            addresses: Vec::new(),
            organization: parsed
                .subject()
                .iter_organization()
                .next()
                .and_then(|text| text.as_str().ok().map(str::to_owned)),
            from: parsed.validity().not_before.to_datetime(),
            until: parsed.validity().not_after.to_datetime(),
            authority: parsed.is_ca(),
        };
        let alternative = parsed.subject_alternative_name().ok().flatten();
        for name in alternative.iter().flat_map(|names| &names.value.general_names) {
            match name {
                GeneralName::DNSName(name) => facts.names.push((*name).to_owned()),
                GeneralName::IPAddress(bytes) => facts.addresses.extend(address(bytes)),
                _ => {}
            }
        }
        Ok(facts)
    }

    /// Read all certificates of a PEM text, of which there must be one at least.
    pub fn all(pem: &[u8]) -> Result<Vec<Self>, String> {
        certificates(pem)?.iter().map(Self::of).collect()
    }

    /// The number of whole days for which it is still valid; negative if it has ended.
    pub fn days_left(&self, now: OffsetDateTime) -> i64 {
        (self.until - now).whole_days() - i64::from(self.until < now)
    }

    /// Its last day, as 2027-01-31.
    pub fn last_day(&self) -> String {
        self.until.date().to_string()
    }
}

/// All certificates of a PEM text, of which there must be one at least.
pub fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found = found.map_err(|error| format!("it is not PEM: {error}"))?;
    if found.is_empty() { Err("it holds no certificate".to_owned()) } else { Ok(found) }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    four.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}
