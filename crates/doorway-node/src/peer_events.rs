//! How a node reacts to its links: peers come and go, and messages arrive.

use std::sync::Arc;

use doorway_core::NodeId;

use crate::link::{Hello, ReceivedCount, Versions};
use crate::members::{self, BoxedFuture, BoxedStream, Caller};
use crate::messages::{AlgorithmMessage, Message};
use crate::net::{LinkHandler, PeerId};
use crate::shell::{Membership, NodeShell};
use crate::views::{AgreedEvent, Event};

impl LinkHandler for NodeShell {
    fn hello(&self) -> Hello {
        let epochs = match &self.membership {
            Membership::Fixed(group) => group.change.lock().announced(),
            Membership::Agreed(_) => Vec::new(),
        };
        Hello {
            versions: Versions::SPOKEN,
            group: self.group.clone(),
            node: self.name().to_owned(),
            config: self.digest,
            incarnation: self.incarnation,
            epochs,
            received: ReceivedCount::default(),
        }
    }

    fn admit(&self, peer: PeerId, hello: &Hello) -> Result<(), String> {
        if let Membership::Fixed(group) = &self.membership {
            group.change.lock().admits(&hello.epochs).map_err(|error| error.to_string())?;
            let (incarnation, epochs) = (hello.incarnation, hello.epochs.clone());
            self.step(Event::Hello { peer: node(peer), incarnation, epochs });
        }
        Ok(())
    }

    fn up(&self, peer: PeerId, hello: &Hello) {
        tracing::info!(peer = self.peer_name(peer), "link up");
        self.link_changes.send_modify(|changes| *changes += 1);
        match &self.membership {
            Membership::Fixed(_) => {
                let (incarnation, epochs) = (hello.incarnation, hello.epochs.clone());
                self.step(Event::Up { peer: node(peer), incarnation, epochs });
            }
            Membership::Agreed(group) => {
                self.step_agreed(group, AgreedEvent::Up(peer.seat()));
                group.tell_keeper(members::Event::Up(peer.seat()));
            }
        }
    }

    fn deliver(&self, from: PeerId, message: Message) {
        match (message, &self.membership) {
            (Message::Algorithm(message), _) => self.deliver_to_lock(from, &message),
            (Message::Flush(flush), Membership::Fixed(_)) => {
                self.step(Event::Flush(node(from), flush));
            }
            (Message::Flush(flush), Membership::Agreed(group)) => {
                self.step_agreed(group, AgreedEvent::Flush(from.seat(), flush));
            }
            (Message::Epochs(epochs), Membership::Fixed(_)) => {
                self.step(Event::Epochs(node(from), epochs));
            }
            (Message::Record(record), Membership::Agreed(group)) => {
                let record = Arc::new(record);
                if group.knows(&record) {
                    return;
                }
                if let Err(error) = record.check() {
                    let peer = self.peer_name(from);
                    tracing::error!(peer, %error, "a peer sent a record that cannot be");
                    return;
                }
                // The views must know it before the next message of this peer, which may be about
                // the new view.
                self.step_agreed(group, AgreedEvent::Record(Arc::clone(&record)));
                group.tell_keeper(members::Event::Record(record));
            }
            (Message::Ask(number, question), _) => {
                self.send(from, &Message::Tell(number, self.answer(from, &question)));
            }
            (Message::Tell(number, answer), _) => self.questions.answered(from, number, answer),
            // A message of the other kind of group. No correct member sends it.
            (Message::Epochs(_), Membership::Agreed(_))
            | (Message::Record(_), Membership::Fixed(_)) => {}
        }
    }

    fn down(&self, peer: PeerId, closed: bool, why: &str) {
        self.link_changes.send_modify(|changes| *changes += 1);
        let name = self.peer_name(peer);
        if closed {
            tracing::info!(peer = name, why, "link down");
        } else {
            tracing::warn!(peer = name, why, "link down");
        }
        match &self.membership {
            Membership::Fixed(_) => self.step(Event::Down(node(peer))),
            Membership::Agreed(group) => {
                self.step_agreed(group, AgreedEvent::Down(peer.seat()));
                group.tell_keeper(members::Event::Down(peer.seat()));
            }
        }
    }

    fn has_store(&self) -> bool {
        matches!(self.membership, Membership::Agreed(_))
    }

    fn store(&self, stream: BoxedStream, caller: Caller) -> BoxedFuture<'static, ()> {
        match &self.membership {
            Membership::Fixed(_) => Box::pin(async {}),
            Membership::Agreed(group) => group.store.serve(stream, caller),
        }
    }
}

impl NodeShell {
    fn deliver_to_lock(&self, from: PeerId, message: &AlgorithmMessage) {
        // A message of a view that this node does not know, or of a node outside of that view.
        let Some(from) = self.seatings.member(message.view, from) else { return };
        let shard = self.shard_of(&message.lock);
        self.with_shard(shard, |shard, now, out| shard.receive(from, message, now, out));
    }
}

/// The number of a member of a fixed group.
fn node(peer: PeerId) -> NodeId {
    NodeId::at(peer.0 as usize)
}
