//! What has been logged, so that the same refusal is not logged at every try.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Whom a line of the log is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum About {
    /// A node of that name, or one that says so.
    Node(String),
    /// Whoever connects from there and has not said who it is.
    Address(IpAddr),
    /// A node that cannot be reached at its address.
    Unreached(String),
}

/// What was last said of each, and when.
#[derive(Debug, Default)]
pub(super) struct Notices(Mutex<BTreeMap<About, (String, Instant)>>);

impl Notices {
    /// Beyond so many all are forgotten and said again: strangers must not fill the memory.
    const MOST: usize = 256;

    /// What goes on for so long is worth another line.
    const AGAIN: Duration = Duration::from_hours(1);

    /// Log a refusal, unless it is the same as the last one.
    pub(super) fn refused(&self, about: About, why: &str) {
        if self.is_news(&about, why) {
            match about {
                About::Address(from) => tracing::warn!(%from, "link refused: {why}"),
                About::Node(node) | About::Unreached(node) => {
                    tracing::warn!(?node, "link refused: {why}");
                }
            }
        }
    }

    /// Log that a node cannot be reached: once, for the network may say no in many ways.
    pub(super) fn unreached(&self, node: &str, address: &str, why: &dyn fmt::Display) {
        if self.is_news(&About::Unreached(node.to_owned()), address) {
            tracing::warn!(node, address, "not reached, and tried again until it is: {why}");
        }
    }

    fn is_news(&self, about: &About, what: &str) -> bool {
        let mut said = self.0.lock();
        let fresh = |(_, at): &&(String, Instant)| at.elapsed() < Self::AGAIN;
        if said.get(about).filter(fresh).is_some_and(|(last, _)| last == what) {
            return false;
        }
        if said.len() >= Self::MOST {
            said.clear();
        }
        said.insert(about.clone(), (what.to_owned(), Instant::now()));
        true
    }

    /// The link to a node is up: what is wrong next is news.
    pub(super) fn clear(&self, node: &str) {
        let mut said = self.0.lock();
        said.remove(&About::Node(node.to_owned()));
        said.remove(&About::Unreached(node.to_owned()));
    }
}
