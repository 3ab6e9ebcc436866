//! `K` states a machine: all copy their left neighbour, but for the bottom one, which goes ahead
//! when it finds its own state come around.
//!
//! Some state is missing among the machines if `K` is large enough. The bottom machine comes to it
//! some day; it then travels around the ring, and wipes out everything else before the bottom
//! machine can move again.

use super::{Looks, Rule, View, is_bottom};
use crate::{Process, Word};

/// A ring whose machines have `k` states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KState {
    /// How many.
    pub k: usize,
}

impl Rule for KState {
    fn states(self) -> usize {
        self.k
    }

    fn looks(self, _: Process) -> Looks {
        Looks::Left
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
