//! Algorithms with one rule left out, to show that the rule is needed and that its loss is found.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::hash::Hash;

use doorway_core::algorithms::{carvalho_roucairol, central, ricart_agrawala_token};
use doorway_core::{Algorithm, Effects, Group, Info, Mode, NodeId, Start};

/// What is spoiled, with what it must remember to do so.
pub(crate) trait Spoil: Clone + Debug + Default + Eq + Hash {
    /// The sound algorithm.
    type Of: Algorithm;

    /// Is this message heard at all?
    fn hears(&mut self, _from: NodeId, _message: &Message<Self>) -> bool {
        true
    }

    /// Change what one event made the node send.
    fn change(&mut self, sends: Sends<Self>) -> Sends<Self> {
        sends
    }
}

/// A message of the sound algorithm.
pub(crate) type Message<S> = <<S as Spoil>::Of as Algorithm>::Message;

/// What one event made a node send.
pub(crate) type Sends<S> = Vec<(NodeId, Message<S>)>;

/// The sound algorithm, spoiled.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Spoiled<S: Spoil> {
    sound: S::Of,
    spoil: S,
}

impl<S: Spoil> Spoiled<S> {
    fn change(&mut self, out: &mut Effects<Message<S>>) {
        let sends = out.drain().collect();
        for (to, message) in self.spoil.change(sends) {
            out.send(to, message);
        }
    }
}

impl<S: Spoil> Algorithm for Spoiled<S> {
    type Message = Message<S>;

    const INFO: Info = S::Of::INFO;

    fn new(me: NodeId, group: &Group, start: &Start) -> Self {
        Self { sound: S::Of::new(me, group, start), spoil: S::default() }
    }

    fn acquire(&mut self, group: &Group, mode: Mode, out: &mut Effects<Message<S>>) {
        self.sound.acquire(group, mode, out);
        self.change(out);
    }

    fn receive(
        &mut self,
        group: &Group,
        from: NodeId,
        message: Message<S>,
        out: &mut Effects<Message<S>>,
    ) {
        if self.spoil.hears(from, &message) {
            self.sound.receive(group, from, message, out);
            self.change(out);
        }
    }

    fn release(&mut self, group: &Group, out: &mut Effects<Message<S>>) {
        self.sound.release(group, out);
        self.change(out);
    }

    fn wanted(&self) -> bool {
        self.sound.wanted()
    }

    fn floor(&self) -> Option<u64> {
        None
    }
}

/// Carvalho & Roucairol without rule 4: a permission given back is not asked for again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct NeverAskedBack;

impl Spoil for NeverAskedBack {
    type Of = carvalho_roucairol::CarvalhoRoucairol;

    fn change(&mut self, mut sends: Sends<Self>) -> Sends<Self> {
        use carvalho_roucairol::Message;
        if matches!(sends.first(), Some((_, Message::Reply))) {
            sends.retain(|(_, message)| *message == Message::Reply);
        }
        sends
    }
}

/// Ricart & Agrawala's token without the end of the scan: all who ask get one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct EveryTokenSent {
    asked: BTreeMap<NodeId, u64>,
}

impl Spoil for EveryTokenSent {
    type Of = ricart_agrawala_token::RicartAgrawalaToken;

    fn hears(&mut self, from: NodeId, message: &Message<Self>) -> bool {
        if let ricart_agrawala_token::Message::Request(number) = message {
            self.asked.insert(from, *number);
        }
        true
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

/// The coordinator that takes a request of the node inside for a mistake.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct HolderIgnored {
    holder: Option<NodeId>,
}

impl Spoil for HolderIgnored {
    type Of = central::Central;

    fn hears(&mut self, from: NodeId, message: &Message<Self>) -> bool {
        if *message == central::Message::Release {
            self.holder = None;
        }
        *message != central::Message::Request || self.holder != Some(from)
    }

    fn change(&mut self, sends: Sends<Self>) -> Sends<Self> {
        let grant = sends.iter().find(|(_, message)| *message == central::Message::Grant);
        self.holder = grant.map(|(to, _)| *to).or(self.holder);
        sends
    }
}
