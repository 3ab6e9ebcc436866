//! The explorer of rings: does a ring stabilise from every state, and how many moves can that take?
//! There are three ways to choose which machines move.

use std::vec::Vec;

use doorway_search::{ClientEvent, Graph, Tag, components};

use super::{Neighbours, Rule, View};
use crate::{Process, Word};

/// How moves are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Daemon {
    /// One privileged machine at a time looks and moves in one step; any of them may be chosen.
    Central,
    /// Any number of privileged machines look and move in the same step.
    Distributed,
    /// Reads and writes are separate steps, as in real memory: when a machine moves, what it has
    /// seen may be outdated. Every machine keeps taking steps.
    ReadWrite,
}

/// What is known after all states have been explored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The number of states.
    pub states: u32,
    /// The number of legitimate states: in these, and in all states that can follow, at most one
    /// machine is privileged.
    pub legitimate: u32,
    /// Whether a legitimate state is reached from every state, and from then on every machine is
    /// privileged again and again.
    pub stabilises: bool,
    /// The most moves that this takes, if the ring stabilises and each step is a move.
    pub moves: Option<u32>,
}

/// The most states that are explored.
pub const MOST_STATES: u32 = 1 << 24;

/// Explore all states of a ring of `n` machines. `None` if there are more than [`MOST_STATES`].
///
/// ```
/// use doorway_threads::ring::{KState, explore::{Daemon, explore}};
///
/// let enough = explore(KState { k: 3 }, 4, Daemon::Central).unwrap();
/// assert_eq!((enough.states, enough.stabilises), (81, true));
/// let too_few = explore(KState { k: 2 }, 4, Daemon::Central).unwrap();
/// assert!(!too_few.stabilises);
/// ```
pub fn explore<R: Rule>(rule: R, n: usize, daemon: Daemon) -> Option<Verdict> {
    Some(ExploredRing::new(rule, n, daemon)?.verdict())
}

/// A state of a ring: what each machine holds, and whether it is privileged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingState {
    /// The states of the machines.
    pub machines: Vec<Word>,
    /// The machines that are privileged, by their positions.
    pub privileged: Vec<usize>,
}

/// The longest way home: the states of a ring from one that is as far as possible from a legitimate
/// one to the first legitimate one. Each is one step after the one before.
///
/// `None` if there are more than [`MOST_STATES`], if the ring does not stabilise, or if reads and
/// writes are separate steps: then there is no longest way, because a machine may look again and
/// again.
///
/// ```
/// use doorway_threads::ring::{FourState, explore::{Daemon, longest_way_home}};
///
/// let way = longest_way_home(FourState, 4, Daemon::Central).unwrap();
/// assert_eq!(way.len(), 7); // Six moves.
/// assert_eq!(way[6].privileged.len(), 1);
/// ```
pub fn longest_way_home<R: Rule>(rule: R, n: usize, daemon: Daemon) -> Option<Vec<RingState>> {
    let explored = ExploredRing::new(rule, n, daemon)?;
    explored.verdict().moves?;
    let far = (0..explored.moves.len()).max_by_key(|state| explored.moves[*state])?;
    let mut here = far as u32;
    let mut way = std::vec![explored.ring.shown(here)];
    while explored.moves[here as usize] > 0 {
        let left = explored.moves[here as usize] - 1;
        let mut steps = explored.graph.steps(here);
        here = steps.find(|(_, to, _)| explored.moves[*to as usize] == left)?.1;
        way.push(explored.ring.shown(here));
    }
    Some(way)
}

/// All states of a ring, and what is known of each.
struct ExploredRing<R> {
    ring: Ring<R>,
    graph: Graph,
    legitimate: Vec<bool>,
    /// The most steps to a legitimate state, if the ring stabilises: 0 in a legitimate one.
    moves: Vec<u32>,
    stabilises: bool,
}

