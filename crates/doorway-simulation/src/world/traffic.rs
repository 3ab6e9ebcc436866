//! What the network brings to nodes and clients.

use super::World;
use crate::context::{Event, log};
use crate::network::{End, Traffic, Wire};
use crate::settings::LifeSetting;

impl World {
    pub(super) fn arrive(&mut self, wire: Wire, side: usize) {
        let Some(pipe) = self.context.network.pipes.get_mut(&wire) else { return };
        let Some((bytes, sent)) = pipe.under_way[side].pop_front() else { return };
        let (end, other) = (pipe.ends[side], pipe.ends[1 - side]);
        if !pipe.open[side] {
            // The machine answers, if it runs, that it knows nothing of this connection.
            let machine = pipe.machines[side];
            if self.nodes.get(machine).is_none_or(|node| node.off <= self.context.now) {
                let at = self.context.now + 1000;
                self.context.queue.push(at, Event::Traffic(Traffic::Ended(wire, 1 - side)));
            }
            return;
        }
        if bytes.is_empty() {
            return;
        }
        if let Some(story) = &mut self.context.story {
            story.arriving = Some((other.lane(), sent));
        }
        self.receive(wire, end, other, &bytes);
        if let Some(story) = &mut self.context.story {
            story.arriving = None;
        }
    }

    fn receive(&mut self, wire: Wire, end: End, other: End, bytes: &[u8]) {
        match (end, other) {
            (End::Node { node, .. }, End::Node { node: peer, .. }) => {
                self.nodes[node].link_bytes(&mut self.context, wire, peer, bytes);
                self.after_node(node);
            }
            (End::Node { node, .. }, End::Client { client, start }) => {
                let setting = &self.clients[client].setting;
                let it = &mut self.nodes[node];
                if setting.life == LifeSetting::Http {
                    it.call_bytes(&mut self.context, wire, client, !setting.local, bytes);
                } else {
                    let pid = (client as u32 + 1) * 100_000 + start as u32;
                    let pid = setting.local.then_some(pid);
                    it.door_bytes(&mut self.context, wire, client, pid, bytes);
                }
                self.after_node(node);
            }
            (End::Client { client, .. }, _) => {
                self.with_client(client, |it, context, reports| {
                    it.receive(context, wire, bytes, reports);
                });
            }
        }
    }

    pub(super) fn ended(&mut self, wire: Wire, side: usize) {
        let Some(pipe) = self.context.network.pipes.get(&wire) else { return };
        if !pipe.open[side] {
            return;
        }
        match (pipe.ends[side], pipe.ends[1 - side]) {
            (End::Node { node, .. }, End::Node { node: peer, .. }) => {
                self.nodes[node].link_ended(&mut self.context, wire, peer);
                self.context.close(wire, side);
                self.after_node(node);
            }
            (End::Node { node, .. }, End::Client { .. }) => {
                self.nodes[node].hang_up(&mut self.context, wire);
                self.after_node(node);
            }
            (End::Client { client, start }, _) => {
                self.with_client(client, |it, context, reports| {
                    it.hang_up(context, wire, reports);
                });
                self.context.close(wire, side);
                self.children_cut_off(client, start);
            }
        }
    }

    /// An attempt of a node to connect to a peer has come to its end.
    pub(super) fn link(&mut self, node: usize, peer: usize) {
        let now = self.context.now;
        let network = &self.context.network;
        let blocked = network.blocked(now, node, peer).or(network.blocked(now, peer, node));
        if blocked.is_some() || self.nodes[peer].process.is_none() {
            return self.nodes[node].not_reached(&mut self.context, peer);
        }
        let end = self.nodes[peer].end();
        self.nodes[node].reached(&mut self.context, peer, end);
    }

    /// A client tries to connect to a node.
    pub(super) fn dial(&mut self, client: usize) {
        let now = self.context.now;
        let it = &self.clients[client];
        let network = &self.context.network;
        let (target, machine) = (it.target(), it.machine);
        // The socket of a machine, and the port for calls over HTTP, stay where they are.
        let moves = !it.setting.local && it.setting.life != LifeSetting::Http;
        let node = if moves { network.at_address(now, target) } else { target };
        let blocked = network.blocked(now, machine, node).or(network.blocked(now, node, machine));
        let up = self.nodes[node].process.is_some() && blocked.is_none();
        let wire = up.then(|| {
            let ends = [it.end(), self.nodes[node].end()];
            self.context.network.connect(ends, [machine, node])
        });
        if let Some(wire) = wire
            && let Some(late) = self.late_hellos.remove(&client)
        {
            log!(self.context, "what c{client} sends over connection {wire} is late");
            self.context.network.hold_up(wire, 1, now + late);
        }
        self.with_client(client, |it, context, reports| it.dialled(context, wire, reports));
    }
}
