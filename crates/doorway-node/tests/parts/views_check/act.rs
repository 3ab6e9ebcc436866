//! What can happen in a group, and what follows from it.

use std::collections::VecDeque;
use std::rc::Rc;

use doorway_core::{Mode, NodeId};
use doorway_node::locks::KeptWord;
use doorway_node::messages::{AlgorithmMessage, Flush, Message};
use doorway_node::views::{Event, Output};
use doorway_search::System;

use super::mistake::Mistake;
use super::world::{
    Action, Client, KeptLock, Link, NOW, Nodes, Process, Stage, Violation, World, name,
};

impl System for Nodes {
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
            let Some(process) = &world.nodes[node] else {
                actions.push(Action::Restart(node));
                continue;
            };
            self.client_actions(world, node, process, &mut actions);
            node_actions(world, node, process, &mut actions);
            self.link_actions(world, node, &mut actions);
        }
        actions
    }

    fn apply(&self, world: &mut World, action: Action) -> Result<(), Violation> {
        self.act(world, action)?;
        if let Some(mistake @ (Mistake::Majority | Mistake::Alone)) = self.setting.mistake {
            (0..self.setting.size).try_for_each(|node| self.forge(world, node, mistake))?;
        }
        self.drop_useless(world);
        forget(world);
        Ok(())
    }

    fn is_goal(&self, world: &World) -> bool {
        let up = |node: usize| self.others(node).all(|other| world.is_up(node, other));
        let view = |node: &Option<Rc<Process>>| node.as_ref()?.change.views().running();
        let newest = view(&world.nodes[0]);
        let quiet = |process: &Rc<Process>| {
            process.todo.is_empty()
                && process.raising.is_none()
                && process.unsent.is_none()
                && process.shards.iter().all(|shard| shard.running() == newest)
                && (0..self.setting.shards).all(|at| is_quiet(process, at))
        };
        let nodes = &world.nodes[..self.setting.size];
        newest.is_some()
            && nodes.iter().all(|node| view(node) == newest && node.as_ref().is_some_and(quiet))
            && (0..self.setting.size).all(up)
            && world.orphans.iter().flatten().all(Option::is_none)
            && world.mail.iter().flatten().all(VecDeque::is_empty)
    }

    fn is_expected(&self, action: &Action) -> bool {
        use Action::{Ask, Crash, Cut, EnterAgain, GiveBack, GiveUp, Keep, Raise};
        let kept = matches!(action, Keep(..) | EnterAgain(..) | GiveBack(..));
        !kept && !matches!(action, Ask(..) | GiveUp(..) | Crash(_) | Raise(_) | Cut(..))
    }
}

impl Nodes {
    fn client_actions(
        &self,
        world: &World,
        node: usize,
        process: &Process,
        actions: &mut Vec<Action>,
    ) {
        for (at, shard) in process.shards.iter().enumerate() {
            let lock = shard.lock(process.slots[at]);
            match &process.clients[at] {
                None => {
                    let outside = world.orphans[node][at].is_none() && lock.is_idle();
                    let asks = outside && world.asks[node][at] > 0;
                    actions.extend(asks.then_some(Action::Ask(node, at)));
                }
                Some(Client { fence: Some(_), kept, id }) => {
                    actions.push(Action::Leave(node, at));
                    let keeps = kept.is_none() && id.is_some_and(|id| shard.reserved(id) > 0);
                    actions.extend(keeps.then_some(Action::Keep(node, at)));
                }
                Some(client) if client.is_outside() => {
                    let asks = world.asks[node][at] > 0;
                    actions.extend(asks.then_some(Action::EnterAgain(node, at)));
                    actions.push(Action::GiveBack(node, at));
                }
                Some(_) => {
                    actions.extend(self.setting.gives_up.then_some(Action::GiveUp(node, at)));
                }
            }
            actions.extend(lock.lingers().then_some(Action::EndLinger(node, at)));
            let waits = lock.machine().is_some_and(|machine| machine.waiting().is_some());
            if let (true, true, Some(view)) = (self.is_liberal(), waits, shard.running()) {
                let instance = world.instances.get(&(at, view));
                let empty = instance.is_none_or(|(inside, _)| inside.is_empty());
                actions.extend(empty.then_some(Action::Enter(node, at)));
            }
        }
    }

