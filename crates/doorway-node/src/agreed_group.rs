//! How a node of a group that agrees on its members performs what its state machines decide.
//!
//! Two machines work together. [`AgreedViews`] leads the node from view to view; links and shards
//! drive it from many threads, so it is behind a mutex. The [`Keeper`] renews the membership of
//! this process and removes dead members; it runs in a task of its own, and everything that it has
//! to know is sent to it.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use doorway_core::NodeId;
use doorway_protocol::{Fence, Name};
use parking_lot::{Mutex, RwLock};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

use crate::clock::Clock;
use crate::config::Config;
use crate::error::StartError;
use crate::holds::Promises;
use crate::link::Incarnation;
use crate::locks::{Shard, ShardEffects};
use crate::members::{
    self, AgreedRules, Answer, Command, Histogram, Keeper, KeeperHost, KeeperNotice, KeeperStatus,
    MemberId, Orphan, OwnMembership, PutId, Record, RecordError, Seat, SeatId, StoreHealth,
    TimeCounts, UnknownOutcome, ViewStore,
};
use crate::messages::{HeldLock, Message};
use crate::net::{Backlog, Peer, PeerId};
use crate::seating::Seating;
use crate::seatings::Seatings;
use crate::shell::{BACKLOG, Membership, NodeShell, ShellParts};
use crate::views::{AgreedEvent, AgreedHost, AgreedNotice, AgreedView, AgreedViews, EndReason};

/// What a node of a group with agreed members has besides its shell.
pub(crate) struct AgreedGroup {
    pub(crate) views: Mutex<AgreedViews>,
    pub(crate) store: Arc<dyn ViewStore>,
    keeper: mpsc::UnboundedSender<members::Event>,
    /// How many times in a row a lock may pass between clients of this node while another node
    /// waits.
    handovers: u32,
    /// The rules by which locks are served now.
    pub(crate) rules: watch::Sender<Arc<AgreedRules>>,
    status: watch::Sender<KeeperStatus>,
    /// Counts how many times the end of the lease has changed.
    pub(crate) leases: watch::Sender<u64>,
    pub(crate) promises: Promises,
    /// The process gives up its membership, and ends then.
    leaving: AtomicBool,
    history: Arc<History>,
}

/// What has happened to the membership of this process, and what its keeper has done.
#[derive(Debug, Default)]
struct History {
    /// When the group renewed the membership last, in milliseconds since the node started.
    renewed_ms: AtomicU64,
    lapses: AtomicU64,
    removals: AtomicU64,
    evictions: AtomicU64,
    renewals: Histogram,
    view_changes: Histogram,
    last_view: Mutex<LastView>,
}

/// Whether the locks of the last view are served.
#[derive(Debug, Default)]
enum LastView {
    /// There was none in this membership.
    #[default]
    None,
    Runs,
    /// It was stopped for the next one at this time since the node started.
    Stopped(Duration),
}

