//! How a node performs what its [`ViewChange`] decides: it stops and starts its shards, sends
//! messages, raises its epoch on disk, and writes the log.

use std::time::Duration;

use doorway_core::{NodeId, NodeSet};

use crate::locks::ShardEffects;
use crate::messages::{HeldLock, Message};
use crate::shell::NodeShell;
use crate::views::{EndReason, Event, Host, Notice, StartedView, ViewChange};

/// The shell of a node as the host of its [`ViewChange`], while that is locked.
struct ShellHost<'a> {
    shell: &'a NodeShell,
    /// What is left to do when nothing is locked any more.
    effects: &'a mut ShardEffects,
}

impl NodeShell {
    /// Take the first steps towards a view.
    pub(crate) fn begin(&self) {
        self.drive(|change, now, host| change.drive_begin(now, host));
    }

    /// Take in an event that may matter for the views, and do what follows from it.
    pub(crate) fn step(&self, event: Event) {
        self.drive(|change, now, host| change.drive(now, event, host));
    }

    fn drive(
        &self,
        first: impl FnOnce(&mut ViewChange, Duration, &mut ShellHost<'_>) -> Option<u64>,
    ) {
        let mut raise = self.locked(first);
        // The disk may be slow, so nothing is locked while the epoch is raised.
        while let Some(event) = raise.and_then(|above| self.raise_epoch(above)) {
            raise = self.locked(|change, now, host| change.drive(now, event, host));
        }
    }

    /// Lock the machine, let it act, and do the rest when it is unlocked.
    fn locked(
        &self,
        act: impl FnOnce(&mut ViewChange, Duration, &mut ShellHost<'_>) -> Option<u64>,
    ) -> Option<u64> {
        let mut effects = ShardEffects::default();
        let mut host = ShellHost { shell: self, effects: &mut effects };
        let raise = act(&mut self.change(), self.now(), &mut host);
        self.finish(&mut effects);
        raise
    }

    /// Raise the epoch of this node; `None` if the node has stopped.
    fn raise_epoch(&self, above: u64) -> Option<Event> {
        let raised = self.store.lock().as_ref()?.raise(above);
        Some(match raised {
            Ok(epoch) => Event::EpochRaised(epoch),
            Err(error) => {
                tracing::error!(%error, "the epoch could not be raised");
                Event::RaiseFailed
            }
        })
    }

    fn names(&self, nodes: &NodeSet) -> Vec<&str> {
        nodes.iter().map(|node| self.seating.name(node)).collect()
    }
}

impl Host for ShellHost<'_> {
    fn tell(&mut self, to: NodeId, message: &Message) {
        self.shell.send(to, message);
    }

    fn tell_all(&mut self, message: &Message) {
        self.shell.peers().for_each(|peer| self.shell.send(peer.id(), message));
    }

    fn stop_shards(&mut self, view: u64) -> Vec<HeldLock> {
        let shards = 0..self.shell.shards();
        let held: Vec<_> = shards.flat_map(|index| self.shell.shard(index).stop(view)).collect();
        tracing::info!(view, held = held.len(), "leaving for the next view");
        held
    }

    fn start_shards(&mut self, started: StartedView) -> bool {
        let (shell, number) = (self.shell, started.view.number());
        let mut parts: Vec<Vec<(NodeId, HeldLock)>> = vec![Vec::new(); shell.shards()];
        for (node, held) in started.held.into_iter().enumerate() {
            for held in held {
                parts[shell.shard_of(&held.lock)].push((NodeId::at(node), held));
            }
        }
        for (index, part) in parts.into_iter().enumerate() {
            shell.with_shard_deferred(index, self.effects, |shard, now, out| {
                shard.start(number, &shell.seating, part, now, out);
            });
        }
        tracing::info!(view = number, epochs = ?started.view.epochs(), "the view runs");
        std::mem::take(&mut self.effects.overdue)
    }

    fn disown(&mut self, view: u64) {
        tracing::error!(view, "locks were reclaimed under fences that were never granted");
        for index in 0..self.shell.shards() {
            self.shell.with_shard_deferred(index, self.effects, |shard, _, out| {
                shard.disown(&(0..view), out);
            });
        }
    }

    fn end(&mut self, reason: EndReason) {
        if matches!(reason, EndReason::Superseded(_)) {
            tracing::error!(%reason, "this node stops, and its clients have lost their locks");
        }
        for index in 0..self.shell.shards() {
            self.shell.with_shard_deferred(index, self.effects, |shard, _, out| shard.end(out));
        }
        self.shell.set_ended(reason);
    }

    fn log(&mut self, notice: Notice) {
        match notice {
            Notice::Waits { view, members } => {
                let away = self.shell.names(&members);
                tracing::info!(view, ?away, "the next view waits for members");
            }
            Notice::Refused(error) => {
                tracing::error!(%error, "a peer sent what no correct member sends");
            }
            Notice::TooHigh(error) => tracing::error!(%error, "the epoch could not be raised"),
        }
    }
}
