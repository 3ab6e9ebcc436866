//! How a node goes from one view to the next in a group that agrees on its members, as one state
//! machine.
//!
//! The members of a view are those that are seated in the record of the group
//! ([`Record`]). The record comes from a store, or from a peer that has seen it earlier. So there
//! are no epochs here: the record gives each view its number and its members.
//!
//! As with [`ViewChange`](super::ViewChange), everything that happens is an event, and what follows
//! from it is a list of outputs, which a host performs in order.
//!
//! # Rules
//!
//! 1. A node stops for the newest view of which it is a member, and only once it is connected with
//!    all of its members. So a member that dies as it enters does not disturb the running view.
//! 2. When it has stopped, it tells all members of the new view what it holds (it flushes). It
//!    never runs or flushes for an older view again.
//! 3. The view starts when all members have flushed for it. A member that has just entered is
//!    awaited like all others: it may have taken over what its predecessor held.
//! 4. It starts at a node only when the node knows all holds that precede its record
//!    ([`Holds`]). The node keeps the locks of orphans closed to its own clients from before the
//!    start of the view.
//! 5. It stops for a view only when it knows the rules of that view ([`AgreedRules`]). So all
//!    members run a view with the rules of its record, and a member that does not know them yet
//!    goes on in the view before.
//! 6. When the membership of the node is over, the node forgets its views. Its clients lose what
//!    they hold, and it takes part in a view again under another number.
//!
//! # Claims
//!
//! A process that was restarted waits, and clients of its predecessor reclaim their locks. That is
//! safe only while the predecessor is in the record: a predecessor that was removed has no holders
//! any more, and others may hold its locks. Once the process itself is in the record, its
//! predecessor cannot be removed without it. So the first record that names both decides which
//! claims are good: those of the views since the line of members of this seat was last broken.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use doorway_core::NodeId;
use doorway_protocol::{Fence, Name};

use super::change::{ClaimError, EndReason};
use super::epochs::ViewError;
use super::flush::FlushRound;
use crate::members::{AgreedRules, Holds, MemberId, Record, SeatId};
use crate::messages::{Flush, HeldLock, Message};

/// Something that has happened to a node and may matter for its views.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgreedEvent {
    /// The store or a peer has shown this record. An older one than before is ignored.
    Record(Arc<Record>),
    /// The store has shown these holds.
    Holds(Arc<Holds>),
    /// The store has shown these rules, and this node can run them.
    Rules(Arc<AgreedRules>),
    /// This process has become this member. It waits until it enters.
    Joined(MemberId),
    /// The membership of this process is over.
    Discarded,
    /// A link to this seat is up.
    Up(SeatId),
    /// The link to this seat is down.
    Down(SeatId),
    /// The process at this seat has sent a part of its snapshot.
    Flush(SeatId, Flush),
    /// All shards have stopped for the view of this number, and this is what they held.
    ShardsStopped(u64, Vec<HeldLock>),
    /// A shard cannot go on in this view, or not for long.
    Overdue,
    /// Former holders have reclaimed their locks, or have had the time to do so.
    Serve,
    /// The node is to end.
    End(EndReason),
}

/// What the host of [`AgreedViews`] has to do.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AgreedOutput {
    /// Send a message to the process at a seat.
    Tell(SeatId, Message),
    /// Send a message to the processes at all seats.
    TellAll(Message),
    /// Take the locks from clients that reclaimed them under a fence of another view than these.
    Disown(Range<u64>),
    /// Keep this lock closed to the clients of this node.
    ShutDoor(Name),
    /// Let clients enter this lock again.
    OpenDoor(Name),
    /// Use these rules before the first view. Later, each view brings its own.
    UseRules(Arc<AgreedRules>),
    /// Stop all shards for this view, which has these rules, and report
    /// [`AgreedEvent::ShardsStopped`].
    StopShards(AgreedView, Arc<AgreedRules>),
    /// Start the view of this number, for which the shards have stopped. The locks that each member
    /// holds are given in the order of the members.
    StartShards(u64, Vec<Vec<HeldLock>>),
    /// Take the locks from all clients. Clients that wait stay in their queues.
    Lapse,
    /// Ask the store for a view after the one of this number, with the same members.
    Bump(u64),
    /// End all shards: their clients lose what they hold. This is the last output.
    End(EndReason),
    /// Log this.
    Log(AgreedNotice),
}

/// Something to log about the views of a node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AgreedNotice {
    /// The next view has to wait for a link to these seats. The running view goes on meanwhile.
    Waits(u64, Vec<SeatId>),
    /// The process at this seat has sent something that no correct member sends.
    Refused(SeatId, ViewError),
    /// The membership of the predecessor has ended, so nothing of it can be reclaimed.
    Broken,
}

