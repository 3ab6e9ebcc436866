//! The node as a member of a group that agrees on its members: the shipped views and the shipped
//! keeper, with a simulated store, links and shards around them.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use doorway_core::{Mode, NodeId};
use doorway_node::locks::{Shard, ShardEffects};
use doorway_node::members::{
    AgreedRules, Answer, ClockTimes, Command, Event, GroupState, Keeper, KeeperHost, KeeperNotice,
    KeeperStatus, MemberId, OwnMembership, PutId, Record, RecordError, RuleTables, SeatId,
};
use doorway_node::messages::{HeldLock, Message};
use doorway_node::views::{
    AgreedEvent, AgreedHost, AgreedNotice, AgreedView, AgreedViews, EndReason, ViewSeats,
};
use doorway_protocol::{Code, Fence, Name};
use doorway_sessions::{AskId, Input, NodeLease, UNLIMITED};

use super::group::{Group, Views};
use super::links::Link;
use super::{Node, NodeEvent, place, refusal};
use crate::clock::{MS, SECOND};
use crate::context::{Context, log};
use crate::register::{RegisterTraffic, node_of, seat};
use crate::settings::{Kind, LockSetting, Settings};

/// How long the group may take to let a process go.
const LEAVING: u64 = 1000 * MS;

/// How long it takes at most until the ledger is synced.
const SYNC: u64 = 20 * MS;

/// What a node of a group with agreed members has.
#[derive(Debug)]
pub(crate) struct AgreedNode {
    pub(super) views: AgreedViews,
    pub(super) seats: ViewSeats,
    /// None until the node has seen a record.
    membership: Option<OwnMembership>,
    standing: KeeperStatus,
    /// What the keeper has yet to be told.
    inbox: VecDeque<Event>,
    /// The commands that have no answer.
    puts: BTreeSet<PutId>,
    /// The grants that the group is asked to keep.
    asked: Vec<PendingHold>,
    leads: bool,
    nonce: u128,
    /// The process gives up its membership, and ends then.
    leaving: bool,
    /// The lease that the sessions know, in milliseconds.
    lease_ms: u32,
}

/// A grant that the group is asked to keep.
#[derive(Debug)]
struct PendingHold {
    ask: AskId,
    name: Name,
    fence: Fence,
    length: Duration,
}

impl AgreedNode {
    pub(super) fn new(node: usize, reclaiming: bool, nonce: u64) -> Self {
        Self {
            views: AgreedViews::new(seat(node), reclaiming),
            seats: ViewSeats::default(),
            membership: None,
            standing: KeeperStatus::default(),
            inbox: VecDeque::new(),
            puts: BTreeSet::new(),
            asked: Vec::new(),
            leads: false,
            nonce: nonce.into(),
            leaving: false,
            lease_ms: 0,
        }
    }
}

/// The shards and links of a node, as its views act on them.
struct Stage<'a> {
    settings: &'a Settings,
    shards: &'a mut [Shard],
    links: &'a mut [Option<Link>],
    seats: &'a mut ViewSeats,
    now: Duration,
    effects: ShardEffects,
    notices: Vec<String>,
    started: Option<u64>,
    ended: bool,
    /// Whether a client has lost a lock because the membership is over, once it is.
    lost: Option<bool>,
}

impl Stage<'_> {
    /// Send the messages of shards, in the order in which the shards have made them.
    fn send_messages(&mut self) {
        for (to, message) in self.effects.messages.drain(..) {
            let Some(to) = self.seats.seat(message.view, to) else { continue };
            if let Some(link) = &mut self.links[node_of(to)] {
                link.push(&Message::Algorithm(message));
            }
        }
    }
}

