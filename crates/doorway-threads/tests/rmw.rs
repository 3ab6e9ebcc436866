//! Locks by exchange and addition, semaphores and queues: what the explorer finds, as one table,
//! and the locks themselves under threads and with as many seats as there can be.
#![cfg(target_pointer_width = "64")]

use std::sync::Barrier;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use doorway_threads::algorithms::clh::Clh;
use doorway_threads::algorithms::exchange::Exchange;
use doorway_threads::algorithms::increment_await::IncrementAwait;
use doorway_threads::algorithms::increment_reset::IncrementReset;
use doorway_threads::algorithms::increment_undo::IncrementUndo;
use doorway_threads::algorithms::mcs::Mcs;
use doorway_threads::algorithms::morris::Morris;
use doorway_threads::algorithms::morris_atomic::MorrisAtomic;
use doorway_threads::algorithms::replace_add::{self, ReplaceAdd};
use doorway_threads::algorithms::semaphore::OneSemaphore;
use doorway_threads::algorithms::tas::TestAndSet;
use doorway_threads::algorithms::{LockTask, with_lock};
use doorway_threads::check::{Check, Report};
use doorway_threads::{
    Algorithm, Bypass, Exclusive, Info, Memory, Process, Room, Shared, Withdraws,
};

/// Replace-add without its look, to show what the look is good for: wherever it would look, it
/// takes.
enum NoLook {}

impl Algorithm for NoLook {
    type At = replace_add::At;

    const INFO: Info = Info { name: "replace-add without its look", ..ReplaceAdd::INFO };
    const SHARED: &'static [Shared] = ReplaceAdd::SHARED;

    fn outside(me: Process) -> Self::At {
        ReplaceAdd::outside(me)
    }

    fn step(at: Self::At, me: Process, memory: &mut impl Memory) -> Self::At {
        use replace_add::At;
        let at = if let At::Outside | At::Look = at { At::Take } else { at };
        ReplaceAdd::step(at, me, memory)
    }
}

type Found = (String, Report);

fn plain<A: Algorithm>(n: usize) -> Found {
    (A::INFO.name.into(), Check::<A>::new(n).run())
}

/// Writes are buffered.
fn tso<A: Algorithm>(n: usize) -> Found {
    (format!("{}, tso", A::INFO.name), Check::<A>::buffered(n, "").run())
}

/// What is given to a semaphore may be snatched.
fn barging<A: Algorithm>(n: usize) -> Found {
    let mut check = Check::<A>::new(n);
    check.rules.barging = true;
    (format!("{}, barging", A::INFO.name), check.run())
}

/// Numbers go around the end of a byte.
fn wrapping<A: Algorithm>(n: usize) -> Found {
    let mut check = Check::<A>::new(n);
    check.rules.bound = None;
    (format!("{}, wrapping", A::INFO.name), check.run())
}

/// Whoever waits may give up.
fn hasty<A: Withdraws>(n: usize) -> Found {
    (format!("{}, giving up", A::INFO.name), Check::<A>::new(n).giving_up().run())
}

/// Exclusion, deadlock freedom, lockout freedom, first come first served.
type Verdicts = [Option<bool>; 4];

const UNFAIR: Verdicts = [Some(true), Some(true), Some(false), Some(false)];
const LOCKOUT_FREE: Verdicts = [Some(true), Some(true), Some(true), Some(false)];
const FIFO: Verdicts = [Some(true); 4];
const LIVELOCKS: Verdicts = [Some(true), Some(false), Some(false), Some(false)];
const EXCLUSIVE: Verdicts = [Some(true), None, None, None];
const BROKEN: Verdicts = [Some(false), None, None, None];

/// Overtaken without end.
const EVER: Option<Bypass> = Some(Bypass::Unbounded);

/// Overtaken so often by all others together, and by any one of them.
#[allow(clippy::unnecessary_wraps, reason = "a cell of the table")]
const fn by(all: u32, one: u32) -> Option<Bypass> {
    Some(Bypass::AtMost { all, one })
}

/// What is explored, of how many processes; the states, the verdicts, the overtaking; and how many
/// steps lead to what is wrong, and are then repeated.
type Row = (fn(usize) -> Found, usize, u64, Verdicts, Option<Bypass>, [usize; 2]);

