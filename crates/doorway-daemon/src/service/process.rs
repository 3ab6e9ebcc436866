//! Processes of this machine, without mistaking one for another that got its number.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::unix::AsyncFd;
use tokio::time::sleep;

/// How often one is looked for that cannot be watched.
const LOOK: Duration = Duration::from_millis(500);

/// A process, by a descriptor that stands for it alone.
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

    /// The process with this number; none if there is no such process. An error says nothing of
    /// that: there are no descriptors left, say, or the number is of another namespace.
    pub fn look(pid: u32) -> Result<Option<Self>, Errno> {
        let number = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(Errno::INVAL)?;
        // Without blocking, as a runtime wants it.
        match pidfd_open(number, PidfdFlags::NONBLOCK) {
            Ok(fd) => Ok(Some(Self { pid, fd })),
            Err(Errno::SRCH) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Another descriptor for the same process.
    pub fn try_clone(&self) -> std::io::Result<Self> {
        Ok(Self { pid: self.pid, fd: self.fd.try_clone()? })
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Has it ended?
    pub fn is_gone(&self) -> bool {
        let mut polled = [PollFd::new(&self.fd, PollFlags::IN)];
        // An error would mean that nobody can tell, and then nothing may be concluded.
        matches!(poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(1))
    }

    /// Is it known to be another one than that which was started then?
    pub fn is_other(&self, started: Option<u64>) -> bool {
        self.started().zip(started).is_some_and(|(now, then)| now != then)
    }

    /// When it was started, in ticks since the machine was: with its number, that names it for as
    /// long as the machine runs.
    pub fn started(&self) -> Option<u64> {
        let line = fs::read_to_string(format!("/proc/{}/stat", self.pid)).ok()?;
        // The name of the command stands in parentheses and may contain any of them.
        let after = &line[line.rfind(')')? + 1..];
        after.split_ascii_whitespace().nth(19)?.parse().ok()
    }
}

/// Wait until a process has ended that was started then. While it cannot be watched, nothing may be
/// concluded: it is looked for again and again.
pub(crate) async fn ended(pid: u32, started: Option<u64>, known: Option<Process>) {
    let mut known = known.map(Some);
    loop {
        let found = known.take().map_or_else(|| Process::look(pid), Ok);
        match found {
            Ok(Some(process)) if !process.is_other(started) => {
                #[allow(
                    deprecated,
                    reason = "its successor is unsafe, and what is watched here never changes"
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

    #[test]
    fn a_process_is_gone_when_it_has_ended_and_not_before() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let process = Process::open(child.id()).unwrap();
        assert!(!process.is_gone());
        assert!(process.started().unwrap() > 0);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(process.is_gone());
        assert_eq!(process.started(), None);
        assert!(Process::look(child.id()).unwrap().is_none(), "nobody has its number yet");
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
