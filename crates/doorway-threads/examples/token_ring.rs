//! A token ring on threads that begins with arbitrary registers, is disturbed by a fault, and
//! stabilises both times.
//!
//! ```sh
//! cargo run -p doorway-threads --example token_ring
//! ```

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use doorway_threads::ring::{RingError, Station, TokenRing};

/// The number of laps, counted at the first station.
const LAPS: usize = 40;
/// The lap in which a fault changes a register.
const FAULT: usize = 20;

/// What the stations have seen.
struct Ring {
    /// How often the first station has been privileged.
    lap: AtomicUsize,
    /// How many stations are privileged now.
    privileged: AtomicUsize,
    /// The most stations that were privileged at the same time, in each lap.
    most: [AtomicUsize; LAPS],
}

impl Ring {
    fn run(&self, number: usize, mut station: Station<'_>) {
        let mut faulty = number == 2;
        loop {
            let lap = self.lap.load(Ordering::SeqCst);
            if lap >= LAPS {
                return;
            }
            if faulty && lap >= FAULT {
                faulty = false;
                station.disturb(123_456);
            }
            if let Some(privilege) = station.poll() {
                let privileged = 1 + self.privileged.fetch_add(1, Ordering::SeqCst);
                self.most[lap].fetch_max(privileged, Ordering::SeqCst);
                // Long enough for other stations to notice if they are privileged too.
                thread::sleep(std::time::Duration::from_millis(1));
                if number == 0 {
                    self.lap.fetch_add(1, Ordering::SeqCst);
                }
                self.privileged.fetch_sub(1, Ordering::SeqCst);
                drop(privilege);
            }
            thread::yield_now();
        }
    }
}

fn main() -> Result<(), RingError> {
    let mut ring = TokenRing::holding(&[3, 1, 4, 1, 5, 9, 2, 6])?;
    let seen = Ring {
        lap: AtomicUsize::new(0),
        privileged: AtomicUsize::new(0),
        most: [const { AtomicUsize::new(0) }; LAPS],
    };
    thread::scope(|scope| {
        for (number, station) in ring.stations().enumerate() {
            let seen = &seen;
            scope.spawn(move || seen.run(number, station));
        }
    });
    println!("lap  privileged at the same time");
    for (lap, most) in seen.most.iter().enumerate() {
        let note = if lap == FAULT { "  (a register of station 2 changes)" } else { "" };
        println!("{lap:3}  {}{note}", most.load(Ordering::SeqCst));
    }
    Ok(())
}
