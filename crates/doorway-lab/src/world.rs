//! A whole group and its network as one value. A driver picks what happens next.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use doorway_core::{Channel, Effects, Group, Info, Input, Mode, NodeId, NodeSet, Phase, Start};

use crate::erased::{AnyAlgorithm, AnyMessage};
use crate::{Nodes, Violation};

mod limits;
mod parts;
mod settled;

pub use limits::{FOREVER, Limits, Victims};
pub(crate) use parts::{Parts, Place};

/// Where a message under way is: in the channel from `from` to `to`, at `index`.
///
/// A [`Choice`] names its message in this way. The message itself is a [`Letter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelPosition {
    /// The sender.
    pub from: NodeId,
    /// The receiver.
    pub to: NodeId,
    /// How many messages of the channel are before it. In a FIFO channel these are the older ones;
    /// an unordered channel is sorted by message.
    pub index: usize,
}

/// One thing that can happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Choice {
    /// A node starts. This is never a choice: it names the steps of [`World::opening`].
    Start(NodeId),
    /// A client of the node requests the lock.
    Acquire(NodeId, Mode),
    /// The client inside releases the lock.
    Release(NodeId),
    /// The waiting client gives up.
    Withdraw(NodeId),
    /// A message arrives.
    Deliver(ChannelPosition),
    /// A message is lost.
    Drop(ChannelPosition),
    /// A message arrives, and a copy of it stays under way.
    Duplicate(ChannelPosition),
    /// A node crashes and does not come back.
    Crash(NodeId),
    /// A node learns that another has crashed.
    Detect {
        /// The node that learns of the crash.
        node: NodeId,
        /// The node that crashed.
        failed: NodeId,
    },
    /// An idle node forgets the lock to save memory.
    Forget(NodeId),
}

/// A message of a world, with a number that tells it from all other messages of the run.
///
/// A diagram uses the number to join the two ends of the message. The number is not compared: two
/// worlds that differ only in these numbers are equal. Where the message is under way is its
/// [`ChannelPosition`].
#[derive(Clone, Debug)]
pub struct Letter {
    /// Counts the messages sent since the beginning.
    pub id: u64,
    /// The message itself.
    pub body: AnyMessage,
}

impl PartialEq for Letter {
    fn eq(&self, other: &Self) -> bool {
        self.body == other.body
    }
}

impl Eq for Letter {}

impl Hash for Letter {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.body.hash(state);
    }
}

/// What a choice led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The choice.
    pub choice: Choice,
    /// The message that was delivered, lost or duplicated.
    pub message: Option<Letter>,
    /// The messages sent.
    pub sends: Vec<(NodeId, Letter)>,
    /// Did the node that took the step enter?
    pub entered: bool,
    /// What the step violated.
    pub violation: Option<Violation>,
}

impl Step {
    /// A step without effects so far.
    fn of(choice: Choice) -> Self {
        Self { choice, message: None, sends: Vec::new(), entered: false, violation: None }
    }
}

/// A group, its network, and what may still happen.
#[derive(Clone, Debug)]
pub struct World {
    algorithm: AnyAlgorithm,
    nodes: Nodes,
    channel: Channel,
    /// Messages under way by sender and receiver. An empty channel has no entry, and an unordered
    /// channel is kept sorted, so that equal worlds are equal values.
    network: BTreeMap<(NodeId, NodeId), VecDeque<Letter>>,
    /// How many messages have been sent since the beginning.
    sent: u64,
    /// What each node did when it started.
    opening: Vec<Step>,
    limits: Limits,
    crashed: NodeSet,
    /// Pairs of a live node and a crashed node of whose crash it does not know yet.
    undetected: Vec<(NodeId, NodeId)>,
}

impl PartialEq for World {
    fn eq(&self, other: &Self) -> bool {
        self.nodes == other.nodes
            && self.network == other.network
            && self.limits == other.limits
            && self.crashed == other.crashed
            && self.undetected == other.undetected
    }
}

impl Eq for World {}

impl Hash for World {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.nodes.hash(state);
        self.network.hash(state);
        self.limits.acquires.hash(state);
        (self.limits.losses, self.limits.duplicates, self.limits.crashes).hash(state);
        self.crashed.hash(state);
        self.undetected.hash(state);
    }
}

impl World {
    /// A world at its beginning: every node has been started.
    pub fn new(
        algorithm: AnyAlgorithm,
        group: Arc<Group>,
        start: &Start,
        channel: Channel,
        limits: Limits,
    ) -> Self {
        assert_eq!(limits.acquires.len(), group.size() as usize, "one limit per node");
        let (nodes, opening) =
            Nodes::begin(algorithm, group, start).expect("starting the nodes violates nothing");
        let mut world = Self {
            algorithm,
            nodes,
            channel,
            network: BTreeMap::new(),
            sent: 0,
            opening: Vec::new(),
            limits,
            crashed: NodeSet::new(),
            undetected: Vec::new(),
        };
        for (node, effects) in world.group().nodes().zip(opening) {
            let mut step = Step::of(Choice::Start(node));
            world.perform(node, effects, &mut step);
            world.opening.push(step);
        }
        world
    }

