//! A node of any algorithm, as a value.

use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use doorway_core::{
    Algorithm, Breach, Effects, Group, Info, Input, Member, Mode, NodeId, Phase, Start,
};

use super::AnyMessage;
use super::settler::{Settler, TypedSettler};

/// What a node of any algorithm can do: the methods of [`Member`].
pub(crate) trait State: Value {
    fn info(&self) -> &'static Info;
    fn me(&self) -> NodeId;
    fn phase(&self) -> Phase;
    fn held(&self) -> u32;
    fn mode(&self) -> Mode;
    fn waiting(&self) -> Option<Mode>;
    fn may_acquire(&self, group: &Group, mode: Mode) -> bool;
    fn may_release(&self) -> bool;
    fn may_withdraw(&self) -> bool;
    fn wanted(&self) -> bool;
    fn floor(&self) -> Option<u64>;
    fn step(
        &mut self,
        group: &Group,
        input: Input<AnyMessage>,
        out: &mut Effects<AnyMessage>,
    ) -> Result<(), Breach>;

    /// Begin this node anew.
    fn begin(
        &self,
        group: &Group,
        start: &Start,
        out: &mut Effects<AnyMessage>,
    ) -> Result<AnyMember, Breach>;

    /// This node with the state that its algorithm has at the beginning. It is still waiting or
    /// inside if it was.
    fn forgotten(&self, group: &Group) -> AnyMember;

    /// The settler of such nodes; `None` if they are settled as they are.
    fn settler(&self) -> Option<Box<dyn Settler>>;
    fn serves(&self, message: &AnyMessage, from: NodeId, to: NodeId) -> Option<NodeId>;

    /// The algorithm's own state.
    fn algorithm(&self) -> &dyn Any;
    fn print_algorithm(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

/// What makes a node a value: copies, comparison and hashing, without its type.
pub(crate) trait Value: Any + fmt::Debug + Send + Sync {
    fn copy(&self) -> AnyMember;
    fn equals(&self, other: &dyn State) -> bool;
    fn hash_into(&self, hasher: &mut dyn Hasher);
}

impl<S: State + Clone + Eq + Hash> Value for S {
    fn copy(&self) -> AnyMember {
        AnyMember::new(self.clone())
    }

    fn equals(&self, other: &dyn State) -> bool {
        let other: &dyn Any = other;
        other.downcast_ref() == Some(self)
    }

    fn hash_into(&self, mut hasher: &mut dyn Hasher) {
        self.hash(&mut hasher);
    }
}

/// Begin a node of algorithm `A`.
pub(super) fn begin<A: Algorithm>(
    me: NodeId,
    group: &Group,
    start: &Start,
    out: &mut Effects<AnyMessage>,
) -> Result<AnyMember, Breach> {
    let mut effects = Effects::default();
    let begun = Member::<A>::begin(me, group, start, &mut effects);
    out.clear();
    out.forward(effects, AnyMessage::new);
    begun.map(AnyMember::new)
}

impl<A: Algorithm> State for Member<A> {
    fn info(&self) -> &'static Info {
        const { &A::INFO }
    }

    fn me(&self) -> NodeId {
        self.me()
    }

    fn phase(&self) -> Phase {
        self.phase()
    }

    fn held(&self) -> u32 {
        self.held()
    }

    fn mode(&self) -> Mode {
        self.mode()
    }

    fn waiting(&self) -> Option<Mode> {
        self.waiting()
    }

    fn may_acquire(&self, group: &Group, mode: Mode) -> bool {
        self.may_acquire(group, mode)
    }

    fn may_release(&self) -> bool {
        self.may_release()
    }

    fn may_withdraw(&self) -> bool {
        self.may_withdraw()
    }

    fn wanted(&self) -> bool {
        self.wanted()
    }

    fn floor(&self) -> Option<u64> {
        self.floor()
    }

    fn step(
        &mut self,
        group: &Group,
        input: Input<AnyMessage>,
        out: &mut Effects<AnyMessage>,
    ) -> Result<(), Breach> {
        let input = input.map(|message| message.get::<A::Message>().clone());
        let mut effects = Effects::default();
        let stepped = self.step(group, input, &mut effects);
        out.clear();
        out.forward(effects, AnyMessage::new);
        stepped
    }

    fn begin(
        &self,
        group: &Group,
        start: &Start,
        out: &mut Effects<AnyMessage>,
    ) -> Result<AnyMember, Breach> {
        begin::<A>(self.me(), group, start, out)
    }

    fn forgotten(&self, group: &Group) -> AnyMember {
        AnyMember::new(self.with_algorithm(A::new(self.me(), group, &Start::default())))
    }

    fn settler(&self) -> Option<Box<dyn Settler>> {
        Some(Box::new(TypedSettler::<A>::new()))
    }

    fn serves(&self, message: &AnyMessage, from: NodeId, to: NodeId) -> Option<NodeId> {
        A::serves(message.get(), from, to)
    }

    fn algorithm(&self) -> &dyn Any {
        self.algorithm()
    }

    fn print_algorithm(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.algorithm().fmt(f)
    }
}

/// A node of some algorithm. Clones share its state until one of them takes a step.
///
/// The methods are those of [`Member`].
#[derive(Clone)]
pub struct AnyMember(Arc<dyn State>);

impl AnyMember {
    pub(crate) fn new(state: impl State) -> Self {
        Self(Arc::new(state))
    }

