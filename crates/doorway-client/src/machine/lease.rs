//! The session as its client knows it, and when it must be taken for lost.

use std::time::Duration;

use doorway_protocol::{Life, Moment, Secret, SessionId};

/// How sure a holder can be of what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// The node has heard of us: nobody else gets the lock.
    Held,
    /// Half of the time has passed without an answer. The lock is still ours, but finish soon.
    Unsure,
    /// The lock must be taken for someone else's. That stays so.
    Lost,
}

/// A session that the node gave us.
///
/// The node counts its time from when it heard of us; we count from when we spoke, which was
/// earlier, and we give up a twentieth before the end, for clocks that do not run alike. So we know
/// before the node that the time is over.
#[derive(Clone, Debug)]
pub(super) struct OpenSession {
    pub(super) id: SessionId,
    pub(super) secret: Secret,
    pub(super) ttl: Duration,
    pub(super) life: Life,
    /// When the last word was sent of which we know that the node heard it.
    pub(super) proven: Moment,
}

impl OpenSession {
    /// Does it end when nothing is heard of us?
    pub(super) fn expires(&self) -> bool {
        !matches!(self.life, Life::Process { .. })
    }

    pub(super) fn state(&self, now: Moment) -> State {
        if now < self.unsure_at() {
            State::Held
        } else if now < self.lost_at() {
            State::Unsure
        } else {
            State::Lost
        }
    }

    /// From when on its holder cannot be sure any more.
    pub(super) fn unsure_at(&self) -> Moment {
        if self.expires() { self.proven.after(self.ttl / 2) } else { Moment::NEVER }
    }

    /// From when on it must be taken for lost.
    pub(super) fn lost_at(&self) -> Moment {
        if self.expires() {
            self.proven.after(self.ttl.saturating_sub(self.ttl / 20))
        } else {
            Moment::NEVER
        }
    }

    /// Does its client give signs of life? A lease is renewed by whoever keeps it, unless it waits.
    pub(super) fn sends_heartbeats(&self, waits: bool) -> bool {
        match self.life {
            Life::Connection { .. } => true,
            Life::Lease => waits,
            Life::Process { .. } => false,
        }
    }
}
