//! Breadth-first search over the states of a [`System`].
//!
//! A state is kept only until its successors are known. After that it is a fingerprint, and the
//! number of the state and of the action that led to it. So the path to a state is found by
//! repeating these actions from the first state on.
//!
//! States are numbered in the order in which one thread would find them one after another. More
//! threads compute successors ahead, and change neither the numbers nor the report.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use super::mixer::fingerprint_of;
use super::report::{Outcome, Report};
use super::search::Progress;
use super::share::{share, thread_pool};
use super::system::System;
use super::table::Table;

/// The number of states that a thread takes at a time.
const CHUNK: usize = 64;
/// The number of chunks of a round for each thread. Several, so that no thread waits long for
/// another at the end of the round.
const CHUNKS_PER_THREAD: usize = 16;

/// The message of a panic when a path cannot be replayed.
const NOT_REPEATABLE: &str = "the same actions lead to different states: \
     a method of the system depends on something other than its arguments";

/// Visit every state that a system can reach, if there are no more than `limit`, and report how the
/// search ended.
///
/// This runs on the calling thread, so neither the system nor its states need to be [`Sync`].
pub fn explore<S: System>(system: &S, limit: u64) -> Report<S::Action, S::Violation> {
    explore_alone(system, limit, &mut |_| true)
}

fn explore_alone<S: System>(
    system: &S,
    limit: u64,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> Report<S::Action, S::Violation> {
    let exploration = Exploration::new(system, limit);
    let expand = |exploration: &Exploration<'_, S>, round: &[S::State], begin| {
        vec![exploration.expand(round, begin)]
    };
    exploration.run(CHUNK, expand, watch)
}

/// Do what [`explore`] does on several threads. The report is the same on any number of threads.
pub fn explore_on<S>(system: &S, limit: u64, threads: usize) -> Report<S::Action, S::Violation>
where
    S: System + Sync,
    S::State: Send + Sync,
    S::Violation: Send,
{
    explore_watched(system, limit, threads, &mut |_| true)
}

/// Do what [`explore_on`] does, and tell `watch` the progress now and then. If it returns `false`,
/// the search stops with [`Outcome::NotExhausted`]. The memory that the progress tells is that of
/// what is known of all states, without the states that are not yet expanded.
pub fn explore_watched<S>(
    system: &S,
    limit: u64,
    threads: usize,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> Report<S::Action, S::Violation>
where
    S: System + Sync,
    S::State: Send + Sync,
    S::Violation: Send,
{
    let Some(pool) = thread_pool(threads) else { return explore_alone(system, limit, watch) };
    let exploration = Exploration::new(system, limit);
    let expand = |exploration: &Exploration<'_, S>, round: &[S::State], begin| {
        let chunks = (begin..).step_by(CHUNK).zip(round.chunks(CHUNK)).collect();
        let alone = round.len() <= CHUNK;
        pool.install(|| share(alone, chunks, |(begin, chunk)| exploration.expand(chunk, begin)))
    };
    exploration.run(CHUNK * CHUNKS_PER_THREAD * threads, expand, watch)
}

/// A search of a system, and what it has found so far.
struct Exploration<'s, S> {
    system: &'s S,
    limit: u64,
    /// The number of each state, by its fingerprint.
    known: Table,
    /// The state from which each state was first reached, and the position of the action that led
    /// there. The first state's are not used.
    origins: Vec<(u32, u32)>,
    /// Whether each state is a goal.
    goals: Vec<bool>,
    /// The expected steps of all states that are not goals, each as its target and its source.
    backwards: Vec<(u32, u32)>,
    steps: u64,
}

/// The successors of some states, up to the first violation.
struct Batch<State, Violation> {
    steps: u64,
    /// Expected steps to known states, as in [`Exploration::backwards`].
    backwards: Vec<(u32, u32)>,
    unknown: Vec<Unknown<State>>,
    /// The violation, the state at which it happens, and the position of the action.
    violation: Option<(Violation, u32, u32)>,
}

/// A successor that was unknown when the round began.
struct Unknown<State> {
    state: State,
    print: u64,
    source: u32,
    ordinal: u32,
    /// The number of steps of the batch up to this one.
    steps: u64,
    goal: bool,
    /// Whether the step belongs into [`Exploration::backwards`].
    backwards: bool,
}

impl<'s, S: System> Exploration<'s, S> {
    fn new(system: &'s S, limit: u64) -> Self {
        Self {
            system,
            // States have numbers of 32 bits.
            limit: limit.clamp(1, u32::MAX.into()),
            known: Table::numbered(),
            origins: Vec::new(),
            goals: Vec::new(),
            backwards: Vec::new(),
            steps: 0,
        }
    }

    /// Search in rounds of this many states. `expand` computes the successors of one round, given
    /// its states and the number of the first. After each round `watch` is told the progress; if it
    /// returns `false`, the search stops.
    fn run(
        mut self,
        round: usize,
        expand: impl Fn(&Self, &[S::State], u32) -> Vec<Batch<S::State, S::Violation>>,
        watch: &mut dyn FnMut(&Progress) -> bool,
    ) -> Report<S::Action, S::Violation> {
        let first = self.system.first();
        self.add(fingerprint_of(&first), (0, 0), self.system.is_goal(&first));
        if let Err(violation) = self.system.check(&first) {
            return self.report(Outcome::Violated(violation, Vec::new()));
        }
        let mut open = VecDeque::from([first]);
        let mut begin = 0;
        while !open.is_empty() {
            let round: Vec<S::State> = open.drain(..open.len().min(round)).collect();
            for batch in expand(&self, &round, begin) {
                if let Some(outcome) = self.put_in(batch, &mut open) {
                    return self.report(outcome);
                }
            }
            begin += round.len() as u32;
            if !watch(&self.progress()) {
                return self.report(Outcome::NotExhausted);
            }
        }
        let outcome = match self.stuck() {
            Some(state) => Outcome::Stuck(self.replay(state).1),
            None => Outcome::Holds,
        };
        self.report(outcome)
    }

