//! What is due in a world, so that fairness can be told from the unfairness of a schedule.
//!
//! A message under way arrives one day, and a node that is inside leaves one day. On channels that
//! keep order, the first message of each is due; on others each message is, of which equal ones
//! need not be told apart. Nobody is bound to ask, and no fault is bound to happen.

use std::hash::{DefaultHasher, Hash, Hasher};

use doorway_core::{Channel, NodeId};

use super::codec::WorldCodec;
use super::tables::Tables;
use crate::trace::kind;
use crate::{ChannelPosition, Choice, World};

/// Something that must happen if it stays possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Duty {
    Leave(NodeId),
    Deliver(NodeId, NodeId, u64),
    Detect(NodeId, NodeId),
}

impl WorldCodec<'_> {
    /// The duty that each choice of a world would do.
    pub(super) fn duties(&self, tables: &Tables, row: &[u32]) -> Vec<Option<Duty>> {
        let world = self.unpack(tables, row);
        let duty = |choice| duty(&world, choice, self.settling);
        world.choices().into_iter().map(duty).collect()
    }
}

/// The duty that a choice of a world would do; `settling` says whether worlds are settled.
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

/// What tells a message from others of its channel. Where worlds are settled, the numbers in it
/// change from world to world, and its kind must do: then a message may pass for delivered when
/// another of its kind was, which can accuse an algorithm wrongly. (It would clear one wrongly only
/// if mail of a kind were dropped again and again while other mail of that kind lies there for
/// ever.)
fn name(world: &World, sought: ChannelPosition, settling: bool) -> u64 {
    let letter = world.under_way().find(|(position, _)| *position == sought);
    let mut hasher = DefaultHasher::new();
    if let Some((_, letter)) = letter {
        if settling {
            kind(&format!("{:?}", letter.body)).hash(&mut hasher);
        } else {
            letter.body.hash(&mut hasher);
        }
    }
    hasher.finish()
}
