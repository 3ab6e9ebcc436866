//! Several shards with the channels between them, in one value and without a network.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use doorway_core::{Mode, NodeId};
use doorway_node::Name;
use doorway_node::locks::{LockRequest, Patience, Rule, RuleBook, Seating, Shard, ShardEffects};
use doorway_node::messages::{AlgorithmMessage, HeldLock};
use doorway_protocol::NamePattern;

/// The time at which everything happens, unless a test lets it go on.
pub(crate) const NOW: Duration = Duration::from_secs(1);

/// Locks linger after every client that leaves, while another node waits. The time does not go on,
/// so they linger until a test ends that.
pub(crate) const LINGERING: Patience =
    Patience { linger: Duration::ZERO, slice: Duration::MAX, trust: 0 };

/// One shard of each node of a group, and the messages between them.
pub(crate) struct Nodes {
    pub(crate) shards: Vec<Shard>,
    /// The members as each node sees them.
    pub(crate) seatings: Vec<Arc<Seating>>,
    /// The messages under way, by sender and receiver, in order.
    pub(crate) lines: BTreeMap<(NodeId, NodeId), VecDeque<AlgorithmMessage>>,
    pub(crate) now: Duration,
}

impl Nodes {
    /// A group with these rules. The names of the first one begin with `0 `, and so on; the last
    /// rule is that of all other names.
    pub(crate) fn new(rules: &[Rule], keep_idle: usize) -> Self {
        let size = rules[0].group.size();
        let pattern = |rule| NamePattern::new(&format!("{rule} *"));
        let patterns = (0..rules.len() - 1).map(pattern).collect();
        let rules = RuleBook::new(patterns, rules.to_vec());
        let seating = |node| {
            let members = (0..size).map(|member| format!("n{member}")).collect();
            Arc::new(Seating { members, me: NodeId(node), rules: rules.clone() })
        };
        let seatings: Vec<_> = (0..size).map(seating).collect();
        let shard = |seating| Shard::new(Arc::clone(seating), keep_idle);
        let shards = seatings.iter().map(shard).collect();
        Self { shards, seatings, lines: BTreeMap::new(), now: NOW }
    }

    /// Do something with the shard of a node, and send the resulting messages.
    pub(crate) fn act<T>(
        &mut self,
        node: u32,
        act: impl FnOnce(&mut Shard, &mut ShardEffects) -> T,
    ) -> T {
        let mut out = ShardEffects::default();
        let result = act(&mut self.shards[node as usize], &mut out);
        assert_eq!(out.refused, [], "nothing wrong is ever sent");
        for (to, step) in out.messages {
            self.lines.entry((NodeId(node), to)).or_default().push_back(step);
        }
        out.wakers.into_iter().for_each(std::task::Waker::wake);
        result
    }

    /// Start a view at a node.
    pub(crate) fn start(&mut self, node: u32, view: u64, held: Vec<(NodeId, HeldLock)>) {
        let seating = Arc::clone(&self.seatings[node as usize]);
        self.act(node, |shard, out| shard.start(view, &seating, held, NOW, out));
    }

    /// Start a view at a node, and return what the node would have to do.
    pub(crate) fn start_only(
        &mut self,
        node: usize,
        view: u64,
        held: Vec<(NodeId, HeldLock)>,
    ) -> ShardEffects {
        let mut out = ShardEffects::default();
        self.shards[node].start(view, &self.seatings[node], held, NOW, &mut out);
        out
    }

    /// Deliver the oldest message of a channel.
    pub(crate) fn deliver(&mut self, from: NodeId, to: NodeId) {
        let line = self.lines.get_mut(&(from, to)).expect("a line in use");
        let step = line.pop_front().expect("a message");
        if line.is_empty() {
            self.lines.remove(&(from, to));
        }
        let now = self.now;
        self.act(to.0, |shard, out| shard.receive(from, &step, now, out));
    }

    /// Let no lock of a node linger any longer.
    pub(crate) fn end_lingers(&mut self, node: u32) {
        let now = self.now;
        self.act(node, |shard, out| shard.end_lingers(now, out));
    }

    /// Deliver all messages, and return how many there were.
    pub(crate) fn deliver_all(&mut self) -> usize {
        let mut count = 0;
        while let Some((&(from, to), _)) = self.lines.first_key_value() {
            self.deliver(from, to);
            count += 1;
        }
        count
    }
}

/// A request for a lock.
pub(crate) fn ask(mode: Mode, session: u64) -> LockRequest {
    LockRequest { mode, session, reserve: 0, now: NOW }
}

/// A lock name.
pub(crate) fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}