/// The members of a view, as one of them sees them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AgreedView {
    /// The number of the view.
    pub number: u64,
    /// Seat and name of each member. The number of a member in this view is its index.
    pub members: Vec<(SeatId, String)>,
    /// The number of this node.
    pub me: NodeId,
    /// The hash of its rules.
    pub rules: u64,
}

impl AgreedView {
    /// The names of its members, in order.
    pub fn names(&self) -> Vec<String> {
        self.members.iter().map(|(_, name)| name.clone()).collect()
    }
}

/// A view, and the snapshots for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Round {
    view: AgreedView,
    snapshots: FlushRound,
    /// How many holds precede the record of the view.
    holds: u64,
}

/// The state of a node between events, as far as its views are concerned.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AgreedViews {
    seat: SeatId,
    /// The number of this process, once it has joined.
    me: Option<MemberId>,
    /// The newest record that is known; none until the group was founded.
    record: Option<Arc<Record>>,
    /// The newest holds that the store has shown.
    holds: Arc<Holds>,
    /// The newest rules that the store has shown, if this node can run them.
    rules: Option<Arc<AgreedRules>>,
    /// The locks that are closed to the clients of this node.
    shut: BTreeSet<Name>,
    /// The seats to which a link is up.
    up: BTreeSet<SeatId>,
    /// The view that runs, or for which the shards have stopped.
    current: Option<Round>,
    /// The newest view, if this process is a member of it and has not stopped for it yet.
    next: Option<Round>,
    /// The newest view for which the shards have stopped. No older view is ever run.
    target: u64,
    /// The shards are being stopped for the next view.
    stopping: bool,
    /// Does the node wait for former holders?
    reclaiming: bool,
    /// The views whose fences can be reclaimed, once that is known. Until then all claims count.
    claimable: Option<Range<u64>>,
    /// The seats for which the next view waits, as they were last logged.
    awaited: Vec<SeatId>,
    ended: bool,
}

impl AgreedViews {
    /// Make the machine of a process that has just started. If it is `reclaiming`, it waits for
    /// former holders until [`AgreedEvent::Serve`].
    pub fn new(seat: SeatId, reclaiming: bool) -> Self {
        Self {
            seat,
            me: None,
            record: None,
            holds: Arc::default(),
            rules: None,
            shut: BTreeSet::new(),
            up: BTreeSet::new(),
            current: None,
            next: None,
            target: 0,
            stopping: false,
            reclaiming,
            claimable: (!reclaiming).then_some(0..0),
            awaited: Vec::new(),
            ended: false,
        }
    }

    /// Take in an event. What follows from it is added to `out`. After [`AgreedOutput::End`]
    /// nothing ever follows.
    pub fn step(&mut self, event: AgreedEvent, out: &mut VecDeque<AgreedOutput>) {
        if self.ended {
            return;
        }
        match event {
            AgreedEvent::Record(record) => self.learn(record, out),
            AgreedEvent::Holds(holds) => {
                self.holds = holds;
                self.look_at_doors(out);
            }
            AgreedEvent::Rules(rules) => {
                if self.target == 0 {
                    out.push_back(AgreedOutput::UseRules(Arc::clone(&rules)));
                }
                self.rules = Some(rules);
            }
            AgreedEvent::Joined(member) => {
                self.me = Some(member);
                self.look(out);
            }
            AgreedEvent::Discarded => self.discard(out),
            AgreedEvent::Up(seat) => self.up(seat, out),
            AgreedEvent::Down(seat) => {
                self.up.remove(&seat);
            }
            AgreedEvent::Flush(seat, flush) => {
                if let Err(error) = self.hear(seat, flush) {
                    out.push_back(AgreedOutput::Log(AgreedNotice::Refused(seat, error)));
                }
            }
            AgreedEvent::ShardsStopped(number, held) => self.stopped(number, held, out),
            AgreedEvent::Overdue => {
                // If a newer view is known, nothing is left to do.
                if self.running().is_some() && self.running() == self.number() {
                    out.extend(self.number().map(AgreedOutput::Bump));
                }
            }
            AgreedEvent::Serve => self.reclaiming = false,
            AgreedEvent::End(reason) => {
                self.ended = true;
                out.push_back(AgreedOutput::End(reason));
            }
        }
        self.advance(out);
    }

