//! Processes of this machine, without mistaking another process for one that had its number.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use doorway_protocol::{Code, Refusal};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::unix::AsyncFd;
use tokio::time::sleep;

use super::holder;
use crate::sessions::refusals::refusal;
use crate::sessions::{Evidence, ProcessId};

/// How often a process is looked for that cannot be watched.
const LOOK: Duration = Duration::from_millis(500);

/// A process, by a descriptor that refers to it alone.
#[derive(Debug)]
pub struct Process {
    pid: u32,
    fd: OwnedFd,
}

impl Process {
    /// The process with this number, if there is one that can be watched.
    pub fn open(pid: u32) -> Option<Self> {
        Self::look(pid).ok().flatten()
    }

    /// The process with this number; none if there is no such process. An error does not tell:
    /// perhaps there are no descriptors left, or the number is of another namespace.
    pub fn look(pid: u32) -> Result<Option<Self>, Errno> {
        let number = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(Errno::INVAL)?;
        // Without blocking, as a runtime wants it.
        match pidfd_open(number, PidfdFlags::NONBLOCK) {
            Ok(fd) => Ok(Some(Self { pid, fd })),
            Err(Errno::SRCH) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether this is known to be another process than the one that was started then.
    pub fn is_other(&self, started: Option<u64>) -> bool {
        self.started().zip(started).is_some_and(|(now, then)| now != then)
    }

    /// When it was started, in ticks since the machine was. With its number, that identifies it for
    /// as long as the machine runs.
    pub fn started(&self) -> Option<u64> {
        let line = fs::read_to_string(format!("/proc/{}/stat", self.pid)).ok()?;
        // The name of the command stands in parentheses and may contain any of them.
        let after = &line[line.rfind(')')? + 1..];
        after.split_ascii_whitespace().nth(19)?.parse().ok()
    }
}

/// Wait until the processes of a session have ended.
pub(crate) async fn wait(evidence: Evidence) {
    match evidence {
        Evidence::Process(ProcessId { pid, started }) => ended(pid, started).await,
        Evidence::Holder(secret, user) => holder::ended(&secret, user).await,
    }
}

/// Wait until a process has ended that was started then. While it cannot be watched, nothing is
/// known about it, so it is looked for again and again.
async fn ended(pid: u32, started: Option<u64>) {
    loop {
        match Process::look(pid) {
            Ok(Some(process)) if !process.is_other(started) => {
                #[allow(
                    deprecated,
                    reason = "its successor is unsafe, and this descriptor never changes"
                )]
                if let Ok(process) = AsyncFd::new(process)
                    && process.readable().await.is_ok()
                {
                    return;
                }
            }
            Ok(_) => return,
            Err(_) => {}
        }
        sleep(LOOK).await;
    }
}

/// The process that a session is to live with.
pub(crate) fn to_live_with(pid: u32, remote: bool) -> Result<ProcessId, Refusal> {
    if remote {
        let text = "a session cannot live with a process of another machine; give it a time";
        return Err(refusal(Code::Invalid, text));
    }
    match Process::look(pid) {
        Ok(Some(process)) => Ok(ProcessId { pid, started: process.started() }),
        Ok(None) | Err(Errno::INVAL) => {
            Err(refusal(Code::Invalid, format!("there is no process {pid}")))
        }
        Err(error) => {
            let text = format!("the process {pid} cannot be watched: {error}");
            Err(refusal(Code::Unavailable, text))
        }
    }
}

impl AsFd for Process {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl std::os::fd::AsRawFd for Process {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.fd.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_process_has_ended_when_it_is_gone_and_not_before() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let process = Process::open(child.id()).unwrap();
        let started = process.started();
        assert!(started.unwrap() > 0);
        let ended = tokio::spawn(ended(child.id(), started));
        tokio::task::yield_now().await;
        assert!(!ended.is_finished());
        child.kill().unwrap();
        child.wait().unwrap();
        ended.await.unwrap();
        assert_eq!(process.started(), None);
        assert!(Process::look(child.id()).unwrap().is_none(), "no process has its number yet");
    }

    #[test]
    fn a_process_is_another_only_where_both_are_known() {
        let own = Process::open(std::process::id()).unwrap();
        let started = own.started();
        assert!(!own.is_other(started) && !own.is_other(None));
        assert!(own.is_other(started.map(|started| started + 1)));
    }

    #[test]
    fn numbers_of_no_process_are_none() {
        for number in [0, u32::MAX] {
            assert!(Process::open(number).is_none());
            assert!(Process::look(number).is_err(), "that says nothing of any process");
        }
    }
}
