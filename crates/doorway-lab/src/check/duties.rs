//! The duties of a fair schedule. They tell starvation by the algorithm from an unfair schedule.
//!
//! A message under way arrives eventually, a node that is inside leaves eventually, and a crash is
//! detected eventually. On FIFO channels, the first message of each channel is due. On unordered
//! channels every message is due, and equal messages need not be told apart. No node has to ask or
//! to give up, and no fault has to happen.

use std::hash::{DefaultHasher, Hash, Hasher};

use doorway_core::{Channel, NodeId};

use super::codec::WorldCodec;
use super::tables::Tables;
use crate::trace::kind;
use crate::{ChannelPosition, Choice, World};

/// Something that must happen eventually if it stays possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Duty {
    Leave(NodeId),
    Deliver(NodeId, NodeId, u64),
    Detect(NodeId, NodeId),
}

impl WorldCodec<'_> {
    /// The duty that each choice of a world fulfils.
    pub(super) fn duties(&self, tables: &Tables, row: &[u32]) -> Vec<Option<Duty>> {
        let world = self.unpack(tables, row);
        let duty = |choice| duty(&world, choice, self.settling);
        world.choices().into_iter().map(duty).collect()
    }
}

/// The duty that a choice of a world fulfils; `settling` says whether worlds are settled.
pub(super) fn duty(world: &World, choice: Choice, settling: bool) -> Option<Duty> {
    match choice {
        Choice::Release(node) => Some(Duty::Leave(node)),
        Choice::Detect { node, failed } => Some(Duty::Detect(node, failed)),
        Choice::Deliver(position) => {
            let message = match world.channel() {
                Channel::Fifo => 0,
                Channel::Unordered => name(world, position, settling),
            };
            Some(Duty::Deliver(position.from, position.to, message))
        }
        _ => None,
    }
}

/// A hash that tells a message from the others of its channel.
///
/// If worlds are settled, the numbers in a message change from world to world, so only the kind of
/// the message is hashed, and the node whose request it serves. A message then counts as delivered
/// if another such message was, which can report starvation that does not exist. Real starvation
/// would be missed only if such messages were dropped again and again while another one is never
/// delivered.
fn name(world: &World, sought: ChannelPosition, settling: bool) -> u64 {
    let letter = world.under_way().find(|(position, _)| *position == sought);
    let mut hasher = DefaultHasher::new();
    if let Some((_, letter)) = letter {
        if settling {
            kind(&format!("{:?}", letter.body)).hash(&mut hasher);
            let ChannelPosition { from, to, .. } = sought;
            world.nodes().member(to).serves(&letter.body, from, to).hash(&mut hasher);
        } else {
            letter.body.hash(&mut hasher);
        }
    }
    hasher.finish()
}
