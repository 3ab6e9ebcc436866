//! The runs: one thread alone, competing threads, and competing threads whose waits are observed.

use core::sync::atomic::{AtomicBool, Ordering};
use std::boxed::Box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};
use std::vec::Vec;

use hdrhistogram::Histogram;

use super::contender::Measure;
use super::lock::{Lock, Seat};
use super::tally::Tally;

/// Nanoseconds to enter and leave for one thread, with one other seat that is not used.
pub(super) struct SoloSpeed {
    pub(super) length: Duration,
}

/// The number of entries between two readings of the clock.
const BATCH: u32 = 1000;

impl Measure for SoloSpeed {
    type Output = f64;

    fn run<L: Lock>(self) -> f64 {
        let mut lock = L::new(2);
        let mut seats = lock.seats(2);
        let seat = &mut seats[0];
        let mut enter = || (0..BATCH).for_each(|_| drop(seat.lock()));
        enter();
        let begin = Instant::now();
        let mut batches = 0.0;
        loop {
            enter();
            batches += 1.0;
            let elapsed = begin.elapsed();
            if elapsed >= self.length {
                return elapsed.as_secs_f64() * 1e9 / (batches * f64::from(BATCH));
            }
        }
    }
}

/// What a thread does again and again with a lock.
trait Visitor: Default + Send {
    fn visit(&mut self, me: usize, seat: &mut impl Seat, tally: &Tally);
}

/// The result of a run among competing threads.
pub(super) struct Race<V> {
    entries: Vec<u64>,
    seconds: f64,
    visitors: Vec<V>,
}

/// What the threads of a run share.
struct Course {
    tally: Tally,
    start: Barrier,
    stop: AtomicBool,
}

/// The part of one thread in a run, which returns how often the thread entered. Its type does not
/// name the lock, so that only the loop inside is compiled for each lock.
type Runner<'l, V> = Box<dyn FnOnce(&Course) -> (u64, V) + Send + 'l>;

/// Let threads compete for a lock. `None` if two of them were inside at once.
fn race<L: Lock, V: Visitor>(threads: usize, length: Duration) -> Option<Race<V>> {
    let mut lock = L::new(threads);
    let mut runners: Vec<Runner<'_, V>> = Vec::with_capacity(threads);
    for (me, mut seat) in lock.seats(threads).into_iter().enumerate() {
        runners.push(Box::new(move |course| {
            let (mut visitor, mut entries) = (V::default(), 0);
            course.start.wait();
            while !course.stop.load(Ordering::Relaxed) {
                visitor.visit(me, &mut seat, &course.tally);
                entries += 1;
            }
            (entries, visitor)
        }));
    }
    run(runners, length)
}

/// Let each of these run on a thread of its own. `None` if two of them were inside at once.
fn run<V: Visitor>(runners: Vec<Runner<'_, V>>, length: Duration) -> Option<Race<V>> {
    let course = &Course {
        tally: Tally::default(),
        start: Barrier::new(runners.len() + 1),
        stop: AtomicBool::new(false),
    };
    let (seconds, done) = thread::scope(|scope| {
        let running = runners.into_iter().map(|runner| scope.spawn(move || runner(course)));
        let running: Vec<_> = running.collect();
        course.start.wait();
        let begin = Instant::now();
        thread::sleep(length);
        course.stop.store(true, Ordering::Relaxed);
        let seconds = begin.elapsed().as_secs_f64();
        let done = running.into_iter().map(|thread| thread.join().expect("nothing panics there"));
        (seconds, done.collect::<Vec<_>>())
    });
    let (entries, visitors): (Vec<u64>, Vec<V>) = done.into_iter().unzip();
    let sound = course.tally.is_sound(entries.iter().sum());
    sound.then_some(Race { entries, seconds, visitors })
}

impl<V> Race<V> {
    /// Entries per second.
    pub(super) fn throughput(&self) -> f64 {
        self.entries.iter().sum::<u64>() as f64 / self.seconds
    }

    /// Jain's index of fairness. It is 1 if no thread got in.
    pub(super) fn jain(&self) -> f64 {
        let sum = |of: fn(f64) -> f64| self.entries.iter().map(|entries| of(*entries as f64)).sum();
        let (all, squares): (f64, f64) = (sum(|entries| entries), sum(|entries| entries * entries));
        if all == 0.0 { 1.0 } else { all * all / (self.entries.len() as f64 * squares) }
    }
}

