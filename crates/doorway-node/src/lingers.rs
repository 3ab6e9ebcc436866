//! The shell's part for locks that linger: it calls their shards when the time is over.
//!
//! The timer of tokio has a resolution of a millisecond. A client that comes back ends the linger
//! of its lock without the timer, so only locks that linger in vain do so for longer than their
//! rule says, by up to two milliseconds.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;
use tokio::time::sleep;

use crate::locks::{Patience, Shard};
use crate::shell::{NodeShell, SHARDS};

/// The shards of a node with locks that linger.
#[derive(Default)]
pub(crate) struct Lingers {
    /// A bit for each shard.
    shards: AtomicU64,
    bell: Notify,
}

const _: () = assert!(SHARDS <= u64::BITS as usize, "each shard has a bit");

impl Lingers {
    /// A lock of this shard lingers.
    pub(crate) fn note(&self, shard: usize) {
        self.shards.fetch_or(1 << shard, Ordering::Relaxed);
        self.bell.notify_one();
    }
}

impl NodeShell {
    /// Pass on locks that have lingered long enough, for ever.
    pub(crate) async fn end_lingers(&self) {
        loop {
            self.lingers.bell.notified().await;
            sleep(Patience::SHORT.linger).await;
            let shards = self.lingers.shards.swap(0, Ordering::Relaxed);
            for shard in (0..SHARDS).filter(|shard| shards & 1 << shard != 0) {
                self.with_shard(shard, Shard::end_lingers);
            }
        }
    }
}
