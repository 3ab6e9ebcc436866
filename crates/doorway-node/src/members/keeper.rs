//! How a node keeps its membership, and how the group gets rid of dead members.
//!
//! [`Keeper::step`] takes everything that matters for the membership of one process: records that
//! the store has agreed on, answers to its own commands, links that come and go, and time. It adds
//! what is to be done to a list of [`Output`]s. It reads no clock and knows no network.
//!
//! # Clocks
//!
//! A node counts its lease from the moment when it *sent* the renewal, and gives up a tenth of it.
//! The others count a full lease from the moment when they *saw* the renewal, and a little more. So
//! the node gives up first, as long as all clocks run at nearly the right rate:
//!
//! - The clock that counts suspended time may run up to 8.5 % wrong, because a time service slews
//!   it. The raw clock of the machine may run up to 0.1 % wrong, and stands still while the machine
//!   is suspended.
//! - The node counts 0.9 of its lease on the first clock: at most 0.9 / 0.915 = 0.984 of the lease
//!   in real time, also if the machine was suspended.
//! - Others count a little more than 1.002 leases and 250 ms on the slower of the two clocks: at
//!   least 1.001 leases in real time.
//!
//! An assertion below compares these numbers. `doorway doctor` compares the clocks of a machine
//! with them.
//!
//! # Holds
//!
//! A promise that is longer than the lease is a [hold](super::Holds). The keeper asks the store for
//! the holds of its own clients, again and again until there is an answer, and drops those that
//! are not wanted any more. It also counts how long it has known of each orphan, by the rules for
//! leases above: the client counts the length from when it *sent* its last message, by the faster
//! of two clocks.

mod holds;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use doorway_protocol::{Fence, Name};

use super::command::{Answer, Command, RecordError};
use super::holds::{Hold, HoldId, Holds};
use super::record::{Member, MemberId, Record, SeatId};

/// How many times a membership is renewed during one lease.
const BEATS: u32 = 10;

/// After this many intervals without a new beat, a seated member counts as absent: see [`absence`].
const ABSENT: u32 = 3;

/// After this many intervals without a link to a member, the node complains about that member.
const SILENCE: u32 = 3;

/// For how many leases a waiting member tries to enter before it gives up, and for how many it then
/// stays away.
const WAITING: u32 = 2;

/// For how many leases a dead member is kept for a successor that does not take its place.
const SUCCESSION: u32 = 6;

/// The part of its lease on which a node counts, in thousandths.
const COUNTED: u32 = 900;

/// A removal waits for longer than the lease by this part of it: one over this number.
const LONGER: u32 = 499;

/// How much longer than that a removal waits.
const MARGIN: Duration = Duration::from_millis(250);

/// How far the clock that counts suspended time may be from the right rate, in thousandths.
pub const BOOT_CLOCK_BOUND: u32 = 85;

/// How far the raw clock of a machine may be from the right rate, in thousandths.
const RAW_CLOCK_BOUND: u32 = 1;

/// A removal waits for at least this many thousandths of `LONGER` leases, if its clock is fast.
const AWAITED: u32 = (LONGER + 1) * 1000 * 1000 / (1000 + RAW_CLOCK_BOUND);

// A node has given up before the others go on, if its clock is as slow as it may be.
const _: () = assert!(LONGER * COUNTED * 1000 / (1000 - BOOT_CLOCK_BOUND) < AWAITED);

// So has a client with a hold, which counts the whole length by the faster one of two clocks.
const _: () = assert!(LONGER * 1000 * 1000 / (1000 - RAW_CLOCK_BOUND) <= AWAITED);

/// The time by the two clocks of a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClockTimes {
    /// By the clock that counts suspended time (`CLOCK_BOOTTIME`).
    pub boot: Duration,
    /// By the clock that nobody adjusts (`CLOCK_MONOTONIC_RAW`).
    pub raw: Duration,
}

impl ClockTimes {
    /// How much of a promise is left of which was known then, by those who have to wait for its
    /// end. The one who made it counts at most its length, with the clock that is faster.
    pub fn left(self, then: Self, length: Duration) -> Duration {
        full_wait(length).saturating_sub(self.since(then))
    }

