//! Locks without seats to hold: `Seated` under a `lock_api::Mutex`.
#![cfg(feature = "lock_api")]

use std::mem::forget;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use doorway_threads::algorithms::dekker::Dekker;
use doorway_threads::algorithms::dijkstra::Dijkstra;
use doorway_threads::algorithms::peterson::Peterson;
use doorway_threads::algorithms::ticket::Ticket;
use doorway_threads::algorithms::{ALL, LockTask, with_lock};
use doorway_threads::{Exclusive, Seated};
use lock_api::{Mutex, MutexGuard, RawMutex};

mod watched;

use watched::Watched;

/// Four threads lock, and two only try, until it has been enough.
fn crowd<A: Exclusive, const SEATS: usize>(time: Duration) {
    let (name, enough) = (A::INFO.name, &AtomicBool::new(false));
    let (mutex, counted) =
        (&Mutex::<Seated<A, SEATS>, _>::new(Watched::new()), &AtomicUsize::new(0));
    thread::scope(|scope| {
        for i in 0..6 {
            scope.spawn(move || {
                while !enough.load(Ordering::Relaxed) {
                    let guard = if i < 4 { Some(mutex.lock()) } else { mutex.try_lock() };
                    if let Some(mut watched) = guard {
                        watched.visit(i);
                        counted.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        thread::sleep(time);
        enough.store(true, Ordering::Relaxed);
    });
    assert!(!mutex.is_locked(), "{name}: everyone has left");
    let entries = mutex.try_lock().expect("everyone has left").entries();
    assert_eq!(entries, counted.load(Ordering::Relaxed), "{name}");
    assert!(entries > SEATS, "{name} is stuck");
}

#[test]
fn every_lock_serves_a_crowd_on_two_seats() {
    struct Crowd;
    impl LockTask for Crowd {
        type Output = ();
        fn run<A: Exclusive>(self) {
            crowd::<A, 2>(Duration::from_millis(50));
        }
    }
    for entry in ALL.iter().filter(|entry| entry.lock) {
        with_lock(entry.info.name, Crowd).unwrap();
    }
}

#[test]
fn there_may_be_any_number_of_seats() {
    crowd::<Peterson, 1>(Duration::from_millis(50));
    crowd::<Dijkstra, 3>(Duration::from_millis(50));
    crowd::<Ticket, 6>(Duration::from_millis(50));
    crowd::<Dijkstra, { usize::BITS as usize - 1 }>(Duration::from_millis(50));
}

#[test]
fn who_tries_never_waits() {
    let mutex: &Mutex<Seated<Dekker, 2>, u32> = &Mutex::new(0);
    thread::scope(|scope| {
        let guard = mutex.lock();
        // One takes the second seat and waits there, and one waits for a seat.
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

/// Who only tries lets each other pass: with nobody else there, one of them gets in.
#[test]
fn those_who_try_do_not_keep_each_other_out_for_ever() {
    let mutex: &Mutex<Seated<Peterson, 2>, usize> = &Mutex::new(0);
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
fn a_forgotten_guard_leaves_it_held_and_nothing_worse() {
    let mut mutex: Mutex<Seated<Dekker, 2>, Vec<u32>> = Mutex::new(vec![1]);
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
    let mutex: Mutex<Seated<Ticket, 4>, u32> = Mutex::new(0);
    let mut guard: MutexGuard<'_, _, _> = send(mutex.lock());
    thread::scope(|scope| scope.spawn(move || *guard += 1).join()).unwrap();
    assert_eq!(*mutex.lock(), 1);
}

#[test]
fn it_tells_what_it_is() {
    let seated = Seated::<Dekker, 2>::default();
    assert_eq!(format!("{seated:?}"), "Seated { algorithm: \"dekker\", seats: 2, taken: 0, .. }");
    let _inside = RawMutex::lock(&seated);
    assert!(format!("{seated:?}").contains("taken: 1"));
}
