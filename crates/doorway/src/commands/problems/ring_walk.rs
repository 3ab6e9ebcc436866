//! A ring of Dijkstra's in random moves: how many it takes until one privilege is left.

use doorway_lab::simulate::Dice;
use doorway_threads::ring::explore::explore;
use doorway_threads::ring::{FourState, Rule, ThreeState, View};
use doorway_threads::{Process, Word};

use super::problem::{DaemonName, RingKind};
use super::run::Outcome;
use crate::failure::Usage;

/// Up to this number of machines, all states are explored too, to know the longest way.
const MOST_EXPLORED: usize = 7;

/// Let a ring of four or three states move, from a state that is drawn at random.
pub(super) fn walk(
    kind: RingKind,
    n: usize,
    daemon: DaemonName,
    seed: u64,
    steps: usize,
) -> Result<Outcome, Usage> {
    match kind {
        RingKind::Four => counted(FourState, n, daemon, seed, steps),
        RingKind::Three => counted(ThreeState, n, daemon, seed, steps),
        RingKind::K => Err(Usage("ring-k-state runs on threads, without --steps".into())),
    }
}

fn counted<R: Rule>(
    rule: R,
    n: usize,
    daemon: DaemonName,
    seed: u64,
    steps: usize,
) -> Result<Outcome, Usage> {
    if daemon == DaemonName::ReadWrite {
        let text = "with separate reads and writes, the rings of four and three states do not \
                    stabilise; ring-k-state does, and runs on threads";
        return Err(Usage(text.into()));
    }
    let mut dice = Dice::new(seed);
    let mut ring = MovingRing::draw(rule, n, &mut dice);
    let began = ring.privileged().len();
    // The number of steps after which more than one machine was privileged for the last time.
    let mut last = None;
    let mut visits = vec![0_u64; n];
    for step in 0..=steps {
        let privileged = ring.privileged();
        match privileged.as_slice() {
            [] => return Ok((Vec::new(), Some(format!("no machine can move after {step} steps")))),
            [one] => visits[*one] += 1,
            _ => {
                last = Some(step as u64);
                visits.fill(0);
            }
        }
        ring.advance(&privileged, daemon, &mut dice);
    }
    let home = last.map_or(0, |last| last + 1);
    if home > steps as u64 {
        let counts = vec![("privileges in the beginning", began as f64), ("steps", steps as f64)];
        let text =
            format!("more than one privilege is left after {steps} steps; give more --steps");
        return Ok((counts, Some(text)));
    }
    let mut counts = vec![
        ("privileges in the beginning", began as f64),
        ("steps", steps as f64),
        ("steps until one privilege is left", home as f64),
        ("visits of it to each machine since then, at least", fewest(&visits) as f64),
    ];
    let most = (n <= MOST_EXPLORED).then(|| explore(rule, n, daemon.daemon())).flatten();
    let most = most.and_then(|verdict| verdict.moves).map(u64::from);
    counts.extend(most.map(|most| ("the most steps until then, in any run", most as f64)));
    let late = most.filter(|most| home > *most);
    let wrong = late.map(|most| format!("two privileges after {home} steps, not {most}"));
    Ok((counts, wrong))
}

fn fewest(visits: &[u64]) -> u64 {
    visits.iter().copied().min().unwrap_or(0)
}

/// A ring in some state.
struct MovingRing<R> {
    rule: R,
    machines: Vec<Word>,
}

impl<R: Rule> MovingRing<R> {
    /// A ring in any of its states.
    fn draw(rule: R, n: usize, dice: &mut Dice) -> Self {
        let machine = |i| {
            let me = Process { i, n };
            let states: Vec<Word> =
                (0..rule.states()).filter(|state| rule.admits(me, *state)).collect();
            states[dice.below(states.len())]
        };
        Self { rule, machines: (0..n).map(machine).collect() }
    }

    /// The moves that a machine may make.
    fn moves(&self, i: usize) -> Vec<Word> {
        let me = Process { i, n: self.machines.len() };
        let left = self.machines[me.before(i)];
        let view = View { left, own: self.machines[i], right: self.machines[me.after(i)] };
        self.rule.moves(me, view).into_iter().flatten().collect()
    }

    /// The machines that may move.
    fn privileged(&self) -> Vec<usize> {
        (0..self.machines.len()).filter(|i| !self.moves(*i).is_empty()).collect()
    }

    /// Let one of these machines move, or some of them at once.
    fn advance(&mut self, privileged: &[usize], daemon: DaemonName, dice: &mut Dice) {
        let first = privileged[dice.below(privileged.len())];
        let several = daemon == DaemonName::Distributed;
        let moving = privileged.iter().filter(|i| **i == first || (several && dice.below(2) == 0));
        let moving: Vec<usize> = moving.copied().collect();
        let moved = moving.into_iter().map(|i| {
            let moves = self.moves(i);
            (i, moves[dice.below(moves.len())])
        });
        for (i, state) in moved.collect::<Vec<_>>() {
            self.machines[i] = state;
        }
    }
}
