//! What every part of a run can use: time, random numbers, the network, the log, and violations.

use std::collections::BTreeMap;
use std::rc::Rc;

use doorway_protocol::{Fence, Name};
use doorway_sessions::{Answer, Call};

use crate::client::ClientEvent;
use crate::log::Log;
use crate::network::{End, Network, Side, Traffic, Wire};
use crate::node::NodeEvent;
use crate::queue::Queue;
use crate::random::Random;
use crate::register::{Register, RegisterTraffic};
use crate::settings::{Fault, Settings};
use crate::story::{Lane, Story};

/// Something that happens in a run.
#[derive(Debug)]
pub(crate) enum Event {
    Traffic(Traffic),
    /// A message to or from the register of the group.
    Register(RegisterTraffic),
    /// The register looks whether it needs another leader.
    Elect,
    Node {
        node: usize,
        start: u64,
        what: NodeEvent,
    },
    Client {
        client: usize,
        start: u64,
        what: ClientEvent,
    },
    /// A fault begins.
    Fault(Fault),
    /// A node is started again, unless it runs.
    StartNode(usize),
    /// A client is started again, unless it runs.
    StartClient(usize),
    /// The process of a client that has said goodbye ends.
    Retire(usize),
    /// The child processes of this start of a client end.
    ChildrenEnd(usize, u64),
    /// The disk of a node works again.
    MendDisk(usize),
    /// Clients find another node at the address of this one, until this time.
    MoveAddress {
        of: usize,
        to: usize,
        until: u64,
    },
    /// One machine cannot reach another one until this time.
    Cut {
        from: usize,
        to: usize,
        until: u64,
    },
    /// All faults end.
    Heal,
    /// Operators break locks without end whose clients have forgotten them.
    Sweep,
    /// Look whether the phase has reached its goal. It must have reached it at this time.
    Deadline(u64),
    /// This node has been drained, and is gone for good.
    Burnt(usize),
    /// The run ends. Nothing may be left of any client.
    End,
}

/// What a run has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// How many times a client entered.
    pub entries: u64,
    /// How many of these times it entered a lock that it had kept, without its node.
    pub kept: u64,
    /// How many events happened.
    pub events: u64,
    /// How many faults began.
    pub faults: u64,
    /// How many nanoseconds of virtual time passed.
    pub time: u64,
    /// How many grants were lost.
    pub lost: u64,
    /// How many requests were refused.
    pub refused: u64,
    /// How many grants were broken.
    pub broken: u64,
    /// How many writes the store refused because of their fence.
    pub fenced: u64,
    /// How many times a client entered a lock without end.
    pub endless: u64,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, more: Self) {
        self.entries += more.entries;
        self.kept += more.kept;
        self.events += more.events;
        self.faults += more.faults;
        self.time += more.time;
        self.lost += more.lost;
        self.refused += more.refused;
        self.broken += more.broken;
        self.fenced += more.fenced;
        self.endless += more.endless;
    }
}

/// A call over HTTP on its way.
#[derive(Debug)]
pub(crate) struct Post {
    pub(crate) call: Call,
    /// How long it waits for its lock, in nanoseconds.
    pub(crate) wait: u64,
}

/// A grant: the lock, the fence and the client.
pub(crate) type Grant = (Name, Fence, usize);

/// What all parts of a run share.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) now: u64,
    pub(crate) random: Random,
    pub(crate) queue: Queue<Event>,
    pub(crate) network: Network,
    /// What the group agrees on, if it agrees on its members.
    pub(crate) register: Option<Register>,
    /// The nodes that have just started a view, each with the number of the view.
    pub(crate) started: Vec<(usize, u64)>,
    pub(crate) log: Log,
    pub(crate) settings: Rc<Settings>,
    pub(crate) counts: Counts,
    /// What the bytes of calls and of answers mean, by connection: HTTP itself is not simulated.
    pub(crate) posts: BTreeMap<Wire, Post>,
    pub(crate) answers: BTreeMap<Wire, Answer>,
    /// The sockets that show that the processes of a session exist, by name, each with the client
    /// and the start of the client that has it.
    pub(crate) holders: BTreeMap<String, (usize, u64)>,
    /// The grants that a node has just taken away.
    pub(crate) broken: Vec<Grant>,
    /// In runs with locks without end: the grants that a node has just given, or holds again, and
    /// those that have just ended because their clients were silent.
    pub(crate) granted: Vec<Grant>,
    pub(crate) expired: Vec<Grant>,
    /// The grants without end of which somebody was just told that they have ended.
    pub(crate) ended: Vec<Grant>,
    /// What has happened, if it is to be drawn.
    pub(crate) story: Option<Story>,
    /// The first thing that must never happen, if it has.
    pub(crate) violation: Option<String>,
}

impl Context {
    pub(crate) fn node(&mut self, after: u64, node: usize, start: u64, what: NodeEvent) {
        self.queue.push(self.now + after, Event::Node { node, start, what });
    }

    pub(crate) fn client(&mut self, at: u64, client: usize, start: u64, what: ClientEvent) {
        self.queue.push(at.max(self.now), Event::Client { client, start, what });
    }

    pub(crate) fn send(&mut self, wire: Wire, from: Side, bytes: Vec<u8>) {
        self.network.send(self.now, wire, from, bytes, &mut self.random);
    }

    pub(crate) fn close(&mut self, wire: Wire, side: Side) {
        self.network.close(self.now, wire, side, &mut self.random);
    }

    /// Close all connections of a process, as the system does when the process ends.
    pub(crate) fn close_all(&mut self, end: End) {
        for (wire, side) in self.network.of(end) {
            self.close(wire, side);
        }
    }

    /// Note for the picture what the message means that arrives in this moment.
    pub(crate) fn arrow(&mut self, to: Lane, label: impl FnOnce() -> String, lock: Option<&Name>) {
        if let Some(story) = &mut self.story {
            story.arrow(self.now, to, label(), lock.cloned());
        }
    }

    /// Note something that must never happen to a lock.
    pub(crate) fn violate_lock(&mut self, lock: &Name, what: String) {
        if let Some(story) = self.story.as_mut().filter(|_| self.violation.is_none()) {
            story.concerned = Some(lock.clone());
        }
        self.violate(what);
    }

    /// Note something that must never happen.
    pub(crate) fn violate(&mut self, what: String) {
        if self.violation.is_none() {
            self.log.line(self.now, format_args!("VIOLATION: {what}"));
            self.violation = Some(what);
        }
    }
}

/// Write a line into the log of the run, if anybody reads it.
macro_rules! log {
    ($context:expr, $($what:tt)*) => {
        if $context.log.text.is_some() {
            let now = $context.now;
            $context.log.line(now, format_args!($($what)*));
        }
    };
}
pub(crate) use log;
