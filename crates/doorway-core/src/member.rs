//! The one door to a node: every driver steps a [`Member`], and the contract is held here once.

use core::fmt;

use crate::{Algorithm, CLOCK_LIMIT, Effects, Group, Mode, NodeId, Start};

/// What can happen to a node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Input<M> {
    /// A client wants in.
    Acquire(Mode),
    /// A message has arrived.
    Receive {
        /// Its sender.
        from: NodeId,
        /// The message.
        message: M,
    },
    /// The client inside leaves, or gives back one permit.
    Release,
    /// Another node has stopped for ever, and `heir`, a live one, takes its place.
    Failed {
        /// Who stopped.
        node: NodeId,
        /// Who stands in for it.
        heir: NodeId,
    },
}

/// Where a node stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Neither inside nor waiting.
    Outside,
    /// A request is open (with permits, some may be held besides).
    Waiting,
    /// Inside, and nothing more is wanted.
    Inside,
}

/// How an algorithm broke its contract. No input causes this in a correct one; the lab reports it
/// as a violation and a daemon stops the lock, so neither panics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breach {
    /// It entered though nobody was waiting.
    EnteredUninvited,
    /// It sent a message to itself.
    SentToItself,
    /// It sent a message to a node outside the group.
    SentToStranger,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EnteredUninvited => "it entered although no client was waiting",
            Self::SentToItself => "it sent a message to its own node",
            Self::SentToStranger => "it sent a message to a node outside the group",
        })
    }
}

impl core::error::Error for Breach {}

/// A node of a group: an algorithm, and what its client is doing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Member<A> {
    algorithm: A,
    me: NodeId,
    waiting: Option<Mode>,
    /// The mode of those inside; [`Mode::Exclusive`] when nobody is, so that states stay equal.
    mode: Mode,
    held: u32,
}

impl<A: Algorithm> Member<A> {
    /// Begin as node `me`: build the algorithm's state and run [`Algorithm::start`]. `out` then
    /// holds what the node did as it began, and nothing older; the driver performs it like the
    /// effects of any step.
    ///
    /// # Panics
    ///
    /// If no group can begin this way. [`Start::check`] tells the driver beforehand.
    pub fn begin(
        me: NodeId,
        group: &Group,
        start: &Start,
        out: &mut Effects<A::Message>,
    ) -> Result<Self, Breach> {
        if let Err(reason) = start.check(&A::INFO, group) {
            panic!("a start that was not checked: {reason}");
        }
        let holder = start.holder(me);
        let mut member = Self {
            algorithm: A::new(me, group, start),
            me,
            waiting: None,
            mode: holder.map_or(Mode::Exclusive, |holder| holder.mode),
            held: holder.map_or(0, |holder| holder.permits),
        };
        out.clear();
        member.algorithm.start(group, out);
        member.finish(group, out)?;
        Ok(member)
    }

    /// Let one thing happen; `out` then holds what the node did about it, and nothing older.
    ///
    /// # Panics
    ///
    /// If the driver asks for what [`Member::may_acquire`] or [`Member::may_release`] deny, or
    /// names a crash that cannot be: a mistake in the driver, to which no message of a peer leads.
    pub fn step(
        &mut self,
        group: &Group,
        input: Input<A::Message>,
        out: &mut Effects<A::Message>,
    ) -> Result<(), Breach> {
        out.clear();
        match input {
            Input::Acquire(mode) => {
                assert!(self.may_acquire(group, mode), "one request at a time, in a mode served");
                self.waiting = Some(mode);
                self.algorithm.acquire(group, mode, out);
            }
            Input::Receive { from, .. } if from == self.me || !group.contains(from) => {
                out.reject("a message of nobody else in the group");
            }
            Input::Receive { from, message } => self.algorithm.receive(group, from, message, out),
            Input::Release => {
                assert!(self.may_release(), "only a node inside can leave");
                self.held -= 1;
                if self.held == 0 {
                    self.mode = Mode::Exclusive;
                }
                self.algorithm.release(group, out);
            }
            Input::Failed { node, heir } => {
                let known = group.contains(node) && group.contains(heir);
                assert!(known && node != self.me && node != heir, "another node takes its place");
                self.algorithm.failed(group, node, heir, out);
            }
        }
        self.finish(group, out)
    }

    /// Go inside if the algorithm entered, and check that it kept its contract.
    fn finish(&mut self, group: &Group, out: &Effects<A::Message>) -> Result<(), Breach> {
        if out.entered() {
            self.mode = self.waiting.take().ok_or(Breach::EnteredUninvited)?;
            self.held += 1;
        }
        for &(to, _) in out.sends() {
            if to == self.me {
                return Err(Breach::SentToItself);
            }
            if !group.contains(to) {
                return Err(Breach::SentToStranger);
            }
        }
        Ok(())
    }

    /// May a client ask now? One request at a time, in a mode that the algorithm serves, for a
    /// permit that this node has room for.
    pub fn may_acquire(&self, group: &Group, mode: Mode) -> bool {
        let room = if A::INFO.permits { group.seats() } else { 1 };
        self.waiting.is_none() && self.held < room && (mode == Mode::Exclusive || A::INFO.shared)
    }

    /// May the client leave now?
    pub fn may_release(&self) -> bool {
        self.held > 0
    }

    /// Where the node stands.
    pub fn phase(&self) -> Phase {
        match (self.waiting, self.held) {
            (Some(_), _) => Phase::Waiting,
            (None, 0) => Phase::Outside,
            (None, _) => Phase::Inside,
        }
    }

    /// How many permits the node holds: 0 outside, and 1 inside unless permits are served.
    pub fn held(&self) -> u32 {
        self.held
    }

    /// The mode of those inside, meaningful while [`Member::held`] is not zero.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The mode of the open request.
    pub fn waiting(&self) -> Option<Mode> {
        self.waiting
    }

    /// May some other node be waiting for this one to leave?
    pub fn wanted(&self) -> bool {
        self.algorithm.wanted()
    }

    /// From which floor the node may be started anew if it is forgotten now; `None`: keep it.
    pub fn floor(&self) -> Option<u64> {
        let floor = (self.phase() == Phase::Outside).then(|| self.algorithm.floor()).flatten();
        floor.filter(|floor| *floor < CLOCK_LIMIT)
    }

    /// The same node with another state of its algorithm. For checkers only, which may put a
    /// simpler state that behaves the same in the place of the one that was reached.
    #[must_use]
    pub fn with_algorithm(&self, algorithm: A) -> Self {
        Self { algorithm, ..*self }
    }

    /// The algorithm's own state, for invariants and for display.
    pub fn algorithm(&self) -> &A {
        &self.algorithm
    }

    /// Who this is.
    pub fn me(&self) -> NodeId {
        self.me
    }
}
