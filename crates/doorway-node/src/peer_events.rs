//! How a node reacts to its links: peers come and go, and messages arrive.

use doorway_core::NodeId;

use crate::link::{Hello, ReceivedCount, Versions};
use crate::messages::{AlgorithmMessage, Message};
use crate::net::LinkHandler;
use crate::shell::NodeShell;
use crate::views::Event;

impl LinkHandler for NodeShell {
    fn hello(&self) -> Hello {
        Hello {
            versions: Versions::SPOKEN,
            group: self.group.clone(),
            node: self.name().to_owned(),
            config: self.digest,
            incarnation: self.incarnation,
            epochs: self.change().announced(),
            received: ReceivedCount::default(),
        }
    }

    fn admit(&self, peer: NodeId, hello: &Hello) -> Result<(), String> {
        self.change().admits(&hello.epochs).map_err(|error| error.to_string())?;
        let (incarnation, epochs) = (hello.incarnation, hello.epochs.clone());
        self.step(Event::Hello { peer, incarnation, epochs });
        Ok(())
    }

    fn up(&self, peer: NodeId, hello: &Hello) {
        tracing::info!(peer = self.seating.name(peer), "link up");
        let (incarnation, epochs) = (hello.incarnation, hello.epochs.clone());
        self.step(Event::Up { peer, incarnation, epochs });
    }

    fn deliver(&self, from: NodeId, message: Message) {
        match message {
            Message::Algorithm(message) => self.deliver_to_lock(from, &message),
            Message::Flush(flush) => self.step(Event::Flush(from, flush)),
            Message::Epochs(epochs) => self.step(Event::Epochs(from, epochs)),
            Message::Ask(number, question) => {
                self.send(from, &Message::Tell(number, self.answer(&question)));
            }
            Message::Tell(number, answer) => self.questions.answered(from, number, answer),
            Message::Record(_) => {} // The members of this group are fixed.
        }
    }

    fn down(&self, peer: NodeId, closed: bool, why: &str) {
        let name = self.seating.name(peer);
        if closed {
            tracing::info!(peer = name, why, "link down");
        } else {
            tracing::warn!(peer = name, why, "link down");
        }
        self.step(Event::Down(peer));
    }
}

impl NodeShell {
    fn deliver_to_lock(&self, from: NodeId, message: &AlgorithmMessage) {
        let (shard, rule) = (self.shard_of(&message.lock), self.rule_of(&message.lock));
        self.with_shard(shard, |shard, now, out| shard.receive(from, rule, message, now, out));
    }
}
