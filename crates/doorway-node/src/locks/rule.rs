//! Which algorithm serves which names.

use doorway_core::algorithms::{self, Task};
use doorway_core::{Algorithm, Group, Info, NodeId, Shape, Start};

use super::machine::{Fault, Machine, Sends, Typed};

/// The algorithm of a set of names, ready to begin.
#[derive(Clone, Debug)]
pub struct Rule {
    /// What the algorithm says of itself.
    pub info: Info,
    /// The members, arranged as it needs them.
    pub group: Group,
    /// How often the lock may pass between clients of one node while another node waits.
    pub handovers: u32,
    begin: Begin,
}

/// Begins one algorithm at a node.
type Begin = fn(NodeId, &Group, &Start, &mut Sends) -> Result<Box<dyn Machine>, Fault>;

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
        let found = algorithms::with(algorithm, FindBegin);
        let (info, begin) = found.ok_or_else(|| RuleError::Unknown(algorithm.to_owned()))?;
        if !info.served {
            return Err(RuleError::NotServed(algorithm.to_owned()));
        }
        // One node may hold all permits, for all clients that want one may be its own.
        let several = (permits != 1).then_some(permits);
        let shape = Shape { permits: several, seats: several, ..Shape::default() };
        let group = info.group(size, &shape).map_err(RuleError::Group)?;
        Ok(Self { info, group, handovers, begin })
    }

    /// Begin a lock as node `me`. What the algorithm sends as it begins is added to `out`. A start
    /// that is impossible is refused.
    pub fn begin(
        &self,
        me: NodeId,
        start: &Start,
        out: &mut Sends,
    ) -> Result<Box<dyn Machine>, Fault> {
        start
            .check(&self.info, &self.group)
            .map_err(|_| Fault::Rejected("the members cannot hold together what they say"))?;
        (self.begin)(me, &self.group, start, out)
    }
}

/// The names of the algorithms that may serve.
pub fn served() -> Vec<&'static str> {
    let served = algorithms::ALL.iter().filter(|entry| entry.info.served);
    served.map(|entry| entry.info.name).collect()
}

struct FindBegin;

impl Task for FindBegin {
    type Output = (Info, Begin);

    fn run<A: Algorithm + 'static>(self) -> Self::Output {
        (A::INFO, |me, group, start, out| Ok(Box::new(Typed::<A>::begin(me, group, start, out)?)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use doorway_core::algorithms::ricart_agrawala::RicartAgrawala;
    use doorway_core::{Effects, Mode};
    use doorway_protocol::Name;
    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::locks::{Ask, Did, Out, Setup, Shard};

    /// An algorithm that greets every other node as it begins, and then lets everyone in.
    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    struct Greeting(NodeId);

    #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    enum Message {
        Hello,
    }

    impl Algorithm for Greeting {
        type Message = Message;

        const INFO: Info = Info { name: "greeting", ..RicartAgrawala::INFO };

        fn new(me: NodeId, _group: &Group, _start: &Start) -> Self {
            Self(me)
        }

        fn start(&mut self, group: &Group, out: &mut Effects<Message>) {
            out.send_all(group.others(self.0), &Message::Hello);
        }

        fn acquire(&mut self, _group: &Group, _mode: Mode, out: &mut Effects<Message>) {
            out.enter();
        }

        fn receive(&mut self, _: &Group, _: NodeId, _: Message, _: &mut Effects<Message>) {}

        fn release(&mut self, _group: &Group, _out: &mut Effects<Message>) {}

        fn wanted(&self) -> bool {
            false
        }

        fn floor(&self) -> Option<u64> {
            None
        }
    }

    /// What an algorithm sends as it begins leaves the node, and is recorded with the beginning.
    #[test]
    fn what_an_algorithm_sends_as_it_begins_goes_out() {
        let group = Group::new(3).expect("a group of three");
        let (info, begin) = FindBegin.run::<Greeting>();
        let rule = Rule { info, group, handovers: 0, begin };
        let setup = Setup { me: NodeId(0), rules: vec![rule], keep_idle: 10 };
        let mut shard = Shard::new(Arc::new(setup));
        shard.record();
        shard.stop(1);
        let mut out = Out::default();
        shard.start(1, Vec::new(), Duration::ZERO, &mut out);
        assert!(out.steps.is_empty(), "no lock has begun yet");

        let slot = shard.open(&Name::new("orders").expect("a name"), 0);
        let ask = Ask { mode: Mode::Exclusive, session: 1, now: Duration::ZERO };
        let (_, fence) = shard.acquire(slot, ask, &mut out);
        assert!(fence.is_some());
        let sent = out.steps.iter().map(|(to, step)| (*to, step.payload.as_slice()));
        assert_eq!(sent.collect::<Vec<_>>(), [(NodeId(1), &[0][..]), (NodeId(2), &[0])]);

        let hello = |to| Did::Send { to: NodeId(to), message: "Hello".to_owned() };
        let expected = [Did::Begin(Start::default()), hello(1), hello(2)];
        assert_eq!(out.records[0].did, expected);
    }
}
