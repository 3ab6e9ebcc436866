//! A node of a group, as a program sees it.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::time::Duration;

use crate::acquire::Acquire;
use crate::clients::LockClients;
use crate::config::{Config, TlsConfig};
use crate::counters::NodeCounters;
use crate::error::{AcquireError, StartError};
use crate::guard::OwnedGuard;
use crate::handle::{Handle, Session};
use crate::inner::Inner;
use crate::mode::to_algorithm;
use crate::net::{Identity, IdentityError, Network, Tcp};
use crate::reclaim::{ReclaimError, reclaim};
use crate::running::{Links, Running};
use crate::views::Volatile;
use crate::why::Why;
use doorway_protocol::{Fence, Mode, Name, NameError};

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
        let store = Box::new(Volatile::new(config.me.clone()));
        let inner = Inner::new(&config, checked, store, 0, false);
        let inner = Arc::new(inner.expect("an epoch in memory can be raised"));
        Self(Arc::new(Running { inner, links: Links::default() }))
    }

    /// Start a node. It serves as soon as it has met all other members; requests made before wait.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        Self::start_on(Tcp, config).await
    }

    /// Start a node on a network of your own, such as a simulated one.
    pub async fn start_on<N: Network>(network: N, config: Config) -> Result<Self, StartError> {
        Self::begin(network, config, false).await
    }

    /// Start a node whose process was killed, not stopped, while clients that live on in other
    /// processes held its locks. Until [`Node::serve`] it grants nothing and takes no part in a
    /// view, and they can [`reclaim`](Self::reclaim) what they hold. Meanwhile requests wait, and
    /// the other members go on as if this one were away.
    pub async fn start_reclaiming(config: Config) -> Result<Self, StartError> {
        Self::begin(Tcp, config, true).await
    }

    /// The same on a network of your own.
    pub async fn start_reclaiming_on<N: Network>(
        network: N,
        config: Config,
    ) -> Result<Self, StartError> {
        Self::begin(network, config, true).await
    }

    async fn begin<N: Network>(
        network: N,
        config: Config,
        reclaiming: bool,
    ) -> Result<Self, StartError> {
        let seed = config.seed.unwrap_or_else(|| RandomState::new().hash_one(&config.me));
        let checked = config.check()?;
        // Read before the epoch is raised: certificates that are no good cost nothing.
        let identity = match &config.tls {
            Some(tls) if config.members.len() > 1 => {
                Some(Identity::from_pem(&tls.ca, &tls.certificate, &tls.key)?)
            }
            _ => None,
        };
        let inner = Arc::new(Inner::new(&config, checked, config.store()?, seed, reclaiming)?);
        let links = match identity {
            Some(identity) => Links::start(network, &config, identity, &inner, seed).await?,
            None => Links::default(),
        };
        Ok(Self(Arc::new(Running { inner, links })))
    }

    /// Hold a lock again that was held, under this fence, when the process before this one ended.
    /// It counts as held when the next view begins; fences of later grants are higher.
    ///
    /// The node cannot know who held what. Whoever calls this has to have reason to believe it: a
    /// lock that a client of another member is inside of breaks for both.
    pub fn reclaim(
        &self,
        name: &str,
        mode: Mode,
        fence: Fence,
        session: Session,
    ) -> Result<OwnedGuard, ReclaimError> {
        reclaim(self.open(name)?, to_algorithm(mode), fence, session)
    }

    /// Former holders have reclaimed their locks, or have had the time to: serve. A node that
    /// serves goes on.
    pub fn serve(&self) {
        self.0.inner.serve();
    }

    /// Does the node wait for former holders, until [`Node::serve`]?
    pub fn is_reclaiming(&self) -> bool {
        self.0.inner.is_reclaiming()
    }

    /// Show another certificate, of the same authority or another, from the next connection on.
    /// Connections that are up live on. Nothing changes if it cannot be used, or is not the one of
    /// this node. A node without peers has no use for it.
    pub fn renew(&self, tls: &TlsConfig) -> Result<(), IdentityError> {
        let (inner, links) = (&self.0.inner, &self.0.links);
        let Some(identity) = &links.identity else { return Ok(()) };
        identity.renew_as(inner.name(), &inner.group, tls)
    }

    /// The name of this node.
    pub fn name(&self) -> &str {
        self.0.inner.name()
    }

    /// The names of all members, this one included, in the order of the configuration.
    pub fn members(&self) -> &[String] {
        &self.0.inner.names
    }

    /// The name of the group.
    pub fn group(&self) -> &str {
        &self.0.inner.group
    }

    /// The clients of this node by lock, in the order of the locks' names: the first `limit` locks
    /// that are wanted, whose names begin with `prefix` and come after `after`. Locks without
    /// clients are left out. Every lock that this node knows is looked at, whatever the limit, and
    /// `wanted` must not call the node.
    pub fn locks(
        &self,
        prefix: &str,
        after: Option<&Name>,
        limit: usize,
        wanted: impl Fn(&Name) -> bool,
    ) -> Vec<LockClients> {
        self.0.inner.locks(prefix, after, limit, wanted)
    }

    /// The clients of this node that are inside of this lock or wait for it, if there are any.
    pub fn clients_of(&self, name: &Name) -> Option<LockClients> {
        self.0.inner.clients_by(name.clone())
    }

    /// Why does anyone wait for this lock? See [`Handle::why`].
    pub async fn why(&self, name: &str) -> Result<Why, NameError> {
        Ok(self.0.inner.why(&Name::new(name)?).await)
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

    /// The same with a name that was checked before.
    pub fn open_name(&self, name: Name) -> Handle {
        Handle::new(Arc::clone(&self.0), name)
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
        Session::new(self.0.inner.next_session())
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").field("name", &self.0.inner.name()).finish_non_exhaustive()
    }
}