impl<R: Rule> ExploredRing<R> {
    fn new(rule: R, n: usize, daemon: Daemon) -> Option<Self> {
        let ring = Ring::new(rule, n, daemon)?;
        let graph = ring.graph();
        let states = graph.states() as usize;
        let mut rounds = Rounds { graph: &graph, component: std::vec![0; states], n, daemon };
        let mut legitimate = std::vec![false; states];
        let mut moves = std::vec![0; states];
        let mut stabilises = true;
        let all = |_| true;
        // Each component comes after all that can be reached from it.
        components(&graph, all, |members| {
            rounds.mark(members);
            let follow =
                || members.iter().flat_map(|state| graph.steps(*state)).map(|(_, to, _)| to);
            let stays = |to: u32| legitimate[to as usize] || rounds.is_same(members[0], to);
            if members.iter().all(|state| ring.is_right(*state)) && follow().all(stays) {
                for state in members {
                    legitimate[*state as usize] = true;
                }
                return;
            }
            stabilises &= follow().next().is_some() && !rounds.go_on(members);
            let longest = follow().map(|to| moves[to as usize]).max().unwrap_or(0);
            moves[members[0] as usize] = 1 + longest;
        });
        for i in 0..n {
            rounds.component.fill(0);
            let never = |state: u32| legitimate[state as usize] && !ring.is_privileged(state, i);
            components(&graph, never, |members| {
                rounds.mark(members);
                stabilises &= !rounds.go_on(members);
            });
        }
        Some(Self { ring, graph, legitimate, moves, stabilises })
    }

    fn verdict(&self) -> Verdict {
        let decided = self.stabilises && self.ring.daemon != Daemon::ReadWrite;
        Verdict {
            states: self.graph.states(),
            legitimate: self.legitimate.iter().filter(|legitimate| **legitimate).count() as u32,
            stabilises: self.stabilises,
            moves: self.moves.iter().copied().max().filter(|_| decided),
        }
    }
}

/// The strongly connected components, as far as they are known.
struct Rounds<'g> {
    graph: &'g Graph,
    /// The component of each state: one of its members, counted from 1; 0 if it is not known yet.
    component: Vec<u32>,
    n: usize,
    daemon: Daemon,
}

impl Rounds<'_> {
    fn mark(&mut self, members: &[u32]) {
        for state in members {
            self.component[*state as usize] = members[0] + 1;
        }
    }

    fn is_same(&self, state: u32, other: u32) -> bool {
        self.component[state as usize] == self.component[other as usize]
    }

    /// Whether a run can stay in this component for ever, with every machine taking steps that has
    /// to.
    fn go_on(&self, members: &[u32]) -> bool {
        let mut moved = std::vec![false; self.n];
        for state in members {
            for (_, to, tag) in self.graph.steps(*state) {
                moved[tag.actor()] |= self.is_same(*state, to);
            }
        }
        match self.daemon {
            Daemon::Central | Daemon::Distributed => moved.contains(&true),
            Daemon::ReadWrite => !moved.contains(&false),
        }
    }
}

/// What a machine is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NextAction {
    /// The machine is about to look.
    Fresh,
    /// The machine has seen its left neighbour, and is about to look at the right one.
    Saw(Word),
    /// The machine is about to move to this state.
    Decided(Word),
}

/// A machine of a ring: its state, and what it is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RingMachine {
    own: Word,
    action: NextAction,
}

/// A ring whose states are numbered: each machine is a digit.
struct Ring<R> {
    rule: R,
    n: usize,
    daemon: Daemon,
    /// Everything that each machine can be, by its digit.
    digits: Vec<Vec<RingMachine>>,
    /// The value of each digit; after the last one, the number of states.
    worth: Vec<u32>,
}

impl<R: Rule> Ring<R> {
    fn new(rule: R, n: usize, daemon: Daemon) -> Option<Self> {
        let me = |i| Process { i, n };
        let digits: Vec<_> = (0..n.min(Tag::ACTORS)).map(|i| digits(rule, me(i), daemon)).collect();
        let mut worth = std::vec![1u32];
        for digits in &digits {
            let states = worth.last()?.checked_mul(u32::try_from(digits.len()).ok()?)?;
            worth.push(states);
        }
        let few = digits.len() == n && *worth.last()? <= MOST_STATES;
        few.then_some(Self { rule, n, daemon, digits, worth })
    }

    fn machine(&self, state: u32, i: usize) -> RingMachine {
        let digit = state / self.worth[i] % self.digits[i].len() as u32;
        self.digits[i][digit as usize]
    }

    /// The state after a machine has changed.
    fn with(&self, state: u32, i: usize, machine: RingMachine) -> u32 {
        let before = state / self.worth[i] % self.digits[i].len() as u32;
        let after = self.digits[i].iter().position(|other| *other == machine);
        let after = after.expect("a machine that can be") as u32;
        state - before * self.worth[i] + after * self.worth[i]
    }

    fn shown(&self, state: u32) -> RingState {
        let machines = (0..self.n).map(|i| self.machine(state, i).own).collect();
        let privileged = (0..self.n).filter(|i| self.is_privileged(state, *i)).collect();
        RingState { machines, privileged }
    }