/// Threads that compete as fast as they can.
pub(super) struct Compete {
    pub(super) threads: usize,
    pub(super) length: Duration,
}

/// Enters and leaves.
#[derive(Default)]
pub(super) struct ShortVisitor;

impl Visitor for ShortVisitor {
    fn visit(&mut self, me: usize, seat: &mut impl Seat, tally: &Tally) {
        let _guard = seat.lock();
        tally.visit(me, || ());
    }
}

impl Measure for Compete {
    type Output = Option<Race<ShortVisitor>>;

    fn run<L: Lock>(self) -> Option<Race<ShortVisitor>> {
        race::<L, ShortVisitor>(self.threads, self.length)
    }
}

/// Threads that compete while their waits are observed.
pub(super) struct Watch {
    pub(super) threads: usize,
    pub(super) length: Duration,
}

/// How long threads waited, including the time to read the clock, and how often they were overtaken
/// meanwhile.
pub(super) struct WaitTimes {
    nanoseconds: Histogram<u64>,
    pub(super) overtaken: u64,
}

impl Default for WaitTimes {
    fn default() -> Self {
        let minute = 60_000_000_000;
        let nanoseconds = Histogram::new_with_bounds(1, minute, 2).expect("sensible bounds");
        Self { nanoseconds, overtaken: 0 }
    }
}

impl Visitor for WaitTimes {
    fn visit(&mut self, me: usize, seat: &mut impl Seat, tally: &Tally) {
        let begin = Instant::now();
        let mut look = None;
        let _guard = seat.lock_watched(|| look = Some(tally.look()));
        self.nanoseconds.saturating_record(begin.elapsed().as_nanos() as u64);
        let overtaken = look.map_or(0, |look| tally.overtaken_since(look));
        self.overtaken = self.overtaken.max(overtaken);
        tally.visit(me, || ());
    }
}

impl WaitTimes {
    /// The wait that this fraction of all waits did not exceed, in nanoseconds.
    pub(super) fn quantile(&self, part: f64) -> f64 {
        self.nanoseconds.value_at_quantile(part) as f64
    }
}

impl Measure for Watch {
    type Output = Option<WaitTimes>;

    fn run<L: Lock>(self) -> Option<WaitTimes> {
        let race = race::<L, WaitTimes>(self.threads, self.length)?;
        let mut all = WaitTimes::default();
        for waits in &race.visitors {
            all.nanoseconds.add(&waits.nanoseconds).expect("all have the same bounds");
            all.overtaken = all.overtaken.max(waits.overtaken);
        }
        Some(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_fair_or_not() {
        let race = |entries: &[u64]| Race::<()> {
            entries: entries.to_vec(),
            seconds: 2.0,
            visitors: Vec::new(),
        };
        assert!((race(&[5, 5]).jain() - 1.0).abs() < 1e-9);
        assert!((race(&[8, 0, 0, 0]).jain() - 0.25).abs() < 1e-9);
        assert!((race(&[0, 0]).jain() - 1.0).abs() < 1e-9);
        assert!((race(&[1, 9]).throughput() - 5.0).abs() < 1e-9);
    }

    /// A lock that lets every thread in.
    struct Open;

    impl Lock for Open {
        type Seat<'l> = &'l Self;

        fn new(_: usize) -> Self {
            Self
        }

        fn seats(&mut self, threads: usize) -> Vec<&Self> {
            std::vec![&*self; threads]
        }
    }

    impl Seat for &Open {
        type Guard<'s>
            = ()
        where
            Self: 's;

        fn lock(&mut self) {}
    }

    /// Enters, and stays until the other thread is inside too.
    #[derive(Default)]
    struct MeetingVisitor;

    impl Visitor for MeetingVisitor {
        fn visit(&mut self, me: usize, seat: &mut impl Seat, tally: &Tally) {
            seat.lock();
            tally.visit(me, || thread::sleep(Duration::from_millis(1)));
        }
    }

    #[test]
    fn a_lock_that_lets_everyone_in_is_caught() {
        // On a busy machine one of the threads may not run during the whole run.
        let is_caught = |_| race::<Open, MeetingVisitor>(2, Duration::from_millis(20)).is_none();
        assert!((0..100).any(is_caught));
        assert!(race::<Open, MeetingVisitor>(1, Duration::from_millis(2)).is_some());
    }
}
