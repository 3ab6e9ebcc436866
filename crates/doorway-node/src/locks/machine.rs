//! An algorithm behind a door that speaks bytes: all that the service knows of the algorithms.

use std::fmt::Debug;

use doorway_core::{Algorithm, Breach, Effects, Group, Input, Member, Mode, NodeId, Start};
use smallvec::SmallVec;

/// A message of an algorithm as it crosses the network. Most fit into the value itself.
pub type Payload = SmallVec<[u8; 24]>;

/// Messages to other nodes, in the order in which they must leave.
pub type Sends = Vec<(NodeId, Payload)>;

/// Why a machine would not do as it was told. What a peer sent is then dropped and changed nothing;
/// a breach is a mistake of ours, after which the lock is not to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The bytes are no message of the algorithm.
    #[error("the bytes are no message of this algorithm")]
    Undecodable,
    /// No correct peer sends this message now.
    #[error("no correct peer sends this: {0}")]
    Rejected(&'static str),
    /// The algorithm broke its contract.
    #[error("the algorithm broke its contract: {0:?}")]
    Breached(Breach),
}

/// One node's part in one lock. Every step says whether it led inside.
pub trait Machine: Debug + Send {
    /// Ask to be let in.
    fn acquire(&mut self, group: &Group, mode: Mode, out: &mut Sends) -> Result<bool, Fault>;

    /// Go inside if that takes no message; otherwise nothing happens.
    fn try_acquire(&mut self, group: &Group, mode: Mode) -> Result<bool, Fault>;

    /// Leave, or give back one permit.
    fn release(&mut self, group: &Group, out: &mut Sends) -> Result<bool, Fault>;

    /// A message of a peer has arrived.
    fn receive(
        &mut self,
        group: &Group,
        from: NodeId,
        payload: &[u8],
        out: &mut Sends,
    ) -> Result<bool, Fault>;

    /// May a request be made now?
    fn may_acquire(&self, group: &Group, mode: Mode) -> bool;

    /// The mode of the open request.
    fn waiting(&self) -> Option<Mode>;

    /// How many permits are held: 0 outside.
    fn held(&self) -> u32;

    /// The mode of what is held.
    fn mode(&self) -> Mode;

    /// May another node be waiting for this one?
    fn wanted(&self) -> bool;

    /// From where to start again if forgotten now; `None`: not to be forgotten.
    fn floor(&self) -> Option<u64>;

    /// A message as a person reads it.
    fn show(&self, payload: &[u8]) -> String;
}

/// The machine of one algorithm.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Typed<A>(Member<A>);

impl<A: Algorithm> Typed<A> {
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

impl<A: Algorithm> Machine for Typed<A> {
    fn acquire(&mut self, group: &Group, mode: Mode, out: &mut Sends) -> Result<bool, Fault> {
        self.step(group, Input::Acquire(mode), out)
    }

    fn try_acquire(&mut self, group: &Group, mode: Mode) -> Result<bool, Fault> {
        // No algorithm can say beforehand what it would send, but a copy of it can try.
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
}

/// Add what the algorithm sends to `out`, as bytes.
fn send<M: serde::Serialize>(mut effects: Effects<M>, out: &mut Sends) {
    out.extend(effects.drain().map(|(to, message)| (to, encode(&message))));
}

fn encode(message: &impl serde::Serialize) -> Payload {
    let flavor = postcard::ser_flavors::ExtendFlavor::new(Payload::new());
    postcard::serialize_with_flavor(message, flavor)
        .expect("messages are plain data, for which there is room in memory")
}

fn decode<A: Algorithm>(payload: &[u8]) -> Option<A::Message> {
    match postcard::take_from_bytes(payload) {
        Ok((message, [])) => Some(message),
        _ => None,
    }
}
