//! Members by agreement: who belongs to a group, decided by the group itself.
//!
//! - `record.rs`: what the members agree on, and the commands that change it.
//! - `keeper.rs`: how a process keeps its membership, and how the group gets rid of dead members.
//!
//! Both are plain values without clock, network and disk. No node uses them yet: the members of a
//! group are fixed in its settings.

mod keeper;
mod record;

pub use keeper::{Event, Keeper, Now, Output, PutId};
pub use record::{
    Answer, Command, LONGEST_LEASE_MS, MEMBERS_OF_SEAT_LIMIT, Member, MemberId, NAME_LIMIT, Record,
    RecordError, SEATS_LIMIT, SHORTEST_LEASE_MS, Seat, SeatId, Seen,
};
