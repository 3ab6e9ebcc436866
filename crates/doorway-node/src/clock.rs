//! The clock of a node.

use std::time::Duration;

use tokio::time::Instant;

use crate::members::ClockTimes;

/// The clock by which a node measures its own time. It is given to the node when it starts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Clock {
    /// A clock of this machine that goes on while the machine is suspended, and one that nobody
    /// adjusts.
    #[cfg(target_os = "linux")]
    System { boot: doorway_protocol::Moment, raw: doorway_protocol::Moment },
    /// The clock of tokio, which a simulation can control. It stands still while the machine is
    /// suspended.
    Tokio(Instant),
}

impl Clock {
    /// The best clock of this machine, from now on.
    pub(crate) fn system() -> Self {
        #[cfg(target_os = "linux")]
        return Self::System {
            boot: doorway_protocol::Moment::boot(),
            raw: doorway_protocol::Moment::raw(),
        };
        #[cfg(not(target_os = "linux"))]
        return Self::tokio();
    }

    /// The clock of tokio, from now on.
    pub(crate) fn tokio() -> Self {
        Self::Tokio(Instant::now())
    }

    /// The time since the clock was made.
    pub(crate) fn now(&self) -> Duration {
        match self {
            #[cfg(target_os = "linux")]
            Self::System { boot, .. } => doorway_protocol::Moment::boot().since(*boot),
            Self::Tokio(began) => began.elapsed(),
        }
    }

    /// The time since the clock was made, by the two clocks that leases need.
    pub(crate) fn both(&self) -> ClockTimes {
        let boot = self.now();
        let raw = match self {
            #[cfg(target_os = "linux")]
            Self::System { raw, .. } => doorway_protocol::Moment::raw().since(*raw),
            Self::Tokio(_) => boot,
        };
        ClockTimes { boot, raw }
    }
}