impl AgreedHost for Stage<'_> {
    fn tell(&mut self, to: SeatId, message: &Message) {
        if let Some(link) = &mut self.links[node_of(to)] {
            link.push(message);
        }
    }

    fn tell_all(&mut self, message: &Message) {
        self.links.iter_mut().flatten().for_each(|link| link.push(message));
    }

    fn use_rules(&mut self, _rules: &AgreedRules) {} // They are those of the settings.

    fn stop_shards(&mut self, view: AgreedView, rules: &AgreedRules) -> Vec<HeldLock> {
        let (number, names) = (view.number, view.names());
        self.notices.push(format!("stops for {view:?}"));
        let book = rules.rules.arrange(&names, self.settings.handovers, Some(rules.digest));
        let book = book.with_patience(self.settings.patience());
        let stop = |shard: &mut Shard| shard.stop_for(number, &book);
        let held = self.shards.iter_mut().flat_map(stop).collect();
        self.seats.push(view, book);
        held
    }

    fn start_shards(&mut self, view: u64, held: Vec<Vec<HeldLock>>) -> bool {
        self.notices.push(format!("starts view {view} with {held:?}"));
        if let Some(name) = crowded(self.settings, &held) {
            self.notices.push(format!("Refused: view {view} has too many holders of {name}"));
        }
        let Some(seating) = self.seats.seating(view) else { return false };
        let mut parts: Vec<Vec<(NodeId, HeldLock)>> = vec![Vec::new(); self.shards.len()];
        for (node, held) in held.into_iter().enumerate() {
            for held in held {
                let shard = place(self.settings, &held.lock);
                parts[shard].push((NodeId::at(node), held));
            }
        }
        for (index, part) in parts.into_iter().enumerate() {
            self.shards[index].start(view, &seating, part, self.now, &mut self.effects);
            self.send_messages();
        }
        self.started = Some(view);
        std::mem::take(&mut self.effects.overdue)
    }

    fn shut_door(&mut self, name: &Name) {
        self.notices.push(format!("shuts {name}"));
        let shard = place(self.settings, name);
        self.shards[shard].shut_door(name);
    }

    fn open_door(&mut self, name: &Name) -> bool {
        self.notices.push(format!("opens {name}"));
        let shard = place(self.settings, name);
        self.shards[shard].open_door(name, self.now, &mut self.effects);
        self.send_messages();
        std::mem::take(&mut self.effects.overdue)
    }

    fn disown(&mut self, views: &Range<u64>) {
        self.notices.push(format!("disowns what was claimed of other views than {views:?}"));
        self.shards.iter_mut().for_each(|shard| shard.disown(views, &mut self.effects));
        self.send_messages();
    }

    fn discard(&mut self) {
        let mut lost = false;
        for shard in self.shards.iter_mut() {
            lost |= shard.discard(&mut self.effects);
        }
        self.lost = Some(lost);
        self.send_messages();
    }

    fn end(&mut self, reason: EndReason) {
        self.notices.push(format!("ends: {reason}"));
        self.shards.iter_mut().for_each(|shard| shard.end(self.now, &mut self.effects));
        self.send_messages();
        self.ended = true;
    }

    fn log(&mut self, notice: AgreedNotice) {
        self.notices.push(format!("{notice:?}"));
    }
}

/// A lock whose holders exclude each other. A shipped node waits for them to leave, because the
/// group may have changed the rules of its locks. No run changes them.
fn crowded<'a>(settings: &'a Settings, held: &[Vec<HeldLock>]) -> Option<&'a Name> {
    let is_crowded = |lock: &&LockSetting| {
        let holders = || held.iter().flatten().filter(|held| held.lock == lock.name);
        match lock.kind {
            Kind::Exclusive => holders().count() > 1,
            Kind::Shared => holders().count() > 1 && holders().any(|it| it.mode == Mode::Exclusive),
            Kind::Permits(permits) => holders().map(|it| it.permits).sum::<u32>() > permits,
        }
    };
    settings.locks.iter().find(is_crowded).map(|lock| &lock.name)
}

/// A node and the rest of the world, as the keeper of its membership acts on them.
struct KeeperContext<'a> {
    node: &'a mut Node,
    context: &'a mut Context,
}