    fn link_actions(&self, world: &World, node: usize, actions: &mut Vec<Action>) {
        for other in self.others(node) {
            let (ours, theirs) = (&world.links[node][other], &world.links[other][node]);
            let (up, both) = (world.is_up(node, other), world.is_up(other, node));
            let both = up && both;
            if up {
                let many = world.mail[other][node].len();
                let first = if self.setting.overtaking { many } else { many.min(1) };
                actions.extend((0..first).map(|at| Action::Deliver(other, node, at)));
                let gone = theirs.stage == Stage::Down;
                actions.extend(gone.then_some(Action::Notice(node, other)));
            }
            // The node that was called waits for a sign that the caller still runs.
            let ready = node < other || world.is_up(other, node);
            if let (Stage::Greeted(_), true) = (&ours.stage, ready) {
                actions.push(Action::Up(node, other));
            }
            if node < other && world.nodes[other].is_some() {
                let busy = [ours, theirs].map(|link| matches!(link.stage, Stage::Greeted(_)));
                let free = !both && busy == [false; 2];
                actions.extend(free.then_some(Action::Connect(node, other)));
                actions.extend((both && world.cuts > 0).then_some(Action::Cut(node, other)));
            }
        }
    }

    fn orphan_actions(&self, world: &World, node: usize, actions: &mut Vec<Action>) {
        let process = world.nodes[node].as_ref();
        let reclaiming = process.is_some_and(|process| process.change.is_reclaiming());
        let orphans = (0..2).filter(|shard| world.orphans[node][*shard].is_some());
        for shard in orphans.clone() {
            actions.push(Action::Depart(node, shard));
            actions.extend(reclaiming.then_some(Action::Reclaim(node, shard)));
        }
        if reclaiming && (orphans.count() == 0 || self.has(Mistake::ServeEarly)) {
            actions.push(Action::Serve(node));
        }
    }

    fn act(&self, world: &mut World, action: Action) -> Result<(), Violation> {
        match action {
            Action::Ask(node, shard) => self.ask(world, node, shard)?,
            Action::GiveUp(node, shard) | Action::Leave(node, shard) => {
                let process = world.process(node);
                if process.clients[shard].as_mut().is_some_and(leave_kept) {
                    return Ok(());
                }
                let client = process.clients[shard].take();
                let stopped = process.shards[shard].running().is_none();
                if stopped && self.has(Mistake::ReleaseForgotten) {
                    return Ok(());
                }
                if let Some(Client { id: Some(id), .. }) = client {
                    self.touch(world, node, shard, |shard, _, out| shard.leave(id, NOW, out))?;
                }
            }
            Action::EndLinger(node, shard) => {
                self.touch(world, node, shard, |shard, _, out| shard.end_lingers(NOW, out))?;
            }
            Action::Keep(node, shard) => keep(world, node, shard),
            Action::EnterAgain(node, shard) => self.enter_again(world, node, shard)?,
            Action::GiveBack(node, shard) => self.give_back(world, node, shard)?,
            Action::Enter(node, shard) => {
                let other = NodeId::at((node + 1) % self.setting.size);
                let view = world.process(node).shards[shard].target();
                let clock = world.instances.get(&(shard, view)).map_or(0, |instance| instance.1);
                let (lock, payload) = (name(shard), Vec::new());
                let message = AlgorithmMessage { view, clock, lock, payload };
                self.touch(world, node, shard, |shard, _, out| {
                    shard.receive(other, &message, NOW, out);
                })?;
            }
            Action::Deliver(from, to, at) => self.deliver(world, from, to, at)?,
            Action::Connect(one, other) => self.connect(world, one, other)?,
            Action::Cut(one, other) => {
                world.cuts -= 1;
                self.down(world, one, other)?;
                self.down(world, other, one)?;
            }
            Action::Up(node, other) => self.up(world, node, other)?,
            Action::Notice(node, other) => {
                world.mail[other][node].clear();
                self.down(world, node, other)?;
            }
            Action::Perform(node) => self.stop_next(world, node)?,
            Action::Raise(node) => {
                world.raises -= 1;
                self.event(world, node, Event::Overdue)?;
            }
            Action::Disk(node) => {
                let process = world.process(node);
                let own = process.change.views().epochs()[node];
                let above = process.raising.take().unwrap_or(0);
                let epoch = world.disks[node].max(above).max(own) + 1;
                if !self.has(Mistake::NotDurable) {
                    world.disks[node] = epoch;
                }
                self.event(world, node, Event::EpochRaised(epoch))?;
            }
            Action::Crash(node) => self.crash(world, node),
            Action::Restart(node) => self.restart(world, node, self.setting.reclaims),
            Action::Reclaim(node, shard) => reclaim(world, node, shard)?,
            Action::Depart(node, shard) => world.orphans[node][shard] = None,
            Action::Serve(node) => self.event(world, node, Event::Serve)?,
            Action::Late(node) => self.late(world, node)?,
        }
        Ok(())
    }

