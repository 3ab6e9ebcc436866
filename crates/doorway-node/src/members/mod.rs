//! Members by agreement: who belongs to a group, decided by the group itself.
//!
//! - `audit.rs`: what operators did.
//! - `record.rs`: what the members agree on.
//! - `command.rs`: the commands that change the record.
//! - `invariants.rs`: what each such change keeps, which debug assertions check.
//! - `holds.rs`: promises that may outlive the lease of a node, on which the members agree too.
//! - `keeper.rs`: how a process keeps its membership, and how the group gets rid of dead members;
//!   `keeper/holds.rs`: what it does about promises that are longer than a lease.
//! - `rules.rs`: the rules for locks, on which the members agree too.
//! - `histogram.rs`: how long renewals and the like take.
//! - `drive.rs`: the loop that performs what a keeper decides, for a real node or a simulated one.
//! - `store.rs`: the store that agrees on the record, as a node sees it.
//!
//! All of it is plain values without clock, network and disk. The node feeds them: see
//! `agreed_group.rs`.

mod audit;
mod command;
mod drive;
mod histogram;
mod holds;
mod invariants;
mod keeper;
mod record;
mod rules;
mod store;

pub use audit::{AUDIT_LIMIT, AuditLog};
pub use command::{Answer, Command, RecordError, SeenBeat};
pub use doorway_protocol::{AuditEntry, RULES_LIMIT, RuleTables};
pub use drive::{KeeperHost, KeeperNotice, KeeperStatus, OwnMembership};
pub use histogram::{BUCKETS, Histogram, TimeCounts};
pub use holds::{GroupState, HOLDS_LIMIT, Hold, HoldId, Holds};
pub use keeper::{
    BOOT_CLOCK_BOUND, ClockTimes, Event, Keeper, Loss, Orphan, Output, PutId, absence, full_wait,
};
pub use record::{
    LONGEST_LEASE_MS, MEMBERS_OF_SEAT_LIMIT, Member, MemberId, NAME_LIMIT, Record, SEATS_LIMIT,
    SHORTEST_LEASE_MS, Seat, SeatId,
};
pub use rules::AgreedRules;
pub use store::{
    BoxedFuture, BoxedStream, Caller, Connect, ServiceHealth, StoreHealth, Stream, UnknownOutcome,
    ViewStore,
};
