//! A private certificate authority in a directory, which issues the certificates of a group's nodes
//! and clients.

mod files;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::{fs, io};

use doorway_protocol::{LABEL, is_label};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType, SerialNumber,
};
use ring::rand::{SecureRandom as _, SystemRandom};
use serde::Serialize;
use time::{Duration, OffsetDateTime};

use self::files::{make_directory, replace, write_new};
use crate::certificate::{Facts, client_name, node_name};

/// The default lifetime of an authority in days: ten years.
pub const AUTHORITY_DAYS: u32 = 3650;

/// The default lifetime of a node's or client's certificate in days.
pub const LEAF_DAYS: u32 = 365;

/// The longest lifetime in days.
pub const MOST_DAYS: u32 = 36_500;

/// Certificates are valid from this long ago, for machines whose clock is slow.
const SLACK: Duration = Duration::hours(1);

/// Why no certificate was made. Files that existed before have not changed.
#[derive(Debug, thiserror::Error)]
pub enum CaError {
    /// The file exists already, and files are never overwritten.
    #[error("{} exists already; {remedy}", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
        /// What to do.
        remedy: &'static str,
    },
    /// A group, node or client cannot have this name.
    #[error("`{name}` cannot be the name of a {what}; use {LABEL}")]
    Label {
        /// What the name is for: a group, a node or a client.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A certificate cannot be for this address.
    #[error(
        "a certificate cannot be for `{0}`; give a host name that does not end in .doorway, or an \
         IP address"
    )]
    Address(String),
    /// The directory does not hold an authority that `doorway ca init` made.
    #[error("{} holds no authority of a group: {why}; `doorway ca init` makes one", path.display())]
    NoAuthority {
        /// The directory.
        path: PathBuf,
        /// What is missing.
        why: String,
    },
    /// The authority has ended.
    #[error("the authority ended on {0}; make another one with `doorway ca init`")]
    Ended(String),
    /// The system refused to read or write a file.
    #[error("cannot {what} {}: {error}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The library that makes certificates refused.
    #[error("cannot make the certificate: {0}")]
    Make(String),
}

/// The files of a new certificate, and what to do with them.
#[derive(Debug, Serialize)]
pub struct CertificateFiles {
    /// The certificate.
    pub certificate: PathBuf,
    /// Its key, which only its owner may read.
    pub key: PathBuf,
    /// The names and addresses it is for.
    pub names: Vec<String>,
    /// Its last day, as 2027-01-31.
    pub until: String,
    /// What to write into the configuration.
    pub toml: String,
}

/// A certificate to be made.
#[derive(Clone, Debug)]
pub struct Leaf<'a> {
    /// The name of the node or client.
    pub name: &'a str,
    /// Other host names and addresses under which it is reached.
    pub addresses: &'a [String],
    /// Its lifetime in days.
    pub days: u32,
    /// The directory for the two files.
    pub to: &'a Path,
    /// Whether to replace an existing certificate. Its key stays, and so do its addresses if none
    /// are given.
    pub renew: bool,
}

/// Make an authority in a directory.
pub fn init(directory: &Path, group: &str, days: u32) -> Result<CertificateFiles, CaError> {
    label("group", group)?;
    let (certificate, key) = (directory.join("ca.crt"), directory.join("ca.key"));
    for path in [&certificate, &key] {
        if path.exists() {
            let remedy =
                "name another directory: the certificates that this authority issued depend on it";
            return Err(CaError::Exists { path: path.clone(), remedy });
        }
    }
    make_directory(directory)?;
    let pair = KeyPair::generate().map_err(unmade)?;
    let mut params = params(days, None)?;
    params.distinguished_name.push(DnType::CommonName, format!("{group} doorway authority"));
    // From here the group is read when the authority issues a certificate.
    params.distinguished_name.push(DnType::OrganizationName, group);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let until = params.not_after.date().to_string();
    let made = params.self_signed(&pair).map_err(unmade)?;
    write_new(&key, pair.serialize_pem().as_bytes(), 0o600)?;
    write_new(&certificate, made.pem().as_bytes(), 0o644)?;
    let toml = format!("group = \"{group}\"\n");
    Ok(CertificateFiles { certificate, key, names: Vec::new(), until, toml })
}

