//! Connections as queues of bytes, which take time, are held up, and break.

use std::collections::{BTreeMap, VecDeque};

use crate::clock::MS;
use crate::random::Random;
use crate::story::Lane;

/// The number of a connection.
pub(crate) type Wire = u64;

/// One of the two ends of a connection: 0 for the side that dialled.
pub(crate) type Side = usize;

/// A process at an end of a connection, with the number of its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Node { node: usize, start: u64 },
    Client { client: usize, start: u64 },
}

impl End {
    /// The line of the process in a picture.
    pub(crate) fn lane(self) -> Lane {
        match self {
            Self::Node { node, .. } => Lane::Node(node),
            Self::Client { client, .. } => Lane::Client(client),
        }
    }
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Pipe {
    pub(crate) ends: [End; 2],
    /// The machines of the two ends.
    pub(crate) machines: [usize; 2],
    /// What is on its way to each end, and when it was sent.
    pub(crate) under_way: [VecDeque<(Vec<u8>, u64)>; 2],
    /// When the last bytes on their way to each end arrive.
    last: [u64; 2],
    /// Whether each end has it open.
    pub(crate) open: [bool; 2],
    /// Nothing that is sent from now on arrives.
    pub(crate) broken: bool,
    /// The connection is broken, and no end is told.
    silent: bool,
}

impl Pipe {
    pub(crate) fn is_local(&self) -> bool {
        self.machines[0] == self.machines[1]
    }
}

/// What the network wants to happen later.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Traffic {
    /// The next bytes arrive at this end.
    Arrive(Wire, Side),
    /// This end learns that the connection has ended.
    Ended(Wire, Side),
}

/// All connections, and which machines cannot reach which.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) pipes: BTreeMap<Wire, Pipe>,
    last: Wire,
    /// Until when nothing gets from one machine to another.
    blocked: BTreeMap<(usize, usize), u64>,
    /// Which node is found at the address of another one, and until when.
    moved: BTreeMap<usize, (usize, u64)>,
    delay: (u64, u64),
    /// How many of a thousand messages are lost, and sent again by the system some time later.
    lossy: u64,
    /// By how much everything takes longer, and until when.
    pub(crate) slower: (u64, u64),
    /// What is to happen, for the queue of the run.
    pub(crate) plans: Vec<(u64, Traffic)>,
}

impl Network {
    pub(crate) fn new(delay: (u64, u64), lossy: u64) -> Self {
        Self {
            pipes: BTreeMap::new(),
            last: 0,
            blocked: BTreeMap::new(),
            moved: BTreeMap::new(),
            delay,
            lossy,
            slower: (1, 0),
            plans: Vec::new(),
        }
    }

    /// Let nothing get from one machine to another until this time.
    pub(crate) fn block(&mut self, from: usize, to: usize, until: u64) {
        let known = self.blocked.entry((from, to)).or_default();
        *known = until.max(*known);
    }

    /// Let clients find another node at the address of this one until this time.
    pub(crate) fn move_address(&mut self, of: usize, to: usize, until: u64) {
        self.moved.insert(of, (to, until));
    }

    /// The node that clients find at the address of this one.
    pub(crate) fn at_address(&self, now: u64, of: usize) -> usize {
        self.moved.get(&of).filter(|(_, until)| now < *until).map_or(of, |(to, _)| *to)
    }

    /// Let everything get through again.
    pub(crate) fn heal(&mut self) {
        self.blocked.clear();
        self.moved.clear();
        (self.slower, self.lossy) = ((1, 0), 0);
    }

    /// Until when nothing gets from one machine to another; none if messages get there now.
    pub(crate) fn blocked(&self, now: u64, from: usize, to: usize) -> Option<u64> {
        self.blocked.get(&(from, to)).copied().filter(|until| *until > now)
    }

    /// How long the next bytes take.
    pub(crate) fn latency(&self, now: u64, local: bool, random: &mut Random) -> u64 {
        if local {
            return random.between(1000, 30_000);
        }
        let time = random.between(self.delay.0, self.delay.1);
        if now < self.slower.1 { time * self.slower.0 } else { time }
    }

