//! How a client opens its session.

use std::time::Duration;

use doorway_protocol::{ClientInfo, Life};

use crate::machine::{OVER_NETWORK, Setup, UNLIMITED};
#[cfg(feature = "tls")]
use crate::tls::TlsConfig;

/// How a client opens its session. The defaults suit most programs on one machine.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The TTL: how long the session lives without a message from the client. A client that hangs
    /// loses its locks after this time. The node may set a shorter TTL. Without one, the session
    /// lives as long as this process on a Unix socket, as with `flock`; over a network the TTL is
    /// then 10 s, and so is that of a lease. A lease with the TTL
    /// [`UNLIMITED`](crate::machine::UNLIMITED) holds its locks until they are released or broken,
    /// if the settings of the node allow that.
    pub ttl: Option<Duration>,
    /// What the client does, shown to people who ask who holds a lock; the command line by default.
    pub label: String,
    /// What ends the session, besides its TTL; the end of the connection by default.
    pub life: Life,
    /// Whether to open no session, because the client acquires no locks and only asks questions.
    pub visit: bool,
    /// Whether to keep locks after they are released, until somebody else wants them; off by
    /// default. See [`Options::keep`].
    pub keep: bool,
    /// A token that proves the client's rights over a network, if a certificate does not.
    pub token: Option<String>,
    /// How long a request without a timeout waits for a node that cannot be reached; 10 s by
    /// default. A request with a timeout waits for a node until then.
    pub patience: Duration,
    /// Which nodes to trust over a network. A session over TCP needs this.
    #[cfg(feature = "tls")]
    pub tls: Option<TlsConfig>,
}

impl Default for Options {
    fn default() -> Self {
        let arguments = std::env::args_os().map(|it| it.to_string_lossy().into_owned());
        Self {
            ttl: None,
            label: arguments.collect::<Vec<_>>().join(" "),
            life: Life::Connection { inherited: false },
            visit: false,
            keep: false,
            token: None,
            patience: Duration::from_secs(10),
            #[cfg(feature = "tls")]
            tls: None,
        }
    }
}

impl Options {
    /// Set the TTL of the session.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Set what the client says it does.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Set what ends the session, besides its TTL.
    pub fn life(mut self, life: Life) -> Self {
        self.life = life;
        self
    }

    /// Open no session: the client only asks questions.
    pub fn visit(mut self) -> Self {
        self.visit = true;
        self
    }

    /// Keep locks after they are released, until somebody else wants them.
    ///
    /// A client that enters a lock again and again then asks the node only once: as long as nobody
    /// else wants the lock, entering and releasing it takes less than a microsecond and sends
    /// nothing. Each entry has a fence of its own. As soon as another client asks for the lock, the
    /// node tells this one. If it is outside, it gives the lock back at once; if it is inside, it
    /// gives the lock back when it releases its grant.
    ///
    /// Only exclusive locks without permits are kept, and only by a session that ends with its
    /// connection. The session always has a TTL, 10 s if [`Options::ttl`] sets none. While a lock
    /// is kept, it counts as held: `doorway who` shows this client.
    ///
    /// ```no_run
    /// use doorway_client::{Endpoint, Options, blocking::Client};
    ///
    /// let options = Options::default().keep();
    /// let client = Client::connect(&Endpoint::resolve(None)?, &options)?;
    /// let mut last = None;
    /// for _ in 0..1000 {
    ///     let grant = client.acquire("counter").enter()?; // The node is asked the first time.
    ///     assert!(last < Some(grant.fence()));
    ///     last = Some(grant.fence());
    ///     grant.release()?; // The client keeps the lock.
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn keep(mut self) -> Self {
        self.keep = true;
        self
    }

    /// Set the token that proves the client's rights.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Set how long a request waits for a node that cannot be reached.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Set which nodes to trust over a network.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: TlsConfig) -> Self {
        self.tls = Some(tls);
        self
    }

    /// How long one attempt to reconnect may take: several attempts fit into the time in which the
    /// session can still be resumed.
    pub(crate) fn attempt(&self) -> Duration {
        (self.ttl.unwrap_or(UNLIMITED) / 8).max(Duration::from_millis(500)).min(self.patience)
    }

    /// The [`Setup`] of a [`SessionMachine`](crate::SessionMachine) with these options, on a
    /// connection that does not cross a network.
    pub fn setup(&self) -> Setup {
        let who = ClientInfo {
            label: self.label.clone(),
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            pid: std::process::id(),
        };
        let none = if self.life == Life::Lease { OVER_NETWORK } else { UNLIMITED };
        let session = (!self.visit).then_some((self.ttl.unwrap_or(none), self.life));
        let (token, patience) = (self.token.clone(), self.patience);
        let keep = self.keep;
        Setup { who, token, session, patience, network: false, keep, nodes: 1 }
    }
}