    /// May a client take back a lock that it held under this fence? As long as the record does not
    /// name this process, all claims are accepted; those that turn out wrong are disowned then.
    pub fn claim(&self, fence: Fence) -> Result<(), ClaimError> {
        if !self.reclaiming || self.ended {
            return Err(ClaimError::TooLate);
        }
        match &self.claimable {
            Some(views) if fence.view() < views.start || views.is_empty() => Err(ClaimError::Ended),
            Some(views) if fence.view() >= views.end => Err(ClaimError::Future { next: views.end }),
            _ => Ok(()),
        }
    }

    /// Is it known which claims are good? Before that, a client that has reclaimed a lock must not
    /// be told that it holds it.
    pub fn knows_claims(&self) -> bool {
        self.claimable.is_some()
    }

    /// Does the node wait for former holders?
    pub fn is_reclaiming(&self) -> bool {
        self.reclaiming
    }

    /// The newest record that is known.
    pub fn record(&self) -> Option<&Arc<Record>> {
        self.record.as_ref()
    }

    /// The newest holds that the store has shown.
    pub fn holds(&self) -> &Arc<Holds> {
        &self.holds
    }

    /// The newest rules that the store has shown, if this node can run them.
    pub fn rules(&self) -> Option<&Arc<AgreedRules>> {
        self.rules.as_ref()
    }

    /// The number of the view that runs here, if one does.
    pub fn running(&self) -> Option<u64> {
        let current = self.current.as_ref()?;
        current.snapshots.is_running().then_some(current.view.number)
    }

    /// The names of the members for which this node waits before the next view can start.
    pub fn missing(&self) -> Vec<String> {
        if let Some(next) = &self.next {
            let away = next.view.members.iter().filter(|(seat, _)| self.is_away(*seat));
            return away.map(|(_, name)| name.clone()).collect();
        }
        let Some(Round { view, snapshots, .. }) = &self.current else { return Vec::new() };
        if snapshots.is_running() {
            return Vec::new();
        }
        snapshots.missing().iter().map(|node| view.members[node.index()].1.clone()).collect()
    }

    fn number(&self) -> Option<u64> {
        self.record.as_ref().map(|record| record.number)
    }

    fn is_away(&self, seat: SeatId) -> bool {
        seat != self.seat && !self.up.contains(&seat)
    }

    /// Take a newer record. If it has a new view, all peers are shown it, before anything else is
    /// said about that view.
    fn learn(&mut self, record: Arc<Record>, out: &mut VecDeque<AgreedOutput>) {
        if let Some(known) = &self.record
            && (known.cluster != record.cluster || known.revision >= record.revision)
        {
            return;
        }
        let news = self.number() != Some(record.number);
        if news {
            out.push_back(AgreedOutput::TellAll(Message::Record(Record::clone(&record))));
        }
        self.record = Some(record);
        self.look_at_doors(out);
        self.look(out);
    }

    /// Close the locks of orphans, and open those whose orphans were dropped. Record and holds come
    /// separately, so one of them may be older. To close a lock too early harms nobody, and a lock
    /// is opened only because the group has dropped its orphans, or never had one.
    fn look_at_doors(&mut self, out: &mut VecDeque<AgreedOutput>) {
        let Some(record) = &self.record else { return };
        let orphans = self.holds.orphans(record).map(|(id, _)| id.name.clone());
        let before = std::mem::replace(&mut self.shut, orphans.collect());
        let shut = self.shut.difference(&before).cloned();
        out.extend(shut.map(AgreedOutput::ShutDoor));
        out.extend(before.difference(&self.shut).cloned().map(AgreedOutput::OpenDoor));
    }

    /// Find out what the record says about this process.
    fn look(&mut self, out: &mut VecDeque<AgreedOutput>) {
        let (Some(me), Some(record)) = (self.me, self.record.clone()) else { return };
        let Ok(member) = record.member(me) else { return };
        // Also if the node serves already: claims may have been accepted before it was a member.
        if self.claimable.is_none() {
            let predecessor = record.members_of(self.seat).find(|other| other.since.is_some());
            let views = predecessor.map_or(0..0, |it| it.unbroken..record.number + 1);
            if views.is_empty() {
                out.push_back(AgreedOutput::Log(AgreedNotice::Broken));
            }
            out.push_back(AgreedOutput::Disown(views.clone()));
            self.claimable = Some(views);
        }
        let known = self.next.as_ref().map_or(self.target, |next| next.view.number);
        if record.number > known {
            self.next = member.since.map(|_| Round::new(&record, me));
        }
    }

    fn discard(&mut self, out: &mut VecDeque<AgreedOutput>) {
        (self.me, self.current, self.next, self.stopping) = (None, None, None, false);
        // Whatever was reclaimed is lost too, and nothing more can be reclaimed.
        self.claimable = Some(0..0);
        out.push_back(AgreedOutput::Lapse);
    }

