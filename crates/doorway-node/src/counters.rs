//! The counters of a node, as plain values: there is no registry to share.

use crate::locks::LockCounters;
use crate::net::LinkReport;

/// Counters since the node started, and the current state of the node.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NodeCounters {
    /// The number of the view that is running, if one is.
    pub view: Option<u64>,
    /// How many requests for locks wait now.
    pub waiting: usize,
    /// One entry for each rule, in the order of the configuration. The last entry counts the names
    /// that no pattern matches.
    pub rules: Vec<RuleCounters>,
    /// The counters of rules that are not in force any more, because a group that agrees on its
    /// members has changed them: one entry for each algorithm.
    pub former: Vec<RuleCounters>,
    /// The links to the other members, each with the member's name.
    pub links: Vec<(String, LinkReport)>,
}

/// The counters of one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleCounters {
    /// The name of the rule's algorithm.
    pub algorithm: &'static str,
    /// The counts.
    pub counts: LockCounters,
}
