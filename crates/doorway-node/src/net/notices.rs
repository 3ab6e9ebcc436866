//! What has been logged, so that the same refusal is not logged at every try.

use std::collections::BTreeMap;
use std::net::IpAddr;

use doorway_core::NodeId;
use parking_lot::Mutex;

/// Whom a refusal is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum About {
    /// A peer that we dial.
    Peer(NodeId),
    /// Whoever connects from there.
    Address(IpAddr),
}

/// The last refusal of each.
#[derive(Debug, Default)]
pub(super) struct Notices(Mutex<BTreeMap<About, String>>);

impl Notices {
    /// Beyond so many all are forgotten and said again: strangers must not fill the memory.
    const MOST: usize = 256;

    /// Log a refusal, unless it is the same as the last one.
    pub(super) fn refused(&self, about: About, why: &str) {
        let mut said = self.0.lock();
        if said.get(&about).is_some_and(|last| last == why) {
            return;
        }
        if said.len() >= Self::MOST {
            said.clear();
        }
        said.insert(about, why.to_owned());
        match about {
            About::Peer(peer) => tracing::warn!(%peer, "link refused: {why}"),
            About::Address(from) => tracing::warn!(%from, "link refused: {why}"),
        }
    }

    /// All is well again: the next refusal is news.
    pub(super) fn clear(&self, about: About) {
        self.0.lock().remove(&about);
    }
}
