//! Which algorithm serves which names.

use doorway_core::algorithms::{self, Task};
use doorway_core::{Algorithm, Group, Info, NodeId, Shape, Start};

use super::machine::{Machine, Typed};

/// The algorithm of a set of names, ready to begin.
#[derive(Clone, Debug)]
pub struct Rule {
    /// What the algorithm says of itself.
    pub info: Info,
    /// The members, arranged as it needs them.
    pub group: Group,
    /// How often the lock may pass between clients of one node while another node waits.
    pub handovers: u32,
    new_machine: fn(NodeId, &Group, &Start) -> Box<dyn Machine>,
}

/// Why there is no such rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleError {
    /// No algorithm has this name.
    #[error("no algorithm is called `{0}`; `doorway list` shows all")]
    Unknown(String),
    /// The algorithm is not for a service.
    #[error("`{0}` is not offered as a service; served are {served}", served = served().join(", "))]
    NotServed(String),
    /// The group cannot be arranged as the algorithm needs it.
    #[error("{0}")]
    Group(doorway_core::GroupError),
}

impl Rule {
    /// The rule by which `algorithm` serves `permits` clients at once in a group of `size` nodes.
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
        // One node may hold all permits, for all clients that want one may be its own.
        let several = (permits != 1).then_some(permits);
        let shape = Shape { permits: several, seats: several, ..Shape::default() };
        let group = info.group(size, &shape).map_err(RuleError::Group)?;
        Ok(Self { info, group, handovers, new_machine })
    }

    /// Node `me` as a lock begins; a start that cannot be is refused.
    pub fn new_machine(
        &self,
        me: NodeId,
        start: &Start,
    ) -> Result<Box<dyn Machine>, doorway_core::GroupError> {
        start.check(&self.info, &self.group)?;
        Ok((self.new_machine)(me, &self.group, start))
    }
}

/// The names of the algorithms that may serve.
pub fn served() -> Vec<&'static str> {
    let served = algorithms::ALL.iter().filter(|entry| entry.info.served);
    served.map(|entry| entry.info.name).collect()
}

struct MachineConstructor;

impl Task for MachineConstructor {
    type Output = (Info, fn(NodeId, &Group, &Start) -> Box<dyn Machine>);

    fn run<A: Algorithm + 'static>(self) -> Self::Output {
        (A::INFO, |me, group, start| Box::new(Typed::<A>::begin(me, group, start)))
    }
}
