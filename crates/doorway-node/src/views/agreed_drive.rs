//! The loop that performs the outputs of [`AgreedViews`].
//!
//! A node without threads and sockets, such as one in a simulation, does with [`AgreedViews`] what
//! `drive.rs` says about [`ViewChange`](super::ViewChange), with these differences. There are no
//! epochs: hellos have none. The keeper of the node's membership runs beside the views: see
//! [`OwnMembership`](crate::members::OwnMembership). The members of a view are looked up in
//! [`ViewSeats`](super::ViewSeats).

use std::collections::VecDeque;
use std::ops::Range;

use doorway_protocol::Name;

use super::agreed::{AgreedEvent, AgreedNotice, AgreedOutput, AgreedView, AgreedViews};
use super::change::EndReason;
use crate::members::{AgreedRules, SeatId};
use crate::messages::{HeldLock, Message};

/// What [`AgreedViews`] act on: the shards of their node, the links to other seats, and a log. The
/// shell of a node implements this, and so can a simulation.
pub trait AgreedHost {
    /// Send a message to the process at a seat.
    fn tell(&mut self, to: SeatId, message: &Message);

    /// Send a message to the processes at all other seats.
    fn tell_all(&mut self, message: &Message);

    /// Use these rules in every shard before its first view:
    /// [`Shard::use_rules`](crate::locks::Shard::use_rules).
    fn use_rules(&mut self, rules: &AgreedRules);

    /// Remember the members and rules of this view, stop each shard for it, and return what the
    /// shards hold. A shard must stop and be read in one critical section.
    fn stop_shards(&mut self, view: AgreedView, rules: &AgreedRules) -> Vec<HeldLock>;

    /// Start the view of this number in every shard, with what each member holds. Returns whether
    /// some shard could not start it.
    fn start_shards(&mut self, view: u64, held: Vec<Vec<HeldLock>>) -> bool;

    /// Close a lock to the clients of this node: a member that is gone has promised it to a client.
    fn shut_door(&mut self, name: &Name);

    /// Open a lock to the clients of this node again. Returns whether the lock cannot be served in
    /// this view for long.
    fn open_door(&mut self, name: &Name) -> bool;

    /// Take the locks from clients that reclaimed them under a fence of another view than these.
    fn disown(&mut self, views: &Range<u64>);

    /// Tell every shard that the membership is over, and remember whether a client has lost a lock
    /// by that: [`Shard::discard`](crate::locks::Shard::discard).
    fn discard(&mut self);

    /// End every shard: their clients lose what they hold.
    fn end(&mut self, reason: EndReason);

    /// Log something.
    fn log(&mut self, notice: AgreedNotice);
}

impl AgreedViews {
    /// Take in an event and perform everything that follows from it. If the store has to be asked
    /// for a view after some view, its number is returned, and the keeper of the membership must
    /// be told ([`Event::Bump`](crate::members::Event::Bump)).
    pub fn drive(&mut self, event: AgreedEvent, host: &mut impl AgreedHost) -> Option<u64> {
        let mut out = VecDeque::new();
        let mut bump = None;
        self.step(event, &mut out);
        while let Some(output) = out.pop_front() {
            match output {
                AgreedOutput::Tell(seat, message) => host.tell(seat, &message),
                AgreedOutput::TellAll(message) => host.tell_all(&message),
                AgreedOutput::Disown(views) => host.disown(&views),
                AgreedOutput::UseRules(rules) => host.use_rules(&rules),
                AgreedOutput::StopShards(view, rules) => {
                    let number = view.number;
                    let held = host.stop_shards(view, &rules);
                    self.step(AgreedEvent::ShardsStopped(number, held), &mut out);
                }
                AgreedOutput::StartShards(view, held) => {
                    if host.start_shards(view, held) {
                        self.step(AgreedEvent::Overdue, &mut out);
                    }
                }
                AgreedOutput::ShutDoor(name) => host.shut_door(&name),
                AgreedOutput::OpenDoor(name) => {
                    if host.open_door(&name) {
                        self.step(AgreedEvent::Overdue, &mut out);
                    }
                }
                AgreedOutput::Lapse => host.discard(),
                AgreedOutput::Bump(number) => bump = Some(number),
                AgreedOutput::End(reason) => host.end(reason),
                AgreedOutput::Log(notice) => host.log(notice),
            }
        }
        bump
    }
}