    /// How much time has surely passed since then: as much as the slower clock says.
    fn since(self, then: Self) -> Duration {
        self.boot.saturating_sub(then.boot).min(self.raw.saturating_sub(then.raw))
    }
}

/// For how long others wait for the end of a promise of this length: a little longer than that.
pub fn full_wait(length: Duration) -> Duration {
    length + length / LONGER + MARGIN
}

/// If the beat of a seated member has not changed for this long, the member counts as absent: a
/// waiting member may enter without a connection with it.
pub fn absence(lease: Duration) -> Duration {
    lease / BEATS * ABSENT
}

/// Something that matters for a membership.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The store has agreed on this record. An older one than before is ignored.
    Record(Arc<Record>),
    /// The store has agreed on these holds.
    Holds(Arc<Holds>),
    /// The store has agreed on rules with this hash. This process can run them, or not.
    Rules {
        /// The hash.
        digest: u64,
        /// Whether the process can run the rules.
        usable: bool,
    },
    /// A client of this process is to hold this lock for longer than the lease. Answered by
    /// [`Output::Held`].
    Hold {
        /// The lock.
        name: Name,
        /// The fence of the grant.
        fence: Fence,
        /// The length in milliseconds; none if it is without end.
        length_ms: Option<u64>,
    },
    /// A client of this process does not hold this lock any more, and does not believe so. This
    /// may be a lock that it has lost with an earlier membership of this process. Answered by
    /// [`Output::Dropped`].
    Drop {
        /// The lock.
        name: Name,
        /// The fence of the grant.
        fence: Fence,
    },
    /// The answer to [`Output::Put`]; none if the store does not know whether the command was
    /// applied.
    Answer(PutId, Option<Answer>),
    /// The connection with the process at a seat was made.
    Up(SeatId),
    /// The connection with the process at a seat has ended.
    Down(SeatId),
    /// Former holders have reclaimed their locks, or have had the time to do so.
    Reclaimed,
    /// Whether this node should propose removals. This is only a hint: several nodes may do so.
    Leads(bool),
    /// Locks cannot be served in the view of this number for long: ask for another one.
    Bump(u64),
    /// A shard has found that the lease has ended, and has taken locks from their holders.
    Lapsed,
    /// The host has performed [`Output::Discard`] or [`Output::GiveUp`], and no client has lost a
    /// lock by that.
    NothingLost,
    /// Nothing is held here any more, and the process ends: give up the membership.
    Leave,
    /// Time has passed.
    Tick,
}

/// The number of a command that was passed to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PutId(pub u64);

/// What the host of a [`Keeper`] has to do.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Output {
    /// Ask the store to agree on this command, and report [`Event::Answer`].
    Put(PutId, Command),
    /// This process is now this member.
    Joined(MemberId),
    /// Locks may be granted until this time, by the clock that counts suspended time.
    Lease(Duration),
    /// The membership is over, for this reason: all clients lose what they hold, and every view is
    /// forgotten. The process joins again under another number. If no client has lost a lock, the
    /// host reports [`Event::NothingLost`], so that the group need not wait for the lease.
    Discard(Loss),
    /// The membership was given up, as [`Event::Leave`] asked.
    Left,
    /// The process cannot become a member, for this reason. It goes on trying.
    Blocked(RecordError),
    /// The process has waited for too long, and gives up: it has no connection with these members.
    /// Clients lose what they have reclaimed, as with [`Output::Discard`]. The process stays away
    /// for a while, so that the group can remove its predecessor, and then joins again.
    GiveUp(Vec<MemberId>),
    /// The group keeps what [`Event::Hold`] asked for, or refuses to.
    Held {
        /// The lock.
        name: Name,
        /// The fence of the grant.
        fence: Fence,
        /// Why the group refuses.
        refused: Option<RecordError>,
    },
    /// The group does not keep a lock any more, as [`Event::Drop`] asked.
    Dropped {
        /// The lock.
        name: Name,
        /// The fence of the grant.
        fence: Fence,
    },
    /// The holds that are orphans now, for reports.
    Orphans(Vec<Orphan>),
}

