//! The node itself: its shards, its views, and the peers to which their messages go.
//!
//! Whoever needs several of its locks takes them in this order: the inbox of a peer, the views, a
//! shard, the outbox of a peer. What a shard sends is in the outboxes before the shard is let go,
//! or messages about one lock could overtake each other.

use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::Waker;
use std::time::{Duration, SystemTime};

use doorway_core::{NodeId, NodeSet};
use doorway_protocol::Name;
use parking_lot::{Mutex, MutexGuard};
use rustc_hash::FxHasher;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::config::{Config, ConfigError, Mistake, ValidConfig};
use crate::counters::{NodeCounters, RuleCounters};
use crate::error::{AcquireError, StartError};
use crate::link::Incarnation;
use crate::lock_clients::{Describe, OnLost};
use crate::locks::{ClientId, LockCounters, Rule, Setup, Shard, ShardEffects};
use crate::messages::Message;
use crate::net::{Peer, TooLong};
use crate::patterns::Patterns;
use crate::questions::Questions;
use crate::recorder::Recorder;
use crate::views::{EpochStore, Views};

/// How many shards a node has: enough that threads rarely meet in one.
const SHARDS: usize = 64;

/// So many messages may always wait for a peer: it acknowledges many at a time.
const BACKLOG: usize = 1024;

/// A shard on cache lines of its own.
#[repr(align(128))]
struct Place(Mutex<Shard>);

/// A node, shared by everything that belongs to it.
pub(crate) struct NodeShell {
    pub(crate) setup: Arc<Setup>,
    pub(crate) names: Vec<String>,
    patterns: Patterns,
    shards: Box<[Place]>,
    /// By node; `None` for ourselves.
    peers: Vec<Option<Arc<Peer>>>,
    /// Which start of each peer was met last, and the highest epoch that it gave itself.
    pub(crate) met: Mutex<Vec<Option<(Incarnation, u64)>>>,
    pub(crate) group: String,
    /// What all members have configured alike.
    pub(crate) digest: u64,
    /// Which start of this node this is.
    pub(crate) incarnation: Incarnation,
    views: Mutex<Views>,
    /// Until the node has stopped.
    pub(crate) store: Mutex<Option<Box<dyn EpochStore>>>,
    /// Has it been told to?
    over: watch::Sender<bool>,
    /// When the epoch was last raised because a clock had run far, in seconds of this node.
    pub(crate) raised: AtomicU64,
    /// Does it wait for former holders? Changes only under the lock of the views.
    pub(crate) reclaiming: AtomicBool,
    /// The members for which the next view waits, as they were last logged.
    pub(crate) awaited: Mutex<Vec<String>>,
    /// The highest view of a fence that was reclaimed.
    pub(crate) claimed: AtomicU64,
    began: Instant,
    /// How many acquires wait, and how many may.
    waiting: AtomicUsize,
    limit: usize,
    sessions: AtomicU64,
    pub(crate) questions: Questions,
    pub(crate) describe: Option<Describe>,
    pub(crate) on_lost: Option<OnLost>,
    pub(crate) recorder: Option<Recorder>,
}

