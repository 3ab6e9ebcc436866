//! Mühl, lecture slides on distributed mutual exclusion: the mesh algorithm of Maekawa (1985) with
//! a simpler way out of deadlock, corrected.
//!
//! As in Maekawa's algorithm, a node locks all members of its quorum, and an older request makes a
//! member ask for its lock back. But a node that is asked and not yet inside gives the lock back at
//! once, without finding out whether its request would have succeeded. So FAILED is not needed.
//! Some locks are given back in vain, but every FAILED is saved.
//!
//! # Rules
//!
//! 1. To ask: take a number above every one seen and send REQUEST to all of the quorum.
//! 2. On REQUEST: if unlocked, lock for it and answer LOCKED (CONFIRM on the slides). Else queue
//!    it; if it is the first that is older than the lock, send INQUIRE to the node that has the
//!    lock.
//! 3. On INQUIRE about the present request, while waiting: RELINQUISH. Else give no answer, since
//!    RELEASE answers it.
//! 4. On RELINQUISH: queue the request that has the lock, and lock for the oldest: LOCKED.
//! 5. On the last LOCKED: enter. To leave: send RELEASE to all of the quorum.
//! 6. On RELEASE: lock for the oldest queued request, if any: LOCKED.
//!
//! # Why it is right
//!
//! If two nodes were inside, a common member would be locked for both. The oldest request gets
//! every lock that it lacks: the node that has the lock gives it back when asked, or enters and
//! leaves. Channels must be FIFO: an INQUIRE that overtakes its LOCKED would be taken for a stale
//! one.
//!
//! # Withdrawal
//!
//! 7. To give up: as in `maekawa`.
//!
//! # Flaws of the printed text
//!
//! The slides inquire for every older request. The second INQUIRE makes the same node relinquish
//! twice, and the second RELINQUISH takes the lock from its next owner, which may be inside by
//! then. An INQUIRE that arrives late, when its receiver has asked again, does the same.
//!
//! # Variant maekawa-slides-printed
//!
//! - Rule 2: INQUIRE is sent for every request that is older than the lock, not only for the first.
//! - Rule 3: an INQUIRE about a past request is answered like one about the present request.
//! - Rule 4: RELINQUISH is accepted from any node. Its sender waits again, and the lock goes to the
//!   oldest queued request, whichever node has it.

use super::maekawa::requester::ByName;
use super::maekawa::{Maekawa, Repaired, Rules};
use super::prelude::*;

/// The corrected rules of the slides: relinquish whenever asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Eager {}

impl Rules for Eager {
    type Requester = ByName;
    const INFO: Info = Info {
        name: "maekawa-eager",
        summary: "maekawa without FAILED: an inquired node gives way at once",
        paper: "Maekawa, after Mühl's lecture slides on distributed mutual exclusion, ACM TOCS 3(2)",
        ..Repaired::INFO
    };
    const EAGER: bool = true;
}

/// The rules of the slides: INQUIRE for every older request, and RELINQUISH makes its sender wait
/// again. Unlike on the slides, the lock then goes to the oldest request, not to the one that
/// caused the INQUIRE. Either way, two nodes get inside.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SlidesPrinted {}

impl Rules for SlidesPrinted {
    type Requester = ByName;
    const INFO: Info = Info {
        name: "maekawa-slides-printed",
        summary: "maekawa-eager as on the slides: one INQUIRE for every older request",
        refuted: Some("two nodes inside: three clients in 17 steps, two in 13 if one asks again"),
        withdraws: false,
        served: false,
        ..Eager::INFO
    };
    const EAGER: bool = true;
    const IGNORE_STALE: bool = false;
    const GUARDED: bool = false;
    const REQUEUE_OWNER: bool = false;
    const INQUIRE_EACH_TIME: bool = true;
}

/// The variant of the slides, corrected.
pub type MaekawaEager = Maekawa<Eager>;

/// The variant of the slides, as printed.
pub type MaekawaSlidesPrinted = Maekawa<SlidesPrinted>;
