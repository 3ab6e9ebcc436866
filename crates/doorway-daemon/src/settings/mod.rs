//! The settings of a service: read from a file, or those of the node of one user, which needs none.

mod check;
mod document;
mod etcd;
mod files;
pub mod local;
mod members;
mod mistake;
mod pages;
mod read;
mod table;
mod value;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use doorway_node::LockRules;
use doorway_protocol::Scope;
use doorway_sessions::principal::Principal;
use doorway_sessions::secret;
use ring::digest::{SHA256, digest};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};

use crate::certificate::client_name;

pub use doorway_sessions::settings::{ClientSettings, Limits};
pub use members::MembersSettings;
pub use mistake::{Mistake, Mistakes};
pub use pages::{example, page};
pub use read::default_limits;
pub use value::span;

/// The configuration file of the node of a machine.
pub const FILE: &str = "/etc/doorway/doorway.toml";

/// The default socket of the node of a machine.
pub const SOCKET: &str = "/run/doorway/socket";

/// The default directory of the node of a machine, for what must survive a restart.
pub const DATA: &str = "/var/lib/doorway";

/// The settings of a service.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The file that the settings were read from.
    pub source: Option<crate::reload::Source>,
    /// The node.
    pub node: doorway_node::Config,
    /// The group that agrees on its members, if this node belongs to one. Then `node.members` is
    /// this node alone.
    pub members: Option<MembersSettings>,
    /// Who shares its locks: a user, a machine or a cluster.
    pub scope: Scope,
    /// The Unix socket, which serves all protocols.
    pub socket: Option<Socket>,
    /// Where to listen for sessions over TCP with TLS: `host:port`.
    pub sessions: Option<String>,
    /// Where to listen for HTTP over TCP with TLS: `host:port`.
    pub http: Option<String>,
    /// Where to listen for Redis clients over TCP with TLS: `host:port`. With it, the Unix socket
    /// serves them, too.
    pub redis: Option<String>,
    /// Whether a lock that a Redis client holds at another member counts at this node, too.
    pub redlock: bool,
    /// Where to listen for etcd clients over TCP with TLS: `host:port`. With it, the Unix socket
    /// serves them, too.
    pub etcd: Option<String>,
    /// The names by which HTTP clients may address this host, besides its IP addresses.
    pub hosts: Vec<String>,
    /// Whether HTTP serves the live page.
    pub page: bool,
    /// The clients that may connect over TCP.
    pub clients: Vec<ClientSettings>,
    /// The files from which `node.tls` was read. They are read again when they change.
    pub tls: Option<TlsFiles>,
    /// The limits of clients.
    pub limits: Limits,
    /// How long a service that is told to stop waits for its clients to release their locks.
    pub drain: Duration,
    /// Stop the service after this time without sessions.
    pub idle_stop: Option<Duration>,
    /// The clock by which windows of time begin and end. Only tests have another one than the
    /// system's.
    pub wall_clock: fn() -> SystemTime,
}

/// The files of a node's certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificates of the authority.
    pub ca: PathBuf,
    /// The certificate of this node.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// Settings of the command line, which override those of the file.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// The Unix socket: a path or `@name`.
    pub socket: Option<String>,
    /// The directory of the node.
    pub data: Option<PathBuf>,
    /// Stop the service after this time without sessions.
    pub idle_stop: Option<Duration>,
}

/// How a client over TCP proves who it is.
#[derive(Clone, Copy, Debug)]
pub enum Proof<'a> {
    /// A certificate that TLS has verified to be issued by our authority.
    Certificate(&'a CertificateDer<'a>),
    /// A token.
    Token(&'a str),
}

impl Settings {
    /// Read a file and all files that it names. All mistakes are reported at once.
    pub fn load(file: &Path, overrides: &Overrides) -> Result<Self, Mistakes> {
        let source = Some((file.to_owned(), overrides.clone()));
        Ok(Self { source, ..Self::parse(&text_of(file)?, file, overrides)? })
    }

    /// Read the text of a file, and all files that it names.
    pub fn parse(text: &str, file: &Path, overrides: &Overrides) -> Result<Self, Mistakes> {
        read::settings(text, file, overrides)
    }

    /// Read the rules for locks of a file: its `[[lock]]` tables and `algorithm`. They have to work
    /// for every number of members. The rest of the file may be missing, and is not looked at. All
    /// mistakes are reported at once.
    pub fn load_rules(file: &Path) -> Result<LockRules, Mistakes> {
        Self::parse_rules(&text_of(file)?, file)
    }

    /// Read the rules for locks of the text of a file, as [`Settings::load_rules`] does.
    pub fn parse_rules(text: &str, file: &Path) -> Result<LockRules, Mistakes> {
        read::rules_only(text, file)
    }

    /// Identify a client by its proof; `None` if the settings do not list such a client.
    pub fn principal(&self, proof: Proof<'_>) -> Option<Principal> {
        let known = match proof {
            Proof::Certificate(certificate) => {
                let own = webpki::EndEntityCert::try_from(certificate).ok()?;
                let is = |known: &&ClientSettings| {
                    let name = ServerName::try_from(client_name(&known.name, &self.node.group));
                    name.is_ok_and(|name| own.verify_is_valid_for_subject_name(&name).is_ok())
                };
                self.clients.iter().find(is)
            }
            Proof::Token(token) => {
                let hash = digest(&SHA256, token.as_bytes());
                // All tokens are compared, so that the time tells nothing about any of them.
                self.clients.iter().fold(None, |found, known| {
                    let same = known.token.is_some_and(|own| secret::same(&own, hash.as_ref()));
                    if same { Some(known) } else { found }
                })
            }
        }?;
        let ClientSettings { name, rights, .. } = known;
        Some(Principal { name: format!("client {name}"), uid: None, rights: rights.clone() })
    }
}

/// The text of a file.
fn text_of(file: &Path) -> Result<String, Mistakes> {
    let shown = file.display();
    let bytes = std::fs::read(file).map_err(|error| {
        let remedy = "`doorway help serve` shows how to begin";
        Mistakes::one(format!("cannot read {shown}: {error}"), remedy)
    })?;
    let text = String::from_utf8(bytes);
    text.map_err(|_| Mistakes::one(format!("{shown} is not UTF-8"), "write it in TOML"))
}

/// A Unix socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Socket {
    /// An abstract socket, which is not a file and disappears with its process: written `@name`.
    Abstract(String),
    /// A file, with its permissions. A user who may open it may use the node.
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
