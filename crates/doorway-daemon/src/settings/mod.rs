//! How a service is to run: out of a file, or as the node of one user that needs none.

mod check;
mod document;
mod files;
pub mod local;
mod mistake;
mod pages;
mod read;
mod table;
mod value;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use doorway_protocol::Scope;
use ring::digest::{SHA256, digest};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};

use crate::certificate::client_name;
use crate::principal::{Principal, Rights};
use crate::secret;

pub use mistake::{Mistake, Mistakes};
pub use pages::{example, page};
pub use value::span;

/// Where the node of a machine has its configuration.
pub const FILE: &str = "/etc/doorway/doorway.toml";

/// Where the node of a machine has its socket.
pub const SOCKET: &str = "/run/doorway/socket";

/// Where the node of a machine keeps what must survive it.
pub const DATA: &str = "/var/lib/doorway";

/// How a service is to run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The node.
    pub node: doorway_node::Config,
    /// Whom its locks are for.
    pub scope: Scope,
    /// The Unix socket, which speaks both protocols.
    pub socket: Option<Socket>,
    /// Where sessions come in over TCP with TLS: `host:port`.
    pub sessions: Option<String>,
    /// Where HTTP comes in over TCP with TLS.
    pub http: Option<String>,
    /// The names under which this host may be asked for over HTTP, besides its addresses.
    pub hosts: Vec<String>,
    /// Who may come in over TCP.
    pub clients: Vec<Known>,
    /// The files out of which `node.tls` was read, to be read again when they change. The doors on
    /// TCP need them.
    pub tls: Option<TlsFiles>,
    /// What nobody may exceed.
    pub limits: Limits,
    /// How long a service that is told to stop waits for its clients to finish.
    pub drain: Duration,
    /// After how long without sessions the service ends by itself.
    pub idle_stop: Option<Duration>,
}

/// The files that prove who a node is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificates of the authority.
    pub ca: PathBuf,
    /// The certificate of this node.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// What the command line says against the file.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// The Unix socket: a path or `@name`.
    pub socket: Option<String>,
    /// The directory of the node.
    pub data: Option<PathBuf>,
    /// After how long without sessions the service ends by itself.
    pub idle_stop: Option<Duration>,
}

/// What a client over TCP shows of itself.
#[derive(Clone, Copy, Debug)]
pub enum Proof<'a> {
    /// A certificate, which TLS has found to be of our authority.
    Certificate(&'a CertificateDer<'a>),
    /// A token.
    Token(&'a str),
}

impl Settings {
    /// Read a file and all files that it names. All mistakes are found at once.
    pub fn load(file: &Path, overrides: &Overrides) -> Result<Self, Mistakes> {
        let shown = file.display().to_string();
        match std::fs::read(file) {
            Err(error) => Err(Mistakes::one(
                format!("cannot read {shown}: {error}"),
                "`doorway help serve` shows how to begin",
            )),
            Ok(bytes) => match String::from_utf8(bytes) {
                Ok(text) => Self::parse(&text, file, overrides),
                Err(_) => Err(Mistakes::one(format!("{shown} is no text"), "write it in TOML")),
            },
        }
    }

    /// Read a text that stands in this file, and all files that it names.
    pub fn parse(text: &str, file: &Path, overrides: &Overrides) -> Result<Self, Mistakes> {
        read::settings(text, file, overrides)
    }

    /// Who comes with this proof: a client that the file lists, or nobody.
    pub fn principal(&self, proof: Proof<'_>) -> Option<Principal> {
        let known = match proof {
            Proof::Certificate(certificate) => {
                let own = webpki::EndEntityCert::try_from(certificate).ok()?;
                let is = |known: &&Known| {
                    let name = ServerName::try_from(client_name(&known.name, &self.node.group));
                    name.is_ok_and(|name| own.verify_is_valid_for_subject_name(&name).is_ok())
                };
                self.clients.iter().find(is)
            }
            Proof::Token(token) => {
                let hash = digest(&SHA256, token.as_bytes());
                // All are compared, and each to its end: the time tells nothing about any of them.
                self.clients.iter().fold(None, |found, known| {
                    let same = known.token.is_some_and(|own| secret::same(&own, hash.as_ref()));
                    if same { Some(known) } else { found }
                })
            }
        }?;
        let Known { name, rights, .. } = known;
        Some(Principal { name: format!("client {name}"), uid: None, rights: rights.clone() })
    }
}

/// A Unix socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Socket {
    /// A name that is no file, and gone with its process: written `@name`.
    Abstract(String),
    /// A file, with its permissions. Who may open it may use the node.
    File(PathBuf, u32),
}

impl fmt::Display for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Abstract(name) => write!(f, "@{name}"),
            Self::File(path, _) => write!(f, "{}", path.display()),
        }
    }
}

/// A client that may come in over TCP.
#[derive(Clone, Debug)]
pub struct Known {
    /// Its name, which a certificate proves: it is issued for `NAME.client.GROUP.doorway`.
    pub name: String,
    /// The SHA-256 of its token, if it may come with one.
    pub token: Option<[u8; 32]>,
    /// What it may do.
    pub rights: Rights,
}

/// What nobody may exceed. Over a limit is an error to that client and no trouble for others: of
/// sessions, connections and requests that wait, one client of another machine gets half at most.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Open sessions.
    pub sessions: usize,
    /// Connections, also those without a session.
    pub connections: usize,
    /// Grants that one session holds.
    pub grants: usize,
    /// Requests of one session that wait.
    pub waiting: usize,
    /// Requests at this node that wait for one lock.
    pub queue: usize,
    /// The longest that a session lives without being heard of.
    pub ttl: Duration,
    /// Descriptors for connections and processes. No file says it: the system does.
    pub files: usize,
}