    /// A client requests a lock that it kept. If it keeps it no longer, it asks its node.
    fn enter_again(&self, world: &mut World, node: usize, shard: usize) -> Result<(), Violation> {
        let Some(Client { fence, kept: Some(kept), .. }) = &mut world.process(node).clients[shard]
        else {
            return Ok(());
        };
        if kept.left > 0 && (kept.word.enter() || self.has(Mistake::EntersUnasked)) {
            kept.last = kept.last.next().ok_or(Violation::Fence)?;
            kept.left -= 1;
            let entered = kept.last;
            *fence = Some(entered);
            world.asks[node][shard] -= 1;
            return self.entered(world, shard, entered);
        }
        self.give_back(world, node, shard)?;
        self.ask(world, node, shard)
    }

    /// A client keeps a lock no longer. If its node has not released the lock, it does so itself.
    fn give_back(&self, world: &mut World, node: usize, shard: usize) -> Result<(), Violation> {
        let client = world.process(node).clients[shard].take();
        if let Some(Client { id: Some(id), kept: Some(kept), .. }) = client
            && kept.word.take()
        {
            self.touch(world, node, shard, |shard, _, out| shard.leave(id, NOW, out))?;
        }
        Ok(())
    }

    fn deliver(
        &self,
        world: &mut World,
        from: usize,
        to: usize,
        at: usize,
    ) -> Result<(), Violation> {
        let Some(message) = world.mail[from][to].remove(at) else { return Ok(()) };
        let sender = NodeId::at(from);
        match Rc::unwrap_or_clone(message) {
            Message::Epochs(epochs) => self.event(world, to, Event::Epochs(sender, epochs)),
            Message::Flush(mut flush) => {
                let known = world.process(to).change.views().epochs();
                let older = flush.epochs.iter().zip(known).all(|(flush, known)| flush <= known);
                if older && self.has(Mistake::OlderFlush) {
                    flush.epochs = known.to_vec();
                }
                self.event(world, to, Event::Flush(sender, flush))
            }
            Message::Algorithm(mut message) => {
                let shard = usize::from(message.lock == name(1));
                let place = &world.process(to).shards[shard];
                let (target, running) = (place.target(), place.running().is_some());
                if running && message.view < target && self.has(Mistake::OldSteps) {
                    message.view = target;
                }
                if !running && message.view == target && self.has(Mistake::EarlyDropped) {
                    return Ok(());
                }
                self.touch(world, to, shard, |shard, _, out| {
                    shard.receive(sender, &message, NOW, out);
                })
            }
            Message::Ask(..) | Message::Tell(..) | Message::Record(_) => Ok(()),
        }
    }

    /// Begin a handshake. It ends the connection before it.
    fn connect(&self, world: &mut World, one: usize, other: usize) -> Result<(), Violation> {
        let pairs = [(one, other), (other, one)];
        for (one, other) in pairs {
            if world.is_up(one, other) {
                self.down(world, one, other)?;
            }
        }
        let hellos = pairs.map(|(_, other)| {
            let process = world.process(other);
            (process.incarnation, process.change.announced())
        });
        for ((one, other), hello) in pairs.into_iter().zip(hellos) {
            if world.links[one][other].met != Some(hello.0) {
                world.mail[other][one].clear(); // Sent by an earlier process.
            }
            world.links[one][other].stage = Stage::Greeted(hello.clone());
            let (peer, (incarnation, epochs)) = (NodeId::at(other), hello);
            self.event(world, one, Event::Hello { peer, incarnation, epochs })?;
        }
        Ok(())
    }

    /// Complete a handshake at one node.
    fn up(&self, world: &mut World, node: usize, other: usize) -> Result<(), Violation> {
        let link = &mut world.links[node][other];
        let stage = std::mem::replace(&mut link.stage, Stage::Up);
        let Stage::Greeted((incarnation, epochs)) = stage else { return Ok(()) };
        link.met = Some(incarnation);
        self.event(world, node, Event::Up { peer: NodeId::at(other), incarnation, epochs })
    }

