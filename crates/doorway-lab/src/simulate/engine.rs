//! How the simulator handles each event.

use std::collections::VecDeque;

use doorway_core::{Input, Mode, NodeId, Phase};

use super::accounts::RequestId;
use super::distribution::{Distribution, TICKS, ticks};
use super::network::Letter;
use super::{Arrival, Client, Ending, Event, PATIENCE, Simulation, Workload};
use crate::Violation;
use crate::erased::{SentMessage, Slot};
use crate::trace::EventKind;

impl Simulation {
    /// Put the first clients and all faults into the queue.
    pub(super) fn schedule_first(&mut self) {
        let group = self.options.group.clone();
        match &self.options.workload {
            Workload::Closed { .. } => {
                let seats = if self.algorithm.info().permits { group.seats() } else { 1 };
                for node in group.nodes() {
                    for _ in 0..seats {
                        self.schedule_next_client(node);
                    }
                }
            }
            Workload::Open { .. } => group.nodes().for_each(|node| self.schedule_next_client(node)),
            Workload::Serial { .. } => self.schedule_next_client(NodeId(0)),
            Workload::Scripted(arrivals) => {
                self.expected += arrivals.len() as u64;
                for (index, arrival) in arrivals.iter().enumerate() {
                    self.queue.push(ticks(arrival.at), Event::Scripted(index as u32));
                }
            }
        }
        self.expected += self.options.crashes.len() as u64;
        for (index, (at, _)) in self.options.crashes.iter().enumerate() {
            self.queue.push(ticks(*at), Event::Crash(index as u32));
        }
    }

    /// Draw when the next client arrives, after a client arrived at `node` or left it.
    fn schedule_next_client(&mut self, node: NodeId) {
        let (node, wait) = match &self.options.workload {
            Workload::Closed { think } => (node, think.draw(&mut self.dice)),
            Workload::Open { rate } => {
                (node, Distribution::Exponential(1.0 / rate).draw(&mut self.dice))
            }
            Workload::Serial { pause } => {
                let wait = ticks(pause.draw(&mut self.dice));
                let next = self.draw_node();
                return self.schedule(wait, Event::Come(next));
            }
            Workload::Scripted(_) => return,
        };
        let (hot, factor) = self.options.hot;
        let wait = if node.0 < hot { wait / factor } else { wait };
        self.schedule(ticks(wait), Event::Come(node));
    }

    /// Draw a node. All nodes are equally likely, except hot ones.
    fn draw_node(&mut self) -> NodeId {
        let (hot, factor) = (f64::from(self.options.hot.0), self.options.hot.1);
        let size = self.options.group.size();
        let (weight, cold) = (hot * factor, f64::from(size) - hot);
        let drawn = self.dice.unit() * (weight + cold);
        let place = if drawn < weight { drawn / factor } else { hot + drawn - weight };
        NodeId((place as u32).min(size - 1))
    }

    /// Put an event into the queue that is due `after` ticks from now.
    fn schedule(&mut self, after: u64, event: Event) {
        self.queue.push(self.now.saturating_add(after), event);
    }

    pub(super) fn handle(&mut self, event: Event) {
        match event {
            Event::Deliver(slot) => self.deliver(slot),
            Event::Come(node) => {
                if matches!(self.options.workload, Workload::Open { .. }) {
                    self.schedule_next_client(node);
                }
                let shared = self.options.shared > 0.0 && self.dice.unit() < self.options.shared;
                let mode = if shared { Mode::Shared } else { Mode::Exclusive };
                self.come(Client { node, mode, stay: None, asked: self.now });
            }
            Event::Scripted(index) => {
                self.expected -= 1;
                if let Workload::Scripted(arrivals) = &self.options.workload {
                    let Arrival { node, mode, stay, .. } = arrivals[index as usize];
                    self.come(Client { node, mode, stay, asked: self.now });
                }
            }
            Event::Leave(request) => self.leave(request),
            Event::GiveUp(request) => self.give_up(request),
            Event::Crash(index) => {
                self.expected -= 1;
                self.crash(index);
            }
            Event::Detect(index) => {
                self.expected -= 1;
                self.detect(self.options.crashes[index as usize].1);
            }
        }
    }

