//! Breadth-first search over the states of a [`Model`], on all cores, with the same result on any
//! number of them: chunks and shards are fixed, and only who works on them differs.

mod share;
#[cfg(test)]
mod tests;

use std::hint::black_box;

use super::graph::{Graph, NOWHERE};
use super::model::{Model, NOT_FOLLOWED, Successors, Tag, Wrong};
use super::table::Table;
use share::share;

/// How far to go, and what to keep.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    /// Give up beyond so many states.
    pub limit: u64,
    /// How many threads work.
    pub threads: usize,
    /// Keep every step, for what is said about endless runs?
    pub record: bool,
}

/// How a search stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Distinct states found.
    pub states: u64,
    /// Steps taken, to known states too.
    pub steps: u64,
    /// How many steps the farthest state is from the first.
    pub depth: u32,
    /// How many bytes were kept at most.
    pub bytes: u64,
}

/// How a search ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Every state was seen, and nothing is wrong.
    Exhausted,
    /// The shortest way to something wrong: the ordinal of each step among its state's successors.
    Wrong(Vec<u32>),
    /// There are more states than the limit.
    Limit,
    /// Whoever watched said stop.
    Stopped,
}

/// Fixed, so that numbers do not depend on the threads.
const SHARDS: usize = 16;
const CHUNK: usize = 2048;
const CHUNKS_PER_ROUND: usize = 16;

/// So many states are expanded before their successors are looked up, all at once.
const GROUP: usize = 32;
/// So many unknown states are looked up at once before they are put in.
const AHEAD: usize = 128;
/// A state has up to about as many successors as its row has words, and all those of a round are
/// kept at once: so many words of a chunk at most, 256 megabytes of a round.
const CHUNK_WORDS: usize = 1 << 22;

/// States and kept steps have numbers of 32 bits; no round adds more than are spared here.
const MOST_NUMBERS: u64 = u32::MAX as u64 - (((CHUNK * CHUNKS_PER_ROUND) as u64) << 10);

/// A search, and what it has found.
pub struct Search<'m> {
    model: &'m dyn Model,
    scope: Scope,
    shards: Vec<Table>,
    /// From where each state was first reached; the first from itself.
    parents: Vec<u32>,
    /// Where the layers after the first end.
    layers: Vec<u32>,
    graph: Graph,
    progress: Progress,
}

/// States that are equally far from the first, as rows and fingerprints.
#[derive(Default)]
struct Layer {
    begin: u32,
    rows: Vec<u32>,
    prints: Vec<u64>,
}

/// What the expansion of one chunk gave.
#[derive(Default)]
struct Batch {
    steps: u64,
    degrees: Vec<u32>,
    targets: Vec<u32>,
    tags: Vec<Tag>,
    unknown: Vec<Unknown>,
    /// What is wrong, and at which state.
    wrong: Option<(Wrong, u32)>,
}

/// Successors in one shard that were unknown when their chunk began.
#[derive(Default)]
struct Unknown {
    rows: Vec<u32>,
    prints: Vec<u64>,
    sources: Vec<u32>,
    /// Which step of the batch leads there.
    edges: Vec<usize>,
}

/// The states that a shard had not seen before this round.
struct Fresh {
    layer: Layer,
    sources: Vec<u32>,
    places: Vec<usize>,
    /// For each unknown successor in turn, which of them it is.
    which: Vec<u32>,
}

impl<'m> Search<'m> {
    /// A search that has not begun.
    pub fn new(model: &'m dyn Model, scope: Scope) -> Self {
        let shards = (0..SHARDS).map(|_| Table::new()).collect();
        let progress = Progress::default();
        let (parents, layers, graph) = (Vec::new(), Vec::new(), Graph::default());
        Self { model, scope, shards, parents, layers, graph, progress }
    }

    /// Go through all states, telling `watch` now and then, until it says `false`.
    pub fn run(&mut self, watch: &mut dyn FnMut(&Progress) -> bool) -> End {
        let (rows, print) = self.model.first();
        let print = print.max(1);
        self.shards[shard(print)].reserve(1);
        let _ = self.shards[shard(print)].insert(print, 0);
        self.parents.push(0);
        self.progress.states = 1;
        let mut layer = Layer { begin: 0, rows, prints: vec![print] };
        loop {
            let begin = layer.begin + layer.prints.len() as u32;
            let mut next = Layer { begin, ..Layer::default() };
            let mut wrong: Option<(Wrong, u32)> = None;
            for from in (0..layer.prints.len()).step_by(self.chunk() * CHUNKS_PER_ROUND) {
                let found = self.round(&layer, from, &mut next);
                // A wrong state is nearer than a wrong step of its layer.
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
                // What was found is told even if something may be one step nearer.
                if wrong.is_none() {
                    return end;
                }
                break;
            }
            if let Some((what, state)) = wrong {
                return End::Wrong(self.way(state).into_iter().chain(what.step()).collect());
            }
            if next.prints.is_empty() {
                return End::Exhausted;
            }
            self.progress.depth += 1;
            self.layers.push(self.parents.len() as u32);
            layer = next;
        }
    }

    /// How many states are expanded in one go.
    fn chunk(&self) -> usize {
        (CHUNK_WORDS / self.model.width().pow(2).max(1)).clamp(1, CHUNK)
    }

