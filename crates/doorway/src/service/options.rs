//! Options that several commands share, and how their values are read.

use std::path::{Path, PathBuf};
use std::time::Duration;

use doorway_client::{Endpoint, Setup, TlsConfig};
use doorway_daemon::settings::span;
use doorway_protocol::{Fence, Name};

use super::exit::{self, Exit};
use super::link::Link;

/// How to reach the node.
#[derive(clap::Args)]
pub(crate) struct NodeArgs {
    /// The node's socket: a path, @NAME, or for TCP a host and a port [default: that of the
    /// variable, else that of this machine, else that of this user]
    #[arg(
        long,
        value_name = "ENDPOINT",
        help = "The node's socket: a path, @NAME or tcp://HOST:PORT [default: $DOORWAY_SOCKET, \
                else that of this machine, else that of this user]"
    )]
    socket: Option<String>,

    /// Start no node of this user's own where none runs: exit with 69
    #[arg(long)]
    pub(crate) no_start: bool,

    /// Over TCP: the authority whose certificates nodes have
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,

    /// Over TCP: our certificate
    #[arg(long, value_name = "FILE", requires = "key")]
    certificate: Option<PathBuf>,

    /// Over TCP: the key of our certificate
    #[arg(long, value_name = "FILE", requires = "certificate")]
    key: Option<PathBuf>,

    /// Over TCP: for whom the node's certificate is issued, such as NODE.GROUP.doorway
    /// [default: the host of the endpoint]
    #[arg(long, value_name = "NAME")]
    server_name: Option<String>,

    /// Over TCP: a file with the token that proves our rights
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl NodeArgs {
    /// A session with the node, which is still to be connected.
    pub(crate) fn link(&self, mut setup: Setup) -> Result<Link, Exit> {
        let endpoint = Endpoint::resolve(self.socket.as_deref()).map_err(|error| usage(&error))?;
        let tls = match &endpoint {
            Endpoint::Tcp(host, _) => Some(self.tls(host)?),
            _ => None,
        };
        if let Some(file) = &self.token_file {
            let token = String::from_utf8(read(file)?).map_err(|error| usage(&error))?;
            setup.token = Some(token.trim().to_owned());
        }
        Link::new(endpoint, setup, tls, !self.no_start)
    }

    fn tls(&self, host: &str) -> Result<TlsConfig, Exit> {
        let Some(authority) = &self.ca else {
            let text = "a node over tcp:// wants --ca FILE: the authority of its certificate";
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
        config.map_err(|error| usage(&error))
    }
}

fn usage(error: &dyn ToString) -> Exit {
    Exit::new(exit::USAGE, error.to_string())
}

fn read(file: &Path) -> Result<Vec<u8>, Exit> {
    let failed = |error| usage(&format!("cannot read {}: {error}", file.display()));
    std::fs::read(file).map_err(failed)
}

/// A time in seconds, with fractions, or with a unit, as in the configuration: `-w 0.5`, `-w 10m`.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    // Ten years are for ever, and fit into every number that the time is made into.
    let time = span(text).filter(|time| time.as_secs() <= 315_360_000);
    time.ok_or_else(|| format!("'{text}' is no time: say seconds, such as 2, 0.5, 500ms or 10m"))
}

/// How long a session lives without being heard of.
pub(crate) fn ttl(text: &str) -> Result<Duration, String> {
    let ttl = seconds(text)?;
    if ttl < Duration::from_millis(500) {
        return Err("a session lives for half a second at least".to_owned());
    }
    Ok(ttl)
}

/// The name of a lock.
pub(crate) fn name(text: &str) -> Result<Name, String> {
    Name::new(text).map_err(|error| error.to_string())
}

/// A fence, as `doorway lock` prints it.
pub(crate) fn fence(text: &str) -> Result<Fence, String> {
    let wrong = |_| format!("'{text}' is no fence: say the number that came with the grant");
    text.parse().map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_fractions_and_limits() {
        assert_eq!(seconds("2"), Ok(Duration::from_secs(2)));
        assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
        assert_eq!(seconds("10m"), Ok(Duration::from_mins(10)));
        for wrong in ["", "-1", "x", "inf", "NaN", "1e300", "2 weeks", "99999d"] {
            assert!(seconds(wrong).unwrap_err().contains("seconds"), "{wrong}");
        }
        assert!(ttl("0.4").is_err());
        assert!(ttl("0.5").is_ok());
    }
}