    fn down(&self, world: &mut World, node: usize, other: usize) -> Result<(), Violation> {
        world.links[node][other].stage = Stage::Down;
        self.event(world, node, Event::Down(NodeId::at(other)))
    }

    fn crash(&self, world: &mut World, node: usize) {
        world.crashes -= 1;
        let process = world.process(node).clone();
        for (shard, client) in process.clients.iter().enumerate() {
            let fence = client.as_ref().and_then(|client| client.fence);
            if self.setting.reclaims && fence.is_some() {
                world.orphans[node][shard] = fence;
            }
        }
        world.nodes[node] = None;
        if self.setting.forgets && node == 0 {
            world.disks[node] = 0;
        }
        for other in self.others(node) {
            world.links[node][other] = Link::default();
            world.mail[other][node].clear();
            // What has been sent may still arrive, until the other node notices.
            if !world.is_up(other, node) {
                world.links[other][node].stage = Stage::Down;
                world.mail[node][other].clear();
            }
        }
    }

    /// Stop one more shard. After the last one, the machine is told.
    fn stop_next(&self, world: &mut World, node: usize) -> Result<(), Violation> {
        let process = world.process(node);
        let Some(Output::StopShards(view)) = process.todo.front() else { return Ok(()) };
        let (view, shards) = (*view, self.setting.shards);
        let read = |process: &Process, at: usize| process.shards[at].clone().stop(view);
        match self.setting.mistake {
            Some(Mistake::SnapshotFirst) if process.held.is_empty() => {
                process.held = (0..shards).map(|at| read(process, at)).collect();
                return Ok(());
            }
            Some(Mistake::SnapshotFirst) => {
                process.shards.iter_mut().for_each(|shard| drop(shard.stop(view)));
            }
            Some(Mistake::FlushFirst) => {
                process.held = (0..shards).map(|at| read(process, at)).collect();
            }
            mistake => {
                let at = process.held.len();
                let held = process.shards[at].stop(view);
                let empty = mistake == Some(Mistake::NoHolders);
                process.held.push(if empty { Vec::new() } else { held });
                if mistake == Some(Mistake::NotAskedAgain)
                    && let Some(Client { id, fence: None, .. }) = &mut process.clients[at]
                    && let Some(id) = id.take()
                {
                    self.touch(world, node, at, |shard, _, out| shard.leave(id, NOW, out))?;
                }
            }
        }
        let process = world.process(node);
        if process.held.len() < shards {
            return Ok(());
        }
        process.todo.pop_front();
        let held = std::mem::take(&mut process.held).concat();
        self.event(world, node, Event::ShardsStopped(view, held))
    }

    /// Take missing snapshots for empty ones.
    fn forge(&self, world: &mut World, node: usize, mistake: Mistake) -> Result<(), Violation> {
        let Some(process) = &world.nodes[node] else { return Ok(()) };
        let views = process.change.views();
        let Some(own) = views.flushes().pop() else { return Ok(()) };
        let missing = views.missing();
        let size = self.setting.size;
        if mistake == Mistake::Alone || size - missing.len() > size / 2 {
            for from in missing.iter() {
                let flush = Flush { held: Vec::new(), ..own.clone() };
                self.event(world, node, Event::Flush(from, flush))?;
            }
        }
        Ok(())
    }

    /// Do the late part of an output.
    fn late(&self, world: &mut World, node: usize) -> Result<(), Violation> {
        let held = self.read(world, node);
        let process = world.process(node);
        if let Some(flush) = process.unsent.take() {
            let newest = process.change.views().epochs() == flush.epochs;
            if let (true, Some(last)) = (newest, self.others(node).last()) {
                world.send(node, last, Message::Flush(Flush { held, ..flush }));
            }
            return Ok(());
        }
        if let Some(Output::StartShards(started)) = process.todo.pop_front() {
            // If the shards are to stop for a newer view by now, they do so first.
            let stops = |output: &Output| matches!(output, Output::StopShards(_));
            if process.todo.iter().any(stops) {
                process.todo.push_back(Output::StartShards(started));
            } else {
                self.start(world, node, started)?;
            }
        }
        self.perform(world, node)
    }

