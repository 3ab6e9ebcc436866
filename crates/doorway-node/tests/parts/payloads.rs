//! The encoding of the algorithms' messages: it does not change within a version of the protocol,
//! and no bytes do harm.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use doorway_core::{Mode, NodeId, Start};
use doorway_node::locks::{AlgorithmMachine, Fault, Rule, Sends};
use doorway_node::{Name, served};
use proptest::prelude::*;

const SIZE: usize = 3;

fn rule(algorithm: &str) -> Rule {
    let permits = if algorithm == "raymond-k" { 2 } else { 1 };
    Rule::new(algorithm, SIZE, permits, 0).expect("a served algorithm")
}

fn machines(rule: &Rule) -> Vec<Box<dyn AlgorithmMachine>> {
    let lock = Name::new("x").expect("a name");
    let begin = |node| {
        let begun = rule.begin(&lock, NodeId::at(node), &Start::default(), &mut Sends::new());
        begun.expect("a good start")
    };
    (0..SIZE).map(begin).collect()
}

/// The shortest bytes that decode to a message and begin with this number, with the message in a
/// form for people. If there are several fields, their numbers differ if possible.
fn sample(machine: &dyn AlgorithmMachine, variant: u8) -> Option<(Vec<u8>, String)> {
    let fields: [fn(u8) -> u8; 3] = [|at| at, |_| 1, |_| 0];
    let bytes = |length, field: fn(u8) -> u8| {
        let fields = (1..length).map(field);
        [variant].into_iter().chain(fields).collect::<Vec<u8>>()
    };
    let tries = (1..20).flat_map(|length| fields.map(|field| bytes(length, field)));
    let mut read = tries.map(|bytes| (machine.show(&bytes), bytes));
    read.find(|(shown, _)| shown != "?").map(|(shown, bytes)| (bytes, shown))
}

/// One message of every kind of an algorithm.
fn samples(machine: &dyn AlgorithmMachine) -> Vec<(Vec<u8>, String)> {
    (0..).map_while(|variant| sample(machine, variant)).collect()
}

#[test]
fn the_messages_of_algorithms_stay_as_they_are_in_version_1() {
    let mut text = String::new();
    for algorithm in served() {
        let samples = samples(&*machines(&rule(algorithm))[0]);
        assert!((1..20).contains(&samples.len()), "{algorithm}: {samples:?}");
        for (bytes, shown) in samples {
            let hex = bytes.iter().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
            writeln!(text, "{algorithm}: {hex} {shown}").unwrap();
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/v1-payloads.txt");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
}

/// An event in a group, chosen by numbers.
#[derive(Clone, Debug)]
enum Event {
    Acquire(usize),
    Release(usize),
    /// The oldest message of some channel arrives.
    Deliver(usize),
    /// A copy of it arrives in which one byte is changed, or which ends early.
    Mutated(usize, prop::sample::Index, u8, bool),
    /// An invented message arrives.
    Garbage(usize, usize, Vec<u8>),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        (0..SIZE).prop_map(Event::Acquire),
        (0..SIZE).prop_map(Event::Release),
        any::<usize>().prop_map(Event::Deliver),
        any::<usize>().prop_map(Event::Deliver),
        (any::<usize>(), any::<prop::sample::Index>(), any::<u8>(), any::<bool>())
            .prop_map(|(line, at, byte, cut)| Event::Mutated(line, at, byte, cut)),
        (0..SIZE, 1..SIZE, 0_u8..8, prop::collection::vec(any::<u8>(), 0..24)).prop_map(
            |(to, from, variant, mut bytes)| {
                bytes.insert(0, variant);
                Event::Garbage(to, (to + from) % SIZE, bytes)
            }
        ),
    ]
}

/// All state machines of a group, and the messages between them, by sender and receiver.
struct World {
    rule: Rule,
    machines: Vec<Box<dyn AlgorithmMachine>>,
    lines: BTreeMap<(usize, usize), Vec<Vec<u8>>>,
}

impl World {
    fn act(
        &mut self,
        node: usize,
        act: impl FnOnce(&mut dyn AlgorithmMachine, &Rule, &mut Sends) -> Result<bool, Fault>,
    ) -> Result<bool, Fault> {
        let mut sends = Sends::new();
        let result = act(&mut *self.machines[node], &self.rule, &mut sends);
        for (to, payload) in sends {
            self.lines.entry((node, to.index())).or_default().push(payload.to_vec());
        }
        result
    }

    fn receive(&mut self, from: usize, to: usize, bytes: &[u8]) -> Result<bool, Fault> {
        self.act(to, |machine, rule, out| {
            machine.receive(&rule.group, NodeId::at(from), bytes, out)
        })
    }

    /// The channel that a number selects, if any is in use.
    fn line(&self, number: usize) -> Option<(usize, usize)> {
        let busy: Vec<_> = self.lines.iter().filter(|(_, line)| !line.is_empty()).collect();
        (!busy.is_empty()).then(|| *busy[number % busy.len()].0)
    }

    fn happen(&mut self, event: &Event) -> Result<bool, Fault> {
        match event {
            Event::Acquire(node) => {
                let machine = &self.machines[*node];
                if !machine.may_acquire(&self.rule.group, Mode::Exclusive) {
                    return Ok(false);
                }
                self.act(*node, |m, rule, out| m.acquire(&rule.group, Mode::Exclusive, out))
            }
            Event::Release(node) => {
                if self.machines[*node].held() == 0 {
                    return Ok(false);
                }
                self.act(*node, |machine, rule, out| machine.release(&rule.group, out))
            }
            Event::Deliver(number) => {
                let Some((from, to)) = self.line(*number) else { return Ok(false) };
                let bytes = self.lines.get_mut(&(from, to)).map(|line| line.remove(0));
                self.receive(from, to, &bytes.unwrap_or_default())
            }
            Event::Mutated(number, at, byte, cut) => {
                let Some((from, to)) = self.line(*number) else { return Ok(false) };
                let mut bytes = self.lines[&(from, to)][0].clone();
                let at = at.index(bytes.len());
                bytes[at] = *byte;
                bytes.truncate(if *cut { at + 1 } else { bytes.len() });
                self.receive(from, to, &bytes)
            }
            Event::Garbage(to, from, bytes) => self.receive(*from, *to, bytes),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// A state machine that gets invalid messages may refuse them, enter when it should not, or
    /// wait forever. It must not panic or fill the memory.
    #[test]
    fn no_payload_makes_a_machine_panic(events in prop::collection::vec(event(), 0..60)) {
        for algorithm in served() {
            let rule = rule(algorithm);
            let mut world = World { machines: machines(&rule), rule, lines: BTreeMap::new() };
            for event in &events {
                // A state machine that broke its contract is never stepped again.
                if let Err(Fault::Breached(_)) = world.happen(event) {
                    break;
                }
            }
        }
    }
}
