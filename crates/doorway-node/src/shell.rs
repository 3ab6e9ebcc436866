//! The shell of a node: it joins the state machines of views, locks and links, and owns everything
//! that they do not know: mutexes, the clock, the network and the disk.
//!
//! Mutexes are locked in this order: the inbox of a peer, the state machine of the views, a shard,
//! the outbox of a peer. What a shard sends is in the outboxes before the shard is unlocked.
//! Otherwise messages about one lock could overtake each other.

use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::Waker;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use doorway_core::{NodeId, NodeSet};
use doorway_protocol::Name;
use parking_lot::{Mutex, MutexGuard};
use rustc_hash::FxHasher;
use tokio::sync::watch;

use crate::clock::Clock;
use crate::config::{Config, ConfigError, Mistake, ValidConfig};
use crate::counters::{NodeCounters, RuleCounters};
use crate::error::{AcquireError, StartError};
use crate::link::Incarnation;
use crate::lock_clients::{Describe, OnLost};
use crate::locks::{ClientId, LockCounters, Rule, Shard, ShardEffects};
use crate::messages::Message;
use crate::net::{Peer, TooLong};
use crate::patterns::Patterns;
use crate::questions::Questions;
use crate::recorder::Recorder;
use crate::seating::Seating;
use crate::views::{EndReason, EpochStore, Event, ViewChange};

/// How many shards a node has: enough that threads rarely meet in one.
const SHARDS: usize = 64;

/// How many messages may always wait for a peer, because a peer acknowledges many at a time.
const BACKLOG: usize = 1024;

/// A shard on cache lines of its own.
#[repr(align(128))]
struct Place(Mutex<Shard>);

/// A node, shared by everything that belongs to it: shards, links, the clock, the epoch on disk, and
/// the state machine that leads it from view to view.
pub(crate) struct NodeShell {
    /// The members of every view.
    pub(crate) seating: Arc<Seating>,
    patterns: Patterns,
    shards: Box<[Place]>,
    /// By number; `None` for this node.
    peers: Vec<Option<Arc<Peer>>>,
    pub(crate) group: String,
    /// A hash of everything that must be configured in the same way at all members.
    pub(crate) digest: u64,
    /// Which start of this node this is.
    pub(crate) incarnation: Incarnation,
    change: Mutex<ViewChange>,
    /// Present until the node has stopped.
    pub(crate) store: Mutex<Option<Box<dyn EpochStore>>>,
    /// Why the node has ended, once it has.
    ended: watch::Sender<Option<EndReason>>,
    clock: Clock,
    /// How many requests wait.
    waiting: AtomicUsize,
    /// How many requests may wait.
    limit: usize,
    sessions: AtomicU64,
    pub(crate) questions: Questions,
    pub(crate) describe: Option<Describe>,
    pub(crate) on_lost: Option<OnLost>,
    pub(crate) recorder: Option<Recorder>,
}

impl NodeShell {
    /// Make a node and raise its epoch. A node without peers serves at once. If `reclaiming` is
    /// set, the node first waits for former holders.
    pub(crate) fn new(
        config: &Config,
        checked: ValidConfig,
        store: Box<dyn EpochStore>,
        clock: Clock,
        seed: u64,
        reclaiming: bool,
    ) -> Result<Self, StartError> {
        let ValidConfig { patterns, rules } = checked;
        let members = store.members().to_vec();
        let me = members.iter().position(|name| *name == config.me).map(NodeId::at);
        let me = me.ok_or_else(|| ConfigError(vec![Mistake::NotAMember(config.me.clone())]))?;
        let epoch = store.raise(config.first_epoch.saturating_sub(1))?;
        let peer = |(index, name): (usize, &String)| {
            let id = NodeId::at(index);
            let address = config.address_of(name).to_owned();
            (id != me).then(|| Arc::new(Peer::new(id, name.clone(), address)))
        };
        let peers = members.iter().enumerate().map(peer).collect();
        let change = ViewChange::new(me, members.len(), epoch, reclaiming);
        let seating = Arc::new(Seating { members, me, rules });
        // The recordings of one machine agree on the time, because each says when its clock began.
        let began = SystemTime::now().checked_sub(clock.now()).unwrap_or(UNIX_EPOCH);
        let recorder = config.record.as_ref();
        let recorder =
            recorder.and_then(|path| Recorder::start(path, &config.group, &seating, began));
        let place = |_| {
            let mut shard = Shard::new(Arc::clone(&seating), config.keep_idle.div_ceil(SHARDS));
            if recorder.is_some() {
                shard.record();
            }
            Place(Mutex::new(shard))
        };
        let node = Self {
            shards: (0..SHARDS).map(place).collect(),
            seating,
            patterns,
            peers,
            group: config.group.clone(),
            digest: config.digest(),
            // Different at every start, whatever the seed.
            incarnation: Incarnation(seed ^ epoch.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            change: Mutex::new(change),
            store: Mutex::new(Some(store)),
            ended: watch::Sender::new(None),
            clock,
            waiting: AtomicUsize::new(0),
            limit: config.outstanding,
            sessions: AtomicU64::new(0),
            questions: Questions::default(),
            describe: config.describe.clone(),
            on_lost: config.on_lost.clone(),
            recorder,
        };
        node.begin();
        Ok(node)
    }

    /// The state machine of the views. While it is locked, the caller must not wait.
    pub(crate) fn change(&self) -> MutexGuard<'_, ViewChange> {
        self.change.lock()
    }

