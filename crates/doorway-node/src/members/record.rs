//! The record on which a group agrees: who belongs to it, and who is in its newest view.
//!
//! Members do not agree on locks. They agree on this record alone, through a store that applies
//! commands one after the other: a replicated log, or a key that is replaced by compare-and-set.
//! [`Record::apply`] is what the store runs. It reads no clock, so all replicas compute the same
//! record.
//!
//! - A *seat* is a machine that belongs to the group. Only an operator adds and removes seats.
//! - A *member* is one process of a seat, from its start to its end. It has a number of its own,
//!   which no other process ever gets. Members come and go by themselves.
//! - The *view* is all members that are seated, in the order of their numbers. Locks are granted
//!   in a view. Its number grows whenever a seated member comes or goes.
//!
//! # Leases
//!
//! A member renews its membership all the time: each [`Command::Renew`] adds one to its *beat*. To
//! remove a silent member, a command names the beat that its sender saw last. If the member has
//! renewed in the meantime, the beat has changed and the removal is refused. So it does not matter
//! how late a command arrives, or how many nodes propose the same one.
//!
//! # Rules
//!
//! Builds with debug assertions check these rules at every step (`invariants.rs`).
//!
//! 1. The number of the view and the numbers of members only grow. A number never returns.
//! 2. Only a renewal by the member itself changes its beat.
//! 3. A seat has at most one seated member. Others of that seat wait: a process that was started
//!    again waits while its clients reclaim their locks, and then enters in place of its
//!    predecessor.
//! 4. The predecessor of a waiting member is never removed alone. Only the waiting member knows
//!    what the predecessor's clients held. So either the waiting member enters in its place, or all
//!    members of the seat are removed.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use doorway_protocol::{Fence, RULES_LIMIT};

use super::command::{Answer, Command, RecordError, SeenBeat};
use super::invariants::broken_by;

/// How many seats a group may have.
pub const SEATS_LIMIT: usize = 31;

/// How many seats may have members, with those that were removed and whose members are not gone
/// yet. A view has at most one member of each.
pub(super) const SEATS_WITH_MEMBERS_LIMIT: usize = 2 * SEATS_LIMIT;

/// How many members one seat may have: the seated one, and processes that were started since.
pub const MEMBERS_OF_SEAT_LIMIT: usize = 4;

/// The shortest lease, in milliseconds.
pub const SHORTEST_LEASE_MS: u32 = 2_000;

/// The longest lease, in milliseconds.
pub const LONGEST_LEASE_MS: u32 = 300_000;

/// The most bytes that the name or the address of a seat may have.
pub const NAME_LIMIT: usize = 100;

/// The number of a seat. It is drawn at random for each data directory, so a machine with a new
/// disk has a new seat.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct SeatId(pub u64);

/// The number of a member. A process gets one when it joins, and no other process ever gets it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct MemberId(pub u64);

/// A machine that belongs to the group.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Seat {
    /// The number of the seat.
    pub id: SeatId,
    /// The name of its node.
    pub name: String,
    /// The address at which its node can be reached.
    pub address: String,
    /// Whether the machine takes part in votes.
    pub voter: bool,
}

/// A process of a seat.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Member {
    /// The number of the member.
    pub id: MemberId,
    /// The seat to which it belongs.
    pub seat: SeatId,
    /// What the process drew as it started. It makes a repeated [`Command::Join`] harmless.
    pub nonce: u128,
    /// The view in which the member was seated; none while it waits.
    pub since: Option<u64>,
    /// The view in which the line of seated members of this seat began, each of which inherited
    /// from the one before it. What members of the seat granted in earlier views has ended. It is
    /// 0 while the member waits.
    pub unbroken: u64,
    /// How many times it has renewed its membership.
    pub beat: u64,
    /// The longest lease that a renewal has given the member, in milliseconds.
    pub lease_ms: u32,
    /// The members with which it has no connection.
    pub cut: Vec<MemberId>,
    /// An evicted member cannot renew its membership any more.
    pub evicted: bool,
}

/// What a group has agreed on.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Record {
    /// The number of the group, drawn at random when it was founded.
    pub cluster: u128,
    /// How many commands have changed the record. Of two records of a group, the one with the
    /// higher revision is the newer one.
    pub revision: u64,
    /// The number of the newest view.
    pub number: u64,
    /// The highest number that a member ever had.
    pub last: u64,
    /// The lease of members, in milliseconds.
    pub lease_ms: u32,
    /// The hash of the rules that say which algorithm serves which locks: see
    /// [`AgreedRules`](super::AgreedRules). It changes only together with the number of the view.
    pub rules: u64,
    /// The machines that belong to the group, in the order of their names.
    pub seats: Vec<Seat>,
    /// All members, in the order of their numbers.
    pub members: Vec<Member>,
    /// How many times a hold was added or made longer: see [`Holds`](super::Holds).
    pub holds: u64,
}

