//! The shell of a node: it joins the state machines of views, locks and links, and owns everything
//! that they do not know: mutexes, the clock, the network and the disk.
//!
//! Mutexes are locked in this order: the inbox of a peer, the state machine of the views, a shard,
//! the outbox of a peer. What a shard sends is in the outboxes before the shard is unlocked.
//! Otherwise messages about one lock could overtake each other.

use std::collections::BTreeMap;
use std::hash::{Hash as _, Hasher as _};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::Waker;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use doorway_core::NodeId;
use doorway_protocol::Name;
use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};
use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;
use tokio::sync::watch;

use crate::agreed_group::AgreedGroup;
use crate::clock::Clock;
use crate::config::Config;
use crate::counters::{NodeCounters, RuleCounters};
use crate::error::AcquireError;
use crate::heard::LastHeard;
use crate::lingers::Lingers;
use crate::link::Incarnation;
use crate::lock_clients::{AnswerMembers, OnLost, OnWanted, SessionDescriber};
use crate::lock_recording::LockRecordings;
use crate::locks::{ClientId, KeptWord, LockCounters, Shard, ShardEffects, Slot};
use crate::members::{self, ClockTimes};
use crate::messages::{HeldLock, Message};
use crate::net::{Backlog, MessageTooLong, Peer, PeerId};
use crate::questions::Questions;
use crate::recorder::Recorder;
use crate::seating::Seating;
use crate::seatings::Seatings;
use crate::view_host::FixedGroup;
use crate::views::{AgreedEvent, EndReason, Event};

/// How many shards a node has: enough that threads rarely meet in one.
pub(crate) const SHARDS: usize = 64;

/// How many messages may always wait for a peer, because a peer acknowledges many at a time.
pub(crate) const BACKLOG: usize = 1024;

/// A shard on cache lines of its own, with the words of the clients that keep its locks.
#[repr(align(128))]
struct Place(Mutex<(Shard, KeptWords)>);

/// The map is never iterated, so its order does not matter.
type KeptWords = FxHashMap<ClientId, Arc<KeptWord>>;

/// A node, shared by everything that belongs to it: shards, links, the clock, and the state machine
/// that leads it from view to view.
pub(crate) struct NodeShell {
    /// The number of this node, by which other members are numbered too.
    pub(crate) me: PeerId,
    name: String,
    shards: Box<[Place]>,
    /// The shards with locks that linger.
    pub(crate) lingers: Lingers,
    pub(crate) seatings: Seatings,
    /// All other members.
    pub(crate) peers: watch::Sender<Vec<Arc<Peer>>>,
    pub(crate) backlog: Backlog,
    pub(crate) group: String,
    /// A hash of everything that must be configured in the same way at all members.
    pub(crate) digest: u64,
    /// Which start of this node this is.
    pub(crate) incarnation: Incarnation,
    pub(crate) membership: Membership,
    /// Why the node has ended, once it has.
    ended: watch::Sender<Option<EndReason>>,
    /// The view that runs.
    pub(crate) views: watch::Sender<Option<u64>>,
    /// How many times a link has come up or gone down.
    pub(crate) link_changes: watch::Sender<u64>,
    clock: Clock,
    /// When the lease of the node ends, in nanoseconds since the node started. Each shard has its
    /// own copy; this one is for clients that enter without a call of their shard.
    lease: AtomicU64,
    /// How many requests wait.
    waiting: AtomicUsize,
    /// How many requests may wait.
    limit: usize,
    sessions: AtomicU64,
    pub(crate) questions: Questions,
    /// What members of a fixed group have told of their holders.
    pub(crate) heard: Mutex<LastHeard>,
    pub(crate) describe: Option<SessionDescriber>,
    pub(crate) on_lost: Option<OnLost>,
    pub(crate) on_wanted: Option<OnWanted>,
    pub(crate) answer: Option<AnswerMembers>,
    pub(crate) recorder: Option<Recorder>,
    /// The recordings of single locks.
    pub(crate) recordings: LockRecordings,
}

/// How the members of a group are determined, and how the node goes from view to view.
#[expect(clippy::large_enum_variant, reason = "a node has one of them")]
pub(crate) enum Membership {
    /// The list of members is fixed. Each of them has a durable epoch.
    Fixed(FixedGroup),
    /// The members agree on who belongs to the group.
    Agreed(AgreedGroup),
}

