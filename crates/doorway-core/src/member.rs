//! A node as its driver sees it: every driver steps a [`Member`], so the contract is checked in one
//! place.

use core::fmt;

use crate::{Algorithm, CLOCK_LIMIT, Effects, Group, Mode, NodeId, Start};

/// An event at a node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Input<M> {
    /// A client wants to enter.
    Acquire(Mode),
    /// A message has arrived.
    Receive {
        /// The sender of the message.
        from: NodeId,
        /// The message.
        message: M,
    },
    /// The client inside leaves, or gives back one permit.
    Release,
    /// The waiting client gives up.
    Withdraw,
    /// Another node has crashed for good, and `heir`, a live node, takes its place.
    Failed {
        /// The node that crashed.
        node: NodeId,
        /// The node that takes its place.
        heir: NodeId,
    },
}

impl<M> Input<M> {
    /// Replace the message, if there is one.
    pub fn map<N>(self, change: impl FnOnce(M) -> N) -> Input<N> {
        match self {
            Self::Acquire(mode) => Input::Acquire(mode),
            Self::Receive { from, message } => Input::Receive { from, message: change(message) },
            Self::Release => Input::Release,
            Self::Withdraw => Input::Withdraw,
            Self::Failed { node, heir } => Input::Failed { node, heir },
        }
    }
}

/// Where a node stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Neither inside nor waiting.
    Outside,
    /// The node has an open request. With permits, it may hold some already.
    Waiting,
    /// Inside, without an open request.
    Inside,
}

/// How an algorithm broke its contract. No input causes this in a correct algorithm. Drivers do not
/// panic: the laboratory reports a violation, and a lock service takes the lock out of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breach {
    /// The node entered although no client was waiting.
    EnteredUninvited,
    /// The node sent a message to itself.
    SentToItself,
    /// The node sent a message to a node outside the group.
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

/// One node of a group: its algorithm's state, and what its client is doing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Member<A> {
    algorithm: A,
    me: NodeId,
    waiting: Option<Mode>,
    /// The mode in which permits are held. While none is held it is [`Mode::Exclusive`], so that
    /// equal nodes are equal values.
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
            panic!("the driver did not check this start: {reason}");
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

    /// Let one event happen. `out` then holds what the node does about it, and nothing older.
    ///
    /// # Panics
    ///
    /// If the driver acquires, releases or withdraws where [`Member::may_acquire`],
    /// [`Member::may_release`] or [`Member::may_withdraw`] returns false, or reports an impossible
    /// crash. These are mistakes in the driver: no message of a peer leads to them.
    pub fn step(
        &mut self,
        group: &Group,
        input: Input<A::Message>,
        out: &mut Effects<A::Message>,
    ) -> Result<(), Breach> {
        out.clear();
        match input {
            Input::Acquire(mode) => {
                assert!(
                    self.may_acquire(group, mode),
                    "a driver acquires only where `may_acquire` allows it"
                );
                self.waiting = Some(mode);
                self.algorithm.acquire(group, mode, out);
            }
            Input::Receive { from, .. } if from == self.me || !group.contains(from) => {
                out.reject("a message whose sender is not another node of the group");
            }
            Input::Receive { from, message } => self.algorithm.receive(group, from, message, out),
            Input::Release => {
                assert!(self.may_release(), "a driver releases only where `may_release` allows it");
                self.held -= 1;
                if self.held == 0 {
                    self.mode = Mode::Exclusive;
                }
                self.algorithm.release(group, out);
            }
            Input::Withdraw => {
                assert!(
                    self.may_withdraw(),
                    "a driver withdraws only where `may_withdraw` allows it"
                );
                self.waiting = None;
                self.algorithm.withdraw(group, out);
            }
            Input::Failed { node, heir } => {
                let known = group.contains(node) && group.contains(heir);
                assert!(
                    known && node != self.me && node != heir,
                    "a driver reports the crash of another node, with a live node as its heir"
                );
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

    /// Whether a client may ask now: the node has no open request, the algorithm serves the mode,
    /// and the node may hold one more permit.
    pub fn may_acquire(&self, group: &Group, mode: Mode) -> bool {
        let room = if A::INFO.permits { group.seats() } else { 1 };
        self.waiting.is_none() && self.held < room && (mode == Mode::Exclusive || A::INFO.shared)
    }

    /// Whether a client may leave now: some client is inside.
    pub fn may_release(&self) -> bool {
        self.held > 0
    }

    /// Whether the open request may be withdrawn now: there is one, and the algorithm can do it.
    pub fn may_withdraw(&self) -> bool {
        A::INFO.withdraws && self.waiting.is_some()
    }

    /// Where the node stands with respect to the lock.
    pub fn phase(&self) -> Phase {
        match (self.waiting, self.held) {
            (Some(_), _) => Phase::Waiting,
            (None, 0) => Phase::Outside,
            (None, _) => Phase::Inside,
        }
    }

    /// The number of permits the node holds: 0 outside, and 1 inside unless the algorithm serves
    /// permits.
    pub fn held(&self) -> u32 {
        self.held
    }

    /// The mode in which the node is inside; meaningful while [`Member::held`] is not zero.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The mode of the open request, or `None` if there is none.
    pub fn waiting(&self) -> Option<Mode> {
        self.waiting
    }

    /// Whether some other node may be waiting for this one to leave.
    pub fn wanted(&self) -> bool {
        self.algorithm.wanted()
    }

    /// The floor with which the node must begin again if it is forgotten now; `None` if it must be
    /// kept.
    pub fn floor(&self) -> Option<u64> {
        let floor = (self.phase() == Phase::Outside).then(|| self.algorithm.floor()).flatten();
        floor.filter(|floor| *floor < CLOCK_LIMIT)
    }

    /// A copy of this node with another state of its algorithm. Only checkers use it: they replace
    /// the state that was reached by a simpler one that behaves the same.
    #[must_use]
    pub fn with_algorithm(&self, algorithm: A) -> Self {
        Self { algorithm, ..*self }
    }

    /// The algorithm's own state, for invariants and for display.
    pub fn algorithm(&self) -> &A {
        &self.algorithm
    }

    /// The number of this node.
    pub fn me(&self) -> NodeId {
        self.me
    }
}
