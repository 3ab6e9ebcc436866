//! Work shared among threads, with results that do not tell who did what.

use std::sync::Mutex;
use std::thread;

/// Do the same to every item, on several threads; the results come in the order of the items.
pub(super) fn share<T: Send, R: Send>(
    threads: usize,
    items: Vec<T>,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    if threads < 2 || items.len() < 2 {
        return items.into_iter().map(work).collect();
    }
    let workers = threads.min(items.len());
    let items = Mutex::new(items.into_iter().enumerate());
    let take = || items.lock().expect("no thread panics").next();
    let labour = || {
        let mut done = Vec::new();
        while let Some((nth, item)) = take() {
            done.push((nth, work(item)));
        }
        done
    };
    let mut results = thread::scope(|scope| {
        let others: Vec<_> = (1..workers).map(|_| scope.spawn(labour)).collect();
        let mut results = labour();
        for other in others {
            results.extend(other.join().expect("no thread panics"));
        }
        results
    });
    results.sort_unstable_by_key(|(nth, _)| *nth);
    results.into_iter().map(|(_, result)| result).collect()
}
