//! What can happen in a group, and what follows from it.

use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use doorway_core::{Mode, NodeId};
use doorway_node::members::{Answer, Command, HoldId, Member, MemberId, Record};
use doorway_node::messages::{AlgorithmMessage, Flush, Message};
use doorway_node::views::{AgreedEvent, AgreedOutput};
use doorway_search::System;

use super::mistake::Mistake;
use super::world::{
    Action, Client, Link, Orphan, Process, Promise, Seats, Violation, World, agreed, at, members,
    name, rules, seat,
};

/// The lease of a process, in its own time.
const LEASE: Duration = Duration::from_secs(1);

impl System for Seats {
    type State = World;
    type Action = Action;
    type Violation = Violation;

    fn first(&self) -> World {
        self.first.clone()
    }

    fn actions(&self, world: &World) -> Vec<Action> {
        let mut actions = Vec::new();
        for node in 0..self.setting.size {
            self.orphan_actions(world, node, &mut actions);
            let Some(process) = &world.processes[node] else {
                actions.extend((world.ids > 0).then_some(Action::Restart(node)));
                continue;
            };
            self.client_actions(world, node, process, &mut actions);
            self.node_actions(world, node, process, &mut actions);
            self.member_actions(world, node, process, &mut actions);
            self.link_actions(world, node, &mut actions);
            self.hold_actions(world, node, process, &mut actions);
        }
        self.store_actions(world, &mut actions);
        actions
    }

    fn apply(&self, world: &mut World, action: Action) -> Result<(), Violation> {
        self.act(world, action)?;
        if let Some(mistake @ (Mistake::Majority | Mistake::Alone | Mistake::EntrantNotAwaited)) =
            self.setting.mistake
        {
            (0..self.setting.size).try_for_each(|node| self.forge(world, node, mistake))?;
        }
        self.drop_useless(world);
        forget(world, self.has(Mistake::AnyDropped));
        Ok(())
    }

    fn check(&self, world: &World) -> Result<(), Violation> {
        let inside = (0..self.setting.size).filter(|node| world.is_inside(*node)).count();
        if inside > self.most() { Err(Violation::TwoInside) } else { Ok(()) }
    }

    fn is_goal(&self, world: &World) -> bool {
        let processes = || world.processes.iter().flatten();
        if processes().next().is_none() && world.ids == 0 {
            return true; // Nobody is left who could do anything.
        }
        let number = world.record.number;
        let is_seated = |process: &Rc<Process>| {
            let member = process.member.and_then(|id| world.record.member(id).ok());
            member.is_some_and(|member| member.since.is_some())
        };
        let quiet = |process: &Rc<Process>| {
            let runs = process.views.running() == Some(number)
                && process.shard.running() == Some(number)
                && is_seated(process)
                && !process.is_over();
            let lock = process.shard.lock(process.slot);
            let idle = process.client.is_none() && lock.is_idle() && !lock.lingers();
            // A process that cannot become a member serves nobody.
            let out = process.member.is_none() && process.evicted.is_none() && world.ids == 0;
            process.todo.is_empty() && process.unsent.is_none() && (runs && idle || out)
        };
        let alive = |member: &Member| world.process_of(member.id).is_some();
        processes().all(quiet)
            && world.record.members.iter().all(alive)
            && world.orphans.iter().all(Option::is_none)
            && world.holds.iter().next().is_none()
            && processes().all(|process| process.views.holds().iter().next().is_none())
            && world.mail.iter().flatten().all(VecDeque::is_empty)
    }

    fn is_expected(&self, action: &Action) -> bool {
        use Action::{Ask, Bump, ChangeRules, Cut, Evict, Kill, Lapse, Quit};
        match action {
            Evict(_) => self.setting.severed,
            Ask(_) | Bump(_) | ChangeRules | Cut(..) | Kill(_) | Lapse(_) | Quit(_) => false,
            _ => true,
        }
    }
}

impl Seats {
    fn client_actions(
        &self,
        world: &World,
        node: usize,
        process: &Process,
        actions: &mut Vec<Action>,
    ) {
        let lock = process.shard.lock(process.slot);
        match &process.client {
            None => {
                let asks = world.orphans[node].is_none() && lock.is_idle() && world.asks[node] > 0;
                actions.extend(asks.then_some(Action::Ask(node)));
            }
            // A client releases what it knows to have.
            Some(Client { fence: Some(_), promise: Promise::Short | Promise::Told(_), .. }) => {
                actions.push(Action::Leave(node));
            }
            Some(_) => {}
        }
        actions.extend(lock.lingers().then_some(Action::EndLinger(node)));
        let waits = lock.machine().is_some_and(|machine| machine.waiting().is_some());
        if let (true, true, Some(view)) = (self.is_liberal(), waits, process.shard.running()) {
            let empty = world.instances.get(&view).is_none_or(|(inside, _)| inside.is_empty());
            actions.extend(empty.then_some(Action::Enter(node)));
        }
    }

