//! What a client says when it connects.

use std::time::Duration;

use doorway_protocol::{ClientInfo, Life};

use crate::machine::Setup;
#[cfg(feature = "tls")]
use crate::tls::TlsConfig;

/// What a session is to be. The default is right for most programs on one machine.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// How long the session lives without being heard of: 10 s. A client that hangs loses its locks
    /// after this time.
    pub ttl: Duration,
    /// What the client does, for people who ask who holds a lock: the command line.
    pub label: String,
    /// With what the session ends: with its connection.
    pub life: Life,
    /// Is no session wanted, because only questions are asked?
    pub visit: bool,
    /// What proves our rights over a network, where a certificate does not.
    pub token: Option<String>,
    /// How long a request waits for a node that cannot be reached: 10 s.
    pub patience: Duration,
    /// Whom to trust over a network.
    #[cfg(feature = "tls")]
    pub tls: Option<TlsConfig>,
}

impl Default for Options {
    fn default() -> Self {
        let arguments = std::env::args_os().map(|it| it.to_string_lossy().into_owned());
        Self {
            ttl: Duration::from_secs(10),
            label: arguments.collect::<Vec<_>>().join(" "),
            life: Life::Connection { inherited: false },
            visit: false,
            token: None,
            patience: Duration::from_secs(10),
            #[cfg(feature = "tls")]
            tls: None,
        }
    }
}

impl Options {
    /// With this TTL.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// With this label.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// With this life.
    pub fn life(mut self, life: Life) -> Self {
        self.life = life;
        self
    }

    /// Without a session, for questions only.
    pub fn visit(mut self) -> Self {
        self.visit = true;
        self
    }

    /// With this token.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// With this patience.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// With these certificates.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: TlsConfig) -> Self {
        self.tls = Some(tls);
        self
    }

    /// How long one attempt to connect again may take: several fit into the time in which the
    /// session can still be saved.
    pub(crate) fn attempt(&self) -> Duration {
        (self.ttl / 8).max(Duration::from_millis(500)).min(self.patience)
    }

    /// What the machine of such a session needs, on a connection that crosses no network.
    pub fn setup(&self) -> Setup {
        let who = ClientInfo {
            label: self.label.clone(),
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            pid: std::process::id(),
        };
        let session = (!self.visit).then_some((self.ttl, self.life));
        let (token, patience) = (self.token.clone(), self.patience);
        Setup { who, token, session, patience, network: false }
    }
}
