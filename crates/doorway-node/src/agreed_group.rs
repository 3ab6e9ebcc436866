//! How a node of a group that agrees on its members performs what its state machines decide.
//!
//! Two machines work together. [`AgreedViews`] leads the node from view to view; links and shards
//! drive it from many threads, so it is behind a mutex. The [`Keeper`] renews the membership of
//! this process and removes dead members; it runs in a task of its own, and everything that it has
//! to know is sent to it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use doorway_core::NodeId;
use parking_lot::{Mutex, RwLock};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use crate::clock::Clock;
use crate::config::Config;
use crate::error::StartError;
use crate::holds::Promises;
use crate::link::Incarnation;
use crate::locks::{Rule, ShardEffects};
use crate::members::{
    self, Answer, Keeper, Loss, MemberId, Orphan, Output, PutId, Record, Seat, SeatId, StoreHealth,
    Unsure, ViewStore,
};
use crate::net::{Backlog, Peer, PeerId};
use crate::seating::Seating;
use crate::seatings::{Seatings, ViewSeating};
use crate::shell::{BACKLOG, Membership, NodeShell, ShellParts};
use crate::views::{AgreedEvent, AgreedNotice, AgreedOutput, AgreedView, AgreedViews, EndReason};

/// How many times in a lease the keeper is told that time has passed.
const TICKS: u32 = 100;

/// What a node of a group with agreed members has besides its shell.
pub(crate) struct AgreedGroup {
    pub(crate) views: Mutex<AgreedViews>,
    pub(crate) store: Arc<dyn ViewStore>,
    keeper: mpsc::UnboundedSender<members::Event>,
    /// Makes the rules of a view, given the number of its members.
    rules: Box<dyn Fn(usize) -> Vec<Rule> + Send + Sync>,
    status: watch::Sender<KeeperStatus>,
    /// Counts how many times the end of the lease has changed.
    pub(crate) leases: watch::Sender<u64>,
    pub(crate) promises: Promises,
}

