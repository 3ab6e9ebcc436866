//! A counterexample is written as a script, and running the script shows the same violation.

use std::sync::Arc;

use doorway_core::algorithms::ALL;
use doorway_core::algorithms::central::{Central, Message};
use doorway_core::{Channel, Fault, Group, Mode, NodeId, Shape, Start};
use doorway_lab::check::{Case, Check, SearchTargets, Verdict, starved_by};
use doorway_lab::{AnyAlgorithm, FOREVER, Limits, Violation, World, script};

use doorway_lab::spoiled::{Spoil, SpoiledAlgorithm};

#[test]
fn every_counterexample_is_a_script_that_shows_it() {
    let mut told = 0;
    for entry in ALL {
        let info = &entry.info;
        for channel in [Channel::Fifo, Channel::Unordered] {
            let faults = Fault::ALL.map(|(_, fault)| vec![fault]);
            for faults in faults.into_iter().chain([Vec::new()]) {
                let group = info.group(3, &Shape::default()).expect("three nodes");
                let case = Case {
                    channel,
                    faults,
                    limit: 3000,
                    ..Case::new(AnyAlgorithm::from(entry), group, 2)
                };
                let report = case.run(&mut |_| true);
                let Verdict::Violated { trace, cycle, violation } = report.verdict else {
                    continue;
                };
                let (trace, cycle) = case.tell(&trace, &cycle);
                let order = if channel == Channel::Fifo { "fifo" } else { "unordered" };
                let setup = format!("{} n=3 channel={order}", info.name);
                let text = script::compose("Found.", &setup, &trace, &cycle);
                let played = script::run(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
                assert_eq!(played.violation, Some(violation), "{text}");
                told += 1;
            }
        }
    }
    assert!(told > 100, "only {told} were found");
}

/// The coordinator ignores all requests of node 2.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Deaf;

impl Spoil for Deaf {
    type Of = Central;

    fn hears(&mut self, from: NodeId, message: Message) -> Option<Message> {
        (from != NodeId(1)).then_some(message)
    }
}

#[test]
fn a_script_of_starvation_contains_the_cycle() {
    let group = Arc::new(Group::new(3).expect("three nodes"));
    let mut limits = Limits::reliable(&group, 0);
    limits.acquires[1] = (1, Mode::Exclusive);
    limits.acquires[2] = (FOREVER, Mode::Exclusive);
    let world = World::new(
        AnyAlgorithm::of::<SpoiledAlgorithm<Deaf>>(),
        group,
        &Start::default(),
        Channel::Unordered,
        limits,
    );
    let targets = SearchTargets { stuck: false, ..SearchTargets::default() };
    let check = Check { targets, ..Check::new(&world, 10_000) };
    let Verdict::Violated { trace, cycle, violation } = check.run().verdict else {
        panic!("node 2 starves");
    };
    assert_eq!(violation, Violation::Starved(NodeId(1)));
    let (commands, there) = script::tell(&world, &trace);
    assert_eq!(commands.len(), trace.len());
    assert_eq!(starved_by(&there, &cycle), Some(vec![NodeId(1)]));
    assert_eq!(starved_by(&there, &cycle[..cycle.len() - 1]), None, "it does not come back");
    assert_eq!(starved_by(&there, &[]), None, "nothing goes round");
    assert_eq!(script::tell(&there, &cycle).1, there, "it comes back");
}
