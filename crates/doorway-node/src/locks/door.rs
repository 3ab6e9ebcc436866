//! Locks that a node keeps closed to its own clients.
//!
//! A member that is gone may have promised a lock to a client for longer than its own lease. The
//! algorithm of the lock does not know of that client any more. So each member keeps its own
//! clients out until the promise is over. Requests wait in their queue meanwhile, and messages of
//! other nodes are processed as always.

use std::time::Duration;

use doorway_protocol::Name;

use super::effects::ShardEffects;
use super::lock::Lock;
use super::shard::Shard;

impl Shard {
    /// Let no client of this node enter this lock from now on. Clients inside stay there.
    pub fn shut_door(&mut self, name: &Name) {
        if !self.shut.contains_key(name) {
            // The lock stays in memory, so that it cannot forget that it is shut.
            let slot = self.open(name);
            self.table.get_mut(slot.0).lock.shut();
            self.shut.insert(name.clone(), slot);
        }
    }

    /// Let clients of this node enter this lock again, after [`Shard::shut_door`].
    pub fn open_door(&mut self, name: &Name, now: Duration, out: &mut ShardEffects) {
        self.check_lease(now, out);
        let Some(slot) = self.shut.remove(name) else { return };
        self.apply(slot.0, now, out, Lock::reopen);
        self.close(slot);
    }

    /// Is the lock closed to the clients of this node?
    pub fn is_shut(&self, name: &Name) -> bool {
        self.shut.contains_key(name)
    }
}