/// A hold whose member is gone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Orphan {
    /// The lock, the fence and the member of the hold.
    pub id: HoldId,
    /// What the member promised.
    pub hold: Hold,
    /// When this node has learnt that it is an orphan.
    pub since: ClockTimes,
}

/// Why a membership is over.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Loss {
    /// The lease has ended before the membership could be renewed.
    #[error("the lease has ended, because the group could not be reached in time")]
    Lapsed,
    /// The group has refused to renew it.
    #[error("{0}")]
    Refused(RecordError),
    /// The group has agreed on rules for locks that this process cannot run.
    #[error("the group has agreed on rules for locks that this version of doorway cannot run")]
    Rules,
}

/// Where the process stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Stage {
    /// The process has no number yet.
    Joining,
    /// The process has this number. `since` is when it got the number.
    Member { id: MemberId, since: Duration },
    /// The process gives up its membership at this time, when no client can count on it any more:
    /// for good if it `ends`, otherwise it joins again.
    Leaving { id: MemberId, at: Duration, ends: bool },
    /// The process has left.
    Gone,
}

/// When this node saw the last beat of a member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Stamp {
    beat: u64,
    at: ClockTimes,
}

/// A complaint of one member that it cannot reach another: the beats of both when the complaint was
/// first seen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Complaint {
    by: u64,
    about: u64,
}

/// A command that has no answer yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct PendingCommand {
    kind: Kind,
    sent: Duration,
}

/// A grant of a client of this process.
type Grant = (Name, Fence);

/// A hold that a client of this process is to have.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct WantedHold {
    length_ms: Option<u64>,
    /// The group has agreed on it.
    held: bool,
    /// The group has agreed on it before, with another length.
    earlier: bool,
}

/// What a command is for. Commands of one kind are not sent more often than necessary.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Kind {
    /// The number says how many memberships of the process were over.
    Join(u32),
    Renew(MemberId),
    Enter,
    Leave(MemberId),
    Remove(SeatId),
    Forget(MemberId),
    Evict,
    Bump,
    Hold(Grant, Option<u64>),
    Drop(HoldId),
}

/// The membership of one process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Keeper {
    seat: SeatId,
    /// The hash of the newest rules that the process can run.
    rules: u64,
    /// The hash of the newest rules, if the process cannot run them.
    unusable: Option<u64>,
    /// The view that locks cannot be served in for long, until there is a newer one.
    exhausted: Option<u64>,
    /// Drawn at random when the process started.
    nonce: u128,
    /// How many memberships of this process are over.
    generation: u32,
    stage: Stage,
    record: Arc<Record>,
    /// Whether former holders have had the time to reclaim their locks.
    reclaimed: bool,
    leads: bool,
    /// The seats with which there is a connection.
    up: BTreeSet<SeatId>,
    /// Since when there is no connection with a seat that is in the record.
    down: BTreeMap<SeatId, Duration>,
    stamps: BTreeMap<MemberId, Stamp>,
    complaints: BTreeMap<(MemberId, MemberId), Complaint>,
    pending: BTreeMap<PutId, PendingCommand>,
    last_put: u64,
    /// When the last command of each kind was sent, if that was less than an interval ago.
    sent: BTreeMap<Kind, Duration>,
    deadline: Option<Duration>,
    /// The lease, in milliseconds, with which the membership was last renewed.
    renewed_ms: Option<u32>,
    /// The process does not join before this time.
    away_until: Duration,
    holds: Arc<Holds>,
    /// The holds that clients of this process are to have.
    wanted: BTreeMap<Grant, WantedHold>,
    /// The holds that clients of this process had in earlier memberships, and may not have given
    /// up.
    former: BTreeMap<Grant, MemberId>,
    /// The holds that clients of this process have given up, until the group has dropped them. None
    /// if it is a hold of this membership.
    given_up: BTreeMap<Grant, Option<MemberId>>,
    /// When this node has learnt of each orphan.
    orphans: BTreeMap<HoldId, ClockTimes>,
}

