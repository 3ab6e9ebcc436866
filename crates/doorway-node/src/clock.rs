//! The clock of a node.

use std::time::Duration;

use tokio::time::Instant;

/// The clock by which a node measures its own time. It is given to the node when it starts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Clock {
    /// A clock of this machine that goes on while the machine is suspended.
    #[cfg(target_os = "linux")]
    System(doorway_protocol::Moment),
    /// The clock of tokio, which a simulation can control. It stands still while the machine is
    /// suspended.
    Tokio(Instant),
}

impl Clock {
    /// The best clock of this machine, from now on.
    pub(crate) fn system() -> Self {
        #[cfg(target_os = "linux")]
        return Self::System(doorway_protocol::Moment::now());
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
            Self::System(began) => doorway_protocol::Moment::now().since(*began),
            Self::Tokio(began) => began.elapsed(),
        }
    }
}
