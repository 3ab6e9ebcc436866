//! What can happen in a world, and what follows from it.

use std::collections::VecDeque;
use std::rc::Rc;

use doorway_core::NodeId;
use doorway_node::locks::LockEffects;

use super::course::Course;
use super::search::System;
use super::seats::Seat;
use super::world::{CLIENT, Event, Flaw, Mail, Process, World, Wrong};

impl<C: Course, M: Seat> System for World<C, M> {
    type Event = Event;
    type Wrong = Wrong;

    fn events(&self) -> Vec<Event> {
        let mut events = Vec::new();
        for node in 0..self.setting.size {
            self.events_of_orphans(node, &mut events);
            let Some(process) = &self.nodes[node] else {
                events.push(Event::Restart(node));
                continue;
            };
            self.events_of(node, process, &mut events);
            for other in self.others(node) {
                let many = self.links[other][node].len();
                let first = if self.setting.overtaking { many } else { many.min(1) };
                events.extend((0..first).map(|at| Event::Deliver(other, node, at)));
                if node < other && self.nodes[other].is_some() && !self.connected[node][other] {
                    events.push(Event::Connect(node, other));
                }
            }
            events.extend((self.crashes > 0).then_some(Event::Crash(node)));
            events.extend((self.raises > 0).then_some(Event::Raise(node)));
        }
        events
    }

    fn apply(&self, event: Event) -> Result<Self, Wrong> {
        let mut next = self.clone();
        next.happen(event)?;
        next.forget();
        Ok(next)
    }

    fn rests(&self) -> bool {
        let newest: u64 = self.disks.iter().sum();
        let connected = |node: usize| self.others(node).all(|other| self.connected[node][other]);
        let quiet = |process: &Rc<Process<C, M>>| {
            process.stopping.is_none()
                && process.unsent.is_none()
                && process.course.pending().is_none()
                && process.shards.iter().all(|shard| {
                    let free = shard.lock.is_idle() && !shard.waits && shard.fence.is_none();
                    shard.running && shard.view == newest && free
                })
        };
        self.nodes[..self.setting.size].iter().all(|node| node.as_ref().is_some_and(quiet))
            && (0..self.setting.size).all(connected)
            && self.links.iter().flatten().all(VecDeque::is_empty)
    }

    fn is_duty(event: Event) -> bool {
        use Event::{Ask, Crash, GiveUp, Raise};
        !matches!(event, Ask(..) | GiveUp(..) | Crash(_) | Raise(_))
    }
}

impl<C: Course, M: Seat> World<C, M> {
    fn events_of(&self, node: usize, process: &Process<C, M>, events: &mut Vec<Event>) {
        for (at, shard) in process.shards.iter().enumerate() {
            let outside = !shard.waits && shard.fence.is_none() && self.orphans[node][at].is_none();
            if outside && self.asks[node][at] > 0 && shard.lock.place(CLIENT).is_none() {
                events.push(Event::Ask(node, at));
            }
            if shard.waits && self.setting.gives_up {
                events.push(Event::GiveUp(node, at));
            }
            if shard.fence.is_some() {
                events.push(Event::Leave(node, at));
            }
            let wants = shard.lock.machine().is_some_and(|machine| machine.waiting().is_some());
            if M::LIBERAL && shard.running && wants {
                let instance = self.instances.get(&(at, shard.view));
                let empty = instance.is_none_or(|instance| instance.0.is_empty());
                events.extend(empty.then_some(Event::Enter(node, at)));
            }
        }
        if process.reclaiming {
            return;
        }
        if process.stopping.is_some() || process.course.pending().is_some() {
            events.push(Event::Stop(node));
        }
        if process.unsent.is_some() {
            events.push(Event::Send(node));
        }
        if process.stopping.is_none() && process.course.clone().ready().is_some() {
            events.push(Event::Start(node));
        }
    }

