//! Locks with few seats and with as many as there can be, and processes that give up.

use std::sync::Barrier;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use doorway_threads::algorithms::exchange::Exchange;
use doorway_threads::algorithms::increment_await::IncrementAwait;
use doorway_threads::algorithms::kessels::Kessels;
use doorway_threads::algorithms::peterson::Peterson;
use doorway_threads::algorithms::replace_add::ReplaceAdd;
use doorway_threads::algorithms::tas::TestAndSet;
use doorway_threads::algorithms::ttas::TestAndTestAndSet;
use doorway_threads::algorithms::{ALL, LockTask, with_lock};
use doorway_threads::check::{Check, Report, alone};
use doorway_threads::{Exclusive, Info, Room, Withdraws};

use crate::found::{EVER, NONE, ReportSummary, UNFAIR, Verdicts, by, found};

/// A lock with this number of seats. Each is used alone, from the first to the last and back, and
/// then at most five of them at once.
struct Crowd(usize);

impl LockTask for Crowd {
    /// The number of entries that were counted under the protection of the lock alone, and the
    /// number that were made.
    type Output = (usize, usize);

    fn run<A: Exclusive>(self) -> (usize, usize) {
        let Self(n) = self;
        let mut room: Room<A, usize> = Room::new(n, 0).expect("the lock serves this number");
        let mut made = 0;

        let mut seats: Vec<_> = room.seats().collect();
        // If an entry reads many registers for each other process, not all seats are used.
        let looks = alone::<A>(n.max(A::INFO.fewest)).reads as usize;
        let between = if looks <= 10 * n { 1 } else { n.div_ceil(5) };
        for i in (0..n).chain((0..n).rev()).step_by(between) {
            *seats[i].lock() += 1;
            made += 1;
        }

        drop(seats);
        let times = if n <= 5 { 400 } else { 20 };
        let seats = room.seats().enumerate();
        let some = seats.filter(|(i, _)| *i < 2 || *i == n / 2 || *i + 2 >= n);
        let some: Vec<_> = some.map(|(_, seat)| seat).collect();
        made += some.len() * times;
        let begin = &Barrier::new(some.len());
        thread::scope(|scope| {
            for mut seat in some {
                scope.spawn(move || {
                    begin.wait();
                    for _ in 0..times {
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
        (room.into_inner(), made)
    }
}

#[test]
fn locks_serve_any_number_up_to_their_most() {
    for info in ALL.iter().filter(|entry| entry.lock).map(|entry| entry.info) {
        let fewer = [1, 2, 3, 5, 6, 7, 64, 300].into_iter().filter(|n| *n < info.most);
        for n in fewer.chain([info.most]) {
            let (tell, hear) = mpsc::channel();
            // If a thread waits for ever, the test fails instead of waiting too.
            thread::spawn(move || tell.send(with_lock(info.name, Crowd(n))));
            let counted = hear.recv_timeout(Duration::from_mins(1));
            assert_ne!(counted, Err(RecvTimeoutError::Timeout), "{} of {n} hangs", info.name);
            let (counted, made) = counted.expect("nothing goes wrong").expect("a lock of the list");
            assert_eq!(counted, made, "{} of {n}", info.name);
        }
    }
}

/// Explore this number of processes, of which each that waits may give up.
fn hasty<A: Withdraws>(n: usize) -> (Info, Report) {
    (A::INFO, Check::giving_up::<A>(n).run())
}

/// Two processes may give up again and again, which no lock can prevent. But a process that stays
/// gets in, and in order.
const WHO_STAYS: Verdicts = [Some(true), Some(false), Some(true), Some(true)];

/// The algorithm, the number of processes, and what is found: the states, the verdicts, the
/// overtaking, and the steps that lead to a violation and are then repeated.
type Row = (fn(usize) -> (Info, Report), usize, ReportSummary);

#[rustfmt::skip]
const GIVING_UP: &[Row] = &[
    (hasty::<Peterson>,          2, ( 64, WHO_STAYS, by(2, 2), [1, 15])),
    (hasty::<Kessels>,           2, (204, WHO_STAYS, by(2, 2), [1, 30])),
    (hasty::<Exchange>,          2, (  7, UNFAIR,    EVER,     NONE)),
    (hasty::<Exchange>,          3, ( 19, UNFAIR,    EVER,     NONE)),
    (hasty::<TestAndSet>,        2, (  7, UNFAIR,    EVER,     NONE)),
    (hasty::<TestAndSet>,        3, ( 19, UNFAIR,    EVER,     NONE)),
    (hasty::<TestAndTestAndSet>, 2, ( 11, UNFAIR,    EVER,     NONE)),
    (hasty::<TestAndTestAndSet>, 3, ( 46, UNFAIR,    EVER,     NONE)),
    (hasty::<IncrementAwait>,    2, ( 21, UNFAIR,    EVER,     NONE)),
    (hasty::<IncrementAwait>,    3, (105, UNFAIR,    EVER,     NONE)),
    (hasty::<ReplaceAdd>,        2, ( 21, UNFAIR,    EVER,     NONE)),
    (hasty::<ReplaceAdd>,        3, (105, UNFAIR,    EVER,     NONE)),
];

#[test]
fn a_process_that_gives_up_disturbs_no_other() {
    for (hasty, n, expected) in GIVING_UP {
        let (info, report) = hasty(*n);
        assert_eq!(found(&report), *expected, "{} of {n}", info.name);
    }
}