    /// End the node, unless it has ended: clients that hold one of its locks lose it, and waiting
    /// requests fail.
    pub(crate) fn end(&self, reason: EndReason) {
        self.step(Event::End(reason));
    }

    /// Let everyone know who waits for the end of the node.
    pub(crate) fn set_ended(&self, reason: EndReason) {
        self.ended.send_replace(Some(reason));
    }

    /// Wait until the node has ended.
    pub(crate) fn ended(&self) -> impl Future<Output = EndReason> + use<> {
        let mut ended = self.ended.subscribe();
        async move {
            let reason = ended.wait_for(Option::is_some).await;
            // Without a sender the node is gone. It always sets a reason before that.
            reason.ok().and_then(|reason| *reason).unwrap_or(EndReason::Stopped)
        }
    }

    /// The view in which locks are served now.
    pub(crate) fn view(&self) -> Option<u64> {
        self.shard(0).running()
    }

    pub(crate) fn name(&self) -> &str {
        self.seating.name(self.seating.me)
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
        &self.seating.rules[index]
    }

    /// A shard, for calls that send no messages and wake no task.
    pub(crate) fn shard(&self, index: usize) -> MutexGuard<'_, Shard> {
        self.shards[index].0.lock()
    }

    /// Call a shard, and do everything that follows from it.
    pub(crate) fn with_shard<R>(
        &self,
        index: usize,
        act: impl FnOnce(&mut Shard, Duration, &mut ShardEffects) -> R,
    ) -> R {
        let mut out = ShardEffects::default();
        let result = self.with_shard_deferred(index, &mut out, act);
        let overdue = out.overdue;
        self.finish(out);
        if overdue {
            self.step(Event::Overdue);
        }
        result
    }

    /// Call a shard and send its messages. Everything else is left in `out`, for callers that have
    /// locked the state machine of the views.
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
        for (from, lock, fault) in out.refused.drain(..) {
            let peer = self.seating.name(from);
            if from == self.seating.me {
                tracing::error!(%lock, %fault, "the lock is out of order until the next view");
            } else {
                tracing::error!(%lock, peer, %fault, "a message was refused and changed nothing");
            }
        }
        result
    }

    /// Report lost locks and wake tasks. Nothing may be locked.
    pub(crate) fn finish(&self, mut effects: ShardEffects) {
        self.tell_lost(effects.lost.drain(..));
        effects.wakers.drain(..).for_each(Waker::wake);
    }

    pub(crate) fn leave(&self, shard: usize, client: ClientId) {
        self.with_shard(shard, |shard, now, out| shard.leave(client, now, out));
    }

    /// The link to a member of a seating. Every seating of this node has the same members.
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
            // The limits of names and of parts keep all messages far below the limit of a frame.
            tracing::error!(peer = peer.name(), %error, "a message could not be sent");
        }
    }

    /// May one more request be made that has to wait? Threads that ask at the same moment do not
    /// see each other, so the limit may be exceeded by the number of such threads.
    pub(crate) fn may_wait(&self) -> Result<(), AcquireError> {
        if self.waiting.load(Ordering::Relaxed) >= self.limit {
            return Err(AcquireError::Busy(self.limit));
        }
        let limit = self.limit.max(BACKLOG);
        // A request that was withdrawn while a peer is away still waits in the outbox of the peer.
        match self.peers().find(|peer| peer.unacknowledged() >= limit) {
            Some(peer) => Err(AcquireError::Backlog { node: peer.name().to_owned(), limit }),
            None => Ok(()),
        }
    }

    /// Count a request that waits.
    pub(crate) fn begin_wait(&self) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn end_wait(&self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// The time since the node started.
    pub(crate) fn now(&self) -> Duration {
        self.clock.now()
    }

    /// Which members cannot be reached, and for how long.
    pub(crate) fn away(&self) -> Vec<(String, Duration)> {
        let away = self.peers().filter(|peer| !peer.is_up());
        away.map(|peer| (peer.name().to_owned(), peer.report().since.unwrap_or(self.now())))
            .collect()
    }

    pub(crate) fn counters(&self) -> NodeCounters {
        let mut counts = vec![LockCounters::default(); self.seating.rules.len()];
        for index in 0..self.shards() {
            let shard = self.shard(index).counters();
            counts.iter_mut().zip(shard).for_each(|(sum, more)| *sum += more);
        }
        let rules = self.seating.rules.iter().zip(counts);
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