    pub(crate) fn state(&self) -> &dyn State {
        &*self.0
    }

    /// Let one event happen. `out` then holds what the node did about it.
    pub fn step(
        &mut self,
        group: &Group,
        input: Input<AnyMessage>,
        out: &mut Effects<AnyMessage>,
    ) -> Result<(), Breach> {
        if Arc::get_mut(&mut self.0).is_none() {
            *self = self.0.copy();
        }
        let state = Arc::get_mut(&mut self.0).expect("a copy is not shared");
        state.step(group, input, out)
    }

    /// What the algorithm declares.
    pub fn info(&self) -> &'static Info {
        self.0.info()
    }

    /// Which node this is.
    pub fn me(&self) -> NodeId {
        self.0.me()
    }

    /// Whether the node is outside, waiting or inside.
    pub fn phase(&self) -> Phase {
        self.0.phase()
    }

    /// How many permits the node holds: 0 outside, and 1 inside unless permits are served.
    pub fn held(&self) -> u32 {
        self.0.held()
    }

    /// The mode of the clients inside, meaningful while [`AnyMember::held`] is not zero.
    pub fn mode(&self) -> Mode {
        self.0.mode()
    }

    /// The mode of the open request.
    pub fn waiting(&self) -> Option<Mode> {
        self.0.waiting()
    }

    /// May a client request the lock now?
    pub fn may_acquire(&self, group: &Group, mode: Mode) -> bool {
        self.0.may_acquire(group, mode)
    }

    /// May the client release the lock now?
    pub fn may_release(&self) -> bool {
        self.0.may_release()
    }

    /// May the waiting client give up, and its request be withdrawn?
    pub fn may_withdraw(&self) -> bool {
        self.0.may_withdraw()
    }

    /// May some other node be waiting for this one to leave?
    pub fn wanted(&self) -> bool {
        self.0.wanted()
    }

    /// The floor from which the node may begin again if it is forgotten now; `None` if it must not
    /// be forgotten.
    pub fn floor(&self) -> Option<u64> {
        self.0.floor()
    }

    /// The node whose request a message serves, if that is not the request that caused it.
    pub fn serves(&self, message: &AnyMessage, from: NodeId, to: NodeId) -> Option<NodeId> {
        self.0.serves(message, from, to)
    }

    /// The algorithm's own state, for invariants of one algorithm.
    ///
    /// # Panics
    ///
    /// If the node runs another algorithm.
    pub fn algorithm<A: Algorithm>(&self) -> &A {
        self.0.algorithm().downcast_ref().expect("the node runs this algorithm")
    }

    /// The algorithm's own state as text.
    pub fn algorithm_text(&self) -> String {
        struct Text<'a>(&'a dyn State);
        impl fmt::Debug for Text<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.print_algorithm(f)
            }
        }
        format!("{:?}", Text(self.state()))
    }
}

impl fmt::Debug for AnyMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl PartialEq for AnyMember {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.equals(other.state())
    }
}

impl Eq for AnyMember {}

impl Hash for AnyMember {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash_into(state);
    }
}
