//! Rules: with which algorithm, and how, a set of locks is served.

use doorway_core::algorithms::{self, Task};
use doorway_core::{Algorithm, Group, Info, NodeId, Shape, Start};

use super::machine::{Machine, Typed};

/// How a set of locks is served: the algorithm, and the group arranged for it.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The description of the algorithm.
    pub info: Info,
    /// The group, arranged as the algorithm needs it.
    pub group: Group,
    /// How many times in a row the lock may pass between clients of one node while another node
    /// waits.
    pub handovers: u32,
    new_machine: fn(NodeId, &Group, &Start) -> Box<dyn Machine>,
}

/// Why a rule cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleError {
    /// No algorithm has this name.
    #[error("no algorithm is called `{0}`; `doorway list` shows all")]
    Unknown(String),
    /// The algorithm cannot be used by a lock service.
    #[error("`{0}` is not offered as a service; served are {served}", served = served().join(", "))]
    NotServed(String),
    /// The group cannot be arranged as the algorithm needs it.
    #[error("{0}")]
    Group(doorway_core::GroupError),
}

impl Rule {
    /// Make the rule by which `algorithm` serves `permits` clients at once in a group of `size`
    /// nodes.
    pub fn new(
        algorithm: &str,
        size: usize,
        permits: u32,
        handovers: u32,
    ) -> Result<Self, RuleError> {
        let found = algorithms::with(algorithm, MachineConstructor);
        let (info, new_machine) = found.ok_or_else(|| RuleError::Unknown(algorithm.to_owned()))?;
        if !info.served {
            return Err(RuleError::NotServed(algorithm.to_owned()));
        }
        // One node may hold all permits, because all clients that want one may be its own.
        let several = (permits != 1).then_some(permits);
        let shape = Shape { permits: several, seats: several, ..Shape::default() };
        let group = info.group(size, &shape).map_err(RuleError::Group)?;
        Ok(Self { info, group, handovers, new_machine })
    }

    /// The state machine of node `me` as a lock begins. A start that is impossible for the
    /// algorithm is refused.
    pub fn new_machine(
        &self,
        me: NodeId,
        start: &Start,
    ) -> Result<Box<dyn Machine>, doorway_core::GroupError> {
        start.check(&self.info, &self.group)?;
        Ok((self.new_machine)(me, &self.group, start))
    }
}

/// The names of all algorithms that a node can serve locks with.
pub fn served() -> Vec<&'static str> {
    let served = algorithms::ALL.iter().filter(|entry| entry.info.served);
    served.map(|entry| entry.info.name).collect()
}

/// Finds the constructor of an algorithm by its name.
struct MachineConstructor;

impl Task for MachineConstructor {
    type Output = (Info, fn(NodeId, &Group, &Start) -> Box<dyn Machine>);

    fn run<A: Algorithm + 'static>(self) -> Self::Output {
        (A::INFO, |me, group, start| Box::new(Typed::<A>::begin(me, group, start)))
    }
}
