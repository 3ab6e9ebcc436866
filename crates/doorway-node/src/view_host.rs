//! How a node of a group with a fixed list of members performs what its [`ViewChange`] decides: it
//! stops and starts its shards, sends messages, raises its epoch on disk, and writes the log.

use std::sync::Arc;
use std::time::Duration;

use doorway_core::{NodeId, NodeSet};
use parking_lot::Mutex;

use crate::clock::Clock;
use crate::config::{Config, ConfigError, Mistake};
use crate::error::StartError;
use crate::link::Incarnation;
use crate::locks::{RuleBook, ShardEffects};
use crate::messages::{HeldLock, Message};
use crate::net::{Backlog, Peer, PeerId};
use crate::seating::Seating;
use crate::seatings::Seatings;
use crate::shell::{BACKLOG, Membership, NodeShell, ShellParts};
use crate::views::{EndReason, EpochStore, Event, Host, Notice, StartedView, ViewChange};

/// What a node of a group with a fixed list of members has besides its shell.
pub(crate) struct FixedGroup {
    pub(crate) change: Mutex<ViewChange>,
    /// The epoch with which this process began, if a directory keeps it.
    pub(crate) began: Option<u64>,
    /// Present until the node has stopped.
    pub(crate) store: Mutex<Option<Box<dyn EpochStore>>>,
}

/// The shell of a node as the host of its [`ViewChange`], while that is locked.
struct ShellHost<'a> {
    shell: &'a NodeShell,
    /// What is left to do when nothing is locked any more.
    effects: &'a mut ShardEffects,
}

impl NodeShell {
    /// Make a node of a fixed group and raise its epoch. A node without peers serves at once. If
    /// `reclaiming` is set, the node first waits for former holders.
    pub(crate) fn fixed(
        config: &Config,
        rules: RuleBook,
        store: Box<dyn EpochStore>,
        clock: Clock,
        seed: u64,
        reclaiming: bool,
    ) -> Result<Self, StartError> {
        let members = store.members().to_vec();
        let me = members.iter().position(|name| *name == config.me).map(NodeId::at);
        let me = me.ok_or_else(|| ConfigError(vec![Mistake::NotAMember(config.me.clone())]))?;
        let epoch = store.raise(config.first_epoch.saturating_sub(1))?;
        let backlog = Backlog::new(config.outstanding.max(BACKLOG));
        let others = members.iter().enumerate().filter(|(index, _)| *index != me.index());
        let peer = |(index, name): (usize, &String)| {
            let address = config.address_of(name).to_owned();
            // A node dials the members that come after it in the list.
            let (id, dialled) = (PeerId(index as u64), index > me.index());
            Arc::new(Peer::new(id, name.clone(), address, dialled, backlog.clone()))
        };
        let peers = others.map(peer).collect();
        let change = ViewChange::new(me, members.len(), epoch, reclaiming);
        let seating = Arc::new(Seating { members, me, rules });
        let parts = ShellParts {
            me: PeerId(u64::from(me.0)),
            seatings: Seatings::Fixed(Arc::clone(&seating)),
            seating,
            peers,
            backlog: backlog.clone(),
            digest: config.digest(),
            // Different at every start, whatever the seed.
            incarnation: Incarnation(seed ^ epoch.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            membership: Membership::Fixed(FixedGroup {
                change: Mutex::new(change),
                began: config.data.is_some().then_some(epoch),
                store: Mutex::new(Some(store)),
            }),
            clock,
        };
        let node = Self::new(config, parts);
        node.drive(|change, now, host| change.drive_begin(now, host));
        Ok(node)
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
        let Membership::Fixed(group) = &self.membership else { return None };
        let mut effects = ShardEffects::default();
        let mut host = ShellHost { shell: self, effects: &mut effects };
        let raise = act(&mut group.change.lock(), self.now(), &mut host);
        self.finish(&mut effects);
        raise
    }

    /// Raise the epoch of this node; `None` if the node has stopped.
    fn raise_epoch(&self, above: u64) -> Option<Event> {
        let Membership::Fixed(group) = &self.membership else { return None };
        let raised = group.store.lock().as_ref()?.raise(above);
        Some(match raised {
            Ok(epoch) => Event::EpochRaised(epoch),
            Err(error) => {
                tracing::error!(%error, "the epoch could not be raised");
                Event::RaiseFailed
            }
        })
    }

    /// The names of members of a fixed group.
    pub(crate) fn names(&self, nodes: &NodeSet) -> Vec<String> {
        nodes.iter().map(|node| self.peer_name(PeerId(u64::from(node.0)))).collect()
    }
}

impl Host for ShellHost<'_> {
    fn tell(&mut self, to: NodeId, message: &Message) {
        self.shell.send(PeerId(u64::from(to.0)), message);
    }

    fn tell_all(&mut self, message: &Message) {
        self.shell.tell_all(message);
    }

    fn stop_shards(&mut self, view: u64) -> Vec<HeldLock> {
        self.shell.stop_shards(view)
    }

    fn start_shards(&mut self, started: StartedView) -> bool {
        let StartedView { view, held } = started;
        let mut heard = self.shell.heard.lock();
        for (node, held) in (0..).map(PeerId).zip(&held).filter(|(node, _)| *node != self.shell.me)
        {
            heard.note_snapshot(self.shell.now(), node, held);
        }
        drop(heard);
        let overdue = self.shell.start_shards(view.number(), held, self.effects);
        tracing::info!(view = view.number(), epochs = ?view.epochs(), "the view runs");
        overdue
    }

    fn disown(&mut self, view: u64) {
        tracing::error!(view, "locks were reclaimed under fences that were never granted");
        self.shell.disown(&(0..view), self.effects);
    }

    fn end(&mut self, reason: EndReason) {
        if matches!(reason, EndReason::Superseded(_)) {
            tracing::error!(%reason, "this node stops, and its clients have lost their locks");
        }
        self.shell.end_shards(reason, self.effects);
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