impl Keeper {
    /// The keeper of a process that has just started, and that can run rules with this hash.
    /// `nonce` was drawn at random. If the process has a predecessor whose clients may reclaim
    /// their locks, it enters only after [`Event::Reclaimed`].
    pub fn new(seat: SeatId, rules: u64, nonce: u128, record: Arc<Record>) -> Self {
        Self {
            seat,
            rules,
            unusable: None,
            exhausted: None,
            nonce,
            generation: 0,
            stage: Stage::Joining,
            record,
            reclaimed: false,
            leads: false,
            up: BTreeSet::new(),
            down: BTreeMap::new(),
            stamps: BTreeMap::new(),
            complaints: BTreeMap::new(),
            pending: BTreeMap::new(),
            last_put: 0,
            sent: BTreeMap::new(),
            deadline: None,
            renewed_ms: None,
            away_until: Duration::ZERO,
            holds: Arc::default(),
            wanted: BTreeMap::new(),
            former: BTreeMap::new(),
            given_up: BTreeMap::new(),
            orphans: BTreeMap::new(),
        }
    }

    /// Process an event, and add to `out` what is to be done.
    pub fn step(&mut self, now: ClockTimes, event: Event, out: &mut Vec<Output>) {
        // An answer that comes after the end of the lease is too late: locks may have been taken
        // from their holders already.
        if let Stage::Member { id, .. } = self.stage
            && (event == Event::Lapsed || self.deadline.is_some_and(|end| now.boot >= end))
        {
            // The process has to forget everything before it serves again, because the group may
            // remove it. It joins again, and takes its own place.
            self.lose_membership(now, id, Loss::Lapsed, out);
        }
        match event {
            Event::Record(record) => {
                self.learn(now, record);
                self.look_at_orphans(now, out);
            }
            Event::Holds(holds) => {
                self.holds = holds;
                self.look_at_orphans(now, out);
            }
            Event::Rules { digest, usable: true } => (self.rules, self.unusable) = (digest, None),
            Event::Rules { digest, usable: false } => self.unusable = Some(digest),
            Event::Hold { name, fence, length_ms } => self.hold(name, fence, length_ms, out),
            Event::Drop { name, fence } => {
                let grant = (name, fence);
                if self.wanted.remove(&grant).is_some_and(|wanted| !wanted.held) {
                    let ((name, fence), refused) = (grant.clone(), Some(RecordError::GivenUp));
                    out.push(Output::Held { name, fence, refused });
                }
                // A second request must not forget the membership that the first one was about.
                let former = self.former.remove(&grant);
                let given_up = self.given_up.entry(grant).or_default();
                *given_up = given_up.or(former);
            }
            Event::Answer(put, answer) => self.answered(put, answer, now, out),
            Event::Up(seat) => {
                self.up.insert(seat);
                self.down.remove(&seat);
            }
            Event::Down(seat) => {
                self.up.remove(&seat);
                if self.record.seat(seat).is_some() {
                    self.down.entry(seat).or_insert(now.boot);
                }
            }
            Event::Reclaimed => self.reclaimed = true,
            Event::Leads(leads) => self.leads = leads,
            Event::Leave => self.leave(now, out),
            Event::Bump(number) => self.exhausted = Some(number),
            // Nobody counts on the lease of a member by which no client holds a lock. Clients of
            // its predecessor have reclaimed their locks here, or count on the predecessor's lease.
            Event::NothingLost => {
                if let Stage::Leaving { at, .. } = &mut self.stage {
                    *at = now.boot.min(*at);
                }
            }
            Event::Lapsed | Event::Tick => {}
        }
        self.advance(now, out);
    }

    /// The number of this process, if it is a member.
    pub fn id(&self) -> Option<MemberId> {
        match self.stage {
            Stage::Member { id, .. } | Stage::Leaving { id, .. } => Some(id),
            Stage::Joining | Stage::Gone => None,
        }
    }

