//! What is wanted of a lock, and the options that say so.

use std::time::Duration;

use doorway_client::{Mode, Name};

use super::options::seconds;

/// How a lock is to be taken.
#[derive(clap::Args)]
pub(crate) struct AcquireArgs {
    /// Do not wait: give up at once if the lock is not free
    #[arg(short = 'n', long, visible_alias = "nb", conflicts_with = "wait")]
    nonblock: bool,

    /// Wait at most so long (0.5, 500ms or 10m are fine as well, 0 is -n)
    #[arg(short, long, value_name = "SECS", visible_alias = "timeout", value_parser = seconds)]
    wait: Option<Duration>,

    /// Hold the lock together with others that do so
    #[arg(short, long, conflicts_with_all = ["exclusive", "permits"])]
    shared: bool,

    /// Hold the lock alone, which is the default
    #[arg(short = 'x', long, visible_short_alias = 'e')]
    exclusive: bool,

    /// Hold one of so many permits: that many may be inside at a time
    #[arg(short = 'k', long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    permits: Option<u32>,

    /// The exit code if the lock is not free in time
    #[arg(short = 'E', long, value_name = "CODE", default_value_t = 1)]
    conflict_exit_code: u8,
}

impl AcquireArgs {
    /// These locks, in that way.
    pub(crate) fn wanted<'a>(&self, locks: &'a [Name]) -> Wanted<'a> {
        Wanted {
            locks,
            mode: if self.shared { Mode::Shared } else { Mode::Exclusive },
            permits: self.permits,
            within: if self.nonblock { Some(Duration::ZERO) } else { self.wait },
            conflict: self.conflict_exit_code,
        }
    }
}

/// What is wanted.
pub(crate) struct Wanted<'a> {
    /// The locks, in the order of their names.
    pub(crate) locks: &'a [Name],
    /// Alone or with others.
    pub(crate) mode: Mode,
    /// Of how many permits one.
    pub(crate) permits: Option<u32>,
    /// For how long to wait, if not for ever.
    pub(crate) within: Option<Duration>,
    /// The exit code if they are not free in time.
    pub(crate) conflict: u8,
}