impl Record {
    /// The record of a new group. Its seats have no members yet.
    pub fn new(cluster: u128, lease_ms: u32, rules: u64, mut seats: Vec<Seat>) -> Self {
        seats.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        let (revision, number, last, holds, members) = (0, 0, 0, 0, Vec::new());
        Self { cluster, revision, number, last, lease_ms, rules, seats, members, holds }
    }

    /// Go on where a group with a fixed list of members has ended. `number` has to be above all
    /// views of that group. The last process of that group on each of these machines counts as a
    /// member of view `number`. So the next process there succeeds it, as after a restart: its
    /// clients reclaim their locks, and no view starts before it has entered, or before the lease
    /// of its predecessor is over.
    pub fn succeed_fixed(&mut self, number: u64, seats: &[SeatId]) {
        self.number = number;
        for &seat in seats {
            self.last += 1;
            self.members.push(Member {
                id: MemberId(self.last),
                seat,
                nonce: 0,
                since: Some(number),
                unbroken: 0,
                beat: 0,
                lease_ms: self.lease_ms,
                cut: Vec::new(),
                evicted: false,
            });
        }
    }

    /// Apply a command. If it is refused, nothing changes. Of a command that changes holds or
    /// rules, this is the smaller part: see [`GroupState::apply`](super::GroupState::apply).
    pub fn apply(&mut self, command: &Command) -> Answer {
        let before = cfg!(debug_assertions).then(|| self.clone());
        let answer = match self.try_apply(command) {
            Ok(answer) => {
                self.revision += 1;
                answer
            }
            Err(error) => Answer::Refused(error),
        };
        if let Some(before) = before {
            let broken = broken_by(&before, command, &answer, self);
            debug_assert_eq!(broken, None, "broken by {command:?}");
        }
        answer
    }

    fn try_apply(&mut self, command: &Command) -> Result<Answer, RecordError> {
        match command {
            Command::Join { seat, nonce, rules } => {
                return self.join(*seat, *nonce, *rules).map(Answer::Joined);
            }
            Command::Renew { id, cut } => return self.renew(*id, cut),
            Command::Enter { id, number, replaces, inherits } => {
                self.enter(*id, *number, replaces, *inherits)?;
            }
            Command::Remove { number, seat, all } => {
                self.check_number(*number)?;
                self.check_all(*seat, None, all)?;
                self.drop_members(|member| member.seat == *seat)?;
            }
            Command::Forget { id, beat } => {
                let member = self.member(*id)?;
                if member.since.is_some() {
                    return Err(RecordError::Seated(*id));
                }
                if member.beat != *beat {
                    return Err(RecordError::Changed);
                }
                self.drop_members(|member| member.id == *id)?;
            }
            Command::Leave { id } => {
                self.member(*id)?;
                self.drop_members(|member| member.id == *id)?;
            }
            Command::Evict { id, number } => {
                self.check_number(*number)?;
                self.member_mut(*id)?.evicted = true;
            }
            Command::Bump { number } => {
                self.check_number(*number)?;
                self.next_view()?;
            }
            Command::AddSeat(seat) => self.add_seat(seat)?,
            Command::DropSeat(seat) => self.drop_seat(*seat)?,
            Command::Voters(voters) => self.set_voters(voters)?,
            Command::Lease(lease_ms) => {
                check_lease(*lease_ms)?;
                self.lease_ms = *lease_ms;
            }
            Command::Rules { number, rules } => {
                self.check_number(*number)?;
                if rules.bytes() > RULES_LIMIT {
                    return Err(RecordError::LongRules(rules.bytes()));
                }
                self.next_view()?;
                self.rules = rules.digest();
            }
            Command::Hold { id, .. } => {
                let Member { seat, evicted, .. } = *self.member(id.member)?;
                if evicted {
                    return Err(RecordError::Evicted(id.member));
                }
                // A member that waits has only what its predecessor in the view has granted.
                if !self.members_of(seat).any(|member| member.since.is_some()) {
                    return Err(RecordError::Orphan);
                }
                self.holds += 1;
            }
            Command::Drop(_) | Command::Note(_) => {}
        }
        Ok(Answer::Done(self.number))
    }

