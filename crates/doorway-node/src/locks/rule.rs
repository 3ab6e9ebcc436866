//! Rules: with which algorithm, and how, a set of locks is served.

use doorway_core::algorithms::{self, Task};
use doorway_core::{Algorithm, Group, Info, Kind, NodeId, Shape, Start};
use doorway_protocol::Name;

use super::machine::{AlgorithmMachine, Fault, Sends, TypedMachine};
use super::returns::Patience;
use crate::arrangement::{ArrangementError, Deviation, arrange, coordinator};
use crate::lock_rules::RuleConfig;

/// How a set of locks is served: the algorithm, and the group arranged for it.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The description of the algorithm.
    pub info: Info,
    /// The group, arranged as the algorithm needs it.
    pub group: Group,
    /// How many times each client that waits at a node may enter, if it comes back quickly, before
    /// the lock goes to another node that waits. If it is 0, only one client may enter.
    pub handovers: u32,
    /// Which clients come back quickly. Without it, nobody watches that, and a visit of the lock
    /// serves each client once.
    pub patience: Option<Patience>,
    begin: MachineConstructor,
    /// The names of the members, if each lock has a coordinator of its own.
    spread: Option<Vec<String>>,
    /// The keys of the rule that arrange the members; empty if there are none.
    keys: String,
    /// What the rule says about the arrangement of the members, in one line.
    pub(crate) arrangement: Option<String>,
    /// How the locks are served otherwise than the rule says.
    pub(crate) deviation: Option<Deviation>,
}

/// Begins one algorithm at a node.
pub type MachineConstructor =
    fn(NodeId, &Group, &Start, &mut Sends) -> Result<Box<dyn AlgorithmMachine>, Fault>;

/// Why a rule cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleError {
    /// No algorithm has this name.
    #[error("no algorithm is called `{0}`; `doorway list` shows all")]
    Unknown(String),
    /// The algorithm cannot be used by a lock service.
    #[error(
        "`{0}` is not offered as a service{why}; served are {served}",
        why = why_not_served(.0),
        served = served().join(", ")
    )]
    NotServed(String),
    /// The members cannot be arranged as the rule says.
    #[error("{0}")]
    Arrangement(ArrangementError),
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
        let found = algorithms::with(algorithm, FindConstructor);
        let (info, begin) = found.ok_or_else(|| RuleError::Unknown(algorithm.to_owned()))?;
        if !info.served {
            return Err(RuleError::NotServed(algorithm.to_owned()));
        }
        // One node may hold all permits, because all clients that want one may be its own.
        let several = (permits != 1).then_some(permits);
        let shape = Shape { permits: several, seats: several, ..Shape::default() };
        let group = info.group(size, &shape).map_err(RuleError::Group)?;
        Ok(Self::with_constructor(info, group, handovers, begin))
    }

    /// Make a rule for the members with these names.
    pub fn arranged(
        config: &RuleConfig,
        members: &[String],
        handovers: u32,
    ) -> Result<Self, RuleError> {
        let arranged = arrange(config, members)?;
        let found = algorithms::with(arranged.info.name, FindConstructor);
        let (info, begin) = found.ok_or_else(|| RuleError::Unknown(config.algorithm.clone()))?;
        let keys = config.arrangement.keys();
        let keys: Vec<_> = keys.iter().map(|(key, value)| format!("{key} {value}")).collect();
        let keys = keys.join(", ");
        let line = format!("locks `{}`: {}, {keys}", config.pattern, config.algorithm);
        Ok(Self {
            spread: arranged.spread.then(|| members.to_vec()),
            arrangement: (!keys.is_empty()).then_some(line),
            keys,
            patience: Some(Patience::SHORT),
            deviation: arranged.deviation,
            ..Self::with_constructor(info, arranged.group, handovers, begin)
        })
    }

    /// Make a rule for an algorithm that is not in the list of the core, for tests.
    #[doc(hidden)]
    pub fn with_constructor(
        info: Info,
        group: Group,
        handovers: u32,
        begin: MachineConstructor,
    ) -> Self {
        let (spread, keys, arrangement, deviation) = (None, String::new(), None, None);
        Self { info, group, handovers, patience: None, begin, spread, keys, arrangement, deviation }
    }

    /// The member that decides who enters a lock, if there is one.
    fn coordinator(&self, lock: &Name) -> Option<NodeId> {
        match &self.spread {
            Some(members) => Some(coordinator(lock.as_str(), members)),
            None => (self.info.kind == Kind::Central).then(|| self.group.coordinator()),
        }
    }

    /// How a lock is served: the algorithm, and how the members are arranged for it.
    pub fn title(&self, lock: &Name, members: &[String]) -> String {
        let mut title = self.info.name.to_owned();
        if let Some(node) = self.coordinator(lock)
            && let Some(name) = members.get(node.index())
        {
            title = format!("{title}, coordinator {name}");
        } else if !self.keys.is_empty() && !self.is_majority_instead() {
            title = format!("{title}, {}", self.keys);
        }
        match &self.deviation {
            Some(deviation) if self.is_majority_instead() => deviation.to_string(),
            Some(deviation) => format!("{title} ({deviation})"),
            None => title,
        }
    }

    fn is_majority_instead(&self) -> bool {
        matches!(self.deviation, Some(Deviation::Majority(_)))
    }

    /// Begin a lock with this name as node `me`. What the algorithm sends as it begins is added to
    /// `out`. A start that is impossible is refused.
    pub fn begin(
        &self,
        lock: &Name,
        me: NodeId,
        start: &Start,
        out: &mut Sends,
    ) -> Result<Box<dyn AlgorithmMachine>, Fault> {
        if !self.admits(start) {
            return Err(Fault::Rejected("the members claim holdings that exclude each other"));
        }
        if self.spread.is_none() {
            return (self.begin)(me, &self.group, start, out);
        }
        let coordinator = self.coordinator(lock).unwrap_or(NodeId(0));
        let group = self.group.clone().with_coordinator(coordinator);
        let group = group.map_err(|_| Fault::Rejected("the coordinator is not a member"))?;
        (self.begin)(me, &group, start, out)
    }

    /// Can a lock begin with these holders? If the rule has changed, they may have entered by
    /// another one, which let more of them in.
    pub(super) fn admits(&self, start: &Start) -> bool {
        start.check(&self.info, &self.group).is_ok()
    }
}

