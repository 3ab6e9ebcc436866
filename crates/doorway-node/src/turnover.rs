//! How a node goes from one view to the next: it stops its shards, tells the others what it holds,
//! and starts again when it has heard all of them.

use doorway_core::NodeId;

use crate::inner::Inner;
use crate::views::{Learned, Started, ViewError, Views};
use crate::wire::{Flush, Held, Message};

impl Inner {
    /// A peer has told us of epochs.
    pub(crate) fn learn(&self, epochs: &[u64]) {
        let mut views = self.views();
        let learned = views.learn(epochs);
        self.follow(&mut views, learned);
    }

    /// A peer has flushed.
    pub(crate) fn flushed(&self, from: NodeId, flush: Flush) {
        let mut views = self.views();
        let learned = views.flush(from, flush);
        self.follow(&mut views, learned);
    }

    /// Do what follows from something heard: what is news goes on to everyone.
    fn follow(&self, views: &mut Views, learned: Result<Learned, ViewError>) {
        match learned {
            Ok(Learned::Nothing) => {}
            Ok(Learned::News) => self.broadcast(&Message::Epochs(views.epochs().to_vec())),
            Ok(Learned::Overtaken(epoch)) => self.raise_above(views, epoch),
            Err(error @ ViewError::Superseded(_)) => {
                tracing::error!(%error, "this node stops, and its clients have lost their locks");
                return self.end();
            }
            Err(error) => tracing::error!(%error, "a peer said what cannot be"),
        }
        self.advance(views);
    }

    /// A lock's clock has run far enough: go to the next view by raising our epoch.
    pub(crate) fn raise(&self) {
        let mut views = self.views();
        // Of all the clients that noticed, the first one does it.
        if views.running().is_some() {
            self.raise_above(&mut views, 0);
            self.advance(&mut views);
        }
    }

    fn raise_above(&self, views: &mut Views, epoch: u64) {
        let raised = match self.store.raise(epoch) {
            Ok(epoch) => views.raise(epoch).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        match raised {
            Ok(()) => self.broadcast(&Message::Epochs(views.epochs().to_vec())),
            Err(error) => tracing::error!(error, "the epoch could not be raised"),
        }
    }

    /// Take every step towards the newest view that can be taken now.
    pub(crate) fn advance(&self, views: &mut Views) {
        // A view that could not start yet would only keep everyone waiting: as long as a member is
        // away, we go on in the old one with whatever does not need it.
        if let Some(view) = views.pending()
            && self.peers().all(|peer| self.is_up(peer))
        {
            let mut held = Vec::new();
            for index in 0..self.shards() {
                held.extend(self.shard(index).stop(view.number()));
            }
            tracing::info!(view = view.number(), held = held.len(), "leaving for the next view");
            for flush in views.stopped(&view, held) {
                self.broadcast(&Message::Flush(flush));
            }
        }
        if let Some(started) = views.ready() {
            self.start_view(started);
        }
    }

    fn start_view(&self, started: Started) {
        let number = started.view.number();
        let mut parts: Vec<Vec<(NodeId, Held)>> = vec![Vec::new(); self.shards()];
        for (node, held) in started.held.into_iter().enumerate() {
            for held in held {
                parts[self.shard_of(&held.lock)].push((NodeId::at(node), held));
            }
        }
        for (index, part) in parts.into_iter().enumerate() {
            self.step(index, |shard, now, out| shard.start(number, part, now, out));
        }
        tracing::info!(view = number, "the view runs");
    }
}