    fn join(&mut self, seat: SeatId, nonce: u128, rules: u64) -> Result<MemberId, RecordError> {
        self.seat(seat).ok_or(RecordError::UnknownSeat)?;
        if rules != self.rules {
            return Err(RecordError::OtherRules);
        }
        if let Some(member) = self.members_of(seat).find(|member| member.nonce == nonce) {
            return Ok(member.id); // The command was sent again.
        }
        if self.members_of(seat).any(|member| member.evicted) {
            return Err(RecordError::EvictedOfSeat);
        }
        if self.members_of(seat).count() >= MEMBERS_OF_SEAT_LIMIT {
            return Err(RecordError::TooManyOfSeat);
        }
        self.last += 1;
        let id = MemberId(self.last);
        self.members.push(Member {
            id,
            seat,
            nonce,
            since: None,
            unbroken: 0,
            beat: 0,
            lease_ms: self.lease_ms,
            cut: Vec::new(),
            evicted: false,
        });
        Ok(id)
    }

    fn renew(&mut self, id: MemberId, cut: &[MemberId]) -> Result<Answer, RecordError> {
        let (lease_ms, number) = (self.lease_ms, self.number);
        let member = self.member_mut(id)?;
        if member.evicted {
            return Err(RecordError::Evicted(id));
        }
        member.beat += 1;
        // The answer to an earlier renewal may still be on its way, and gives a longer lease if the
        // group had one then. So the others never wait for less than the longest one.
        member.lease_ms = member.lease_ms.max(lease_ms);
        member.cut = cut.to_vec();
        member.cut.truncate(SEATS_LIMIT * MEMBERS_OF_SEAT_LIMIT);
        Ok(Answer::Renewed { since: member.since, number, lease_ms })
    }

    fn enter(
        &mut self,
        id: MemberId,
        number: u64,
        replaces: &[SeenBeat],
        inherits: bool,
    ) -> Result<(), RecordError> {
        self.check_number(number)?;
        let member = self.member(id)?;
        if member.evicted {
            return Err(RecordError::Evicted(id));
        }
        if member.since.is_some() {
            return Err(RecordError::Seated(id));
        }
        let seat = member.seat;
        self.check_all(seat, Some(id), replaces)?;
        self.next_view()?;
        let predecessor = self.members_of(seat).find(|it| inherits && it.since.is_some());
        let unbroken = predecessor.map_or(self.number, |predecessor| predecessor.unbroken);
        // Clients that it takes over may count on a longer lease of the predecessor.
        let longest = predecessor.map_or(0, |predecessor| predecessor.lease_ms);
        self.members.retain(|member| member.seat != seat || member.id == id);
        let number = self.number;
        let member = self.member_mut(id)?;
        (member.since, member.unbroken) = (Some(number), unbroken);
        member.lease_ms = member.lease_ms.max(longest);
        Ok(())
    }

    fn add_seat(&mut self, seat: &Seat) -> Result<(), RecordError> {
        if self.seats.len() >= SEATS_LIMIT {
            return Err(RecordError::TooManySeats);
        }
        let fits = |text: &str| (1..=NAME_LIMIT).contains(&text.len());
        if !fits(&seat.name) || !fits(&seat.address) {
            return Err(RecordError::BadSeat);
        }
        let same = |known: &&Seat| {
            known.id == seat.id || known.name == seat.name || known.address == seat.address
        };
        if let Some(known) = self.seats.iter().find(same) {
            return Err(RecordError::SeatExists(known.name.clone()));
        }
        // Otherwise the next view could have too many members.
        if self.seats.len() + self.leaving_seats() >= SEATS_WITH_MEMBERS_LIMIT {
            return Err(RecordError::SeatsLeaving);
        }
        self.seats.push(seat.clone());
        self.seats.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(())
    }

    /// How many machines were removed of which members are left.
    fn leaving_seats(&self) -> usize {
        let seats = self.members.iter().map(|member| member.seat);
        let leaving: BTreeSet<SeatId> = seats.filter(|seat| self.seat(*seat).is_none()).collect();
        leaving.len()
    }

    fn drop_seat(&mut self, seat: SeatId) -> Result<(), RecordError> {
        self.seat(seat).ok_or(RecordError::UnknownSeat)?;
        if !self.seats.iter().any(|other| other.voter && other.id != seat) {
            return Err(RecordError::NoVoter);
        }
        self.seats.retain(|other| other.id != seat);
        // Members without a seat are removed like all others: they leave, or their lease ends.
        for member in self.members.iter_mut().filter(|member| member.seat == seat) {
            member.evicted = true;
        }
        Ok(())
    }