    fn deliver(&mut self, slot: u32) {
        let Letter { from, to, cause, id } = self.letters.take(slot);
        self.settle(cause, -1);
        if self.crashed.contains(to) || self.separated(from, to) {
            self.nodes.members_mut().discard(slot);
            return self.record(to, EventKind::Lose { id });
        }
        self.accounts.handle(to);
        self.record(to, EventKind::Receive { id });
        self.step(to, Input::Receive { from, message: slot }, cause);
    }

    /// A client arrives. It requests the lock at once, or joins the backlog of its node.
    fn come(&mut self, client: Client) {
        if self.crashed.contains(client.node) {
            // In a serial load, the next client chooses a node again.
            if matches!(self.options.workload, Workload::Serial { .. }) {
                self.schedule_next_client(client.node);
            }
            return;
        }
        if self.may_acquire(client) {
            self.acquire(client);
        } else {
            self.accounts.keep_waiting(1, self.now);
            self.backlog.entry(client.node).or_default().push_back(client);
        }
    }

    fn may_acquire(&self, client: Client) -> bool {
        self.nodes.members().may_acquire(&self.options.group, client.node, client.mode)
    }

    fn acquire(&mut self, client: Client) {
        let request = self.accounts.acquire(client.node, client.asked, self.now);
        if let Some(stay) = client.stay {
            self.stays.insert(request, ticks(stay));
        }
        self.record(client.node, EventKind::Acquire(client.mode));
        self.step(client.node, Input::Acquire(client.mode), request);
        if self.options.withdraw > 0.0 && self.dice.unit() < self.options.withdraw {
            let patience = ticks(PATIENCE.draw(&mut self.dice));
            self.schedule(patience, Event::GiveUp(request));
        }
    }

    /// The client of a request gives up, unless it is inside or has left.
    fn give_up(&mut self, request: RequestId) {
        let node = self.accounts.requests[request as usize].node;
        let waits = self.nodes.members().phase(node) == Phase::Waiting;
        if self.crashed.contains(node) || !waits || !self.accounts.is_newest(request) {
            return;
        }
        self.withdrawn += 1;
        self.stays.remove(&request);
        self.record(node, EventKind::Withdraw);
        self.accounts.quit(node, true, self.now);
        self.step(node, Input::Withdraw, request);
        self.go_on(node);
    }

    /// Let the first client of the backlog request the lock, if the node may ask again.
    fn acquire_from_backlog(&mut self, node: NodeId) {
        let first = self.backlog.get(&node).and_then(VecDeque::front);
        let Some(client) = first.copied().filter(|client| self.may_acquire(*client)) else {
            return;
        };
        if let Some(waiting) = self.backlog.get_mut(&node) {
            waiting.pop_front();
            if waiting.is_empty() {
                self.backlog.remove(&node);
            }
        }
        self.accounts.keep_waiting(-1, self.now);
        self.acquire(client);
    }

    fn leave(&mut self, request: RequestId) {
        let node = self.accounts.requests[request as usize].node;
        if self.crashed.contains(node) {
            return;
        }
        let full = self.nodes.inside() == self.options.group.permits();
        self.record(node, EventKind::Release);
        self.accounts.leave(request, full, self.now);
        self.step(node, Input::Release, request);
        self.go_on(node);
    }

    /// A client of `node` has left or given up: let the next ones come and ask.
    fn go_on(&mut self, node: NodeId) {
        if self.ending == Ending::Ended {
            return;
        }
        if !matches!(self.options.workload, Workload::Open { .. }) {
            self.schedule_next_client(node);
        }
        if !self.backlog.is_empty() {
            self.acquire_from_backlog(node);
        }
    }

    fn crash(&mut self, index: u32) {
        let (_, node) = self.options.crashes[index as usize];
        if !self.crashed.insert(node) {
            return;
        }
        self.crashes += 1;
        self.record(node, EventKind::Crash);
        let phase = self.nodes.members().phase(node);
        self.accounts.quit(node, phase == Phase::Waiting, self.now);
        self.nodes.crash(node);
        for _ in self.backlog.remove(&node).into_iter().flatten() {
            self.accounts.keep_waiting(-1, self.now);
        }
        if matches!(self.options.workload, Workload::Serial { .. }) && phase != Phase::Outside {
            self.schedule_next_client(node);
        }
        if let Some(after) = self.options.detect {
            self.expected += 1;
            self.schedule(ticks(after), Event::Detect(index));
        }
    }