    fn node_actions(
        &self,
        world: &World,
        node: usize,
        process: &Process,
        actions: &mut Vec<Action>,
    ) {
        match process.todo.front() {
            Some(AgreedOutput::StopShards(..)) => actions.push(Action::Perform(node)),
            Some(AgreedOutput::StartShards(..)) => actions.push(Action::Delayed(node)),
            _ => {}
        }
        actions.extend(process.unsent.is_some().then_some(Action::Delayed(node)));
        let runs = process.views.running() == Some(world.record.number);
        actions.extend((runs && world.bumps > 0).then_some(Action::Bump(node)));
        actions.extend((world.kills > 0).then_some(Action::Kill(node)));
        // A process leaves nothing behind when it ends in good order.
        let idle = process.client.is_none() || self.has(Mistake::LeftInside);
        let ends = idle && process.member.is_some() && !process.views.is_reclaiming();
        let quits = ends && world.quits > 0 && world.orphans[node].is_none();
        actions.extend(quits.then_some(Action::Quit(node)));
        let newest = rules(world.changed.is_some()).digest();
        let knows = process.views.rules().is_some_and(|rules| rules.digest == newest);
        actions.extend((!knows).then_some(Action::LearnRules(node)));
    }

    fn member_actions(
        &self,
        world: &World,
        node: usize,
        process: &Process,
        actions: &mut Vec<Action>,
    ) {
        let Some(id) = process.member else {
            if let Some(id) = process.evicted {
                let ended = world.has_ended(id) || process.nothing_lost;
                let leaves = ended || self.has(Mistake::EvictedLeavesEarly);
                actions.extend(leaves.then_some(Action::GiveUpSeat(node)));
            } else {
                // The host has performed everything that follows from the end of a membership.
                let rules = process.views.rules().map(|rules| rules.digest);
                let is_informed = rules == Some(world.record.rules);
                // The group first removes an evicted process of the seat.
                let evicted = world.record.members_of(seat(node)).any(|member| member.evicted);
                let may = world.ids > 0 && !evicted;
                let joins = may && process.todo.is_empty() && is_informed;
                actions.extend(joins.then_some(Action::Join(node)));
            }
            return;
        };
        let known = process.views.record();
        let older = known.is_none_or(|known| known.revision < world.record.revision);
        let matters =
            !process.is_seated() || known.is_none_or(|it| it.number < world.record.number);
        actions.extend((older && matters).then_some(Action::Learn(node)));
        actions.extend(self.entry(world, node).is_some().then_some(Action::TakeSeat(node)));
        if process.is_over() {
            actions.push(Action::Discard(node));
        } else {
            let refused = world.record.member(id).map_or(true, |member| member.evicted);
            actions.extend(refused.then_some(Action::Discard(node)));
            // A later member of a seat has its lease for longer than an earlier one.
            let earlier = world.record.members_of(seat(node)).filter(|other| other.id < id);
            let last = earlier.map(|other| other.id).all(|other| world.has_ended(other));
            actions.extend((last && world.lapses > 0).then_some(Action::Lapse(node)));
        }
    }

    fn hold_actions(
        &self,
        world: &World,
        node: usize,
        process: &Process,
        actions: &mut Vec<Action>,
    ) {
        if *process.views.holds() != world.holds {
            actions.push(Action::LearnHolds(node));
        }
        let Some(member) = process.member else { return };
        if let Some(Client { fence: Some(_), promise, .. }) = &process.client {
            match promise {
                Promise::Asked => actions.push(Action::Hold(node)),
                // A process that was started again takes over what its predecessor promised.
                Promise::Told(by) if *by != Some(member) && !self.has(Mistake::HoldNotTaken) => {
                    actions.push(Action::Hold(node));
                }
                Promise::Held(_) => actions.push(Action::Tell(node)),
                _ => {}
            }
        }
        let known = process.views.holds();
        actions.extend(unwanted(world, node, member).is_some().then_some(Action::DropOwn(node)));
        let all = process.views.record().is_some_and(|record| known.added() >= record.holds);
        if all && over(world, node, self.has(Mistake::CountedShort)).is_some() {
            actions.push(Action::CountOver(node));
        }
    }

    fn link_actions(&self, world: &World, node: usize, actions: &mut Vec<Action>) {
        for other in self.others(node) {
            if world.links[node][other].up {
                let many = world.mail[other][node].len();
                let first = if self.setting.overtaking { many } else { many.min(1) };
                actions.extend((0..first).map(|at| Action::Deliver(other, node, at)));
                let gone = world.processes[other].is_none();
                actions.extend(gone.then_some(Action::Notice(node, other)));
            }
            if node > other || world.processes[other].is_none() {
                continue;
            }
            let linked = is_linked(world, node, other);
            let severed = world.links[node][other].severed && both_seated(world, node, other);
            actions.extend((!linked && !severed).then_some(Action::Connect(node, other)));
            actions.extend((linked && world.cuts > 0).then_some(Action::Cut(node, other)));
        }
    }