impl NodeShell {
    /// A node that has raised its epoch and, if it has no peers, serves already; unless it is to
    /// wait for former holders.
    pub(crate) fn new(
        config: &Config,
        checked: ValidConfig,
        store: Box<dyn EpochStore>,
        seed: u64,
        reclaiming: bool,
    ) -> Result<Self, StartError> {
        let ValidConfig { patterns, rules } = checked;
        let names = store.members().to_vec();
        let me = names.iter().position(|name| *name == config.me).map(NodeId::at);
        let me = me.ok_or_else(|| ConfigError(vec![Mistake::NotAMember(config.me.clone())]))?;
        let epoch = store.raise(config.first_epoch.saturating_sub(1))?;
        let peer = |(index, name): (usize, &String)| {
            let id = NodeId::at(index);
            let address = config.address_of(name).to_owned();
            (id != me).then(|| Arc::new(Peer::new(id, name.clone(), address)))
        };
        let setup = Arc::new(Setup { me, rules, keep_idle: config.keep_idle.div_ceil(SHARDS) });
        // Taken together, so that the recordings of one machine agree on the time.
        let (began, clock) = (Instant::now(), SystemTime::now());
        let recorder = config.record.as_ref();
        let recorder =
            recorder.and_then(|path| Recorder::start(path, &config.group, &names, &setup, clock));
        let place = |_| {
            let mut shard = Shard::new(Arc::clone(&setup));
            if recorder.is_some() {
                shard.record();
            }
            Place(Mutex::new(shard))
        };
        let node = Self {
            peers: names.iter().enumerate().map(peer).collect(),
            met: Mutex::new(vec![None; names.len()]),
            group: config.group.clone(),
            digest: config.digest(),
            // Another one at every start, whatever the seed.
            incarnation: Incarnation(seed ^ epoch.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            views: Mutex::new(Views::new(me, names.len(), epoch)),
            names,
            patterns,
            shards: (0..SHARDS).map(place).collect(),
            store: Mutex::new(Some(store)),
            over: watch::Sender::new(false),
            raised: AtomicU64::new(0),
            reclaiming: AtomicBool::new(reclaiming),
            awaited: Mutex::default(),
            claimed: AtomicU64::new(0),
            began,
            waiting: AtomicUsize::new(0),
            limit: config.outstanding,
            sessions: AtomicU64::new(0),
            questions: Questions::default(),
            describe: config.describe.clone(),
            on_lost: config.on_lost.clone(),
            recorder,
            setup,
        };
        node.advance(&mut node.views(), &mut ShardEffects::default());
        Ok(node)
    }

    /// The node stops: whoever holds a lock of it, or waits for one, is told.
    pub(crate) fn stop(&self) {
        let mut out = ShardEffects::default();
        self.end(&mut out);
        out.wakers.drain(..).for_each(Waker::wake);
    }

    /// Everyone who holds a lock of this node has lost it, and nobody gets one any more. Whoever is
    /// to be woken is left in `out`.
    pub(crate) fn end(&self, out: &mut ShardEffects) {
        for index in 0..self.shards() {
            self.with_shard_deferred(index, out, |shard, _, out| shard.end(out));
        }
        self.over.send_replace(true);
    }

    /// Has the node been told to stop?
    pub(crate) fn is_over(&self) -> bool {
        *self.over.borrow()
    }

    /// Wait until the node is told to stop.
    pub(crate) fn over(&self) -> impl Future<Output = ()> + use<> {
        let mut over = self.over.subscribe();
        async move {
            // An error would mean that the node is gone, and so it is over as well.
            let _ = over.wait_for(|over| *over).await;
        }
    }

    /// The view in which locks are served now.
    pub(crate) fn view(&self) -> Option<u64> {
        self.shard(0).running()
    }

    pub(crate) fn name(&self) -> &str {
        &self.names[self.setup.me.index()]
    }

    pub(crate) fn views(&self) -> MutexGuard<'_, Views> {
        self.views.lock()
    }

    pub(crate) fn shards(&self) -> usize {
        self.shards.len()
    }

    pub(crate) fn shard_of(&self, name: &Name) -> usize {
        let mut hasher = FxHasher::default();
        name.as_str().hash(&mut hasher);
        // The high bits are the well mixed ones.
        (hasher.finish() >> 32) as usize % self.shards.len()
    }

    pub(crate) fn rule_of(&self, name: &Name) -> usize {
        self.patterns.rule(name)
    }

    pub(crate) fn rule(&self, index: usize) -> &Rule {
        &self.setup.rules[index]
    }

