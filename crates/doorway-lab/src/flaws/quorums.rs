//! Maekawa's algorithm and its variants.

use crate::check::{Property, SearchTargets};
use doorway_core::Info;
use doorway_core::algorithms::maekawa::requester::ByName;
use doorway_core::algorithms::maekawa::{
    Maekawa, MaekawaPrinted, MaekawaTextbook, Repaired, Rules,
};
use doorway_core::algorithms::maekawa_eager::{Eager, MaekawaEager, MaekawaSlidesPrinted};
use doorway_core::algorithms::maekawa_sequential::{MaekawaSequential, MaekawaSequentialSelfFirst};
use doorway_core::algorithms::maekawa_unordered::MaekawaUnordered;

use super::Flaw;
use super::served;
use super::sets::{CYCLIC, FANO, FULL, GRID, HUB, PAIR, STAIRS, STAR, VOTER};
use super::worlds::{STUCK, TOGETHER, claim, judge, seek, unordered, voting};

/// Mistakes that are in no text, but that a reader may make.
macro_rules! mutant {
    ($name:ident of $parent:ident: $($rule:ident = $value:literal),+) => {
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        enum $name {}

        impl Rules for $name {
            type Requester = ByName;
            const INFO: Info = $parent::INFO;
            $(const $rule: bool = $value;)+
        }
    };
}

mutant!(TakenBack of Repaired: COUNT_RELINQUISHED = false);
mutant!(StaleAnswered of Eager: EAGER = true, IGNORE_STALE = false, GUARDED = false);
mutant!(SenderChecked of Eager: EAGER = true, IGNORE_STALE = false);

pub(super) fn flaws() -> Vec<Flaw> {
    let flaws = [&displaced()[..], &misread(), &stale(), &overtaken(), &section_10()].concat();
    flaws.into_iter().chain([section_6_3()]).collect()
}

/// Maekawa 1985, section 4: FAILED is decided when a request arrives and never after.
fn displaced() -> [Flaw; 4] {
    let what = "the paper: a request displaced from the head of a queue is not told FAILED";
    let flaw = |name, story, steps, wrong, right| Flaw {
        name,
        algorithm: "maekawa-printed",
        what,
        story,
        cure: "`maekawa`",
        breaks: Property::Stuck,
        steps,
        wrong,
        right,
    };
    [
        flaw(
            "maekawa-displaced-3",
            "\
                All three nodes ask, and each locks itself first. Node 3 has its whole quorum and \
                is inside. The request of node 1 is older than that of node 2, so node 2, as an \
                arbiter, inquires of itself; but it gives way only when it has been told FAILED. \
                The request of node 2 makes node 3 inquire of itself. Then the request of node 1, \
                which is older still, takes the head of the queue at node 3, and node 2 is not \
                told FAILED. Node 3 leaves and locks itself for node 1. Now node 1 waits for the \
                lock of node 2. Node 2 waits for the lock of node 3, and does not know that it has \
                failed there.",
            8,
            || seek(&voting::<MaekawaPrinted>(STAIRS, &[1, 1, 1]), SearchTargets::default()),
            || judge(&voting::<Maekawa>(STAIRS, &[1, 1, 1])),
        ),
        flaw(
            "maekawa-displaced-4",
            "\
                This is the deadlock of maekawa-displaced-3 on the smallest quorums that have all \
                of the paper's properties (a) to (d). Each of three nodes has a lock that the next \
                one needs. The node whose request was displaced does not answer an inquiry, \
                because it waits for a FAILED that no node sends.",
            13,
            || seek(&voting::<MaekawaPrinted>(CYCLIC, &[1, 1, 1, 0]), SearchTargets::default()),
            || judge(&voting::<Maekawa>(CYCLIC, &[1, 1, 1, 0])),
        ),
        flaw(
            "maekawa-grid4",
            "\
                This is the deadlock of maekawa-displaced-3 where a quorum is a row and a column \
                of a grid. The request of node 2 displaces that of node 3 at node 4. Node 3 is not \
                told, so it does not answer the inquiry of node 1.",
            14,
            || seek(&voting::<MaekawaPrinted>(GRID, &[0, 1, 1, 1]), SearchTargets::default()),
            || judge(&voting::<Maekawa>(GRID, &[0, 1, 1, 1])),
        ),
        flaw(
            "maekawa-fano",
            "\
                This is the deadlock of maekawa-displaced-3 on the quorums of the paper's own \
                Figure 1(b), the plane of seven nodes. Four nodes ask.",
            18,
            || {
                seek(
                    &voting::<MaekawaPrinted>(FANO, &[0, 1, 1, 1, 1, 0, 0]),
                    SearchTargets::default(),
                )
            },
            || judge(&voting::<Maekawa>(FANO, &[0, 1, 1, 1, 1, 0, 0])),
        ),
    ]
}

