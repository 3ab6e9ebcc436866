//! On which cores threads and servers run.

use std::fmt;
use std::process::Command;
use std::thread::JoinHandle;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use tokio::runtime::Runtime;

/// On which cores the ends of a connection run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// All threads on one core.
    OneCore,
    /// Every other thread on another core.
    TwoCores,
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OneCore => "one core",
            Self::TwoCores => "two cores",
        })
    }
}

impl Placement {
    /// The placements for which this machine has enough cores.
    pub(crate) fn available() -> Vec<Self> {
        let both = vec![Self::OneCore, Self::TwoCores];
        both.into_iter().take(cores().len()).collect()
    }

    /// The core of the thread with this number.
    fn core(self, thread: usize) -> usize {
        match self {
            Self::OneCore => cores()[0],
            Self::TwoCores => cores()[thread % 2],
        }
    }

    /// Run on a thread of its own, pinned to its core, with a runtime of its own.
    pub(crate) fn spawn<T: Send + 'static>(
        self,
        thread: usize,
        run: impl FnOnce(Runtime) -> T + Send + 'static,
    ) -> JoinHandle<T> {
        std::thread::spawn(move || {
            let mut set = CpuSet::new();
            set.set(self.core(thread));
            sched_setaffinity(None, &set).unwrap();
            run(tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap())
        })
    }

    /// A program that will run where the thread with this number would.
    pub(crate) fn command(self, thread: usize) -> Command {
        let mut command = Command::new("taskset");
        command.arg("--cpu-list").arg(self.core(thread).to_string());
        command
    }
}

/// The first two cores that this process may use.
fn cores() -> Vec<usize> {
    let all = sched_getaffinity(None).unwrap();
    (0..CpuSet::MAX_CPU).filter(|core| all.is_set(*core)).take(2).collect()
}
