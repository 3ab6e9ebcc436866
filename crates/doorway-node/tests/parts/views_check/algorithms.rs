//! The algorithms in the locks that are searched: those of the core, the most liberal one possible,
//! and one that asks twice.

use std::fmt::Debug;
use std::hash::{Hash, Hasher};

use doorway_core::algorithms::ricart_agrawala::RicartAgrawala;
use doorway_core::{Algorithm, Effects, Group, Info, Input, Member, Mode, NodeId, Start};
use doorway_node::locks::{AlgorithmMachine, Fault, MachineConstructor, Rule, Sends, TypedMachine};
use serde::{Deserialize, Serialize};

use crate::nodes::LINGERING;

/// The rule of an algorithm of the core.
pub(crate) fn served(algorithm: &str, size: usize) -> Rule {
    Rule::new(algorithm, size, 1, 1).expect("it needs nothing")
}

/// Let the locks of a rule linger, with two rounds in each visit.
pub(crate) fn lingering(mut rule: Rule) -> Rule {
    rule.handovers = 2;
    rule.patience = Some(LINGERING);
    rule
}

/// The rule of the most liberal algorithm.
pub(crate) fn liberal(size: usize) -> Rule {
    custom(Liberal::INFO, size, |me, group, start, out| {
        Ok(Box::new(TypedMachine::<Liberal>::begin(me, group, start, out)?))
    })
}

/// The rule of the algorithm that asks twice.
pub(crate) fn rash(size: usize) -> Rule {
    custom(RicartAgrawala::INFO, size, |me, group, start, _| {
        // This algorithm sends nothing as it begins.
        let member = Member::begin(me, group, start, &mut Effects::default());
        Ok(Box::new(Rash { me, member: member.map_err(Fault::Breached)?, again: false }))
    })
}

fn custom(info: Info, size: usize, begin: MachineConstructor) -> Rule {
    Rule::with_constructor(info, served("ricart-agrawala", size).group, 1, begin)
}

/// Any node may enter when no client of its view is inside. The world decides that: it lets a node
/// enter by a message that no node sends.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Liberal {
    waiting: bool,
}

/// The message that lets a node enter. It is encoded as no bytes at all.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
struct Enter;

impl Algorithm for Liberal {
    type Message = Enter;

    const INFO: Info = Info { name: "liberal", ..RicartAgrawala::INFO };

    fn new(_me: NodeId, _group: &Group, _start: &Start) -> Self {
        Self { waiting: false }
    }

    fn acquire(&mut self, group: &Group, _mode: Mode, out: &mut Effects<Enter>) {
        if group.size() == 1 {
            return out.enter(); // Nobody could send the message.
        }
        self.waiting = true;
    }

    fn receive(&mut self, _: &Group, _from: NodeId, _message: Enter, out: &mut Effects<Enter>) {
        self.waiting = false;
        out.enter();
    }

    fn release(&mut self, _group: &Group, _out: &mut Effects<Enter>) {}

    fn wanted(&self) -> bool {
        true
    }

    fn floor(&self) -> Option<u64> {
        Some(0)
    }
}

/// Ricart and Agrawala's algorithm with a driver that asks again although a request is open.
#[derive(Clone, Debug, Hash)]
struct Rash {
    me: NodeId,
    member: Member<RicartAgrawala>,
    /// Has it asked again for the open request?
    again: bool,
}

type Message = <RicartAgrawala as Algorithm>::Message;

impl Rash {
    fn step(
        &mut self,
        group: &Group,
        input: Input<Message>,
        out: &mut Sends,
    ) -> Result<bool, Fault> {
        let mut effects = Effects::default();
        self.member.step(group, input, &mut effects).map_err(Fault::Breached)?;
        if let Some(reason) = effects.rejected() {
            return Err(Fault::Rejected(reason));
        }
        let entered = effects.entered();
        for (to, message) in effects.drain() {
            let bytes = postcard::to_stdvec(&message).map_err(|_| Fault::Undecodable)?;
            out.push((to, bytes.into()));
        }
        Ok(entered)
    }
}

impl AlgorithmMachine for Rash {
    fn acquire(&mut self, group: &Group, mode: Mode, out: &mut Sends) -> Result<bool, Fault> {
        self.again = self.member.waiting().is_some();
        if self.again {
            // Only a member that does not wait may ask.
            let fresh = Member::begin(self.me, group, &Start::default(), &mut Effects::default());
            let algorithm = self.member.algorithm().clone();
            self.member = fresh.map_err(Fault::Breached)?.with_algorithm(algorithm);
        }
        self.step(group, Input::Acquire(mode), out)
    }

    fn try_acquire(&mut self, _group: &Group, _mode: Mode) -> Result<bool, Fault> {
        Ok(false)
    }

    fn release(&mut self, group: &Group, out: &mut Sends) -> Result<bool, Fault> {
        self.step(group, Input::Release, out)
    }

    fn withdraw(&mut self, group: &Group, out: &mut Sends) -> Result<bool, Fault> {
        self.step(group, Input::Withdraw, out)
    }

    fn receive(
        &mut self,
        group: &Group,
        from: NodeId,
        payload: &[u8],
        out: &mut Sends,
    ) -> Result<bool, Fault> {
        let message = postcard::from_bytes(payload).map_err(|_| Fault::Undecodable)?;
        self.step(group, Input::Receive { from, message }, out)
    }

    fn may_acquire(&self, group: &Group, mode: Mode) -> bool {
        self.member.may_acquire(group, mode) || self.member.waiting().is_some() && !self.again
    }

    fn may_withdraw(&self) -> bool {
        self.member.may_withdraw()
    }

    fn waiting(&self) -> Option<Mode> {
        self.member.waiting()
    }

    fn held(&self) -> u32 {
        self.member.held()
    }

    fn mode(&self) -> Mode {
        self.member.mode()
    }

    fn wanted(&self) -> bool {
        self.member.wanted()
    }

    fn floor(&self) -> Option<u64> {
        self.member.floor()
    }

    fn show(&self, _payload: &[u8]) -> String {
        String::new()
    }

    fn boxed(&self) -> Box<dyn AlgorithmMachine> {
        Box::new(self.clone())
    }

    fn feed(&self, mut state: &mut dyn Hasher) {
        self.hash(&mut state);
    }
}