impl History {
    /// Note that the group has agreed on a command of the keeper.
    fn agreed(&self, command: &Command) {
        let count = match command {
            Command::Remove { .. } => &self.removals,
            Command::Evict { .. } => &self.evictions,
            _ => return,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// The shards have stopped for the next view.
    fn stopped(&self, now: Duration) {
        let mut last = self.last_view.lock();
        if matches!(*last, LastView::Runs) {
            *last = LastView::Stopped(now);
        }
    }

    /// The shards have started the next view.
    fn started(&self, now: Duration) {
        if let LastView::Stopped(then) =
            std::mem::replace(&mut *self.last_view.lock(), LastView::Runs)
        {
            self.view_changes.count(now.saturating_sub(then));
        }
    }

    /// The membership is over, and with it the last view.
    fn ended(&self) {
        *self.last_view.lock() = LastView::None;
    }

    fn counts(&self) -> MembershipCounts {
        MembershipCounts {
            lapses: self.lapses.load(Ordering::Relaxed),
            removals: self.removals.load(Ordering::Relaxed),
            evictions: self.evictions.load(Ordering::Relaxed),
            renewals: self.renewals.counts(),
            view_changes: self.view_changes.counts(),
        }
    }
}

/// How often something has happened to the membership of a node since the node started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MembershipCounts {
    /// The membership of this node has ended although the node went on, so that its clients have
    /// lost their locks.
    pub lapses: u64,
    /// The group has removed a silent machine from the view, because this node proposed it.
    pub removals: u64,
    /// The group has evicted a process that cannot reach the others, because this node proposed it.
    pub evictions: u64,
    /// How long the group took to renew the membership of this node, each time.
    pub renewals: TimeCounts,
    /// For how long no lock was granted here when a view followed another one, each time.
    pub view_changes: TimeCounts,
}

/// The membership of a node in a group that agrees on its members.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MembershipReport {
    /// The seat of this machine.
    pub seat: SeatId,
    /// The number of this process, if it is a member.
    pub member: Option<MemberId>,
    /// The newest record that is known; none until the group is founded.
    pub record: Option<Arc<Record>>,
    /// The view that runs here, if one does.
    pub view: Option<u64>,
    /// For how long locks may be granted without another renewal.
    pub lease: Option<Duration>,
    /// How long ago the group renewed the membership last; none if it never did.
    pub renewed: Option<Duration>,
    /// What has happened to the membership since the node started.
    pub counts: MembershipCounts,
    /// Why the process cannot become a member, if it cannot.
    pub blocked: Option<String>,
    /// The seats to which a link is up.
    pub linked: Vec<SeatId>,
    /// How long ago this node saw the newest beat of each member.
    pub beats: Vec<(MemberId, Duration)>,
    /// The state of the store.
    pub health: StoreHealth,
}

impl AgreedGroup {
    /// Let the keeper know of something. After the end of the node nobody listens.
    pub(crate) fn tell_keeper(&self, event: members::Event) {
        let _ = self.keeper.send(event);
    }

    /// Is this record, or a newer one, known here?
    pub(crate) fn knows(&self, record: &Record) -> bool {
        // A record counts only if it belongs to the group that the own store knows.
        self.views.lock().record().is_none_or(|known| {
            known.cluster != record.cluster || known.revision >= record.revision
        })
    }

    /// The names of the machines that belong to the group.
    pub(crate) fn members(&self) -> Vec<String> {
        let views = self.views.lock();
        let seats = views.record().map(|record| record.seats.iter().map(|seat| seat.name.clone()));
        seats.into_iter().flatten().collect()
    }

    /// The names of the machines with a process that waits for its seat.
    pub(crate) fn waiting(&self) -> Vec<String> {
        let views = self.views.lock();
        let Some(record) = views.record() else { return Vec::new() };
        let waiting = record.members.iter().filter(|member| member.since.is_none());
        let seats = waiting.filter_map(|member| record.seat(member.seat));
        seats.map(|seat| seat.name.clone()).collect()
    }
}

impl NodeShell {
    /// Make a node of a group that agrees on its members. It waits until the group is founded and
    /// it has a seat. If `reclaiming` is set, it then waits for former holders. The second part of
    /// the result is for [`NodeShell::keep_membership`].
    pub(crate) fn agreed(
        config: &Config,
        store: Arc<dyn ViewStore>,
        clock: Clock,
        seed: u64,
        reclaiming: bool,
    ) -> Result<(Self, mpsc::UnboundedReceiver<members::Event>), StartError> {
        // The rules of the settings count only until those of the group are known.
        let rules = config.check_agreed()?;
        let alone = Arc::new(Seating { members: vec![config.me.clone()], me: NodeId(0), rules });
        let rules = config.lock_rules();
        let rules = AgreedRules { digest: rules.tables().digest(), rules };
        let (keeper, events) = mpsc::unbounded_channel();
        let seat = store.seat();
        let parts = ShellParts {
            me: PeerId(seat.0),
            seating: alone,
            seatings: Seatings::Agreed(RwLock::default()),
            peers: Vec::new(),
            backlog: Backlog::new(config.outstanding.max(BACKLOG)),
            digest: config.agreed_digest(),
            incarnation: Incarnation(seed),
            membership: Membership::Agreed(AgreedGroup {
                views: Mutex::new(AgreedViews::new(seat, reclaiming)),
                store,
                keeper,
                handovers: config.handovers,
                rules: watch::Sender::new(Arc::new(rules)),
                status: watch::Sender::default(),
                leases: watch::Sender::default(),
                promises: Promises::default(),
                leaving: AtomicBool::new(false),
                history: Arc::default(),
            }),
            clock,
        };
        Ok((Self::new(config, parts), events))
    }

