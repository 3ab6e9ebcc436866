//! The buffer and the readers and writers on real threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use doorway_threads::problems::{Buffer, BufferError, ReadersWriters};

const SENDERS: usize = 3;
const RECEIVERS: usize = 3;

/// Every receiver gets the items of each sender in order, and together they get each item once.
fn deliver(slots: usize, items: usize) {
    let buffer = Buffer::new(slots).expect("a few slots");
    let mut received = thread::scope(|scope| {
        for sender in 0..SENDERS {
            let buffer = &buffer;
            scope.spawn(move || (0..items).for_each(|item| buffer.send((sender, item))));
        }
        let receive = || (0..items * SENDERS / RECEIVERS).map(|_| buffer.receive()).collect();
        let receivers: Vec<_> = (0..RECEIVERS).map(|_| scope.spawn(receive)).collect();
        let mut all = Vec::new();
        for receiver in receivers {
            let received: Vec<(usize, usize)> = receiver.join().expect("no receiver panics");
            for sender in 0..SENDERS {
                let of_one = received.iter().filter(|(of, _)| *of == sender);
                assert!(of_one.is_sorted_by(|(_, item), (_, next)| item < next), "{slots} slots");
            }
            all.extend(received);
        }
        all
    });
    received.sort_unstable();
    let sent = (0..SENDERS).flat_map(|sender| (0..items).map(move |item| (sender, item)));
    assert!(received.into_iter().eq(sent), "{slots} slots");
    assert_eq!(buffer.try_receive(), None);
}

#[test]
fn every_item_arrives_once_and_in_order() {
    deliver(1, 3000);
    deliver(2, 3000);
    deliver(7, 30_000);
}

#[test]
fn trying_does_not_wait() {
    let buffer = Buffer::new(2).unwrap();
    assert_eq!(buffer.slots(), 2);
    assert_eq!(buffer.try_receive(), None);
    assert_eq!(buffer.try_send('a'), Ok(()));
    assert_eq!(buffer.try_send('b'), Ok(()));
    assert_eq!(buffer.try_send('c'), Err('c'));
    assert_eq!(buffer.receive(), 'a');
    buffer.send('d');
    assert_eq!(buffer.try_send('e'), Err('e'));
    assert_eq!((buffer.try_receive(), buffer.try_receive()), (Some('b'), Some('d')));
    assert_eq!(buffer.try_receive(), None);
}

#[test]
fn trying_loses_no_item() {
    let buffer = Buffer::new(2).unwrap();
    let sum = AtomicUsize::new(0);
    let left = AtomicUsize::new(2000);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for mut item in 0..1000 {
                    while let Err(back) = buffer.try_send(item) {
                        item = back;
                        thread::yield_now();
                    }
                }
            });
            scope.spawn(|| {
                while left.load(Ordering::SeqCst) > 0 {
                    match buffer.try_receive() {
                        None => thread::yield_now(),
                        Some(item) => {
                            sum.fetch_add(item, Ordering::SeqCst);
                            left.fetch_sub(1, Ordering::SeqCst);
                        }
                    }
                }
            });
        }
    });
    assert_eq!(sum.into_inner(), 2 * (999 * 1000 / 2));
}

#[test]
fn items_that_are_not_received_are_dropped_with_the_buffer() {
    let item = Arc::new(());
    let buffer = Buffer::new(3).unwrap();
    (0..3).for_each(|_| buffer.send(Arc::clone(&item)));
    drop(buffer.receive());
    assert_eq!(Arc::strong_count(&item), 3);
    drop(buffer);
    assert_eq!(Arc::strong_count(&item), 1);
}

#[test]
fn impossible_buffers_are_refused() {
    assert_eq!(Buffer::<u8>::new(0).unwrap_err(), BufferError::NoSlots);
    for asked in [usize::MAX, usize::MAX / 2, usize::MAX / 4] {
        assert_eq!(Buffer::<u64>::new(asked).unwrap_err(), BufferError::TooManySlots { asked });
    }
}

/// Writers leave both halves equal and change them one after the other.
#[test]
fn readers_never_see_a_writer_at_work() {
    const ROUNDS: usize = 2000;
    let halves = ReadersWriters::new([0, 0]);
    let readers_inside = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    let mut halves = halves.write();
                    assert_eq!(readers_inside.load(Ordering::SeqCst), 0);
                    halves[0] += 1;
                    thread::yield_now();
                    halves[1] += 1;
                }
            });
        }
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    let halves = halves.read();
                    readers_inside.fetch_add(1, Ordering::SeqCst);
                    assert_eq!(halves[0], halves[1]);
                    readers_inside.fetch_sub(1, Ordering::SeqCst);
                }
            });
        }
    });
    assert_eq!(halves.into_inner(), [2 * ROUNDS; 2]);
}

/// Readers that are always inside, one or the other, do not keep a writer out.
#[test]
fn a_writer_gets_in_between_readers() {
    let written = ReadersWriters::new(0);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while *written.read() < 200 {
                    let inside = written.read();
                    thread::yield_now();
                    drop(inside);
                }
            });
        }
        (0..200).for_each(|_| *written.write() += 1);
    });
    assert_eq!(written.into_inner(), 200);
}

#[test]
fn readers_are_inside_together() {
    let mut value = ReadersWriters::new(5);
    let guards: Vec<_> = (0..10).map(|_| value.read()).collect();
    assert_eq!(guards.iter().map(|guard| **guard).sum::<i32>(), 50);
    drop(guards);
    *value.write() = 6;
    assert_eq!(*value.get_mut(), 6);
}
