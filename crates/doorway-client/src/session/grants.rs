//! What becomes of grants, and why.

use std::time::Duration;

use doorway_protocol::{Fence, Moment, Name};

use super::Session;
use crate::error::Lost;
use crate::machine::State;

/// Of so many losses the reason is known until their grants are gone.
const LOSSES: usize = 1024;

impl Session {
    /// How sure we can be of this grant.
    pub(crate) fn state_of(&self, lock: &Name, fence: Fence) -> State {
        self.line.grant_state(lock, fence, Moment::now())
    }

    /// For how long the grant is surely ours if the node is not heard of again.
    pub(crate) fn remaining(&self, lock: &Name, fence: Fence) -> Option<Duration> {
        let now = Moment::now();
        if self.line.grant_state(lock, fence, now) == State::Lost {
            return Some(Duration::ZERO);
        }
        self.line.deadline().map(|deadline| deadline.since(now))
    }

    /// Is the grant ours now? If not, its reason is told to whoever asks first.
    pub(crate) fn check(&mut self, lock: &Name, fence: Fence) -> Result<(), Lost> {
        match self.state_of(lock, fence) {
            State::Held | State::Unsure => Ok(()),
            State::Lost => Err(self.loss(lock, fence)),
        }
    }

    /// Why the grant is lost.
    pub(crate) fn loss(&mut self, lock: &Name, fence: Fence) -> Lost {
        let known = self.losses.remove(&(fence, lock.clone()));
        let reason = known.unwrap_or_else(|| "it was not held any more".to_owned());
        Lost { lock: lock.clone(), fence, reason }
    }

    /// Tell a loss, and remember it for whoever has the grant.
    pub(super) fn lost(&mut self, lost: Lost) {
        if self.losses.len() == LOSSES {
            self.losses.pop_first(); // Grants that were kept for later have nobody who asks.
        }
        self.losses.insert((lost.fence, lost.lock.clone()), lost.reason.clone());
        if let Some(notifier) = &self.on_lost {
            notifier.tell(lost);
        }
    }
}
