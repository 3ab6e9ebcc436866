//! Taking a world apart and putting it together again. The checker stores each part once.

use doorway_core::{NodeId, NodeSet};

use super::{Letter, World};
use crate::Nodes;
use crate::erased::{AnyMember, AnyMessage};

/// Everything in a world that can change.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    /// Each node with its state, its remaining requests, and whether it has crashed.
    pub(crate) places: Vec<Place>,
    /// The messages under way by sender and receiver; empty channels are left out.
    pub(crate) channels: Vec<(NodeId, NodeId, Vec<AnyMessage>)>,
    /// Pairs of a live node and a crashed node of whose crash it does not know yet.
    pub(crate) undetected: Vec<(NodeId, NodeId)>,
    /// How many losses, duplicates and crashes may still happen.
    pub(crate) faults: [u32; 3],
}

/// A node in its world.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) member: AnyMember,
    pub(crate) wishes: u32,
    pub(crate) crashed: bool,
}

impl World {
    /// The parts of this world.
    pub(crate) fn parts(&self) -> Parts {
        let place = |node: NodeId| Place {
            member: self.nodes.member(node).clone(),
            wishes: self.limits.acquires[node.index()].0,
            crashed: self.crashed.contains(node),
        };
        let channel = |(&(from, to), letters): (&(NodeId, NodeId), &_)| {
            let letters: &std::collections::VecDeque<Letter> = letters;
            (from, to, letters.iter().map(|letter| letter.body.clone()).collect())
        };
        Parts {
            places: self.group().nodes().map(place).collect(),
            channels: self.network.iter().map(channel).collect(),
            undetected: self.undetected.clone(),
            faults: [self.limits.losses, self.limits.duplicates, self.limits.crashes],
        }
    }

    /// A world like this one, but with other parts.
    pub(crate) fn made_of(&self, parts: Parts) -> Self {
        let mut limits = self.limits.clone();
        [limits.losses, limits.duplicates, limits.crashes] = parts.faults;
        for (acquires, place) in limits.acquires.iter_mut().zip(&parts.places) {
            acquires.0 = place.wishes;
        }
        let letter = |body| Letter { id: 0, body };
        let channel = |(from, to, bodies): (NodeId, NodeId, Vec<_>)| {
            ((from, to), bodies.into_iter().map(letter).collect())
        };
        let crashed = parts.places.iter().filter(|place| place.crashed);
        let crashed: NodeSet = crashed.map(|place| place.member.me()).collect();
        let members = parts.places.into_iter().map(|place| place.member).collect();
        Self {
            algorithm: self.algorithm,
            nodes: Nodes::from_members(self.group().clone(), members, &crashed),
            channel: self.channel,
            network: parts.channels.into_iter().map(channel).collect(),
            sent: self.sent,
            opening: Vec::new(),
            limits,
            crashed,
            undetected: parts.undetected,
        }
    }
}
