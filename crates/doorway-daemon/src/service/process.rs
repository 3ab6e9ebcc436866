//! Processes of this machine, without mistaking one for another that got its number.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// A process, by a descriptor that stands for it alone.
#[derive(Debug)]
pub struct Process {
    pid: u32,
    fd: OwnedFd,
}

impl Process {
    /// The process with this number, if there is one.
    pub fn open(pid: u32) -> Option<Self> {
        let number = Pid::from_raw(i32::try_from(pid).ok()?)?;
        // Without blocking, as a runtime wants it.
        let fd = pidfd_open(number, PidfdFlags::NONBLOCK).ok()?;
        Some(Self { pid, fd })
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

    /// When it was started, in ticks since the machine was: with its number, that names it for as
    /// long as the machine runs.
    pub fn started(&self) -> Option<u64> {
        let line = fs::read_to_string(format!("/proc/{}/stat", self.pid)).ok()?;
        // The name of the command stands in parentheses and may contain any of them.
        let after = &line[line.rfind(')')? + 1..];
        after.split_ascii_whitespace().nth(19)?.parse().ok()
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
    }

    #[test]
    fn numbers_of_no_process_are_none() {
        assert!(Process::open(0).is_none());
        assert!(Process::open(u32::MAX).is_none());
    }
}