impl KeeperHost for KeeperContext<'_> {
    fn put(&mut self, put: PutId, command: Command) {
        let (node, start) = (self.node.id, self.node.starts);
        let Some(agreed) = self.node.agreed() else { return };
        agreed.puts.insert(put);
        // The first command is put before the views know the record.
        let lease = agreed.views.record().map(|record| u64::from(record.lease_ms) * MS);
        let lease = lease.unwrap_or_else(|| self.context.settings.deadline());
        self.context.send_register(RegisterTraffic::Ask { node, start, put, command });
        self.node.later(self.context, lease * 3 / 10, NodeEvent::PutTimedOut(put));
    }

    fn meet_seats(&mut self, record: &Record) {
        self.node.meet_seats(self.context, record);
    }

    fn views(&mut self, event: AgreedEvent) {
        self.node.agreed_views(self.context, event);
    }

    fn discard(&mut self) -> bool {
        let lost = self.node.drive_views(self.context, AgreedEvent::Discarded).unwrap_or(true);
        lost || self.node.agreed().is_some_and(|agreed| agreed.leaving)
    }

    fn knows_claims(&self) -> bool {
        let group = self.node.process.as_ref().map(|process| &process.group);
        matches!(group, Some(Group { views: Views::Agreed(it), .. }) if it.views.knows_claims())
    }

    fn set_lease(&mut self, end: Duration) {
        let Some(process) = &mut self.node.process else { return };
        process.group.shards.iter_mut().for_each(|shard| shard.set_lease(end));
    }

    fn note(&mut self, standing: &KeeperStatus) {
        if let Some(agreed) = self.node.agreed() {
            agreed.standing.clone_from(standing);
        }
    }

    fn held(&mut self, name: &Name, fence: Fence, refused: Option<RecordError>) {
        log!(self.context, "n{} holds {name} {fence:?}: {refused:?}", self.node.id);
        let now = self.node.uptime(self.context);
        let Some(process) = &mut self.node.process else { return };
        let Views::Agreed(agreed) = &mut process.group.views else { return };
        let is_answered = |it: &mut PendingHold| (&it.name, it.fence) == (name, fence);
        for PendingHold { ask, length, .. } in agreed.asked.extract_if(.., is_answered) {
            let guard = process.guards.get(&ask);
            let lost = guard.is_none_or(|guard| guard.is_lost(&process.group.shards, now));
            let kept = match &refused {
                Some(why) => Err(refusal(Code::Unavailable, &why.to_string())),
                None if lost => Err(refusal(Code::Broken, "granted and lost")),
                None => Ok(()),
            };
            process.inputs.push_back(Input::Held { ask, length, kept });
        }
        self.node.later(self.context, 0, NodeEvent::Inputs);
    }

    fn dropped(&mut self, name: &Name, fence: Fence) {
        self.node.later(self.context, 0, NodeEvent::SyncDrop(name.clone(), fence));
    }

    fn lease_changed(&mut self) {
        let after = self.context.random.between(0, 20_000);
        self.node.later(self.context, after, NodeEvent::LeaseChanged);
    }

    fn log(&mut self, notice: KeeperNotice) {
        log!(self.context, "n{} {notice:?}", self.node.id);
    }
}

impl Node {
    fn agreed(&mut self) -> Option<&mut AgreedNode> {
        match &mut self.process.as_mut()?.group.views {
            Views::Agreed(agreed) => Some(agreed),
            Views::Fixed(_) => None,
        }
    }

    /// The time since the process began, by the two clocks that leases need.
    fn both_clocks(&self, now: u64) -> ClockTimes {
        ClockTimes { boot: self.uptime_at(now), raw: self.awake_at(now) }
    }

    /// Something has happened that may matter for the views.
    pub(super) fn agreed_views(&mut self, context: &mut Context, event: AgreedEvent) {
        self.drive_views(context, event);
    }

    /// The views see an event. If shards were told that the membership is over, this returns
    /// whether a client has lost a lock by that.
    fn drive_views(&mut self, context: &mut Context, event: AgreedEvent) -> Option<bool> {
        let now = self.uptime(context);
        let settings = std::rc::Rc::clone(&context.settings);
        let process = self.process.as_mut()?;
        let Group { shards, links, views: Views::Agreed(agreed), .. } = &mut process.group else {
            return None;
        };
        let mut stage = Stage {
            settings: &settings,
            shards,
            links,
            seats: &mut agreed.seats,
            now,
            effects: ShardEffects::default(),
            notices: Vec::new(),
            started: None,
            ended: false,
            lost: None,
        };
        let bump = agreed.views.drive(event, &mut stage);
        let Stage { mut effects, notices, started, ended, lost, .. } = stage;
        process.group.ended |= ended;
        context.started.extend(started.map(|view| (self.id, view)));
        for notice in notices {
            if notice.starts_with("Refused") {
                context.violate(format!("n{}: {notice}", self.id));
            }
            log!(context, "n{} {notice}", self.id);
        }
        self.effects(context, &mut effects);
        if let Some(number) = bump {
            self.tell_keeper(context, Event::Bump(number));
        }
        lost
    }

    /// Let the group keep a grant. In a fixed group no other node ever takes over the locks of this
    /// one, and its ledger keeps the grant.
    pub(super) fn hold(
        &mut self,
        context: &mut Context,
        ask: AskId,
        name: Name,
        fence: Fence,
        length: Duration,
    ) {
        if let Some(agreed) = self.agreed() {
            agreed.asked.push(PendingHold { ask, name: name.clone(), fence, length });
            let length_ms = (length != UNLIMITED).then_some(length.as_millis() as u64);
            self.tell_keeper(context, Event::Hold { name, fence, length_ms });
        } else {
            let after = context.random.between(0, SYNC);
            self.later(context, after, NodeEvent::SyncHold(ask, length));
        }
    }