#[rustfmt::skip]
const TABLE: &[Row] = &[
    (plain::<Exchange>,        2,     7, UNFAIR,       EVER,     [0, 0]),
    (plain::<Exchange>,        3,    19, UNFAIR,       EVER,     [0, 0]),
    (plain::<Exchange>,        4,    47, UNFAIR,       EVER,     [0, 0]),
    (hasty::<Exchange>,        2,     7, UNFAIR,       EVER,     [0, 0]),
    (hasty::<Exchange>,        3,    19, UNFAIR,       EVER,     [0, 0]),
    (tso::<Exchange>,          2,    11, EXCLUSIVE,    None,     [0, 0]),
    (tso::<Exchange>,          3,    31, EXCLUSIVE,    None,     [0, 0]),

    (plain::<TestAndSet>,      2,     7, UNFAIR,       EVER,     [0, 0]),
    (plain::<TestAndSet>,      3,    19, UNFAIR,       EVER,     [0, 0]),
    (plain::<TestAndSet>,      4,    47, UNFAIR,       EVER,     [0, 0]),
    (hasty::<TestAndSet>,      2,     7, UNFAIR,       EVER,     [0, 0]),
    (hasty::<TestAndSet>,      3,    19, UNFAIR,       EVER,     [0, 0]),
    (tso::<TestAndSet>,        2,    11, EXCLUSIVE,    None,     [0, 0]),
    (tso::<TestAndSet>,        3,    31, EXCLUSIVE,    None,     [0, 0]),

    (plain::<IncrementReset>,  2,    23, UNFAIR,       EVER,     [0, 0]),
    (plain::<IncrementReset>,  3,    91, UNFAIR,       EVER,     [0, 0]),
    (plain::<IncrementReset>,  4,   271, UNFAIR,       EVER,     [0, 0]),
    (wrapping::<IncrementReset>, 2, 520, BROKEN,       None,     [257, 0]),
    (tso::<IncrementReset>,    2,    43, EXCLUSIVE,    None,     [0, 0]),
    (tso::<IncrementReset>,    3,   175, EXCLUSIVE,    None,     [0, 0]),

    (plain::<IncrementUndo>,   2,    15, LIVELOCKS,    EVER,     [4, 4]),
    (plain::<IncrementUndo>,   3,    54, LIVELOCKS,    EVER,     [4, 4]),
    (plain::<IncrementUndo>,   4,   189, LIVELOCKS,    EVER,     [4, 4]),
    (tso::<IncrementUndo>,     2,    15, EXCLUSIVE,    None,     [0, 0]),
    (tso::<IncrementUndo>,     3,    54, EXCLUSIVE,    None,     [0, 0]),

    (plain::<IncrementAwait>,  2,    21, UNFAIR,       EVER,     [0, 0]),
    (plain::<IncrementAwait>,  3,   105, UNFAIR,       EVER,     [0, 0]),
    (plain::<IncrementAwait>,  4,   497, UNFAIR,       EVER,     [0, 0]),
    (hasty::<IncrementAwait>,  2,    21, UNFAIR,       EVER,     [0, 0]),
    (hasty::<IncrementAwait>,  3,   105, UNFAIR,       EVER,     [0, 0]),
    (tso::<IncrementAwait>,    2,    21, EXCLUSIVE,    None,     [0, 0]),
    (tso::<IncrementAwait>,    3,   105, EXCLUSIVE,    None,     [0, 0]),

    (plain::<ReplaceAdd>,      2,    21, UNFAIR,       EVER,     [0, 0]),
    (plain::<ReplaceAdd>,      3,   105, UNFAIR,       EVER,     [0, 0]),
    (plain::<ReplaceAdd>,      4,   497, UNFAIR,       EVER,     [0, 0]),
    (hasty::<ReplaceAdd>,      2,    21, UNFAIR,       EVER,     [0, 0]),
    (hasty::<ReplaceAdd>,      3,   105, UNFAIR,       EVER,     [0, 0]),
    (tso::<ReplaceAdd>,        2,    21, EXCLUSIVE,    None,     [0, 0]),
    (tso::<ReplaceAdd>,        3,   105, EXCLUSIVE,    None,     [0, 0]),
    (plain::<NoLook>,          2,    15, LIVELOCKS,    EVER,     [4, 4]),
    (plain::<NoLook>,          3,    54, LIVELOCKS,    EVER,     [4, 4]),

    (plain::<OneSemaphore>,    2,     9, FIFO,         by(1, 1), [0, 0]),
    (plain::<OneSemaphore>,    3,    25, UNFAIR,       EVER,     [0, 0]),
    (plain::<OneSemaphore>,    4,    65, UNFAIR,       EVER,     [0, 0]),
    (barging::<OneSemaphore>,  2,     7, UNFAIR,       EVER,     [2, 2]),
    (barging::<OneSemaphore>,  3,    19, UNFAIR,       EVER,     [0, 0]),
    (tso::<OneSemaphore>,      2,     9, EXCLUSIVE,    None,     [0, 0]),
    (tso::<OneSemaphore>,      3,    25, EXCLUSIVE,    None,     [0, 0]),

    (plain::<Morris>,          2,   275, LOCKOUT_FREE, by(2, 2), [0, 0]),
    (plain::<Morris>,          3,  3153, LOCKOUT_FREE, by(4, 2), [0, 0]),
    (plain::<Morris>,          4, 30991, LOCKOUT_FREE, by(6, 2), [0, 0]),
    (barging::<Morris>,        2,   267, UNFAIR,       EVER,     [2, 17]),
    (barging::<Morris>,        3,  3009, UNFAIR,       EVER,     [2, 17]),
    (tso::<Morris>,            2,   377, EXCLUSIVE,    None,     [0, 0]),
    (tso::<Morris>,            3,  4500, EXCLUSIVE,    None,     [0, 0]),

    (plain::<MorrisAtomic>,    2,   119, LOCKOUT_FREE, by(2, 2), [0, 0]),
    (plain::<MorrisAtomic>,    3,   873, LOCKOUT_FREE, by(4, 2), [0, 0]),
    (plain::<MorrisAtomic>,    4,  5743, LOCKOUT_FREE, by(6, 2), [0, 0]),
    (barging::<MorrisAtomic>,  2,   115, LOCKOUT_FREE, by(2, 2), [0, 0]),
    (barging::<MorrisAtomic>,  3,   843, LOCKOUT_FREE, by(4, 2), [0, 0]),
    (barging::<MorrisAtomic>,  4,  5479, LOCKOUT_FREE, by(6, 2), [0, 0]),
    (tso::<MorrisAtomic>,      2,   149, EXCLUSIVE,    None,     [0, 0]),
    (tso::<MorrisAtomic>,      3,  1098, EXCLUSIVE,    None,     [0, 0]),

    (plain::<Mcs>,             2,    50, FIFO,         by(1, 1), [0, 0]),
    (plain::<Mcs>,             3,   722, FIFO,         by(2, 1), [0, 0]),
    (plain::<Mcs>,             4, 12896, FIFO,         by(3, 1), [0, 0]),
    (tso::<Mcs>,               2,   101, EXCLUSIVE,    None,     [0, 0]),
    (tso::<Mcs>,               3,  2718, EXCLUSIVE,    None,     [0, 0]),

    (plain::<Clh>,             2,    96, FIFO,         by(1, 1), [0, 0]),
    (plain::<Clh>,             3,  1632, FIFO,         by(2, 1), [0, 0]),
    (plain::<Clh>,             4, 38400, FIFO,         by(3, 1), [0, 0]),
    (tso::<Clh>,               2,   246, EXCLUSIVE,    None,     [0, 0]),
    (tso::<Clh>,               3,  5544, EXCLUSIVE,    None,     [0, 0]),
];