    fn orphan_actions(&self, world: &World, node: usize, actions: &mut Vec<Action>) {
        let process = world.processes[node].as_ref();
        let reclaiming = process.is_some_and(|process| process.views.is_reclaiming());
        let orphan = world.orphans[node].as_ref();
        if let Some(orphan) = orphan {
            actions.push(Action::Depart(node));
            let passes = orphan.long && world.has_ended(orphan.by);
            actions.extend(passes.then_some(Action::Expire(node)));
            let free = process.is_some_and(|process| process.client.is_none());
            actions.extend((reclaiming && free).then_some(Action::Reclaim(node)));
        }
        let over = orphan.is_none_or(|orphan| world.has_ended(orphan.by));
        if reclaiming && (over || self.has(Mistake::HeirEarly)) {
            actions.push(Action::Serve(node));
        }
    }

    fn store_actions(&self, world: &World, actions: &mut Vec<Action>) {
        let record = &world.record;
        let changes = self.setting.next.is_some() && world.changed.is_none() && world.changes;
        actions.extend(changes.then_some(Action::ChangeRules));
        let orphans = world.orphans.iter().flatten().map(|orphan| orphan.by);
        let clients = world.processes.iter().flatten().filter_map(|it| it.client.as_ref()?.by);
        let members = record.members.iter().map(|member| member.id);
        let leases: BTreeSet<MemberId> = members.chain(orphans).chain(clients).collect();
        let unkept = |id: &MemberId| !world.has_ended(*id) && world.process_of(*id).is_none();
        actions.extend(leases.into_iter().filter(unkept).map(Action::LeaseEnds));
        actions.extend((0..world.late.len()).map(Action::Late));
        if world.processes.iter().all(Option::is_none) {
            return;
        }
        for node in 0..self.setting.size {
            let mut members = record.members_of(seat(node));
            let goes = |member: &Member| match self.setting.mistake {
                Some(Mistake::RemovedEarly) => true,
                Some(Mistake::RemovedAlone) if member.since.is_none() => true,
                _ => world.has_ended(member.id),
            };
            let some = record.members_of(seat(node)).next().is_some();
            actions.extend((some && members.all(goes)).then_some(Action::Remove(node)));
        }
        for member in &record.members {
            let ended = world.has_ended(member.id) || self.has(Mistake::ForgottenEarly);
            if member.since.is_none() && ended {
                actions.push(Action::Forget(member.id));
            }
        }
        if world.evictions > 0 && !self.has(Mistake::NoEviction) {
            // A waiting member that gives up behaves like one that was evicted.
            let fresh = record.members.iter().filter(|member| !member.evicted);
            let complained = |member: &&Member| {
                let node = at(member.seat);
                let mut others = self.others(node);
                !self.setting.severed
                    || others.any(|other| {
                        world.links[node][other].severed && both_seated(world, node, other)
                    })
            };
            actions.extend(fresh.filter(complained).map(|member| Action::Evict(member.id)));
        }
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each action")]
    fn act(&self, world: &mut World, action: Action) -> Result<(), Violation> {
        match action {
            Action::Ask(node) => self.ask(world, node)?,
            Action::EndLinger(node) => {
                self.touch(world, node, |shard, _, now, out| shard.end_lingers(now, out))?;
            }
            Action::Leave(node) => {
                let process = world.process(node);
                let client = process.client.take();
                if let Some(Client {
                    fence: Some(fence), promise: Promise::Told(Some(by)), ..
                }) = &client
                {
                    // The command may be applied late.
                    let id = HoldId { name: name(), fence: *fence, member: *by };
                    world.late.push(Command::Drop(id));
                }
                let process = world.process(node);
                let stopped = process.shard.running().is_none();
                if stopped && self.has(Mistake::ReleaseForgotten) {
                    return Ok(());
                }
                if let Some(Client { id: Some(id), .. }) = client {
                    self.touch(world, node, |shard, _, now, out| shard.leave(id, now, out))?;
                }
            }
            Action::Enter(node) => self.enter(world, node)?,
            Action::Deliver(from, to, at) => self.deliver(world, from, to, at)?,
            Action::Connect(one, other) => self.connect(world, one, other)?,
            Action::Cut(one, other) => {
                world.cuts -= 1;
                for (one, other) in [(one, other), (other, one)] {
                    world.links[one][other].severed = self.setting.severed;
                    self.down(world, one, other)?;
                }
            }
            Action::Notice(node, other) => {
                world.mail[other][node].clear();
                self.down(world, node, other)?;
            }
            Action::Learn(node) => {
                let record = self.shown(&world.record);
                self.event(world, node, AgreedEvent::Record(record))?;
            }
            Action::LearnHolds(node) => {
                let holds = Arc::clone(&world.holds);
                self.event(world, node, AgreedEvent::Holds(holds))?;
            }
            Action::LearnRules(node) => self.learn_rules(world, node)?,
            Action::ChangeRules => self.change_rules(world),
            Action::Hold(node) => self.hold(world, node)?,
            Action::Tell(node) => Self::tell_client(world, node),
            Action::DropOwn(node) => {
                let member = world.process(node).member;
                let id = member.and_then(|member| unwanted(world, node, member));
                world.put(&Command::Drop(id.expect("a hold that is not needed")));
            }
            Action::CountOver(node) => {
                let id = over(world, node, self.has(Mistake::CountedShort));
                world.put(&Command::Drop(id.expect("an orphan whose time has passed")));
            }
            Action::Expire(node) => {
                world.orphans[node].take();
            }
            Action::Perform(node) => self.stop(world, node)?,
            Action::Bump(node) => {
                world.bumps -= 1;
                self.event(world, node, AgreedEvent::Overdue)?;
            }
            Action::Restart(node) => self.restart(world, node, true),
            Action::Join(node) => self.join(world, node)?,
            Action::Discard(node) => {
                self.keep_commands(world, node);
                self.discard(world, node)?;
            }
            Action::Reclaim(node) => self.reclaim(world, node)?,
            Action::Depart(node) => world.orphans[node] = None,
            Action::Serve(node) => {
                // A session that has not come back until now is over for good.
                world.orphans[node]
                    .take_if(|orphan| world.ended.contains(&orphan.by) && !orphan.long);
                self.event(world, node, AgreedEvent::Serve)?;
            }
            Action::Delayed(node) => self.delayed(world, node)?,
            Action::Kill(_) | Action::Quit(_) | Action::Lapse(_) => {
                self.stop_serving(world, action);
            }
            Action::TakeSeat(_)
            | Action::LeaseEnds(_)
            | Action::Remove(_)
            | Action::Forget(_)
            | Action::Evict(_)
            | Action::GiveUpSeat(_)
            | Action::Late(_) => self.command(world, action),
        }
        Ok(())
    }

    /// A process ends, or its lease does.
    fn stop_serving(&self, world: &mut World, action: Action) {
        match action {
            Action::Kill(node) => {
                world.kills -= 1;
                self.keep_commands(world, node);
                self.end(world, node);
            }
            Action::Quit(node) => {
                world.quits -= 1;
                let id = world.process(node).member.expect("only members leave");
                world.late.push(Command::Leave { id });
                self.end(world, node);
            }
            Action::Lapse(node) => {
                world.lapses -= 1;
                self.keep_commands(world, node);
                let process = world.process(node);
                process.now = process.lease;
                let id = process.member.expect("only members have leases");
                world.ended.insert(id);
            }
            _ => {}
        }
    }

    /// Everything that happens in the store.
    fn command(&self, world: &mut World, action: Action) {
        let command = match action {
            Action::TakeSeat(node) => self.entry(world, node).expect("it may take its seat"),
            Action::LeaseEnds(id) => {
                world.ended.insert(id);
                let evicted = |process: &Option<Rc<Process>>| {
                    process.as_ref().is_some_and(|process| process.evicted == Some(id))
                };
                if let Some(node) = world.processes.iter().position(evicted) {
                    let process = world.process(node);
                    process.now = process.now.max(process.lease);
                }
                return;
            }
            Action::Remove(node) if self.has(Mistake::RemovedAlone) => {
                let record = Arc::make_mut(&mut world.record);
                let (number, seat) = (record.number + 1, seat(node));
                record.members.retain(|member| member.seat != seat || member.since.is_none());
                (record.number, record.revision) = (number, record.revision + 1);
                return;
            }
            Action::Remove(node) => {
                let (number, all) = (world.record.number, world.record.seen(seat(node), None));
                Command::Remove { number, seat: seat(node), all }
            }
            Action::Forget(id) => Command::Forget { id, beat: 0 },
            Action::Evict(id) => {
                world.evictions -= 1;
                Command::Evict { id, number: world.record.number }
            }
            Action::GiveUpSeat(node) => {
                let process = world.process(node);
                process.nothing_lost = false;
                let id = process.evicted.take().expect("an evicted member");
                Command::Leave { id }
            }
            Action::Late(at) => {
                let command = world.late.remove(at);
                if let (Command::Drop(id), true) = (&command, self.has(Mistake::AnyDropped)) {
                    let same = world.holds.iter().map(|(id, _)| id).filter(|it| it.name == id.name);
                    for id in same.cloned().collect::<Vec<_>>() {
                        world.put(&Command::Drop(id));
                    }
                    return;
                }
                world.ids -= u8::from(matches!(command, Command::Join { .. }));
                command
            }
            _ => return,
        };
        world.put(&command);
    }

    /// An operator changes the rules.
    fn change_rules(&self, world: &mut World) {
        let number = world.record.number;
        if self.has(Mistake::RulesInPlace) {
            world.changed = Some(number);
            return;
        }
        world.put(&Command::Rules { number, rules: rules(true) });
        world.changed = Some(world.record.number);
    }

    /// The store shows a process the newest rules.
    fn learn_rules(&self, world: &mut World, node: usize) -> Result<(), Violation> {
        self.event(world, node, AgreedEvent::Rules(agreed(&rules(true))))?;
        let process = world.process(node);
        let (Some(number), Some(mut view)) = (process.shard.running(), process.view.clone()) else {
            return Ok(());
        };
        if self.has(Mistake::RulesInPlace) {
            // The view goes on, and the node begins its locks anew with what it holds itself.
            view.rules = rules(true).digest();
            let mut held = vec![Vec::new(); view.members.len()];
            let book = self.book(&members(&view), view.rules);
            held[view.me.index()] = process.shard.stop_for(number + 1, &book);
            process.view = Some(view);
            return self.start(world, node, number + 1, held);
        }
        Ok(())
    }

    /// What a node is shown of a record.
    fn shown(&self, record: &Arc<Record>) -> Arc<Record> {
        if self.has(Mistake::HoldsUnknown) {
            return Arc::new(Record { holds: 0, ..Record::clone(record) });
        }
        Arc::clone(record)
    }

    /// The store agrees on the hold of a client, or refuses.
    fn hold(&self, world: &mut World, node: usize) -> Result<(), Violation> {
        let member = world.process(node).member.expect("only members promise");
        let id = world.hold_of(node, member).expect("a client that is inside");
        let answer = world.put(&Command::Hold { id, length_ms: None });
        let process = world.process(node);
        let Some(client) = &mut process.client else { return Ok(()) };
        if !matches!(answer, Answer::Refused(_)) {
            client.promise = match client.promise {
                Promise::Told(_) => Promise::Told(Some(member)),
                _ => Promise::Held(member),
            };
            return Ok(());
        }
        // The client cannot keep its lock. It may not know that, if it was told before.
        let Some(id) = client.id else { return Ok(()) };
        world.leave_believing(node);
        world.process(node).client = None;
        self.touch(world, node, |shard, _, now, out| shard.leave(id, now, out))
    }

    /// A client is told that it is inside, unless it has lost its lock meanwhile.
    fn tell_client(world: &mut World, node: usize) {
        let process = world.process(node);
        let lost = |id| process.shard.is_lost(id) || process.shard.is_over(process.now);
        if let Some(client) = &mut process.client
            && let (Promise::Held(member), Some(id)) = (client.promise, client.id)
            && !lost(id)
        {
            client.promise = Promise::Told(Some(member));
        }
    }

    fn enter(&self, world: &mut World, node: usize) -> Result<(), Violation> {
        let process = world.process(node);
        let view = process.shard.target();
        let Some(seats) = &process.view else { return Ok(()) };
        let other = NodeId::at((seats.me.index() + 1) % seats.members.len());
        let clock = world.instances.get(&view).map_or(0, |instance| instance.1);
        let message = AlgorithmMessage { view, clock, lock: name(), payload: Vec::new() };
        self.touch(world, node, |shard, _, now, out| shard.receive(other, &message, now, out))
    }

    fn join(&self, world: &mut World, node: usize) -> Result<(), Violation> {
        let Answer::Joined(id) = world.put(&self.joining(world, node)) else {
            return Err(Violation::Refused("a process cannot join".to_owned()));
        };
        world.ids -= 1;
        world.ended.remove(&id); // It is renewed, if it is a number that was used before.
        let process = world.process(node);
        process.member = Some(id);
        process.lease = process.now + LEASE;
        process.shard.set_lease(process.lease);
        self.event(world, node, AgreedEvent::Joined(id))
    }

    fn joining(&self, world: &World, node: usize) -> Command {
        let process = world.processes[node].as_ref().expect("a process that runs");
        let number = process.incarnation * 10 + process.generation;
        let number = if self.has(Mistake::SameIdentity) { 0 } else { number };
        let nonce = u128::from(number) * 10 + node as u128;
        let known = process.views.rules().map_or(0, |rules| rules.digest);
        Command::Join { seat: seat(node), nonce, rules: known }
    }

    /// Keep the commands of a process that is about to end, or whose membership is: the store may
    /// apply them later.
    fn keep_commands(&self, world: &mut World, node: usize) {
        let process = world.processes[node].as_ref().expect("a process that runs");
        let idle = process.member.is_none() && process.evicted.is_none();
        let join = (idle && world.ids > 0).then(|| self.joining(world, node));
        let promises = |client: &Client| {
            let asked = client.promise == Promise::Asked && client.fence.is_some();
            let id = HoldId { name: name(), fence: client.fence?, member: process.member? };
            asked.then_some(Command::Hold { id, length_ms: None })
        };
        let hold = process.client.as_ref().and_then(promises);
        let commands = [join, self.entry(world, node), hold];
        for command in commands.into_iter().flatten() {
            if !world.late.contains(&command) {
                world.late.push(command);
            }
        }
    }

    fn deliver(
        &self,
        world: &mut World,
        from: usize,
        to: usize,
        place: usize,
    ) -> Result<(), Violation> {
        let Some(message) = world.mail[from][to].remove(place) else { return Ok(()) };
        match Rc::unwrap_or_clone(message) {
            Message::Record(record) => {
                let record = self.shown(&Arc::new(record));
                self.event(world, to, AgreedEvent::Record(record))
            }
            Message::Flush(mut flush) => {
                let process = world.process(to);
                let newest = process.views.record().map(|record| record.number);
                if let (true, Some(newest)) = (self.has(Mistake::OlderFlush), newest) {
                    flush.epochs = vec![newest.max(flush.epochs[0])];
                }
                self.event(world, to, AgreedEvent::Flush(seat(from), flush))
            }
            Message::Algorithm(mut message) => {
                let process = world.process(to);
                let (target, running) = (process.shard.target(), process.shard.running().is_some());
                if running && message.view < target && self.has(Mistake::OldSteps) {
                    message.view = target;
                }
                if !running && message.view == target && self.has(Mistake::EarlyDropped) {
                    return Ok(());
                }
                let place = process.view.as_ref().and_then(|view| view.place(seat(from)));
                let Some(sender) = place else { return Ok(()) };
                self.touch(world, to, |shard, _, now, out| {
                    shard.receive(sender, &message, now, out);
                })
            }
            Message::Epochs(_) | Message::Ask(..) | Message::Tell(..) => Ok(()),
        }
    }

    /// Make a connection. It ends the one before it.
    fn connect(&self, world: &mut World, one: usize, other: usize) -> Result<(), Violation> {
        let pairs = [(one, other), (other, one)];
        for (one, other) in pairs {
            if world.links[one][other].up {
                self.down(world, one, other)?;
            }
        }
        for (one, other) in pairs {
            let incarnation = Some(world.process(other).incarnation);
            if world.links[one][other].met != incarnation {
                world.mail[other][one].clear(); // Sent by an earlier process.
            }
            world.links[one][other] = Link { up: true, met: incarnation, severed: false };
        }
        for (one, other) in pairs {
            self.event(world, one, AgreedEvent::Up(seat(other)))?;
        }
        Ok(())
    }

    fn down(&self, world: &mut World, node: usize, other: usize) -> Result<(), Violation> {
        world.links[node][other].up = false;
        self.event(world, node, AgreedEvent::Down(seat(other)))
    }

    /// A process is gone. Its client lives on.
    fn end(&self, world: &mut World, node: usize) {
        let process = world.process(node).clone();
        if let (Some(Client { fence: Some(fence), by, promise, .. }), true) =
            (process.client, world.is_inside(node))
            && let Some(by) = by.or(process.member)
            && matches!(promise, Promise::Short | Promise::Told(_))
        {
            let long = promise != Promise::Short;
            world.orphans[node] = Some(Orphan { fence, by, long });
        }
        world.processes[node] = None;
        for other in self.others(node) {
            world.links[node][other] = Link::default();
            world.mail[other][node].clear();
            // What has been sent may still arrive, until the other process notices.
            if !world.links[other][node].up {
                world.mail[node][other].clear();
            }
        }
    }

    /// Stop the shard of a process, and tell the machine.
    fn stop(&self, world: &mut World, node: usize) -> Result<(), Violation> {
        let process = world.process(node);
        let Some(AgreedOutput::StopShards(view, _)) = process.todo.front() else { return Ok(()) };
        let view = view.clone();
        let book = self.book(&members(&view), view.rules);
        let held = match self.setting.mistake {
            Some(Mistake::SnapshotFirst) if process.held.is_none() => {
                process.held = Some(process.shard.clone().stop(view.number));
                return Ok(());
            }
            Some(Mistake::SnapshotFirst) => {
                process.shard.stop(view.number);
                process.held.take().unwrap_or_default()
            }
            Some(Mistake::FlushFirst) => process.shard.clone().stop(view.number),
            Some(Mistake::NoHolders) => {
                process.shard.stop(view.number);
                Vec::new()
            }
            Some(Mistake::NotAskedAgain) => {
                let held = process.shard.stop(view.number);
                if let Some(Client { id, fence: None, .. }) = &mut process.client
                    && let Some(id) = id.take()
                {
                    self.touch(world, node, |shard, _, now, out| shard.leave(id, now, out))?;
                }
                held
            }
            _ => process.shard.stop_for(view.number, &book),
        };
        let process = world.process(node);
        process.todo.pop_front();
        let number = view.number;
        process.view = Some(view);
        self.event(world, node, AgreedEvent::ShardsStopped(number, held))
    }

    /// Take missing snapshots for empty ones.
    fn forge(&self, world: &mut World, node: usize, mistake: Mistake) -> Result<(), Violation> {
        let Some(process) = &world.processes[node] else { return Ok(()) };
        let Some(record) = process.views.record().cloned() else { return Ok(()) };
        let Some(view) = process.view.clone() else { return Ok(()) };
        let stopped = process.todo.is_empty() && process.shard.running().is_none();
        if !stopped || process.member.is_none() || view.number != record.number {
            return Ok(());
        }
        let missing = process.views.missing();
        let size = view.members.len();
        for (from, name) in view.members.iter().filter(|(_, name)| missing.contains(name)) {
            let entered = record.members_of(*from).any(|it| it.since == Some(view.number));
            let taken = match mistake {
                Mistake::Majority => size - missing.len() > size / 2,
                Mistake::EntrantNotAwaited => entered,
                _ => true,
            };
            if taken && !name.is_empty() {
                let (epochs, held) = (vec![view.number], Vec::new());
                let flush = Flush { epochs, part: 0, parts: 1, held };
                self.event(world, node, AgreedEvent::Flush(*from, flush))?;
            }
        }
        Ok(())
    }

    /// Do the late part of an output.
    fn delayed(&self, world: &mut World, node: usize) -> Result<(), Violation> {
        let held = self.read(world, node);
        let process = world.process(node);
        if let Some((to, flush)) = process.unsent.take() {
            if process.shard.target() == flush.epochs[0] {
                world.send(node, at(to), Message::Flush(Flush { held, ..flush }));
            }
            return Ok(());
        }
        if let Some(AgreedOutput::StartShards(number, held)) = process.todo.pop_front() {
            // If the shards are to stop for a newer view by now, they do so first.
            let stops = |output: &AgreedOutput| matches!(output, AgreedOutput::StopShards(..));
            if process.todo.iter().any(stops) {
                process.todo.push_back(AgreedOutput::StartShards(number, held));
            } else {
                self.start(world, node, number, held)?;
            }
        }
        self.perform(world, node)
    }

    /// A client that held the lock before takes it back. If it has come too late, it is told so.
    fn reclaim(&self, world: &mut World, node: usize) -> Result<(), Violation> {
        let Some(orphan) = world.orphans[node].take() else { return Ok(()) };
        let is_late = world.has_ended(orphan.by) || self.setting.mistake.is_some();
        let process = world.process(node);
        // A process that has lost a membership, by an eviction for example, believes no claim.
        let is_late = is_late || process.generation > 0;
        let Orphan { fence, by, long } = orphan;
        let claim = process.views.claim(fence).map_err(|error| format!("{error:?}"));
        let believed = claim.is_ok() || self.has(Mistake::AnyClaim);
        let (slot, now, mode) = (process.slot, process.now, Mode::Exclusive);
        let claimed = if believed {
            let claimed = process.shard.reclaim(slot, mode, fence, 0, now);
            claimed.map_err(|error| format!("{error:?}"))
        } else {
            Err(claim.expect_err("it was refused"))
        };
        match claimed {
            Ok(id) => {
                let promise = if long { Promise::Told(None) } else { Promise::Short };
                let (id, fence, by) = (Some(id), Some(fence), Some(by));
                process.client = Some(Client { id, fence, by, promise });
                self.perform(world, node)
            }
            Err(_) if is_late => Ok(()),
            Err(error) => Err(Violation::Refused(error)),
        }
    }

    /// Deliver messages that change nothing as soon as they can arrive. Whether they arrive now or
    /// later makes no difference.
    fn drop_useless(&self, world: &mut World) {
        for to in 0..self.setting.size {
            for from in self.others(to) {
                while world.links[to][from].up
                    && let Some(message) = world.mail[from][to].front()
                    && let Some(process) = &world.processes[to]
                    && self.is_useless(process, from, message)
                {
                    world.mail[from][to].pop_front();
                }
            }
        }
    }

    fn is_useless(&self, process: &Process, from: usize, message: &Message) -> bool {
        match message {
            Message::Record(record) => process.views.record().is_some_and(|known| {
                let same = known.number == record.number && process.is_seated();
                known.revision >= record.revision || same
            }),
            _ if self.setting.mistake.is_some() => false,
            Message::Flush(flush) => {
                let known = process.views.record().map_or(0, |known| known.number);
                if flush.epochs[0] > known {
                    return false;
                }
                let (mut after, mut out) = (process.views.clone(), VecDeque::new());
                after.step(AgreedEvent::Flush(seat(from), flush.clone()), &mut out);
                after == process.views && out.is_empty()
            }
            Message::Algorithm(message) => message.view < process.shard.target(),
            Message::Epochs(_) | Message::Ask(..) | Message::Tell(..) => true,
        }
    }
}

impl Seats {
    /// The command by which a waiting member takes its seat, if its keeper may propose it and the
    /// store would agree.
    pub(crate) fn entry(&self, world: &World, node: usize) -> Option<Command> {
        let process = world.processes[node].as_ref()?;
        let (id, known) = (process.member?, process.views.record()?);
        let waits = process.known()?.since.is_none();
        if !waits || process.is_over() || process.views.is_reclaiming() {
            return None;
        }
        if let Some(Client { promise: Promise::Told(by), .. }) = &process.client
            && *by != Some(id)
            && !self.has(Mistake::HoldNotTaken)
        {
            return None;
        }
        let is_away = |member: &Member| {
            let other = world.process_of(member.id);
            let alive =
                other.filter(|at| world.processes[*at].as_ref().is_some_and(|it| !it.is_over()));
            alive.is_some_and(|other| other != node && !is_linked(world, node, other))
        };
        if known.seated().any(is_away) {
            return None;
        }
        let (number, replaces) = (known.number, known.seen(seat(node), Some(id)));
        let inherits = process.generation == 0;
        let command = Command::Enter { id, number, replaces, inherits };
        agrees(&world.record, &command).then_some(command)
    }
}

fn is_linked(world: &World, one: usize, other: usize) -> bool {
    let up = |one: usize, other: usize| {
        let link = &world.links[one][other];
        let process = world.processes[other].as_ref();
        link.up && process.is_some_and(|process| link.met == Some(process.incarnation))
    };
    up(one, other) && up(other, one)
}

/// Are the processes of both seats members of the newest view?
fn both_seated(world: &World, one: usize, other: usize) -> bool {
    let is_seated = |node: usize| {
        let member = world.processes[node].as_ref().and_then(|process| process.member);
        member.is_some_and(|id| world.record.member(id).is_ok_and(|it| it.since.is_some()))
    };
    is_seated(one) && is_seated(other)
}

/// A hold of a member that its client does not need.
fn unwanted(world: &World, node: usize, member: MemberId) -> Option<HoldId> {
    let needed = world.hold_of(node, member);
    let known = world.processes[node].as_ref()?.views.holds();
    let mut own = known.iter().map(|(id, _)| id).filter(|id| id.member == member);
    own.find(|id| Some(*id) != needed.as_ref() && world.holds.get(id).is_some()).cloned()
}

/// An orphan, known to this process, whose client does not believe in it any more. That is what
/// counting its full length since it became an orphan is for.
fn over(world: &World, node: usize, mistaken: bool) -> Option<HoldId> {
    let process = world.processes[node].as_ref()?;
    let (holds, record) = (process.views.holds(), process.views.record()?);
    let mut orphans = holds.orphans(record).map(|(id, _)| id);
    orphans
        .find(|id| world.holds.get(id).is_some() && (mistaken || !world.is_believed(id.fence)))
        .cloned()
}

/// Would the store agree on this command?
fn agrees(record: &Record, command: &Command) -> bool {
    !matches!(record.clone().apply(command), Answer::Refused(_))
}

/// Forget what makes no difference any more.
fn forget(world: &mut World, any_dropped: bool) {
    let World { record, holds, processes, instances, started, late, ended, orphans, .. } = world;
    // The oldest view that a process may still run.
    let oldest = |process: &Process| {
        let target = process.shard.target();
        match process.member.map(|id| record.member(id)) {
            None if process.todo.is_empty() => record.number + 1,
            None | Some(Err(_)) => target,
            Some(Ok(member)) => target.max(member.since.unwrap_or(record.number + 1)),
        }
    };
    let running = || processes.iter().flatten();
    instances.retain(|view, _| running().any(|process| oldest(process) <= *view));
    started.retain(|view, _| {
        running().any(|process| oldest(process) <= *view && process.shard.running() != Some(*view))
    });
    late.retain(|command| match command {
        Command::Join { .. } => world.ids > 0,
        // A fence never returns.
        Command::Drop(id) => holds.get(id).is_some() || any_dropped,
        command => agrees(record, command),
    });
    let clients = || running().filter_map(|process| process.client.as_ref()?.by);
    ended.retain(|id| {
        let named = orphans.iter().flatten().any(|orphan| orphan.by == *id);
        let alive = running().any(|process| [process.member, process.evicted].contains(&Some(*id)));
        named || alive || record.member(*id).is_ok() || clients().any(|by| by == *id)
    });
}
