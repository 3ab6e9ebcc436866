//! Places in the queues of locks, of which there are only so many.

use doorway_node::Handle;
use doorway_protocol::{Name, Refusal};

use super::Inner;
use super::refusals::limit;
use super::shares::{Share, What};
use crate::principal::Principal;

impl Inner {
    /// A place in the queue of a lock, unless too many wait, of all or of this client. So many of
    /// those that the node has in the queue are this very request.
    pub(super) fn place(
        &self,
        principal: &Principal,
        lock: &Name,
        handle: &Handle,
        in_it: usize,
    ) -> Result<[Option<Share>; 2], Refusal> {
        let (most, name) = (self.limits.queue, "limits.queue");
        if handle.waiting().saturating_sub(in_it) >= most {
            return Err(limit(&format!("{most} requests for `{lock}` wait"), name, most));
        }
        let (queue, things) = (What::Queue(lock.clone()), format!("requests for `{lock}`"));
        let queue = self.shares.take_half(queue, principal, most, name, &things)?;
        let (all, name) = (self.outstanding, "limits.outstanding");
        let waiting = self.shares.take_half(What::Waiting, principal, all, name, "requests")?;
        Ok([queue, waiting])
    }
}
