//! Semaphores under real threads: no unit is lost or doubled, and no thread sleeps for ever.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use doorway_threads::Semaphore;

/// Long enough for any of these threads to end, if it ends at all.
const PATIENCE: Duration = Duration::from_mins(1);

/// Run `threads`, and fail instead of waiting for ever for one that sleeps on.
fn all_end(threads: Vec<Box<dyn FnOnce() + Send>>) {
    let (ended, ends) = mpsc::channel();
    let begin = Arc::new(Barrier::new(threads.len()));
    let handles: Vec<_> = threads
        .into_iter()
        .map(|run| {
            let (begin, ended) = (Arc::clone(&begin), ended.clone());
            thread::spawn(move || {
                begin.wait();
                run();
                let _ = ended.send(());
            })
        })
        .collect();
    drop(ended);
    for _ in &handles {
        match ends.recv_timeout(PATIENCE) {
            // A thread that panicked sends nothing; `join` reports its message.
            Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => {}
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("a thread sleeps for ever"),
        }
    }
    for handle in handles {
        handle.join().expect("what it says itself");
    }
}

/// Whether there is exactly this number of units, and no thread waits or has been given one.
fn has(semaphore: &Semaphore, units: usize) -> bool {
    format!("{semaphore:?}") == format!("{:?}", Semaphore::new(units))
}

/// Run `threads` threads, each of which does the work `times` times.
fn repeated(
    threads: usize,
    times: usize,
    what: impl Fn() + Send + Sync + 'static,
) -> Vec<Box<dyn FnOnce() + Send>> {
    let what = Arc::new(what);
    (0..threads)
        .map(|_| {
            let what = Arc::clone(&what);
            Box::new(move || (0..times).for_each(|_| what())) as Box<dyn FnOnce() + Send>
        })
        .collect()
}

/// Givers never wait, so takers fall asleep and are woken in all possible ways. A lost unit would
/// leave one of them asleep.
#[test]
fn every_unit_that_is_given_is_taken() {
    for (givers, takers) in [(1, 1), (2, 2), (3, 3), (1, 4), (4, 1)] {
        let units = Arc::new(Semaphore::new(0));
        let each = 30_000;
        let (up, down) = (Arc::clone(&units), Arc::clone(&units));
        let mut threads = repeated(givers, each / givers, move || up.up());
        threads.extend(repeated(takers, each / takers, move || down.down()));
        all_end(threads);
        assert!(has(&units, 0), "{givers} give and {takers} take");
    }
}

/// Givers and takers wait for each other all the time, so that units come while others are just
/// about to sleep.
#[test]
fn neither_side_gets_ahead() {
    for (pairs, room) in [(1, 1), (2, 1), (2, 2), (3, 2), (4, 3)] {
        let (full, empty) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(room)));
        let (filled, emptied) = (Arc::clone(&full), Arc::clone(&empty));
        let (left, free) = (Arc::clone(&full), Arc::clone(&empty));
        let mut threads = repeated(pairs, 5_000, move || {
            empty.down();
            full.up();
        });
        threads.extend(repeated(pairs, 5_000, move || {
            filled.down();
            emptied.up();
        }));
        all_end(threads);
        assert!(has(&left, 0) && has(&free, room), "{pairs} pairs with room for {room}");
    }
}

/// No more threads are inside than there are units.
#[test]
fn no_more_threads_are_inside_than_there_are_units() {
    for limit in [1, 2, 3] {
        let units = Arc::new(Semaphore::new(limit));
        let (inside, most) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
        let (gate, seen) = (Arc::clone(&units), Arc::clone(&most));
        all_end(repeated(4, 5_000, move || {
            gate.down();
            seen.fetch_max(inside.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            thread::yield_now();
            inside.fetch_sub(1, Ordering::Relaxed);
            gate.up();
        }));
        assert!(most.load(Ordering::Relaxed) <= limit, "{limit} units");
        assert!(has(&units, limit), "{limit} units");
    }
}

#[test]
fn units_beyond_the_most_are_not_counted() {
    let units = Semaphore::new(Semaphore::MOST);
    units.up();
    units.down();
    assert!(units.try_down());
}
