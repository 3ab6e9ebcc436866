//! What the future of a shard depends on, for searches that must recognise equal states.

use std::hash::{Hash, Hasher};

use doorway_core::Holder;

use super::lock::Lock;
use super::machine::AlgorithmMachine;
use super::shard::Shard;
use super::table::Slot;

impl Hash for Shard {
    /// Counters, times and wakers are left out, and so are buffers that are empty between calls.
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.state, self.target, self.clock, &self.floors, &self.table, &self.early).hash(state);
        self.lapsed_inside.hash(state);
        for client in self.clients.iter() {
            client.hash(state);
        }
        // A map has no order of its own.
        let mut names: Vec<_> = self.holders.iter().collect();
        names.sort_unstable_by_key(|(name, _)| *name);
        for (name, holders) in names {
            name.hash(state);
            for Holder { node, mode, permits } in holders {
                (node, mode, permits).hash(state);
            }
        }
    }
}

impl Shard {
    /// The newest view for which the shard has stopped, or which it runs.
    #[doc(hidden)]
    pub fn target(&self) -> u64 {
        self.target
    }

    /// A lock of the shard.
    #[doc(hidden)]
    pub fn lock(&self, slot: Slot) -> &Lock<dyn AlgorithmMachine> {
        &self.table.get(slot.0).lock
    }
}
