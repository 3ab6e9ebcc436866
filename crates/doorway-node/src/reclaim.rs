//! A node whose predecessor was killed: it waits for those who were inside before it serves.
//!
//! Until then the others treat it as one that is away. It tells nobody its epoch, so they have no
//! view to stop for and go on in theirs; from what they tell, it learns which fences are past.

use std::sync::atomic::Ordering;
use std::task::Waker;

use doorway_core::{Mode, NodeId};
use doorway_protocol::{Fence, NameError};

use crate::guard::{LockGuard, OwnedGuard};
use crate::handle::{Handle, Session};
use crate::locks::{ReclaimRefusal, ShardEffects};
use crate::messages::Message;
use crate::shell::NodeShell;
use crate::views::{LearnOutcome, Views};

/// Why a lock was not held again. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReclaimError {
    /// The text is no name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The node serves, so the lock may have gone to somebody else.
    #[error("the node serves already: the lock was lost")]
    TooLate,
    /// Others have reclaimed it who cannot have held it at the same time.
    #[error("`{0}` was reclaimed by another, who cannot have held it at the same time")]
    Taken(String),
    /// Names like this one are served by an algorithm that knows no shared mode.
    #[error("`{name}` cannot have been shared: {algorithm} serves exclusive locks only")]
    NotShared {
        /// The lock.
        name: String,
        /// The algorithm that serves it.
        algorithm: &'static str,
    },
    /// No such fence has ever been given.
    #[error("fence {fence} of view {view} was never given: the next view is {next}", view = fence.view())]
    Future {
        /// The fence.
        fence: Fence,
        /// The lowest number that the next view can have.
        next: u64,
    },
}

impl NodeShell {
    /// Does the node wait for former holders?
    pub(crate) fn is_reclaiming(&self) -> bool {
        self.reclaiming.load(Ordering::Relaxed)
    }

    /// The epochs as the others are told them: a node that does not serve yet keeps its own.
    pub(crate) fn announced(&self, views: &Views) -> Vec<u64> {
        let mut epochs = views.epochs().to_vec();
        if self.is_reclaiming() {
            epochs[self.setup.me.index()] = 0;
        }
        epochs
    }

    /// Does this node know of a peer that it waits for former holders?
    pub(crate) fn reclaims(&self, peer: NodeId) -> bool {
        self.met.lock()[peer.index()].is_some_and(|(_, epoch)| epoch == 0)
    }

    /// All members that wait for former holders, as far as this node knows.
    pub(crate) fn all_reclaiming(&self) -> Vec<String> {
        let me = self.is_reclaiming().then(|| self.name());
        let peers = self.peers().filter(|peer| peer.is_up() && self.reclaims(peer.id()));
        me.into_iter().chain(peers.map(|peer| peer.name())).map(str::to_owned).collect()
    }

    /// Former holders have reported, or had time to: from now on the node takes part in views.
    pub(crate) fn serve(&self) {
        let mut out = ShardEffects::default();
        let mut views = self.views();
        // Whoever reclaims has the lock of the views, so that nobody is in the middle of it.
        if !self.reclaiming.swap(false, Ordering::Relaxed) || self.is_over() {
            return;
        }
        self.broadcast(&Message::Epochs(views.epochs().to_vec()));
        self.advance(&mut views, &mut out);
        drop(views);
        out.wakers.drain(..).for_each(Waker::wake);
    }

    /// While nobody has been told our epoch, one that others know of us as high was of another
    /// process: the directory was copied, or an old one put back.
    pub(crate) fn spent(&self, views: &Views, epochs: &[u64]) -> Option<LearnOutcome> {
        let me = self.setup.me.index();
        let told = epochs.get(me).filter(|told| **told == views.epochs()[me]);
        told.filter(|_| self.is_reclaiming()).map(|told| LearnOutcome::Overtaken(*told))
    }

    /// Those who have reclaimed what cannot have been held have lost it.
    pub(crate) fn disown(&self, view: u64, out: &mut ShardEffects) {
        // Nobody reclaims any more, so this is looked at once.
        if self.claimed.swap(0, Ordering::Relaxed) < view {
            return;
        }
        tracing::error!(view, "locks were reclaimed under fences that were never given");
        for index in 0..self.shards() {
            self.with_shard_deferred(index, out, |shard, _, out| shard.disown(view, out));
        }
    }
}

/// Hold a lock again that was held when the process before this one ended.
pub(crate) fn reclaim(
    handle: Handle,
    mode: Mode,
    fence: Fence,
    session: Session,
) -> Result<OwnedGuard, ReclaimError> {
    let node = handle.node();
    let info = node.rule(handle.rule()).info;
    let name = || handle.name().to_string();
    if mode == Mode::Shared && !info.shared {
        return Err(ReclaimError::NotShared { name: name(), algorithm: info.name });
    }
    let views = node.views();
    if !node.is_reclaiming() || node.is_over() {
        return Err(ReclaimError::TooLate);
    }
    let next = if views.epochs().contains(&0) {
        Fence::VIEW_LIMIT // Not known yet; as the view begins, the claim is judged again.
    } else {
        views.epochs().iter().sum()
    };
    if fence.view() >= next {
        return Err(ReclaimError::Future { fence, next });
    }
    let claimed =
        node.with_shard_deferred(handle.shard(), &mut ShardEffects::default(), |shard, now, _| {
            shard.reclaim(handle.slot(), mode, fence, session.number(), now)
        });
    let client = match claimed {
        Ok(client) => client,
        Err(ReclaimRefusal::Taken) => return Err(ReclaimError::Taken(name())),
        Err(ReclaimRefusal::TooLate) => return Err(ReclaimError::TooLate),
    };
    node.claimed.fetch_max(fence.view(), Ordering::Relaxed);
    drop(views);
    Ok(LockGuard::new(handle, client, fence))
}
