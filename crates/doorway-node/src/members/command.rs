//! The commands that change the record of a group, and their answers.

use doorway_protocol::{AuditEntry, Fence, RULES_LIMIT, RuleTables};
use serde::{Deserialize, Serialize};

use super::holds::{HOLDS_LIMIT, HoldId};
use super::record::{
    LONGEST_LEASE_MS, MEMBERS_OF_SEAT_LIMIT, MemberId, NAME_LIMIT, SEATS_LIMIT,
    SEATS_WITH_MEMBERS_LIMIT, SHORTEST_LEASE_MS, Seat, SeatId,
};

/// A member and the beat that the sender of a command saw last.
pub type SeenBeat = (MemberId, u64);

/// A change of the record.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Command {
    /// A process wants to become a member of its seat. It waits until it enters.
    Join {
        /// The seat.
        seat: SeatId,
        /// What the process drew as it started.
        nonce: u128,
        /// The hash of the rules that it can run.
        rules: u64,
    },
    /// A member is alive.
    Renew {
        /// The member.
        id: MemberId,
        /// The members with which it has no connection.
        cut: Vec<MemberId>,
    },
    /// A waiting member takes its seat, in place of all other members of that seat.
    Enter {
        /// The member.
        id: MemberId,
        /// The number of the view that it knows.
        number: u64,
        /// All other members of its seat.
        replaces: Vec<SeenBeat>,
        /// Whether the process has started since its predecessor was seated, so that it may have
        /// what the predecessor's clients have reclaimed. A process that has lost an earlier
        /// membership has forgotten everything.
        inherits: bool,
    },
    /// The members of a seat were silent for longer than their lease: all of them are removed.
    Remove {
        /// The number of the view that the sender knows.
        number: u64,
        /// The seat.
        seat: SeatId,
        /// All members of that seat.
        all: Vec<SeenBeat>,
    },
    /// A waiting member was silent for longer than its lease: it is removed alone. The locks of its
    /// clients end with its lease, and it is in no view. Without this command, a join that arrives
    /// late would leave a member that nobody can remove while its seat is alive.
    Forget {
        /// The member.
        id: MemberId,
        /// The beat of the member that the sender saw last.
        beat: u64,
    },
    /// A member leaves. It holds nothing any more.
    Leave {
        /// The member.
        id: MemberId,
    },
    /// A member cannot reach the others: it may not renew its membership any more.
    Evict {
        /// The member.
        id: MemberId,
        /// The number of the view that the sender knows.
        number: u64,
    },
    /// Begin a new view with the same members.
    Bump {
        /// The number of the view that the sender knows.
        number: u64,
    },
    /// An operator adds a machine.
    AddSeat(Seat),
    /// An operator removes a machine. Its members are evicted.
    DropSeat(SeatId),
    /// Let these seats vote, and no others.
    Voters(Vec<SeatId>),
    /// An operator changes the lease, in milliseconds. Each member goes on with its old lease until
    /// its next renewal. A shorter lease changes how soon the others remove a member only when its
    /// process has joined anew: until then they wait for the longest lease that it ever had.
    Lease(u32),
    /// An operator changes the rules for locks. A view with the new ones begins.
    Rules {
        /// The number of the view that the sender knows.
        number: u64,
        /// The new rules, all of them.
        rules: RuleTables,
    },
    /// A member promises a client a lock for longer than the member's own lease, or makes such a
    /// promise longer. If a process before it in its seat has made the promise, this member takes
    /// it over.
    Hold {
        /// The promise.
        id: HoldId,
        /// The length of the promise in milliseconds; none if it is without end.
        length_ms: Option<u64>,
    },
    /// A promise is over: the lock was released or broken, or its time has passed. Nothing happens
    /// if there is no such promise.
    Drop(HoldId),
    /// An operator did something, which the audit log keeps.
    Note(AuditEntry),
}

/// The answer to a [`Command`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Answer {
    /// The process is this member, and waits.
    Joined(MemberId),
    /// The membership was renewed.
    Renewed {
        /// The view in which the member was seated; none while it waits.
        since: Option<u64>,
        /// The number of the newest view.
        number: u64,
        /// The lease that the renewal gives, in milliseconds.
        lease_ms: u32,
    },
    /// The record was changed. This is the number of its newest view.
    Done(u64),
    /// Nothing was changed.
    Refused(RecordError),
}

/// Why a [`Command`] was refused.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
pub enum RecordError {
    /// The group has no such seat.
    #[error("this machine does not belong to the group, or has another data directory than before")]
    UnknownSeat,
    /// There is no such member, or it was removed.
    #[error("member {} does not exist any more", .0.0)]
    NotAMember(MemberId),
    /// The member was evicted.
    #[error(
        "member {} was evicted: its machine was removed from the group, it could not reach the \
         others, or it did not take the place of its predecessor in time", .0.0
    )]
    Evicted(MemberId),
    /// An evicted member of the seat is still to be removed.
    #[error("the group first removes an evicted process of this machine")]
    EvictedOfSeat,
    /// The member has a seat already.
    #[error("member {} is in the view already", .0.0)]
    Seated(MemberId),
    /// Too many processes of one seat have joined.
    #[error("the machine has {MEMBERS_OF_SEAT_LIMIT} processes in the group already")]
    TooManyOfSeat,
    /// The process does not know the rules of the group, or cannot run them.
    #[error("this node does not know the rules for locks of its group")]
    OtherRules,
    /// The record has changed since the sender looked at it.
    #[error("the group has changed in the meantime")]
    Changed,
    /// The number of views is exhausted.
    #[error("fences cannot tell more than {limit} views apart", limit = Fence::VIEW_LIMIT)]
    NoMoreViews,
    /// A seat cannot be added because the group is full.
    #[error("a group has at most {SEATS_LIMIT} machines")]
    TooManySeats,
    /// A seat cannot be added because another one has its name, number or address.
    #[error("`{0}` belongs to the group already")]
    SeatExists(String),
    /// The name or the address of a seat is empty or too long.
    #[error("a name and an address have 1 to {NAME_LIMIT} bytes")]
    BadSeat,
    /// The lock is not held any more for which the group was asked to keep it.
    #[error("the lock was given up or lost in the meantime")]
    GivenUp,
    /// The group would have no voter.
    #[error("at least one machine must vote")]
    NoVoter,
    /// The lease is too short or too long.
    #[error("a lease takes {SHORTEST_LEASE_MS} to {LONGEST_LEASE_MS} ms, not {0} ms")]
    BadLease(u32),
    /// The group has made too many promises that are longer than a lease.
    #[error(
        "the group keeps {HOLDS_LIMIT} locks for longer than a lease already; release some, or ask \
         for a shorter time"
    )]
    TooManyHolds,
    /// The member that made a promise is gone, so nobody can take the promise over.
    #[error("the group has removed the process that granted the lock")]
    Orphan,
    /// The rules are too long.
    #[error("the rules for locks have {0} bytes; at most {RULES_LIMIT} are allowed")]
    LongRules(usize),
    /// A seat cannot be added because too many removed ones still have members.
    #[error(
        "with the machines that were removed and whose leases are not over, the group has \
         {SEATS_WITH_MEMBERS_LIMIT} machines already; try again when the leases are over"
    )]
    SeatsLeaving,
}
