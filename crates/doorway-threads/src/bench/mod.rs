//! Measurements of the locks, beside the locks of other crates in the same run.
//!
//! The runs of all locks are shuffled, so that other load of the machine affects all of them alike,
//! and every figure comes from several runs. Every entry among competing threads checks that no
//! other thread is inside. If one is, the measurement ends with an error.

mod contender;
mod lock;
mod runs;
mod samples;
mod tally;

use core::error::Error;
use core::fmt;
use std::time::Duration;
use std::vec::Vec;

pub use contender::Contender;
use runs::{Compete, SoloSpeed, Watch};
use samples::shuffle;
pub use samples::{Samples, Spread};

/// What a benchmark measures: which locks, with how many threads, how often and for how long.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The locks to measure.
    pub contenders: Vec<Contender>,
    /// The numbers of threads that compete. A lock that does not serve a number has no figures for
    /// it.
    pub crowds: Vec<usize>,
    /// The number of runs of each measurement.
    pub runs: usize,
    /// How long each run takes.
    pub length: Duration,
}

/// The figures of one lock.
#[derive(Clone, Debug)]
pub struct Row {
    /// The lock that was measured.
    pub contender: Contender,
    /// Nanoseconds to enter and leave without contention.
    pub alone: Samples,
    /// The figures among competing threads.
    pub crowds: Vec<Crowd>,
}

/// The figures of one lock among a number of threads that do nothing but enter and leave.
#[derive(Clone, Debug, Default)]
pub struct Crowd {
    /// The number of threads.
    pub threads: usize,
    /// Entries per second.
    pub throughput: Samples,
    /// Jain's index of the threads' entries: 1 if all had the same share, 1/n if one had all.
    pub jain: Samples,
    /// The median wait, in nanoseconds.
    pub p50: Samples,
    /// The 99th percentile of the waits, in nanoseconds.
    pub p99: Samples,
    /// The 99.9th percentile of the waits, in nanoseconds.
    pub p999: Samples,
    /// The most overtakings of a waiting thread that were seen in any run. There may have been
    /// more.
    pub overtaken: u64,
}

/// The error that two threads were inside at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExclusionError {
    /// The lock that let them in.
    pub lock: &'static str,
    /// The number of threads.
    pub threads: usize,
}

impl fmt::Display for ExclusionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lock, threads } = self;
        write!(f, "exclusion: {lock} let two of {threads} threads in at once")
    }
}

impl Error for ExclusionError {}

/// A run to be made. A run among competing threads has the position of its number of threads.
#[derive(Clone, Copy)]
enum Work {
    Alone,
    Compete(usize),
    Watch(usize),
}

impl Plan {
    /// The number of all runs.
    pub fn total(&self) -> usize {
        self.runs * works(&self.rows()).len()
    }

    /// Measure everything. Before each run `goes_on` is told how many are done; if it returns
    /// `false`, the measurement ends.
    pub fn run(&self, goes_on: &mut dyn FnMut(usize) -> bool) -> Result<Vec<Row>, ExclusionError> {
        let mut rows = self.rows();
        let mut works = works(&rows);
        for run in 0..self.runs {
            shuffle(&mut works);
            for (nth, (row, work)) in works.iter().enumerate() {
                if !goes_on(run * works.len() + nth) {
                    return Ok(rows);
                }
                rows[*row].measure(*work, self.length)?;
            }
        }
        Ok(rows)
    }

    /// Rows that have no figures yet.
    fn rows(&self) -> Vec<Row> {
        let crowds = |contender: &Contender| {
            let served = self.crowds.iter().filter(|threads| contender.serves(**threads));
            served.map(|threads| Crowd { threads: *threads, ..Crowd::default() }).collect()
        };
        let row = |contender: &Contender| Row {
            contender: *contender,
            alone: Samples::default(),
            crowds: crowds(contender),
        };
        self.contenders.iter().map(row).collect()
    }
}

/// The runs that are to be made once for each of these rows.
fn works(rows: &[Row]) -> Vec<(usize, Work)> {
    let of_row = |(nth, row): (usize, &Row)| {
        let mut works = std::vec![(nth, Work::Alone)];
        for (crowd, Crowd { threads, .. }) in row.crowds.iter().enumerate() {
            works.push((nth, Work::Compete(crowd)));
            // A single thread never waits.
            works.extend((*threads > 1).then_some((nth, Work::Watch(crowd))));
        }
        works
    };
    rows.iter().enumerate().flat_map(of_row).collect()
}

impl Row {
    fn measure(&mut self, work: Work, length: Duration) -> Result<(), ExclusionError> {
        let Self { contender, alone, crowds } = self;
        match work {
            Work::Alone => alone.push(contender.run(SoloSpeed { length })),
            Work::Compete(crowd) => {
                let crowd = &mut crowds[crowd];
                let threads = crowd.threads;
                let race =
                    contender.run(Compete { threads, length }).ok_or(contender.broken(threads))?;
                crowd.throughput.push(race.throughput());
                crowd.jain.push(race.jain());
            }
            Work::Watch(crowd) => {
                let crowd = &mut crowds[crowd];
                let threads = crowd.threads;
                let waits =
                    contender.run(Watch { threads, length }).ok_or(contender.broken(threads))?;
                crowd.p50.push(waits.quantile(0.5));
                crowd.p99.push(waits.quantile(0.99));
                crowd.p999.push(waits.quantile(0.999));
                crowd.overtaken = crowd.overtaken.max(waits.overtaken);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lock_is_measured_in_every_way() {
        let contenders = Contender::all();
        let locks = crate::algorithms::ALL.iter().filter(|entry| entry.lock).count();
        assert_eq!(contenders.len(), locks + 4);
        let length = Duration::from_micros(100);
        let plan = Plan { contenders, crowds: std::vec![1, 2, 3], runs: 2, length };
        let mut heard = 0;
        let rows = plan.run(&mut |done| {
            heard += 1;
            done + 1 == heard
        });
        assert_eq!(heard, plan.total());
        for Row { contender, alone, crowds } in rows.unwrap() {
            let name = contender.name();
            let most = contender.info().map_or(usize::MAX, |info| info.most);
            assert_eq!(crowds.len(), most.min(3), "{name}");
            let spread = alone.spread().unwrap();
            assert!(0.0 < spread.least && spread.least <= spread.most, "{name}: {spread:?}");
            for crowd in crowds {
                let jain = crowd.jain.spread().unwrap();
                assert!(0.333 < jain.least && jain.most < 1.001, "{name}: {jain:?}");
                let (half, rare) = (crowd.p50.spread(), crowd.p999.spread());
                assert_eq!(
                    half.is_some(),
                    crowd.threads > 1,
                    "{name}: a single thread never waits"
                );
                let median = |spread: Option<Spread>| spread.map(|spread| spread.median);
                assert!(median(half) <= median(rare), "{name}: {half:?} {rare:?}");
            }
        }
    }

    #[test]
    fn who_has_seen_enough_gets_what_there_is() {
        let contenders = Contender::all();
        let plan = Plan { contenders, crowds: std::vec![2], runs: 5, length: Duration::ZERO };
        let rows = plan.run(&mut |done| done < 1).unwrap();
        let measured = |samples: &Samples| samples.spread().is_some();
        let alone = rows.iter().filter(|row| measured(&row.alone)).count();
        let crowds = || rows.iter().flat_map(|row| &row.crowds);
        let competed = crowds().filter(|crowd| measured(&crowd.throughput)).count();
        let watched = crowds().filter(|crowd| measured(&crowd.p50)).count();
        assert_eq!(alone + competed + watched, 1);
    }
}
