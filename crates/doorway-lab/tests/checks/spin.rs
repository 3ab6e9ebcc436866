//! A comparison with Spin. Models of two algorithms, written independently in Promela from the
//! rules of their papers, reach as many states as our worlds, are as safe, and have no starvation.
//!
//! `tests/spin/group.pml` says what is modelled, and what its steps and its fairness are. These
//! tests need Spin and a C compiler (on Debian, the packages `spin` and `gcc`), so they are ignored
//! unless asked for. `cargo xtask test` runs them.

use std::fs;
use std::mem::discriminant;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use doorway_core::algorithms::ricart_agrawala::{self, RicartAgrawala};
use doorway_core::algorithms::suzuki_kasami::{self, SuzukiKasami};
use doorway_core::{Algorithm, Channel, NodeId, Shape, Start};
use doorway_lab::{AnyAlgorithm, Limits, Violation, World};

use crate::opinions::{self, Opinion};
use doorway_lab::spoiled::{Message, Sends, Spoil, SpoiledAlgorithm};

/// A search for a broken assertion, without the reduction that would leave states out.
const SAFETY: &str = "-DSAFETY -DNOCLAIM -DNOREDUCE";
/// A search as above with a limit on the depth. A state is searched again when a shorter way to it
/// is found.
const BOUNDED: &str = "-DSAFETY -DNOCLAIM -DNOREDUCE -DREACH";
/// A search for cycles, with memory for fairness to nine processes.
const CYCLES: &str = "-DNFAIR=3";

/// A program that Spin has generated to check a model.
struct Checker {
    directory: PathBuf,
}

/// The result of that program.
#[derive(Debug)]
struct SpinResult {
    states: usize,
    errors: usize,
    /// Did the search reach its depth limit?
    cut: bool,
}

/// Run a program that must succeed. Returns its output.
fn run(command: &mut Command) -> String {
    let done = command.output().expect("an installed program starts");
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{command:?}: {said}{errors}");
    said
}

impl Checker {
    /// Let Spin translate a model, with these definitions, into a program for this search.
    fn build(model: &str, choices: &str, search: &str) -> Self {
        let name = format!("{model}{choices}{search}").replace(' ', "");
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("spin").join(name);
        fs::create_dir_all(&directory).expect("a directory to build in");
        let source = format!("{}/tests/spin/{model}.pml", env!("CARGO_MANIFEST_DIR"));
        let mut spin = Command::new("spin");
        spin.args(choices.split(' ')).args(["-a", &source]);
        let said = run(spin.current_dir(&directory));
        assert!(!said.contains("Error"), "{said}");
        let mut compiler = Command::new("gcc");
        // Warnings would be about the code that Spin has generated.
        compiler.args(search.split(' ')).args(["-w", "-O1", "-o", "pan", "pan.c"]);
        run(compiler.current_dir(&directory));
        Self { directory }
    }

    /// Search up to this depth.
    fn search(&self, depth: usize, options: &str) -> SpinResult {
        let mut pan = Command::new(self.directory.join("pan"));
        pan.arg(format!("-m{depth}")).args(options.split_whitespace());
        let said = run(pan.current_dir(&self.directory));
        let number = |text: Option<&str>| {
            let number = text.and_then(|text| text.trim().parse().ok());
            number.unwrap_or_else(|| panic!("no number: {said}"))
        };
        let line = |marker: &str| said.lines().find_map(|line| line.split_once(marker));
        SpinResult {
            states: number(line("states, stored").map(|(before, _)| before)),
            errors: number(line("errors:").map(|(_, after)| after)),
            cut: said.contains("max search depth too small"),
        }
    }

    /// Search to the end.
    fn exhaust(&self, options: &str) -> SpinResult {
        let found = self.search(100_000, options);
        assert!(!found.cut, "{found:?}");
        found
    }

    /// The least number of steps that lead to an error.
    fn shortest(&self) -> Option<usize> {
        (1..20).find(|depth| self.search(*depth, "").errors > 0)
    }
}

/// The result of our checker for three nodes that each make `asks` requests over FIFO channels.
fn ours<A: Algorithm>(asks: u32) -> Opinion {
    let group = Arc::new(A::INFO.group(3, &Shape::default()).expect("small groups exist"));
    let limits = Limits::reliable(&group, asks);
    opinions::ours(&World::new(
        AnyAlgorithm::of::<A>(),
        group,
        &Start::default(),
        Channel::Fifo,
        limits,
    ))
}

/// Check that the model is as safe as our worlds, and has as many states.
fn agrees<A: Algorithm>(model: &str, asks: u32) {
    let found = Checker::build(model, &format!("-DASKS={asks}"), SAFETY).exhaust("");
    println!("{model}, {asks} each: {found:?}");
    assert_eq!((found.errors, Opinion::Holds(found.states)), (0, ours::<A>(asks)), "{model}");
}

