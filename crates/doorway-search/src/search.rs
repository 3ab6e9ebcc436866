//! Breadth-first search over the states of a [`Model`], on all cores. The result is the same on any
//! number of cores: rounds and shards are fixed, and only the threads that work on them differ.

mod found;
mod layer;
#[cfg(test)]
mod tests;

use std::hint::black_box;
use std::ops::Range;

use super::graph::{Graph, NOWHERE};
use super::model::{Model, NOT_FOLLOWED, Successors, Wrong};
use super::share::{share, thread_pool};
use super::table::Table;
use found::{Batch, Fresh, Unknown, put_in};
use layer::{Layer, Part};

/// How far a search goes, and what it keeps.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    /// Give up if there are more states than this.
    pub limit: u64,
    /// The number of threads.
    pub threads: usize,
    /// Whether to keep the graph of all steps, for questions about infinite runs.
    pub record: bool,
}

/// How far a search has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Different states found.
    pub states: u64,
    /// Steps taken, including those to known states.
    pub steps: u64,
    /// The distance of the farthest state from the first, in steps.
    pub depth: u32,
    /// The most memory that was in use, in bytes.
    pub bytes: u64,
}

/// How a search ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Every state was visited, and there is no violation.
    Exhausted,
    /// A violation was found. These are the steps of a shortest path to it, each by its position
    /// among the successors of its state.
    Wrong(Vec<u32>),
    /// There are more states than the limit, and no violation so far.
    Limit,
    /// The `watch` function asked to stop.
    Stopped,
}

/// The number of shards of the table of states. It is fixed so that the numbers of states do not
/// depend on the number of threads: a state is numbered by the round and the shard in which it is
/// found, and within these by the number of the state that leads to it.
const SHARDS: usize = 16;
/// The most states of a round. All of them are expanded before their successors are put into the
/// table.
const ROUND: usize = 1 << 15;
/// The number of chunks of a round for each thread. Several, so that no thread waits long for
/// another at the end of the round.
const CHUNKS_PER_THREAD: usize = 8;
/// The most states of a chunk, the part of a round that a thread takes at a time.
const MOST_IN_CHUNK: usize = 2048;
/// The least states of a chunk. One thread is done with fewer before the others are awake, so a
/// smaller round is not shared.
const LEAST_IN_CHUNK: usize = 512;

/// The number of states that are expanded before their successors are looked up together, which
/// hides the latency of the memory.
const GROUP: usize = 32;
/// The most words of all successors of a round together (256 megabytes). A state is taken to have
/// as many successors as its row has words.
const ROUND_WORDS: usize = 1 << 26;

/// The most states and recorded steps. They have numbers of 32 bits, and no round adds more than
/// are left above this.
const MOST_NUMBERS: u64 = u32::MAX as u64 - ((ROUND as u64) << 10);

/// A search of a model, and what it has found so far.
pub struct Search<'m> {
    model: &'m dyn Model,
    scope: Scope,
    shards: Vec<Table>,
    /// The state from which each state was first reached; the first state's is itself.
    parents: Vec<u32>,
    /// The end of each layer after the first: the number of the first state beyond it.
    layers: Vec<u32>,
    graph: Graph,
    progress: Progress,
}

impl<'m> Search<'m> {
    /// Prepare a search. Nothing is visited yet.
    pub fn new(model: &'m dyn Model, scope: Scope) -> Self {
        let shards = (0..SHARDS).map(|_| Table::new()).collect();
        let progress = Progress::default();
        let (parents, layers, graph) = (Vec::new(), Vec::new(), Graph::default());
        Self { model, scope, shards, parents, layers, graph, progress }
    }

