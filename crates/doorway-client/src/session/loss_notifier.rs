//! Telling losses.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::thread;

use crate::error::Lost;

/// Tells losses on a thread of its own: whoever hears of one may wait, ask the same client, or
/// panic, and signs of life go on.
pub(crate) struct LossNotifier(mpsc::Sender<Lost>);

impl LossNotifier {
    /// # Panics
    ///
    /// If the system starts no more threads.
    pub(crate) fn new(tell: impl Fn(&Lost) + Send + 'static) -> Self {
        let (notifier, losses) = mpsc::channel::<Lost>();
        let run = move || {
            for lost in losses {
                // The next one is told all the same. Whoever panics has said so itself.
                let _ = catch_unwind(AssertUnwindSafe(|| tell(&lost)));
            }
        };
        let thread = thread::Builder::new().name("doorway-lost".to_owned()).spawn(run);
        drop(thread.expect("the system starts threads"));
        Self(notifier)
    }

    pub(crate) fn tell(&self, lost: Lost) {
        // Its thread ends only when this is dropped.
        let _ = self.0.send(lost);
    }
}
