//! A reply that comes too late is counted.

use doorway_core::NodeId;
use doorway_core::algorithms::raymond_k::{Message, RaymondK};

use crate::spoiled::{Sends, Spoil};

/// Takes any reply for one to the present request, as the paper warns not to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct AnyReply {
    present: u64,
}

impl Spoil for AnyReply {
    type Of = RaymondK;

    const TOLERANT: bool = true;

    fn change(&mut self, sends: Sends<Self>) -> Sends<Self> {
        for (_, message) in &sends {
            if let Message::Request(seq) = message {
                self.present = *seq;
            }
        }
        sends
    }

    fn hears(&mut self, _from: NodeId, message: Message) -> Option<Message> {
        use Message::{Reply, Request};
        Some(match message {
            Reply { seats, .. } => Reply { seq: self.present, seats },
            Request(seq) => Request(seq),
        })
    }
}
