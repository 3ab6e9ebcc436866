//! The register of a group with agreed members: what it agrees on, and what must be true of that.

use std::sync::Arc;

use doorway_node::members::{Answer, Command, Record};

use super::World;
use crate::client::Plan;
use crate::clock::{MS, SECOND};
use crate::context::{Event, log};
use crate::register::{RegisterTraffic, node_of, seat, seat_entry};

impl World {
    /// A message to or from the register has arrived.
    pub(super) fn register(&mut self, traffic: RegisterTraffic) {
        let now = self.context.now;
        let Some(register) = &self.context.register else { return };
        match traffic {
            RegisterTraffic::Ask { node, start, put, command } => {
                if register.stuck > now {
                    // A leader without a quorum forgets the command, or agrees on it later.
                    if self.context.random.percent(50) {
                        let at = register.stuck + self.context.random.between(MS, SECOND);
                        let ask = RegisterTraffic::Ask { node, start, put, command };
                        self.context.queue.push(at, Event::Register(ask));
                    }
                    return;
                }
                let answer = self.agree(&command);
                log!(self.context, "n{node} puts {command:?}: {answer:?}");
                let answer = RegisterTraffic::Answer { node, start, put, answer };
                self.context.send_register(answer);
            }
            RegisterTraffic::Answer { node, start, put, answer } => {
                if self.nodes[node].starts == start && self.nodes[node].process.is_some() {
                    self.nodes[node].answered(&mut self.context, put, Some(answer));
                    self.after_node(node);
                }
            }
            RegisterTraffic::Show { node, version, state } => {
                if self.nodes[node].process.is_some() {
                    self.nodes[node].shown(&mut self.context, version, state);
                    self.after_node(node);
                }
            }
        }
    }

    /// The register agrees on a command.
    pub(super) fn agree(&mut self, command: &Command) -> Answer {
        let Some(register) = &mut self.context.register else {
            return Answer::Done(0);
        };
        let before = register.state.clone();
        let answer = register.state.apply(command);
        if register.state == before {
            return answer;
        }
        register.version += 1;
        let record = Arc::clone(&register.state.record);
        for node in 0..self.nodes.len() {
            self.context.show_state(node);
        }
        self.check_kept();
        if let Command::Hold { id, .. } = command {
            self.check_hold(id);
        }
        if !matches!(command, Command::Enter { .. }) {
            self.check_gone(&before.record, &record);
        }
        answer
    }

    /// No member goes while it may grant locks, except in favour of its heir.
    fn check_gone(&mut self, before: &Record, after: &Record) {
        for gone in before.members.iter().filter(|it| after.member(it.id).is_err()) {
            let node = &self.nodes[node_of(gone.seat)];
            if let Some(left) = node.lease_of(self.context.now, gone.id) {
                let (id, name) = (gone.id.0, node.id);
                let what =
                    format!("member {id} of n{name} is gone, and may grant locks for {left:?}");
                self.context.violate(what);
            }
        }
    }

    /// Nodes have started views: no other node may still grant locks in an earlier view.
    pub(super) fn check_started(&mut self) {
        for (node, view) in std::mem::take(&mut self.context.started) {
            let earlier = self.nodes.iter().filter(|other| other.id != node).find_map(|other| {
                let grants = other.grants_in(self.context.now)?;
                (grants < view).then_some((other.id, grants))
            });
            if let Some((other, old)) = earlier {
                let what =
                    format!("n{node} starts view {view}, and n{other} still grants in view {old}");
                self.context.violate(what);
            }
        }
    }

    /// Let another node lead if the one that leads cannot.
    pub(super) fn elect(&mut self) {
        let now = self.context.now;
        let Some(register) = &self.context.register else { return };
        let machine = register.machine;
        let able = |node: &usize| {
            let network = &self.context.network;
            self.nodes[*node].process.is_some()
                && self.nodes[*node].paused <= now
                && register.state.record.seat(seat(*node)).is_some()
                && network.blocked(now, *node, machine).is_none()
                && network.blocked(now, machine, *node).is_none()
        };
        let leads = (0..self.nodes.len()).filter(|node| register.leads[*node]);
        let candidates: Vec<usize> = (0..self.nodes.len()).filter(able).collect();
        if leads.filter(able).count() == 0 && !candidates.is_empty() {
            let node = *self.context.random.pick(&candidates);
            self.lead(&[node]);
        }
        let again = now + self.context.random.between(200 * MS, SECOND);
        if self.plan != Plan::Leave {
            self.context.queue.push(again, Event::Elect);
        }
    }

    /// Tell these nodes that they lead, and no others.
    pub(super) fn lead(&mut self, nodes: &[usize]) {
        log!(self.context, "these lead: {nodes:?}");
        if let Some(register) = &mut self.context.register {
            for (node, leads) in register.leads.iter_mut().enumerate() {
                *leads = nodes.contains(&node);
            }
        }
    }

    /// A node cannot reach the register for this long, or is not reached by it, or both. In half of
    /// the cases the way to the node gets worse before that: what comes from the register is late.
    pub(super) fn cut_register(&mut self, node: usize, time: u64) {
        let Some(register) = &mut self.context.register else { return };
        let (machine, lease) = (register.machine, self.context.settings.deadline());
        let random = &mut self.context.random;
        let both = random.percent(30);
        let there = both || random.percent(50);
        let late = if random.percent(50) { lease / 2 } else { 0 };
        let begin = self.context.now + late;
        register.late[node] = begin.max(register.late[node]);
        let mut cut = |from, to| {
            self.context.queue.push(begin, Event::Cut { from, to, until: begin + time });
        };
        if there {
            cut(node, machine);
        }
        if both || !there {
            cut(machine, node);
        }
    }

    /// An operator adds a machine that does not belong to the group, or removes one.
    pub(super) fn change_seats(&mut self, node: usize) {
        let Some(register) = &self.context.register else { return };
        let belongs = register.state.record.seat(seat(node)).is_some();
        let command = if belongs {
            Command::DropSeat(seat(node))
        } else {
            Command::AddSeat(seat_entry(node))
        };
        let answer = self.agree(&command);
        log!(self.context, "an operator: {command:?}: {answer:?}");
    }

    /// An operator changes the lease. It is never shorter than the clients of the run were told.
    pub(super) fn change_lease(&mut self) {
        let Some(agreed) = &self.context.settings.agreed else { return };
        let factor = self.context.random.between(10, 30);
        let lease_ms = agreed.lease_ms * factor as u32 / 10;
        log!(self.context, "an operator sets the lease to {lease_ms} ms");
        self.agree(&Command::Lease(lease_ms));
    }

    /// The register works again, and all machines that exist belong to the group.
    pub(super) fn heal_register(&mut self) {
        let Some(register) = &mut self.context.register else { return };
        (register.stuck, register.lost, register.slow) = (0, 0, 0);
        register.late.fill(0);
        for node in 0..self.nodes.len() {
            let Some(register) = &self.context.register else { return };
            let belongs = register.state.record.seat(seat(node)).is_some();
            if !belongs && self.away != Some(node) {
                self.change_seats(node);
            }
            self.context.show_state(node);
        }
    }
}
