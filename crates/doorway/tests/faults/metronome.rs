//! Notices when the machine stands still: a timer or a write to the disk takes far too long because
//! the machine has too much else to do. Then leases end without a fault.

use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

/// How often the timer is looked at.
const BEAT: Duration = Duration::from_millis(5);

/// How often the disk is written to.
const SYNC: Duration = Duration::from_millis(200);

/// The longest delay that was seen, in nanoseconds. The threads end with the process.
pub(crate) struct Metronome(Arc<AtomicU64>);

impl Metronome {
    /// Begin to watch the clock, and the disk of this directory.
    pub(crate) fn start(directory: &Path) -> Self {
        let longest = Arc::new(AtomicU64::new(0));
        let mut file = File::create(directory.join("metronome")).expect("a file");
        let note = |longest: &AtomicU64, late: Duration| {
            longest.fetch_max(late.as_nanos() as u64, Ordering::Relaxed);
        };
        let (timer, disk) = (Arc::clone(&longest), Arc::clone(&longest));
        thread::spawn(move || {
            loop {
                let begin = Instant::now();
                sleep(BEAT);
                note(&timer, begin.elapsed().saturating_sub(BEAT));
            }
        });
        thread::spawn(move || {
            loop {
                let begin = Instant::now();
                file.rewind().and_then(|()| file.write_all(b"beat")).expect("it can be written");
                file.sync_data().expect("it can be written");
                note(&disk, begin.elapsed());
                sleep(SYNC);
            }
        });
        Self(longest)
    }

    /// The longest delay since the last call.
    pub(crate) fn longest(&self) -> Duration {
        Duration::from_nanos(self.0.swap(0, Ordering::Relaxed))
    }
}