/// An authority that was made before.
#[derive(Debug)]
pub struct Authority {
    directory: PathBuf,
    group: String,
    until: OffsetDateTime,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// Open the authority in a directory.
    pub fn open(directory: &Path) -> Result<Self, CaError> {
        let path = directory.to_owned();
        let none = |why: String| CaError::NoAuthority { path: path.clone(), why };
        let read = |name: &str| {
            let text = fs::read_to_string(directory.join(name));
            text.map_err(|error| none(format!("{name}: {error}")))
        };
        let (certificate, key) = (read("ca.crt")?, read("ca.key")?);
        let facts =
            Facts::all(certificate.as_bytes()).map_err(|why| none(format!("ca.crt: {why}")))?;
        let facts = facts.into_iter().next().filter(|facts| facts.authority);
        let facts = facts.ok_or_else(|| none("ca.crt may not issue certificates".to_owned()))?;
        let group = facts.organization.clone().filter(|group| is_label(group));
        let group = group.ok_or_else(|| none("ca.crt names no group".to_owned()))?;
        if facts.until < OffsetDateTime::now_utc() {
            return Err(CaError::Ended(facts.last_day()));
        }
        let pair = KeyPair::from_pem(&key).map_err(|error| none(format!("ca.key: {error}")))?;
        let issuer = Issuer::from_ca_cert_pem(&certificate, pair);
        let issuer = issuer.map_err(|error| none(format!("ca.crt: {error}")))?;
        Ok(Self { directory: path, group, until: facts.until, issuer })
    }

    /// The group of the authority.
    pub fn group(&self) -> &str {
        &self.group
    }

    /// Make the certificate of a node.
    pub fn node(&self, leaf: &Leaf<'_>) -> Result<CertificateFiles, CaError> {
        label("node", leaf.name)?;
        let uses = [ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let mut made = self.issue(leaf, node_name(leaf.name, &self.group), &uses)?;
        let name = |path: &Path| quoted(&path.file_name().unwrap_or_default().to_string_lossy());
        made.toml = format!(
            "group = \"{}\"\nnode = \"{}\"\n\n[tls]\nca = \"ca.crt\"\ncertificate = {}\nkey = {}\n",
            self.group,
            leaf.name,
            name(&made.certificate),
            name(&made.key)
        );
        Ok(made)
    }

    /// Make the certificate of a client.
    pub fn client(&self, leaf: &Leaf<'_>) -> Result<CertificateFiles, CaError> {
        label("client", leaf.name)?;
        let uses = [ExtendedKeyUsagePurpose::ClientAuth];
        let mut made = self.issue(leaf, client_name(leaf.name, &self.group), &uses)?;
        made.toml = format!(
            "[[client]]\nname = \"{}\"\n\
             rights = [{{ names = \"*\", may = [\"acquire\", \"inspect\"] }}]\n",
            leaf.name
        );
        Ok(made)
    }

    /// The file of the authority's certificate, which every node and client needs.
    pub fn certificate(&self) -> PathBuf {
        self.directory.join("ca.crt")
    }

    fn issue(
        &self,
        leaf: &Leaf<'_>,
        name: String,
        uses: &[ExtendedKeyUsagePurpose],
    ) -> Result<CertificateFiles, CaError> {
        let certificate = leaf.to.join(format!("{}.crt", leaf.name));
        let key = leaf.to.join(format!("{}.key", leaf.name));
        let mut names = vec![name];
        let pair = if leaf.renew {
            let old = fs::read(&certificate).map_err(failed("read", &certificate))?;
            if leaf.addresses.is_empty() {
                names.extend(besides(&old, &names[0]));
            }
            let pem = fs::read_to_string(&key).map_err(failed("read", &key))?;
            KeyPair::from_pem(&pem).map_err(unmade)?
        } else {
            for path in [&certificate, &key] {
                if path.exists() {
                    let remedy = "`--renew` makes the next certificate for the key that is there";
                    return Err(CaError::Exists { path: path.clone(), remedy });
                }
            }
            KeyPair::generate().map_err(unmade)?
        };
        for address in leaf.addresses {
            check_address(address)?;
            names.push(address.clone());
        }
        let mut params = params(leaf.days, Some(self.until))?;
        params.distinguished_name.push(DnType::CommonName, leaf.name);
        params.subject_alt_names =
            names.iter().map(|name| alternative(name)).collect::<Result<_, _>>()?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = uses.to_vec();
        params.use_authority_key_identifier_extension = true;
        let until = params.not_after.date().to_string();
        let made = params.signed_by(&pair, &self.issuer).map_err(unmade)?;
        make_directory(leaf.to)?;
        if leaf.renew {
            replace(&certificate, made.pem().as_bytes())?;
        } else {
            write_new(&key, pair.serialize_pem().as_bytes(), 0o600)?;
            write_new(&certificate, made.pem().as_bytes(), 0o644)?;
        }
        Ok(CertificateFiles { certificate, key, names, until, toml: String::new() })
    }
}

/// A certificate, as `doorway ca show` shows it.
#[derive(Debug, Serialize)]
pub struct CertificateSummary {
    /// The file.
    pub file: PathBuf,
    /// `authority`, `node`, `client` or `other`.
    pub kind: &'static str,
    /// The names and addresses it is for.
    pub names: Vec<String>,
    /// Its last day, as 2027-01-31.
    pub until: String,
    /// The number of days left; negative if it has ended.
    pub days_left: i64,
}

/// The certificates of a file, or of all files of a directory that end in `.crt` or `.pem`.
pub fn show(path: &Path) -> Result<Vec<CertificateSummary>, CaError> {
    let mut files = Vec::new();
    if path.is_dir() {
        for entry in fs::read_dir(path).map_err(failed("read", path))? {
            let file = entry.map_err(failed("read", path))?.path();
            let end = file.extension().and_then(|end| end.to_str());
            files.extend(end.is_some_and(|end| end == "crt" || end == "pem").then_some(file));
        }
        files.sort();
    } else {
        files.push(path.to_owned());
    }
    let now = OffsetDateTime::now_utc();
    let mut shown = Vec::new();
    for file in files {
        let pem = fs::read(&file).map_err(failed("read", &file))?;
        let all = Facts::all(&pem).map_err(|why| CaError::Io {
            what: "read",
            path: file.clone(),
            error: io::Error::other(why),
        })?;
        shown.extend(all.into_iter().map(|facts| CertificateSummary {
            file: file.clone(),
            kind: kind(&facts),
            until: facts.last_day(),
            days_left: facts.days_left(now),
            names: named(&facts),
        }));
    }
    Ok(shown)
}

fn kind(facts: &Facts) -> &'static str {
    let parts = facts.names.iter().find_map(|name| name.strip_suffix(".doorway"));
    match parts.map(|name| name.split('.').count()) {
        _ if facts.authority => "authority",
        Some(2) => "node",
        Some(3) => "client",
        _ => "other",
    }
}