    fn happen(&mut self, event: Event) -> Result<(), Wrong> {
        match event {
            Event::Ask(node, shard) => self.ask(node, shard),
            Event::GiveUp(node, shard) => self.give_up(node, shard),
            Event::Leave(node, shard) => {
                let forgotten = self.flawed(Flaw::ReleaseForgotten);
                self.shard(node, shard).fence = None;
                if forgotten && !self.shard(node, shard).running {
                    return Ok(());
                }
                self.touch(node, shard, |lock, rule, out| lock.leave(rule, CLIENT, out).map(drop))
            }
            Event::Enter(node, shard) => {
                let other = NodeId::at((node + 1) % self.setting.size);
                self.touch(node, shard, |lock, rule, out| lock.receive(rule, other, &[], out))
            }
            Event::Deliver(from, to, at) => self.deliver(from, to, at),
            Event::Connect(one, other) => {
                self.connect(one, other);
                self.connect(other, one);
                Ok(())
            }
            Event::Stop(node) => self.stop(node),
            Event::Start(node) => self.start(node),
            Event::Send(node) => {
                self.send_second(node);
                Ok(())
            }
            Event::Crash(node) => {
                self.crashes -= 1;
                self.orphan(node);
                self.nodes[node] = None;
                for other in 0..self.setting.size {
                    self.links[other][node].clear();
                    self.connected[other][node] = false;
                    self.connected[node][other] = false;
                }
                Ok(())
            }
            Event::Restart(node) => {
                self.disks[node] += u64::from(!self.flawed(Flaw::SameEpoch));
                let mut process = Process::new(node, self.disks[node], &self.setting);
                process.reclaiming = self.setting.reclaims;
                self.nodes[node] = Some(Rc::new(process));
                Ok(())
            }
            Event::Raise(node) => {
                self.raises -= 1;
                self.disks[node] += 1;
                let epoch = self.disks[node];
                self.process(node).course.raise(epoch);
                Ok(())
            }
            Event::Reclaim(node, shard) => self.reclaim(node, shard),
            Event::Depart(node, shard) => {
                self.orphans[node][shard] = None;
                Ok(())
            }
            Event::Serve(node) => {
                self.serve(node);
                Ok(())
            }
        }
    }

    fn give_up(&mut self, node: usize, shard: usize) -> Result<(), Wrong> {
        self.shard(node, shard).waits = false;
        let group = self.setting.rule.group.clone();
        self.touch(node, shard, |lock, rule, out| {
            lock.leave(rule, CLIENT, out)?;
            match lock.machine().and_then(|machine| machine.abandon(node, &group)) {
                Some(machine) => lock.start(rule, Box::new(machine), out),
                None => Ok(()),
            }
        })
    }

    fn deliver(&mut self, from: usize, to: usize, at: usize) -> Result<(), Wrong> {
        let Some(mail) = self.links[from][to].remove(at) else { return Ok(()) };
        let course = &mut self.process(to).course;
        let done = match mail {
            Mail::Epochs(epochs) => course.learn(&epochs),
            Mail::Flush(flush) => course.flush(from, flush),
            Mail::Step { .. } => return self.step(from, to, mail),
        };
        match done {
            Err(reason) if self.setting.flaw.is_none() => Err(Wrong::Refused(reason)),
            _ => Ok(()),
        }
    }

    /// Restart the link in one direction: messages under way are lost.
    fn connect(&mut self, from: usize, to: usize) {
        self.links[from][to].clear();
        self.connected[from][to] = true;
        let course = self.process(from).course.clone();
        let epochs = self.announced(from);
        self.send(from, to, Mail::Epochs(epochs));
        if !self.flawed(Flaw::FlushOnce) {
            for flush in course.flushes() {
                self.send(from, to, Mail::Flush(flush));
            }
        }
    }

