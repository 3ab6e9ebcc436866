//! The algorithms used in the locks: those of the core, the most liberal one possible, and one
//! whose driver asks twice.

use std::fmt::Debug;
use std::hash::Hash;

use doorway_core::algorithms::ricart_agrawala::RicartAgrawala;
use doorway_core::{Algorithm, Effects, Group, Info, Input, Member, Mode, NodeId, Start};
use doorway_node::locks::{Fault, Machine, Sends, Typed};
use serde::{Deserialize, Serialize};

/// A state machine that can begin a view and can be compared.
pub(crate) trait Seat: Machine + Clone + Hash + 'static {
    /// Does the world decide who enters?
    const LIBERAL: bool = false;

    fn begin(me: usize, group: &Group, start: &Start, out: &mut Sends) -> Result<Self, Fault>;

    /// This machine with its open request forgotten, if it is the one that does so.
    fn abandon(&self, _me: usize, _group: &Group) -> Option<Self> {
        None
    }
}

impl<A: Algorithm + Served + 'static> Seat for Typed<A> {
    fn begin(me: usize, group: &Group, start: &Start, out: &mut Sends) -> Result<Self, Fault> {
        Self::begin(NodeId::at(me), group, start, out)
    }

    const LIBERAL: bool = A::LIBERAL;
}

/// Which algorithms are tried.
pub(crate) trait Served {
    const LIBERAL: bool = false;
}

impl Served for RicartAgrawala {}
impl Served for doorway_core::algorithms::suzuki_kasami::SuzukiKasami {}
impl Served for doorway_core::algorithms::carvalho_roucairol::CarvalhoRoucairol {}

/// Any node may enter when no client of its view is inside. The world decides that: it lets a node
/// enter by a message that no node sends.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Liberal {
    waiting: bool,
}

/// The message that lets a node enter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Enter;

impl Served for Liberal {
    const LIBERAL: bool = true;
}

impl Algorithm for Liberal {
    type Message = Enter;

    const INFO: Info = Info { name: "liberal", ..RicartAgrawala::INFO };

    fn new(_me: NodeId, _group: &Group, _start: &Start) -> Self {
        Self { waiting: false }
    }

    fn acquire(&mut self, _group: &Group, _mode: Mode, _out: &mut Effects<Enter>) {
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

/// Ricart and Agrawala's algorithm with a driver that asks again although the request of a client
/// that gave up is still open.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Rash(Member<RicartAgrawala>);

type Message = <RicartAgrawala as Algorithm>::Message;

impl Rash {
    fn step(
        &mut self,
        group: &Group,
        input: Input<Message>,
        out: &mut Sends,
    ) -> Result<bool, Fault> {
        let mut effects = Effects::default();
        self.0.step(group, input, &mut effects).map_err(Fault::Breached)?;
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

impl Seat for Rash {
    fn begin(me: usize, group: &Group, start: &Start, _out: &mut Sends) -> Result<Self, Fault> {
        // This algorithm sends nothing as it begins.
        let begun = Member::begin(NodeId::at(me), group, start, &mut Effects::default());
        begun.map(Self).map_err(Fault::Breached)
    }

    fn abandon(&self, me: usize, group: &Group) -> Option<Self> {
        self.0.waiting()?;
        let fresh = Self::begin(me, group, &Start::default(), &mut Sends::new()).ok()?;
        Some(Self(fresh.0.with_algorithm(self.0.algorithm().clone())))
    }
}

impl Machine for Rash {
    fn acquire(&mut self, group: &Group, mode: Mode, out: &mut Sends) -> Result<bool, Fault> {
        self.step(group, Input::Acquire(mode), out)
    }

    fn try_acquire(&mut self, _group: &Group, _mode: Mode) -> Result<bool, Fault> {
        Ok(false)
    }

    fn release(&mut self, group: &Group, out: &mut Sends) -> Result<bool, Fault> {
        self.step(group, Input::Release, out)
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
        self.0.may_acquire(group, mode)
    }

    fn waiting(&self) -> Option<Mode> {
        self.0.waiting()
    }

    fn held(&self) -> u32 {
        self.0.held()
    }

    fn mode(&self) -> Mode {
        self.0.mode()
    }

    fn wanted(&self) -> bool {
        self.0.wanted()
    }

    fn floor(&self) -> Option<u64> {
        self.0.floor()
    }

    fn show(&self, _payload: &[u8]) -> String {
        String::new()
    }
}