    fn detect(&mut self, failed: NodeId) {
        let group = self.options.group.clone();
        let live = |node: &NodeId| !self.crashed.contains(*node);
        let Some(heir) = group.others_from(failed).find(live) else { return };
        for node in group.nodes().filter(live).collect::<Vec<_>>() {
            self.record(node, EventKind::Detect(failed));
            self.step(node, Input::Failed { node: failed, heir }, super::NOBODY);
            if self.ending == Ending::Ended {
                return;
            }
        }
    }

    /// Step a node. Its messages are charged to the request `cause`, or to the node they serve.
    pub(super) fn step(&mut self, node: NodeId, input: Input<Slot>, cause: RequestId) {
        if let Err(violation) = self.nodes.step(node, input, &mut self.effects) {
            return self.violate(node, violation);
        }
        if self.effects.entered() {
            self.record(node, EventKind::Enter);
            let request = self.accounts.enter(node, self.now);
            let stay = match self.stays.remove(&request) {
                Some(stay) => stay,
                None => ticks(self.options.inside.draw(&mut self.dice)),
            };
            self.schedule(stay, Event::Leave(request));
        }
        if !self.effects.sends().is_empty() {
            let mut effects = std::mem::take(&mut self.effects);
            for (to, sent) in effects.drain() {
                self.send(node, to, sent, cause);
            }
            self.effects = effects;
        }
        // With several permits, a node may ask for its next client as soon as one has entered.
        if self.algorithm.info().permits && !self.backlog.is_empty() {
            self.acquire_from_backlog(node);
        }
    }

    pub(super) fn send(&mut self, from: NodeId, to: NodeId, sent: SentMessage, cause: RequestId) {
        let SentMessage { slot, bytes, serves } = sent;
        let cause = self.accounts.charge(cause, serves, bytes);
        let id = self.sent;
        self.sent += 1;
        if self.records() {
            let message = self.nodes.members().text(slot);
            self.record(from, EventKind::Send { id, to, message });
        }
        let lost = self.options.loss > 0.0 && self.dice.unit() < self.options.loss;
        if lost || self.separated(from, to) {
            self.nodes.members_mut().discard(slot);
            return self.record(to, EventKind::Lose { id });
        }
        if self.options.duplicate > 0.0 && self.dice.unit() < self.options.duplicate {
            let copy = self.nodes.members_mut().duplicate(slot);
            self.dispatch(copy, Letter { from, to, cause, id });
        }
        self.dispatch(slot, Letter { from, to, cause, id });
    }

    fn dispatch(&mut self, slot: Slot, letter: Letter) {
        let (from, to) = (letter.from, letter.to);
        let delay = self.options.delay.draw(&mut self.dice, from, to) * self.per_delay;
        let at = self.order.admit(from, to, self.now.saturating_add((delay + 0.5) as u64));
        self.settle(letter.cause, 1);
        self.letters.put(slot, letter);
        self.queue.push(at, Event::Deliver(slot));
    }

    /// Near the end of a run, count the messages under way that counted requests have caused.
    fn settle(&mut self, cause: RequestId, change: i64) {
        if let Ending::Settling { unsettled, .. } = &mut self.ending
            && self.accounts.is_counted(cause)
        {
            *unsettled = unsettled.saturating_add_signed(change);
        }
    }

    /// Does a partition separate the two nodes now? A message that is sent or arrives then is lost.
    fn separated(&self, one: NodeId, other: NodeId) -> bool {
        if self.options.partitions.is_empty() {
            return false;
        }
        let now = self.now as f64 / TICKS;
        self.options.partitions.iter().any(|partition| {
            (partition.from..partition.until).contains(&now)
                && partition.side.contains(one) != partition.side.contains(other)
        })
    }

    pub(super) fn violate(&mut self, node: NodeId, violation: Violation) {
        self.record(node, EventKind::Violate(violation.clone()));
        self.violation = Some(violation);
        self.ending = Ending::Ended;
    }

    /// Is there room in the trace, and is the run not long past its last counted exit? A token that
    /// circulates forever would fill the trace after that.
    fn records(&self) -> bool {
        let late = matches!(self.ending, Ending::Settling { since, .. }
            if self.now - since > ticks(3.0));
        self.trace.events.len() < self.options.trace && !late
    }

    fn record(&mut self, node: NodeId, what: EventKind) {
        if self.records() {
            self.trace.push(self.now as f64 / TICKS, node, what);
        }
    }
}
