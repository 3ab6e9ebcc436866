//! The timer that wakes the sessions.

use std::time::Duration;

use doorway_protocol::Timer;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::sleep;

use crate::socket::watch;

/// A timer of the system, which is armed once for each tick.
///
/// While a timer of the runtime is set, every wait for the next request has a timeout, which the
/// kernel arms and disarms again. docs/benchmarks.md says how long that takes.
pub(super) struct Alarm(Option<AsyncFd<Timer>>);

impl Alarm {
    /// If the system has no descriptor left, the timers of the runtime are used.
    pub(super) fn new() -> Self {
        Self(Timer::new().and_then(|timer| watch(timer, Interest::READABLE)).ok())
    }

    /// Wait for this time.
    pub(super) async fn wait(&self, time: Duration) {
        let Some(timer) = &self.0 else { return sleep(time).await };
        timer.get_ref().set_after(time);
        match timer.readable().await {
            Ok(mut ready) => {
                timer.get_ref().clear();
                ready.clear_ready();
            }
            Err(_) => std::future::pending().await, // The runtime is ending.
        }
    }
}