fn named(facts: &Facts) -> Vec<String> {
    if facts.authority {
        return facts.organization.iter().map(|group| format!("group {group}")).collect();
    }
    let addresses = facts.addresses.iter().map(ToString::to_string);
    facts.names.iter().cloned().chain(addresses).collect()
}

/// The names and addresses of an older certificate, without the name of its node or client.
fn besides(pem: &[u8], own: &str) -> Vec<String> {
    let facts = Facts::all(pem).ok().and_then(|all| all.into_iter().next());
    let names = facts.map(|facts| named(&facts)).unwrap_or_default();
    names.into_iter().filter(|name| name != own && check_address(name).is_ok()).collect()
}

fn label(what: &'static str, name: &str) -> Result<(), CaError> {
    if is_label(name) { Ok(()) } else { Err(CaError::Label { what, name: name.to_owned() }) }
}

/// Check that an address is a host name or an IP address. Names that end in `.doorway` are reserved
/// for the names of nodes and clients.
fn check_address(address: &str) -> Result<(), CaError> {
    if address.parse::<IpAddr>().is_ok() {
        return Ok(());
    }
    let lower = address.to_ascii_lowercase();
    let part = |part: &str| is_label(part);
    let fits = address.len() <= 253 && lower.split('.').all(part);
    let taken = lower == "doorway" || lower.ends_with(".doorway");
    if fits && !taken { Ok(()) } else { Err(CaError::Address(address.to_owned())) }
}

fn alternative(name: &str) -> Result<SanType, CaError> {
    match name.parse::<IpAddr>() {
        Ok(address) => Ok(SanType::IpAddress(address)),
        Err(_) => Ok(SanType::DnsName(name.try_into().map_err(unmade)?)),
    }
}

/// What all certificates have: a serial number that cannot be guessed, and a lifetime that does not
/// go beyond its authority's.
fn params(days: u32, end: Option<OffsetDateTime>) -> Result<CertificateParams, CaError> {
    let mut params = CertificateParams::default();
    let mut serial = [0; 16];
    SystemRandom::new().fill(&mut serial).map_err(unmade)?;
    serial[0] = serial[0] & 0x7f | 0x40; // Positive, and always of the same length.
    params.serial_number = Some(SerialNumber::from_slice(&serial));
    let now = OffsetDateTime::now_utc();
    let until = now.saturating_add(Duration::days(i64::from(days)));
    params.not_before = now.saturating_sub(SLACK);
    params.not_after = end.map_or(until, |end| end.min(until));
    params.distinguished_name = rcgen::DistinguishedName::new();
    Ok(params)
}

fn quoted(text: &str) -> String {
    format!("{text:?}")
}

fn unmade(error: impl std::fmt::Display) -> CaError {
    CaError::Make(error.to_string())
}

fn failed<'a>(what: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> CaError + 'a {
    move |error| CaError::Io { what, path: path.to_owned(), error }
}
