//! Processes of this machine, and how the node knows that they exist.
//!
//! A process is known by a descriptor (pidfd) that the kernel gives for the other end of a
//! connection, or that a client passes. The number of a process (its ID) alone proves little: the
//! process may have ended, and another one may have the number, or the number may be of another pid
//! namespace.

use std::fs;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::LazyLock;
use std::time::Duration;

use doorway_protocol::{Code, Refusal};
use doorway_sessions::refusals::refusal;
use doorway_sessions::{Evidence, ProcessId};
use nix::sys::socket::{getsockopt, sockopt};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::unix::AsyncFd;
use tokio::time::sleep;

use super::Peer;
use super::holder;

/// The version of the protocol since which a client passes a descriptor of a process that a session
/// is to live with.
const DESCRIPTORS: u16 = 2;

/// How often the node looks again for a process that it cannot watch.
const LOOK: Duration = Duration::from_millis(500);

/// A process, by a descriptor that refers to it alone.
#[derive(Debug)]
pub struct Process {
    /// Its number in the pid namespace of this process.
    pid: u32,
    fd: OwnedFd,
}

impl Process {
    /// The process that opened the other end of a Unix socket. `pid` is its number in the
    /// credentials of the socket, 0 if this process cannot see it.
    pub fn peer(socket: &impl AsFd, pid: i32) -> Option<Self> {
        let pid = u32::try_from(pid).ok().filter(|pid| *pid != 0)?;
        match getsockopt(socket, sockopt::PeerPidfd) {
            Ok(fd) => Some(Self { pid, fd }),
            // Linux before 6.5. While the client is connected, its number is its own, unless it has
            // ended and left the connection to a child.
            Err(nix::errno::Errno::ENOPROTOOPT) => {
                let process = Self::open(pid)?;
                (!is_ready(socket, PollFlags::RDHUP)).then_some(process)
            }
            Err(_) => None,
        }
    }

    /// The process that a descriptor refers to, which a client passed.
    fn passed(fd: OwnedFd) -> Result<Self, DescriptorFault> {
        if !is_own_proc() {
            return Err(DescriptorFault::Unseen);
        }
        let about = fs::read_to_string(format!("/proc/self/fdinfo/{}", fd.as_raw_fd()));
        let about = about.unwrap_or_default();
        let number = about.lines().find_map(|line| line.strip_prefix("Pid:"));
        match number.and_then(|number| number.trim().parse::<i64>().ok()) {
            None => Err(DescriptorFault::Other),
            Some(..0) => Err(DescriptorFault::Ended),
            Some(0) => Err(DescriptorFault::Unseen),
            Some(pid) => {
                Ok(Self { pid: u32::try_from(pid).map_err(|_| DescriptorFault::Other)?, fd })
            }
        }
    }

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

    /// Whether this is known to be another process than the one that was started at this time.
    pub fn is_other(&self, started: Option<u64>) -> bool {
        self.started().zip(started).is_some_and(|(now, then)| now != then)
    }

    /// When it was started, in ticks since the machine was started. Together with its number, that
    /// identifies it for as long as the machine runs. None if it has ended.
    pub fn started(&self) -> Option<u64> {
        let line = fs::read_to_string(format!("/proc/{}/stat", self.pid)).ok()?;
        // The name of the command stands in parentheses, and may contain parentheses itself.
        let after = &line[line.rfind(')')? + 1..];
        let started = after.split_ascii_whitespace().nth(19)?.parse().ok()?;
        // As long as it exists, no other process has its number.
        (!self.has_ended()).then_some(started)
    }

    /// Its number and its start, if it exists and the node can see both. A number without a start
    /// would prove nothing after a restart of the node.
    pub fn id(&self) -> Option<ProcessId> {
        let started = self.started().filter(|_| is_own_proc())?;
        Some(ProcessId { pid: self.pid, started: Some(started) })
    }

    fn has_ended(&self) -> bool {
        is_ready(&self.fd, PollFlags::IN)
    }

    /// Wait until it has ended. False if it cannot be watched.
    async fn ends(self) -> bool {
        #[allow(deprecated, reason = "its successor is unsafe, and this descriptor never changes")]
        let watched = AsyncFd::new(self);
        match watched {
            Ok(process) => process.readable().await.is_ok(),
            Err(_) => false,
        }
    }
}

/// Why a descriptor that a client passed is of no use.
enum DescriptorFault {
    /// It does not refer to a process.
    Other,
    /// Its process has ended.
    Ended,
    /// Its process has no number in the pid namespace of this process.
    Unseen,
}

/// Whether `/proc` shows processes by the numbers that they have for this process. It does not if
/// this process was put into another pid namespace without a `/proc` of its own.
fn is_own_proc() -> bool {
    static OWN: LazyLock<bool> = LazyLock::new(|| {
        let own = fs::read_link("/proc/self");
        own.is_ok_and(|own| own.as_os_str() == &*std::process::id().to_string())
    });
    *OWN
}

