//! The node: the entry point of this crate.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::time::Duration;

use crate::acquire::Acquire;
use crate::agreed_group::MembershipReport;
use crate::clock::Clock;
use crate::config::{Config, TlsConfig};
use crate::counters::NodeCounters;
use crate::error::{AcquireError, StartError};
use crate::guard::OwnedGuard;
use crate::handle::{Handle, Session};
use crate::holds::{BreakError, ClosedLock, HoldError};
use crate::lock_clients::LockClients;
use crate::lock_recording::{LockRecording, RecordError};
use crate::lock_rules::Members;
use crate::members::{AgreedRules, BoxedFuture, ViewStore};
use crate::mode::to_algorithm;
use crate::net::{Identity, IdentityError, Network, Tcp};
use crate::questions::MemberAnswers;
use crate::reclaim::{ReclaimError, reclaim};
use crate::runtime::{LinkTask, NodeRuntime};
use crate::shell::{Membership, NodeShell};
use crate::views::{EndReason, MemoryEpochStore};
use crate::wait_report::{LockClient, WaitReport};
use doorway_protocol::{Fence, Mode, Name, NameError};
use tokio::sync::watch;

/// A node of a group, or a node without peers. Clones are the same node. It runs until
/// [`Node::stop`], or until the last clone and all of its handles, requests and guards are dropped.
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
pub struct Node(Arc<NodeRuntime>);

impl Node {
    /// Make a node without peers: no configuration, no certificate, no port. Its fences grow while
    /// the process lives. For fences that keep growing after a restart, use [`Node::start`] with
    /// [`Config::data`].
    pub fn alone() -> Self {
        let config = Config::default();
        let checked =
            config.check(Members::Fixed).expect("the default configuration has no mistakes");
        let store = Box::new(MemoryEpochStore::new(config.me.clone()));
        let shell = NodeShell::fixed(&config, checked, store, Clock::system(), 0, false);
        let shell = Arc::new(shell.expect("an epoch in memory can be raised"));
        Self(Arc::new(NodeRuntime { shell, links: LinkTask::default() }))
    }

