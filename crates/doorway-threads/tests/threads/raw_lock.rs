//! Locks without seats to hold: `RawLock` in a `lock_api::Mutex`.
#![cfg(feature = "lock_api")]

use std::cell::Cell;
use std::mem::forget;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use doorway_threads::algorithms::dekker::Dekker;
use doorway_threads::algorithms::dijkstra::Dijkstra;
use doorway_threads::algorithms::peterson::Peterson;
use doorway_threads::algorithms::ticket::Ticket;
use doorway_threads::algorithms::{ALL, LockTask, with_lock};
use doorway_threads::{
    Algorithm, Exclusive, Info, Memory, Place, Process, RawLock, RegisterArray, Relax, Section,
};
use lock_api::{Mutex, MutexGuard, RawMutex};

use crate::watched::WatchedValue;

thread_local! {
    static HAS_WAITED: Cell<bool> = const { Cell::new(false) };
}

/// Yields to other threads, and remembers that it did.
#[derive(Default)]
struct TellingRelax;

impl Relax for TellingRelax {
    fn relax(&mut self) {
        HAS_WAITED.set(true);
        thread::yield_now();
    }
}

/// Some of six threads lock, and the others only try, until the time is up.
fn crowd<A: Exclusive, const SEATS: usize>(lockers: usize) {
    let (name, enough) = (A::INFO.name, &AtomicBool::new(false));
    let (mutex, counted) = (
        &Mutex::<RawLock<A, SEATS, TellingRelax>, _>::new(WatchedValue::new()),
        &AtomicUsize::new(0),
    );
    thread::scope(|scope| {
        for i in 0..6 {
            scope.spawn(move || {
                // Every thread enters at least once.
                let mut again = true;
                while again {
                    again = !enough.load(Ordering::Relaxed);
                    let guard = if i < lockers { Some(mutex.lock()) } else { mutex.try_lock() };
                    if let Some(mut watched) = guard {
                        watched.visit(i);
                        counted.fetch_add(1, Ordering::Relaxed);
                    }
                }
                assert!(
                    i < lockers || !HAS_WAITED.get(),
                    "{name}: a thread that only tries has waited"
                );
            });
        }
        thread::sleep(Duration::from_millis(30));
        enough.store(true, Ordering::Relaxed);
    });
    assert!(!mutex.is_locked(), "{name}: all threads have left");
    let entries = mutex.try_lock().expect("all threads have left").entries();
    assert_eq!(entries, counted.load(Ordering::Relaxed), "{name}");
}

#[test]
fn every_lock_serves_a_crowd_on_two_seats() {
    struct Crowd;
    impl LockTask for Crowd {
        type Output = ();
        fn run<A: Exclusive>(self) {
            crowd::<A, 2>(4);
            crowd::<A, 2>(1);
        }
    }
    for entry in ALL.iter().filter(|entry| entry.lock) {
        with_lock(entry.info.name, Crowd).unwrap();
    }
}

#[test]
fn there_may_be_any_number_of_seats() {
    crowd::<Peterson, 1>(4);
    crowd::<Dijkstra, 3>(4);
    crowd::<Ticket, 6>(4);
    crowd::<Dijkstra, { usize::BITS as usize - 1 }>(4);
}

#[test]
fn try_lock_never_waits() {
    let mutex: &Mutex<RawLock<Dekker, 2>, u32> = &Mutex::new(0);
    thread::scope(|scope| {
        let guard = mutex.lock();
        // One thread takes the second seat and waits there, and another waits for a seat.
        let waiting = [0; 2].map(|_| scope.spawn(|| *mutex.lock() += 1));
        for _ in 0..1_000 {
            assert!(mutex.try_lock().is_none());
            assert!(mutex.is_locked());
            thread::yield_now();
        }
        assert!(waiting.iter().all(|waiting| !waiting.is_finished()));
        drop(guard);
    });
    assert!(!mutex.is_locked());
    assert_eq!(mutex.try_lock().as_deref(), Some(&2));
}

/// The ticket lock, with a first process that is slow to draw a number.
enum Slow {}

impl Algorithm for Slow {
    type At = <Ticket as Algorithm>::At;
    const INFO: Info = Ticket::INFO;
    const SHARED: &'static [RegisterArray] = Ticket::SHARED;

    fn outside(me: Process) -> Self::At {
        Ticket::outside(me)
    }

    fn step(at: Self::At, me: Process, memory: &mut impl Memory) -> Self::At {
        if me.i == 0 && at.section() == Section::Outside {
            thread::sleep(Duration::from_millis(50));
        }
        Ticket::step(at, me, memory)
    }
}

#[allow(unsafe_code, reason = "it is as good as the ticket lock")]
// SAFETY: the steps are those of the ticket lock.
unsafe impl Exclusive for Slow {}

#[test]
fn no_thread_comes_between_try_lock_and_the_lock() {
    let mutex: &Mutex<RawLock<Slow, 2, TellingRelax>, ()> = &Mutex::new(());
    thread::scope(|scope| {
        let slow = scope.spawn(|| (mutex.try_lock().is_some(), HAS_WAITED.get()));
        while !mutex.is_locked() && !slow.is_finished() {
            thread::yield_now();
        }
        let guard = mutex.lock();
        thread::sleep(Duration::from_millis(100));
        drop(guard);
        assert_eq!(slow.join().unwrap(), (true, false), "entered, and has not waited");
    });
}

/// Threads that only try do not keep each other out: if there are no others, one of them gets in.
#[test]
fn threads_that_try_do_not_keep_each_other_out_for_ever() {
    let mutex: &Mutex<RawLock<Peterson, 2>, usize> = &Mutex::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut entered = 0;
                while entered < 100 {
                    match mutex.try_lock() {
                        Some(mut count) => (*count, entered) = (*count + 1, entered + 1),
                        None => thread::yield_now(),
                    }
                }
            });
        }
    });
    assert_eq!(*mutex.lock(), 400);
}

#[test]
fn a_forgotten_guard_leaves_the_lock_held_and_nothing_worse() {
    let mut mutex: Mutex<RawLock<Dekker, 2>, Vec<u32>> = Mutex::new(vec![1]);
    forget(mutex.lock());
    assert!(mutex.is_locked());
    assert!(mutex.try_lock().is_none());
    mutex.get_mut().push(2);
    let moved = Box::new(mutex);
    assert!(moved.try_lock().is_none());
    assert_eq!(moved.into_inner(), [1, 2]);
}

#[test]
fn a_guard_may_be_dropped_by_another_thread() {
    fn send<T: Send>(value: T) -> T {
        value
    }
    let mutex: Mutex<RawLock<Ticket, 4>, u32> = Mutex::new(0);
    let mut guard: MutexGuard<'_, _, _> = send(mutex.lock());
    thread::scope(|scope| scope.spawn(move || *guard += 1).join()).unwrap();
    assert_eq!(*mutex.lock(), 1);
}

#[test]
fn debug_output_names_the_algorithm() {
    let lock = RawLock::<Dekker, 2>::default();
    assert_eq!(format!("{lock:?}"), "RawLock { algorithm: \"dekker\", seats: 2, taken: 0, .. }");
    let _inside = RawMutex::lock(&lock);
    assert!(format!("{lock:?}").contains("taken: 1"));
}
