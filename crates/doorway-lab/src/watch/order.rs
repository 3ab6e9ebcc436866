//! The order of requests by Lamport's relation "happened before".
//!
//! A request happened before another one if a chain of messages leads from the first to the second,
//! or if both are of one node. Every message carries the number of requests of each node that its
//! sender knows of. A node that asks records what it knows. An algorithm keeps the order if no node
//! is inside while another node still waits with a request that happened before.

use doorway_core::{Group, Mode, NodeId, Phase, Start};

use super::{Event, Outgoing, Watch, all, inside};
use crate::World;

/// What a node knows about the requests of all nodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Order {
    me: NodeId,
    /// How many requests of each node we know of.
    known: Vec<u32>,
    /// What we knew when our present request was made; empty outside.
    request: Vec<u32>,
}

impl AsRef<Self> for Order {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl Watch for Order {
    type Note = Vec<u32>;

    fn new(me: NodeId, group: &Group, _start: &Start) -> Self {
        Self { me, known: vec![0; group.size() as usize], request: Vec::new() }
    }

    fn happened(&mut self, event: Event<'_, Vec<u32>>) {
        match event {
            Event::Acquire(_) => {
                self.known[self.me.index()] += 1;
                self.request = self.known.clone();
            }
            Event::Receive { message, .. } => {
                for (own, theirs) in self.known.iter_mut().zip(&message.note) {
                    *own = (*own).max(*theirs);
                }
            }
            Event::Release | Event::Withdraw => self.request.clear(),
            Event::Start | Event::Failed => {}
        }
    }

    fn note(&mut self, _: Event<'_, Vec<u32>>, _: Outgoing<'_>) -> Vec<u32> {
        self.known.clone()
    }
}

/// Check that no node is inside while a node that asked before it still waits. Two readers are not
/// compared, because they may be inside together.
pub fn check<W: Watch + AsRef<Order>>(world: &World) -> Option<String> {
    let waiting = world.live_in(Phase::Waiting);
    inside::<W>(world).filter(|(node, _)| !waiting.contains(node)).find_map(|(node, own)| {
        let knew = &own.as_ref().request;
        let reads = world.nodes().member(node).mode() == Mode::Shared;
        all::<W>(world).filter(|(other, _)| waiting.contains(other)).find_map(|(other, theirs)| {
            let together = reads && world.nodes().member(other).waiting() == Some(Mode::Shared);
            let asked = theirs.as_ref().known[other.index()];
            let known = knew.get(other.index()).is_some_and(|known| *known >= asked);
            (known && !together)
                .then(|| format!("node {node} is inside, but node {other} asked before and waits"))
        })
    })
}