    /// Deliver messages that change nothing as soon as they can arrive. Whether they arrive now or
    /// later makes no difference, because epochs only grow.
    fn drop_useless(&self, world: &mut World) {
        for to in 0..self.setting.size {
            for from in self.others(to) {
                while world.is_up(to, from)
                    && let Some(message) = world.mail[from][to].front()
                    && let Some(process) = &world.nodes[to]
                    && self.is_useless(process, NodeId::at(from), message)
                {
                    world.mail[from][to].pop_front();
                }
            }
        }
    }

    fn is_useless(&self, process: &Process, from: NodeId, message: &Message) -> bool {
        let known = process.change.views().epochs();
        let news = |epochs: &[u64]| epochs.iter().zip(known).any(|(theirs, ours)| theirs > ours);
        let event = match message {
            Message::Epochs(epochs) if news(epochs) => return false,
            Message::Epochs(epochs) => Event::Epochs(from, epochs.clone()),
            _ if self.setting.mistake.is_some() => return false,
            Message::Flush(flush) if news(&flush.epochs) => return false,
            Message::Flush(flush) => Event::Flush(from, flush.clone()),
            Message::Algorithm(message) => {
                let shard = usize::from(message.lock == name(1));
                return message.view < process.shards[shard].target();
            }
            Message::Ask(..) | Message::Tell(..) | Message::Record(_) => return true,
        };
        let (mut after, mut out) = (process.change.clone(), VecDeque::new());
        after.step(NOW, event, &mut out);
        after == process.change && out.is_empty()
    }
}

/// A client that is inside keeps the lock from now on, if it still may.
fn keep(world: &mut World, node: usize, shard: usize) {
    let process = world.process(node);
    let Some(client) = &mut process.clients[shard] else { return };
    let left = client.id.map_or(0, |id| process.shards[shard].reserved(id));
    if let Some(last) = client.fence.filter(|_| left > 0) {
        client.kept = Some(KeptLock { word: KeptWord::inside(), listed: true, last, left });
    }
}

/// A client leaves and keeps its lock, if it still may.
fn leave_kept(client: &mut Client) -> bool {
    let kept = client.kept.as_ref().is_some_and(|kept| kept.left > 0 && kept.word.leave());
    if kept {
        client.fence = None;
    }
    kept
}

/// Does no client of a node use the lock of a shard or wait for it?
fn is_quiet(process: &Process, shard: usize) -> bool {
    match &process.clients[shard] {
        None => {
            let lock = process.shards[shard].lock(process.slots[shard]);
            lock.is_idle() && !lock.lingers()
        }
        Some(client) => client.is_outside(),
    }
}

fn node_actions(world: &World, node: usize, process: &Process, actions: &mut Vec<Action>) {
    match process.todo.front() {
        Some(Output::StopShards(_)) => actions.push(Action::Perform(node)),
        Some(Output::StartShards(_)) => actions.push(Action::Late(node)),
        _ => {}
    }
    actions.extend(process.unsent.is_some().then_some(Action::Late(node)));
    actions.extend(process.raising.is_some().then_some(Action::Disk(node)));
    actions.extend((world.crashes > 0).then_some(Action::Crash(node)));
    let runs = process.change.views().running().is_some() && process.raising.is_none();
    actions.extend((runs && world.raises > 0).then_some(Action::Raise(node)));
}

fn reclaim(world: &mut World, node: usize, shard: usize) -> Result<(), Violation> {
    let Some(fence) = world.orphans[node][shard].take() else { return Ok(()) };
    let process = world.process(node);
    let refused = |what: String| Violation::Refused(what);
    process.change.claim(fence).map_err(|error| refused(format!("{error:?}")))?;
    let slot = process.slots[shard];
    let claimed = process.shards[shard].reclaim(slot, Mode::Exclusive, fence, 0, NOW);
    let id = Some(claimed.map_err(|error| refused(format!("{error:?}")))?);
    process.clients[shard] = Some(Client { id, fence: Some(fence), kept: None });
    Ok(())
}

/// Forget what no node can start or run any more, because it makes no difference.
fn forget(world: &mut World) {
    let World { nodes, instances, started, .. } = world;
    let shards = || nodes.iter().flatten().flat_map(|process| &process.shards);
    instances.retain(|(at, view), _| {
        nodes.iter().flatten().any(|process| process.shards[*at].target() <= *view)
    });
    started.retain(|view, _| {
        shards().any(|shard| shard.target() < *view || shard.running().is_none())
    });
}
