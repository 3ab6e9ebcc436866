//! Options that several commands share, and how their values are read.

use std::path::{Path, PathBuf};
use std::time::Duration;

use doorway_client::{Endpoint, Setup, TlsConfig};
use doorway_daemon::settings::span;
use doorway_protocol::{Fence, Name};

use super::exit::{self, Exit};
use super::link::{Link, Persistence};

/// The options with which a command finds its node.
///
/// Flatten this after all other arguments: those that follow would get its headings in the help.
#[derive(clap::Args)]
#[command(next_help_heading = "Node")]
pub(crate) struct NodeArgs {
    /// Do not start a node for this user if none runs: exit with 69 instead
    #[arg(long)]
    no_start: bool,

    #[command(flatten)]
    pub(crate) address: AddressArgs,
}

/// The options of a command that only looks, and so never starts a node.
///
/// Flatten this after all other arguments, like [`NodeArgs`].
#[derive(clap::Args)]
#[command(next_help_heading = "Node")]
pub(crate) struct LookArgs {
    /// Has no effect: accepted because every command accepted it once
    #[arg(long, hide = true, global = true)]
    no_start: bool,

    #[command(flatten)]
    pub(crate) address: AddressArgs,
}

/// Where the node is.
#[derive(clap::Args)]
pub(crate) struct AddressArgs {
    /// Use the node at this socket.
    #[arg(
        long,
        global = true,
        value_name = "ENDPOINT",
        help = "Use the node at this socket: a path, @NAME or tcp://HOST:PORT; if it is given \
                several times, or with commas, use the first node that can be reached [default: \
                $DOORWAY_SOCKET, else the node of this machine if it has one, else the node of \
                this user]"
    )]
    socket: Vec<String>,

    #[command(flatten)]
    tcp: TcpArgs,
}

/// How a node and a client prove to each other who they are, over TCP.
#[derive(clap::Args)]
#[command(next_help_heading = "Node over TCP (TLS)")]
struct TcpArgs {
    /// Trust nodes whose certificate this authority signed; required with tcp://
    #[arg(long, global = true, value_name = "FILE")]
    ca: Option<PathBuf>,

    /// Present this certificate to the node
    #[arg(long, global = true, value_name = "FILE", requires = "key")]
    certificate: Option<PathBuf>,

    /// Use this private key, which belongs to --certificate
    #[arg(long, global = true, value_name = "FILE", requires = "certificate")]
    key: Option<PathBuf>,

    /// Expect this name in the node's certificate, such as NODE.GROUP.doorway [default: HOST]
    #[arg(long, global = true, value_name = "NAME")]
    server_name: Option<String>,

    /// Present the access token in this file to the node
    #[arg(long, global = true, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

/// What a client does where its user's node does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// It starts the node, and says so if standard error is a terminal.
    Tell,
    /// It starts the node, and says so in any case.
    TellAlways,
    /// It ends.
    Never,
}

impl NodeArgs {
    /// Prepare a session with the node. [`Link::open`] connects it.
    pub(crate) fn link(
        &self,
        setup: Setup,
        verbose: bool,
        persistence: Persistence,
    ) -> Result<Link, Exit> {
        let start = match (self.no_start, verbose) {
            (true, _) => Start::Never,
            (false, true) => Start::TellAlways,
            (false, false) => Start::Tell,
        };
        self.address.link(setup, start, persistence)
    }
}

impl AddressArgs {
    /// Prepare a session with the node. [`Link::open`] connects it.
    pub(crate) fn link(
        &self,
        mut setup: Setup,
        start: Start,
        persistence: Persistence,
    ) -> Result<Link, Exit> {
        let sockets = (!self.socket.is_empty()).then(|| self.socket.join(","));
        let endpoints = Endpoint::resolve(sockets.as_deref()).map_err(|error| usage(&error))?;
        let host = endpoints.iter().find_map(|endpoint| match endpoint {
            Endpoint::Tcp(host, _) => Some(host),
            _ => None,
        });
        let tls = host.map(|host| self.tcp.config(host)).transpose()?;
        if let Some(file) = &self.tcp.token_file {
            let wrong = |_| usage(&format!("the token in {} is not UTF-8", file.display()));
            let token = String::from_utf8(read(file)?).map_err(wrong)?;
            setup.token = Some(token.trim().to_owned());
        }
        Ok(Link::new(endpoints, setup, tls, start, persistence))
    }
}

impl TcpArgs {
    fn config(&self, host: &str) -> Result<TlsConfig, Exit> {
        let Some(authority) = &self.ca else {
            let text = "a node at tcp:// needs --ca FILE, the authority of its certificate";
            return Err(Exit::new(exit::USAGE, text));
        };
        let authority = read(authority)?;
        let server = self.server_name.as_deref().unwrap_or(host);
        let config = match (&self.certificate, &self.key) {
            (Some(chain), Some(key)) => {
                TlsConfig::with_identity(&authority, server, &read(chain)?, &read(key)?)
            }
            _ => TlsConfig::new(&authority, server),
        };
        let config = config.map_err(|error| usage(&error))?;
        Ok(if self.server_name.is_none() { config.by_host() } else { config })
    }
}

fn usage(error: &dyn ToString) -> Exit {
    Exit::new(exit::USAGE, error.to_string())
}

fn read(file: &Path) -> Result<Vec<u8>, Exit> {
    let failed = |error| usage(&format!("cannot read {}: {error}", file.display()));
    std::fs::read(file).map_err(failed)
}

/// Parses a time: seconds, with or without a fraction, or a number with a unit as in the
/// configuration file, such as `500ms` or `10m`.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    // Ten years are long enough for everyone, and no calculation with them overflows.
    let time = span(text).filter(|time| time.as_secs() <= 315_360_000);
    time.ok_or_else(|| {
        format!("'{text}' is not a time: give seconds, or a unit as in 500ms, 10m or 2h")
    })
}

/// Parses a session's TTL: the node ends a session from which it hears nothing for that long.
pub(crate) fn ttl(text: &str) -> Result<Duration, String> {
    let ttl = seconds(text)?;
    if ttl < Duration::from_millis(500) {
        return Err("the shortest TTL is 0.5 seconds".to_owned());
    }
    Ok(ttl)
}

/// Parses the name of a lock.
pub(crate) fn name(text: &str) -> Result<Name, String> {
    Name::new(text).map_err(|error| error.to_string())
}

/// Parses a fence, as `doorway lock` prints it.
pub(crate) fn fence(text: &str) -> Result<Fence, String> {
    let wrong = |_| format!("'{text}' is not a fence: give the number that `doorway lock` printed");
    text.parse().map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_may_have_fractions_and_units_and_are_limited() {
        assert_eq!(seconds("2"), Ok(Duration::from_secs(2)));
        assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
        assert_eq!(seconds("10m"), Ok(Duration::from_mins(10)));
        for wrong in ["", "-1", "x", "inf", "NaN", "1e300", "2 moons", "99999d"] {
            assert!(seconds(wrong).unwrap_err().contains("seconds"), "{wrong}");
        }
        assert!(ttl("0.4").is_err());
        assert!(ttl("0.5").is_ok());
    }
}