    /// Take in an event that may matter for the views, and do what follows from it.
    pub(crate) fn step_agreed(&self, group: &AgreedGroup, event: AgreedEvent) {
        self.drive_views(group, event);
    }

    /// Take in an event as [`NodeShell::step_agreed`] does. If shards were told that the membership
    /// is over, this returns whether a client has lost a lock by that.
    fn drive_views(&self, group: &AgreedGroup, event: AgreedEvent) -> Option<bool> {
        let mut effects = ShardEffects::default();
        let mut host = ViewsHost { shell: self, group, effects: &mut effects, lost: None };
        let bump = group.views.lock().drive(event, &mut host);
        let lost = host.lost;
        self.finish(&mut effects);
        if let Some(number) = bump {
            group.tell_keeper(members::Event::Bump(number));
        }
        lost
    }

    /// Make links to new seats, and close those to seats that belong to the group no longer.
    /// Nothing may be locked.
    fn meet_seats(&self, record: &Record) {
        let belongs = |peer: &Arc<Peer>| {
            let same = |seat: &&Seat| seat.id == peer.id().seat() && seat.address == peer.address();
            record.seats.iter().any(|seat| same(&seat))
        };
        let mut gone = Vec::new();
        self.peers.send_if_modified(|peers| {
            gone = peers.extract_if(.., |peer| !belongs(peer)).collect();
            let mut news = !gone.is_empty();
            for seat in record.seats.iter().filter(|seat| seat.id != self.me.seat()) {
                if peers.iter().any(|peer| peer.id().seat() == seat.id) {
                    continue;
                }
                // Of two nodes, the one whose name comes first dials the other.
                let dialled = self.name() < seat.name.as_str();
                let (id, backlog) = (PeerId(seat.id.0), self.backlog.clone());
                let (name, address) = (seat.name.clone(), seat.address.clone());
                let peer = Peer::new(id, name, address, dialled, backlog);
                // The seat may have been removed and added again while both processes went on.
                peers.push(Arc::new(peer.link(record.revision)));
                news = true;
            }
            news
        });
        for peer in gone {
            peer.retire(self);
        }
        for peer in self.peers() {
            let processes = record.members_of(peer.id().seat());
            if let Some(newest) = processes.map(|member| member.id).max() {
                peer.has_process(newest.0);
            }
        }
    }

    fn view_members(&self, view: u64) -> Vec<String> {
        self.seatings.of(view).map_or_else(Vec::new, |seating| seating.members.clone())
    }

