//! The rules in which the variants of Maekawa's algorithm differ.

use core::fmt::Debug;
use core::hash::Hash;

use super::cost;
use super::requester::{ByName, Requester};
use crate::algorithms::prelude::*;

/// Where the variants differ. What is not overridden is right.
pub trait Rules: Clone + Debug + Eq + Hash + Send + Sync + 'static {
    /// How a node keeps account of its own request.
    type Requester: Requester;
    /// What the variant declares about itself.
    const INFO: Info;
    /// Whether the oldest queued request is told FAILED when a still older one displaces it.
    const TELL_DISPLACED: bool = true;
    /// Whether an INQUIRE about another request is ignored.
    const IGNORE_STALE: bool = true;
    /// Whether messages that no correct peer sends are refused, such as a RELINQUISH of a lock that
    /// the sender does not have.
    const GUARDED: bool = true;
    /// Whether, on any RELINQUISH, the request that has the lock waits again, even if another node
    /// sent it.
    const REQUEUE_OWNER: bool = true;
    /// Whether a relinquished member counts as refused until it is locked again.
    const COUNT_RELINQUISHED: bool = true;
    /// Whether to answer FAILED also if only a queued request is older, and not the one that has
    /// the lock.
    const FAILED_BEHIND_QUEUED: bool = true;
    /// Whether a node relinquishes whenever asked. Then FAILED is not needed.
    const EAGER: bool = false;
    /// Whether to inquire for every request older than the lock, not only for the first.
    const INQUIRE_EACH_TIME: bool = false;
}

/// The correct rules.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Repaired {}

impl Rules for Repaired {
    type Requester = ByName;
    const INFO: Info = Info {
        name: "maekawa",
        summary: "lock every node of a quorum; younger requests give way to older ones",
        paper: "Maekawa, A √N Algorithm for Mutual Exclusion in Decentralized Systems, TOCS 3(2)",
        year: 1985,
        kind: Kind::Quorum,
        channel: Channel::Fifo,
        needs: Needs::Quorums,
        withdraws: true,
        served: true,
        messages: Claim {
            least: cost::LEAST,
            most: cost::MOST,
            per: Per::Run,
            light: Some(cost::LIGHT),
            heavy: None,
        },
        ..Info::BASE
    };
}

/// The paper as printed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Printed {}

impl Rules for Printed {
    type Requester = ByName;
    const INFO: Info = Info {
        name: "maekawa-printed",
        summary: "maekawa as printed: a displaced request is not told FAILED",
        refuted: Some("deadlock, with three nodes in 8 steps"),
        withdraws: false,
        served: false,
        ..Repaired::INFO
    };
    const TELL_DISPLACED: bool = false;
    const IGNORE_STALE: bool = false;
    const GUARDED: bool = false;
}

/// The algorithm as most textbooks describe it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Textbook {}

impl Rules for Textbook {
    type Requester = ByName;
    const INFO: Info = Info {
        name: "maekawa-textbook",
        summary: "maekawa as in textbooks: FAILED only if the owner of the lock is older",
        refuted: Some("deadlock, with three nodes in 8 steps"),
        withdraws: false,
        served: false,
        ..Repaired::INFO
    };
    const TELL_DISPLACED: bool = false;
    const FAILED_BEHIND_QUEUED: bool = false;
}
