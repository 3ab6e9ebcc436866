//! Two ends of a link and all connections between them, as one value.

use doorway_node::link::{Decoder, Frame, Inbox, Incarnation, Outbox, ReceivedCount, Verdict};

use super::choice::{Budget, Bug, Choice};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct End {
    life: Incarnation,
    inbox: Inbox,
    outbox: Outbox,
    /// The peer's incarnation that was met last, and the highest message number written to it.
    met: Option<Incarnation>,
    highest: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Wire {
    Hello(Incarnation, ReceivedCount),
    Data(u64, u64, Vec<u8>),
    Ack(u64),
}

/// How far an end has got with a connection, which it identifies by a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    /// It has accepted the connection and received nothing.
    Silent,
    /// It has dialled and sent its hello.
    Dialled(u64),
    /// It has received a hello and has answered.
    NewConnection(u64, Incarnation, ReceivedCount),
    Open(u64),
    Closed,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Connection {
    stages: [Stage; 2],
    /// The frames under way to each end.
    wires: [Vec<Wire>; 2],
}

/// What two incarnations have exchanged: how many messages were sent in one direction, and how many
/// were delivered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Pair {
    from: Incarnation,
    to: Incarnation,
    sent: u8,
    delivered: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    ends: [End; 2],
    connections: Vec<Connection>,
    pairs: Vec<Pair>,
    left: Budget,
    bug: Option<Bug>,
}

impl End {
    fn new(life: u64) -> Self {
        let (inbox, outbox) = (Inbox::default(), Outbox::default());
        Self { life: Incarnation(life), inbox, outbox, met: None, highest: 0 }
    }
}

impl World {
    pub(crate) fn new(left: Budget, bug: Option<Bug>) -> Self {
        let (connections, pairs) = (Vec::new(), Vec::new());
        Self { ends: [End::new(10), End::new(20)], connections, pairs, left, bug }
    }

    pub(crate) fn choices(&self) -> Vec<Choice> {
        let mut choices = Vec::new();
        for end in 0..2 {
            if self.left.messages[end] > 0 && self.ends[end].met.is_some() {
                choices.push(Choice::Send(end));
            }
            if self.left.restarts[end] > 0 {
                choices.push(Choice::Restart(end));
            }
        }
        let idle = |connection: &Connection| connection.stages[0] == Stage::Closed;
        if self.left.dials > 0 && self.connections.iter().all(idle) {
            choices.push(Choice::Dial);
        }
        for (at, connection) in self.connections.iter().enumerate() {
            for end in 0..2 {
                self.choices_at(at, connection, end, &mut choices);
            }
        }
        choices
    }

    fn choices_at(&self, at: usize, connection: &Connection, end: usize, out: &mut Vec<Choice>) {
        let wire = &connection.wires[end];
        if connection.stages[end] != Stage::Closed {
            let over = connection.stages[1 - end] == Stage::Closed && wire.is_empty();
            if over || self.left.cuts > 0 {
                out.push(Choice::Close(at, end));
            }
        }
        if matches!(connection.stages[end], Stage::Open(_)) {
            out.push(Choice::Write(at, end));
            // A second acknowledgement would contain nothing new.
            let waiting = &connection.wires[1 - end];
            if !waiting.iter().any(|frame| matches!(frame, Wire::Ack(_))) {
                out.push(Choice::Beat(at, end));
            }
        }
        for index in 0..wire.len() {
            if index == 0 || self.left.swaps > 0 {
                out.push(Choice::Arrive(at, end, index));
            }
            if self.left.losses > 0 {
                out.push(Choice::Lose(at, end, index));
            }
            if self.left.doubles > 0 {
                out.push(Choice::Double(at, end, index));
            }
        }
    }

    pub(crate) fn apply(&mut self, choice: Choice) -> Result<(), String> {
        match choice {
            Choice::Send(end) => {
                self.left.messages[end] -= 1;
                self.send(end);
            }
            Choice::Dial => {
                self.left.dials -= 1;
                self.dial();
            }
            Choice::Write(at, end) => self.write(at, end),
            Choice::Beat(at, end) => self.beat(at, end),
            Choice::Arrive(at, end, index) => {
                self.left.swaps -= u8::from(index > 0);
                self.arrive(at, end, index)?;
            }
            Choice::Lose(at, end, index) => {
                self.left.losses -= 1;
                self.connections[at].wires[end].remove(index);
            }
            Choice::Double(at, end, index) => {
                self.left.doubles -= 1;
                let frame = self.connections[at].wires[end][index].clone();
                self.connections[at].wires[end].push(frame);
            }
            Choice::Close(at, end) => {
                let over = self.connections[at].stages[1 - end] == Stage::Closed;
                let over = over && self.connections[at].wires[end].is_empty();
                self.left.cuts -= u8::from(!over);
                self.close(at, end);
            }
            Choice::Restart(end) => {
                self.left.restarts[end] -= 1;
                self.ends[end] = End::new(self.ends[end].life.0 + 1);
                for at in 0..self.connections.len() {
                    self.close(at, end);
                }
            }
        }
        let dead = |connection: &Connection| connection.stages == [Stage::Closed; 2];
        self.connections.retain(|connection| !dead(connection));
        Ok(())
    }

