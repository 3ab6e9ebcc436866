//! Work shared among threads, with results that do not depend on which thread did what.

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// Start the threads of a search, which stay until its end: a round takes milliseconds, and
/// starting threads for each round would take a good part of that. `None` if one thread is enough,
/// or if no more can be started.
pub(crate) fn thread_pool(threads: usize) -> Option<ThreadPool> {
    let pool = || ThreadPoolBuilder::new().num_threads(threads).build().ok();
    (threads > 1).then(pool).flatten()
}

/// Do `work` on every item and return the results in the order of the items. Unless `alone`, the
/// items are shared among the threads of the pool that this thread belongs to.
pub(crate) fn share<T: Send, R: Send>(
    alone: bool,
    items: Vec<T>,
    work: impl Fn(T) -> R + Sync + Send,
) -> Vec<R> {
    if alone {
        return items.into_iter().map(work).collect();
    }
    items.into_par_iter().with_max_len(1).map(work).collect()
}
