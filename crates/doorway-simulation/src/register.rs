//! The register on which a group with agreed members agrees: one record, and the ways to it.
//!
//! It stands for a store that is replicated (Raft, etcd). Commands are applied one after the other
//! by the shipped [`GroupState::apply`]. Nodes reach it over the network: a command or its answer
//! may be lost or late, so a node may not know whether a command was applied, or will be applied
//! later. Each node sees the record with a delay of its own.

use doorway_node::members::{Answer, Command, GroupState, PutId, Record, Seat, SeatId};

use crate::clock::{MS, SECOND};
use crate::context::{Context, Event};
use crate::settings::{AgreedSetting, Settings};

/// What a group agrees on, and what goes wrong with it.
#[derive(Debug)]
pub(crate) struct Register {
    pub(crate) state: GroupState,
    /// How many times the state has changed.
    pub(crate) version: u64,
    /// The number of its machine.
    pub(crate) machine: usize,
    /// Nothing is agreed on before this time.
    pub(crate) stuck: u64,
    /// Which nodes are told that they lead.
    pub(crate) leads: Vec<bool>,
    /// How many of a thousand messages are lost, and how many take long.
    pub(crate) lost: u64,
    pub(crate) slow: u64,
    /// Until when what is sent to each node is late.
    pub(crate) late: Vec<u64>,
}

/// A message to or from the register.
#[derive(Clone, Debug)]
pub(crate) enum RegisterTraffic {
    /// A process of a node asks for a command.
    Ask { node: usize, start: u64, put: PutId, command: Command },
    /// The answer to it.
    Answer { node: usize, start: u64, put: PutId, answer: Answer },
    /// A node sees this state, which has this version.
    Show { node: usize, version: u64, state: GroupState },
}

impl RegisterTraffic {
    /// The node that sends or receives it.
    pub(crate) fn node(&self) -> usize {
        match self {
            Self::Ask { node, .. } | Self::Answer { node, .. } | Self::Show { node, .. } => *node,
        }
    }
}

/// The seat of a node.
pub(crate) fn seat(node: usize) -> SeatId {
    SeatId(node as u64 + 1)
}

/// The node of a seat.
pub(crate) fn node_of(seat: SeatId) -> usize {
    seat.0 as usize - 1
}

/// The entry of a node in the record.
pub(crate) fn seat_entry(node: usize) -> Seat {
    Seat { id: seat(node), name: format!("n{node}"), address: format!("n{node}:1"), voter: true }
}

impl Register {
    pub(crate) fn new(settings: &Settings, agreed: &AgreedSetting) -> Self {
        let seats = (0..agreed.founders).map(seat_entry).collect();
        Self {
            state: GroupState::new(Record::new(1, agreed.lease_ms, 0, seats))
                .with_rules(settings.lock_rules().tables()),
            version: 0,
            machine: settings.nodes + settings.clients.len(),
            stuck: 0,
            leads: (0..settings.nodes).map(|node| node == 0).collect(),
            lost: agreed.lost,
            slow: agreed.slow,
            late: vec![0; settings.nodes],
        }
    }
}

impl Context {
    /// Send a message to or from the register.
    pub(crate) fn send_register(&mut self, traffic: RegisterTraffic) {
        let Some(register) = &self.register else { return };
        let (node, machine) = (traffic.node(), register.machine);
        let (from, to) = match traffic {
            RegisterTraffic::Ask { .. } => (node, machine),
            _ => (machine, node),
        };
        let mut time = self.network.latency(self.now, false, &mut self.random);
        if self.random.below(1000) < register.slow {
            time += self.random.magnitude(50 * MS, 15 * SECOND);
        }
        if from == machine && self.now < register.late[node] {
            // Later than the next renewals, and before the node gives up waiting for it.
            let lease = self.settings.deadline();
            time += self.random.between(lease / 10, lease * 3 / 10);
        }
        let cut = self.network.blocked(self.now, from, to).is_some();
        let lost = self.random.below(1000) < register.lost;
        // What is sent into a cut is lost, or arrives after the cut.
        let lost = lost || cut && self.random.percent(50);
        if !lost {
            self.queue.push(self.now + time, Event::Register(traffic));
        }
    }

    /// Show a node the state, if it belongs to the group or has belonged to it.
    pub(crate) fn show_state(&mut self, node: usize) {
        let Some(register) = &self.register else { return };
        let (version, state) = (register.version, register.state.clone());
        let belongs = state.record.seat(seat(node)).is_some();
        if belongs || self.random.percent(50) && state.record.revision > 0 {
            self.send_register(RegisterTraffic::Show { node, version, state });
        }
    }
}
