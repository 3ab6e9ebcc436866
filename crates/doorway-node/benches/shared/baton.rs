//! Clients that pass a lock around, and how long it takes from one to the next.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::samples::Samples;

/// What the clients of one lock tell each other while they are inside.
pub(crate) struct Baton {
    state: Mutex<State>,
    /// Notified when a client has entered, and when time is over.
    bell: Notify,
    /// When measuring begins; earlier grants are not counted.
    begin: Instant,
    end: Instant,
}

#[derive(Default)]
struct State {
    inside: bool,
    /// The client that entered last.
    last: Option<usize>,
    released: Option<Instant>,
    delays: Samples,
    /// How often each client has entered.
    entries: Vec<u64>,
}

/// The result of clients that all want the same lock all the time.
#[derive(Clone, Default)]
pub(crate) struct Load {
    /// From a release to the entry of another client.
    pub(crate) delays: Samples,
    seconds: f64,
    entries: Vec<u64>,
}

impl Load {
    pub(crate) fn of(baton: &Baton, turn: Duration) -> Self {
        let state = baton.state.lock();
        let (delays, entries) = (state.delays.clone(), state.entries.clone());
        Self { delays, seconds: turn.as_secs_f64(), entries }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.delays.extend(other.delays);
        self.seconds += other.seconds;
        self.entries.resize(self.entries.len().max(other.entries.len()), 0);
        for (mine, more) in self.entries.iter_mut().zip(other.entries) {
            *mine += more;
        }
    }

    /// Grants per second, each to another client than the last.
    pub(crate) fn rate(&self) -> f64 {
        self.delays.count() as f64 / self.seconds
    }

    /// Jain's index of the clients' entries: one if all had the same share.
    pub(crate) fn fairness(&self) -> f64 {
        let sum: f64 = self.entries.iter().map(|&count| count as f64).sum();
        let squares: f64 = self.entries.iter().map(|&count| (count as f64).powi(2)).sum();
        sum.powi(2) / (self.entries.len() as f64 * squares)
    }
}

impl Baton {
    /// To be passed around for this long, after a fifth of it to warm up.
    pub(crate) fn new(turn: Duration) -> Self {
        let begin = Instant::now() + turn / 5;
        Self { state: Mutex::default(), bell: Notify::new(), begin, end: begin + turn }
    }

    pub(crate) fn is_over(&self) -> bool {
        Instant::now() >= self.end
    }

    /// A client has entered.
    pub(crate) fn entered(&self, client: usize) {
        let now = Instant::now();
        let mut state = self.state.lock();
        assert!(!state.inside, "two are inside");
        let changed = state.last.replace(client) != Some(client);
        state.inside = true;
        if now >= self.begin {
            if client >= state.entries.len() {
                state.entries.resize(client + 1, 0);
            }
            state.entries[client] += 1;
            if let Some(released) = state.released.filter(|_| changed) {
                state.delays.push(now - released);
            }
        }
        drop(state);
        self.bell.notify_waiters();
    }

    /// The client inside is about to release.
    pub(crate) fn leaves(&self) {
        let mut state = self.state.lock();
        state.inside = false;
        state.released = Some(Instant::now());
    }

    /// Wait until another client has entered, because a client that asks again at once may get back
    /// the lock that it has just released. Returns `false` if time is over.
    pub(crate) async fn passed(&self, client: usize) -> bool {
        loop {
            let rings = self.bell.notified();
            if self.is_over() {
                self.bell.notify_waiters();
                return false;
            }
            if self.state.lock().last != Some(client) {
                return true;
            }
            rings.await;
        }
    }

    /// From each release to the next entry of another client.
    pub(crate) fn delays(&self) -> Samples {
        self.state.lock().delays.clone()
    }
}