    /// When this node saw the newest beat of each member, by the clock that counts suspended time.
    pub fn beats(&self) -> impl Iterator<Item = (MemberId, Duration)> {
        self.stamps.iter().map(|(id, stamp)| (*id, stamp.at.boot))
    }

    /// Until when locks may be granted, by the clock that counts suspended time.
    pub fn deadline(&self) -> Option<Duration> {
        self.deadline
    }

    /// The newest record that this node has seen.
    pub fn record(&self) -> &Arc<Record> {
        &self.record
    }

    fn lease(&self) -> Duration {
        Duration::from_millis(self.record.lease_ms.into())
    }

    /// The tenth of a lease, in which every member renews its membership once.
    fn interval(&self) -> Duration {
        self.lease() / BEATS
    }

    /// The lease by which this process is in a hurry. If the group has agreed on a longer lease,
    /// that counts only when this process knows that its membership was renewed with it: until then
    /// the shorter one runs out.
    pub(super) fn pace(&self) -> Duration {
        let agreed = self.record.lease_ms;
        let given = self.renewed_ms.map_or(agreed, |given| given.min(agreed));
        Duration::from_millis(given.into())
    }

    /// Take a newer record, and note when the beats in it have changed.
    fn learn(&mut self, now: ClockTimes, record: Arc<Record>) {
        if record.revision < self.record.revision {
            return;
        }
        self.record = record;
        let Self { record, stamps, complaints, down, up, .. } = self;
        stamps.retain(|id, _| record.member(*id).is_ok());
        down.retain(|seat, _| record.seat(*seat).is_some());
        for seat in record.seats.iter().filter(|seat| !up.contains(&seat.id)) {
            down.entry(seat.id).or_insert(now.boot);
        }
        for member in &record.members {
            let stamp = Stamp { beat: member.beat, at: now };
            let known = stamps.entry(member.id).or_insert_with(|| stamp.clone());
            if known.beat != member.beat {
                *known = stamp;
            }
        }
        let seated = |id: &MemberId| record.member(*id).ok().filter(|it| it.since.is_some());
        // A complaint that was withdrawn begins anew when it is made again.
        complaints.retain(|(by, about), _| {
            seated(by).is_some_and(|by| by.cut.contains(about)) && seated(about).is_some()
        });
        for by in record.seated() {
            for about in by.cut.iter().filter_map(seated) {
                let complaint = Complaint { by: by.beat, about: about.beat };
                complaints.entry((by.id, about.id)).or_insert(complaint);
            }
        }
    }

