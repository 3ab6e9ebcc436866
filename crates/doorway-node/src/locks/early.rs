//! Messages that arrived before the view in which they were sent has started here.

use doorway_core::NodeId;

use crate::messages::AlgorithmMessage;

/// How many bytes of early messages a shard keeps. A group whose nodes all run stays far below it.
const LIMIT: usize = 4 << 20;

/// The early messages of a shard, in the order of their arrival.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct EarlyMessages {
    messages: Vec<(NodeId, AlgorithmMessage)>,
    bytes: usize,
}

impl EarlyMessages {
    /// Keep a message, if there is room for it.
    pub(super) fn push(&mut self, from: NodeId, message: &AlgorithmMessage) -> bool {
        let bytes = self.bytes + size(message);
        let room = bytes <= LIMIT;
        if room {
            self.bytes = bytes;
            self.messages.push((from, message.clone()));
        }
        room
    }

    /// Take out all messages.
    pub(super) fn take(&mut self) -> Vec<(NodeId, AlgorithmMessage)> {
        self.bytes = 0;
        std::mem::take(&mut self.messages)
    }
}

fn size(message: &AlgorithmMessage) -> usize {
    size_of::<(NodeId, AlgorithmMessage)>() + message.lock.as_str().len() + message.payload.len()
}