/// What a node has from its configuration, and what its kind of group determines.
pub(crate) struct ShellParts {
    pub(crate) me: PeerId,
    /// The members of the first view, or this node alone if they are not known yet.
    pub(crate) seating: Arc<Seating>,
    pub(crate) seatings: Seatings,
    pub(crate) peers: Vec<Arc<Peer>>,
    pub(crate) backlog: Backlog,
    pub(crate) digest: u64,
    pub(crate) incarnation: Incarnation,
    pub(crate) membership: Membership,
    pub(crate) clock: Clock,
}

impl NodeShell {
    /// Put a node together. No view is running yet.
    pub(crate) fn new(config: &Config, parts: ShellParts) -> Self {
        let ShellParts { me, seating, seatings, peers, backlog, .. } = parts;
        let ShellParts { digest, incarnation, membership, clock, .. } = parts;
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
            Place(Mutex::new((shard, KeptWords::default())))
        };
        Self {
            me,
            name: config.me.clone(),
            shards: (0..SHARDS).map(place).collect(),
            lingers: Lingers::default(),
            seatings,
            peers: watch::Sender::new(peers),
            backlog,
            group: config.group.clone(),
            digest,
            incarnation,
            membership,
            ended: watch::Sender::new(None),
            views: watch::Sender::new(None),
            link_changes: watch::Sender::new(0),
            clock,
            lease: AtomicU64::new(u64::MAX),
            waiting: AtomicUsize::new(0),
            limit: config.outstanding,
            sessions: AtomicU64::new(0),
            questions: Questions::default(),
            heard: Mutex::default(),
            describe: config.describe.clone(),
            on_lost: config.on_lost.clone(),
            on_wanted: config.on_wanted.clone(),
            answer: config.answer.clone(),
            recorder,
            recordings: LockRecordings::new(began),
        }
    }

    /// End the node, unless it has ended: clients that hold one of its locks lose it, and waiting
    /// requests fail.
    pub(crate) fn end(&self, reason: EndReason) {
        match &self.membership {
            Membership::Fixed(_) => self.step(Event::End(reason)),
            Membership::Agreed(group) => self.step_agreed(group, AgreedEvent::End(reason)),
        }
    }

    /// A shard cannot go on in this view, or not for long.
    fn overdue(&self) {
        match &self.membership {
            Membership::Fixed(_) => self.step(Event::Overdue),
            Membership::Agreed(group) => self.step_agreed(group, AgreedEvent::Overdue),
        }
    }

    /// End all shards, because the node ends for this reason.
    pub(crate) fn end_shards(&self, reason: EndReason, effects: &mut ShardEffects) {
        for index in 0..self.shards() {
            self.with_shard_deferred(index, effects, Shard::end);
        }
        self.ended.send_replace(Some(reason));
    }

    /// Stop each shard for a view. Returns what the shards hold.
    pub(crate) fn stop_shards(&self, view: u64) -> Vec<HeldLock> {
        // The members of a view are remembered before the node stops for it.
        let Some(next) = self.seatings.of(view) else { return Vec::new() };
        let stop = |index| self.shard(index).stop_for(view, &next.rules);
        let held: Vec<_> = (0..self.shards()).flat_map(stop).collect();
        self.views.send_replace(None);
        tracing::info!(view, held = held.len(), "leaving for the next view");
        held
    }

    /// Start a view in each shard, with what each member holds. Returns whether some shard could
    /// not start it.
    pub(crate) fn start_shards(
        &self,
        view: u64,
        held: Vec<Vec<HeldLock>>,
        effects: &mut ShardEffects,
    ) -> bool {
        // A view is started by a node that has stopped for it, and has remembered its members then.
        let Some(seating) = self.seatings.of(view) else { return false };
        let mut parts: Vec<Vec<(NodeId, HeldLock)>> = vec![Vec::new(); self.shards()];
        for (node, held) in held.into_iter().enumerate() {
            for held in held {
                parts[self.shard_of(&held.lock)].push((NodeId::at(node), held));
            }
        }
        for (index, part) in parts.into_iter().enumerate() {
            self.with_shard_deferred(index, effects, |shard, now, out| {
                shard.start(view, &seating, part, now, out);
            });
        }
        self.views.send_replace(Some(view));
        std::mem::take(&mut effects.overdue)
    }

    /// Take the locks from clients that reclaimed them under a fence of another view than these.
    pub(crate) fn disown(&self, views: &Range<u64>, effects: &mut ShardEffects) {
        for index in 0..self.shards() {
            self.with_shard_deferred(index, effects, |shard, _, out| shard.disown(views, out));
        }
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
        &self.name
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

    /// A shard, for calls that send no messages and wake no task.
    pub(crate) fn shard(&self, index: usize) -> MappedMutexGuard<'_, Shard> {
        MutexGuard::map(self.shards[index].0.lock(), |(shard, _)| shard)
    }

    /// Call a shard, and do everything that follows from it.
    pub(crate) fn with_shard<R>(
        &self,
        index: usize,
        act: impl FnOnce(&mut Shard, Duration, &mut ShardEffects) -> R,
    ) -> R {
        let mut out = ShardEffects::default();
        let result = self.with_shard_deferred(index, &mut out, act);
        self.finish(&mut out);
        if out.overdue {
            self.overdue();
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
        let mut place = self.shards[index].0.lock();
        let (shard, kept) = &mut *place;
        // Read behind the lock: this thread may have waited for it, and the lease of the node may
        // have ended meanwhile.
        let now = self.now();
        let result = act(shard, now, out);
        // Before the shard is unlocked and its messages are sent: what comes next may rely on it
        // that these clients do not enter again.
        shard.release_revoked(now, out, |client| {
            kept.remove(&client).is_some_and(|word| word.revoke())
        });
        let mut written: SmallVec<[PeerId; 4]> = SmallVec::new();
        for (to, message) in out.messages.drain(..) {
            // Every member of a view that runs here is known.
            let Some(peer) = self.seatings.peer(message.view, to) else { continue };
            self.queue(peer, &Message::Algorithm(message));
            if !written.contains(&peer) {
                written.push(peer);
            }
        }
        let seating = (!out.refused.is_empty()).then(|| Arc::clone(shard.seating()));
        if !out.records.is_empty() {
            self.note_records(shard, out);
        }
        drop(place);
        if std::mem::take(&mut out.lingers) {
            self.lingers.note(index);
        }
        for to in written {
            self.peer(to).inspect(|peer| peer.flush());
        }
        for ((from, lock, fault), seating) in out.refused.drain(..).zip(seating.iter().cycle()) {
            let peer = seating.name(from);
            if from == seating.me {
                tracing::error!(%lock, %fault, "the lock is out of order until the next view");
            } else {
                tracing::error!(%lock, peer, %fault, "a message was refused and changed nothing");
            }
        }
        result
    }

    /// Report lost locks and wake tasks. Nothing may be locked.
    pub(crate) fn finish(&self, effects: &mut ShardEffects) {
        self.tell_lost(effects.lost.drain(..));
        self.tell_wanted(effects.wanted.drain(..));
        effects.wakers.drain(..).for_each(Waker::wake);
        if std::mem::take(&mut effects.lapsed)
            && let Membership::Agreed(group) = &self.membership
        {
            group.tell_keeper(members::Event::Lapsed);
        }
    }

    pub(crate) fn leave(&self, shard: usize, client: ClientId) {
        self.with_shard(shard, |shard, now, out| shard.leave(client, now, out));
    }

    /// Let a client that is inside keep its lock by this word. Returns how many numbers after its
    /// fence are reserved for it: none if it must not keep the lock.
    pub(crate) fn keep(&self, shard: usize, client: ClientId, word: &Arc<KeptWord>) -> u32 {
        let (shard, kept) = &mut *self.shards[shard].0.lock();
        let numbers = shard.reserved(client);
        if numbers > 0 {
            kept.insert(client, Arc::clone(word));
        }
        numbers
    }

    /// Release the lock of a client that may have a word. Neither the client nor the node uses the
    /// word any more.
    pub(crate) fn release_kept(&self, shard: usize, client: ClientId) {
        self.shards[shard].0.lock().1.remove(&client);
        self.leave(shard, client);
    }

    /// Release a lock that a client keeps while it is outside. Returns whether there was one.
    pub(crate) fn take_kept(&self, shard: usize, slot: Slot) -> bool {
        let taken = {
            let (shard, kept) = &mut *self.shards[shard].0.lock();
            if kept.is_empty() {
                return false;
            }
            shard.keeper(slot).filter(|client| kept.get(client).is_some_and(|word| word.take()))
        };
        taken.inspect(|client| self.release_kept(shard, *client)).is_some()
    }

    /// Set when the lease of the node ends.
    pub(crate) fn set_lease(&self, end: Duration) {
        for index in 0..self.shards() {
            self.shard(index).set_lease(end);
        }
        let end = u64::try_from(end.as_nanos()).unwrap_or(u64::MAX);
        // If this is the lease of another membership, all words have been revoked before.
        self.lease.store(end, Ordering::Release);
    }

    /// Does the lease of the node last? In a fixed group, there is none that could end.
    #[inline]
    pub(crate) fn is_within_lease(&self) -> bool {
        let end = self.lease.load(Ordering::Acquire);
        end == u64::MAX || self.now() < Duration::from_nanos(end)
    }

    /// Another member, if it is still one.
    fn peer(&self, id: PeerId) -> Option<Arc<Peer>> {
        self.peers.borrow().iter().find(|peer| peer.id() == id).cloned()
    }

    /// All other members.
    pub(crate) fn peers(&self) -> Vec<Arc<Peer>> {
        self.peers.borrow().clone()
    }

    /// The name of a member.
    pub(crate) fn peer_name(&self, id: PeerId) -> String {
        if id == self.me {
            return self.name.clone();
        }
        self.peer(id).map_or_else(|| "a former member".to_owned(), |peer| peer.name().to_owned())
    }

    /// The names of all members that belong to the group, this one included.
    pub(crate) fn members(&self) -> Vec<String> {
        match (&self.membership, &self.seatings) {
            (Membership::Agreed(group), _) => group.members(),
            (_, Seatings::Fixed(seating)) => seating.members.clone(),
            (_, Seatings::Agreed(_)) => Vec::new(),
        }
    }

    /// Put a message into its queue, to be written soon.
    pub(crate) fn send(&self, to: PeerId, message: &Message) {
        self.put(to, message, Peer::send);
    }

    /// Send a message to all other members.
    pub(crate) fn tell_all(&self, message: &Message) {
        for peer in self.peers() {
            self.send(peer.id(), message);
        }
    }

    /// Put a message into its queue, to be written when the peer is flushed.
    pub(crate) fn queue(&self, to: PeerId, message: &Message) {
        self.put(to, message, Peer::queue);
    }

    fn put(
        &self,
        to: PeerId,
        message: &Message,
        how: impl Fn(&Peer, &Message) -> Result<(), MessageTooLong>,
    ) {
        if let Some(peer) = self.peer(to)
            && let Err(error) = how(&peer, message)
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
        // A request that was withdrawn while a peer is away still waits in the outbox of the peer.
        if !self.backlog.is_full() {
            return Ok(());
        }
        let limit = self.backlog.limit();
        match self.peers().iter().find(|peer| peer.unacknowledged() >= limit) {
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

    /// The time since the node started, by the two clocks that leases need.
    pub(crate) fn both_clocks(&self) -> ClockTimes {
        self.clock.both()
    }

    /// Which members cannot be reached, and for how long.
    pub(crate) fn away(&self) -> Vec<(String, Duration)> {
        let peers = self.peers();
        let away = peers.iter().filter(|peer| !peer.is_up());
        away.map(|peer| (peer.name().to_owned(), peer.report().since.unwrap_or(self.now())))
            .collect()
    }

    pub(crate) fn counters(&self) -> NodeCounters {
        let mut sums = self.shard(0).counters();
        let mut former: BTreeMap<&'static str, LockCounters> = BTreeMap::new();
        for index in 0..self.shards() {
            let shard = self.shard(index);
            shard
                .former_counters()
                .for_each(|(name, more)| *former.entry(name).or_default() += more);
            if index == 0 {
                continue;
            }
            let counts = shard.counters();
            // While a view with other rules begins, some shards have the rules of the view before.
            if counts.iter().map(|it| it.0).eq(sums.iter().map(|it| it.0)) {
                sums.iter_mut().zip(counts).for_each(|(sum, (_, more))| sum.1 += more);
            } else {
                for (name, more) in counts {
                    *former.entry(name).or_default() += more;
                }
            }
        }
        let counters = |(algorithm, counts)| RuleCounters { algorithm, counts };
        NodeCounters {
            view: self.view(),
            waiting: self.waiting.load(Ordering::Relaxed),
            rules: sums.into_iter().map(counters).collect(),
            former: former.into_iter().map(counters).collect(),
            links: self
                .peers()
                .iter()
                .map(|peer| (peer.name().to_owned(), peer.report()))
                .collect(),
        }
    }

    pub(crate) fn next_session(&self) -> u64 {
        1 + self.sessions.fetch_add(1, Ordering::Relaxed)
    }
}