/// The rule for FAILED as other texts give it.
fn misread() -> [Flaw; 2] {
    [
        Flaw {
            name: "maekawa-textbook-4",
            algorithm: "maekawa-textbook",
            what: "many textbooks: FAILED only if the lock itself is older",
            story: "\
                A request that is older than the lock, but younger than another request in the \
                queue, is not told FAILED. It cannot win there and does not know it, so its node \
                keeps the locks that others need.",
            cure: "`maekawa`",
            breaks: Property::Stuck,
            steps: 13,
            wrong: || {
                seek(&voting::<MaekawaTextbook>(CYCLIC, &[1, 1, 1, 0]), SearchTargets::default())
            },
            right: || judge(&voting::<Maekawa>(CYCLIC, &[1, 1, 1, 0])),
        },
        Flaw {
            name: "maekawa-clear-failed",
            algorithm: "maekawa",
            what: "a reading: LOCKED takes FAILED back, and a relinquished lock is not missed",
            story: "\
                A node that has been told FAILED relinquishes a lock. Then the member that refused \
                it locks itself for this node, and the node forgets that it ever failed, although \
                the lock that it relinquished has not come back. At the next inquiry it sees no \
                reason to give way.",
            cure: "`maekawa`",
            breaks: Property::Stuck,
            steps: 17,
            wrong: || {
                seek(&voting::<Maekawa<TakenBack>>(STAIRS, &[2, 2, 2]), SearchTargets::default())
            },
            right: || judge(&voting::<Maekawa>(STAIRS, &[2, 2, 2])),
        },
    ]
}

/// An INQUIRE that arrives when its receiver has left and asked again.
fn stale() -> [Flaw; 3] {
    [
        Flaw {
            name: "maekawa-stale-inquire",
            algorithm: "maekawa-eager",
            what: "paper and slides: a late INQUIRE is taken for one about the next request",
            story: "\
                Node 4 has the only vote. It inquires of node 3 on behalf of an older request. \
                Before the INQUIRE arrives, node 3 has entered, left and asked again, and it takes \
                the INQUIRE for one about its new request. Its RELINQUISH takes the lock from the \
                node that is inside by now, and node 4 gives the lock to another one.",
            cure: "`maekawa-eager`",
            breaks: Property::Exclusion,
            steps: 15,
            wrong: || {
                seek(&voting::<Maekawa<StaleAnswered>>(VOTER, &[1, 1, 2]), SearchTargets::default())
            },
            right: || judge(&voting::<MaekawaEager>(VOTER, &[1, 1, 2])),
        },
        Flaw {
            name: "maekawa-stale-inquire-checked",
            algorithm: "maekawa-eager",
            what: "a repair: RELINQUISH counts only if it comes from the owner of the lock",
            story: "\
                Node 4 checks that a RELINQUISH comes from the owner of its lock. But in the \
                meantime it may have locked itself for the new request of node 3. Node 3 answers \
                the old INQUIRE, node 4 gives the lock to another node, and the LOCKED that was in \
                transit to node 3 is counted when it arrives.",
            cure: "`maekawa-eager`",
            breaks: Property::Exclusion,
            steps: 18,
            wrong: || seek(&voting::<Maekawa<SenderChecked>>(VOTER, &[1, 1, 2]), TOGETHER),
            right: || judge(&voting::<MaekawaEager>(VOTER, &[1, 1, 2])),
        },
        Flaw {
            name: "slides-double-inquiry",
            algorithm: "maekawa-slides-printed",
            what: "the slides: one INQUIRE for every older request",
            story: "\
                Two older requests make node 4 inquire twice of the same owner, which relinquishes \
                twice. The first RELINQUISH gives the lock to the next owner. The second one takes \
                it away again, although that owner is inside.",
            cure: "`maekawa-eager`",
            breaks: Property::Exclusion,
            steps: 17,
            wrong: || {
                seek(&voting::<MaekawaSlidesPrinted>(STAR, &[1, 1, 1]), SearchTargets::default())
            },
            right: || judge(&voting::<MaekawaEager>(STAR, &[1, 1, 1])),
        },
    ]
}