    /// A shard, for what leads to no messages and wakes nobody.
    pub(crate) fn shard(&self, index: usize) -> MutexGuard<'_, Shard> {
        self.shards[index].0.lock()
    }

    /// Let something happen in a shard, and do what follows from it.
    pub(crate) fn with_shard<R>(
        &self,
        index: usize,
        act: impl FnOnce(&mut Shard, Duration, &mut ShardEffects) -> R,
    ) -> R {
        let mut out = ShardEffects::default();
        let result = self.with_shard_deferred(index, &mut out, act);
        out.wakers.drain(..).for_each(Waker::wake);
        if out.overdue {
            self.raise();
        }
        result
    }

    /// The same, but whoever is to be woken, and whether the next view is due, is left in `out`:
    /// for those who hold the lock of the views.
    pub(crate) fn with_shard_deferred<R>(
        &self,
        index: usize,
        out: &mut ShardEffects,
        act: impl FnOnce(&mut Shard, Duration, &mut ShardEffects) -> R,
    ) -> R {
        let now = self.now();
        let mut shard = self.shard(index);
        let result = act(&mut shard, now, out);
        let mut written = NodeSet::new();
        for (to, message) in out.messages.drain(..) {
            self.queue(to, &Message::Algorithm(message));
            written.insert(to);
        }
        if let Some(recorder) = &self.recorder {
            out.records.drain(..).for_each(|record| recorder.record(record));
        }
        drop(shard);
        for to in written.iter() {
            self.peer(to).inspect(|peer| peer.flush());
        }
        self.tell_lost(out.lost.drain(..));
        for (from, lock, fault) in out.refused.drain(..) {
            let peer = &self.names[from.index()];
            if from == self.setup.me {
                tracing::error!(%lock, %fault, "the lock is out of order until the next view");
            } else {
                tracing::error!(%lock, peer, %fault, "a message was refused and changed nothing");
            }
        }
        result
    }

    pub(crate) fn leave(&self, shard: usize, client: ClientId) {
        self.with_shard(shard, |shard, now, out| shard.leave(client, now, out));
    }

    fn peer(&self, node: NodeId) -> Option<&Peer> {
        self.peers[node.index()].as_deref()
    }

    /// All other members.
    pub(crate) fn peers(&self) -> impl Iterator<Item = &Arc<Peer>> {
        self.peers.iter().flatten()
    }

    /// Put a message into its queue, to be written soon.
    pub(crate) fn send(&self, to: NodeId, message: &Message) {
        self.put(to, message, Peer::send);
    }

    /// Put a message into its queue, to be written when the peer is flushed.
    fn queue(&self, to: NodeId, message: &Message) {
        self.put(to, message, Peer::queue);
    }

    fn put(
        &self,
        to: NodeId,
        message: &Message,
        how: impl Fn(&Peer, &Message) -> Result<(), TooLong>,
    ) {
        if let Some(peer) = self.peer(to)
            && let Err(error) = how(peer, message)
        {
            // Limits on names and parts keep all that we say far below what a frame holds.
            tracing::error!(peer = peer.name(), %error, "a message could not be sent");
        }
    }

    pub(crate) fn broadcast(&self, message: &Message) {
        self.peers().for_each(|peer| self.send(peer.id(), message));
    }

    /// May one more acquire be made that has to wait? Threads that ask at the same moment do not
    /// see each other, so the limit may be passed by as many as there are.
    pub(crate) fn may_wait(&self) -> Result<(), AcquireError> {
        if self.waiting.load(Ordering::Relaxed) >= self.limit {
            return Err(AcquireError::Busy(self.limit));
        }
        let limit = self.limit.max(BACKLOG);
        // Whoever gave up while a peer is away has left a request behind, which still takes room.
        match self.peers().find(|peer| peer.unacknowledged() >= limit) {
            Some(peer) => Err(AcquireError::Backlog { node: peer.name().to_owned(), limit }),
            None => Ok(()),
        }
    }

    /// Count an acquire that waits.
    pub(crate) fn begin_wait(&self) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn end_wait(&self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// The time since the node started.
    pub(crate) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Which members cannot be reached, and for how long.
    pub(crate) fn away(&self) -> Vec<(String, Duration)> {
        let away = self.peers().filter(|peer| !peer.is_up());
        away.map(|peer| (peer.name().to_owned(), peer.report().since.unwrap_or(self.now())))
            .collect()
    }

    pub(crate) fn counters(&self) -> NodeCounters {
        let mut counts = vec![LockCounters::default(); self.setup.rules.len()];
        for index in 0..self.shards() {
            let shard = self.shard(index).counters();
            counts.iter_mut().zip(shard).for_each(|(sum, more)| *sum += more);
        }
        let rules = self.setup.rules.iter().zip(counts);
        NodeCounters {
            view: self.view(),
            waiting: self.waiting.load(Ordering::Relaxed),
            rules: rules
                .map(|(rule, counts)| RuleCounters { algorithm: rule.info.name, counts })
                .collect(),
            links: self.peers().map(|peer| (peer.name().to_owned(), peer.report())).collect(),
        }
    }

    pub(crate) fn next_session(&self) -> u64 {
        1 + self.sessions.fetch_add(1, Ordering::Relaxed)
    }
}