    /// Visit all states. After each round `watch` is told the progress; if it returns `false`, the
    /// search stops.
    pub fn run(&mut self, watch: &mut dyn FnMut(&Progress) -> bool) -> End {
        let (rows, print) = self.model.first();
        let print = print.max(1);
        let pool = thread_pool(self.scope.threads);
        self.shards[shard(print)].reserve(1);
        let _ = self.shards[shard(print)].insert(print, 0);
        self.parents.push(0);
        self.progress.states = 1;
        let mut layer = Layer { parts: vec![Part { begin: 0, rows, prints: vec![print] }] };
        loop {
            let mut next = Layer::default();
            let mut wrong: Option<(Wrong, u32)> = None;
            let numbers = layer.numbers();
            for from in numbers.clone().step_by(self.round_size()) {
                let to = numbers.end.min(from + self.round_size() as u32);
                let found = match &pool {
                    Some(pool) if to - from > LEAST_IN_CHUNK as u32 => {
                        pool.install(|| self.round(false, &layer, from..to, &mut next))
                    }
                    _ => self.round(true, &layer, from..to, &mut next),
                };
                // A broken state is nearer than a broken step of the same layer.
                wrong = [wrong, found].into_iter().flatten().min();
                self.progress.bytes = self.progress.bytes.max(self.bytes(&layer, &next));
                let end = if !watch(&self.progress) {
                    End::Stopped
                } else if self.is_beyond_limit() {
                    End::Limit
                } else if matches!(wrong, Some((Wrong::State, _))) {
                    break; // Nothing is nearer.
                } else {
                    continue;
                };
                // A violation that was found is reported even if another may be one step nearer.
                if wrong.is_none() {
                    return end;
                }
                break;
            }
            if let Some((what, state)) = wrong {
                return End::Wrong(self.way(state).into_iter().chain(what.step()).collect());
            }
            if next.parts.is_empty() {
                return End::Exhausted;
            }
            self.progress.depth += 1;
            self.layers.push(self.parents.len() as u32);
            layer = next;
        }
    }

    /// The number of states that are expanded in one round.
    fn round_size(&self) -> usize {
        (ROUND_WORDS / self.model.width().pow(2).max(1)).clamp(1, ROUND)
    }

    /// The number of states that a thread takes at a time, in a round of this size.
    fn chunk(&self, alone: bool, round: usize) -> usize {
        let chunks = if alone { 1 } else { self.scope.threads * CHUNKS_PER_THREAD };
        round.div_ceil(chunks).clamp(LEAST_IN_CHUNK, MOST_IN_CHUNK)
    }

    fn is_beyond_limit(&self) -> bool {
        self.progress.states > self.scope.limit.min(MOST_NUMBERS)
            || (self.scope.record && self.progress.steps > MOST_NUMBERS)
    }

    /// Expand the states with these numbers.
    fn round(
        &mut self,
        alone: bool,
        layer: &Layer,
        numbers: Range<u32>,
        next: &mut Layer,
    ) -> Option<(Wrong, u32)> {
        let chunk = self.chunk(alone, numbers.len());
        let to = numbers.end;
        let chunks = numbers.step_by(chunk).map(|at| at..to.min(at + chunk as u32)).collect();
        let mut batches = share(alone, chunks, |numbers| self.expand(layer, numbers));

        let width = self.model.width();
        let shards = self.shards.iter_mut().enumerate().collect();
        let fresh: Vec<Fresh> =
            share(alone, shards, |(shard, table)| put_in(table, shard, width, &batches));

        let mut bases = Vec::new();
        for (table, Fresh { places, sources, .. }) in self.shards.iter_mut().zip(&fresh) {
            let base = self.parents.len() as u32;
            for place in places {
                *table.number(*place) += base;
            }
            self.parents.extend_from_slice(sources);
            bases.push(base);
        }
        self.progress.states = self.parents.len() as u64;
        self.progress.steps += batches.iter().map(|batch| batch.steps).sum::<u64>();
        if self.scope.record {
            self.record(&mut batches, &fresh, &bases);
        }
        for (Fresh { part, .. }, begin) in fresh.into_iter().zip(bases) {
            if !part.prints.is_empty() {
                next.parts.push(Part { begin, ..part });
            }
        }
        batches.iter().filter_map(|batch| batch.wrong).min()
    }

    fn expand(&self, layer: &Layer, numbers: Range<u32>) -> Batch {
        let mut group: [Successors; GROUP] = Default::default();
        let mut batch = Batch::default();
        batch.unknown.resize_with(SHARDS, Unknown::default);
        for (begin, rows, prints) in layer.groups(self.model.width(), numbers) {
            let group = &mut group[..prints.len()];
            group.iter_mut().for_each(Successors::clear);
            self.model.expand_all(rows, prints, group);
            let prints = group.iter().flat_map(Successors::prints);
            black_box(prints.fold(0, |seen, print| seen ^ self.shards[shard(print)].glance(print)));
            for (number, successors) in (begin..).zip(group.iter()) {
                self.sort_out(number, successors, &mut batch);
            }
        }
        batch
    }

