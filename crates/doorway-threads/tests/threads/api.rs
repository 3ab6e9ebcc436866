//! The interface of rooms, seats and guards.

use std::error::Error;
use std::mem::forget;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use doorway_threads::algorithms::dekker::Dekker;
use doorway_threads::algorithms::dijkstra::Dijkstra;
use doorway_threads::algorithms::peterson::Peterson;
use doorway_threads::algorithms::{ALL, LockTask, with_lock};
use doorway_threads::{Exclusive, Guard, Loop, OwnedSeat, Relax, Room, RoomError, Spin, Yield};

/// Yields while it waits, so that a thread that waits for ever does not keep others from running.
#[derive(Default)]
struct Sleep;

impl Relax for Sleep {
    fn relax(&mut self) {
        thread::sleep(Duration::from_millis(1));
    }
}

/// Long enough for every thread to enter that can.
const A_WHILE: Duration = Duration::from_millis(200);

fn room<A: Exclusive>(seats: usize) -> Result<Room<A, ()>, RoomError> {
    Room::new(seats, ())
}

#[test]
fn a_room_without_seats_or_with_too_many_is_refused() {
    struct Ask(usize);
    impl LockTask for Ask {
        type Output = Option<RoomError>;
        fn run<A: Exclusive>(self) -> Option<RoomError> {
            room::<A>(self.0).err()
        }
    }
    for entry in ALL.iter().filter(|entry| entry.lock) {
        let (name, most) = (entry.info.name, entry.info.most);
        assert_eq!(with_lock(name, Ask(0)).unwrap(), Some(RoomError::NoSeats));
        assert_eq!(with_lock(name, Ask(1)).unwrap(), None, "{name}: alone");
        assert_eq!(with_lock(name, Ask(most)).unwrap(), None, "{name}: {most}");
        for asked in [most + 1, usize::MAX] {
            let error = with_lock(name, Ask(asked)).unwrap();
            assert_eq!(error, Some(RoomError::TooManySeats { asked, most }), "{name}");
        }
    }
}

#[test]
fn a_room_gives_no_more_seats_than_it_has() {
    let mut room = room::<Dijkstra>(3).unwrap();
    assert_eq!(room.seats().len(), 3);
    assert!(room.split::<2>().is_ok());
    let error = room.split::<4>().unwrap_err();
    assert_eq!(error, RoomError::Exhausted { asked: 4, seats: 3 });
    assert_eq!(room.into_seats().len(), 3);
}

#[test]
fn new_seats_begin_outside() {
    struct Count;
    impl LockTask for Count {
        type Output = u32;
        fn run<A: Exclusive>(self) -> u32 {
            let mut room: Room<A, u32> = Room::new(2, 0).unwrap();
            // The first seats leave traces in the registers, and one of them stays inside for ever.
            let [mut one, mut two] = room.split().unwrap();
            *one.lock() += 1;
            *two.lock() += 1;
            forget(one.lock());
            let count = |mut seat: OwnedSeat<A, u32>| {
                thread::spawn(move || {
                    (0..500).for_each(|_| *seat.lock() += 1);
                    seat
                })
            };
            let threads: Vec<_> = room.into_seats().map(count).collect();
            let seats = threads.into_iter().map(|thread| thread.join().unwrap());
            *seats.last().unwrap().lock()
        }
    }
    for entry in ALL.iter().filter(|entry| entry.lock) {
        assert_eq!(with_lock(entry.info.name, Count), Some(1002), "{}", entry.info.name);
    }
}

#[test]
fn errors_tell_the_numbers() {
    let said = |error: &dyn Error| error.to_string();
    assert_eq!(said(&RoomError::NoSeats), "0 seats asked for, and a room needs at least one");
    assert_eq!(
        said(&RoomError::TooManySeats { asked: 3, most: 2 }),
        "3 seats asked for, and this algorithm serves at most 2"
    );
    assert_eq!(
        said(&RoomError::Exhausted { asked: 3, seats: 2 }),
        "3 seats asked for, and the room has 2"
    );
}

#[test]
fn a_room_of_one_needs_no_other() {
    let mut room: Room<Peterson, u32> = Room::new(1, 0).unwrap();
    let [mut only] = room.split().unwrap();
    (0..3).for_each(|_| *only.lock() += 1);
    assert_eq!(room.into_inner(), 3);
}

