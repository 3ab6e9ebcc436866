//! What a node has counted, as plain values: there is no registry to share.

use crate::locks::LockCounters;
use crate::net::LinkReport;

/// What a node has done since it started, and what it is doing.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NodeCounters {
    /// The view that runs, if one does.
    pub view: Option<u64>,
    /// Acquires that wait.
    pub waiting: usize,
    /// What happened under each algorithm, in the order of the rules; the last is that of all names
    /// which no pattern fits.
    pub rules: Vec<RuleCounters>,
    /// The links to the other members, by name.
    pub links: Vec<(String, LinkReport)>,
}

/// What happened under one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleCounters {
    /// The algorithm.
    pub algorithm: &'static str,
    /// The counts.
    pub counts: LockCounters,
}