    fn view(&self, state: u32, i: usize) -> View {
        let me = Process { i, n: self.n };
        let own = |i| self.machine(state, i).own;
        View { left: own(me.before(i)), own: own(i), right: own(me.after(i)) }
    }

    fn moves(&self, i: usize, view: View) -> impl Iterator<Item = Word> + use<R> {
        self.rule.moves(Process { i, n: self.n }, view).into_iter().flatten()
    }

    fn is_privileged(&self, state: u32, i: usize) -> bool {
        match self.daemon {
            Daemon::ReadWrite => matches!(self.machine(state, i).action, NextAction::Decided(_)),
            _ => self.moves(i, self.view(state, i)).next().is_some(),
        }
    }

    /// Whether exactly one machine is privileged, or with separate reads and writes at most one.
    fn is_right(&self, state: u32) -> bool {
        match (0..self.n).filter(|i| self.is_privileged(state, *i)).count() {
            // With separate reads and writes, a machine that has not looked yet does not know that
            // it is privileged.
            0 => self.daemon == Daemon::ReadWrite,
            privileged => privileged == 1,
        }
    }

    fn graph(&self) -> Graph {
        let mut graph = Graph::default();
        let states = self.worth[self.n];
        for state in 0..states {
            let (mut targets, mut tags) = (Vec::new(), Vec::new());
            let mut found = |i, target| {
                targets.push(target);
                tags.push(Tag::new(i, ClientEvent::None, 0));
            };
            match self.daemon {
                Daemon::Central => (0..self.n).for_each(|i| self.central(state, i, &mut found)),
                Daemon::Distributed => self.distributed(state, &mut found),
                Daemon::ReadWrite => (0..self.n).for_each(|i| self.step(state, i, &mut found)),
            }
            graph.extend(&[targets.len() as u32], &targets, &tags);
        }
        graph
    }

    fn central(&self, state: u32, i: usize, found: &mut impl FnMut(usize, u32)) {
        for own in self.moves(i, self.view(state, i)) {
            found(i, self.with(state, i, RingMachine { own, action: NextAction::Fresh }));
        }
    }

    /// Every choice of machines and moves, except the empty one.
    fn distributed(&self, state: u32, found: &mut impl FnMut(usize, u32)) {
        let mut after = std::vec![state];
        for i in 0..self.n {
            for nth in 0..after.len() {
                let moved =
                    |own| self.with(after[nth], i, RingMachine { own, action: NextAction::Fresh });
                let moved: Vec<u32> = self.moves(i, self.view(state, i)).map(moved).collect();
                after.extend(moved);
            }
        }
        after[1..].iter().for_each(|target| found(0, *target));
    }

    /// The next access of a machine.
    fn step(&self, state: u32, i: usize, found: &mut impl FnMut(usize, u32)) {
        let RingMachine { own, action } = self.machine(state, i);
        let view = self.view(state, i);
        let mut becomes = |own, action| found(i, self.with(state, i, RingMachine { own, action }));
        let left = match (action, self.rule.looks(Process { i, n: self.n })) {
            (NextAction::Decided(next), _) => return becomes(next, NextAction::Fresh),
            (NextAction::Fresh, Neighbours::Both) => {
                return becomes(own, NextAction::Saw(view.left));
            }
            (NextAction::Fresh, _) => view.left,
            (NextAction::Saw(left), _) => left,
        };
        let mut moves = self.moves(i, View { left, ..view }).peekable();
        if moves.peek().is_none() {
            becomes(own, NextAction::Fresh);
        }
        moves.for_each(|next| becomes(own, NextAction::Decided(next)));
    }
}

/// Everything that a machine can be. A decision is one that the rule allows.
fn digits<R: Rule>(rule: R, me: Process, daemon: Daemon) -> Vec<RingMachine> {
    let states = || 0..rule.states();
    let mut digits = Vec::new();
    for own in states().filter(|state| rule.admits(me, *state)) {
        let mut minds = std::vec![NextAction::Fresh];
        if daemon == Daemon::ReadWrite {
            if rule.looks(me) == Neighbours::Both {
                minds.extend(states().map(NextAction::Saw));
            }
            let pairs = states().flat_map(|left| states().map(move |right| (left, right)));
            let views = pairs.map(|(left, right)| View { left, own, right });
            for next in
                views.flat_map(|view| rule.moves(me, view)).flatten().map(NextAction::Decided)
            {
                if !minds.contains(&next) {
                    minds.push(next);
                }
            }
        }
        digits.extend(minds.into_iter().map(|action| RingMachine { own, action }));
    }
    digits
}
