//! What a node does about its links: peers come and go, and messages arrive.

use doorway_core::NodeId;

use crate::link::{Hello, ReceivedCount, Versions};
use crate::messages::{AlgorithmMessage, Message};
use crate::net::LinkHandler;
use crate::shell::NodeShell;

impl LinkHandler for NodeShell {
    fn hello(&self) -> Hello {
        Hello {
            versions: Versions::SPOKEN,
            group: self.group.clone(),
            node: self.name().to_owned(),
            config: self.digest,
            incarnation: self.incarnation,
            epochs: self.announced(&self.views()),
            received: ReceivedCount::default(),
        }
    }

    fn admit(&self, peer: NodeId, hello: &Hello) -> Result<(), String> {
        let size = self.names.len();
        if hello.epochs.len() != size {
            return Err(format!("it knows {} members, and there are {size}", hello.epochs.len()));
        }
        let own = hello.epochs[peer.index()];
        let before = self.met.lock()[peer.index()];
        match before {
            Some((met, epoch)) if met != hello.incarnation && own == epoch && own > 0 => {
                // Its directory was lost or copied. This epoch is spent: told of a higher one, the
                // new process goes above it, and the old one, if it lives, knows that it is over.
                // With a lower epoch it hears of this one, and does the same.
                let mut epochs = hello.epochs.clone();
                epochs[peer.index()] = epoch + 1;
                self.learn(&epochs);
            }
            _ => self.learn(&hello.epochs),
        }
        Ok(())
    }

    fn up(&self, peer: NodeId, hello: &Hello) {
        self.met.lock()[peer.index()] = Some((hello.incarnation, hello.epochs[peer.index()]));
        tracing::info!(peer = self.names[peer.index()], "link up");
        // What was said before this process of the peer was met has not reached it.
        let views = self.views();
        self.send(peer, &Message::Epochs(self.announced(&views)));
        for flush in views.flushes() {
            self.send(peer, &Message::Flush(flush));
        }
        drop(views);
        // Everyone who was waited for may be there now.
        self.learn(&hello.epochs);
    }

    fn deliver(&self, from: NodeId, message: Message) {
        match message {
            Message::Algorithm(message) => self.deliver_to_lock(from, &message),
            Message::Flush(flush) => {
                self.note_epoch(from, &flush.epochs);
                self.flushed(from, flush);
            }
            Message::Epochs(epochs) => {
                self.note_epoch(from, &epochs);
                self.learn(&epochs);
            }
            Message::Ask(number, question) => {
                self.send(from, &Message::Tell(number, self.answer(&question)));
            }
            Message::Tell(number, answer) => self.questions.answered(from, number, answer),
        }
    }

    fn down(&self, peer: NodeId, closed: bool, why: &str) {
        let peer = &self.names[peer.index()];
        if closed {
            tracing::info!(peer, why, "link down");
        } else {
            tracing::warn!(peer, why, "link down");
        }
    }
}

impl NodeShell {
    /// Remember the epoch that a peer gives itself.
    fn note_epoch(&self, from: NodeId, epochs: &[u64]) {
        if let (Some(Some((_, known))), Some(own)) =
            (self.met.lock().get_mut(from.index()), epochs.get(from.index()))
        {
            *known = (*known).max(*own);
        }
    }

    fn deliver_to_lock(&self, from: NodeId, message: &AlgorithmMessage) {
        let (shard, rule) = (self.shard_of(&message.lock), self.rule_of(&message.lock));
        self.with_shard(shard, |shard, now, out| shard.receive(from, rule, message, now, out));
    }
}
