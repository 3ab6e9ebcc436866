//! Dijkstra, "Self-stabilizing Systems in Spite of Distributed Control", Communications of the ACM
//! 17(11), 1974: rings of machines. Whatever the registers hold in the beginning, after finitely
//! many moves exactly one privilege goes around the ring, and never again more than one.
//!
//! A ring has `n` machines. Each sees its own state and those of its two neighbours, and is
//! *privileged* if a [`Rule`] lets it move; the move passes the privilege on. There are three
//! kinds: with `K` states a machine ([`KState`]), with four ([`FourState`]), with three
//! ([`ThreeState`]). How they behave depends on how the moves are chosen. The explorer (feature
//! `check`) decides it over all states of small rings:
//!
//! | moves | `K` states | four | three |
//! |---|---|---|---|
//! | one at a time, `n` = 3 to 6 | if `K >= n - 1` | yes | yes |
//! | any number at once, `n` = 3 and 4 | if `K >= n` | yes | yes |
//! | reads and writes apart, `n` = 2 to 4 | if `K >= 2n - 1` | no | no |
//!
//! On threads only the last row counts, so the ring that can be used, [`TokenRing`], has `K` states
//! with `K = 2n - 1`.
//!
//! A token ring is not a lock. A machine that wants nothing must pass the privilege on all the
//! same, and before the ring has stabilised two machines may be privileged, so it protects no
//! value.

#[cfg(feature = "check")]
pub mod explore;
mod four_state;
mod k_state;
mod three_state;
mod token;

pub use four_state::FourState;
pub use k_state::KState;
pub use three_state::ThreeState;
pub use token::{Privilege, RingError, Station, TokenRing};

use crate::{Process, Word};

/// What a machine knows when it decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// The state of the left neighbour, the machine before.
    pub left: Word,
    /// The machine's own state.
    pub own: Word,
    /// The state of the right neighbour, the machine after.
    pub right: Word,
}

/// Which neighbours a machine looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Neighbours {
    /// The left one only.
    Left,
    /// The right one only.
    Right,
    /// First the left one, then the right one.
    Both,
}

/// The moves of the machines of one kind of ring.
pub trait Rule: Copy {
    /// The number of states of a machine: it can have those below this number.
    fn states(self) -> usize;

    /// Whether this machine can have this state.
    fn admits(self, _me: Process, _state: Word) -> bool {
        true
    }

    /// Which neighbours this machine looks at.
    fn looks(self, me: Process) -> Neighbours;

    /// The state after each move that the machine may make. It is privileged if there is any.
    fn moves(self, me: Process, view: View) -> [Option<Word>; 2];
}

/// Whether it is the first machine, which the rules call the bottom one.
const fn is_bottom(me: Process) -> bool {
    me.i == 0
}

/// Whether it is the last machine, which the rules call the top one.
const fn is_top(me: Process) -> bool {
    me.i + 1 == me.n
}
