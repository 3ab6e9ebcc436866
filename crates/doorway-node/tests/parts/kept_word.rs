//! The word of a kept lock by Rust's memory model, as loom has it: while its client
//! enters and leaves, another thread revokes it or takes it.

use std::sync::atomic::Ordering;

use doorway_node::locks::{AtomicByte, KeptWord};
use loom::cell::UnsafeCell;
use loom::model::Builder;
use loom::sync::atomic::AtomicU8;
use loom::sync::{Arc, Mutex};
use loom::thread;

struct Byte(AtomicU8);

impl AtomicByte for Byte {
    fn new(value: u8) -> Self {
        Self(AtomicU8::new(value))
    }

    fn swap(&self, value: u8, order: Ordering) -> u8 {
        self.0.swap(value, order)
    }

    fn replace(&self, expected: u8, value: u8, order: Ordering) -> bool {
        self.0.compare_exchange(expected, value, order, Ordering::Relaxed).is_ok()
    }
}

/// A lock with one client that keeps it.
struct ModelLock {
    word: KeptWord<Byte>,
    /// How often the lock was released. A shard does that behind its mutex, too.
    releases: Mutex<u32>,
    /// What the lock protects. Loom raises an alarm if two threads are inside at once, or if one
    /// enters that need not have seen what the one before did.
    watched: UnsafeCell<()>,
}

impl ModelLock {
    fn visit(&self) {
        self.watched.with_mut(|_| ());
    }

    /// The lock is released, and its next holder enters.
    fn release(&self) {
        let mut releases = self.releases.lock().expect("no thread panics");
        *releases += 1;
        assert_eq!(*releases, 1, "the lock was released before");
        self.visit();
    }

    /// The client is inside, leaves, enters again, leaves again, and gives the lock back.
    fn use_and_give_back(&self) {
        self.visit();
        for _ in 0..2 {
            if !self.word.leave() {
                return self.release();
            }
            if !self.word.enter() {
                return;
            }
            self.visit();
        }
        if !self.word.leave() || self.word.take() {
            self.release();
        }
    }
}

/// Run the client beside another thread in all executions, and count them.
fn check(other: fn(&ModelLock)) -> usize {
    let executions = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counter = std::sync::Arc::clone(&executions);
    Builder::new().check(move || {
        counter.fetch_add(1, Ordering::Relaxed);
        let kept = Arc::new(ModelLock {
            word: KeptWord::inside(),
            releases: Mutex::new(0),
            watched: UnsafeCell::new(()),
        });
        let shared = Arc::clone(&kept);
        let thread = thread::spawn(move || other(&shared));
        kept.use_and_give_back();
        thread.join().expect("the other thread ends");
        assert_eq!(*kept.releases.lock().expect("no thread panics"), 1, "it was not released");
    });
    executions.load(Ordering::Relaxed)
}

#[test]
fn a_word_is_revoked_at_any_moment() {
    let executions = check(|kept| {
        if kept.word.revoke() {
            kept.release();
        }
    });
    assert!(executions > 5, "{executions}");
}

#[test]
fn a_word_is_taken_at_any_moment() {
    let executions = check(|kept| {
        if kept.word.take() {
            kept.release();
        }
    });
    assert!(executions > 5, "{executions}");
}

/// A word that is taken is not revoked as well: one of both releases the lock.
#[test]
fn a_word_is_taken_and_revoked() {
    let executions = check(|kept| {
        let (taken, revoked) = (kept.word.take(), kept.word.revoke());
        assert!(!(taken && revoked), "it was released twice");
        if taken || revoked {
            kept.release();
        }
    });
    assert!(executions > 5, "{executions}");
}

/// The watch has teeth: a client that enters without the exchange is found.
#[test]
#[should_panic(expected = "Causality violation")]
fn an_entry_without_the_exchange_is_found() {
    let unasked = |kept: &ModelLock| {
        kept.word.leave();
        kept.visit();
    };
    Builder::new().check(move || {
        let kept = Arc::new(ModelLock {
            word: KeptWord::inside(),
            releases: Mutex::new(0),
            watched: UnsafeCell::new(()),
        });
        let shared = Arc::clone(&kept);
        let thread = thread::spawn(move || {
            if shared.word.revoke() {
                shared.release();
            }
        });
        unasked(&kept);
        thread.join().expect("the other thread ends");
    });
}
