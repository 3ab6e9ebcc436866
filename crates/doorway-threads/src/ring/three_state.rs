//! Dijkstra, "Self-stabilizing Systems in Spite of Distributed Control", Communications of the ACM
//! 17(11), 1974, with three states a machine: differences of one travel in both directions, and the
//! top machine, which also looks at the bottom one, makes a new one when there is none left.

use super::{Neighbours, Rule, View, is_bottom, is_top};
use crate::{Process, Word};

/// A ring whose machines have three states.
///
/// Proved by exploring all states: it stabilises where one machine moves at a time (rings of three
/// to six) and where any number of them move at once (three and four). Refuted: that it stabilises
/// where reads and writes are separate steps, as between threads. Larger rings were not explored.
///
/// ```
/// use doorway_threads::ring::{ThreeState, explore::{Daemon, explore}};
///
/// let five = explore(ThreeState, 5, Daemon::Central).unwrap();
/// assert_eq!((five.stabilises, five.moves), (true, Some(22)));
/// assert!(!explore(ThreeState, 3, Daemon::ReadWrite).unwrap().stabilises);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreeState;

/// The state after this one.
const fn next(state: Word) -> Word {
    (state + 1) % 3
}

/// The state before this one.
const fn last(state: Word) -> Word {
    (state + 2) % 3
}

impl Rule for ThreeState {
    fn states(self) -> usize {
        3
    }

    fn looks(self, me: Process) -> Neighbours {
        if is_bottom(me) { Neighbours::Right } else { Neighbours::Both }
    }

    fn moves(self, me: Process, View { left, own, right }: View) -> [Option<Word>; 2] {
        if is_bottom(me) {
            return [(next(own) == right).then_some(last(own)), None];
        }
        if is_top(me) {
            return [(left == right && next(left) != own).then_some(next(left)), None];
        }
        [(next(own) == left).then_some(left), (next(own) == right).then_some(right)]
    }
}
