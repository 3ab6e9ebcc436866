//! Where the variants of Maekawa's algorithm differ.

use core::fmt::Debug;
use core::hash::Hash;

use super::cost;
use super::requester::{ByName, Requester};
use crate::algorithms::prelude::*;

/// Where the variants differ. What is not overridden is right.
pub trait Rules: Clone + Debug + Eq + Hash + Send + Sync {
    /// How a node keeps account of its own request.
    type Requester: Requester;
    /// What the variant says of itself.
    const INFO: Info;
    /// Tell the oldest queued request FAILED when a still older one displaces it.
    const TELL_DISPLACED: bool = true;
    /// Ignore an INQUIRE about another request.
    const IGNORE_STALE: bool = true;
    /// Refuse a RELINQUISH of another's lock.
    const GUARDED: bool = true;
    /// On any RELINQUISH, the request that has the lock waits again, whoever sent it.
    const REQUEUE_OWNER: bool = true;
    /// A relinquished member counts as refused until it is locked again.
    const COUNT_RELINQUISHED: bool = true;
    /// FAILED also if a queued request is older, not only if the lock is.
    const FAILED_BEHIND_QUEUED: bool = true;
    /// Relinquish whenever asked; then nobody needs FAILED.
    const EAGER: bool = false;
    /// Inquire for every request older than the lock, not only for the first.
    const INQUIRE_EACH_TIME: bool = false;
}

/// The rules that are right.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Repaired {}

impl Rules for Repaired {
    type Requester = ByName;
    const INFO: Info = Info {
        name: "maekawa",
        summary: "lock a quorum; younger requests give way",
        paper: "Maekawa, A √N Algorithm for Mutual Exclusion in Decentralized Systems, TOCS 3(2)",
        year: 1985,
        kind: Kind::Quorum,
        channel: Channel::Fifo,
        needs: Needs::Quorums,
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
        served: false,
        ..Repaired::INFO
    };
    const TELL_DISPLACED: bool = false;
    const IGNORE_STALE: bool = false;
    const GUARDED: bool = false;
}

/// The algorithm as most textbooks tell it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Textbook {}

impl Rules for Textbook {
    type Requester = ByName;
    const INFO: Info = Info {
        name: "maekawa-textbook",
        summary: "maekawa as in textbooks: FAILED only if the lock itself is older",
        refuted: Some("deadlock, with three nodes in 8 steps"),
        served: false,
        ..Repaired::INFO
    };
    const TELL_DISPLACED: bool = false;
    const FAILED_BEHIND_QUEUED: bool = false;
}
