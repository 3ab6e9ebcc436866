//! Which locks to take and how, and the options that say so.

use std::time::Duration;

use doorway_client::{Mode, Name};

use super::link::Persistence;
use super::options::seconds;
use crate::numbers::whole;

/// The options that say how to take a lock.
#[derive(clap::Args)]
pub(crate) struct AcquireArgs {
    /// Give up at once if the lock is not free
    #[arg(short = 'n', long, visible_alias = "nb", conflicts_with = "wait")]
    nonblock: bool,

    /// Wait for the lock, and for a node, at most this long, in seconds or as 500ms or 10m; 0 is
    /// the same as -n [default: wait forever, and 10 seconds for a node]
    #[arg(short, long, value_name = "SECS", visible_alias = "timeout", value_parser = seconds)]
    wait: Option<Duration>,

    /// Take the lock in shared mode, together with other shared holders (readers)
    #[arg(short, long, conflicts_with_all = ["exclusive", "permits"])]
    shared: bool,

    /// Take the lock in exclusive mode; this is the default
    #[arg(short = 'x', long, visible_short_alias = 'e')]
    exclusive: bool,

    /// Allow up to K holders at once (counting semaphore); all of them must give the same K. The
    /// fences of these grants are in no order, and have nothing to do with those without -k
    #[arg(short = 'k', long, value_name = "K", value_parser = whole(1..=u32::MAX))]
    permits: Option<u32>,

    /// Exit with this code if the lock is not free in time
    #[arg(
        short = 'E',
        long,
        value_name = "CODE",
        default_value_t = 1,
        value_parser = whole(0..=u8::MAX),
    )]
    conflict_exit_code: u8,
}

impl AcquireArgs {
    /// For how long to try to reach a node.
    pub(crate) fn persistence(&self) -> Persistence {
        match self.wait {
            _ if self.nonblock => Persistence::Once,
            Some(Duration::ZERO) => Persistence::Once,
            Some(_) => Persistence::Deadline,
            None => Persistence::Usual,
        }
    }

    /// A request for these locks with these options.
    pub(crate) fn request<'a>(&self, locks: &'a [Name]) -> LockRequest<'a> {
        LockRequest {
            locks,
            mode: if self.shared { Mode::Shared } else { Mode::Exclusive },
            permits: self.permits,
            within: if self.nonblock { Some(Duration::ZERO) } else { self.wait },
            conflict: self.conflict_exit_code,
            persists: false,
        }
    }
}

/// Which locks to take, and how.
pub(crate) struct LockRequest<'a> {
    /// The locks, in the order of their names.
    pub(crate) locks: &'a [Name],
    /// Exclusive or shared.
    pub(crate) mode: Mode,
    /// How many holders there may be at once, if the lock is a semaphore.
    pub(crate) permits: Option<u32>,
    /// How long to wait; none to wait forever.
    pub(crate) within: Option<Duration>,
    /// The exit code if the locks are not free in time.
    pub(crate) conflict: u8,
    /// Whether to wait for a node that has gone away for as long as it takes.
    pub(crate) persists: bool,
}
