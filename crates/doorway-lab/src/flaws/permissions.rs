//! The algorithms in which each node asks all others.

use std::collections::{BTreeMap, BTreeSet};

use crate::check::{Property, SearchTargets};
use doorway_core::algorithms::carvalho_roucairol::{self, CarvalhoRoucairol};
use doorway_core::algorithms::lamport::Lamport;
use doorway_core::algorithms::majority::{self, Majority};
use doorway_core::algorithms::raymond_k::{self, RaymondK, RaymondKScanned};
use doorway_core::algorithms::ricart_agrawala::RicartAgrawala;
use doorway_core::{NodeId, Shape};

use super::Flaw;
use super::any_reply::AnyReply;
use super::drowsy::Drowsy;
use super::worlds::{TOGETHER, begun_by, doubling, judge, losing, plain, seek, shaped, unordered};
use crate::spoiled::{Message, Sends, Spoil, SpoiledAlgorithm};

pub(super) fn flaws() -> Vec<Flaw> {
    [&lamport()[..], &carvalho_roucairol(), &ricart_agrawala(), &raymond_k(), &votes()].concat()
}

fn lamport() -> [Flaw; 2] {
    let flaw = |name, what, story, steps, wrong| Flaw {
        name,
        algorithm: "lamport",
        what,
        story,
        cure: "`lamport`, FIFO and reliable",
        breaks: Property::Exclusion,
        steps,
        wrong,
        right: || judge(&plain::<Lamport>(&[1, 1])),
    };
    [
        flaw(
            "lamport-nonfifo",
            "unordered channels: an ACK overtakes the REQUEST sent before it",
            "\
                Both nodes ask. One acknowledges the request of the other, and its ACK overtakes \
                its own REQUEST. The other node has a later message from every node and knows of \
                no older request, so it enters. The node with the older request enters too.",
            4,
            || seek(&unordered(&plain::<Lamport>(&[1, 1])), SearchTargets::default()),
        ),
        flaw(
            "lamport-loss",
            "a REQUEST is lost",
            "\
                Here nothing is overtaken, but the older REQUEST is lost, and the ACK that was \
                sent after it arrives.",
            5,
            || seek(&losing(plain::<Lamport>(&[1, 1])), TOGETHER),
        ),
    ]
}

fn carvalho_roucairol() -> [Flaw; 3] {
    [
        Flaw {
            name: "cr-no-rerequest",
            algorithm: "carvalho-roucairol",
            what: "rule 4 is left out: a permission given back while waiting is not asked for again",
            story: "\
                A waiting node gives a permission away to an older request, and no node knows that \
                it needs the permission back.",
            cure: "`carvalho-roucairol`",
            breaks: Property::Stuck,
            steps: 21,
            wrong: || {
                seek(
                    &plain::<SpoiledAlgorithm<NeverAskedBack>>(&[2, 1, 1]),
                    SearchTargets::default(),
                )
            },
            right: || judge(&plain::<CarvalhoRoucairol>(&[2, 1, 1])),
        },
        Flaw {
            name: "cr-split-wakeup",
            algorithm: "carvalho-roucairol",
            what: "an adapter: the client is woken, and enters without looking again",
            story: "\
                Node 2 begins inside, leaves, and keeps the permission of the pair. It asks again, \
                and as no permission is missing, its client is woken. Before the client runs, the \
                request of node 1 arrives. It has the same number, so it is the older one, and the \
                permission goes to node 1. Then the client of node 2 enters all the same. This \
                needs a client that is woken by its own request: of two nodes, one that is woken \
                by a REPLY loses nothing, because the next request of the other node is younger \
                and has to wait. Here a woken client runs in the step of the next event at its \
                node.",
            cure: "`carvalho-roucairol`",
            breaks: Property::Exclusion,
            steps: 6,
            wrong: || seek(&begun_by(NodeId(1), &plain::<Drowsy>(&[1, 1])), TOGETHER),
            right: || judge(&begun_by(NodeId(1), &plain::<CarvalhoRoucairol>(&[1, 1]))),
        },
        Flaw {
            name: "cr-dup",
            algorithm: "carvalho-roucairol",
            what: "a REPLY arrives twice",
            story: "\
                A REPLY is a permission. Its copy arrives when the receiver has given the \
                permission back and asked for it again. Then both nodes of the pair have it.",
            cure: "`carvalho-roucairol`, each message once",
            breaks: Property::Exclusion,
            steps: 9,
            wrong: || seek(&doubling(plain::<CarvalhoRoucairol>(&[2, 2])), TOGETHER),
            right: || judge(&plain::<CarvalhoRoucairol>(&[2, 2])),
        },
    ]
}

