//! The state machine of an algorithm behind a trait whose messages are bytes. This is all that the
//! service knows of the algorithms.

use std::fmt::Debug;
use std::hash::{Hash, Hasher};

use doorway_core::{Algorithm, Breach, Effects, Group, Input, Member, Mode, NodeId, Start};
use smallvec::SmallVec;

/// An encoded message of an algorithm. Most fit into the value itself, without a heap allocation.
pub type Payload = SmallVec<[u8; 24]>;

/// Messages to other nodes, in the order in which they must be sent.
pub type Sends = Vec<(NodeId, Payload)>;

/// Why a state machine refused a step. A refused message of a peer is dropped and changes nothing.
/// A breach is a defect of this program, after which the lock must not be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The bytes are not a message of the algorithm.
    #[error("the bytes are not a message of this algorithm")]
    Undecodable,
    /// No correct peer sends this message now.
    #[error("no correct member sends this message now: {0}")]
    Rejected(&'static str),
    /// The algorithm broke its contract.
    #[error("the algorithm broke its contract: {0}")]
    Breached(Breach),
}

/// One node's part in one lock. Every step returns whether the node entered.
pub trait AlgorithmMachine: Debug + Send {
    /// Ask for the lock.
    fn acquire(&mut self, group: &Group, mode: Mode, out: &mut Sends) -> Result<bool, Fault>;

    /// Enter if that takes no message; otherwise change nothing.
    fn try_acquire(&mut self, group: &Group, mode: Mode) -> Result<bool, Fault>;

    /// Release the lock, or give back one permit.
    fn release(&mut self, group: &Group, out: &mut Sends) -> Result<bool, Fault>;

    /// Give up the open request.
    fn withdraw(&mut self, group: &Group, out: &mut Sends) -> Result<bool, Fault>;

    /// Handle a message of another member.
    fn receive(
        &mut self,
        group: &Group,
        from: NodeId,
        payload: &[u8],
        out: &mut Sends,
    ) -> Result<bool, Fault>;

    /// May the node ask for the lock now?
    fn may_acquire(&self, group: &Group, mode: Mode) -> bool;

    /// Is there an open request, and can the algorithm withdraw it?
    fn may_withdraw(&self) -> bool;

    /// The mode of the open request, if there is one.
    fn waiting(&self) -> Option<Mode>;

    /// How many permits the node holds; 0 while it is outside.
    fn held(&self) -> u32;

    /// The mode in which the lock is held.
    fn mode(&self) -> Mode;

    /// May another node be waiting for this node to release the lock?
    fn wanted(&self) -> bool;

    /// The number from which the lock must start again if it is removed from memory now; `None` if
    /// it must stay in memory.
    fn floor(&self) -> Option<u64>;

    /// A message in a form for people.
    fn show(&self, payload: &[u8]) -> String;

    /// A copy of the machine, for searches and simulations.
    fn boxed(&self) -> Box<dyn AlgorithmMachine>;

    /// Feed the state of the machine to a hash.
    fn feed(&self, state: &mut dyn Hasher);
}

impl Clone for Box<dyn AlgorithmMachine> {
    fn clone(&self) -> Self {
        (**self).boxed()
    }
}

impl Hash for dyn AlgorithmMachine {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.feed(state);
    }
}

/// The state machine of one algorithm.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TypedMachine<A>(Member<A>);

impl<A: Algorithm> TypedMachine<A> {
    /// Begin as node `me`. What the algorithm sends as it begins is added to `out`.
    ///
    /// # Panics
    ///
    /// If [`Start::check`] refuses `start`.
    pub fn begin(me: NodeId, group: &Group, start: &Start, out: &mut Sends) -> Result<Self, Fault> {
        let mut effects = Effects::default();
        let begun = Member::begin(me, group, start, &mut effects);
        let member = begun.map_err(Fault::Breached)?;
        send(effects, out);
        Ok(Self(member))
    }

    fn step(
        &mut self,
        group: &Group,
        input: Input<A::Message>,
        out: &mut Sends,
    ) -> Result<bool, Fault> {
        // An empty buffer owns no memory, so a step that sends nothing allocates nothing.
        let mut effects = Effects::default();
        self.0.step(group, input, &mut effects).map_err(Fault::Breached)?;
        if let Some(reason) = effects.rejected() {
            return Err(Fault::Rejected(reason));
        }
        let entered = effects.entered();
        send(effects, out);
        Ok(entered)
    }
}

impl<A: Algorithm> AlgorithmMachine for TypedMachine<A> {
    fn acquire(&mut self, group: &Group, mode: Mode, out: &mut Sends) -> Result<bool, Fault> {
        self.step(group, Input::Acquire(mode), out)
    }

    fn try_acquire(&mut self, group: &Group, mode: Mode) -> Result<bool, Fault> {
        // An algorithm cannot say in advance what it would send, so a copy of it tries.
        let mut trial = self.clone();
        let mut sends = Sends::new();
        let entered = trial.step(group, Input::Acquire(mode), &mut sends)? && sends.is_empty();
        if entered {
            *self = trial;
        }
        Ok(entered)
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
        let message = decode::<A>(payload).ok_or(Fault::Undecodable)?;
        self.step(group, Input::Receive { from, message }, out)
    }

    fn may_acquire(&self, group: &Group, mode: Mode) -> bool {
        self.0.may_acquire(group, mode)
    }

    fn may_withdraw(&self) -> bool {
        self.0.may_withdraw()
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

    fn show(&self, payload: &[u8]) -> String {
        decode::<A>(payload).map_or_else(|| "?".to_owned(), |message| format!("{message:?}"))
    }

    fn boxed(&self) -> Box<dyn AlgorithmMachine> {
        Box::new(self.clone())
    }

    fn feed(&self, mut state: &mut dyn Hasher) {
        self.hash(&mut state);
    }
}

/// Add what the algorithm sends to `out`, as bytes.
fn send<M: serde::Serialize>(mut effects: Effects<M>, out: &mut Sends) {
    out.extend(effects.drain().map(|(to, message)| (to, encode(&message))));
}

fn encode(message: &impl serde::Serialize) -> Payload {
    let flavor = postcard::ser_flavors::ExtendFlavor::new(Payload::new());
    postcard::serialize_with_flavor(message, flavor)
        .expect("encoding plain data into memory cannot fail")
}

fn decode<A: Algorithm>(payload: &[u8]) -> Option<A::Message> {
    match postcard::take_from_bytes(payload) {
        Ok((message, [])) => Some(message),
        _ => None,
    }
}