    /// Whatever has happened before: after one good connection, everything that these two
    /// incarnations have sent each other has arrived, and nothing is kept.
    pub(crate) fn check_end(&self) -> Result<(), String> {
        let mut world = self.clone();
        for at in 0..world.connections.len() {
            world.close(at, 0);
            world.close(at, 1);
        }
        world.connections.clear();
        world.dial();
        // Three frames for the handshake, one for each message, and one more to acknowledge.
        for _ in 0..8 {
            for end in 0..2 {
                while !world.connections[0].wires[end].is_empty() {
                    world.arrive(0, end, 0)?;
                }
            }
            for end in 0..2 {
                world.write(0, end);
                world.beat(0, end);
            }
        }
        for end in 0..2 {
            let (from, to) = (&world.ends[end], &world.ends[1 - end]);
            let pair = world.pairs.iter().find(|pair| pair.from == from.life && pair.to == to.life);
            if pair.is_some_and(|pair| pair.sent != pair.delivered) {
                return Err(format!("something did not arrive: {pair:?}"));
            }
            if from.outbox.unacknowledged() > 0 {
                return Err("something is kept for ever".to_owned());
            }
        }
        Ok(())
    }

    fn send(&mut self, end: usize) {
        let End { life, met, .. } = self.ends[end];
        let to = met.expect("a peer that was met");
        let pair = self.pair(life, to);
        pair.sent += 1;
        let message = vec![life.0 as u8, to.0 as u8, pair.sent];
        self.ends[end].outbox.push(message);
    }

    fn dial(&mut self) {
        let (number, received) = self.ends[0].inbox.greet();
        let hello = Wire::Hello(self.ends[0].life, received);
        let stages = [Stage::Dialled(number), Stage::Silent];
        self.connections.push(Connection { stages, wires: [Vec::new(), vec![hello]] });
    }

    fn close(&mut self, at: usize, end: usize) {
        let connection = &mut self.connections[at];
        if let Stage::Open(number) = connection.stages[end] {
            self.ends[end].inbox.close(number);
        }
        connection.stages[end] = Stage::Closed;
        connection.wires[end].clear();
    }

    fn write(&mut self, at: usize, end: usize) {
        let Stage::Open(number) = self.connections[at].stages[end] else { return };
        let mut bytes = Vec::new();
        if self.ends[end].outbox.fill(number, 1, &mut bytes) {
            self.put(at, end, &bytes);
        } else {
            self.close(at, end);
        }
    }

    fn beat(&mut self, at: usize, end: usize) {
        let Stage::Open(number) = self.connections[at].stages[end] else { return };
        let mut bytes = Vec::new();
        if self.ends[end].outbox.heartbeat(number, &mut bytes) {
            self.put(at, end, &bytes);
        } else {
            self.close(at, end);
        }
    }

    fn put(&mut self, at: usize, end: usize, bytes: &[u8]) {
        if self.connections[at].stages[1 - end] == Stage::Closed {
            return;
        }
        let mut decoder = Decoder::default();
        decoder.room().extend_from_slice(bytes);
        while let Some(frame) = decoder.frame().expect("a frame") {
            self.connections[at].wires[1 - end].push(match frame {
                Frame::Data { number, received, message } => {
                    self.ends[end].highest = self.ends[end].highest.max(number);
                    Wire::Data(number, received, message.to_vec())
                }
                Frame::Ack(received) => Wire::Ack(received),
                other => unreachable!("{other:?} is not a frame of an outbox"),
            });
        }
    }