    /// Compute the successors of these states, whose numbers begin with `begin`.
    fn expand(&self, states: &[S::State], begin: u32) -> Batch<S::State, S::Violation> {
        let (backwards, unknown) = (Vec::new(), Vec::new());
        let mut batch = Batch { steps: 0, backwards, unknown, violation: None };
        for (source, state) in (begin..).zip(states) {
            for (ordinal, action) in (0..).zip(self.system.actions(state)) {
                batch.steps += 1;
                let backwards = !self.goals[source as usize] && self.system.is_expected(&action);
                let mut next = state.clone();
                if let Err(violation) = self.system.apply(&mut next, action) {
                    batch.violation = Some((violation, source, ordinal));
                    return batch;
                }
                let print = fingerprint_of(&next);
                if let Some(target) = self.known.find(print) {
                    batch.backwards.extend(backwards.then_some((target, source)));
                    continue;
                }
                if let Err(violation) = self.system.check(&next) {
                    batch.violation = Some((violation, source, ordinal));
                    return batch;
                }
                let goal = self.system.is_goal(&next);
                let (state, steps) = (next, batch.steps);
                let unknown = Unknown { state, print, source, ordinal, steps, goal, backwards };
                batch.unknown.push(unknown);
            }
        }
        batch
    }

    /// Give numbers to the new states of a batch, and append them to the open ones. Returns how the
    /// search ends if it ends here.
    fn put_in(
        &mut self,
        batch: Batch<S::State, S::Violation>,
        open: &mut VecDeque<S::State>,
    ) -> Option<Outcome<S::Action, S::Violation>> {
        self.backwards.extend(batch.backwards);
        for Unknown { state, print, source, ordinal, steps, goal, backwards } in batch.unknown {
            let target = match self.known.find(print) {
                Some(target) => target,
                None if self.origins.len() as u64 == self.limit => {
                    self.steps += steps;
                    return Some(Outcome::NotExhausted);
                }
                None => {
                    open.push_back(state);
                    self.add(print, (source, ordinal), goal)
                }
            };
            self.backwards.extend(backwards.then_some((target, source)));
        }
        self.steps += batch.steps;
        let (violation, source, ordinal) = batch.violation?;
        let (state, mut path) = self.replay(source);
        path.push(self.action(&state, ordinal));
        Some(Outcome::Violated(violation, path))
    }

    /// Give the next number to a new state.
    fn add(&mut self, print: u64, origin: (u32, u32), goal: bool) -> u32 {
        let number = self.origins.len() as u32;
        self.known.reserve(1);
        self.known.insert(print, number).expect_err("the state is new");
        self.origins.push(origin);
        self.goals.push(goal);
        number
    }

    /// The state with the lowest number from which no goal is reachable by expected actions.
    fn stuck(&mut self) -> Option<u32> {
        let Self { goals: reaches, backwards, .. } = self;
        backwards.sort_unstable();
        let goals = (0..).zip(&*reaches).filter(|(_, goal)| **goal);
        let mut open: Vec<u32> = goals.map(|(state, _)| state).collect();
        while let Some(target) = open.pop() {
            let begin = backwards.partition_point(|step| step.0 < target);
            let steps = backwards[begin..].iter().take_while(|step| step.0 == target);
            for (_, source) in steps {
                if !std::mem::replace(&mut reaches[*source as usize], true) {
                    open.push(*source);
                }
            }
        }
        reaches.iter().position(|reaches| !reaches).map(|state| state as u32)
    }

    /// The steps by which a state was first reached: each as the number of the state to which it
    /// leads, and the position of its action.
    fn way(&self, mut state: u32) -> Vec<(u32, u32)> {
        let mut way = Vec::new();
        while state != 0 {
            let (source, ordinal) = self.origins[state as usize];
            way.push((state, ordinal));
            state = source;
        }
        way.reverse();
        way
    }

    /// Repeat the actions by which a state was first reached. Returns the state and the actions.
    fn replay(&self, number: u32) -> (S::State, Vec<S::Action>) {
        let mut here = self.system.first();
        let mut path = Vec::new();
        for (number, ordinal) in self.way(number) {
            let action = self.action(&here, ordinal);
            let applied = self.system.apply(&mut here, action.clone());
            let found = self.known.find(fingerprint_of(&here));
            assert!(applied.is_ok() && found == Some(number), "{NOT_REPEATABLE}");
            path.push(action);
        }
        (here, path)
    }

    /// The action at this position among those of a state.
    fn action(&self, state: &S::State, ordinal: u32) -> S::Action {
        self.system.actions(state).into_iter().nth(ordinal as usize).expect(NOT_REPEATABLE)
    }

    fn report(&self, outcome: Outcome<S::Action, S::Violation>) -> Report<S::Action, S::Violation> {
        let Progress { states, steps, depth, .. } = self.progress();
        Report { outcome, states, steps, depth: depth as usize }
    }

    fn progress(&self) -> Progress {
        let states = self.origins.len() as u32;
        // No state is farther from the first than the one that was found last.
        let depth = self.way(states - 1).len() as u32;
        let lists = (self.origins.capacity() + self.backwards.capacity()) * size_of::<(u32, u32)>();
        let bytes = self.known.bytes() + (lists + self.goals.capacity()) as u64;
        Progress { states: states.into(), steps: self.steps, depth, bytes }
    }
}