    /// Keep the membership of this process until the node ends.
    pub(crate) async fn keep_membership(
        self: Arc<Self>,
        mut events: mpsc::UnboundedReceiver<members::Event>,
        nonce: u128,
    ) {
        let Membership::Agreed(group) = &self.membership else { return };
        let _ending = EndOnDrop(&self);
        let ended = self.ended();
        tokio::pin!(ended);
        let (mut records, mut holds) = (group.store.watch(), group.store.holds());
        let mut rules = group.store.rules();
        let first = tokio::select! {
            _ = &mut ended => return,
            first = records.wait_for(Option::is_some) => match first {
                Ok(first) => first.clone(),
                Err(_) => return, // The store has ended.
            },
        };
        let Some(first) = first else { return };
        let own = group.rules.borrow().digest;
        let keeper = Keeper::new(group.store.seat(), own, nonce, first);
        let mut puts = JoinSet::new();
        let mut host = MembershipHost { shell: &self, group, puts: &mut puts };
        let reclaiming = self.is_reclaiming();
        let held = Arc::clone(&holds.borrow_and_update());
        let agreed = Arc::clone(&rules.borrow_and_update());
        let now = self.both_clocks();
        let mut membership =
            OwnMembership::begin(keeper, held, &agreed, reclaiming, now, &mut host);
        let mut tick = membership.tick();
        let mut ticks = ticks(tick);
        let mut leads = false;
        loop {
            if membership.tick() != tick {
                tick = membership.tick();
                ticks = self::ticks(tick);
            }
            let event = tokio::select! {
                _ = &mut ended => return,
                Some(event) = events.recv() => event,
                Some(answered) = puts.join_next() => match answered {
                    Ok((put, answer)) => members::Event::Answer(put, answer),
                    Err(_) => continue, // The store panicked; the command counts as unanswered.
                },
                changed = records.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    let Some(record) = records.borrow_and_update().clone() else { continue };
                    members::Event::Record(record)
                }
                Ok(()) = rules.changed() => {
                    let agreed = Arc::clone(&rules.borrow_and_update());
                    let mut host = MembershipHost { shell: &self, group, puts: &mut puts };
                    membership.learn_rules(self.both_clocks(), &agreed, &mut host);
                    continue;
                }
                Ok(()) = holds.changed() => {
                    members::Event::Holds(Arc::clone(&holds.borrow_and_update()))
                }
                _ = ticks.tick() => {
                    let before = std::mem::replace(&mut leads, group.store.leads());
                    if leads == before {
                        members::Event::Tick
                    } else {
                        members::Event::Leads(leads)
                    }
                }
            };
            let mut host = MembershipHost { shell: &self, group, puts: &mut puts };
            membership.drive(self.both_clocks(), event, &mut host);
        }
    }

    /// Give up the membership, because nothing is held here any more and the process ends.
    pub(crate) async fn leave_group(&self) {
        let Membership::Agreed(group) = &self.membership else { return };
        // From here on no client enters, whatever becomes of the command.
        group.leaving.store(true, Ordering::Release);
        self.step_agreed(group, AgreedEvent::Discarded);
        group.tell_keeper(members::Event::Leave);
        let mut status = group.status.subscribe();
        let _ = status.wait_for(|status| status.left).await;
    }

    /// For how long locks may be granted without another renewal of the membership. None in a
    /// fixed group, which needs none.
    pub(crate) fn lease_left(&self) -> Option<Duration> {
        let Membership::Agreed(group) = &self.membership else { return None };
        let end = group.status.borrow().lease.unwrap_or_default();
        Some(end.saturating_sub(self.now()))
    }

    /// A number that no other process of this node has, if there is one.
    pub(crate) fn process_number(&self) -> Option<u64> {
        match &self.membership {
            Membership::Fixed(group) => group.began,
            Membership::Agreed(group) => group.status.borrow().member.map(|member| member.0),
        }
    }

    /// The holds whose members are gone.
    pub(crate) fn orphans(&self) -> Arc<Vec<Orphan>> {
        match &self.membership {
            Membership::Agreed(group) => Arc::clone(&group.status.borrow().orphans),
            Membership::Fixed(_) => Arc::default(),
        }
    }

    /// The membership of this node, in a group that agrees on its members.
    pub(crate) fn membership_report(&self) -> Option<MembershipReport> {
        let Membership::Agreed(group) = &self.membership else { return None };
        let status = group.status.borrow().clone();
        let (record, view) = {
            let views = group.views.lock();
            (views.record().cloned(), views.running())
        };
        let peers = self.peers();
        let renewed = match group.history.renewed_ms.load(Ordering::Relaxed) {
            0 => None,
            millis => Some(self.now().saturating_sub(Duration::from_millis(millis))),
        };
        let now = self.now();
        let beats = status.beats.iter().map(|(id, at)| (*id, now.saturating_sub(*at)));
        let linked = peers.iter().filter(|peer| peer.is_up()).map(|peer| peer.id().seat());
        Some(MembershipReport {
            seat: group.store.seat(),
            member: status.member,
            record,
            view,
            lease: status.lease.map(|end| end.saturating_sub(self.now())),
            renewed,
            counts: group.history.counts(),
            blocked: status.blocked,
            linked: linked.collect(),
            beats: beats.collect(),
            health: group.store.health(),
        })
    }
}