    /// The group or the ledger need not keep a grant any more.
    pub(super) fn drop_hold(&mut self, context: &mut Context, name: Name, fence: Fence) {
        if self.agreed().is_some() {
            self.tell_keeper(context, Event::Drop { name, fence });
        } else {
            let after = context.random.between(0, SYNC);
            self.later(context, after, NodeEvent::SyncDrop(name, fence));
        }
    }

    /// Sync the ledger, so that a grant outlives the machine.
    pub(super) fn sync_hold(&mut self, context: &mut Context, ask: AskId, length: Duration) {
        let now = self.uptime(context);
        let Some(process) = &self.process else { return };
        let guard = process.guards.get(&ask);
        let lost = guard.is_none_or(|guard| guard.is_lost(&process.group.shards, now));
        let synced = process.ledger.sync();
        self.note_sync(context, &synced);
        let kept = match synced {
            Err(error) => Err(refusal(Code::Unavailable, &error.to_string())),
            Ok(()) if lost => Err(refusal(Code::Broken, "granted and lost")),
            Ok(()) => Ok(()),
        };
        self.input(context, Input::Held { ask, length, kept });
    }

    fn note_sync(&mut self, context: &mut Context, synced: &io::Result<()>) {
        if let Err(error) = synced {
            self.input(context, Input::LedgerFailed(error.to_string()));
        }
    }

    /// Sync the ledger, so that the next process does not hold a grant that has ended.
    pub(super) fn sync_drop(&mut self, context: &mut Context, name: Name, fence: Fence) {
        let Some(process) = &self.process else { return };
        let done = process.ledger.sync();
        self.note_sync(context, &done);
        match done {
            Ok(()) => self.input(context, Input::Dropped(name, fence, Ok(()))),
            Err(_) => self.later(context, SECOND, NodeEvent::SyncDrop(name, fence)),
        }
    }

    /// Let the keeper know of something. Its task may be busy.
    pub(super) fn tell_keeper(&mut self, context: &mut Context, event: Event) {
        let Some(agreed) = self.agreed() else { return };
        agreed.inbox.push_back(event);
        let busy = if context.random.percent(2) { 50 * MS } else { 20_000 };
        let after = context.random.between(0, busy);
        self.later(context, after, NodeEvent::Keeper);
    }

    /// The task of the keeper looks what it was told. Before the first record it does not run.
    pub(super) fn keeper_told(&mut self, context: &mut Context) {
        let Some(agreed) = self.agreed().filter(|agreed| agreed.membership.is_some()) else {
            return;
        };
        if let Some(event) = agreed.inbox.pop_front() {
            self.keep(context, event);
        }
    }

    /// Time has passed for the keeper.
    pub(super) fn keeper_ticks(&mut self, context: &mut Context) {
        let leads = context.register.as_ref().is_some_and(|register| register.leads[self.id]);
        let Some(agreed) = self.agreed() else { return };
        let news = std::mem::replace(&mut agreed.leads, leads) != leads;
        let Some(tick) = agreed.membership.as_ref().map(OwnMembership::tick) else { return };
        self.keep(context, if news { Event::Leads(leads) } else { Event::Tick });
        self.later(context, tick.as_nanos() as u64, NodeEvent::KeeperTick);
    }

    /// The keeper takes a step, and the node does what it says.
    fn keep(&mut self, context: &mut Context, event: Event) {
        let now = self.both_clocks(context.now);
        let Some(agreed) = self.agreed() else { return };
        let Some(mut membership) = agreed.membership.take() else { return };
        membership.drive(now, event, &mut KeeperContext { node: self, context });
        self.kept(context, membership);
    }

    /// The store shows the rules.
    fn learn_rules(&mut self, context: &mut Context, rules: &RuleTables) {
        let now = self.both_clocks(context.now);
        let Some(agreed) = self.agreed() else { return };
        let known = agreed.views.rules().map(|rules| rules.digest);
        if known == Some(rules.digest()) {
            return;
        }
        let Some(mut membership) = agreed.membership.take() else { return };
        membership.learn_rules(now, rules, &mut KeeperContext { node: self, context });
        self.kept(context, membership);
    }

    /// The keeper has taken a step.
    fn kept(&mut self, context: &mut Context, membership: OwnMembership) {
        let Some(agreed) = self.agreed() else { return };
        agreed.membership = Some(membership);
        if agreed.leaving && agreed.standing.left {
            self.later(context, 0, NodeEvent::Left);
        }
    }

