//! Dijkstra, "Self-stabilizing Systems in Spite of Distributed Control", Communications of the ACM
//! 17(11), 1974, with `K` states a machine: all copy their left neighbour except the bottom one,
//! which takes the next state when it sees its own state at its left neighbour.
//!
//! If `K` is large enough, no machine has some of the states. The bottom machine comes to one of
//! these at some time. That state then travels around the ring and replaces all others before the
//! bottom machine can move again.

use super::{Neighbours, Rule, View, is_bottom};
use crate::{Process, Word};

/// A ring whose machines have `k` states.
///
/// Proved by exploring all states: it stabilises with `k >= n - 1` and with no fewer where one
/// machine moves at a time (`n` = 3 to 6), `k >= n` where any number of them move at once (3 and
/// 4), and `k >= 2n - 1` where reads and writes are separate steps (2 to 4). Larger rings, or many
/// more states, were not explored.
///
/// ```
/// use doorway_threads::ring::{KState, explore::{Daemon, explore}};
///
/// // Three machines on real memory need five states.
/// let stabilises = |k| explore(KState { k }, 3, Daemon::ReadWrite).unwrap().stabilises;
/// assert!(stabilises(5) && !stabilises(4));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KState {
    /// The number of states of a machine.
    pub k: usize,
}

impl Rule for KState {
    fn states(self) -> usize {
        self.k
    }

    fn looks(self, _: Process) -> Neighbours {
        Neighbours::Left
    }

    #[inline]
    fn moves(self, me: Process, View { left, own, .. }: View) -> [Option<Word>; 2] {
        let next = match (is_bottom(me), left == own) {
            (true, true) => Some(if own + 1 < self.k { own + 1 } else { 0 }),
            (false, false) => Some(left),
            (true, false) | (false, true) => None,
        };
        [next, None]
    }
}
