//! How each fault happens.

use crate::clock::{MS, SECOND};
use crate::context::{Event, log};
use crate::settings::Fault;
use super::World;

impl World {
    /// A fault begins, and the next of its kind is planned.
    #[expect(clippy::too_many_lines, reason = "one arm for each case")]
    pub(crate) fn fault(&mut self, fault: Fault) {
        let now = self.context.now;
        if now >= self.context.settings.heals {
            return;
        }
        let mean = self.context.settings.faults.iter().find(|(known, _)| *known == fault);
        if let Some((_, mean)) = mean.copied() {
            let next = now + self.context.random.exponential(mean) + MS;
            self.context.queue.push(next, Event::Fault(fault));
        }
        self.context.counts.faults += 1;
        let (nodes, clients) = (self.nodes.len() as u64, self.clients.len() as u64);
        let random = &mut self.context.random;
        let (node, client) = (random.below(nodes) as usize, random.below(clients) as usize);
        // From much shorter than every deadline to longer than all of them.
        let time = random.magnitude(10 * MS, 30 * SECOND).min(self.context.settings.heals - now);
        log!(self.context, "fault {fault:?}: n{node}, c{client}, {:.3} s", time as f64 / 1e9);
        let machines = nodes + clients;
        match fault {
            Fault::KillNode => {
                self.check_ledger(node);
                self.nodes[node].kill(&mut self.context);
                self.context.queue.push(now + time, Event::StartNode(node));
            }
            Fault::StopNode => {
                self.check_ledger(node);
                if self.nodes[node].paused <= now {
                    self.nodes[node].stop(&mut self.context);
                    self.context.queue.push(now + time, Event::StartNode(node));
                }
            }
            Fault::DrainNode => {
                if self.nodes[node].process.is_some() && self.nodes[node].paused <= now {
                    self.nodes[node].drain(&mut self.context, time / 4);
                }
            }
            Fault::CrashMachine => {
                if self.context.random.percent(20) {
                    // In the moment when the next process marks its beginning.
                    self.check_ledger(node);
                    self.nodes[node].kill(&mut self.context);
                    self.nodes[node].disk.borrow_mut().crash_in_sync = true;
                    self.context.queue.push(now + time, Event::StartNode(node));
                } else {
                    self.crash(node);
                }
            }
            Fault::KillClient => {
                self.kill_client(client);
                self.context.queue.push(now + time, Event::StartClient(client));
            }
            Fault::PauseNode => {
                let node = &mut self.nodes[node];
                node.paused = node.paused.max(now + time);
            }
            Fault::PauseClient => {
                let client = &mut self.clients[client];
                client.paused = client.paused.max(now + time);
            }
            Fault::Sleep => {
                let machine = self.context.random.below(machines) as usize;
                if let Some(node) = self.nodes.get_mut(machine) {
                    node.paused = node.paused.max(now + time);
                }
                for client in self.clients.iter_mut().filter(|it| it.machine == machine) {
                    client.paused = client.paused.max(now + time);
                }
            }
            Fault::CutPair | Fault::CutOneWay => {
                let machine = self.context.random.below(machines) as usize;
                self.context.network.block(node, machine, now + time);
                if fault == Fault::CutPair {
                    self.context.network.block(machine, node, now + time);
                } else if self.context.random.percent(50) {
                    self.context.network.heal();
                    self.context.network.block(machine, node, now + time);
                }
            }
            Fault::Isolate => {
                for machine in (0..machines as usize).filter(|machine| *machine != node) {
                    self.context.network.block(node, machine, now + time);
                    self.context.network.block(machine, node, now + time);
                }
            }
            Fault::Delay => {
                let factor = self.context.random.magnitude(2, 200);
                self.context.network.slower = (factor, now + time);
            }
            Fault::Break => {
                for _ in 0..self.context.random.between(1, 4) {
                    let pipes = self.context.network.pipes.iter();
                    let wires: Vec<_> = pipes
                        .filter(|(_, pipe)| !pipe.is_local() && !pipe.broken)
                        .map(|(wire, _)| *wire)
                        .collect();
                    if !wires.is_empty() {
                        let wire = *self.context.random.pick(&wires);
                        log!(self.context, "connection {wire} breaks");
                        self.context.network.cut(now, wire, &mut self.context.random);
                    }
                }
            }
            Fault::FullDisk => {
                self.nodes[node].disk.borrow_mut().full = true;
                self.context.queue.push(now + time, Event::MendDisk(node));
            }
            Fault::StalledDisk => {
                let stall = self.context.random.magnitude(MS, 500 * MS);
                self.nodes[node].disk.borrow_mut().stall = stall;
                self.context.queue.push(now + time, Event::MendDisk(node));
            }
        }
    }
}
