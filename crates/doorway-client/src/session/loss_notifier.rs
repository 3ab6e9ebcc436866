//! Calling the program's own function when a grant is lost.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::thread;

use crate::error::LostGrant;

/// Reports losses on a thread of its own, so that the program's function may block, use the client
/// or panic while heartbeats go on.
pub(crate) struct LossNotifier(mpsc::Sender<LostGrant>);

impl LossNotifier {
    /// # Panics
    ///
    /// If the system cannot start another thread.
    pub(crate) fn new(tell: impl Fn(&LostGrant) + Send + 'static) -> Self {
        let (notifier, losses) = mpsc::channel::<LostGrant>();
        let run = move || {
            for lost in losses {
                // The panic has been printed, and the next loss is reported all the same.
                let _ = catch_unwind(AssertUnwindSafe(|| tell(&lost)));
            }
        };
        let thread = thread::Builder::new().name("doorway-lost".to_owned()).spawn(run);
        drop(thread.expect("the system starts a thread"));
        Self(notifier)
    }

    pub(crate) fn tell(&self, lost: LostGrant) {
        // Sending cannot fail: the thread ends only when the sender is dropped.
        let _ = self.0.send(lost);
    }
}