fn ricart_agrawala() -> [Flaw; 1] {
    [Flaw {
        name: "ra-dup",
        algorithm: "ricart-agrawala",
        what: "a REPLY arrives twice",
        story: "\
            The copy of a REPLY arrives when its receiver has asked again, and is counted for the \
            new request.",
        cure: "`ricart-agrawala`, each message once",
        breaks: Property::Exclusion,
        steps: 9,
        wrong: || seek(&doubling(plain::<RicartAgrawala>(&[2, 2])), TOGETHER),
        right: || judge(&plain::<RicartAgrawala>(&[2, 2])),
    }]
}

/// Two permits.
fn two() -> Shape {
    Shape { permits: Some(2), ..Shape::default() }
}

fn raymond_k() -> [Flaw; 3] {
    [
        Flaw {
            name: "raymondk-ocr",
            algorithm: "raymond-k-scanned",
            what: "the scan: replies of nodes Z < me count, for Z ≠ me",
            story: "\
                No node is lower than node 1, so no reply to it counts. It asks alone, both others \
                reply, and nothing else can happen.",
            cure: "`raymond-k`",
            breaks: Property::Stuck,
            steps: 5,
            wrong: || {
                seek(&shaped::<RaymondKScanned>(&two(), &[1, 1, 1]), SearchTargets::default())
            },
            right: || judge(&shaped::<RaymondK>(&two(), &[1, 1, 1])),
        },
        Flaw {
            name: "raymondk-anyreply",
            algorithm: "raymond-k",
            what: "a reply to an earlier request is counted",
            story: "\
                With two permits for three nodes, a node enters on the first reply. The second \
                reply comes when the node has left and asked again. It is counted for the new \
                request, although its sender may be inside.",
            cure: "`raymond-k`",
            breaks: Property::Exclusion,
            steps: 13,
            wrong: || {
                seek(
                    &shaped::<SpoiledAlgorithm<AnyReply>>(&two(), &[2, 2, 1]),
                    SearchTargets::default(),
                )
            },
            right: || judge(&shaped::<RaymondK>(&two(), &[2, 1, 1])),
        },
        Flaw {
            name: "raymondk-dup",
            algorithm: "raymond-k",
            what: "the paper's replies are only counted, and one arrives twice",
            story: "\
                In the paper a REPLY says how many requests it answers, and each node counts how \
                many replies every other node owes it. The copy of a REPLY pays a debt that is \
                still open. In `raymond-k` a REPLY names its request, so the same copy is refused \
                and does nothing.",
            cure: "`raymond-k`, one copy too, exclusion",
            breaks: Property::Exclusion,
            steps: 12,
            wrong: || {
                seek(
                    &doubling(shaped::<SpoiledAlgorithm<CountedReplies>>(&two(), &[2, 1, 1])),
                    TOGETHER,
                )
            },
            right: || seek(&doubling(shaped::<RaymondK>(&two(), &[2, 1, 1])), TOGETHER),
        },
    ]
}