/// Why an algorithm is not served, after a comma, if there is a reason to tell.
fn why_not_served(name: &str) -> String {
    let entry = algorithms::ALL.iter().find(|entry| entry.info.name == name);
    let why = entry.and_then(|entry| entry.info.why_not_served());
    why.map_or_else(String::new, |why| format!(", because {why}"))
}

/// The names of all algorithms that a node can serve locks with.
pub fn served() -> Vec<&'static str> {
    let served = algorithms::ALL.iter().filter(|entry| entry.info.served);
    served.map(|entry| entry.info.name).collect()
}

/// Finds how to begin the algorithm of a name.
struct FindConstructor;

impl Task for FindConstructor {
    type Output = (Info, MachineConstructor);

    fn run<A: Algorithm + 'static>(self) -> Self::Output {
        (A::INFO, |me, group, start, out| {
            Ok(Box::new(TypedMachine::<A>::begin(me, group, start, out)?))
        })
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
    use crate::locks::{LockEvent, LockRequest, RuleBook, Seating, Shard, ShardEffects};

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
        let (info, begin) = FindConstructor.run::<Greeting>();
        let rule = Rule::with_constructor(info, group, 0, begin);
        let members = ["a", "b", "c"].map(str::to_owned).to_vec();
        let seating = Arc::new(Seating { members, me: NodeId(0), rules: RuleBook::of_all(rule) });
        let mut shard = Shard::new(Arc::clone(&seating), 10);
        shard.record();
        shard.stop(1);
        let mut out = ShardEffects::default();
        shard.start(1, &seating, Vec::new(), Duration::ZERO, &mut out);
        assert!(out.messages.is_empty(), "no lock has begun yet");

        let slot = shard.open(&Name::new("orders").expect("a name"));
        let request =
            LockRequest { mode: Mode::Exclusive, session: 1, reserve: 0, now: Duration::ZERO };
        let (_, fence) = shard.acquire(slot, request, &mut out);
        assert!(fence.is_some());
        let sent = out.messages.iter().map(|(to, message)| (*to, message.payload.as_slice()));
        assert_eq!(sent.collect::<Vec<_>>(), [(NodeId(1), &[0][..]), (NodeId(2), &[0])]);

        let hello = |to| LockEvent::Send { to: NodeId(to), message: "Hello".to_owned() };
        let expected = [LockEvent::Begin(Start::default()), hello(1), hello(2)];
        assert_eq!(out.records[0].events, expected);
    }
}