    /// Stop one more shard; after the last one the node flushes.
    fn stop(&mut self, node: usize) -> Result<(), Wrong> {
        let setting = Rc::clone(&self.setting);
        let process = self.process(node);
        let begun = process.stopping.take();
        let fresh = || process.course.pending().map(|epochs| (epochs, Vec::new(), 0));
        let Some((epochs, mut held, done)) = begun.or_else(fresh) else { return Ok(()) };
        let holding = |shard: usize| process.holding(shard, &setting.rule);
        let stops = match setting.flaw {
            Some(Flaw::SnapshotFirst) if done == 0 => {
                held.extend((0..setting.shards).filter_map(holding));
                process.stopping = Some((epochs, held, 1));
                return Ok(());
            }
            Some(Flaw::SnapshotFirst) => 0..setting.shards,
            Some(Flaw::NoHolders) => done..done + 1,
            _ => {
                held.extend(holding(done));
                done..done + 1
            }
        };
        let end = stops.end;
        let number = epochs.iter().sum();
        for shard in stops {
            self.stop_shard(node, shard, number)?;
        }
        if end < setting.shards {
            self.process(node).stopping = Some((epochs, held, end));
            return Ok(());
        }
        for flush in self.process(node).course.stopped(&epochs, held) {
            for (place, other) in self.others(node).enumerate() {
                if place > 0 && self.flawed(Flaw::Reread) {
                    self.process(node).unsent = Some(epochs.clone());
                } else {
                    self.send(node, other, Mail::Flush(flush.clone()));
                }
            }
        }
        Ok(())
    }

    fn stop_shard(&mut self, node: usize, shard: usize, number: u64) -> Result<(), Wrong> {
        let setting = Rc::clone(&self.setting);
        let place = self.shard(node, shard);
        if setting.flaw.is_none() && number <= place.view {
            return Err(Wrong::Backwards);
        }
        (place.view, place.running, place.clock) = (number, false, 0);
        place.kept.clear();
        if setting.flaw != Some(Flaw::EnterInFlush) {
            place.lock.stop();
        }
        if setting.flaw == Some(Flaw::NotAskedAgain) && place.waits {
            let left = place.lock.leave(&setting.rule, CLIENT, &mut LockEffects::default());
            left.map_err(|fault| Wrong::Refused(fault.to_string()))?;
        }
        Ok(())
    }

    /// Tell the last receiver what is held by now.
    fn send_second(&mut self, node: usize) {
        let setting = Rc::clone(&self.setting);
        let process = self.process(node);
        let Some(epochs) = process.unsent.take() else { return };
        let shards = 0..setting.shards;
        let held: Vec<_> = shards.filter_map(|at| process.holding(at, &setting.rule)).collect();
        if let (Some(mut flush), Some(last)) =
            (process.course.flushes().pop(), self.others(node).last())
            && flush.epochs == epochs
        {
            flush.held = held;
            self.send(node, last, Mail::Flush(flush));
        }
    }

    fn start(&mut self, node: usize) -> Result<(), Wrong> {
        let setting = Rc::clone(&self.setting);
        let process = self.process(node);
        let Some((epochs, mut held)) = process.course.ready() else { return Ok(()) };
        if setting.flaw == Some(Flaw::RereadOwn) {
            let shards = 0..setting.shards;
            held[node] = shards.filter_map(|at| process.holding(at, &setting.rule)).collect();
        }
        let number = epochs.iter().sum();
        let started = (epochs, held.clone());
        if *self.starts.entry(number).or_insert_with(|| started.clone()) != started {
            return Err(Wrong::Starts);
        }
        (0..setting.shards).try_for_each(|shard| self.begin(node, shard, number, &held))
    }

    /// Forget what no node can start or run any more, because it makes no difference.
    fn forget(&mut self) {
        let live: Vec<_> = self.nodes.iter().flatten().cloned().collect();
        self.instances.retain(|(shard, view), _| {
            live.iter().any(|process| process.shards[*shard].view <= *view)
        });
        self.starts.retain(|view, _| {
            let mut shards = live.iter().flat_map(|process| &process.shards);
            shards.any(|shard| shard.view < *view || (shard.view == *view && !shard.running))
        });
    }
}
