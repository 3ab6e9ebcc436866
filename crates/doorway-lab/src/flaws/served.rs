//! How many requests a member of a quorum serves while another one waits there: the bound of
//! Maekawa's section 6.3.

use doorway_core::algorithms::maekawa;
use doorway_core::{Algorithm, Group, NodeId, Start};

use super::sets;
use crate::watch::{Event, Outgoing, Watch, watch_of};
use crate::{AnyAlgorithm, World};

/// Maekawa 1985, section 6.3: at each member, how many requests are served while another waits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServedCounts {
    /// For each node that waits here: how many requests were served since its own arrived.
    since: Vec<Option<u32>>,
    /// The largest of these numbers so far.
    most: u32,
}

impl Watch for ServedCounts {
    type Note = ();

    fn new(_me: NodeId, group: &Group, _start: &Start) -> Self {
        Self { since: vec![None; group.size() as usize], most: 0 }
    }

    fn happened(&mut self, event: Event<'_, ()>) {
        match event {
            Event::Receive { from, message } => match message.inner.get() {
                maekawa::Message::Request(_) => self.since[from.index()] = Some(0),
                maekawa::Message::Release => self.count(),
                _ => {}
            },
            Event::Release => self.count(),
            _ => {}
        }
    }

    fn note(&mut self, _: Event<'_, ()>, outgoing: Outgoing<'_>) {
        if let maekawa::Message::Locked(_) = outgoing.message.get() {
            self.since[outgoing.to.index()] = None;
        }
    }
}

impl ServedCounts {
    fn count(&mut self) {
        for served in self.since.iter_mut().flatten() {
            *served += 1;
            self.most = self.most.max(*served);
        }
    }
}

/// A group with these quorums, whose nodes count, and in which node i asks `asks[i]` times.
pub fn world<A: Algorithm>(quorums: &[&[u32]], asks: &[u32]) -> World {
    let group = sets::group(quorums);
    let limits = sets::limits(&group, asks);
    let algorithm = AnyAlgorithm::of::<A>().watched::<ServedCounts>();
    World::new(algorithm, group, &Start::default(), A::INFO.channel, limits)
}

/// Check that at no member more than `MOST` requests were served while another one waited.
pub fn at_most<const MOST: u32>(world: &World) -> Option<String> {
    world.group().nodes().find_map(|node| {
        let served = watch_of::<ServedCounts>(world, node).most;
        (served > MOST)
            .then(|| format!("{served} requests were served at node {node} while another waited"))
    })
}