/// The shell of a node as the host of its [`AgreedViews`], while those are locked.
struct ViewsHost<'a> {
    shell: &'a NodeShell,
    group: &'a AgreedGroup,
    /// What is left to do when nothing is locked any more.
    effects: &'a mut ShardEffects,
    /// Whether a client has lost a lock because the membership is over, once it is.
    lost: Option<bool>,
}

impl AgreedHost for ViewsHost<'_> {
    fn tell(&mut self, to: SeatId, message: &Message) {
        self.shell.send(PeerId(to.0), message);
    }

    fn tell_all(&mut self, message: &Message) {
        self.shell.tell_all(message);
    }

    fn use_rules(&mut self, rules: &AgreedRules) {
        let members = vec![self.shell.name().to_owned()];
        let book = rules.rules.arrange(&members, self.group.handovers, Some(rules.digest));
        let seating = Arc::new(Seating { members, me: NodeId(0), rules: book });
        for index in 0..self.shell.shards() {
            let use_rules = |shard: &mut Shard, _, out: &mut ShardEffects| {
                shard.use_rules(&seating, out);
            };
            self.shell.with_shard_deferred(index, self.effects, use_rules);
        }
        self.group.rules.send_replace(Arc::new(rules.clone()));
    }

    fn stop_shards(&mut self, view: AgreedView, rules: &AgreedRules) -> Vec<HeldLock> {
        let number = view.number;
        let names = view.names();
        let book = rules.rules.arrange(&names, self.group.handovers, Some(rules.digest));
        self.shell.seatings.push(view, book);
        self.group.rules.send_if_modified(|known| {
            let changed = **known != *rules;
            if changed {
                *known = Arc::new(rules.clone());
            }
            changed
        });
        self.group.history.stopped(self.shell.now());
        self.shell.stop_shards(number)
    }

    fn start_shards(&mut self, view: u64, held: Vec<Vec<HeldLock>>) -> bool {
        let overdue = self.shell.start_shards(view, held, self.effects);
        self.group.history.started(self.shell.now());
        tracing::info!(view, members = ?self.shell.view_members(view), "the view runs");
        overdue
    }

    fn shut_door(&mut self, name: &Name) {
        self.shell.shard(self.shell.shard_of(name)).shut_door(name);
    }

    fn open_door(&mut self, name: &Name) -> bool {
        let index = self.shell.shard_of(name);
        self.shell.with_shard_deferred(index, self.effects, |shard, now, out| {
            shard.open_door(name, now, out);
        });
        std::mem::take(&mut self.effects.overdue)
    }

    fn disown(&mut self, views: &Range<u64>) {
        self.shell.disown(views, self.effects);
    }

    fn discard(&mut self) {
        self.group.history.ended();
        let mut lost = false;
        for index in 0..self.shell.shards() {
            let discard = |shard: &mut Shard, _, out: &mut ShardEffects| shard.discard(out);
            lost |= self.shell.with_shard_deferred(index, self.effects, discard);
        }
        self.lost = Some(lost);
    }

    fn end(&mut self, reason: EndReason) {
        self.shell.end_shards(reason, self.effects);
    }

    fn log(&mut self, notice: AgreedNotice) {
        let name = |seat: SeatId| self.shell.peer_name(PeerId(seat.0));
        match notice {
            AgreedNotice::Waits(view, seats) => {
                let away: Vec<_> = seats.into_iter().map(name).collect();
                tracing::info!(view, ?away, "the next view waits for members");
            }
            AgreedNotice::Refused(seat, error) => {
                let peer = name(seat);
                tracing::error!(peer, %error, "a peer sent what no correct member sends");
            }
            AgreedNotice::Broken => {
                tracing::warn!(
                    "the group has removed the process before this one: its clients have lost \
                     their locks"
                );
            }
        }
    }
}

/// The shell of a node as the host of its membership, in the task that keeps it.
struct MembershipHost<'a> {
    shell: &'a NodeShell,
    group: &'a AgreedGroup,
    /// The commands that the store has not answered.
    puts: &'a mut JoinSet<(PutId, Option<Answer>)>,
}

