//! What has been logged, so that the same refusal is not logged at every try.

use std::collections::BTreeMap;
use std::net::IpAddr;

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Whom a refusal is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum About {
    /// A node of that name, or one that says so.
    Node(String),
    /// Whoever connects from there and has not said who it is.
    Address(IpAddr),
}

/// The last refusal of each, and when it was logged.
#[derive(Debug, Default)]
pub(super) struct Notices(Mutex<BTreeMap<About, (String, Instant)>>);

impl Notices {
    /// Beyond so many all are forgotten and said again: strangers must not fill the memory.
    const MOST: usize = 256;

    /// What goes on for so long is worth another line.
    const AGAIN: Duration = Duration::from_hours(1);

    /// Log a refusal, unless it is the same as the last one.
    pub(super) fn refused(&self, about: About, why: &str) {
        let mut said = self.0.lock();
        let fresh = |(_, at): &&(String, Instant)| at.elapsed() < Self::AGAIN;
        if said.get(&about).filter(fresh).is_some_and(|(last, _)| last == why) {
            return;
        }
        if said.len() >= Self::MOST {
            said.clear();
        }
        match &about {
            About::Node(node) => tracing::warn!(?node, "link refused: {why}"),
            About::Address(from) => tracing::warn!(%from, "link refused: {why}"),
        }
        said.insert(about, (why.to_owned(), Instant::now()));
    }

    /// The link to a node is up: the next refusal is news.
    pub(super) fn clear(&self, node: &str) {
        self.0.lock().remove(&About::Node(node.to_owned()));
    }
}
