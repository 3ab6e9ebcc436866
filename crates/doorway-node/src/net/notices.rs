//! Remembers what has been logged, so that the same refusal is not logged at every attempt.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// What a line of the log is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NoticeSubject {
    /// A node of this name, or a caller that claims the name.
    Node(String),
    /// A caller from this address that has not given a name.
    Address(IpAddr),
    /// A node that cannot be reached at its address.
    Unreached(String),
}

/// What was last logged about each subject, and when.
#[derive(Debug, Default)]
pub(super) struct Notices(Mutex<BTreeMap<NoticeSubject, (String, Instant)>>);

impl Notices {
    /// How many notices are remembered. Beyond that all are forgotten and logged again, so that
    /// unknown callers cannot fill the memory.
    const MOST: usize = 256;

    /// After how long an unchanged refusal is logged again.
    const AGAIN: Duration = Duration::from_hours(1);

    /// How often callers from one address that have not given a name are logged at most. They may
    /// send anything, and so be refused for another reason each time.
    const UNNAMED: Duration = Duration::from_mins(1);

    /// Log a refusal, unless it is the same as the last one for this subject.
    pub(super) fn refused(&self, about: NoticeSubject, why: &str) {
        if self.is_news(&about, why) {
            match about {
                NoticeSubject::Address(from) => tracing::warn!(%from, "link refused: {why}"),
                NoticeSubject::Node(node) | NoticeSubject::Unreached(node) => {
                    tracing::warn!(?node, "link refused: {why}");
                }
            }
        }
    }

    /// Log that a node cannot be reached. This is logged once whatever the reason, because the
    /// network may fail in many ways.
    pub(super) fn unreached(&self, node: &str, address: &str, why: &dyn fmt::Display) {
        if self.is_news(&NoticeSubject::Unreached(node.to_owned()), address) {
            tracing::warn!(node, address, "cannot reach the member, will keep trying: {why}");
        }
    }

    fn is_news(&self, about: &NoticeSubject, what: &str) -> bool {
        let mut said = self.0.lock();
        if let Some((last, at)) = said.get(about) {
            let unnamed = matches!(about, NoticeSubject::Address(_));
            let quiet = if last == what { Self::AGAIN } else { Self::UNNAMED };
            if at.elapsed() < quiet && (last == what || unnamed) {
                return false;
            }
        }
        if said.len() >= Self::MOST {
            said.clear();
        }
        said.insert(about.clone(), (what.to_owned(), Instant::now()));
        true
    }

    /// Forget what was logged about a node, because its link is up now: the next problem is news.
    pub(super) fn clear(&self, node: &str) {
        let mut said = self.0.lock();
        said.remove(&NoticeSubject::Node(node.to_owned()));
        said.remove(&NoticeSubject::Unreached(node.to_owned()));
    }
}
