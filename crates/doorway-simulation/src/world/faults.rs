//! How each fault happens.

use super::World;
use crate::book::Book;
use crate::clock::{MS, SECOND};
use crate::context::{Event, log};
use crate::disk::DiskTrouble;
use crate::network::{End, Traffic};
use crate::settings::{Fault, LifeSetting};
use crate::story::Lane;

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
        // Some times are much shorter than every deadline, and some are longer than all of them.
        // Two fifths are about as long as the TTL or the lease of the run.
        let deadline = self.context.settings.deadline();
        let time = match random.below(5) {
            0..2 => random.between(deadline / 2, 3 * deadline),
            _ => random.magnitude(10 * MS, 30 * SECOND),
        };
        let time = time.min(self.context.settings.heals - now);
        log!(self.context, "fault {fault:?}: n{node}, c{client}, {:.3} s", time as f64 / 1e9);
        if let Some(story) = &mut self.context.story {
            story.mark(now, None, format!("{fault:?}"));
        }
        let machines = nodes + clients;
        match fault {
            Fault::KillNode => {
                self.check_ledger(node);
                self.nodes[node].kill(&mut self.context);
                self.keep_down(node, now + time);
            }
            Fault::StopNode => {
                self.check_ledger(node);
                if self.nodes[node].paused <= now {
                    self.keep_down(node, now + time);
                    self.nodes[node].stop(&mut self.context);
                }
            }
            Fault::DrainNode => {
                if self.nodes[node].process.is_some() && self.nodes[node].paused <= now {
                    self.nodes[node].drain(&mut self.context, time / 4);
                }
            }
            Fault::CrashMachine => {
                if self.context.random.percent(20) {
                    // The machine crashes when the next process writes its first record.
                    self.check_ledger(node);
                    self.nodes[node].kill(&mut self.context);
                    self.nodes[node].disk.borrow_mut().crash_in_sync = true;
                    self.keep_down(node, now + time);
                } else {
                    self.crash(node);
                }
            }
            Fault::KillClient => {
                let client = self.victim(client);
                self.kill_client(client);
                let machine = self.clients[client].machine;
                if machine < self.nodes.len() && self.context.random.percent(33) {
                    // The node of its machine is killed with it.
                    self.check_ledger(machine);
                    self.nodes[machine].kill(&mut self.context);
                    let down = self.context.random.magnitude(10 * MS, 2 * SECOND);
                    self.keep_down(machine, now + down);
                }
                self.context.queue.push(now + time, Event::StartClient(client));
            }
            Fault::PauseNode => self.pause(Lane::Node(node), now + time),
            Fault::PauseClient => self.pause(Lane::Client(client), now + time),
            Fault::Sleep => {
                let machine = self.context.random.below(machines) as usize;
                if machine < self.nodes.len() {
                    let until = (now + time).max(self.nodes[machine].paused);
                    self.nodes[machine].fall_asleep(now, until);
                    self.pause(Lane::Node(machine), now + time);
                }
                for client in 0..self.clients.len() {
                    if self.clients[client].machine == machine {
                        self.pause(Lane::Client(client), now + time);
                    }
                }
            }
            Fault::CutPair | Fault::CutOneWay => {
                let machine = self.context.random.below(machines) as usize;
                let both = fault == Fault::CutPair;
                let there = both || self.context.random.percent(50);
                if there {
                    self.context.network.block(node, machine, now + time);
                }
                if both || !there {
                    self.context.network.block(machine, node, now + time);
                }
            }
            Fault::Isolate => self.isolate(node, now + time),
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
            Fault::LateHello => self.delay_hello(),
            Fault::CutRegister => self.cut_register(node, time),
            Fault::LoseQuorum => {
                if let Some(register) = &mut self.context.register {
                    register.stuck = register.stuck.max(now + time);
                }
            }
            Fault::MoveLeader => match self.context.random.below(10) {
                0..2 => self.lead(&[]),
                2..4 => self.lead(&[node, (node + 1) % nodes as usize]),
                _ => self.lead(&[node]),
            },
            Fault::ChangeSeats => self.change_seats(node),
            Fault::ChangeLease => self.change_lease(),
            Fault::TakeAddress => {
                let other =
                    (node + 1 + self.context.random.below(nodes - 1) as usize) % self.nodes.len();
                self.crash(other);
                let back = self.nodes[other].off;
                let moved = Event::MoveAddress { of: node, to: other, until: back + time };
                self.context.queue.push(back, moved);
            }
            Fault::FullDisk => {
                let trouble = match self.context.random.below(4) {
                    0 => DiskTrouble::ReadOnly,
                    1 => DiskTrouble::Failing,
                    _ => DiskTrouble::Full,
                };
                // Only locks without end are synced before their clients are told.
                let in_sync = self.context.settings.endless && self.context.random.percent(50);
                let ends = in_sync && self.context.settings.ends_in_sync;
                let trouble = if ends { DiskTrouble::ReadOnly } else { trouble };
                let mut disk = self.nodes[node].disk.borrow_mut();
                if in_sync {
                    disk.trouble_in_sync = Some(trouble);
                } else {
                    disk.trouble = Some(trouble);
                }
                self.context.queue.push(now + time, Event::MendDisk(node));
            }
            Fault::DamageDisk => self.damage(node, time),
            Fault::BreakLock => self.break_lock(),
            Fault::StalledDisk => {
                let stall = self.context.random.magnitude(MS, 500 * MS);
                self.nodes[node].disk.borrow_mut().stall = stall;
                self.context.queue.push(now + time, Event::MendDisk(node));
            }
        }
    }

    /// From now on clients of other machines find another node at the address of this one. Their
    /// connections to it break.
    pub(super) fn move_address(&mut self, of: usize, to: usize, until: u64) {
        if self.context.now >= self.context.settings.heals {
            return;
        }
        log!(self.context, "n{to} is found at the address of n{of}");
        self.context.network.move_address(of, to, until);
        let pipes = self.context.network.pipes.iter().filter(|(_, pipe)| {
            let with = |end: &End| matches!(end, End::Node { node, .. } if *node == of);
            let of_client = pipe.ends.iter().any(|end| matches!(end, End::Client { .. }));
            !pipe.is_local() && !pipe.broken && of_client && pipe.ends.iter().any(with)
        });
        for wire in pipes.map(|(wire, _)| *wire).collect::<Vec<_>>() {
            self.context.network.cut(self.context.now, wire, &mut self.context.random);
        }
    }

    /// The client that is killed: this one, or in half of the cases one that holds a lock.
    fn victim(&mut self, client: usize) -> usize {
        let inside = self.books.iter().flat_map(|book| book.inside().iter().map(|it| it.0));
        let inside: Vec<usize> = inside.collect();
        let holds = self.context.random.percent(50) && !inside.is_empty();
        if holds { *self.context.random.pick(&inside) } else { client }
    }

    /// Let a machine reach no other machine until this time, nor the register.
    pub(super) fn isolate(&mut self, machine: usize, until: u64) {
        let register = usize::from(self.context.register.is_some());
        let all = self.nodes.len() + self.clients.len() + register;
        for other in (0..all).filter(|other| *other != machine) {
            self.context.network.block(machine, other, until);
            self.context.network.block(other, machine, until);
        }
    }

    /// Suspend a process until this time.
    pub(super) fn pause(&mut self, lane: Lane, until: u64) {
        let paused = match lane {
            Lane::Node(node) => &mut self.nodes[node].paused,
            Lane::Client(client) => &mut self.clients[client].paused,
        };
        *paused = until.max(*paused);
        if let Some(story) = &mut self.context.story {
            story.pause(self.context.now, lane, until);
        }
    }

    /// Kill the process of a node, and change a bit of a record in its ledger.
    fn damage(&mut self, node: usize, time: u64) {
        self.check_ledger(node);
        self.nodes[node].kill(&mut self.context);
        self.nodes[node].disk.borrow_mut().damage(&mut self.context.random);
        self.books.iter_mut().for_each(Book::forget_breaks);
        self.keep_down(node, self.context.now + time);
    }

    /// The process of a node is not started before this time.
    fn keep_down(&mut self, node: usize, until: u64) {
        let down = &mut self.nodes[node].down;
        *down = until.min(self.context.settings.heals).max(*down);
        self.context.queue.push(*down, Event::StartNode(node));
    }

    /// The connection of a client of another machine breaks, and what the client sends over its
    /// next connection arrives late. The client is, in half of all cases, one that holds a lock.
    fn delay_hello(&mut self) {
        let may = |client: &usize| {
            let setting = &self.clients[*client].setting;
            !setting.local && setting.life != LifeSetting::Http
        };
        let all: Vec<usize> = (0..self.clients.len()).filter(may).collect();
        let inside = self.books.iter().flat_map(|book| book.inside().iter().map(|it| it.0));
        let inside: Vec<usize> = inside.filter(may).collect();
        let random = &mut self.context.random;
        let of = if random.percent(50) && !inside.is_empty() { inside } else { all };
        if of.is_empty() {
            return;
        }
        let client = *random.pick(&of);
        // A client waits for a greeting for a quarter of its TTL.
        let ttl = self.context.settings.ttl.as_nanos() as u64;
        self.late_hellos.insert(client, random.magnitude(ttl / 8, 4 * ttl));
        let now = self.context.now;
        for (wire, side) in self.context.network.of(self.clients[client].end()) {
            log!(self.context, "connection {wire} of c{client} breaks");
            self.context.network.cut(now, wire, &mut self.context.random);
            self.context.queue.push(now + MS, Event::Traffic(Traffic::Ended(wire, side)));
        }
    }

    /// An operator at a node, or another of its clients, takes a lock from its holder.
    fn break_lock(&mut self) {
        let held = self
            .books
            .iter()
            .flat_map(|book| book.inside().iter().copied().chain(book.left_behind()));
        let held: Vec<_> = held.collect();
        if held.is_empty() {
            return;
        }
        let (holder, held) = *self.context.random.pick(&held);
        let lock = self.context.settings.locks[held.lock].name.clone();
        let node = self.clients[holder].target();
        let others: Vec<usize> = (0..self.clients.len())
            .filter(|other| *other != holder && self.clients[*other].target() == node)
            .collect();
        if self.context.random.percent(50) && !others.is_empty() {
            let client = *self.context.random.pick(&others);
            return self.with_client(client, |it, context, reports| {
                it.break_lock(context, &lock, held.fence, reports);
            });
        }
        let orphan = self.context.register.as_ref().and_then(|register| {
            let orphans = register.state.holds.orphans(&register.state.record);
            let mut ids = orphans.map(|(id, _)| id);
            ids.find(|id| held.endless && (&id.name, id.fence) == (&lock, held.fence)).cloned()
        });
        if let Some(orphan) = orphan {
            return self.break_orphan(orphan);
        }
        if self.nodes[node].process.is_some() && self.nodes[node].paused <= self.context.now {
            self.nodes[node].break_by_operator(&mut self.context, &lock, held.fence);
            self.after_node(node);
        }
    }
}
