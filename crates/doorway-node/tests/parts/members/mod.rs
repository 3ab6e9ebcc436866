//! Members by agreement: the record, and keepers in virtual time.

mod group;
mod holds;
mod keeper;
mod record;
mod rules;

use doorway_node::members::{Record, Seat, SeatId};

/// The lease of these groups, in milliseconds.
const LEASE_MS: u32 = 10_000;

/// The fingerprint of the rules of these groups.
const RULES: u64 = 7;

/// A new group with this many seats, numbered from 1. All of them vote.
fn founded(seats: u64) -> Record {
    let seat = |number: u64| Seat {
        id: SeatId(number),
        name: format!("n{number}"),
        address: format!("n{number}:7001"),
        voter: true,
    };
    Record::new(1, LEASE_MS, RULES, (1..=seats).map(seat).collect())
}