    /// Make a connection.
    pub(crate) fn connect(&mut self, ends: [End; 2], machines: [usize; 2]) -> Wire {
        self.last += 1;
        let pipe = Pipe {
            ends,
            machines,
            under_way: [VecDeque::new(), VecDeque::new()],
            last: [0; 2],
            open: [true; 2],
            broken: false,
            silent: false,
        };
        self.pipes.insert(self.last, pipe);
        self.last
    }

    /// Send bytes from one side to the other.
    pub(crate) fn send(
        &mut self,
        now: u64,
        wire: Wire,
        from: Side,
        bytes: Vec<u8>,
        random: &mut Random,
    ) {
        let Some(pipe) = self.pipes.get(&wire) else { return };
        let local = pipe.is_local();
        let mut latency = self.latency(now, local, random);
        if !local && self.lossy > 0 && random.below(1000) < self.lossy {
            latency += random.magnitude(200 * MS, 6000 * MS);
        }
        let Some(pipe) = self.pipes.get_mut(&wire) else { return };
        if bytes.is_empty() || !pipe.open[from] {
            return;
        }
        if pipe.broken {
            if !pipe.silent {
                self.plans.push((now + latency, Traffic::Ended(wire, from)));
            }
            return;
        }
        let to = 1 - from;
        let at = (now + latency).max(pipe.last[to]);
        pipe.last[to] = at;
        pipe.under_way[to].push_back((bytes, now));
        self.plans.push((at, Traffic::Arrive(wire, to)));
    }

    /// Let nothing arrive at a side before this time.
    pub(crate) fn hold_up(&mut self, wire: Wire, side: Side, until: u64) {
        if let Some(pipe) = self.pipes.get_mut(&wire) {
            pipe.last[side] = until.max(pipe.last[side]);
        }
    }

    /// A side closes the connection. What it has sent still arrives.
    pub(crate) fn close(&mut self, now: u64, wire: Wire, side: Side, random: &mut Random) {
        let Some(pipe) = self.pipes.get(&wire) else { return };
        let latency = self.latency(now, pipe.is_local(), random);
        let Some(pipe) = self.pipes.get_mut(&wire) else { return };
        if !std::mem::take(&mut pipe.open[side]) {
            return;
        }
        let other = 1 - side;
        if !pipe.open[other] {
            self.pipes.remove(&wire);
            return;
        }
        if !(pipe.broken && pipe.silent) {
            let at = (now + latency).max(pipe.last[other]);
            self.plans.push((at, Traffic::Ended(wire, other)));
        }
    }

    /// The machine of a side is gone, and nobody tells the other side.
    pub(crate) fn vanish(&mut self, wire: Wire, side: Side) {
        let Some(pipe) = self.pipes.get_mut(&wire) else { return };
        pipe.open[side] = false;
        if !pipe.open[1 - side] {
            self.pipes.remove(&wire);
        }
    }

    /// Break a connection: a part of what is under way may still arrive.
    pub(crate) fn cut(&mut self, now: u64, wire: Wire, random: &mut Random) {
        let Some(pipe) = self.pipes.get(&wire) else { return };
        let latency = self.latency(now, pipe.is_local(), random);
        let Some(pipe) = self.pipes.get_mut(&wire) else { return };
        pipe.broken = true;
        pipe.silent = random.percent(25);
        for side in 0..2 {
            pipe.under_way[side].truncate(1);
            if let Some((bytes, _)) = pipe.under_way[side].front_mut() {
                let kept = random.between(0, bytes.len() as u64) as usize;
                bytes.truncate(kept);
            }
            if !pipe.silent && random.percent(80) {
                let at = (now + latency).max(pipe.last[side]);
                self.plans.push((at, Traffic::Ended(wire, side)));
            }
        }
    }

    /// The connections of a process.
    pub(crate) fn of(&self, end: End) -> Vec<(Wire, Side)> {
        let side = |pipe: &Pipe| (0..2).find(|side| pipe.ends[*side] == end && pipe.open[*side]);
        self.pipes.iter().filter_map(|(wire, pipe)| Some((*wire, side(pipe)?))).collect()
    }
}
