//! Who may use a session, and when it ends.

use std::fmt;
use std::sync::{Arc, MutexGuard};

use doorway_protocol::{Ask, Code, Fence, Life, Moment, Name, Refusal};

use super::{Session, SharedSession};
use crate::options::Options;

/// Ends the session when no copy of the client and no grant is left.
pub(crate) struct Handle {
    pub(crate) shared: Arc<SharedSession>,
    life: Life,
    /// Whether the session keeps locks until somebody else wants them.
    keeps: bool,
    /// The process that opened the session. A forked child has the same socket but none of the
    /// threads, so it must neither use the session nor end it.
    process: u32,
}

impl Handle {
    pub(crate) fn new(shared: Arc<SharedSession>, options: &Options) -> Self {
        let Options { life, keep: keeps, .. } = *options;
        Self { shared, life, keeps, process: std::process::id() }
    }

    /// Does the session keep locks until somebody else wants them?
    #[cfg(feature = "tokio")]
    pub(crate) fn keeps(&self) -> bool {
        self.keeps
    }

    /// Enter a lock that the session keeps, if that is possible without the node. A forked child
    /// never does.
    pub(crate) fn reenter(&self, ask: &Ask) -> Option<Fence> {
        if !self.keeps || !self.is_here() {
            return None;
        }
        self.lock().line.reenter(Moment::now(), ask)
    }

    /// Leave a lock and let the session keep it, if that is possible without the node.
    pub(crate) fn leave_kept(&self, lock: &Name, fence: Fence) -> bool {
        if !self.keeps || !self.is_here() {
            return false;
        }
        let mut session = self.lock();
        let kept = session.line.leave_kept(Moment::now(), lock, fence);
        if !session.line.is_silent() {
            session.flush(); // Another lock was given back.
        }
        kept
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Session> {
        self.shared.lock()
    }

    /// Is this the process that opened the session?
    pub(crate) fn is_here(&self) -> bool {
        self.process == std::process::id()
    }

    /// Refuse what a forked child asks for.
    pub(crate) fn check_process(&self) -> Result<(), Refusal> {
        if self.is_here() {
            return Ok(());
        }
        let text = "this session belongs to the process from which this one was forked; \
                    open a new one with Client::connect";
        Err(Refusal { code: Code::Invalid, text: text.to_owned() })
    }

    /// Pretend to be a child that was forked from the process of this session.
    #[cfg(test)]
    pub(crate) fn pretend_forked(&mut self) {
        self.process += 1;
    }

    /// Show a client that has this session.
    pub(crate) fn show_client(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let session = self.lock();
        let (endpoints, node) = (session.route.endpoints(), &session.node);
        f.debug_struct("Client").field("endpoints", endpoints).field("node", node).finish()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.is_here() {
            self.lock().leave(self.life);
        }
    }
}
