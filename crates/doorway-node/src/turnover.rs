//! How a node goes from one view to the next: it stops its shards, tells the others what it holds,
//! and starts again when it has heard all of them.

use std::sync::atomic::Ordering;
use std::task::Waker;

use doorway_core::NodeId;

use crate::locks::ShardEffects;
use crate::messages::{Flush, HeldLock, Message};
use crate::shell::NodeShell;
use crate::views::{LearnOutcome, StartedView, View, ViewError, Views};

impl NodeShell {
    /// A peer has told us of epochs.
    pub(crate) fn learn(&self, epochs: &[u64]) {
        self.turn(|views| {
            let spent = self.spent(views, epochs);
            let learned = views.learn(epochs)?;
            Ok(spent.unwrap_or(learned))
        });
    }

    /// A peer has flushed.
    pub(crate) fn flushed(&self, from: NodeId, flush: Flush) {
        self.turn(|views| views.flush(from, flush));
    }

    /// A lock's clock has run far enough: go to the next view by raising our epoch.
    pub(crate) fn raise(&self) {
        let now = self.now().as_secs() + 1;
        self.turn(|views| {
            // Of all the clients that noticed, the first one does it; a disk that is full is tried
            // again every second.
            if views.running().is_some() && self.raised.swap(now, Ordering::Relaxed) != now {
                self.raise_above(views, 0);
            }
            Ok(LearnOutcome::Nothing)
        });
    }

    /// Do what follows from something heard: what is news goes on to everyone.
    fn turn(&self, hear: impl FnOnce(&mut Views) -> Result<LearnOutcome, ViewError>) {
        let mut out = ShardEffects::default();
        let mut views = self.views();
        match hear(&mut views) {
            Ok(LearnOutcome::Nothing) => {}
            Ok(LearnOutcome::News) => self.broadcast(&Message::Epochs(self.announced(&views))),
            Ok(LearnOutcome::Overtaken(epoch)) => self.raise_above(&mut views, epoch),
            Err(error @ ViewError::Superseded(_)) => {
                tracing::error!(%error, "this node stops, and its clients have lost their locks");
                self.end(&mut out);
            }
            Err(error) => tracing::error!(%error, "a peer said what cannot be"),
        }
        if !self.is_over() {
            self.advance(&mut views, &mut out);
        }
        drop(views);
        out.wakers.drain(..).for_each(Waker::wake);
    }

    fn raise_above(&self, views: &mut Views, epoch: u64) {
        let raised = match self.store.lock().as_ref().map(|store| store.raise(epoch)) {
            Some(Ok(epoch)) => views.raise(epoch).map_err(|error| error.to_string()),
            Some(Err(error)) => Err(error.to_string()),
            None => return, // The node has stopped.
        };
        match raised {
            Ok(()) => self.broadcast(&Message::Epochs(self.announced(views))),
            Err(error) => tracing::error!(error, "the epoch could not be raised"),
        }
    }

    /// Take every step towards the newest view that can be taken now.
    pub(crate) fn advance(&self, views: &mut Views, out: &mut ShardEffects) {
        if self.is_reclaiming() {
            return;
        }
        if let Some(view) = views.pending() {
            // A view that could not start yet would only keep everyone waiting: as long as a member
            // is away, we go on in the old one with whatever does not need it.
            let away = self.peers().filter(|peer| !peer.is_up() || self.reclaims(peer.id()));
            let away: Vec<&str> = away.map(|peer| peer.name()).collect();
            let mut awaited = self.awaited.lock();
            // Everything that peers tell leads here: log it only if other members are awaited.
            if !away.is_empty() && *awaited != away {
                tracing::info!(view = view.number(), ?away, "the next view waits for members");
            }
            *awaited = away.iter().map(|name| (*name).to_owned()).collect();
            drop(awaited);
            if !away.is_empty() {
                return;
            }
            self.disown(view.number(), out);
            self.stop_for(views, &view);
        }
        if let Some(started) = views.ready() {
            self.start_view(&started, out);
        }
        if std::mem::take(&mut out.overdue) {
            // A shard could not begin the view that has just started.
            self.raise_above(views, 0);
            self.advance(views, out);
        }
    }

    /// Stop shard by shard, each in one breath with reading what it holds.
    fn stop_for(&self, views: &mut Views, view: &View) {
        let mut held = Vec::new();
        for index in 0..self.shards() {
            held.extend(self.shard(index).stop(view.number()));
        }
        tracing::info!(view = view.number(), held = held.len(), "leaving for the next view");
        for flush in views.stopped(view, held) {
            self.broadcast(&Message::Flush(flush));
        }
    }

    fn start_view(&self, started: &StartedView, out: &mut ShardEffects) {
        let number = started.view.number();
        let mut parts: Vec<Vec<(NodeId, HeldLock)>> = vec![Vec::new(); self.shards()];
        for (node, held) in started.held.iter().enumerate() {
            for held in held {
                parts[self.shard_of(&held.lock)].push((NodeId::at(node), held.clone()));
            }
        }
        for (index, part) in parts.into_iter().enumerate() {
            self.with_shard_deferred(index, out, |shard, now, out| {
                shard.start(number, part, now, out);
            });
        }
        tracing::info!(view = number, epochs = ?started.view.epochs(), "the view runs");
    }
}
