//! Tests of every algorithm in the list. To run those of one file: `cargo test -p doorway-lab
//! --test algorithms small::`.

mod answers;
mod claims;
mod declared;
mod listed;
mod random;
mod refusals;
mod scripts;
mod settle;
mod small;
mod starts;