    /// Everything that can happen next, in a fixed order.
    pub fn choices(&self) -> Vec<Choice> {
        let mut choices = Vec::new();
        let live = || self.group().nodes().filter(|node| !self.crashed.contains(*node));
        for node in live() {
            let member = self.nodes.member(node);
            let (acquires, mode) = self.limits.acquires[node.index()];
            if acquires > 0 && member.may_acquire(self.group(), mode) {
                choices.push(Choice::Acquire(node, mode));
            }
            if member.may_release() {
                choices.push(Choice::Release(node));
            }
            if self.limits.withdrawing && member.may_withdraw() {
                choices.push(Choice::Withdraw(node));
            }
        }
        self.network_choices(&mut choices);
        if self.limits.crashes > 0 {
            let fits = |node: &NodeId| self.limits.victims.fit(self.nodes.member(*node));
            choices.extend(live().filter(fits).map(Choice::Crash));
        }
        let detect = |&(node, failed): &_| Choice::Detect { node, failed };
        choices.extend(self.undetected.iter().map(detect));
        if self.limits.forgetting {
            choices.extend(live().filter(|node| self.forgets(*node)).map(Choice::Forget));
        }
        choices
    }

    fn network_choices(&self, choices: &mut Vec<Choice>) {
        for (&(from, to), queue) in &self.network {
            let reachable = if self.channel == Channel::Fifo { 1 } else { queue.len() };
            for index in 0..reachable {
                // In an unordered channel, equal messages lead to the same world.
                if index > 0 && queue[index] == queue[index - 1] {
                    continue;
                }
                let position = ChannelPosition { from, to, index };
                choices.push(Choice::Deliver(position));
                if self.limits.losses > 0 {
                    choices.push(Choice::Drop(position));
                }
                if self.limits.duplicates > 0 {
                    choices.push(Choice::Duplicate(position));
                }
            }
        }
    }

    /// May the node forget the lock, and would that change its state?
    fn forgets(&self, node: NodeId) -> bool {
        self.nodes.member(node).floor().is_some() && {
            let mut copy = self.nodes.clone();
            let forgotten = copy.forget(node, &mut Effects::default());
            forgotten.is_err() || copy != self.nodes
        }
    }

    /// Let one of [`World::choices`] happen.
    pub fn apply(&mut self, choice: Choice) -> Step {
        let mut step = Step::of(choice);
        match choice {
            Choice::Start(_) => unreachable!("a world has started before the first choice"),
            Choice::Acquire(node, mode) => {
                self.limits.count_acquire(node);
                self.step_node(node, Input::Acquire(mode), &mut step);
            }
            Choice::Release(node) => self.step_node(node, Input::Release, &mut step),
            Choice::Withdraw(node) => self.step_node(node, Input::Withdraw, &mut step),
            Choice::Deliver(position) | Choice::Duplicate(position) => {
                let letter = self.take(position);
                if matches!(choice, Choice::Duplicate(_)) {
                    self.limits.duplicates -= 1;
                    // The copy keeps the position: a duplicate does not reorder the channel.
                    let queue = self.network.entry((position.from, position.to)).or_default();
                    queue.insert(position.index, letter.clone());
                }
                let message = letter.body.clone();
                step.message = Some(letter);
                self.step_node(
                    position.to,
                    Input::Receive { from: position.from, message },
                    &mut step,
                );
            }
            Choice::Drop(position) => {
                self.limits.losses -= 1;
                step.message = Some(self.take(position));
            }
            Choice::Crash(node) => self.crash(node),
            Choice::Detect { node, failed } => {
                self.undetected.retain(|pair| *pair != (node, failed));
                let heir = self.heir(failed);
                self.step_node(node, Input::Failed { node: failed, heir }, &mut step);
            }
            Choice::Forget(node) => {
                let mut effects = Effects::default();
                step.violation = self.nodes.forget(node, &mut effects).err();
                self.perform(node, effects, &mut step);
            }
        }
        step
    }

    /// The violation if this world is a deadlock: a node waits, and only faults, new requests and
    /// withdrawals can happen.
    pub fn stuck(&self) -> Option<Violation> {
        let waiting: Vec<_> = self.live_in(Phase::Waiting);
        let moves = !self.network.is_empty()
            || !self.undetected.is_empty()
            || self
                .group()
                .nodes()
                .any(|node| !self.crashed.contains(node) && self.nodes.member(node).may_release());
        (!waiting.is_empty() && !moves).then_some(Violation::Stuck(waiting))
    }