    fn arrive(&mut self, at: usize, end: usize, index: usize) -> Result<(), String> {
        let frame = self.connections[at].wires[end].remove(index);
        match (self.connections[at].stages[end], frame) {
            (Stage::Silent, Wire::Hello(life, has)) => {
                let (number, received) = self.ends[end].inbox.greet();
                self.connections[at].stages[end] = Stage::NewConnection(number, life, has);
                if self.connections[at].stages[1 - end] != Stage::Closed {
                    let hello = Wire::Hello(self.ends[end].life, received);
                    self.connections[at].wires[1 - end].push(hello);
                }
                if self.bug == Some(Bug::ResumedByHello) {
                    self.resume(at, end, number, life, has)?;
                }
            }
            (Stage::Dialled(number), Wire::Hello(life, has)) => {
                self.resume(at, end, number, life, has)?;
                self.write(at, end);
                self.beat(at, end);
            }
            (Stage::NewConnection(number, life, has), frame @ (Wire::Data(..) | Wire::Ack(_))) => {
                self.resume(at, end, number, life, has)?;
                self.hear(at, end, frame)?;
            }
            (Stage::Open(_), frame @ (Wire::Data(..) | Wire::Ack(_))) => {
                self.hear(at, end, frame)?;
            }
            // This frame must not come now, so the connection is closed.
            _ => self.close(at, end),
        }
        Ok(())
    }

    fn resume(
        &mut self,
        at: usize,
        end: usize,
        number: u64,
        life: Incarnation,
        mut has: ReceivedCount,
    ) -> Result<(), String> {
        let this = &mut self.ends[end];
        let known = this.met == Some(life);
        let bug = self.bug;
        if bug == Some(Bug::ResentTooLate) && known && has.count < this.highest {
            has.count += 1;
        }
        if bug == Some(Bug::NotResent) && known {
            has.count = this.highest;
        }
        let kept = |bugs| if bug == Some(bugs) { this.met.unwrap_or(life) } else { life };
        if !this.inbox.resume(number, kept(Bug::InboxKept)) {
            self.close(at, end);
            return Ok(());
        }
        let resumed = this.outbox.resume(number, this.life, kept(Bug::OutboxKept), has);
        resumed.map_err(|breach| breach.to_string())?;
        if !known {
            this.highest = 0;
        }
        this.met = Some(life);
        self.connections[at].stages[end] = Stage::Open(number);
        Ok(())
    }

    /// A frame of an open connection.
    fn hear(&mut self, at: usize, end: usize, frame: Wire) -> Result<(), String> {
        let Stage::Open(number) = self.connections[at].stages[end] else { return Ok(()) };
        let this = &mut self.ends[end];
        if !this.inbox.is_current(number) && self.bug != Some(Bug::StaleRead) {
            self.close(at, end);
            return Ok(());
        }
        let (Wire::Data(_, received, _) | Wire::Ack(received)) = &frame else { return Ok(()) };
        this.outbox.acknowledge(*received).map_err(|breach| breach.to_string())?;
        let Wire::Data(message, _, body) = frame else { return Ok(()) };
        let stale = self.bug == Some(Bug::StaleRead);
        let number = if stale { this.newest() } else { number };
        match this.inbox.judge(number, message) {
            Verdict::Duplicate if self.bug != Some(Bug::DuplicateTaken) => return Ok(()),
            Verdict::Gap | Verdict::Stale if self.bug != Some(Bug::GapTaken) => {
                if self.bug == Some(Bug::AcknowledgedUnseen) {
                    this.outbox.set_received(message);
                }
                self.close(at, end);
                return Ok(());
            }
            _ => {}
        }
        this.inbox.delivered();
        this.outbox.set_received(this.inbox.received());
        self.deliver(end, &body)
    }

    fn deliver(&mut self, end: usize, body: &[u8]) -> Result<(), String> {
        let [from, to, count] = body else { return Err(format!("no message: {body:?}")) };
        let life = self.ends[end].life;
        let pair = self.pair(Incarnation(u64::from(*from)), Incarnation(u64::from(*to)));
        if pair.to != life {
            return Err(format!("{body:?} was for another life"));
        }
        pair.delivered += 1;
        if pair.delivered == *count { Ok(()) } else { Err(format!("{body:?} out of order")) }
    }

    fn pair(&mut self, from: Incarnation, to: Incarnation) -> &mut Pair {
        let known = self.pairs.iter().position(|pair| pair.from == from && pair.to == to);
        let at = known.unwrap_or_else(|| {
            self.pairs.push(Pair { from, to, sent: 0, delivered: 0 });
            self.pairs.len() - 1
        });
        &mut self.pairs[at]
    }
}

impl End {
    /// The newest connection.
    fn newest(&self) -> u64 {
        (1..20).find(|number| self.inbox.is_current(*number)).unwrap_or(0)
    }
}
