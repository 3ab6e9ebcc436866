//! Clients that are inside when the process of their node ends, and how they reclaim their locks.

use doorway_core::Mode;

use super::course::Course;
use super::seats::Seat;
use super::world::{CLIENT, Event, Flaw, Mail, World, Wrong};

impl<C: Course, M: Seat> World<C, M> {
    pub(crate) fn events_of_orphans(&self, node: usize, events: &mut Vec<Event>) {
        let reclaiming = self.nodes[node].as_ref().is_some_and(|process| process.reclaiming);
        let orphans = self.orphans[node].iter().enumerate().filter(|(_, orphan)| orphan.is_some());
        for (shard, _) in orphans.clone() {
            events.push(Event::Depart(node, shard));
            events.extend(reclaiming.then_some(Event::Reclaim(node, shard)));
        }
        if reclaiming && (orphans.count() == 0 || self.flawed(Flaw::ServeEarly)) {
            events.push(Event::Serve(node));
        }
    }

    /// A process is about to be killed.
    pub(crate) fn orphan(&mut self, node: usize) {
        if self.setting.reclaims {
            for shard in 0..self.setting.shards {
                let fence = self.shard(node, shard).fence;
                self.orphans[node][shard] = fence.or(self.orphans[node][shard]);
            }
        }
    }

    pub(crate) fn reclaim(&mut self, node: usize, shard: usize) -> Result<(), Wrong> {
        let fence = self.orphans[node][shard].take();
        let rule = self.setting.rule.clone();
        let place = self.shard(node, shard);
        place.fence = fence;
        let inside = place.lock.reclaim(&rule, CLIENT, Mode::Exclusive);
        if inside { Ok(()) } else { Err(Wrong::Refused("a client that was inside".to_owned())) }
    }

    /// The epochs as they are told to others.
    pub(crate) fn announced(&mut self, node: usize) -> Vec<u64> {
        let process = self.process(node);
        let mut epochs = process.course.epochs().to_vec();
        if process.reclaiming {
            epochs[node] = 0;
        }
        epochs
    }

    pub(crate) fn serve(&mut self, node: usize) {
        self.process(node).reclaiming = false;
        let epochs = self.announced(node);
        for other in self.others(node) {
            self.send(node, other, Mail::Epochs(epochs.clone()));
        }
    }
}