#[test]
fn every_schedule() {
    for (run, n, states, verdicts, bypass, steps) in TABLE {
        let (name, report) = run(*n);
        let found = [report.exclusion, report.deadlock_free, report.lockout_free, report.fifo];
        let lengths = [report.schedule.len(), report.cycle.len()];
        assert_eq!(
            (report.progress.states, &found, &report.bypass, &lengths),
            (*states, verdicts, bypass, steps),
            "{name}, {n} processes"
        );
    }
}

const LOCKS: &[&str] = &[
    "exchange",
    "tas",
    "increment-reset",
    "increment-await",
    "replace-add",
    "semaphore",
    "morris",
    "morris-atomic",
    "mcs",
    "clh",
];

/// So many threads count so often each, on a number that only the lock protects, and let others run
/// now and then while they have read it and not yet written.
struct Count {
    threads: usize,
    times: usize,
}

impl LockTask for Count {
    type Output = usize;

    fn run<A: Exclusive>(self) -> usize {
        let mut room: Room<A, usize> = Room::new(self.threads, 0).expect("a room");
        let begin = Barrier::new(self.threads);
        thread::scope(|scope| {
            for mut seat in room.seats() {
                let begin = &begin;
                scope.spawn(move || {
                    begin.wait();
                    for _ in 0..self.times {
                        let mut count = seat.lock();
                        let seen = *count;
                        if seen % 8 == 0 {
                            thread::yield_now();
                        }
                        *count = seen + 1;
                    }
                });
            }
        });
        room.into_inner()
    }
}

#[test]
fn threads_do_not_disturb_each_other() {
    for name in LOCKS {
        for threads in [2, 5] {
            let (counted, count) = mpsc::channel();
            thread::spawn(move || {
                let _ = counted.send(with_lock(name, Count { threads, times: 400 }));
            });
            let count = count.recv_timeout(Duration::from_mins(1));
            assert_ne!(count, Err(RecvTimeoutError::Timeout), "{name}: a thread waits for ever");
            assert_eq!(count, Ok(Some(400 * threads)), "{name}");
        }
    }
}

/// Every seat of the largest room enters and leaves twice, the second time in the other direction.
struct Visit;

impl LockTask for Visit {
    type Output = usize;

    fn run<A: Exclusive>(self) -> usize {
        let mut room: Room<A, usize> = Room::new(A::INFO.most, 0).expect("a room");
        let mut seats: Vec<_> = room.seats().collect();
        let there = 0..seats.len();
        for i in there.clone().chain(there.rev()) {
            *seats[i].lock() += 1;
        }
        drop(seats);
        room.into_inner()
    }
}

#[test]
fn all_seats_can_be_used() {
    for name in LOCKS {
        assert_eq!(with_lock(name, Visit), Some(2 * doorway_threads::MOST), "{name}");
    }
}
