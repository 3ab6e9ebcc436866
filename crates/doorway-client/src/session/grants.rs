//! The state of grants, and why they were lost.

use std::time::Duration;

use doorway_protocol::{Fence, Moment, Name};

use super::Session;
use crate::error::LostGrant;
use crate::machine::State;

/// For how many lost grants the reason is kept.
const LOSSES: usize = 1024;

impl Session {
    /// Whether this grant is still held.
    pub(crate) fn state_of(&self, lock: &Name, fence: Fence) -> State {
        self.line.grant_state(lock, fence, Moment::now())
    }

    /// For how long this grant is still held if the node does not answer again.
    pub(crate) fn remaining(&self, lock: &Name, fence: Fence) -> Option<Duration> {
        let now = Moment::now();
        if self.line.grant_state(lock, fence, now) == State::Lost {
            return Some(Duration::ZERO);
        }
        self.line.deadline().map(|deadline| deadline.since(now))
    }

    /// Check that this grant is still held. The reason of a loss is given only to the first caller.
    pub(crate) fn check(&mut self, lock: &Name, fence: Fence) -> Result<(), LostGrant> {
        match self.state_of(lock, fence) {
            State::Held | State::Unsure => Ok(()),
            State::Lost => Err(self.loss(lock, fence)),
        }
    }

    /// Why this grant was lost.
    pub(crate) fn loss(&mut self, lock: &Name, fence: Fence) -> LostGrant {
        let known = self.losses.remove(&(fence, lock.clone()));
        let reason =
            known.unwrap_or_else(|| "the node did not hold it for this client any more".to_owned());
        LostGrant { lock: lock.clone(), fence, reason }
    }

    /// Report a loss, and remember the reason for the owner of the grant.
    pub(super) fn lost(&mut self, lost: LostGrant) {
        if self.losses.len() == LOSSES {
            // For grants that were left to the session with `keep`, nobody may ever ask.
            self.losses.pop_first();
        }
        self.losses.insert((lost.fence, lost.lock.clone()), lost.reason.clone());
        if let Some(notifier) = &self.on_lost {
            notifier.tell(lost);
        }
    }
}
