//! Takes back locks for clients that held them when the process before this one was killed.
//!
//! A node that was killed starts again and first waits for its former holders. The other members
//! treat it as unreachable meanwhile. They tell it their epochs, so it learns which fences can have
//! been granted.

use doorway_core::Mode;
use doorway_protocol::{Fence, NameError};

use crate::guard::{LockGuard, OwnedGuard};
use crate::handle::{Handle, Session};
use crate::locks::{ReclaimRefusal, ShardEffects};
use crate::members;
use crate::shell::{Membership, NodeShell};
use crate::views::{AgreedEvent, ClaimError, Event};

/// Why a lock could not be reclaimed. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReclaimError {
    /// The text is not a valid lock name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The node serves already, so the lock may have been granted to another client.
    #[error("the node serves already: the lock was lost")]
    TooLate,
    /// Another client has reclaimed the lock, and the two cannot have held it at the same time.
    #[error("`{0}` was reclaimed by another client, which excludes this one")]
    Taken(String),
    /// The algorithm that serves the lock has no shared mode.
    #[error("`{name}` cannot have been shared: {algorithm} serves exclusive locks only")]
    NotShared {
        /// The lock.
        name: String,
        /// The algorithm that serves it.
        algorithm: &'static str,
    },
    /// The fence was never granted.
    #[error(
        "fence {fence} of view {view} was never granted: the next view is {next}",
        view = fence.view()
    )]
    Future {
        /// The fence.
        fence: Fence,
        /// The lowest number that the next view can have.
        next: u64,
    },
    /// The group has counted the process before this one as gone, so its grants have ended.
    #[error("the group has removed the process that granted the lock, and with it the grant")]
    Ended,
}

impl NodeShell {
    /// Does the node wait for former holders?
    pub(crate) fn is_reclaiming(&self) -> bool {
        match &self.membership {
            Membership::Fixed(group) => group.change.lock().is_reclaiming(),
            Membership::Agreed(group) => group.views.lock().is_reclaiming(),
        }
    }

    /// All members that wait for former holders, as far as this node knows.
    pub(crate) fn all_reclaiming(&self) -> Vec<String> {
        match &self.membership {
            Membership::Fixed(group) => {
                let change = group.change.lock();
                let me = change.is_reclaiming().then(|| self.name().to_owned());
                me.into_iter().chain(self.names(&change.reclaiming_peers())).collect()
            }
            Membership::Agreed(group) => group.waiting(),
        }
    }

    /// The members for which the next view waits.
    pub(crate) fn awaited(&self) -> Vec<String> {
        match &self.membership {
            Membership::Fixed(group) => self.names(&group.change.lock().missing()),
            Membership::Agreed(group) => group.views.lock().missing(),
        }
    }

    /// Begin to serve: former holders have reclaimed their locks, or have had the time to do so.
    pub(crate) fn serve(&self) {
        match &self.membership {
            Membership::Fixed(_) => self.step(Event::Serve),
            Membership::Agreed(group) => {
                self.step_agreed(group, AgreedEvent::Serve);
                group.tell_keeper(members::Event::Reclaimed);
            }
        }
    }

    /// Put a client inside that may reclaim a lock under this fence. The state machine of the views
    /// is locked meanwhile, so that the node cannot begin to serve in between.
    fn claim<R>(&self, fence: Fence, enter: impl FnOnce() -> R) -> Result<R, ClaimError> {
        match &self.membership {
            Membership::Fixed(group) => {
                let mut change = group.change.lock();
                change.claim(fence).map(|()| enter())
            }
            Membership::Agreed(group) => {
                let views = group.views.lock();
                views.claim(fence).map(|()| enter())
            }
        }
    }
}

/// Take back a lock that a client held when the process before this one ended.
pub(crate) fn reclaim(
    handle: Handle,
    mode: Mode,
    fence: Fence,
    session: Session,
) -> Result<OwnedGuard, ReclaimError> {
    let node = handle.node();
    let info = handle.info();
    let name = || handle.name().to_string();
    if mode == Mode::Shared && !info.shared {
        return Err(ReclaimError::NotShared { name: name(), algorithm: info.name });
    }
    let claimed = node.claim(fence, || {
        node.with_shard_deferred(handle.shard(), &mut ShardEffects::default(), |shard, now, _| {
            shard.reclaim(handle.slot(), mode, fence, session.number(), now)
        })
    });
    let claimed = match claimed {
        Ok(claimed) => claimed,
        Err(ClaimError::TooLate) => return Err(ReclaimError::TooLate),
        Err(ClaimError::Future { next }) => return Err(ReclaimError::Future { fence, next }),
        Err(ClaimError::Ended) => return Err(ReclaimError::Ended),
    };
    match claimed {
        Ok(client) => Ok(LockGuard::new(handle, client, fence)),
        Err(ReclaimRefusal::Taken) => Err(ReclaimError::Taken(name())),
        Err(ReclaimRefusal::TooLate) => Err(ReclaimError::TooLate),
    }
}