    fn set_voters(&mut self, voters: &[SeatId]) -> Result<(), RecordError> {
        if voters.is_empty() {
            return Err(RecordError::NoVoter);
        }
        if voters.iter().any(|voter| self.seat(*voter).is_none()) {
            return Err(RecordError::UnknownSeat);
        }
        for seat in &mut self.seats {
            seat.voter = voters.contains(&seat.id);
        }
        Ok(())
    }

    /// Remove members. If one of them was seated, a new view begins.
    fn drop_members(&mut self, goes: impl Fn(&Member) -> bool) -> Result<(), RecordError> {
        if self.seated().any(&goes) {
            self.next_view()?;
        }
        self.members.retain(|member| !goes(member));
        Ok(())
    }

    fn next_view(&mut self) -> Result<(), RecordError> {
        if self.number + 1 >= Fence::VIEW_LIMIT {
            return Err(RecordError::NoMoreViews);
        }
        self.number += 1;
        Ok(())
    }

    /// Check a record that came from elsewhere, so that no node computes with impossible values.
    pub fn check(&self) -> Result<(), RecordError> {
        check_lease(self.lease_ms)?;
        if self.number >= Fence::VIEW_LIMIT {
            return Err(RecordError::NoMoreViews);
        }
        if self.seats.len() > SEATS_LIMIT {
            return Err(RecordError::TooManySeats);
        }
        if self.seats.iter().any(|seat| self.members_of(seat.id).count() > MEMBERS_OF_SEAT_LIMIT) {
            return Err(RecordError::TooManyOfSeat);
        }
        self.members.iter().try_for_each(|member| check_lease(member.lease_ms))?;
        // Removed seats may have members for a while.
        if self.members.len() > SEATS_WITH_MEMBERS_LIMIT * MEMBERS_OF_SEAT_LIMIT {
            return Err(RecordError::TooManyOfSeat);
        }
        // A place in a view is given by the order of the members, and each seat has one place.
        let ordered = self.members.is_sorted_by(|one, other| one.id < other.id);
        let mut seats: Vec<SeatId> = self.seated().map(|member| member.seat).collect();
        seats.sort_unstable();
        let known = self.members.iter().all(|member| member.id.0 <= self.last);
        if ordered && known && seats.is_sorted_by(|one, other| one < other) {
            Ok(())
        } else {
            Err(RecordError::Changed)
        }
    }

    fn check_number(&self, number: u64) -> Result<(), RecordError> {
        if number == self.number { Ok(()) } else { Err(RecordError::Changed) }
    }

    /// Check that these are all members of the seat, except one that stays, with their beats.
    fn check_all(
        &self,
        seat: SeatId,
        stays: Option<MemberId>,
        seen: &[SeenBeat],
    ) -> Result<(), RecordError> {
        let now = self.seen(seat, stays);
        if now == seen { Ok(()) } else { Err(RecordError::Changed) }
    }

    /// The seat with this number.
    pub fn seat(&self, id: SeatId) -> Option<&Seat> {
        self.seats.iter().find(|seat| seat.id == id)
    }

    /// The member with this number.
    pub fn member(&self, id: MemberId) -> Result<&Member, RecordError> {
        let found = self.members.iter().find(|member| member.id == id);
        found.ok_or(RecordError::NotAMember(id))
    }

    fn member_mut(&mut self, id: MemberId) -> Result<&mut Member, RecordError> {
        let found = self.members.iter_mut().find(|member| member.id == id);
        found.ok_or(RecordError::NotAMember(id))
    }

    /// The members of a seat, in the order of their numbers.
    pub fn members_of(&self, seat: SeatId) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(move |member| member.seat == seat)
    }

    /// The members of the newest view, in the order of their numbers. The place of a member here is
    /// its number in the algorithms of that view.
    pub fn seated(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| member.since.is_some())
    }

    /// The longest lease on which a member may count, in milliseconds. It is longer than the lease
    /// of the group if that was made shorter, until the members have gone that had the longer one.
    pub fn longest_lease_ms(&self) -> u32 {
        let leases = self.members.iter().map(|member| member.lease_ms);
        leases.fold(self.lease_ms, u32::max)
    }

    /// What a command that removes or replaces members has to name: each with its beat.
    pub fn seen(&self, seat: SeatId, except: Option<MemberId>) -> Vec<SeenBeat> {
        let others = self.members_of(seat).filter(|member| Some(member.id) != except);
        others.map(|member| (member.id, member.beat)).collect()
    }
}

fn check_lease(lease_ms: u32) -> Result<(), RecordError> {
    if (SHORTEST_LEASE_MS..=LONGEST_LEASE_MS).contains(&lease_ms) {
        Ok(())
    } else {
        Err(RecordError::BadLease(lease_ms))
    }
}