impl KeeperHost for MembershipHost<'_> {
    fn put(&mut self, put: PutId, command: Command) {
        let (store, history) = (Arc::clone(&self.group.store), Arc::clone(&self.group.history));
        self.puts.spawn(async move {
            let sent = Instant::now();
            let answer = store.put(command.clone()).await;
            match answer {
                Ok(Answer::Done(_)) => history.agreed(&command),
                Ok(Answer::Renewed { .. }) => history.renewals.count(sent.elapsed()),
                _ => {}
            }
            let log = |error: &UnknownOutcome| tracing::debug!(%error, "no answer of the store");
            (put, answer.inspect_err(log).ok())
        });
    }

    fn meet_seats(&mut self, record: &Record) {
        self.shell.meet_seats(record);
    }

    fn views(&mut self, event: AgreedEvent) {
        self.shell.step_agreed(self.group, event);
    }

    fn discard(&mut self) -> bool {
        // The shards of a node that has ended are not asked: they may have had clients. A process
        // that leaves has asked its shards before, and they tell only once what was lost.
        let lost = self.shell.drive_views(self.group, AgreedEvent::Discarded).unwrap_or(true);
        lost || self.group.leaving.load(Ordering::Acquire)
    }

    fn knows_claims(&self) -> bool {
        self.group.views.lock().knows_claims()
    }

    fn set_lease(&mut self, end: Duration) {
        self.shell.set_lease(end);
        let now = self.shell.now().as_millis() as u64;
        self.group.history.renewed_ms.store(now.max(1), Ordering::Relaxed);
    }

    fn note(&mut self, standing: &KeeperStatus) {
        self.group.status.send_replace(standing.clone());
    }

    fn held(&mut self, name: &Name, fence: Fence, refused: Option<RecordError>) {
        self.group.promises.held(name, fence, refused);
    }

    fn dropped(&mut self, name: &Name, fence: Fence) {
        self.group.promises.dropped(name, fence);
    }

    fn lease_changed(&mut self) {
        self.group.leases.send_modify(|changes| *changes += 1);
    }

    fn log(&mut self, notice: KeeperNotice) {
        if matches!(notice, KeeperNotice::Lost(_) | KeeperNotice::GaveUp(_)) {
            self.group.history.lapses.fetch_add(1, Ordering::Relaxed);
        }
        match notice {
            KeeperNotice::Joined(member) => {
                tracing::info!(member = member.0, "joined the group, waiting for a seat");
            }
            KeeperNotice::Lost(why) => {
                let text = "the membership has ended: clients have lost their locks, joining again";
                tracing::warn!(%why, "{text}");
            }
            KeeperNotice::Blocked(why) => {
                tracing::warn!(%why, "this node cannot become a member; it tries again");
            }
            KeeperNotice::UnusableRules(why) => {
                let text = "the rules for locks of the group cannot be run by this version of \
                            doorway; install the version of the other members";
                tracing::error!(why, "{text}");
            }
            KeeperNotice::GaveUp(away) => {
                tracing::warn!(away, "no connection with members that the group can reach");
            }
        }
    }
}

fn ticks(tick: Duration) -> Interval {
    let mut ticks = interval(tick);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Ends the node when nothing keeps its membership any more: because the store has ended, or by a
/// panic.
struct EndOnDrop<'a>(&'a NodeShell);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.end(EndReason::StoreEnded);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_change_takes_from_the_first_stop_to_the_next_start() {
        let (history, at) = (History::default(), Duration::from_secs);
        // The first view follows no other one.
        history.stopped(at(1));
        history.started(at(2));
        assert_eq!(history.counts().view_changes.total(), 0);
        // A view that never starts is followed by another one.
        history.stopped(at(10));
        history.stopped(at(11));
        history.started(at(13));
        let counts = history.counts().view_changes;
        assert_eq!((counts.total(), counts.sum), (1, at(3)));
        // The membership ends, and the process joins anew.
        history.stopped(at(20));
        history.ended();
        history.started(at(90));
        assert_eq!(history.counts().view_changes, counts);
    }
}