    fn answered(
        &mut self,
        put: PutId,
        answer: Option<Answer>,
        now: ClockTimes,
        out: &mut Vec<Output>,
    ) {
        let Some(PendingCommand { kind, sent }) = self.pending.remove(&put) else { return };
        match (kind, answer) {
            (Kind::Join(generation), Some(Answer::Joined(id)))
                if self.stage == Stage::Joining && generation == self.generation =>
            {
                self.stage = Stage::Member { id, since: now.boot };
                out.push(Output::Joined(id));
            }
            (Kind::Join(_), Some(Answer::Refused(why))) => out.push(Output::Blocked(why)),
            (Kind::Renew(id), Some(Answer::Renewed { lease_ms, .. })) if self.is_member(id) => {
                self.renewed_ms = Some(lease_ms);
                // Counted from when it was sent: the answer may have been on its way for long.
                let lease = Duration::from_millis(lease_ms.into());
                let deadline = sent + lease * COUNTED / 1000;
                if self.deadline.is_none_or(|before| deadline > before) {
                    self.deadline = Some(deadline);
                    out.push(Output::Lease(deadline));
                }
            }
            (Kind::Renew(id), Some(Answer::Refused(why))) if self.is_member(id) => {
                self.lose_membership(now, id, Loss::Refused(why), out);
            }
            (Kind::Leave(left), Some(Answer::Done(_) | Answer::Refused(_))) => {
                if let Stage::Leaving { id, ends, .. } = self.stage
                    && id == left
                {
                    self.stage = if ends { Stage::Gone } else { Stage::Joining };
                    if ends {
                        out.push(Output::Left);
                    }
                }
            }
            (Kind::Hold(grant, length_ms), Some(answer)) => {
                let seated = self.is_seated();
                let asked =
                    |wanted: &&mut WantedHold| wanted.length_ms == length_ms && !wanted.held;
                let Some(wanted) = self.wanted.get_mut(&grant).filter(asked) else { return };
                wanted.held = true;
                let refused = match answer {
                    Answer::Refused(why) => Some(why),
                    _ => None,
                };
                // A member without a seat grants nothing: an earlier process of this machine made
                // the promise. It is kept: this member asks again, and enters only when the group
                // has room for it.
                if !seated && !wanted.earlier && refused == Some(RecordError::TooManyHolds) {
                    wanted.held = false;
                    return out.push(Output::Blocked(RecordError::TooManyHolds));
                }
                // What the client was promised before stays promised.
                if refused.is_some() && !wanted.earlier {
                    self.wanted.remove(&grant);
                }
                let (name, fence) = grant;
                out.push(Output::Held { name, fence, refused });
            }
            // If it is refused, the group may still keep the hold: for example, the leader has just
            // been elected and does not know yet whose hold it is. The keeper asks again.
            (Kind::Drop(id), Some(Answer::Done(_)))
                if self.own_holds(&id.name, id.fence).all(|it| *it == id) =>
            {
                let HoldId { name, fence, .. } = id;
                if self.given_up.remove(&(name.clone(), fence)).is_some() {
                    out.push(Output::Dropped { name, fence });
                }
            }
            // A refused proposal is made again if its reason still holds. A command without an
            // answer may be applied later, and that is safe.
            _ => {}
        }
    }

    /// This process is not a member any more.
    fn lose_membership(&mut self, now: ClockTimes, id: MemberId, why: Loss, out: &mut Vec<Output>) {
        let evicted = matches!(why, Loss::Refused(RecordError::Evicted(_)));
        let at = self.deadline.take().unwrap_or(now.boot);
        // Clients that cannot be told that the membership is over count on it until its lease
        // ends. If that is still to come, the member leaves only then: because it was evicted or
        // cannot run the rules, or because a shard had not heard of a renewal in time. It leaves
        // earlier if the host reports that there are no such clients.
        let wait = evicted || at > now.boot;
        self.stage = if wait { Stage::Leaving { id, at, ends: false } } else { Stage::Joining };
        self.generation += 1;
        self.end_holds(id, out);
        out.push(Output::Discard(why));
    }

    /// Whether the process is in a view. A record that is older than the membership does not show
    /// it yet.
    fn is_seated(&self) -> bool {
        let member = self.id().map(|id| self.record.member(id));
        member.is_some_and(|member| member.is_ok_and(|it| it.since.is_some()))
    }

    /// Whether the process is this member, and does not leave.
    fn is_member(&self, id: MemberId) -> bool {
        matches!(self.stage, Stage::Member { id: own, .. } if own == id)
    }

    fn leave(&mut self, now: ClockTimes, out: &mut Vec<Output>) {
        match self.stage {
            Stage::Member { id, .. } => {
                self.deadline = None;
                self.stage = Stage::Leaving { id, at: now.boot, ends: true };
                self.end_holds(id, out);
            }
            Stage::Leaving { id, at, .. } => self.stage = Stage::Leaving { id, at, ends: true },
            Stage::Joining => {
                self.stage = Stage::Gone;
                out.push(Output::Left);
            }
            Stage::Gone => {}
        }
    }