    /// Sort the successors of a state into known and unknown ones.
    fn sort_out(&self, number: u32, successors: &Successors, batch: &mut Batch) {
        batch.steps += successors.len() as u64;
        if let Some(what) = successors.wrong() {
            let wrong = Some((what, number));
            batch.wrong = [batch.wrong, wrong].into_iter().flatten().min();
        }
        for (print, tag, row) in successors.iter(self.model.width()) {
            let known = match print {
                NOT_FOLLOWED => Some(NOWHERE),
                _ => self.shards[shard(print)].find(print),
            };
            if known.is_none() {
                let unknown = &mut batch.unknown[shard(print)];
                unknown.rows.extend_from_slice(row);
                unknown.prints.push(print);
                unknown.sources.push(number);
                if self.scope.record {
                    unknown.edges.push(batch.targets.len());
                }
            }
            if self.scope.record {
                batch.targets.push(known.unwrap_or(NOWHERE));
                batch.tags.push(tag);
            }
        }
        if self.scope.record {
            batch.degrees.push(successors.len() as u32);
        }
    }

    /// Record the steps of a round, now that all successors have numbers.
    fn record(&mut self, batches: &mut [Batch], fresh: &[Fresh], bases: &[u32]) {
        // Reserve everything at once, so that the memory in use does not depend on how the round
        // was shared among threads.
        let states = batches.iter().map(|batch| batch.degrees.len()).sum();
        self.graph.reserve(states, batches.iter().map(|batch| batch.targets.len()).sum());
        let mut which: Vec<_> = fresh.iter().map(|fresh| fresh.which.iter()).collect();
        for batch in batches {
            for ((unknown, which), base) in batch.unknown.iter().zip(&mut which).zip(bases) {
                for (edge, nth) in unknown.edges.iter().zip(which) {
                    batch.targets[*edge] = base + nth;
                }
            }
            self.graph.extend(&batch.degrees, &batch.targets, &batch.tags);
        }
    }

    /// The path by which a state was first reached: each step by its position among the successors
    /// of its state.
    pub fn way(&self, mut state: u32) -> Vec<u32> {
        let mut stops = vec![];
        while state != 0 {
            stops.push(state);
            state = self.parents[state as usize];
        }
        let (mut row, mut print) = self.model.first();
        let mut way = Vec::new();
        let mut successors = Successors::default();
        for stop in stops.into_iter().rev() {
            successors.clear();
            self.model.expand(&row, print, &mut successors);
            let is_stop = |print: u64| self.shards[shard(print)].find(print) == Some(stop);
            let mut numbered = (0..).zip(successors.iter(self.model.width()));
            let (ordinal, (there, _, found)) = numbered
                .find(|(_, (print, ..))| is_stop(*print))
                .expect("a parent leads to its child");
            way.push(ordinal);
            (row, print) = (found.to_vec(), there);
        }
        way
    }

    /// Visit all states once more, in the order of their numbers, each with its number and its row.
    /// This needs a search that has recorded the graph.
    pub fn revisit(&self, visit: &mut dyn FnMut(u32, &[u32])) {
        let width = self.model.width();
        let (mut rows, print) = self.model.first();
        let mut prints = vec![print.max(1)];
        let mut successors = Successors::default();
        let mut ends = self.layers.iter().copied();
        let mut begin = 0;
        while !prints.is_empty() {
            let end = begin + prints.len() as u32;
            let beyond = ends.next().unwrap_or(end);
            let size = (beyond - end) as usize;
            let mut next = (vec![0; size * width], vec![0; size]);
            for (number, (row, print)) in (begin..).zip(rows.chunks_exact(width).zip(&prints)) {
                visit(number, row);
                successors.clear();
                self.model.expand(row, *print, &mut successors);
                let steps = successors.iter(width).enumerate();
                for (ordinal, (print, _, row)) in steps.filter(|(_, step)| step.0 != NOT_FOLLOWED) {
                    let target = self.graph.step(number, ordinal as u32).0;
                    if target >= end {
                        let at = (target - end) as usize;
                        next.0[at * width..(at + 1) * width].copy_from_slice(row);
                        next.1[at] = print;
                    }
                }
            }
            (rows, prints) = next;
            begin = end;
        }
    }

    /// How far the search has come.
    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// The graph of all steps. It is empty unless [`Scope::record`] is set.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    fn bytes(&self, layer: &Layer, next: &Layer) -> u64 {
        let tables: u64 = self.shards.iter().map(Table::bytes).sum();
        let states = layer.bytes() + next.bytes() + self.parents.capacity() * 4;
        tables + self.graph.bytes() + states as u64
    }
}

/// The shard of a fingerprint: chosen by the low bits, since the table within it uses the high
/// ones.
fn shard(print: u64) -> usize {
    print as usize % SHARDS
}