/// Whether the system reports this for a descriptor now.
fn is_ready(fd: &impl AsFd, what: PollFlags) -> bool {
    let no_time = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(fd, what)], Some(&no_time)).is_ok_and(|count| count > 0)
}

/// Whether a process has no other number than the one by which this process knows it: then both are
/// of the same pid namespace.
fn shares_namespace(pid: u32) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else { return false };
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    // A kernel without namespaces does not list them.
    numbers.is_none_or(|numbers| numbers.split_ascii_whitespace().count() == 1)
}

/// Wait until the processes of a session have ended. `process` is the process of the evidence, if
/// its client has just proven it.
pub(crate) async fn wait(evidence: Evidence, process: Option<Process>) {
    match evidence {
        Evidence::Process(ProcessId { pid, started }) => {
            if let Some(process) = process
                && process.ends().await
            {
                return;
            }
            ended(pid, started).await;
        }
        Evidence::Holder(secret, user) => holder::ended(&secret, user).await,
    }
}

/// Whether a process is known to have ended.
pub(super) fn has_ended(ProcessId { pid, started }: ProcessId) -> bool {
    match Process::look(pid) {
        Ok(Some(process)) => process.has_ended() || process.is_other(started),
        Ok(None) => true,
        Err(_) => false,
    }
}

/// Wait until the process with this number and this start has ended. If it cannot be watched, it is
/// looked for again and again.
async fn ended(pid: u32, started: Option<u64>) {
    loop {
        match Process::look(pid) {
            Ok(Some(process)) if !process.is_other(started) => {
                if process.ends().await {
                    return;
                }
            }
            Ok(_) => return,
            Err(_) => {}
        }
        sleep(LOOK).await;
    }
}

/// The process that a session is to live with: the one that the client passed a descriptor of. The
/// number is for people, and has to be the one by which the node knows the process. `version` is
/// the version of the protocol that client and node speak.
pub(crate) fn to_live_with(
    pid: u32,
    version: u16,
    mut peer: Peer,
) -> Result<(Process, ProcessId), Refusal> {
    if peer.remote {
        let text = "a session cannot live with a process of another machine; give it a time";
        return Err(refusal(Code::Invalid, text));
    }
    let process = match peer.passed.take() {
        Some(fd) => match Process::passed(fd) {
            Ok(process) if process.pid == pid => process,
            Ok(_) | Err(DescriptorFault::Unseen) => return Err(foreign(pid)),
            Err(DescriptorFault::Ended) => return Err(no_process(pid)),
            Err(DescriptorFault::Other) => {
                let text = format!("the client passed a descriptor that is not process {pid}");
                return Err(refusal(Code::Invalid, text));
            }
        },
        None => by_number(pid, version, &peer)?,
    };
    match process.id() {
        Some(id) => Ok((process, id)),
        None if process.has_ended() => Err(no_process(pid)),
        None => {
            let text = format!(
                "the node cannot read /proc/{pid}/stat, so it could mistake another process for \
                 process {pid} later; give the lock a time to live instead (`--ttl SECS`)"
            );
            Err(refusal(Code::Invalid, text))
        }
    }
}

/// The process that a client names without a descriptor, as clients of 0.1.0 do. Its number means
/// something only in the pid namespace of the client.
fn by_number(pid: u32, version: u16, peer: &Peer) -> Result<Process, Refusal> {
    if !peer.process.as_ref().is_some_and(|process| shares_namespace(process.pid)) {
        return Err(foreign(pid));
    }
    match Process::look(pid) {
        Ok(Some(process)) if version < DESCRIPTORS => Ok(process),
        Ok(Some(_)) => {
            let text = format!(
                "the client names process {pid} by its number alone, but another process may get \
                 that number; pass a descriptor of the process (pidfd) with the first bytes of the \
                 connection, as the clients for Rust do"
            );
            Err(refusal(Code::Invalid, text))
        }
        Ok(None) | Err(Errno::INVAL) => Err(no_process(pid)),
        Err(error) => {
            let text = format!("the process {pid} cannot be watched: {error}");
            Err(refusal(Code::Unavailable, text))
        }
    }
}

fn no_process(pid: u32) -> Refusal {
    refusal(Code::Invalid, format!("there is no process {pid}"))
}

fn foreign(pid: u32) -> Refusal {
    let text = format!(
        "process {pid} of the client is not process {pid} of the node: they run in different pid \
         namespaces, as in a container; give the lock a time to live instead (`--ttl SECS`)"
    );
    refusal(Code::Invalid, text)
}

impl AsFd for Process {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsRawFd for Process {
    fn as_raw_fd(&self) -> RawFd {
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
