//! Type erasure: algorithms without their types.
//!
//! Everything in the laboratory except this module is compiled once for all algorithms.
//! [`AnyAlgorithm`] knows how to begin a node of its algorithm. There are two forms of nodes,
//! because drivers need two different things.
//!
//! - [`AnyMember`] is one node as a value that is cheap to clone, compare and hash. Worlds consist
//!   of them, because a checker keeps many worlds that share most of their nodes.
//! - `Troupe` is all nodes of a group in one block, with the messages under way beside them. The
//!   simulator steps one of them millions of times and never needs a copy.
//!
//! Both hand every input to [`Member::step`](doorway_core::Member::step), the one door to a node.

mod member;
mod message;
mod settler;
mod troupe;

use std::fmt;

use doorway_core::algorithms::{self, Entry, Task};
use doorway_core::{Algorithm, Breach, Effects, Group, Info, NodeId, Start};

use crate::watch::{Watch, WatchedMember};

pub use member::AnyMember;
pub(crate) use member::State;
pub use message::AnyMessage;
pub(crate) use settler::{AnySnapshot, Catalogue, SettledGroup, Settler, UnlistedPart};
pub(crate) use troupe::{SentMessage, Slot, Troupe};

/// An algorithm known at run time: what it declares, and how its nodes begin.
#[derive(Clone, Copy)]
pub struct AnyAlgorithm {
    info: &'static Info,
    begin: Constructor,
    watch: Option<Wrapper>,
    troupe: fn(usize) -> Box<dyn Troupe>,
}

type Constructor =
    fn(NodeId, &Group, &Start, &mut Effects<AnyMessage>) -> Result<AnyMember, Breach>;
type Wrapper =
    fn(AnyMember, &Group, &Start, Effects<AnyMessage>, &mut Effects<AnyMessage>) -> AnyMember;

impl AnyAlgorithm {
    /// Erase the type of algorithm `A`.
    pub fn of<A: Algorithm>() -> Self {
        Self {
            info: const { &A::INFO },
            begin: member::begin::<A>,
            watch: None,
            troupe: |size| Box::new(troupe::TypedTroupe::<A>::new(size)),
        }
    }

    /// The algorithm called `name`, if the list has one.
    pub fn named(name: &str) -> Option<Self> {
        algorithms::with(name, Find)
    }

    /// The token algorithm called `name`, whose token one pass of `ricart-agrawala` makes; see
    /// [`doorway_core::algorithms::one_pass`].
    pub fn by_one_pass(name: &str) -> Option<Self> {
        algorithms::with_one_pass(name, Find)
    }

    /// Put a watch beside each node. Only the nodes of worlds are watched: the simulator has
    /// accounts of its own.
    #[must_use]
    pub fn watched<W: Watch>(self) -> Self {
        Self { watch: Some(WatchedMember::<W>::begin), ..self }
    }

    /// What the algorithm declares.
    pub fn info(&self) -> &'static Info {
        self.info
    }

    /// Begin one node. `out` then holds what the node did as it began.
    pub fn begin(
        &self,
        me: NodeId,
        group: &Group,
        start: &Start,
        out: &mut Effects<AnyMessage>,
    ) -> Result<AnyMember, Breach> {
        let member = (self.begin)(me, group, start, out)?;
        let Some(watch) = self.watch else { return Ok(member) };
        Ok(watch(member, group, start, std::mem::take(out), out))
    }

    /// An empty troupe with room for `size` nodes.
    pub(crate) fn troupe(&self, size: usize) -> Box<dyn Troupe> {
        (self.troupe)(size)
    }
}

/// Erases the type of an algorithm.
struct Find;

impl Task for Find {
    type Output = AnyAlgorithm;

    fn run<A: Algorithm>(self) -> AnyAlgorithm {
        AnyAlgorithm::of::<A>()
    }
}

impl From<&Entry> for AnyAlgorithm {
    fn from(entry: &Entry) -> Self {
        Self::named(entry.info.name).expect("every entry of the list has a type")
    }
}

impl fmt::Debug for AnyAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AnyAlgorithm").field(&self.info.name).finish()
    }
}
