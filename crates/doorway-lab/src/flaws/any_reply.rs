//! An algorithm that counts a reply which arrives too late.

use doorway_core::NodeId;
use doorway_core::algorithms::raymond_k::{Message, RaymondK};

use crate::spoiled::{Sends, Spoil};

/// Takes any reply for one to the current request, which the paper warns against.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct AnyReply {
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
