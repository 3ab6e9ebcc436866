//! The central coordinator, known to every textbook; here after Tanenbaum & van Steen, "Distributed
//! Systems: Principles and Paradigms", Prentice Hall, 2002, chapter 5.
//!
//! One node, the coordinator, decides. A node that wants to enter asks the coordinator, enters when
//! it is granted the lock, and tells the coordinator when it leaves. The coordinator grants the
//! lock to one node at a time and serves the others in the order in which they asked. Node 1 is the
//! coordinator unless the group names another node; the coordinator's own clients need no message.
//!
//! # Rules
//!
//! 1. To ask: send REQUEST to the coordinator.
//! 2. On REQUEST the coordinator sends GRANT if no node has the grant. Else it appends the sender
//!    to its queue, even if the sender has the grant: its RELEASE may have been overtaken.
//! 3. On GRANT: enter.
//! 4. To leave: send RELEASE to the coordinator.
//! 5. On RELEASE the coordinator sends GRANT to the first of the queue.
//!
//! # Why it is right
//!
//! Between a GRANT and the RELEASE that answers it there is no other GRANT, and a node is inside
//! only between the two. The queue is served in order, so no node waits for ever.

use super::prelude::*;

/// The messages of the algorithm with a central coordinator.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    /// May I enter?
    Request,
    /// You may enter.
    Grant,
    /// I have left.
    Release,
}

/// The state of one node in the algorithm with a central coordinator. Only the coordinator has a
/// holder and a queue.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Central {
    me: NodeId,
    /// The node that decides.
    coordinator: NodeId,
    /// Whether we have sent a REQUEST that is not granted yet.
    waiting: bool,
    /// The node that has the grant.
    holder: Option<NodeId>,
    /// The nodes that wait for it, in the order in which they asked.
    queue: VecDeque<NodeId>,
    /// The nodes of the queue as a set.
    queued: NodeSet,
}

const COST: Formula = Formula {
    text: "3(N-1)/N",
    of: |group| 3.0 * f64::from(group.size() - 1) / f64::from(group.size()),
};

impl Algorithm for Central {
    type Message = Message;

    const INFO: Info = Info {
        name: "central",
        summary: "one node, the coordinator, decides who enters",
        paper: "Tanenbaum & van Steen, Distributed Systems: Principles and Paradigms, chapter 5",
        year: 2002,
        kind: Kind::Central,
        served: true,
        messages: Claim {
            least: Formula { text: "0 for the coordinator", of: |_| 0.0 },
            most: Formula { text: "3", of: |group| if group.size() > 1 { 3.0 } else { 0.0 } },
            per: Per::Entry,
            light: Some(COST),
            heavy: Some(COST),
        },
        ..Info::BASE
    };

    fn new(me: NodeId, group: &Group, start: &Start) -> Self {
        let coordinator = group.coordinator();
        let holder = start.holders.first().map(|holder| holder.node);
        let holder = holder.filter(|_| me == coordinator);
        let (queue, queued) = (VecDeque::new(), NodeSet::new());
        Self { me, coordinator, waiting: false, holder, queue, queued }
    }

    fn acquire(&mut self, _group: &Group, _mode: Mode, out: &mut Effects<Message>) {
        if self.me == self.coordinator {
            self.ask(self.me, out);
        } else {
            self.waiting = true;
            out.send(self.coordinator, Message::Request);
        }
    }

    fn receive(
        &mut self,
        _group: &Group,
        from: NodeId,
        message: Message,
        out: &mut Effects<Message>,
    ) {
        match message {
            Message::Request if self.me != self.coordinator => {
                out.reject("a request to a node that is not the coordinator");
            }
            Message::Request if self.queued.contains(from) => {
                out.reject("a second request while the first one waits");
            }
            Message::Request => self.ask(from, out),
            Message::Grant if self.waiting && from == self.coordinator => {
                self.waiting = false;
                out.enter();
            }
            Message::Grant => out.reject("a grant that answers no request of ours"),
            Message::Release if self.holder == Some(from) => self.next(out),
            Message::Release => out.reject("a release by a node that has no grant"),
        }
    }

    fn release(&mut self, _group: &Group, out: &mut Effects<Message>) {
        if self.me == self.coordinator {
            self.next(out);
        } else {
            out.send(self.coordinator, Message::Release);
        }
    }

    fn wanted(&self) -> bool {
        // Only the coordinator knows.
        self.me != self.coordinator || !self.queue.is_empty()
    }

    fn floor(&self) -> Option<u64> {
        self.holder.is_none().then_some(0)
    }

    fn serves(message: &Message, _from: NodeId, to: NodeId) -> Option<NodeId> {
        (*message == Message::Grant).then_some(to)
    }
}

impl Central {
    fn ask(&mut self, node: NodeId, out: &mut Effects<Message>) {
        if self.holder.is_none() {
            self.grant(node, out);
        } else {
            self.queue.push_back(node);
            self.queued.insert(node);
        }
    }

    fn next(&mut self, out: &mut Effects<Message>) {
        self.holder = None;
        if let Some(node) = self.queue.pop_front() {
            self.queued.remove(node);
            self.grant(node, out);
        }
    }

    fn grant(&mut self, node: NodeId, out: &mut Effects<Message>) {
        self.holder = Some(node);
        if node == self.me {
            out.enter();
        } else {
            out.send(node, Message::Grant);
        }
    }
}