fn votes() -> [Flaw; 2] {
    [
        Flaw {
            name: "majority-release-overtakes",
            algorithm: "majority",
            what: "a YES to a request that is done is ignored",
            story: "\
                A node enters with two votes of three, and leaves before the third YES arrives. If \
                it does not give that vote back, the vote is lent for ever to a request that is \
                done. Two such votes are a majority.",
            cure: "`majority`",
            breaks: Property::Stuck,
            steps: 17,
            wrong: || {
                seek(&plain::<SpoiledAlgorithm<Overlooks>>(&[1, 1, 1]), SearchTargets::default())
            },
            right: || judge(&plain::<Majority>(&[1, 1, 1])),
        },
        Flaw {
            name: "majority-dup-vote",
            algorithm: "majority",
            what: "a YES arrives twice",
            story: "\
                A YES that arrives twice is counted twice. The two counts are a majority of \
                three, although only one node has voted for the request.",
            cure: "`majority`, each message once",
            breaks: Property::Exclusion,
            steps: 7,
            wrong: || seek(&doubling(plain::<Majority>(&[1, 1, 1])), TOGETHER),
            right: || judge(&plain::<Majority>(&[1, 1, 1])),
        },
    ]
}

/// Carvalho & Roucairol without rule 4: a permission given back is not asked for again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct NeverAskedBack;

impl Spoil for NeverAskedBack {
    type Of = CarvalhoRoucairol;

    fn change(&mut self, mut sends: Sends<Self>) -> Sends<Self> {
        use carvalho_roucairol::Message;
        if matches!(sends.first(), Some((_, Message::Reply))) {
            sends.retain(|(_, message)| *message == Message::Reply);
        }
        sends
    }
}

/// Raymond's own messages: a REPLY does not name its request, but says how many requests it
/// answers. Here that number takes the place of the name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct CountedReplies {
    present: u64,
    /// How many requests each node has not answered.
    owing: BTreeMap<NodeId, u64>,
    /// How many requests of each node we have not answered.
    owed: BTreeMap<NodeId, u64>,
}

impl Spoil for CountedReplies {
    type Of = RaymondK;

    const TOLERANT: bool = true;

    fn change(&mut self, sends: Sends<Self>) -> Sends<Self> {
        use raymond_k::Message::{Reply, Request};
        let mut send = |(to, message)| match message {
            Request(seq) => {
                self.present = seq;
                *self.owing.entry(to).or_default() += 1;
                (to, Request(seq))
            }
            Reply { seats, .. } => (to, Reply { seq: self.owed.remove(&to).unwrap_or(0), seats }),
        };
        sends.into_iter().map(&mut send).collect()
    }

    fn hears(&mut self, from: NodeId, message: Message<Self>) -> Option<Message<Self>> {
        use raymond_k::Message::{Reply, Request};
        match message {
            Request(seq) => {
                *self.owed.entry(from).or_default() += 1;
                Some(Request(seq))
            }
            Reply { seq: count, seats } => {
                let owing = self.owing.entry(from).or_default();
                *owing = owing.saturating_sub(count);
                (*owing == 0).then_some(Reply { seq: self.present, seats })
            }
        }
    }
}

/// Ignores a YES to a request that is done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Overlooks {
    done: BTreeSet<u64>,
}

impl Spoil for Overlooks {
    type Of = Majority;

    const TOLERANT: bool = true;

    fn change(&mut self, sends: Sends<Self>) -> Sends<Self> {
        for (_, message) in &sends {
            if let majority::Message::Release(clock) = message {
                self.done.insert(*clock);
            }
        }
        sends
    }

    fn hears(&mut self, _from: NodeId, message: Message<Self>) -> Option<Message<Self>> {
        let late = |clock| self.done.contains(&clock);
        let overlooked = matches!(message, majority::Message::Yes(clock, _) if late(clock));
        (!overlooked).then_some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Verdict;

    #[test]
    fn two_nodes_do_not_show_the_need_for_rule_4() {
        let world = plain::<SpoiledAlgorithm<NeverAskedBack>>(&[4, 4]);
        assert_eq!(seek(&world, SearchTargets::default()).report.verdict, Verdict::Holds);
    }
}