/// What the keeper has decided last.
#[derive(Clone, Debug, Default)]
struct KeeperStatus {
    member: Option<MemberId>,
    /// When the lease ends, as the time since the node started.
    lease: Option<Duration>,
    /// Why the process cannot become a member, if it cannot.
    blocked: Option<String>,
    /// The membership was given up, as the program asked.
    left: bool,
    /// The holds whose members are gone.
    orphans: Arc<Vec<Orphan>>,
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
    /// Why the process cannot become a member, if it cannot.
    pub blocked: Option<String>,
    /// The seats to which a link is up.
    pub linked: Vec<SeatId>,
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
        let checked = config.check_agreed()?;
        let me = NodeId(0);
        let alone =
            Arc::new(Seating { members: vec![config.me.clone()], me, rules: checked.rules });
        let (keeper, events) = mpsc::unbounded_channel();
        let seat = store.seat();
        let by_size = config.clone();
        let parts = ShellParts {
            me: PeerId(seat.0),
            patterns: checked.patterns,
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
                rules: Box::new(move |size| by_size.rules_for(size)),
                status: watch::Sender::default(),
                leases: watch::Sender::default(),
                promises: Promises::default(),
            }),
            clock,
        };
        Ok((Self::new(config, parts), events))
    }

    /// Take in an event that may matter for the views, and do what follows from it.
    pub(crate) fn step_agreed(&self, group: &AgreedGroup, event: AgreedEvent) {
        let mut effects = ShardEffects::default();
        let mut bump = None;
        {
            let mut views = group.views.lock();
            let mut out = VecDeque::new();
            views.step(event, &mut out);
            while let Some(output) = out.pop_front() {
                match output {
                    AgreedOutput::Tell(seat, message) => self.send(PeerId(seat.0), &message),
                    AgreedOutput::TellAll(message) => self.tell_all(&message),
                    AgreedOutput::Disown(range) => self.disown(&range, &mut effects),
                    AgreedOutput::ShutDoor(name) => {
                        let rule = self.rule_of(&name);
                        self.shard(self.shard_of(&name)).shut_door(&name, rule);
                    }
                    AgreedOutput::OpenDoor(name) => {
                        let shard = self.shard_of(&name);
                        self.with_shard_deferred(shard, &mut effects, |shard, now, out| {
                            shard.open_door(&name, now, out);
                        });
                        if std::mem::take(&mut effects.overdue) {
                            views.step(AgreedEvent::Overdue, &mut out);
                        }
                    }
                    AgreedOutput::StopShards(view) => {
                        let number = view.number;
                        self.seatings.push(view_seating(group, view));
                        let held = self.stop_shards(number);
                        views.step(AgreedEvent::ShardsStopped(number, held), &mut out);
                    }
                    AgreedOutput::StartShards(view, held) => {
                        if self.start_shards(view, held, &mut effects) {
                            views.step(AgreedEvent::Overdue, &mut out);
                        }
                        tracing::info!(view, members = ?self.view_members(view), "the view runs");
                    }
                    AgreedOutput::Lapse => self.lapse(&mut effects),
                    AgreedOutput::Bump(number) => bump = Some(number),
                    AgreedOutput::End(reason) => self.end_shards(reason, &mut effects),
                    AgreedOutput::Log(notice) => self.log_agreed(notice),
                }
            }
        }
        self.finish(&mut effects);
        if let Some(number) = bump {
            group.tell_keeper(members::Event::Bump(number));
        }
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
                peers.push(Arc::new(Peer::new(id, name, address, dialled, backlog)));
                news = true;
            }
            news
        });
        for peer in gone {
            peer.retire(self);
        }
    }

    /// Take the locks from all clients: the membership of this process is over.
    fn lapse(&self, effects: &mut ShardEffects) {
        for index in 0..self.shards() {
            self.with_shard_deferred(index, effects, |shard, _, out| {
                shard.lapse(out);
                shard.set_lease(Duration::MAX);
            });
        }
    }

    fn view_members(&self, view: u64) -> Vec<String> {
        self.seatings.of(view).map_or_else(Vec::new, |seating| seating.members.clone())
    }

    fn log_agreed(&self, notice: AgreedNotice) {
        match notice {
            AgreedNotice::Waits(view, seats) => {
                let away: Vec<_> =
                    seats.iter().map(|seat| self.peer_name(PeerId(seat.0))).collect();
                tracing::info!(view, ?away, "the next view waits for members");
            }
            AgreedNotice::Refused(seat, error) => {
                let peer = self.peer_name(PeerId(seat.0));
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

    /// Keep the membership of this process until the node ends.
    pub(crate) async fn keep_membership(
        self: Arc<Self>,
        mut events: mpsc::UnboundedReceiver<members::Event>,
        nonce: u128,
    ) {
        let ended = self.ended();
        tokio::pin!(ended);
        let Membership::Agreed(group) = &self.membership else { return };
        let (mut records, mut holds) = (group.store.watch(), group.store.holds());
        let first = tokio::select! {
            _ = &mut ended => return,
            first = records.wait_for(Option::is_some) => match first {
                Ok(first) => first.clone(),
                Err(_) => return, // The store has ended.
            },
        };
        let Some(first) = first else { return };
        let mut keeper = Keeper::new(group.store.seat(), self.digest, nonce, Arc::clone(&first));
        let mut puts = JoinSet::new();
        let held = Arc::clone(&holds.borrow_and_update());
        self.tell(&mut keeper, group, members::Event::Holds(held), &mut puts);
        self.tell(&mut keeper, group, members::Event::Record(Arc::clone(&first)), &mut puts);
        if !self.is_reclaiming() {
            self.tell(&mut keeper, group, members::Event::Reclaimed, &mut puts);
        }
        let mut ticks = interval(Duration::from_millis(first.lease_ms.into()) / TICKS);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut leads = false;
        loop {
            let event = tokio::select! {
                _ = &mut ended => return,
                Some(event) = events.recv() => event,
                Some(answered) = puts.join_next() => match answered {
                    Ok((put, answer)) => members::Event::Answer(put, answer),
                    Err(_) => continue, // The store panicked; the command counts as unanswered.
                },
                changed = records.changed() => {
                    if changed.is_err() {
                        self.end(EndReason::StoreEnded);
                        return;
                    }
                    let Some(record) = records.borrow_and_update().clone() else { continue };
                    members::Event::Record(record)
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
            self.tell(&mut keeper, group, event, &mut puts);
        }
    }

    /// Let the keeper take a step, and do what it asks for.
    fn tell(
        &self,
        keeper: &mut Keeper,
        group: &AgreedGroup,
        event: members::Event,
        puts: &mut JoinSet<(PutId, Option<Answer>)>,
    ) {
        self.show(group, &event);
        let mut out = Vec::new();
        keeper.step(self.both_clocks(), event, &mut out);
        for output in out {
            match output {
                Output::Put(put, command) => {
                    let store = Arc::clone(&group.store);
                    puts.spawn(async move {
                        let answer = store.put(command).await;
                        let log =
                            |error: &Unsure| tracing::debug!(%error, "no answer of the store");
                        (put, answer.inspect_err(log).ok())
                    });
                }
                Output::Joined(member) => {
                    tracing::info!(member = member.0, "joined the group, waiting for a seat");
                    group.status.send_modify(|status| {
                        (status.member, status.blocked) = (Some(member), None);
                    });
                    self.step_agreed(group, AgreedEvent::Joined(member));
                }
                Output::Lease(end) => {
                    for index in 0..self.shards() {
                        self.shard(index).set_lease(end);
                    }
                    // As long as a claim may turn out wrong, nothing can be promised. The next
                    // renewal is soon.
                    if group.views.lock().knows_claims() {
                        group.status.send_modify(|status| status.lease = Some(end));
                        group.leases.send_modify(|changes| *changes += 1);
                    }
                }
                Output::Discard(why) => {
                    log_loss(&why);
                    group.status.send_modify(|status| {
                        (status.member, status.lease) = (None, None);
                    });
                    self.step_agreed(group, AgreedEvent::Discarded);
                    group.leases.send_modify(|changes| *changes += 1);
                }
                Output::Left => {
                    group.status.send_modify(|status| (status.left, status.lease) = (true, None));
                }
                Output::Blocked(why) => {
                    let why = why.to_string();
                    let news = group.status.send_if_modified(|status| {
                        let news = status.blocked.as_ref() != Some(&why);
                        status.blocked = Some(why.clone());
                        news
                    });
                    if news {
                        tracing::warn!(why, "this node cannot become a member; it tries again");
                    }
                }
                Output::Held { name, fence, refused } => {
                    group.promises.held(&name, fence, refused);
                }
                Output::Dropped { name, fence } => group.promises.dropped(&name, fence),
                Output::Orphans(orphans) => {
                    group.status.send_modify(|status| status.orphans = Arc::new(orphans));
                }
                Output::GiveUp(members) => self.give_up(keeper.record(), group, &members),
            }
        }
    }

    /// Let the views see a record or holds, before the keeper acts on them.
    fn show(&self, group: &AgreedGroup, event: &members::Event) {
        match event {
            members::Event::Record(record) => {
                self.meet_seats(record);
                self.step_agreed(group, AgreedEvent::Record(Arc::clone(record)));
            }
            members::Event::Holds(holds) => {
                self.step_agreed(group, AgreedEvent::Holds(Arc::clone(holds)));
            }
            _ => {}
        }
    }

    /// The process could not take its seat, because it has no connection with these members.
    fn give_up(&self, record: &Record, group: &AgreedGroup, members: &[MemberId]) {
        let seats = members.iter().filter_map(|id| record.member(*id).ok());
        let names = seats.filter_map(|member| record.seat(member.seat)).map(|it| it.name.as_str());
        let away = names.collect::<Vec<_>>().join(", ");
        tracing::warn!(away, "no connection with members that the group can reach");
        let why = format!("this node has no connection with {away}");
        group.status.send_modify(|status| {
            (status.member, status.lease, status.blocked) = (None, None, Some(why));
        });
        self.step_agreed(group, AgreedEvent::Discarded);
        group.leases.send_modify(|changes| *changes += 1);
    }

    /// Give up the membership, because nothing is held here any more and the process ends.
    pub(crate) async fn leave_group(&self) {
        let Membership::Agreed(group) = &self.membership else { return };
        // From here on no client enters, whatever becomes of the command.
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
        let linked = peers.iter().filter(|peer| peer.is_up()).map(|peer| peer.id().seat());
        Some(MembershipReport {
            seat: group.store.seat(),
            member: status.member,
            record,
            view,
            lease: status.lease.map(|end| end.saturating_sub(self.now())),
            blocked: status.blocked,
            linked: linked.collect(),
            health: group.store.health(),
        })
    }
}

fn log_loss(why: &Loss) {
    tracing::warn!(%why, "the membership has ended: clients have lost their locks, joining again");
}

/// The members and rules of a view.
fn view_seating(group: &AgreedGroup, view: AgreedView) -> ViewSeating {
    let AgreedView { number, members, me } = view;
    let peers = members.iter().map(|(seat, _)| PeerId(seat.0)).collect();
    let members: Vec<String> = members.into_iter().map(|(_, name)| name).collect();
    let rules = (group.rules)(members.len());
    ViewSeating { view: number, seating: Arc::new(Seating { members, me, rules }), peers }
}
