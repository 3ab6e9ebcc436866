//! A client that uses the service all the time, and notices if the service stalls.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use doorway_client::{Options, blocking};

use crate::common::daemon::Daemon;
use crate::common::{PATIENCE, until};

/// A client that uses the service all the time.
pub(crate) struct Witness {
    entries: Arc<AtomicU64>,
    enough: Arc<AtomicBool>,
    /// Returns how long its longest round took.
    thread: Option<JoinHandle<Duration>>,
}

impl Witness {
    pub(crate) fn start(daemon: &Daemon) -> Self {
        let options = Options::default().ttl(PATIENCE).label("witness");
        let client = blocking::Client::connect(daemon.endpoint(), &options);
        let client = client.expect("a session");
        let (entries, enough) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let (count, stop) = (Arc::clone(&entries), Arc::clone(&enough));
        let thread = std::thread::spawn(move || {
            let mut longest = Duration::ZERO;
            while !stop.load(Ordering::SeqCst) {
                let began = Instant::now();
                let grant = client.acquire("witness").enter().expect("nobody else wants it");
                grant.release().expect("it was held");
                longest = longest.max(began.elapsed());
                count.fetch_add(1, Ordering::SeqCst);
                // In real time, so that it does not become a crowd itself.
                std::thread::sleep(Duration::from_micros(200));
            }
            longest
        });
        Self { entries, enough, thread: Some(thread) }
    }

    /// Wait until it has made this many more rounds.
    pub(crate) fn goes_on(&self, more: u64) {
        let wanted = self.entries.load(Ordering::SeqCst) + more;
        until("the service goes on for others", || self.entries.load(Ordering::SeqCst) >= wanted);
    }

    pub(crate) fn stop(mut self) {
        self.enough.store(true, Ordering::SeqCst);
        if let Some(longest) = self.thread.take().and_then(|thread| thread.join().ok()) {
            let entries = self.entries.load(Ordering::SeqCst);
            println!("the witness entered {entries} times, and waited {longest:?} at most");
        } else {
            panic!("the witness was let down");
        }
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.enough.store(true, Ordering::SeqCst);
    }
}