/// The nodes that never starve if all nodes ask again and again.
fn served(model: &str, spoil: &str) -> Vec<u32> {
    let checker = Checker::build(model, format!("-DFOREVER {spoil}").trim(), CYCLES);
    let served = |node: &u32| checker.exhaust(&format!("-a -f -N served_{node}")).errors == 0;
    (1..=3).filter(served).collect()
}

#[test]
#[ignore = "it needs Spin"]
fn spin_reaches_as_many_states_as_we_do_worlds() {
    agrees::<RicartAgrawala>("ricart_agrawala", 1);
    agrees::<RicartAgrawala>("ricart_agrawala", 2);
    agrees::<SuzukiKasami>("suzuki_kasami", 1);
    agrees::<SuzukiKasami>("suzuki_kasami", 2);
}

#[test]
#[ignore = "it needs Spin"]
fn spin_finds_both_safe_when_all_ask_forever() {
    let states = |model: &str, numbers: &str| {
        let choices = format!("-DFOREVER {numbers}");
        let found = Checker::build(model, choices.trim(), SAFETY).exhaust("");
        assert_eq!(found.errors, 0, "{model} {numbers}: {found:?}");
        found.states
    };
    // A larger cycle of numbers only adds rotations of the same states, so nothing is missed.
    let (five, seven) = ("-DNUMBERS=5", "-DNUMBERS=7");
    let turns = [states("ricart_agrawala", five) / 5, states("ricart_agrawala", seven) / 7];
    assert_eq!(turns, [1_833; 2]);
    assert_eq!(states("suzuki_kasami", ""), 29_160);
}

#[test]
#[ignore = "it needs Spin"]
fn spin_finds_no_starvation() {
    assert_eq!(served("ricart_agrawala", ""), [1, 2, 3]);
    assert_eq!(served("suzuki_kasami", ""), [1, 2, 3]);
}

#[test]
#[ignore = "it needs Spin"]
fn spin_finds_starvation_if_a_rule_is_broken() {
    assert_eq!(served("ricart_agrawala", "-DFORGETFUL"), [0; 0]);
    assert_eq!(ours::<SpoiledAlgorithm<Forgetful>>(1), stuck(10));
    // Without the queue there is no deadlock, and no finite run shows that node 3 may starve.
    assert_eq!(served("suzuki_kasami", "-DLOWEST"), [1, 2]);
}

#[test]
#[ignore = "it needs Spin"]
fn spin_needs_as_many_steps_to_let_two_nodes_in() {
    let shortest = |model, choices| Checker::build(model, choices, BOUNDED).shortest();
    assert_eq!(shortest("ricart_agrawala", "-DASKS=1 -DHASTY"), Some(10));
    assert_eq!(ours::<SpoiledAlgorithm<EarlyEntry>>(1), together(10));
    assert_eq!(shortest("suzuki_kasami", "-DASKS=1 -DTWICE"), Some(8));
    assert_eq!(ours::<SpoiledAlgorithm<SecondToken>>(1), together(8));
}

fn together(steps: usize) -> Opinion {
    Opinion::Violated(steps, discriminant(&Violation::Together(Vec::new())))
}

fn stuck(steps: usize) -> Opinion {
    Opinion::Violated(steps, discriminant(&Violation::Stuck(Vec::new())))
}

/// Ricart & Agrawala without deferral: every request is answered at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct EarlyEntry {
    asked: Option<NodeId>,
}

impl Spoil for EarlyEntry {
    type Of = RicartAgrawala;

    fn hears(&mut self, from: NodeId, message: Message<Self>) -> Option<Message<Self>> {
        let asks = matches!(message, ricart_agrawala::Message::Request(_));
        self.asked = asks.then_some(from);
        Some(message)
    }

    fn change(&mut self, mut sends: Sends<Self>) -> Sends<Self> {
        use ricart_agrawala::Message::Reply;
        sends.retain(|(_, message)| *message != Reply);
        sends.extend(self.asked.take().map(|node| (node, Reply)));
        sends
    }
}

/// Ricart & Agrawala without rule 4: deferred replies are never sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Forgetful {
    hearing: bool,
}

impl Spoil for Forgetful {
    type Of = RicartAgrawala;

    fn hears(&mut self, _from: NodeId, message: Message<Self>) -> Option<Message<Self>> {
        self.hearing = true;
        Some(message)
    }

    fn change(&mut self, mut sends: Sends<Self>) -> Sends<Self> {
        let hearing = std::mem::take(&mut self.hearing);
        sends.retain(|(_, message)| hearing || *message != ricart_agrawala::Message::Reply);
        sends
    }
}

/// Suzuki & Kasami with a second token for the second in the queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct SecondToken;

impl Spoil for SecondToken {
    type Of = SuzukiKasami;

    fn change(&mut self, mut sends: Sends<Self>) -> Sends<Self> {
        use suzuki_kasami::Message::Privilege;
        if let Some((_, Privilege(token))) = sends.last().cloned() {
            let second = token.queue.get(1).copied();
            sends.extend(second.map(|second| (second, Privilege(token))));
        }
        sends
    }
}
