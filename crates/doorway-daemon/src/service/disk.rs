//! Whether the disk with the ledger answers, for reports about the node.
//!
//! A disk may stall for a long time. So a thread of its own asks it, and nothing that clients need
//! waits for the answer: neither the sessions nor the threads on which connections are served.

use std::sync::Arc;
use std::time::Duration;

use doorway_protocol::{LedgerTrouble, Moment};
use doorway_sessions::Input;
use doorway_sessions::clock::ms;
use tokio::sync::watch;
use tokio::time::timeout;

use super::Service;

/// The shortest time between two probes, and how long a report waits for one.
const PAUSE: Duration = Duration::from_secs(1);

/// What is known about the disk.
#[derive(Clone, Copy, Debug, Default)]
struct DiskState {
    /// When the probe that runs now began.
    running: Option<Moment>,
    /// When the last one ended.
    ended: Option<Moment>,
}

/// The probes of a disk, one at a time.
#[derive(Debug)]
pub(super) struct DiskProbe(watch::Sender<DiskState>);

impl Default for DiskProbe {
    fn default() -> Self {
        Self(watch::Sender::new(DiskState::default()))
    }
}

impl DiskProbe {
    /// A probe begins now, unless one runs or has just ended. Returns whether it does.
    fn begin(&self, now: Moment) -> bool {
        self.0.send_if_modified(|state| {
            let recent = state.ended.is_some_and(|ended| now.since(ended) < PAUSE);
            let begins = state.running.is_none() && !recent;
            if begins {
                state.running = Some(now);
            }
            begins
        })
    }

    /// The probe has ended.
    fn end(&self, now: Moment) {
        self.0.send_replace(DiskState { running: None, ended: Some(now) });
    }

    /// Wait until no probe runs, for a second at most.
    async fn wait(&self) {
        let mut states = self.0.subscribe();
        let _ = timeout(PAUSE, states.wait_for(|state| state.running.is_none())).await;
    }

    /// Says that the disk has not answered for more than a second, if that is so.
    pub(super) fn trouble(&self, now: Moment) -> Option<LedgerTrouble> {
        let time = now.since(self.0.borrow().running?);
        (time >= PAUSE).then(|| LedgerTrouble {
            error: format!("the disk has not answered for {} s", time.as_secs()),
            remedy: "see the log of the system for what is wrong with the disk".to_owned(),
            for_ms: ms(time),
        })
    }
}

impl Service {
    /// Find out whether the ledger can be written, unless that was tried a moment ago. If the disk
    /// does not answer, this waits for a second, and later calls for the rest of it.
    pub(crate) async fn try_disk(&self) {
        let shell = Arc::clone(&self.0);
        if shell.ledger.is_none() {
            return;
        }
        if shell.disk.begin(Moment::now_at_node()) {
            self.0.runtime.spawn_blocking(move || {
                let tried = shell.try_disk();
                if let Err(error) = tried {
                    shell.input(Input::LedgerFailed(error));
                }
                shell.disk.end(Moment::now_at_node());
            });
        }
        self.0.disk.wait().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_disk_that_does_not_answer_is_trouble_and_holds_nobody_up_for_long() {
        let disk = DiskProbe::default();
        let at = |ms: u64| Moment(0).after(Duration::from_millis(ms));
        assert!(disk.begin(at(0)) && !disk.begin(at(500)), "one at a time");
        let began = tokio::time::Instant::now();
        disk.wait().await;
        assert_eq!(began.elapsed(), PAUSE);
        assert_eq!(disk.trouble(at(999)), None);
        let told = disk.trouble(at(2500)).expect("it has not answered");
        assert_eq!((told.error.as_str(), told.for_ms), ("the disk has not answered for 2 s", 2500));
        disk.end(at(3000));
        disk.wait().await;
        assert_eq!(disk.trouble(at(9000)), None);
        assert!(!disk.begin(at(3999)) && disk.begin(at(4000)), "one in a second");
    }
}
