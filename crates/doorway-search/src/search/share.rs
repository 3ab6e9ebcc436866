//! Work shared among threads, with results that do not tell who did what.

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// So many threads that stay for the whole search: one round is over in milliseconds, and to start
/// threads for each would take a good part of that. None if one is enough, or no more are given.
pub(super) fn crew(threads: usize) -> Option<ThreadPool> {
    let pool = || ThreadPoolBuilder::new().num_threads(threads).build().ok();
    (threads > 1).then(pool).flatten()
}

/// Do the same to every item, shared among the crew whose thread this is unless `alone`; the
/// results come in the order of the items.
pub(super) fn share<T: Send, R: Send>(
    alone: bool,
    items: Vec<T>,
    work: impl Fn(T) -> R + Sync + Send,
) -> Vec<R> {
    if alone {
        return items.into_iter().map(work).collect();
    }
    items.into_par_iter().with_max_len(1).map(work).collect()
}