    /// Do what is due.
    fn advance(&mut self, now: ClockTimes, out: &mut Vec<Output>) {
        // A member that cannot run the next view would hold up the others.
        let unusable = self.unusable == Some(self.record.rules);
        if let (Stage::Member { id, .. }, true) = (&self.stage, unusable) {
            self.lose_membership(now, *id, Loss::Rules, out);
        }
        match self.stage {
            Stage::Joining if now.boot < self.away_until => {}
            Stage::Joining if unusable => out.push(Output::Blocked(RecordError::OtherRules)),
            // The store shows the rules soon.
            Stage::Joining if self.rules != self.record.rules => {}
            Stage::Joining => {
                let (seat, nonce, rules) = (self.seat, self.nonce(), self.rules);
                let kind = Kind::Join(self.generation);
                self.put(now, kind, Command::Join { seat, nonce, rules }, out);
            }
            Stage::Leaving { id, at, ends } => {
                // What clients have released must not be closed because nobody is left to drop it.
                if now.boot >= at && (!ends || self.given_up.is_empty()) {
                    self.put(now, Kind::Leave(id), Command::Leave { id }, out);
                }
            }
            Stage::Member { id, since } => {
                let cut = self.cut(now);
                self.put(now, Kind::Renew(id), Command::Renew { id, cut }, out);
                // The command is sent again until there is a newer view: nobody else may ask for
                // it.
                self.exhausted.take_if(|number| *number != self.record.number);
                if let Some(number) = self.exhausted {
                    self.put(now, Kind::Bump, Command::Bump { number }, out);
                }
                self.keep_holds(now, id, out);
                self.enter(now, id, since, out);
            }
            Stage::Gone => {}
        }
        self.drop_given_up(now, out);
        if self.leads {
            self.remove(now, out);
            self.evict(now, out);
            self.drop_orphans(now, out);
        }
    }

    /// Pass a command to the store, unless one of its kind was passed on a moment ago.
    fn put(&mut self, now: ClockTimes, kind: Kind, command: Command, out: &mut Vec<Output>) {
        if let Some(sent) = self.sent.get(&kind) {
            // An answer that does not come for half an interval will not come in time.
            let (ago, interval) = (now.boot.saturating_sub(*sent), self.pace() / BEATS);
            let pending = || self.pending.values().any(|pending| pending.kind == kind);
            if ago < interval / 2 || ago < interval && !pending() {
                return;
            }
        }
        self.last_put += 1;
        let put = PutId(self.last_put);
        let lease = self.lease();
        self.pending.retain(|_, pending| {
            // An answer counts also if it comes late: a store that is always slow would otherwise
            // never let the process join. After a lease, a renewal would be over anyway.
            let late = now.boot.saturating_sub(pending.sent) >= lease;
            pending.kind != kind || !late
        });
        let interval = self.pace() / BEATS;
        self.sent.retain(|_, sent| now.boot.saturating_sub(*sent) < interval);
        self.sent.insert(kind.clone(), now.boot);
        self.pending.insert(put, PendingCommand { kind, sent: now.boot });
        out.push(Output::Put(put, command));
    }

    /// The seated members with which there was no link for too long.
    fn cut(&self, now: ClockTimes) -> Vec<MemberId> {
        let silence = self.interval() * SILENCE;
        let others = self.record.seated().filter(|member| Some(member.id) != self.id());
        let silent = |member: &&Member| {
            self.down
                .get(&member.seat)
                .is_some_and(|since| now.boot.saturating_sub(*since) > silence)
        };
        others.filter(silent).map(|member| member.id).collect()
    }

    /// Take the seat, if this member waits, its clients have reclaimed their locks, the group keeps
    /// what they are promised, and it has a link with every member of the view that is alive.
    fn enter(&mut self, now: ClockTimes, id: MemberId, since: Duration, out: &mut Vec<Output>) {
        let waits = self.record.member(id).is_ok_and(|member| member.since.is_none());
        // Holds of its predecessor that are not taken over would become orphans.
        let keeps = self.wanted.values().all(|wanted| wanted.held);
        // Without a lease of its own it could not serve in the view.
        if !waits || !self.reclaimed || !keeps || self.deadline.is_none() {
            return;
        }
        let absent = absence(self.lease());
        let others = self.record.seated().filter(|member| member.seat != self.seat);
        let alive = |member: &&Member| {
            let stamp = self.stamps.get(&member.id);
            stamp.is_some_and(|stamp| now.since(stamp.at) <= absent)
        };
        let unlinked: Vec<MemberId> = others
            .filter(alive)
            .filter(|member| !self.up.contains(&member.seat))
            .map(|member| member.id)
            .collect();
        if unlinked.is_empty() {
            let (number, replaces) = (self.record.number, self.record.seen(self.seat, Some(id)));
            let inherits = self.generation == 0;
            let command = Command::Enter { id, number, replaces, inherits };
            self.put(now, Kind::Enter, command, out);
        } else if now.boot.saturating_sub(since) > self.lease() * WAITING {
            self.end_holds(id, out);
            out.push(Output::GiveUp(unlinked));
            let at = self.deadline.take().unwrap_or(now.boot);
            self.stage = Stage::Leaving { id, at, ends: false };
            self.generation += 1;
            self.away_until = now.boot + self.lease() * WAITING;
        }
    }

