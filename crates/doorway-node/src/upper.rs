//! What a node does about its links: peers come and go, and messages arrive.

use std::sync::atomic::Ordering;

use doorway_core::NodeId;

use crate::inner::Inner;
use crate::link::{Hello, Received, Versions};
use crate::net::Upper;
use crate::wire::{Message, Step};

impl Upper for Inner {
    fn hello(&self, _peer: NodeId) -> Hello {
        Hello {
            versions: Versions::SPOKEN,
            group: self.group.clone(),
            node: self.name().to_owned(),
            config: self.digest,
            incarnation: self.incarnation,
            epochs: self.views().epochs().to_vec(),
            received: Received::default(),
        }
    }

    fn admit(&self, _peer: NodeId, hello: &Hello) -> Result<(), String> {
        let size = self.names.len();
        if hello.epochs.len() == size {
            return Ok(());
        }
        Err(format!("it knows {} members, and there are {size}", hello.epochs.len()))
    }

    fn up(&self, peer: NodeId, hello: &Hello) {
        self.up[peer.index()].store(true, Ordering::Release);
        tracing::info!(peer = self.names[peer.index()], "link up");
        // What was said before this process of the peer was met has not reached it.
        let views = self.views();
        self.send(peer, &Message::Epochs(views.epochs().to_vec()));
        for flush in views.flushes() {
            self.send(peer, &Message::Flush(flush));
        }
        drop(views);
        self.learn(&hello.epochs);
    }

    fn deliver(&self, from: NodeId, message: Message) {
        match message {
            Message::Step(step) => self.stepped(from, &step),
            Message::Flush(flush) => self.flushed(from, flush),
            Message::Epochs(epochs) => self.learn(&epochs),
            Message::Ask(number, question) => {
                self.send(from, &Message::Tell(number, self.answer(&question)));
            }
            Message::Tell(number, answer) => self.questions.answered(from, number, answer),
        }
    }

    fn delivered(&self, _from: NodeId) {}

    fn down(&self, peer: NodeId, why: &str) {
        self.up[peer.index()].store(false, Ordering::Release);
        tracing::warn!(peer = self.names[peer.index()], why, "link down");
    }
}

impl Inner {
    fn stepped(&self, from: NodeId, step: &Step) {
        let (shard, rule) = (self.shard_of(&step.lock), self.rule_of(&step.lock));
        self.step(shard, |shard, now, out| shard.receive(from, rule, step, now, out));
    }
}