    fn is_beyond_limit(&self) -> bool {
        self.progress.states > self.scope.limit.min(MOST_NUMBERS)
            || (self.scope.record && self.progress.steps > MOST_NUMBERS)
    }

    /// Expand the chunks of a layer that begin at `from`.
    fn round(&mut self, layer: &Layer, from: usize, next: &mut Layer) -> Option<(Wrong, u32)> {
        let chunk = self.chunk();
        let to = layer.prints.len().min(from + chunk * CHUNKS_PER_ROUND);
        let chunks: Vec<_> = (from..to).step_by(chunk).map(|at| (at, to.min(at + chunk))).collect();
        let threads = if chunks.len() == 1 { 1 } else { self.scope.threads };
        let mut batches = share(threads, chunks, |(begin, end)| self.expand(layer, begin, end));

        let width = self.model.width();
        let shards = self.shards.iter_mut().enumerate().collect();
        let fresh: Vec<Fresh> =
            share(threads, shards, |(shard, table)| put_in(table, shard, width, &batches));

        let mut bases = Vec::new();
        let mut base = self.parents.len() as u32;
        for Fresh { sources, .. } in &fresh {
            bases.push(base);
            base += sources.len() as u32;
        }
        let numbered = self.shards.iter_mut().zip(&fresh).zip(&bases).collect();
        share(threads, numbered, |((table, fresh), base)| {
            for place in &fresh.places {
                *table.number(*place) += base;
            }
        });
        for found in &fresh {
            next.rows.extend_from_slice(&found.layer.rows);
            next.prints.extend_from_slice(&found.layer.prints);
            self.parents.extend_from_slice(&found.sources);
        }
        self.progress.states = u64::from(base);
        self.progress.steps += batches.iter().map(|batch| batch.steps).sum::<u64>();
        if self.scope.record {
            self.record(&mut batches, &fresh, &bases);
        }
        batches.iter().filter_map(|batch| batch.wrong).min()
    }

    fn expand(&self, layer: &Layer, begin: usize, end: usize) -> Batch {
        let width = self.model.width();
        let mut group: [Successors; GROUP] = Default::default();
        let mut batch = Batch::default();
        batch.unknown.resize_with(SHARDS, Unknown::default);
        for from in (begin..end).step_by(GROUP) {
            let group = &mut group[..GROUP.min(end - from)];
            let to = from + group.len();
            group.iter_mut().for_each(Successors::clear);
            let rows = &layer.rows[from * width..to * width];
            self.model.expand_all(rows, &layer.prints[from..to], group);
            let prints = group.iter().flat_map(Successors::prints);
            black_box(prints.fold(0, |seen, print| seen ^ self.shards[shard(print)].glance(print)));
            for (at, successors) in (from..).zip(group.iter()) {
                self.sort_out(layer.begin + at as u32, successors, &mut batch);
            }
        }
        batch
    }

    /// Tell the known successors of a state from the unknown.
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

    /// Now that all successors have numbers, write their steps down.
    fn record(&mut self, batches: &mut [Batch], fresh: &[Fresh], bases: &[u32]) {
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

    /// The ordinals of the steps by which a state was first reached.
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

    /// Go through all states once more, each with its number and its row.
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

    /// How it stands.
    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// The steps, if they were to be kept.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    fn bytes(&self, layer: &Layer, next: &Layer) -> u64 {
        let rows = (layer.rows.capacity() + next.rows.capacity()) * 4;
        let prints = (layer.prints.capacity() + next.prints.capacity()) * 8;
        let tables: u64 = self.shards.iter().map(Table::bytes).sum();
        tables + self.graph.bytes() + (rows + prints + self.parents.capacity() * 4) as u64
    }
}

/// Put what the batches found for this shard into its table, in their order.
fn put_in(table: &mut Table, shard: usize, width: usize, batches: &[Batch]) -> Fresh {
    let unknown = || batches.iter().map(|batch| &batch.unknown[shard]);
    let count = unknown().map(|unknown| unknown.prints.len()).sum();
    table.reserve(count);
    let mut fresh = Fresh {
        layer: Layer::default(),
        sources: Vec::new(),
        places: Vec::new(),
        which: Vec::with_capacity(count),
    };
    for unknown in unknown() {
        for (nth, print) in unknown.prints.iter().enumerate() {
            if nth % AHEAD == 0 {
                let ahead = unknown.prints[nth..].iter().take(AHEAD);
                black_box(ahead.fold(0, |seen, print| seen ^ table.glance(*print)));
            }
            let number = fresh.sources.len() as u32;
            match table.insert(*print, number) {
                Ok(place) => fresh.which.push(*table.number(place)),
                Err(place) => {
                    fresh.which.push(number);
                    fresh.places.push(place);
                    fresh.sources.push(unknown.sources[nth]);
                    fresh.layer.prints.push(*print);
                    let row = &unknown.rows[nth * width..(nth + 1) * width];
                    fresh.layer.rows.extend_from_slice(row);
                }
            }
        }
    }
    fresh
}

/// The low bits choose the shard; the table goes by the high ones.
fn shard(print: u64) -> usize {
    print as usize % SHARDS
}
