//! A node of any algorithm, as a value.

use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use doorway_core::{
    Algorithm, Breach, Effects, Group, Info, Input, Mail, Member, Mode, NodeId, Phase, Snapshot,
    Start,
};

use super::AnyMessage;

/// A group at one moment, of any algorithm: see [`Snapshot`].
pub(crate) struct AnySnapshot {
    /// The nodes that live, in order.
    pub(crate) nodes: Vec<AnyMember>,
    /// The messages under way.
    pub(crate) mail: Vec<Mail<AnyMessage>>,
    /// How many nodes may still crash.
    pub(crate) crashes: u32,
    /// Whether waiting clients may give up.
    pub(crate) withdrawals: bool,
}

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
    fn settle(&self, group: &Group, snapshot: &mut AnySnapshot);
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

    fn settle(&self, group: &Group, snapshot: &mut AnySnapshot) {
        let typed = |node: &AnyMember| node.algorithm::<A>().clone();
        let before = std::mem::take(&mut snapshot.mail);
        let message = |mail: &Mail<AnyMessage>| {
            let Mail { id, from, to, message } = mail;
            Mail { id: *id, from: *from, to: *to, message: message.get::<A::Message>().clone() }
        };
        let mut settled = Snapshot {
            nodes: snapshot.nodes.iter().map(typed).collect(),
            mail: before.iter().map(message).collect(),
            crashes: snapshot.crashes,
            withdrawals: snapshot.withdrawals,
        };
        A::settle(group, &mut settled);
        for (node, algorithm) in snapshot.nodes.iter_mut().zip(settled.nodes) {
            if *node.algorithm::<A>() != algorithm {
                let member: &dyn Any = &*node.0;
                let member: &Self = member.downcast_ref().expect("nodes of one algorithm");
                *node = AnyMember::new(member.with_algorithm(algorithm));
            }
        }
        // Messages that have not changed go on sharing their value. Settling keeps the order.
        let mut before = before.into_iter();
        snapshot.mail.extend(settled.mail.into_iter().map(|mail| {
            let is_same =
                |old: &Mail<_>| (old.id, old.from, old.to) == (mail.id, mail.from, mail.to);
            let old =
                before.find(is_same).filter(|old| *old.message.get::<A::Message>() == mail.message);
            old.unwrap_or_else(|| mail.map(AnyMessage::new))
        }));
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

    /// Whether both are clones of one node, neither of which has taken a step since.
    pub(crate) fn is_clone_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
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