/// Flaws on unordered channels.
fn overtaken() -> [Flaw; 2] {
    [
        Flaw {
            name: "maekawa-nonfifo-vote",
            algorithm: "maekawa-slides-printed",
            what: "unordered channels: an INQUIRE before its LOCKED is answered",
            story: "\
                Node 4 locks itself for node 2 and then inquires on behalf of node 1. The INQUIRE \
                overtakes the LOCKED, and node 2 relinquishes a lock that it does not have yet. \
                Node 1 gets the lock and enters. Then the LOCKED arrives at node 2 and is counted.",
            cure: "`maekawa-unordered`",
            breaks: Property::Exclusion,
            steps: 8,
            wrong: || {
                let world = voting::<MaekawaSlidesPrinted>(VOTER, &[1, 1, 0]);
                seek(&unordered(&world), SearchTargets::default())
            },
            right: || judge(&voting::<MaekawaUnordered>(VOTER, &[1, 1, 0])),
        },
        Flaw {
            name: "maekawa-nonfifo-guard",
            algorithm: "maekawa",
            what: "unordered channels: an INQUIRE before its LOCKED is ignored",
            story: "\
                An INQUIRE that overtakes its LOCKED is taken for one about a request that is \
                done, and ignored. The LOCKED arrives, and no node inquires about it a second \
                time.",
            cure: "`maekawa-unordered`",
            breaks: Property::Stuck,
            steps: 10,
            wrong: || seek(&unordered(&voting::<Maekawa>(FULL, &[1, 1, 1])), STUCK),
            right: || judge(&voting::<MaekawaUnordered>(FULL, &[1, 1, 1])),
        },
    ]
}

/// Maekawa 1985, section 10: one lock after the other, in one order for all.
fn section_10() -> [Flaw; 1] {
    [Flaw {
        name: "sequential-self-first",
        algorithm: "maekawa-sequential-self-first",
        what: "a reading of section 10: lock yourself first, the others in order",
        story: "Each of two nodes has locked itself and waits for the lock of the other.",
        cure: "`maekawa-sequential`",
        breaks: Property::Stuck,
        steps: 4,
        wrong: || {
            seek(&voting::<MaekawaSequentialSelfFirst>(PAIR, &[1, 1]), SearchTargets::default())
        },
        right: || judge(&voting::<MaekawaSequential>(PAIR, &[1, 1])),
    }]
}

/// Maekawa 1985, section 6.3: a waiting request lets at most K-1 others pass at each member.
fn section_6_3() -> Flaw {
    Flaw {
        name: "maekawa-waiting-bound",
        algorithm: "maekawa",
        what: "section 6.3: at most K-1 requests are served at a member while another waits",
        story: "\
            The proof says that every request that arrives later has a larger number. But a node \
            learns of numbers only from the requests that it receives, so the request of a node \
            that has received few of them may arrive later and still be older. Here K is 3.",
        cure: "`maekawa`, quorums {1} {1,2} {1,3} {1,4}, at most N-1",
        breaks: Property::Claim,
        steps: 24,
        wrong: || claim(&served::world::<Maekawa>(CYCLIC, &[2, 2, 2, 0]), served::at_most::<2>),
        right: || claim(&served::world::<Maekawa>(HUB, &[0, 2, 2, 2]), served::at_most::<3>),
    }
}
