//! Flaws, each of which breaks one rule of an algorithm.

use doorway_core::NodeId;
use doorway_core::algorithms::central::{self, Central};
use doorway_core::algorithms::le_lann::{self, LeLann};
use doorway_core::algorithms::naimi_trehel::{self, NaimiTrehel};
use doorway_core::algorithms::ricart_agrawala::{self, RicartAgrawala};

use doorway_lab::spoiled::{Message, Sends, Spoil};

/// Starts again from number 0 after it has forgotten a lock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct ForgottenClock;

impl Spoil for ForgottenClock {
    type Of = RicartAgrawala;

    const FLOOR: Option<u64> = Some(0);
}

/// Passes the token on twice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct TwoTokens;

impl Spoil for TwoTokens {
    type Of = LeLann;

    fn change(&mut self, sends: Sends<Self>) -> Sends<Self> {
        [sends.clone(), sends].concat()
    }
}

/// Enters on the first reply, and ignores the others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct EarlyEntry {
    asked: bool,
}

impl Spoil for EarlyEntry {
    type Of = RicartAgrawala;

    fn change(&mut self, sends: Sends<Self>) -> Sends<Self> {
        let request =
            |(_, message): &(_, _)| matches!(message, ricart_agrawala::Message::Request(_));
        self.asked |= sends.iter().any(request);
        sends
    }

    fn hears(&mut self, _from: NodeId, message: Message<Self>) -> Option<Message<Self>> {
        (message != ricart_agrawala::Message::Reply).then_some(message)
    }

    fn enters(&mut self, message: &Message<Self>) -> bool {
        *message == ricart_agrawala::Message::Reply && std::mem::take(&mut self.asked)
    }
}

/// Leaves without sending the replies that it has deferred.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct DroppedDeferral;

impl Spoil for DroppedDeferral {
    type Of = RicartAgrawala;

    fn leave(&mut self, _sends: Sends<Self>) -> Sends<Self> {
        Vec::new()
    }
}

/// Leaves without telling the coordinator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct LostRelease;

impl Spoil for LostRelease {
    type Of = Central;

    fn change(&mut self, mut sends: Sends<Self>) -> Sends<Self> {
        sends.retain(|(_, message)| *message != central::Message::Release);
        sends
    }
}

/// Receives a request and forgets it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct ForgottenRequest;

impl Spoil for ForgottenRequest {
    type Of = NaimiTrehel;

    fn hears(&mut self, _from: NodeId, message: Message<Self>) -> Option<Message<Self>> {
        (message == naimi_trehel::Message::Token).then_some(message)
    }
}

/// Node 2 of 3 passes the token on, even if its client waits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct PassedBy {
    passes: bool,
}

impl Spoil for PassedBy {
    type Of = LeLann;

    fn hears(&mut self, from: NodeId, message: Message<Self>) -> Option<Message<Self>> {
        self.passes = from == NodeId(0);
        (!self.passes).then_some(message)
    }

    fn change(&mut self, mut sends: Sends<Self>) -> Sends<Self> {
        if std::mem::take(&mut self.passes) {
            sends.push((NodeId(2), le_lann::Message::Token));
        }
        sends
    }
}

/// A network in which the coordinator's messages to node 2 arrive at node 3, and the reverse.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct WrongNode;

impl Spoil for WrongNode {
    type Of = Central;

    fn change(&mut self, sends: Sends<Self>) -> Sends<Self> {
        let other = |node| if node == NodeId(1) { NodeId(2) } else { NodeId(1) };
        let astray = |(to, message)| match message {
            central::Message::Grant => (other(to), message),
            message => (to, message),
        };
        sends.into_iter().map(astray).collect()
    }
}
