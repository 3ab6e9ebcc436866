//! Messages that came before the view in which they were sent has started here.

use doorway_core::NodeId;

use crate::wire::Step;

/// How many bytes of messages a shard keeps. A group whose nodes are all alive is never near it.
const LIMIT: usize = 4 << 20;

/// Messages in the order of their arrival.
#[derive(Debug, Default)]
pub(super) struct Kept {
    messages: Vec<(NodeId, usize, Step)>,
    bytes: usize,
}

impl Kept {
    /// Keep one more, if there is room.
    pub(super) fn push(&mut self, from: NodeId, rule: usize, step: &Step) -> bool {
        let bytes = self.bytes + size(step);
        let room = bytes <= LIMIT;
        if room {
            self.bytes = bytes;
            self.messages.push((from, rule, step.clone()));
        }
        room
    }

    /// All of them.
    pub(super) fn take(&mut self) -> Vec<(NodeId, usize, Step)> {
        self.bytes = 0;
        std::mem::take(&mut self.messages)
    }
}

fn size(step: &Step) -> usize {
    size_of::<(NodeId, usize, Step)>() + step.lock.as_str().len() + step.payload.len()
}