    /// What was sent before has not reached a process that is met for the first time.
    fn up(&mut self, seat: SeatId, out: &mut VecDeque<AgreedOutput>) {
        self.up.insert(seat);
        if let Some(record) = &self.record {
            out.push_back(AgreedOutput::Tell(seat, Message::Record(Record::clone(record))));
        }
        if let Some(Round { view, snapshots, .. }) = &self.current
            && view.place(seat).is_some()
        {
            let parts = snapshots.parts(&[view.number]).into_iter();
            out.extend(parts.map(|part| AgreedOutput::Tell(seat, Message::Flush(part))));
        }
    }

    /// Take a part of another member's snapshot. The sender has shown us the record of its view
    /// before. A snapshot for a view that is over, or of which this process is not a member, is
    /// ignored.
    fn hear(&mut self, seat: SeatId, flush: Flush) -> Result<(), ViewError> {
        let rounds = [&mut self.current, &mut self.next].into_iter().flatten();
        let named = |round: &&mut Round| flush.epochs == [round.view.number];
        let Some(round) = rounds.into_iter().find(named) else { return Ok(()) };
        let from = round.view.place(seat).filter(|from| *from != round.view.me);
        let from = from.ok_or(ViewError::NoMember(round.view.number))?;
        if round.snapshots.is_running() {
            return Ok(()); // Sent again by a member that could not know that it had arrived.
        }
        round.snapshots.hear(from, flush)
    }

    fn stopped(&mut self, number: u64, held: Vec<HeldLock>, out: &mut VecDeque<AgreedOutput>) {
        if !std::mem::take(&mut self.stopping) {
            return; // The membership has ended since.
        }
        let Some(current) = &mut self.current else { return };
        debug_assert_eq!(current.view.number, number, "the shards stop for the view as asked");
        current.snapshots.stopped(held);
        let parts = current.snapshots.parts(&[number]);
        for (seat, _) in current.view.others() {
            let parts = parts.iter().cloned();
            out.extend(parts.map(|part| AgreedOutput::Tell(*seat, Message::Flush(part))));
        }
    }

    /// Take the next step towards the newest view, if it can be taken now.
    fn advance(&mut self, out: &mut VecDeque<AgreedOutput>) {
        if self.ended || self.stopping {
            return;
        }
        if let Some(next) = &self.next {
            let seats = next.view.members.iter().map(|(seat, _)| *seat);
            let away: Vec<SeatId> = seats.filter(|seat| self.is_away(*seat)).collect();
            if away != self.awaited && !away.is_empty() {
                let waits = AgreedNotice::Waits(next.view.number, away.clone());
                out.push_back(AgreedOutput::Log(waits));
            }
            self.awaited = away;
        }
        let known = |next: &mut Round| {
            self.rules.as_ref().is_some_and(|rules| rules.digest == next.view.rules)
        };
        if self.awaited.is_empty()
            && let Some(next) = self.next.take_if(known)
            && let Some(rules) = &self.rules
        {
            self.target = next.view.number;
            self.stopping = true;
            out.push_back(AgreedOutput::StopShards(next.view.clone(), Arc::clone(rules)));
            self.current = Some(next);
            return;
        }
        if let Some(current) = &mut self.current
            && self.holds.added() >= current.holds
            && let Some(held) = current.snapshots.start()
        {
            out.push_back(AgreedOutput::StartShards(current.view.number, held));
        }
    }
}

impl AgreedView {
    /// The number of the member of this seat in the view.
    pub fn place(&self, seat: SeatId) -> Option<NodeId> {
        self.members.iter().position(|(other, _)| *other == seat).map(NodeId::at)
    }

    fn others(&self) -> impl Iterator<Item = &(SeatId, String)> {
        let me = self.me.index();
        self.members.iter().enumerate().filter(move |(at, _)| *at != me).map(|(_, it)| it)
    }
}

impl Round {
    /// The newest view of a record, of which `me` is a member.
    fn new(record: &Record, me: MemberId) -> Self {
        let name = |seat| record.seat(seat).map_or_else(String::new, |seat| seat.name.clone());
        let members: Vec<_> =
            record.seated().map(|member| (member.seat, name(member.seat))).collect();
        let place = record.seated().position(|member| member.id == me);
        let me = NodeId::at(place.expect("a round is made for a member of the view"));
        let snapshots = FlushRound::new(me, members.len());
        let view = AgreedView { number: record.number, members, me, rules: record.rules };
        Self { view, snapshots, holds: record.holds }
    }
}
