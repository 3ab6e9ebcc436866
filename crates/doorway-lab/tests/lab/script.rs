//! The error messages of scripts, and the trace that a script leaves for diagrams.

use doorway_core::{Mode, NodeId};
use doorway_lab::trace::{Event, EventKind};
use doorway_lab::{Violation, script};

/// The error of a script, as `line: message`.
fn error(text: &str) -> String {
    let error = script::run(text).expect_err(text);
    format!("{}: {}", error.line, error.message)
}

#[test]
fn an_error_names_the_line_and_the_correction() {
    for (text, expected) in [
        ("", "1: the script has no 'run'; begin it with 'run ALGORITHM n=3'"),
        ("# Only a comment.\n", "1: the script has no 'run'; begin it with 'run ALGORITHM n=3'"),
        ("acquire 1", "1: 'acquire' before 'run'; begin the script with 'run ALGORITHM n=3'"),
        ("run", "1: missing algorithm; an example is 'run ricart-agrawala n=3'"),
        (
            "\nrun ricart-agrawal n=3",
            "2: there is no algorithm 'ricart-agrawal'; did you mean 'ricart-agrawala'?",
        ),
        ("run bubblesort n=3", "1: there is no algorithm 'bubblesort'"),
        ("run le-lann", "1: missing number of nodes; add an option such as n=3"),
        ("run le-lann n=0", "1: a script has 1 to 100 nodes, not 0"),
        ("run le-lann n=1000000", "1: a script has 1 to 100 nodes, not 1000000"),
        ("run le-lann n=three", "1: invalid value 'three' for 'n'; an example is n=3"),
        ("run le-lann n=3 n=4", "1: 'n' is given twice"),
        ("run le-lann n=3 fast", "1: 'fast' is not of the form OPTION=VALUE, as in n=3"),
        ("run le-lann n=3 permit=2", "1: unknown option 'permit'; did you mean 'permits'?"),
        ("run le-lann n=3 permits=2", "1: le-lann has no use for permits"),
        ("run le-lann n=3 channel=lifo", "1: unknown channel 'lifo'; use one of fifo, unordered"),
        ("run le-lann n=3 holder=4", "1: there is no node 4; nodes are numbered 1 to 3"),
        ("run le-lann n=3 holder=1,2", "1: 2 holders, but at most 1 may be inside at once"),
        (
            "run le-lann n=3 tree=oak",
            "1: 'oak' is not the shape of a tree; write chain, star, or balanced:K, \
             such as balanced:2",
        ),
        ("run le-lann n=3\nrun le-lann n=3", "2: a second 'run'; the first is in line 1"),
        ("run le-lann n=3\nquorum 1 = 1", "1: le-lann has no use for quorums"),
        ("quorum 1 = 1", "1: 'quorum' must be directly below 'run', before any other command"),
    ] {
        assert_eq!(error(text), expected, "{text:?}");
    }
}

#[test]
fn impossible_commands_are_explained() {
    for (commands, expected) in [
        ("aquire 1", "2: unknown command 'aquire'; did you mean 'acquire'?"),
        ("acquire", "2: missing node number; an example is 'acquire 1'"),
        ("acquire 4", "2: there is no node 4; nodes are numbered 1 to 3"),
        ("acquire 0", "2: there is no node 0; nodes are numbered 1 to 3"),
        ("acquire one", "2: 'one' is not a node number; nodes are numbered 1 to 3"),
        ("acquire 1 2", "2: unknown mode '2'; write 'shared', or nothing for exclusive mode"),
        ("acquire 1 shared", "2: ricart-agrawala has no shared mode; write 'acquire 1'"),
        (
            "acquire 1\nacquire 1",
            "3: node 1 is waiting already; a node makes one request at a time",
        ),
        ("acquire 1\nstabilize\nacquire 1", "4: node 1 is inside already; write 'release 1' first"),
        ("release 1", "2: node 1 is not inside, so it cannot leave"),
        ("release 1 2", "2: unexpected '2' after the command 'release'"),
        ("deliver 1", "2: missing node number; an example is 'deliver 1 2'"),
        ("deliver 1 2", "2: no such message from 1 to 2; under way: nothing"),
        ("acquire 1\ndeliver 1 2 Reply", "3: no such message from 1 to 2; under way: Request(1)"),
        ("acquire 1\ndrop 1 2 2", "3: no such message from 1 to 2; under way: Request(1)"),
        ("acquire 1\nduplicate 1 2 0", "3: no such message from 1 to 2; under way: Request(1)"),
        ("crash 1\nacquire 1", "3: node 1 has crashed"),
        ("crash 1\ncrash 1", "3: node 1 has crashed"),
        ("detect 1 2", "2: there is no crash of node 2 that node 1 has yet to detect"),
        (
            "forget 1",
            "2: node 1 cannot forget now: the lock is in use, or there is nothing to forget",
        ),
        (
            "----\n1 waits\nacquire 2",
            "4: command 'acquire 2' among effects; end the effects with a blank line",
        ),
        ("----\n# Hello.", "3: a comment among effects; put it above a command"),
        ("\n----", "3: '----' needs a command above it"),
        ("again", "2: 'again' without 'round' above it"),
        (
            "round\nacquire 1\nagain",
            "4: the world is not equal to the world at 'round', so the round cannot be repeated",
        ),
        ("round\nagain", "3: nothing happens between 'round' and 'again'"),
    ] {
        let text = format!("run ricart-agrawala n=3\n{commands}");
        assert_eq!(error(&text), expected, "{text:?}");
    }
    let fifo = "run ricart-agrawala n=2 channel=fifo holder=1\nacquire 2\ndeliver 2 1\nrelease 1
        acquire 1\ndeliver 1 2 Request";
    assert_eq!(error(fifo), "6: channels are FIFO here, so Reply has to be first");
}