    /// The live nodes in a phase.
    pub fn live_in(&self, phase: Phase) -> Vec<NodeId> {
        let mut nodes = self.nodes.in_phase(phase);
        nodes.retain(|node| !self.crashed.contains(*node));
        nodes
    }

    /// Whether a node has crashed.
    pub fn crashed(&self, node: NodeId) -> bool {
        self.crashed.contains(node)
    }

    /// The nodes.
    pub fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    /// The algorithm that its nodes run.
    pub fn algorithm(&self) -> AnyAlgorithm {
        self.algorithm
    }

    /// What the algorithm of its nodes declares.
    pub fn info(&self) -> &'static Info {
        self.algorithm.info()
    }

    /// The group.
    pub fn group(&self) -> &Arc<Group> {
        self.nodes.group()
    }

    /// Whether its channels keep messages in order.
    pub fn channel(&self) -> Channel {
        self.channel
    }

    /// What may still happen.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// What may still happen. A driver may raise these limits between choices.
    pub fn limits_mut(&mut self) -> &mut Limits {
        &mut self.limits
    }

    /// How many requests live nodes will still make; [`FOREVER`] if one of them never stops.
    pub fn wishes(&self) -> u32 {
        let live = |node: &NodeId| !self.crashed.contains(*node);
        let wishes = |node: NodeId| self.limits.acquires[node.index()].0;
        self.group().nodes().filter(live).map(wishes).fold(0, u32::saturating_add)
    }

    /// What each node did when it started, for diagrams.
    pub fn opening(&self) -> &[Step] {
        &self.opening
    }

    /// The messages under way, channel by channel.
    pub fn under_way(&self) -> impl Iterator<Item = (ChannelPosition, &Letter)> {
        self.network.iter().flat_map(|(&(from, to), queue)| {
            let position = move |index| ChannelPosition { from, to, index };
            queue.iter().enumerate().map(move |(index, letter)| (position(index), letter))
        })
    }

    /// The messages under way from one node to another.
    pub fn channel_of(
        &self,
        from: NodeId,
        to: NodeId,
    ) -> impl Iterator<Item = (ChannelPosition, &Letter)> {
        let queue = self.network.get(&(from, to)).into_iter().flatten();
        queue.enumerate().map(move |(index, letter)| (ChannelPosition { from, to, index }, letter))
    }

    /// The message at a position, if there is one.
    pub fn letter(&self, position: ChannelPosition) -> Option<&Letter> {
        self.network.get(&(position.from, position.to))?.get(position.index)
    }

    fn step_node(&mut self, node: NodeId, input: Input<AnyMessage>, step: &mut Step) {
        let mut effects = Effects::default();
        step.violation = self.nodes.step(node, input, &mut effects).err();
        self.perform(node, effects, step);
    }

    /// Put the messages that a node sent into the network. A message to a crashed node is gone.
    fn perform(&mut self, node: NodeId, mut effects: Effects<AnyMessage>, step: &mut Step) {
        step.entered = effects.entered();
        for (to, body) in effects.drain() {
            let letter = Letter { id: self.sent, body };
            self.sent += 1;
            step.sends.push((to, letter.clone()));
            if self.group().contains(to) && !self.crashed.contains(to) {
                self.put(node, to, letter);
            }
        }
    }

    fn put(&mut self, from: NodeId, to: NodeId, letter: Letter) {
        let queue = self.network.entry((from, to)).or_default();
        let at = match self.channel {
            Channel::Fifo => queue.len(),
            Channel::Unordered => queue.partition_point(|other| other.body <= letter.body),
        };
        queue.insert(at, letter);
    }

    fn take(&mut self, position: ChannelPosition) -> Letter {
        let key = (position.from, position.to);
        let queue = self.network.get_mut(&key).expect("a choice names a message under way");
        let letter = queue.remove(position.index).expect("a choice names a message under way");
        if queue.is_empty() {
            self.network.remove(&key);
        }
        letter
    }

    fn crash(&mut self, node: NodeId) {
        self.limits.crashes -= 1;
        self.crashed.insert(node);
        self.nodes.crash(node);
        self.network.retain(|(_, to), _| *to != node);
        self.undetected.retain(|(who, _)| *who != node);
        if self.limits.detection {
            let crashed = &self.crashed;
            let live = self.nodes.group().nodes().filter(|who| !crashed.contains(*who));
            self.undetected.extend(live.map(|who| (who, node)));
        }
    }

    /// The heir of a crashed node: the next live node on the ring, which takes over its duties.
    fn heir(&self, failed: NodeId) -> NodeId {
        let mut ring = self.group().others_from(failed);
        ring.find(|node| !self.crashed.contains(*node)).unwrap_or(failed)
    }
}
