//! The session that the node has opened, and when it is lost.

use std::time::Duration;

use doorway_protocol::{Life, Moment, NodeIdentity, Secret, SessionId};

use super::UNLIMITED;

/// Whether a lock is still held, by the client's own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// The lock is held: the node has answered in the first half of the TTL.
    Held,
    /// The lock is still held, but half of the TTL has passed without an answer. Finish soon.
    Unsure,
    /// The lock is lost: another client may hold it. It stays lost, with one exception: a process
    /// that was stopped asks its node first, and then a session that lives as long as its processes
    /// may turn out to be alive.
    Lost,
}

/// A session that the node has opened for us.
///
/// The node counts the TTL from when it received our last message. We count from when we sent it,
/// which was earlier. Of the two clocks of its machine each side uses the one that is safe, so the
/// rates of both sides differ by 0.2 % at most: see [`doorway_protocol::LeaseClock`]. We give up a
/// twentieth of the TTL before its end, which covers that and leaves some time to stop what needs
/// the lock. So we know that the session is lost before the node ends it.
#[derive(Clone, Debug, Hash)]
pub(super) struct OpenSession {
    pub(super) id: SessionId,
    pub(super) secret: Secret,
    /// The node that opened the session, if its welcome has told. No other node knows of the
    /// session.
    pub(super) node: Option<NodeIdentity>,
    /// The place at which that node was.
    pub(super) place: String,
    pub(super) ttl: Duration,
    /// The TTL that we asked for.
    pub(super) asked: Duration,
    pub(super) life: Life,
    /// When we sent the last message that the node has answered.
    pub(super) proven: Moment,
    /// The session is not lost before this moment, because the node has to be asked first.
    pub(super) grace: Moment,
}

/// How long a node has to answer a client that was stopped for a while.
const GRACE: Duration = Duration::from_secs(1);

impl OpenSession {
    /// Does the session end if the node hears nothing of us?
    pub(super) fn expires(&self) -> bool {
        !matches!(self.life, Life::Process { .. }) && !self.is_bound() && !self.is_endless()
    }

    /// Is the session a lease that holds its lock until that is released or broken? The TTL counts
    /// only while a request waits for the lock.
    pub(super) fn is_endless(&self) -> bool {
        self.asked == UNLIMITED && self.life == Life::Lease
    }

    /// Does the session live as long as the processes that have its connection?
    pub(super) fn is_bound(&self) -> bool {
        self.ttl == UNLIMITED && matches!(self.life, Life::Connection { .. })
    }

    /// Does the session live as long as its processes, as far as the node keeps its own membership?
    /// Then the node does not end it while we are silent. But we have to hear of the node, because
    /// its membership may have ended.
    pub(super) fn lives_with_processes(&self) -> bool {
        self.asked == UNLIMITED && matches!(self.life, Life::Connection { .. })
    }

    /// This process was stopped for a while. A session that lives with its processes may still be
    /// alive, so the node is asked before anything counts as lost.
    pub(super) fn woke(&mut self, now: Moment) {
        if self.lives_with_processes() {
            self.grace = now.after(GRACE);
        }
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

    /// When the state becomes [`State::Unsure`].
    pub(super) fn unsure_at(&self) -> Moment {
        if self.expires() { self.proven.after(self.ttl / 2) } else { Moment::NEVER }
    }

    /// When the state becomes [`State::Lost`].
    pub(super) fn lost_at(&self) -> Moment {
        self.expires_at().max(self.grace)
    }

    /// When the session counts as lost, if this process was not stopped.
    fn expires_at(&self) -> Moment {
        let span = self.ttl.saturating_sub(self.margin());
        if self.expires() { self.proven.after(span) } else { Moment::NEVER }
    }

    /// How long before the end of the TTL we give up.
    pub(super) fn margin(&self) -> Duration {
        self.ttl / 20
    }

    /// Has the node yet to say whether the session is alive, because this process was stopped?
    pub(super) fn is_doubtful(&self, now: Moment) -> bool {
        self.expires_at() <= now
    }

    /// Does the machine send heartbeats for this session? A lease is renewed by its owner, but
    /// while one of its requests waits for a lock the machine renews it.
    pub(super) fn sends_heartbeats(&self, waits: bool) -> bool {
        match self.life {
            Life::Connection { .. } => true,
            Life::Lease => waits,
            Life::Process { .. } => false,
        }
    }
}
