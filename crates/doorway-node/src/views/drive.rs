//! The loop that performs the outputs of a [`ViewChange`].

use std::collections::VecDeque;
use std::time::Duration;

use doorway_core::NodeId;

use super::change::{EndReason, Event, Notice, Output, ViewChange};
use super::epochs::StartedView;
use crate::messages::{HeldLock, Message};

/// What a [`ViewChange`] acts on: the shards of its node, the links to its peers, and a log. The
/// shell of a node implements this, and so can a simulation.
pub trait Host {
    /// Send a message to a peer.
    fn tell(&mut self, to: NodeId, message: &Message);

    /// Send a message to every peer.
    fn tell_all(&mut self, message: &Message);

    /// Stop each shard for the view of this number, and return what the shards hold. A shard must
    /// stop and be read in one critical section.
    fn stop_shards(&mut self, view: u64) -> Vec<HeldLock>;

    /// Start a view in every shard. Returns whether some shard could not start it.
    fn start_shards(&mut self, started: StartedView) -> bool;

    /// Take the locks from clients that reclaimed them under a fence of this view or a later one.
    fn disown(&mut self, view: u64);

    /// End every shard: their clients lose what they hold.
    fn end(&mut self, reason: EndReason);

    /// Log something.
    fn log(&mut self, notice: Notice);
}

impl ViewChange {
    /// Take the first steps of a node and perform their outputs: see [`ViewChange::begin`].
    pub fn drive_begin(&mut self, now: Duration, host: &mut impl Host) -> Option<u64> {
        let mut out = VecDeque::new();
        self.begin(&mut out);
        self.perform(now, out, host)
    }

    /// Take in an event and perform everything that follows from it. Returns the epoch above which
    /// the epoch of this node must be raised now, if it must. That is left to the caller, because
    /// the disk may be slow: the caller should unlock this machine, wait for the disk, and then
    /// drive [`Event::EpochRaised`] or [`Event::RaiseFailed`].
    pub fn drive(&mut self, now: Duration, event: Event, host: &mut impl Host) -> Option<u64> {
        let mut out = VecDeque::new();
        self.step(now, event, &mut out);
        self.perform(now, out, host)
    }

    fn perform(
        &mut self,
        now: Duration,
        mut out: VecDeque<Output>,
        host: &mut impl Host,
    ) -> Option<u64> {
        let mut raise = None;
        while let Some(output) = out.pop_front() {
            match output {
                Output::Tell(to, message) => host.tell(to, &message),
                Output::TellAll(message) => host.tell_all(&message),
                Output::Disown(view) => host.disown(view),
                Output::StopShards(view) => {
                    let held = host.stop_shards(view);
                    self.step(now, Event::ShardsStopped(view, held), &mut out);
                }
                Output::StartShards(started) => {
                    if host.start_shards(started) {
                        self.step(now, Event::Overdue, &mut out);
                    }
                }
                Output::RaiseAbove(epoch) => raise = Some(epoch),
                Output::End(reason) => host.end(reason),
                Output::Log(notice) => host.log(notice),
            }
        }
        raise
    }
}
