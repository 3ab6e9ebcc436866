//! Dijkstra, "Self-stabilizing Systems in Spite of Distributed Control", Communications of the ACM
//! 17(11), 1974, with four states a machine: a bit that travels up from the bottom machine and is
//! reflected at the top, and a second bit that says in which of the two directions a machine looks.

use super::{Neighbours, Rule, View, is_bottom, is_top};
use crate::{Process, Word};

/// A ring whose machines have four states. A state is twice the bit that travels, plus one if the
/// machine looks up.
///
/// Proved by exploring all states: it stabilises where one machine moves at a time (rings of three
/// to six) and where any number of them move at once (three and four). Refuted: that it stabilises
/// where reads and writes are separate steps, as between threads. Larger rings were not explored.
///
/// ```
/// use doorway_threads::ring::{FourState, explore::{Daemon, explore}};
///
/// let five = explore(FourState, 5, Daemon::Central).unwrap();
/// assert_eq!((five.stabilises, five.moves), (true, Some(12)));
/// assert!(!explore(FourState, 3, Daemon::ReadWrite).unwrap().stabilises);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FourState;

/// The two bits of a state.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Bits {
    x: bool,
    up: bool,
}

impl From<Word> for Bits {
    fn from(state: Word) -> Self {
        Self { x: state & 2 != 0, up: state & 1 != 0 }
    }
}

impl From<Bits> for Word {
    fn from(Bits { x, up }: Bits) -> Self {
        2 * Self::from(x) + Self::from(up)
    }
}

impl Rule for FourState {
    fn states(self) -> usize {
        4
    }

    fn admits(self, me: Process, state: Word) -> bool {
        let Bits { up, .. } = state.into();
        (up || !is_bottom(me)) && (!up || !is_top(me))
    }

    fn looks(self, me: Process) -> Neighbours {
        match (is_bottom(me), is_top(me)) {
            (true, _) => Neighbours::Right,
            (_, true) => Neighbours::Left,
            _ => Neighbours::Both,
        }
    }

    fn moves(self, me: Process, view: View) -> [Option<Word>; 2] {
        let [left, own, right]: [Bits; 3] = [view.left, view.own, view.right].map(Bits::from);
        let turned = Bits { x: !own.x, ..own };
        let from_below = own.x != left.x;
        let from_above = own.x == right.x && !right.up;
        if is_bottom(me) {
            return [from_above.then_some(turned.into()), None];
        }
        if is_top(me) {
            return [from_below.then_some(turned.into()), None];
        }
        let up = Bits { up: true, ..turned };
        let down = Bits { up: false, ..own };
        [from_below.then_some(up.into()), (from_above && own.up).then_some(down.into())]
    }
}
