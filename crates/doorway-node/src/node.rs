//! A node of a group, as a program sees it.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::time::Duration;

use crate::acquire::Acquire;
use crate::config::Config;
use crate::counters::NodeCounters;
use crate::error::{AcquireError, StartError};
use crate::guard::OwnedGuard;
use crate::handle::{Handle, Session};
use crate::inner::Inner;
use crate::locks::Out;
use crate::net::{Network, Tcp};
use doorway_protocol::{Name, NameError};
use crate::net::{Identity, Network, Tcp};
use crate::running::{Links, Running};
use doorway_protocol::{Name, NameError};
use crate::views::Volatile;

/// A node. Copies are the same node. It runs until [`Node::stop`], or until the last copy is gone
/// and no handle, request or guard of it is left.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = doorway_node::Node::alone();
/// let guard = node.lock("orders").await?;
/// println!("inside, with fence {}", guard.fence());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Node(Arc<Running>);

impl Node {
    /// A node without peers: no configuration, no certificate, no port. Its fences grow while the
    /// process lives; one that is started with [`Config::data`] goes on where it stopped.
    pub fn alone() -> Self {
        let config = Config::default();
        let checked = config.check().expect("nothing can be wrong with the defaults");
        let inner = Inner::new(&config, checked, Box::new(Volatile::new(config.me.clone())), 0);
        let inner = Arc::new(inner.expect("an epoch in memory can be raised"));
        Self(Arc::new(Running { inner, links: Links::default() }))
    }

    /// Start a node. It serves as soon as it has met all other members; requests made before wait.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        Self::start_on(Tcp, config).await
    }

    /// Start a node on a network of your own, such as a simulated one.
    pub async fn start_on<N: Network>(network: N, config: Config) -> Result<Self, StartError> {
        let seed = config.seed.unwrap_or_else(|| RandomState::new().hash_one(&config.me));
        let checked = config.check()?;
        // Read before the epoch is raised: certificates that are no good cost nothing.
        let identity = match &config.tls {
            Some(tls) if config.members.len() > 1 => {
                Some(Identity::from_pem(&tls.ca, &tls.certificate, &tls.key)?)
            }
            _ => None,
        };
        let inner = Arc::new(Inner::new(&config, checked, config.store()?, seed)?);
        let links = match identity {
            Some(identity) => Links::start(network, &config, identity, &inner, seed).await?,
            None => Links::default(),
        };
        Ok(Self(Arc::new(Running { inner, links })))
    }

    /// Stop the node. Whoever holds one of its locks has lost it; requests that wait fail. When
    /// this returns, its port and its directory are free, whoever else has called it, or called it
    /// before and given up. A node whose last copy is dropped stops too, but some time later.
    pub async fn stop(&self) {
        self.0.inner.stop();
        self.0.links.stopped().await;
        self.0.inner.store.lock().take();
        if let Some(recorder) = &self.0.inner.recorder {
            recorder.close().await;
        }
    }

    /// Look a lock up once, to ask for it many times.
    pub fn open(&self, name: &str) -> Result<Handle, NameError> {
        Ok(Handle::new(Arc::clone(&self.0), Name::new(name)?))
    }

    /// Wait for a lock. See [`Handle::lock`].
    pub fn lock(&self, name: &str) -> Acquire<Handle> {
        match self.open(name) {
            Ok(handle) => Acquire::new(handle),
            Err(error) => Acquire::failed(error.into()),
        }
    }

    /// Take a lock if that is possible this very moment. See [`Handle::try_lock`].
    pub fn try_lock(&self, name: &str) -> Result<Option<OwnedGuard>, AcquireError> {
        self.open(name)?.try_lock_owned()
    }

    /// Wait for several locks, each exclusive, and hold all of them or none. They are taken in the
    /// order of their names, so that nobody who takes several locks like this waits in a circle.
    /// The guards come in that order; a name given twice is taken once.
    pub async fn lock_all(&self, names: &[&str]) -> Result<Vec<OwnedGuard>, AcquireError> {
        let mut ordered = names.to_vec();
        ordered.sort_unstable();
        ordered.dedup();
        let session = self.session();
        // A name that is wrong is found before anything is taken.
        let handles: Result<Vec<Handle>, NameError> =
            ordered.iter().map(|name| self.open(name)).collect();
        let mut guards = Vec::with_capacity(ordered.len());
        for handle in handles? {
            guards.push(handle.lock_owned().session(session).await?);
        }
        Ok(guards)
    }

    /// Which members cannot be reached, and for how long. What their algorithms need them for
    /// waits until they are back.
    pub fn away(&self) -> Vec<(String, Duration)> {
        self.0.inner.away()
    }

    /// What the node has counted.
    pub fn counters(&self) -> NodeCounters {
        self.0.inner.counters()
    }

    /// A new session: on whose behalf locks are asked for.
    pub fn session(&self) -> Session {
        Session::numbered(self.0.inner.next_session())
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").field("name", &self.0.inner.name()).finish_non_exhaustive()
    }
}
