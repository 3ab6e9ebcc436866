//! A world taken apart, and put together again: the checker keeps each part once.

use doorway_core::{NodeId, NodeSet};

use super::{Letter, World};
use crate::Nodes;
use crate::erased::{AnyMember, AnyMessage};

/// Everything of a world that changes.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    /// Each node: its state, how often it still asks, and whether it has crashed.
    pub(crate) places: Vec<Place>,
    /// The messages under way by sender and receiver; empty channels are left out.
    pub(crate) channels: Vec<(NodeId, NodeId, Vec<AnyMessage>)>,
    /// Which crashes are still unknown to which live node.
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
    /// What this world is made of.
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

    /// A world like this one, made of other parts.
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
