//! Locks that a client of this process keeps after it has left them, until somebody else wants
//! them.
//!
//! For the shard, such a client is inside all the time. The client leaves and enters again by a
//! [`KeptWord`] that it shares with the host of the shard, without a call of the shard. When the
//! lock is wanted or lost, the shard names the client in [`ShardEffects::revoked`], and the host
//! revokes the word before anything else can happen to the shard. From then on the client cannot
//! enter again. If it was outside, the host releases the lock at once; if it was inside, the
//! client does so when it leaves. The exchange of the word decides which of them it is, so the
//! lock is always released exactly once.

use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use super::effects::ShardEffects;
use super::lock::ClientId;
use super::shard::Shard;
use super::table::Slot;

const OUTSIDE: u8 = 0;
const INSIDE: u8 = 1;
const GONE: u8 = 2;

/// The atomic operations that a [`KeptWord`] needs. Tests bring atomics of their own.
pub trait AtomicByte {
    /// A byte with this value.
    fn new(value: u8) -> Self;

    /// Store a value, and return the one before.
    fn swap(&self, value: u8, order: Ordering) -> u8;

    /// Store a value if the byte has the expected one, and return whether it had.
    fn replace(&self, expected: u8, value: u8, order: Ordering) -> bool;
}

impl AtomicByte for AtomicU8 {
    fn new(value: u8) -> Self {
        Self::new(value)
    }

    fn swap(&self, value: u8, order: Ordering) -> u8 {
        self.swap(value, order)
    }

    fn replace(&self, expected: u8, value: u8, order: Ordering) -> bool {
        self.compare_exchange(expected, value, order, Ordering::Relaxed).is_ok()
    }
}

/// Where the client of a kept grant is: inside, outside, or gone because it has to give the lock
/// back or has lost it. A word belongs to one grant of the shard and is never used again.
///
/// What was done inside happens before everything that follows a release, also if the host
/// releases the lock: leaving releases the word, and an entry or a revocation acquires it.
#[derive(Debug)]
pub struct KeptWord<A = AtomicU8>(A);

impl<A: AtomicByte> KeptWord<A> {
    /// The word of a client that is inside.
    pub fn inside() -> Self {
        Self(A::new(INSIDE))
    }

    /// The client enters again. Returns false if it may not: the lock has been released.
    pub fn enter(&self) -> bool {
        self.0.replace(OUTSIDE, INSIDE, Ordering::Acquire)
    }

    /// The client leaves and keeps the lock. Returns false if it may not: then the client must
    /// release the lock.
    pub fn leave(&self) -> bool {
        self.0.replace(INSIDE, OUTSIDE, Ordering::Release)
    }

    /// Take the lock from a client that is outside. If this returns true, the caller must release
    /// the lock; otherwise nothing has changed.
    pub fn take(&self) -> bool {
        self.0.replace(OUTSIDE, GONE, Ordering::Acquire)
    }

    /// The client must not enter again. If this returns true, it was outside, and the caller must
    /// release the lock.
    pub fn revoke(&self) -> bool {
        self.0.swap(GONE, Ordering::Acquire) == OUTSIDE
    }
}

/// For searches, which copy and compare whole states.
impl Clone for KeptWord {
    fn clone(&self) -> Self {
        Self(AtomicU8::new(self.0.load(Ordering::Relaxed)))
    }
}

impl Hash for KeptWord {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.load(Ordering::Relaxed).hash(state);
    }
}

impl Shard {
    /// The client inside, if it keeps the lock.
    pub fn keeper(&self, slot: Slot) -> Option<ClientId> {
        let (client, _) = self.table.get(slot.0).lock.inside().next()?;
        self.clients.keeps(client).then_some(client)
    }

    /// Release the locks of revoked clients that are outside. `revoke` revokes the word of a
    /// client, and says whether the client was outside. The host of a shard that has clients with
    /// words must call this after every call that has effects, before it unlocks the shard.
    pub fn release_revoked(
        &mut self,
        now: Duration,
        out: &mut ShardEffects,
        mut revoke: impl FnMut(ClientId) -> bool,
    ) {
        while let Some(client) = out.revoked.pop() {
            if revoke(client) {
                self.leave(client, now, out);
            }
        }
    }
}
