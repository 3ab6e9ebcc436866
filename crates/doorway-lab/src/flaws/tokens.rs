//! The algorithms in which one node at a time has the right to enter: by a token, or by a grant of
//! the coordinator.

use std::collections::BTreeMap;

use crate::check::{Property, SearchTargets};
use doorway_core::algorithms::central::{self, Central};
use doorway_core::algorithms::raymond_tree::RaymondTree;
use doorway_core::algorithms::ricart_agrawala_token::{self, RicartAgrawalaToken};
use doorway_core::algorithms::suzuki_kasami::SuzukiKasami;
use doorway_core::tree::TreeShape;
use doorway_core::{NodeId, Shape};

use super::Flaw;
use super::worlds::{TOGETHER, doubling, judge, plain, seek, shaped};
use crate::spoiled::{Message, Sends, Spoil, SpoiledAlgorithm};

pub(super) fn flaws() -> Vec<Flaw> {
    vec![
        Flaw {
            name: "token-loop",
            algorithm: "ricart-agrawala-token",
            what: "a reading: the scan does not test have_token, and goes on after a token is sent",
            story: "\
                Two nodes wait when the token is passed on. The scan sends it to the first one and \
                goes on to the second.",
            cure: "`ricart-agrawala-token`",
            breaks: Property::Exclusion,
            steps: 8,
            wrong: || seek(&plain::<SpoiledAlgorithm<EveryTokenSent>>(&[1, 1, 1]), TOGETHER),
            right: || judge(&plain::<RicartAgrawalaToken>(&[1, 1, 1])),
        },
        Flaw {
            name: "sk-dup",
            algorithm: "suzuki-kasami",
            what: "the token arrives twice",
            story: "\
                The copy of the token arrives when its receiver has passed the token on and asked \
                again. It cannot do harm sooner, because a node refuses a token that it does not \
                wait for.",
            cure: "`suzuki-kasami`, each message once",
            breaks: Property::Exclusion,
            steps: 9,
            wrong: || seek(&doubling(plain::<SuzukiKasami>(&[2, 2])), TOGETHER),
            right: || judge(&plain::<SuzukiKasami>(&[2, 2])),
        },
        Flaw {
            name: "raymond-dup-privilege",
            algorithm: "raymond-tree",
            what: "the privilege arrives twice",
            story: "\
                The copy of the privilege arrives when its receiver has passed the privilege on \
                and asked again. It cannot do harm sooner, because a node refuses a privilege that \
                it has not asked for.",
            cure: "`raymond-tree`, each message once",
            breaks: Property::Exclusion,
            steps: 9,
            wrong: || seek(&doubling(shaped::<RaymondTree>(&chain(), &[2, 2, 2])), TOGETHER),
            right: || judge(&shaped::<RaymondTree>(&chain(), &[2, 2, 2])),
        },
        Flaw {
            name: "central-drop",
            algorithm: "central",
            what: "a request of the node inside is taken for a mistake",
            story: "\
                A node leaves and asks again, and its REQUEST overtakes its RELEASE. For the \
                coordinator that node is still inside, so it drops the REQUEST.",
            cure: "`central`",
            breaks: Property::Stuck,
            steps: 7,
            wrong: || {
                seek(
                    &plain::<SpoiledAlgorithm<HolderIgnored>>(&[0, 3, 3]),
                    SearchTargets::default(),
                )
            },
            right: || judge(&plain::<Central>(&[0, 3, 3])),
        },
    ]
}

fn chain() -> Shape {
    Shape { tree: Some(TreeShape::Chain), ..Shape::default() }
}

/// Ricart & Agrawala's token algorithm without the printed test of `have_token` in the scan: each
/// node that asks gets a token.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct EveryTokenSent {
    asked: BTreeMap<NodeId, u64>,
}

impl Spoil for EveryTokenSent {
    type Of = RicartAgrawalaToken;

    fn hears(&mut self, from: NodeId, message: Message<Self>) -> Option<Message<Self>> {
        if let ricart_agrawala_token::Message::Request(number) = message {
            self.asked.insert(from, number);
        }
        Some(message)
    }

    fn change(&mut self, mut sends: Sends<Self>) -> Sends<Self> {
        use ricart_agrawala_token::Message;
        if let Some((first, Message::Token(served))) = sends.first().cloned() {
            let open = self.asked.iter().filter(|(node, number)| **number > served[node.index()]);
            let others = open.map(|(node, _)| *node).filter(|node| *node != first);
            sends.extend(others.map(|node| (node, Message::Token(served.clone()))));
        }
        sends
    }
}

/// A coordinator that ignores a request of the node inside, as if it were a mistake.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct HolderIgnored {
    holder: Option<NodeId>,
}

impl Spoil for HolderIgnored {
    type Of = Central;

    fn hears(&mut self, from: NodeId, message: Message<Self>) -> Option<Message<Self>> {
        if message == central::Message::Release {
            self.holder = None;
        }
        let ignored = message == central::Message::Request && self.holder == Some(from);
        (!ignored).then_some(message)
    }

    fn change(&mut self, sends: Sends<Self>) -> Sends<Self> {
        let grant = sends.iter().find(|(_, message)| *message == central::Message::Grant);
        self.holder = grant.map(|(to, _)| *to).or(self.holder);
        sends
    }
}

#[cfg(test)]
mod tests {
    use doorway_core::Channel;

    use super::super::worlds::over;
    use super::*;
    use crate::check::Verdict;

    #[test]
    fn fifo_channels_hide_a_coordinator_that_drops_requests() {
        let world = over(Channel::Fifo, &plain::<SpoiledAlgorithm<HolderIgnored>>(&[0, 3, 3]));
        assert_eq!(seek(&world, SearchTargets::default()).report.verdict, Verdict::Holds);
    }
}