    /// Start a node. It serves as soon as it has met all other members; requests made before that
    /// wait.
    pub fn start(config: Config) -> BoxedFuture<'static, Result<Self, StartError>> {
        Box::pin(Self::launch(Tcp, Clock::system(), config, false))
    }

    /// Start a node on another network than TCP, such as a simulated one. Its clock is that of
    /// tokio, which a simulation can control.
    pub async fn start_on<N: Network>(network: N, config: Config) -> Result<Self, StartError> {
        Self::launch(network, Clock::tokio(), config, false).await
    }

    /// Start a node after its process was killed, not stopped, while clients in other processes
    /// held its locks. Until [`Node::serve`] the node grants nothing and takes no part in a view,
    /// and those clients can [`reclaim`](Self::reclaim) what they hold. Meanwhile new requests
    /// wait, and the other members go on as if this one were unreachable.
    pub fn start_reclaiming(config: Config) -> BoxedFuture<'static, Result<Self, StartError>> {
        Box::pin(Self::launch(Tcp, Clock::system(), config, true))
    }

    /// Start a node as [`Node::start_reclaiming`] does, with the network and clock of
    /// [`Node::start_on`].
    pub async fn start_reclaiming_on<N: Network>(
        network: N,
        config: Config,
    ) -> Result<Self, StartError> {
        Self::launch(network, Clock::tokio(), config, true).await
    }

    async fn launch<N: Network>(
        network: N,
        clock: Clock,
        config: Config,
        reclaiming: bool,
    ) -> Result<Self, StartError> {
        let seed = config.seed.unwrap_or_else(|| RandomState::new().hash_one(&config.me));
        let checked = config.check(Members::Fixed)?;
        // Read the certificates before the epoch is raised: bad certificates must change nothing.
        let identity = match &config.tls {
            Some(tls) if config.members.len() > 1 => {
                Some(Identity::from_pem(&tls.ca, &tls.certificate, &tls.key)?)
            }
            _ => None,
        };
        let shell =
            Arc::new(NodeShell::fixed(&config, checked, config.store()?, clock, seed, reclaiming)?);
        let links = match identity {
            Some(identity) => LinkTask::start(network, &config, identity, &shell, seed).await?,
            None => LinkTask::default(),
        };
        Ok(Self(Arc::new(NodeRuntime { shell, links })))
    }

    /// Start a node of a group that agrees on its members by this store. The configuration names
    /// this node alone, with its address. The node serves when the group is founded and it has got
    /// its seat; requests made before that wait.
    ///
    /// If the node is `reclaiming`, clients of the process before this one can
    /// [`reclaim`](Self::reclaim) what they hold until [`Node::serve`] is called.
    pub fn start_agreed(
        config: Config,
        identity: Identity,
        store: Arc<dyn ViewStore>,
        reclaiming: bool,
    ) -> BoxedFuture<'static, Result<Self, StartError>> {
        Box::pin(Self::launch_agreed(Tcp, Clock::system(), config, identity, store, reclaiming))
    }

    /// Start a node as [`Node::start_agreed`] does, with the network and clock of
    /// [`Node::start_on`].
    pub async fn start_agreed_on<N: Network>(
        network: N,
        config: Config,
        identity: Identity,
        store: Arc<dyn ViewStore>,
        reclaiming: bool,
    ) -> Result<Self, StartError> {
        Self::launch_agreed(network, Clock::tokio(), config, identity, store, reclaiming).await
    }

    async fn launch_agreed<N: Network>(
        network: N,
        clock: Clock,
        config: Config,
        identity: Identity,
        store: Arc<dyn ViewStore>,
        reclaiming: bool,
    ) -> Result<Self, StartError> {
        let random = || RandomState::new().hash_one(&config.me);
        let seed = config.seed.unwrap_or_else(random);
        // Different at every start, even if the seed is the same.
        let nonce = u128::from(random()) << 64 | u128::from(random());
        let (shell, events) = NodeShell::agreed(&config, store, clock, random(), reclaiming)?;
        let shell = Arc::new(shell);
        let links = LinkTask::start(network, &config, identity, &shell, seed).await?;
        tokio::spawn(Arc::clone(&shell).keep_membership(events, nonce));
        Ok(Self(Arc::new(NodeRuntime { shell, links })))
    }

    /// Give up the membership of this node before it stops, so that the others need not wait for
    /// its lease. The caller must be sure that nothing is held: clients that hold a lock lose it.
    /// In a fixed group this does nothing. If the group cannot be reached, the future does not end;
    /// it may be dropped at any time.
    pub async fn leave(&self) {
        self.0.shell.leave_group().await;
    }

    /// Let the group keep a lock that a client of this node holds, even if this node dies: from
    /// then on no other client gets the lock before this time has passed since the node was last a
    /// member, before [`Node::drop_hold`], or before [`Node::break_closed`]. Without a length, the
    /// lock is kept without end. The call may be repeated with a longer time.
    ///
    /// The grant may be lost while the group is asked. So the caller looks at
    /// [`LockGuard::is_lost`](crate::LockGuard::is_lost) afterwards, before it tells its client.
    ///
    /// In a fixed group this does nothing: no other node ever takes over the locks of this one.
    pub fn hold(
        &self,
        lock: &Name,
        fence: Fence,
        length: Option<Duration>,
    ) -> impl Future<Output = Result<(), HoldError>> + Send + use<> {
        self.0.shell.hold(lock.clone(), fence, length)
    }

    /// End the promise of [`Node::hold`], because the client has released the lock, or cannot
    /// believe any more that it holds it. The group is told even if the future is dropped.
    pub fn drop_hold(
        &self,
        lock: &Name,
        fence: Fence,
    ) -> impl Future<Output = Result<(), HoldError>> + Send + use<> {
        self.0.shell.drop_hold(lock.clone(), fence)
    }

    /// The locks that are closed because members that are gone have promised them to clients.
    pub fn closed_locks(&self) -> Vec<ClosedLock> {
        self.0.shell.closed_locks()
    }

    /// Open a closed lock before its time. The caller must be sure that the client to which it was
    /// promised does not use it any more. Returns how many promises have ended.
    pub async fn break_closed(&self, lock: &Name, fence: Fence) -> Result<usize, BreakError> {
        self.0.shell.break_closed(lock, fence).await
    }

    /// The membership of this node, in a group that agrees on its members; `None` in a fixed group.
    pub fn membership(&self) -> Option<MembershipReport> {
        self.0.shell.membership_report()
    }

    /// A number that no other process of this node has had or will have, whatever its clock shows:
    /// the epoch of the process in a fixed group, and the number of the member in a group that
    /// agrees on its members. `None` if no directory keeps the epoch, or if the node is not a
    /// member.
    pub fn process_number(&self) -> Option<u64> {
        self.0.shell.process_number()
    }

    /// For how long this node may grant locks without another renewal of its membership. `None` in
    /// a fixed group, whose members need no renewal.
    pub fn lease_left(&self) -> Option<Duration> {
        self.0.shell.lease_left()
    }

    /// Learn of changes of [`Node::lease_left`]: the number grows whenever the membership was
    /// renewed or has ended. `None` in a fixed group.
    pub fn lease_changes(&self) -> Option<watch::Receiver<u64>> {
        match &self.0.shell.membership {
            Membership::Fixed(_) => None,
            Membership::Agreed(group) => Some(group.leases.subscribe()),
        }
    }

    /// The rules by which locks are served now, in a group that agrees on its members, and news of
    /// them. `None` in a fixed group, whose rules never change.
    pub fn agreed_rules(&self) -> Option<watch::Receiver<Arc<AgreedRules>>> {
        match &self.0.shell.membership {
            Membership::Fixed(_) => None,
            Membership::Agreed(group) => Some(group.rules.subscribe()),
        }
    }

    /// Take back a lock that a client held under this fence when the process before this one ended.
    /// The lock counts as held when the next view begins; fences of later grants are higher.
    ///
    /// The node does not know who held what, so the caller must be sure. A lock that a client of
    /// another member holds at the same time breaks for both.
    ///
    /// In a group that agrees on its members, the claim counts only if the process before this one
    /// is still a member. If that is not known yet, the guard is lost as soon as it turns out that
    /// it is not. The caller should rely on it only when [`Node::lease_left`] is not zero.
    pub fn reclaim(
        &self,
        name: &str,
        mode: Mode,
        fence: Fence,
        session: Session,
    ) -> Result<OwnedGuard, ReclaimError> {
        reclaim(self.open(name)?, to_algorithm(mode), fence, session)
    }

    /// Begin to serve: former holders have reclaimed their locks, or have had the time to do so. A
    /// node that serves already goes on.
    pub fn serve(&self) {
        self.0.shell.serve();
    }

    /// Does the node still wait for former holders, because [`Node::serve`] was not called yet?
    pub fn is_reclaiming(&self) -> bool {
        self.0.shell.is_reclaiming()
    }

    /// Use another certificate, of the same authority or another, from the next connection on.
    /// Existing connections stay open. If the certificate cannot be used, or is not issued for this
    /// node, nothing changes. A node without peers ignores the call.
    pub fn renew(&self, tls: &TlsConfig) -> Result<(), IdentityError> {
        let (shell, links) = (&self.0.shell, &self.0.links);
        let Some(identity) = &links.identity else { return Ok(()) };
        identity.renew_as(shell.name(), &shell.group, tls)
    }

    /// The name of this node.
    pub fn name(&self) -> &str {
        self.0.shell.name()
    }

    /// The names of all members, this one included: in a fixed group in the order of the
    /// configuration, otherwise those that belong to the group now.
    pub fn members(&self) -> Vec<String> {
        self.0.shell.members()
    }

    /// How the rules for locks arrange the members, one line each: the rules that say something
    /// about it, and what differs from them in this view or would differ without one of the
    /// members.
    pub fn arrangements(&self) -> Vec<String> {
        let seating = Arc::clone(self.0.shell.shard(0).seating());
        let mut lines: Vec<String> =
            seating.rules.iter().filter_map(|rule| rule.arrangement.clone()).collect();
        let Some(agreed) = self.agreed_rules() else { return lines };
        let rules = Arc::clone(&agreed.borrow());
        let now = rules.rules.deviations(&seating.members);
        lines.extend(now.iter().map(|deviation| format!("in this view, {deviation}")));
        for gone in seating.members.iter().filter(|_| seating.members.len() > 1) {
            let left = seating.members.iter().filter(|name| *name != gone).cloned();
            let then = rules.rules.deviations(&left.collect::<Vec<_>>());
            let news = then.into_iter().filter(|deviation| !now.contains(deviation));
            lines.extend(news.map(|deviation| format!("without {gone}, {deviation}")));
        }
        lines
    }

    /// The name of the group.
    pub fn group(&self) -> &str {
        &self.0.shell.group
    }

    /// List the clients of this node by lock, in the order of the locks' names: the first `limit`
    /// locks whose names begin with `prefix`, come after `after`, and satisfy `wanted`. Locks
    /// without clients are left out. The call looks at every lock in memory, whatever the limit.
    /// `wanted` must not call the node.
    pub fn locks(
        &self,
        prefix: &str,
        after: Option<&Name>,
        limit: usize,
        wanted: impl Fn(&Name) -> bool,
    ) -> Vec<LockClients> {
        self.0.shell.locks(prefix, after, limit, wanted)
    }

    /// List the clients of this node by lock, as [`Node::locks`] does, but in another order: the
    /// lock with the longest wait comes first. Locks for which no client waits come after the
    /// others, the one that has been held for the longest time first.
    pub fn locks_by_wait(
        &self,
        prefix: &str,
        limit: usize,
        wanted: impl Fn(&Name) -> bool,
    ) -> Vec<LockClients> {
        self.0.shell.locks_by_wait(prefix, limit, wanted)
    }

    /// The clients of this node that hold this lock or wait for it, if there are any.
    pub fn clients_of(&self, name: &Name) -> Option<LockClients> {
        self.0.shell.clients_by(name.clone())
    }

    /// The clients that held this lock at members that are away, when this node heard of it last:
    /// from an answer to [`Node::why`], or at the beginning of the view. They may have released it
    /// since. A group that agrees on its members has no such clients, because what a member held
    /// ends when it is removed.
    pub fn last_holders(&self, name: &Name) -> Vec<LockClient> {
        self.0.shell.last_holders(name)
    }

    /// Find out why requests for this lock wait. See [`Handle::why`].
    pub async fn why(&self, name: &str) -> Result<WaitReport, NameError> {
        Ok(self.0.shell.why(&Name::new(name)?).await)
    }

    /// Ask the services at the other members, each of which answers by [`Config::answer`]. They
    /// have half a second.
    pub async fn ask_members(&self, question: Vec<u8>) -> MemberAnswers {
        self.0.shell.ask_members(question).await
    }

    /// Ask the service at one member, as [`Node::ask_members`] asks all of them. `None` if it is
    /// not connected, or does not answer within half a second.
    pub async fn ask_member(&self, name: &str, question: Vec<u8>) -> Option<Vec<u8>> {
        self.0.shell.ask_member(name, question).await
    }

    /// Record what one lock does for a while, at this node and at all members that can be reached,
    /// in the format of [`doorway_protocol::recording`]. The recording begins in the middle of what
    /// the lock does, and ends early if a member has no room for more.
    pub async fn record_lock(
        &self,
        lock: &Name,
        time: Duration,
    ) -> Result<LockRecording, RecordError> {
        self.0.shell.record_lock(lock, time).await
    }

    /// Whether [`Node::record_lock`] records this lock now, at this node. A member that answers a
    /// question that this node asks from now on has begun too.
    #[must_use]
    pub fn records(&self, lock: &Name) -> bool {
        self.0.shell.records(lock)
    }

    /// Learn of views: the number of the running view, or `None` while the members agree on the
    /// next one. A view that ends before it is looked at may be missed.
    pub fn views(&self) -> watch::Receiver<Option<u64>> {
        self.0.shell.views.subscribe()
    }

    /// Learn when a member becomes connected or is lost, to look at [`Node::away`] then.
    pub fn link_changes(&self) -> watch::Receiver<u64> {
        self.0.shell.link_changes.subscribe()
    }

    /// Stop the node. Clients that hold one of its locks lose it, and waiting requests fail. When
    /// this returns, the port and the directory of the node are free. That also holds for several
    /// callers at a time, and after a call that was cancelled. A node whose last clone is dropped
    /// stops too, but some time later.
    pub async fn stop(&self) {
        self.0.shell.end(EndReason::Stopped);
        self.0.links.stopped().await;
        if let Membership::Fixed(group) = &self.0.shell.membership {
            group.store.lock().take();
        }
        if let Some(recorder) = &self.0.shell.recorder {
            recorder.close().await;
        }
    }

    /// Wait until the node has ended, and learn why. Besides [`Node::stop`], a node ends when
    /// another process takes its place, or when the runtime in which it was started ends. The
    /// clients of a node that has ended have lost their locks. The future does not keep the node
    /// alive.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let node = doorway_node::Node::alone();
    /// let ended = node.ended();
    /// node.stop().await;
    /// assert_eq!(ended.await, doorway_node::EndReason::Stopped);
    /// # }
    /// ```
    pub fn ended(&self) -> impl Future<Output = EndReason> + use<> {
        self.0.shell.ended()
    }

    /// Look up a lock once, to acquire it many times.
    pub fn open(&self, name: &str) -> Result<Handle, NameError> {
        Ok(Handle::new(Arc::clone(&self.0), Name::new(name)?))
    }

    /// Look up a lock by a name that is already known to be valid.
    pub fn open_name(&self, name: Name) -> Handle {
        Handle::new(Arc::clone(&self.0), name)
    }

    /// Acquire a lock. See [`Handle::lock`].
    pub fn lock(&self, name: &str) -> Acquire<Handle> {
        match self.open(name) {
            Ok(handle) => Acquire::new(handle),
            Err(error) => Acquire::failed(error.into()),
        }
    }

    /// Acquire a lock only if that is possible immediately. See [`Handle::try_lock`].
    pub fn try_lock(&self, name: &str) -> Result<Option<OwnedGuard>, AcquireError> {
        self.open(name)?.try_lock_owned()
    }

    /// Acquire several locks, each exclusively, and hold all of them or none. They are acquired in
    /// the order of their names, so callers of this method never deadlock with each other. The
    /// guards come in that order; a name given twice is acquired once.
    pub async fn lock_all(&self, names: &[&str]) -> Result<Vec<OwnedGuard>, AcquireError> {
        let mut ordered = names.to_vec();
        ordered.sort_unstable();
        ordered.dedup();
        let session = self.session();
        // An invalid name must be found before any lock is taken.
        let handles: Result<Vec<Handle>, NameError> =
            ordered.iter().map(|name| self.open(name)).collect();
        let mut guards = Vec::with_capacity(ordered.len());
        for handle in handles? {
            guards.push(handle.lock_owned().session(session).await?);
        }
        Ok(guards)
    }

    /// The members that cannot be reached, and for how long. Locks whose algorithm needs one of
    /// them wait until it is back.
    pub fn away(&self) -> Vec<(String, Duration)> {
        self.0.shell.away()
    }

    /// The counters of the node.
    pub fn counters(&self) -> NodeCounters {
        self.0.shell.counters()
    }

    /// Open a session, on whose behalf locks can be requested.
    pub fn session(&self) -> Session {
        Session::new(self.0.shell.next_session())
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").field("name", &self.0.shell.name()).finish_non_exhaustive()
    }
}
