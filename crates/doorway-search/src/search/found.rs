//! What a round of a search finds, first by chunks of states, then by shards of the table.

use std::hint::black_box;

use super::layer::Part;
use crate::model::{ModelViolation, Tag};
use crate::table::Table;

/// The number of unknown states whose slots are touched before they are put in, so that the memory
/// is waited for once.
const AHEAD: usize = 128;

/// What the expansion of one chunk has found.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) steps: u64,
    pub(super) degrees: Vec<u32>,
    pub(super) targets: Vec<u32>,
    pub(super) tags: Vec<Tag>,
    pub(super) unknown: Vec<Unknown>,
    /// The nearest violation, and the state at which it is.
    pub(super) wrong: Option<(ModelViolation, u32)>,
}

/// Successors in one shard that were unknown when the round began.
#[derive(Default)]
pub(super) struct Unknown {
    pub(super) rows: Vec<u32>,
    pub(super) prints: Vec<u64>,
    pub(super) sources: Vec<u32>,
    /// The position of the step that leads to each, among those of its source.
    pub(super) ordinals: Vec<u32>,
    /// The step of the batch that leads to each, if steps are recorded.
    pub(super) edges: Vec<usize>,
}

/// The states of a shard that are new in this round.
pub(super) struct Fresh {
    pub(super) part: Part,
    pub(super) sources: Vec<u32>,
    pub(super) ordinals: Vec<u32>,
    /// If steps are recorded: the slot of each.
    pub(super) places: Vec<usize>,
    /// If steps are recorded: for each unknown successor in turn, which of these states it is.
    pub(super) which: Vec<u32>,
}

/// Put what the batches found for this shard into its table, in their order.
pub(super) fn put_in(
    table: &mut Table,
    shard: usize,
    width: usize,
    record: bool,
    batches: &[Batch],
) -> Fresh {
    let unknown = || batches.iter().map(|batch| &batch.unknown[shard]);
    let count = unknown().map(|unknown| unknown.prints.len()).sum();
    table.reserve(count);
    let mut fresh = Fresh {
        part: Part::default(),
        sources: Vec::new(),
        ordinals: Vec::new(),
        places: Vec::new(),
        which: Vec::with_capacity(if record { count } else { 0 }),
    };
    for unknown in unknown() {
        for (nth, print) in unknown.prints.iter().enumerate() {
            if nth % AHEAD == 0 {
                let ahead = unknown.prints[nth..].iter().take(AHEAD);
                black_box(ahead.fold(0, |seen, print| seen ^ table.glance(*print)));
            }
            let number = fresh.sources.len() as u32;
            match table.insert(*print, number) {
                Ok(place) if record => fresh.which.push(*table.number(place)),
                Ok(_) => {}
                Err(place) => {
                    if record {
                        fresh.which.push(number);
                        fresh.places.push(place);
                    }
                    fresh.sources.push(unknown.sources[nth]);
                    fresh.ordinals.push(unknown.ordinals[nth]);
                    fresh.part.prints.push(*print);
                    let row = &unknown.rows[nth * width..(nth + 1) * width];
                    fresh.part.rows.extend_from_slice(row);
                }
            }
        }
    }
    fresh.part.rows.shrink_to_fit();
    fresh.part.prints.shrink_to_fit();
    fresh
}
