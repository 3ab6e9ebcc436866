//! Waiting for what other threads, tasks and processes do.

use std::time::{Duration, Instant};

/// A timeout, far longer than anything takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(40);

/// How long to wait between two looks. Nothing tells a test when to look again.
const PAUSE: Duration = Duration::from_millis(1);

/// Wait until a condition holds.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "waited in vain: {what}");
        std::thread::sleep(PAUSE);
    }
}

/// Wait in a task until a condition holds.
pub(crate) async fn until_async(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !is_so().await {
        assert!(began.elapsed() < PATIENCE, "waited in vain: {what}");
        tokio::time::sleep(PAUSE).await;
    }
}