    /// The store of the node has a record: one that was on its disk, or a newer one.
    pub(crate) fn shown(&mut self, context: &mut Context, version: u64, state: GroupState) {
        if self.process.is_none() {
            return;
        }
        if self.seen.as_ref().is_some_and(|(seen, _)| *seen > version) {
            return;
        }
        self.seen = Some((version, state.clone()));
        let GroupState { record, holds, rules, .. } = state;
        let (now, id, reclaiming) = (self.both_clocks(context.now), self.id, self.is_reclaiming());
        let Some(agreed) = self.agreed() else { return };
        if agreed.membership.is_some() {
            self.keep(context, Event::Holds(holds));
            self.learn_rules(context, &rules);
            self.keep(context, Event::Record(record));
        } else {
            let keeper = Keeper::new(seat(id), 0, agreed.nonce, record);
            let mut host = KeeperContext { node: self, context };
            let membership =
                OwnMembership::begin(keeper, holds, &rules, reclaiming, now, &mut host);
            let told = self.agreed().map_or(0, |agreed| agreed.inbox.len());
            self.kept(context, membership);
            (0..told).for_each(|_| self.later(context, 0, NodeEvent::Keeper));
            self.later(context, 0, NodeEvent::KeeperTick);
        }
        self.settle(context);
    }

    fn is_reclaiming(&self) -> bool {
        match self.process.as_ref().map(|process| &process.group.views) {
            Some(Views::Agreed(agreed)) => agreed.views.is_reclaiming(),
            _ => false,
        }
    }

    /// The store has answered a command, or does not know what became of it.
    pub(crate) fn answered(&mut self, context: &mut Context, put: PutId, answer: Option<Answer>) {
        if self.agreed().is_some_and(|agreed| agreed.puts.remove(&put)) {
            self.keep(context, Event::Answer(put, answer));
            self.settle(context);
        }
    }

    /// A peer has shown a record.
    pub(super) fn told_record(&mut self, context: &mut Context, record: Record) {
        let Some(agreed) = self.agreed() else { return };
        let known = agreed.views.record().is_none_or(|known| {
            known.cluster != record.cluster || known.revision >= record.revision
        });
        if !known {
            let record = Arc::new(record);
            self.agreed_views(context, AgreedEvent::Record(Arc::clone(&record)));
            self.tell_keeper(context, Event::Record(record));
        }
    }

    /// The lease of the node was renewed, or has ended.
    pub(super) fn lease_changed(&mut self, context: &mut Context) {
        if let Some(agreed) = self.agreed() {
            agreed.lease_ms = agreed.views.record().map_or(0, |record| record.lease_ms);
        }
        self.inputs(context);
    }

    /// What the sessions have to know about the lease of the node, in a group with agreed members.
    pub(super) fn lease_input(&mut self, context: &Context) -> Option<Input> {
        let (now, uptime) = (self.clock.read(context.now), self.uptime(context));
        let agreed = self.agreed()?;
        let left = agreed.standing.lease.unwrap_or_default().saturating_sub(uptime);
        let length = Duration::from_millis(agreed.lease_ms.into());
        Some(Input::Lease(NodeLease { until: now.after(left), length }))
    }

    /// Give up the membership before the process ends, because nothing is held. True if the process
    /// has to wait for that.
    pub(super) fn leave_group(&mut self, context: &mut Context) -> bool {
        let Some(agreed) = self.agreed() else { return false };
        if agreed.membership.is_none() || std::mem::replace(&mut agreed.leaving, true) {
            return false;
        }
        self.agreed_views(context, AgreedEvent::Discarded);
        self.tell_keeper(context, Event::Leave);
        self.later(context, LEAVING, NodeEvent::Left);
        true
    }

    /// For how long the process may grant locks as this member; none if it may not.
    pub(crate) fn lease_of(&self, now: u64, id: MemberId) -> Option<Duration> {
        let Views::Agreed(agreed) = &self.process.as_ref()?.group.views else { return None };
        let keeper = agreed.membership.as_ref()?.keeper();
        let end = keeper.deadline().filter(|_| keeper.id() == Some(id))?;
        let left = end.saturating_sub(self.uptime_at(now));
        (!left.is_zero()).then_some(left)
    }

    /// The view in which the node may grant locks now.
    pub(crate) fn grants_in(&self, now: u64) -> Option<u64> {
        let shards = &self.process.as_ref()?.group.shards;
        let now = self.uptime_at(now);
        shards.iter().filter(|shard| !shard.is_over(now)).find_map(Shard::running)
    }
}