    /// Propose to remove members that were silent for longer than their lease: all members of a
    /// seat, or one that waits.
    fn remove(&mut self, now: ClockTimes, out: &mut Vec<Output>) {
        let record = Arc::clone(&self.record);
        let silent_for = |member: &Member, leases: u32| {
            let lease = Duration::from_millis(member.lease_ms.into());
            let over = |stamp: &Stamp| now.left(stamp.at, lease * leases).is_zero();
            let stamp = self.stamps.get(&member.id);
            stamp.is_some_and(|stamp| stamp.beat == member.beat && over(stamp))
        };
        let dead = |member: &Member| silent_for(member, 1);
        let long_dead = |member: &Member| silent_for(member, SUCCESSION);
        let mut seats: Vec<SeatId> = record.members.iter().map(|member| member.seat).collect();
        seats.sort_unstable();
        seats.dedup();
        let waits = |member: &&Member| member.since.is_none();
        let silent: Vec<Member> =
            record.members.iter().filter(waits).filter(|it| dead(it)).cloned().collect();
        // A process that is started again and again never takes the place of its predecessor, and
        // protects it from being removed. So its successors are evicted after some time.
        let is_late = |member: &&Member| {
            let mut seated = record.members_of(member.seat).filter(|it| it.since.is_some());
            waits(member) && !member.evicted && seated.any(long_dead)
        };
        let late: Vec<MemberId> =
            record.members.iter().filter(is_late).map(|member| member.id).collect();
        seats.retain(|seat| record.members_of(*seat).all(dead));
        for Member { id, beat, .. } in silent {
            self.put(now, Kind::Forget(id), Command::Forget { id, beat }, out);
        }
        for id in late {
            let number = record.number;
            self.put(now, Kind::Evict, Command::Evict { id, number }, out);
        }
        for seat in seats {
            let (number, all) = (record.number, record.seen(seat, None));
            self.put(now, Kind::Remove(seat), Command::Remove { number, seat, all }, out);
        }
    }

    /// Propose to evict one of two members that cannot reach each other, although both reach the
    /// store.
    fn evict(&mut self, now: ClockTimes, out: &mut Vec<Output>) {
        let record = Arc::clone(&self.record);
        let stands = |(pair, complaint): (&(MemberId, MemberId), &Complaint)| {
            let (by, about) = (record.member(pair.0).ok()?, record.member(pair.1).ok()?);
            // Both have renewed twice since, so neither of them is dead.
            let both = by.beat >= complaint.by + 2 && about.beat >= complaint.about + 2;
            (both && !by.evicted && !about.evicted).then_some(*pair)
        };
        let pairs: Vec<(MemberId, MemberId)> = self.complaints.iter().filter_map(stands).collect();
        let count =
            |id: MemberId| pairs.iter().filter(|(by, about)| *by == id || *about == id).count();
        let worst = pairs.iter().flat_map(|(by, about)| [*by, *about]);
        if let Some(id) = worst.max_by_key(|id| (count(*id), *id)) {
            let number = record.number;
            self.put(now, Kind::Evict, Command::Evict { id, number }, out);
        }
    }

    /// The number that makes a repeated [`Command::Join`] of one membership harmless. Each
    /// membership of a process has another nonce.
    fn nonce(&self) -> u128 {
        self.nonce.wrapping_add(self.generation.into())
    }
}
