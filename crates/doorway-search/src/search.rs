//! Breadth-first search over the states of a [`Model`], on all cores. The result is the same on any
//! number of cores: rounds and shards are fixed, and only the threads that work on them differ.

mod file;
mod found;
mod kept;
mod layer;
#[cfg(test)]
mod tests;
mod ways;

use std::hint::black_box;
use std::ops::Range;

use super::graph::{Graph, NOWHERE};
use super::model::{Model, ModelViolation, NOT_FOLLOWED, Successors};
use super::share::{share, thread_pool};
use super::table::Table;
pub use file::KeptSearch;
use found::{Batch, Fresh, Unknown, put_in};
pub use kept::KeptError;
use layer::{Layer, Part};
use ways::Ways;

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
    /// How each state was first reached. What is said of the first state has no meaning.
    ways: Ways,
    /// The end of each layer after the first: the number of the first state beyond it.
    layers: Vec<u32>,
    /// The number of states that have been expanded.
    expanded: u32,
    /// If the search has stopped: the states that are not expanded, the rest of a layer and what
    /// was found of the next.
    open: Option<(Layer, Layer)>,
    graph: Graph,
    progress: Progress,
}

impl<'m> Search<'m> {
    /// Prepare a search. Nothing is visited yet.
    pub fn new(model: &'m dyn Model, scope: Scope) -> Self {
        let table = if scope.record { Table::numbered } else { Table::plain };
        let shards = (0..SHARDS).map(|_| table()).collect();
        Self {
            model,
            scope,
            shards,
            ways: Ways::default(),
            layers: Vec::new(),
            expanded: 0,
            open: None,
            graph: Graph::default(),
            progress: Progress::default(),
        }
    }

    /// Visit all states. After each round `watch` is told the progress; if it returns `false`, the
    /// search stops. If the search has stopped before, it goes on there.
    pub fn run(&mut self, watch: &mut dyn FnMut(&Progress) -> bool) -> End {
        let pool = thread_pool(self.scope.threads);
        let (mut layer, mut next) = self.open.take().unwrap_or_else(|| self.first());
        loop {
            let mut wrong: Option<(ModelViolation, u32)> = None;
            let numbers = layer.numbers();
            for from in numbers.clone().step_by(self.round_size()) {
                let to = numbers.end.min(from + self.round_size() as u32);
                let found = match &pool {
                    Some(pool) if to - from > LEAST_IN_CHUNK as u32 => {
                        pool.install(|| self.round(false, &layer, from..to, &mut next))
                    }
                    _ => self.round(true, &layer, from..to, &mut next),
                };
                self.expanded = to;
                // A broken state is nearer than a broken step of the same layer.
                wrong = [wrong, found].into_iter().flatten().min();
                self.progress.bytes = self.progress.bytes.max(self.bytes(&layer, &next));
                layer.forget(to);
                let end = if !watch(&self.progress) {
                    End::Stopped
                } else if self.is_beyond_limit() {
                    End::Limit
                } else if matches!(wrong, Some((ModelViolation::State, _))) {
                    break; // Nothing is nearer.
                } else {
                    continue;
                };
                // A violation that was found is reported even if another may be one step nearer.
                if wrong.is_none() {
                    self.open = Some((layer, next));
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
            self.layers.push(self.ways.len());
            layer = std::mem::take(&mut next);
        }
    }

    /// The layer of the first state, and the empty one after it.
    fn first(&mut self) -> (Layer, Layer) {
        let (rows, print) = self.model.first();
        let print = print.max(1);
        self.shards[shard(print)].reserve(1);
        let _ = self.shards[shard(print)].insert(print, 0);
        self.ways.extend(&[0], &[0]);
        self.progress.states = 1;
        let part = Part { begin: 0, rows, prints: vec![print] };
        (Layer { parts: vec![part] }, Layer::default())
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
    ) -> Option<(ModelViolation, u32)> {
        let chunk = self.chunk(alone, numbers.len());
        let to = numbers.end;
        let chunks = numbers.step_by(chunk).map(|at| at..to.min(at + chunk as u32)).collect();
        let mut batches = share(alone, chunks, |numbers| self.expand(layer, numbers));

        let (width, record) = (self.model.width(), self.scope.record);
        let shards = self.shards.iter_mut().enumerate().collect();
        let fresh: Vec<Fresh> =
            share(alone, shards, |(shard, table)| put_in(table, shard, width, record, &batches));

        let mut bases = Vec::new();
        for (table, fresh) in self.shards.iter_mut().zip(&fresh) {
            let base = self.ways.len();
            for place in &fresh.places {
                *table.number(*place) += base;
            }
            self.ways.extend(&fresh.sources, &fresh.ordinals);
            bases.push(base);
        }
        self.progress.states = u64::from(self.ways.len());
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
        for (ordinal, (print, tag, row)) in (0..).zip(successors.iter(self.model.width())) {
            let known = match print {
                NOT_FOLLOWED => Some(NOWHERE),
                _ => self.shards[shard(print)].find(print),
            };
            if known.is_none() {
                let unknown = &mut batch.unknown[shard(print)];
                unknown.rows.extend_from_slice(row);
                unknown.prints.push(print);
                unknown.sources.push(number);
                unknown.ordinals.push(ordinal);
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
        let mut way = Vec::new();
        while state != 0 {
            let (source, ordinal) = self.ways.get(state);
            way.push(ordinal);
            state = source;
        }
        way.reverse();
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
        let states = layer.bytes() + next.bytes() + self.ways.bytes();
        tables + self.graph.bytes() + states as u64
    }
}

/// The shard of a fingerprint: chosen by the low bits, since the table within it uses the high
/// ones.
fn shard(print: u64) -> usize {
    print as usize % SHARDS
}