#[test]
fn the_owner_of_a_room_reaches_the_value_without_a_lock() {
    let mut room: Room<Dekker, Vec<u32>> = Room::new(2, vec![1]).unwrap();
    room.get_mut().push(2);
    let [mut one, _] = room.split().unwrap();
    one.lock().push(3);
    assert_eq!(room.into_inner(), [1, 2, 3]);
}

#[test]
fn try_lock_does_not_wait_and_changes_nothing() {
    let mut room: Room<Peterson, u32> = Room::new(2, 0).unwrap();
    let [mut one, mut two] = room.split().unwrap();
    for _ in 0..3 {
        let guard = one.lock();
        assert!(two.try_lock().is_none());
        assert!(two.try_lock().is_none());
        drop(guard);
        *two.try_lock().expect("nobody is inside") += 1;
        *one.try_lock().expect("nobody is inside") += 1;
    }
    assert_eq!(room.into_inner(), 6);
}

#[test]
fn a_forgotten_guard_leaves_the_lock_held_and_nothing_worse() {
    let room: Room<Dekker, u32, Sleep> = Room::new(2, 0).unwrap();
    let [mut one, mut two]: [OwnedSeat<_, _, _>; 2] =
        room.into_seats().collect::<Vec<_>>().try_into().unwrap();
    forget(one.lock());
    let (tell, hear) = channel();
    thread::spawn(move || tell.send(*two.lock()));
    assert_eq!(hear.recv_timeout(A_WHILE), Err(RecvTimeoutError::Timeout));
    *one.lock() = 7;
    assert_eq!(hear.recv(), Ok(7), "the second guard of the same seat was not forgotten");
}

#[test]
fn split_again_makes_new_seats() {
    let mut room: Room<Peterson, u32> = Room::new(2, 0).unwrap();
    let [mut one, mut two] = room.split().unwrap();
    forget(one.lock());
    assert!(two.try_lock().is_none());
    let [_, mut two] = room.split().unwrap();
    *two.try_lock().expect("earlier seats are gone, and what they held") += 1;
    forget(two.lock());
    let mut seats = room.seats();
    *seats.next().unwrap().lock() += 1;
    drop(seats);
    assert_eq!(room.into_inner(), 2);
}

#[test]
fn a_panic_inside_leaves_the_lock_free() {
    let mut room: Room<Dekker, u32> = Room::new(2, 0).unwrap();
    let [mut one, mut two] = room.split().unwrap();
    let outcome = thread::scope(|scope| {
        let inside = move || {
            *one.lock() += 1;
            let _guard = one.lock();
            panic!("inside");
        };
        scope.spawn(inside).join()
    });
    assert!(outcome.is_err());
    *two.lock() += 1;
    assert_eq!(room.into_inner(), 2);
}

#[test]
fn every_way_to_wait_works() {
    fn count<R: Relax + 'static>() -> u32 {
        let room: Room<Dijkstra, u32, R> = Room::new(2, 0).unwrap();
        let seats: Vec<_> = room.into_seats().collect();
        let count = |mut seat: OwnedSeat<Dijkstra, u32, R>| {
            thread::spawn(move || {
                (0..50).for_each(|_| *seat.lock() += 1);
                *seat.lock()
            })
        };
        let threads: Vec<_> = seats.into_iter().map(count).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).max().unwrap()
    }
    assert_eq!(
        (count::<Spin>(), count::<Loop>(), count::<Yield>(), count::<Sleep>()),
        (100, 100, 100, 100)
    );
}

#[test]
fn debug_output_names_the_algorithm() {
    let mut room: Room<Peterson, u32> = Room::new(2, 5).unwrap();
    assert_eq!(format!("{room:?}"), "Room { algorithm: \"peterson\", seats: 2, .. }");
    let [mut one, _] = room.split().unwrap();
    assert_eq!(format!("{one:?}"), "Seat { algorithm: \"peterson\", number: 0, at: Outside, .. }");
    let guard = one.lock();
    assert_eq!((format!("{guard:?}"), format!("{guard}")), ("5".into(), "5".into()));
}

#[test]
fn seats_can_be_sent_and_guards_if_their_reference_can() {
    fn send<T: Send>() {}
    fn sync<T: Sync>() {}
    send::<OwnedSeat<Dekker, u32>>();
    send::<Guard<'_, Dekker, u32, Spin>>();
    sync::<Guard<'_, Dekker, u32, Spin>>();
    sync::<Room<Dekker, std::cell::Cell<u32>>>();
}