#[test]
fn a_violation_ends_the_script() {
    let story = "run le-lann n=2\nacquire 2\nduplicate 1 2\n";
    let text = script::run(&format!("{story}deliver 1 2\nshow\n")).unwrap().text;
    assert!(
        text.contains("violation: node 2 rejected a second token\nnothing is under way"),
        "{text}"
    );
    let after = "5: the script continues after the violation above; end it there";
    assert_eq!(error(&format!("{story}deliver 1 2\nrelease 2")), after);
}

#[test]
fn a_lost_request_leaves_the_node_stuck() {
    let text = script::run("run ricart-agrawala n=2\nacquire 1\ndrop 1 2\n").unwrap().text;
    let stuck = "lost: 1 -> 2 Request(1)\nstuck: node 1 waits and nothing can happen any more\n";
    assert!(text.ends_with(stuck), "{text}");
}

/// The request of node 2 is lost, and the token goes to and fro between the others.
const TO_AND_FRO: &str = "run suzuki-kasami n=3
acquire 2
drop 2 1
drop 2 3
acquire 3
round
deliver 3 2
deliver 3 1
deliver 1 3
acquire 1
deliver 1 2
deliver 1 3
release 3
deliver 3 1
acquire 3
release 1
again
";

#[test]
fn starvation_is_found_although_sequence_numbers_grow() {
    let played = script::run(TO_AND_FRO).unwrap();
    assert_eq!(played.violation, Some(Violation::Starved(NodeId(1))), "{}", played.text);
    let starved = "starved: node 2 waits for ever, though messages arrive and nodes leave";
    let again = played.steps.last().unwrap();
    assert_eq!(again.effects, ["and so on for ever", starved]);
    assert_eq!(again.command, "again");
    // A message under way arrives eventually, so only the schedule makes node 2 wait.
    let blameless = TO_AND_FRO.replace("drop 2 3\n", "");
    assert_eq!(script::run(&blameless).unwrap().violation, None);
}

#[test]
fn running_the_output_of_a_script_gives_the_same_output() {
    let once = script::run("run ricart-agrawala n=3\nacquire 1\nacquire 3\n\nstabilize").unwrap();
    assert_eq!(script::run(&once.text), Ok(once));
}

#[test]
fn the_trace_counts_steps_and_begins_with_the_start() {
    let trace = script::run("run le-lann n=2\nacquire 2\nstabilize\n").unwrap().trace;
    let event = |at: f64, node: u32, what: EventKind| Event { at, node: NodeId(node), what };
    let sent = EventKind::Send { id: 0, to: NodeId(1), message: "Token".into() };
    let expected = [
        event(0.0, 0, sent),
        event(1.0, 1, EventKind::Acquire(Mode::Exclusive)),
        event(2.0, 1, EventKind::Receive { id: 0 }),
        event(2.0, 1, EventKind::Enter),
    ];
    assert_eq!(trace.events, expected);
    assert_eq!((trace.title.as_str(), trace.size), ("le-lann n=2", 2));
}
