//! Members by agreement: who belongs to a group, decided by the group itself.
//!
//! - `record.rs`: what the members agree on.
//! - `command.rs`: the commands that change the record.
//! - `keeper.rs`: how a process keeps its membership, and how the group gets rid of dead members.
//! - `store.rs`: the store that agrees on the record, as a node sees it.
//!
//! All of it is plain values without clock, network and disk.

mod command;
mod keeper;
mod record;
mod store;

pub use command::{Answer, Command, RecordError, Seen};
pub use keeper::{Event, Keeper, Loss, Now, Output, PutId};
pub use record::{
    LONGEST_LEASE_MS, MEMBERS_OF_SEAT_LIMIT, Member, MemberId, NAME_LIMIT, Record, SEATS_LIMIT,
    SHORTEST_LEASE_MS, Seat, SeatId,
};
pub use store::{
    BoxedFuture, BoxedStream, Caller, Connect, StoreHealth, Stream, Unsure, ViewStore,
};
