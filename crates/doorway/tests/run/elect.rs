//! `doorway elect`: one leader, standbys, and what a supervisor is told.

#![expect(clippy::unwrap_used, reason = "a test that cannot read its files fails")]

use std::fs;
use std::process::Stdio;

use serde_json::Value;

use crate::place::{Place, Process, children, lives, signal_group, until};

/// Start a candidate whose command notes the fence and runs until it is ended.
fn candidate(place: &Place, name: &str) -> Process {
    candidate_that(place, name, "exec sleep 100")
}

/// Start a candidate whose command notes the fence and then does this.
fn candidate_that(place: &Place, name: &str, then: &str) -> Process {
    let line = format!("echo $DOORWAY_FENCE >> {name}.fences; {then}");
    let words = ["elect", "--json", "lead", "--", "sh", "-c", &line];
    let log = fs::File::create(place.file(&format!("{name}.events"))).unwrap();
    let mut command = place.command(words);
    Process::spawn(command.current_dir(&place.directory).stderr(Stdio::from(log)))
}

/// The events of a candidate so far. Other lines are messages for people.
fn events(place: &Place, name: &str) -> Vec<Value> {
    let text = fs::read_to_string(place.file(&format!("{name}.events"))).unwrap();
    let lines = text.lines().filter(|line| line.starts_with('{'));
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The kinds of the events of a candidate so far.
fn kinds(place: &Place, name: &str) -> String {
    let events = events(place, name);
    events.iter().map(|event| event["event"].as_str().unwrap()).collect::<Vec<_>>().join(" ")
}

/// The fences that the command of a candidate has found in its environment.
fn fences(place: &Place, name: &str) -> Vec<u64> {
    let text = fs::read_to_string(place.file(&format!("{name}.fences"))).unwrap_or_default();
    text.lines().map(|line| line.parse().unwrap()).collect()
}

#[test]
fn a_standby_takes_over_when_the_leader_dies() {
    let place = Place::new();
    let first = candidate(&place, "first");
    until("the first leads", || fences(&place, "first").len() == 1);
    let second = candidate(&place, "second");
    until("the second waits", || place.waiting("lead", 1));
    assert_eq!(kinds(&place, "second"), "standby");
    let command = children(first.id())[0];
    signal_group(command, "KILL");
    assert_eq!(first.end().code(), Some(137));
    assert_eq!(kinds(&place, "first"), "standby leader ended");
    assert_eq!(events(&place, "first")[2]["code"], 137);
    until("the second leads", || fences(&place, "second").len() == 1);
    assert!(fences(&place, "second")[0] > fences(&place, "first")[0]);
    let leader = &events(&place, "second")[1];
    assert_eq!(leader["fence"], fences(&place, "second")[0].to_string());
    assert_eq!((&leader["event"], &leader["name"]), (&"leader".into(), &"lead".into()));
    second.signal("TERM");
    assert_eq!(second.end().code(), Some(143));
}

#[test]
fn a_leader_that_has_lost_ends_its_command_and_waits_again() {
    let place = Place::new();
    let leader = candidate(&place, "one");
    until("it leads", || fences(&place, "one").len() == 1);
    let command = children(leader.id())[0];
    let fence = fences(&place, "one")[0];
    place.answer(&format!("break lead --fence {fence}"));
    until("it leads again", || fences(&place, "one").len() == 2);
    assert!(!lives(command));
    assert!(fences(&place, "one")[1] > fence);
    assert_eq!(kinds(&place, "one"), "standby leader lost standby leader");
    assert_eq!(events(&place, "one")[2]["fence"], fence.to_string());
}

#[test]
fn a_leader_keeps_its_lead_across_a_crash_of_the_node() {
    let mut place = Place::new();
    let leader = candidate(&place, "one");
    until("it leads", || fences(&place, "one").len() == 1);
    place.kill_node();
    place.start();
    until("it leads on", || place.inside("lead", 1));
    assert_eq!(kinds(&place, "one"), "standby leader");
    leader.signal("TERM");
    assert_eq!(leader.end().code(), Some(143));
}

#[test]
fn the_exit_code_is_that_of_the_command_and_mistakes_have_their_own() {
    let place = Place::new();
    assert_eq!(place.code("elect x -- no-such-program").0, Some(127));
    assert_eq!(place.code("elect x -- false").0, Some(1));
    assert_eq!(place.code("elect x -- true"), (Some(0), String::new()));
    let (code, text) = place.code("elect x y -- true");
    assert!(code == Some(64) && text.contains("an election has one name"), "{text}");
    let (code, text) = place.code("elect --on-lost ignore x -- true");
    assert!(code == Some(64) && text.contains("would leave two leaders"), "{text}");
    assert_eq!(place.code("elect x").0, Some(64));
}

#[test]
fn a_leader_that_is_ended_while_it_loses_does_not_lead_again() {
    let place = Place::new();
    // The command needs a while to end, and says when it has been told to.
    let then = "trap 'touch told; sleep 0.5; exit 0' TERM; touch ready; \
                while :; do sleep 0.05; done";
    let leader = candidate_that(&place, "one", then);
    until("it leads", || place.file("ready").exists());
    place.answer(&format!("break lead --fence {}", fences(&place, "one")[0]));
    until("the command is told", || place.file("told").exists());
    leader.signal("TERM");
    assert_eq!(leader.end().code(), Some(143));
    assert_eq!(kinds(&place, "one"), "standby leader lost");
    assert_eq!(fences(&place, "one").len(), 1);
}

#[test]
fn a_signal_that_the_command_has_handled_does_not_end_the_candidate() {
    let place = Place::new();
    let then = "trap 'touch asked' QUIT; touch ready; while :; do sleep 0.05; done";
    let leader = candidate_that(&place, "one", then);
    until("it leads", || place.file("ready").exists());
    leader.signal("QUIT");
    until("the command is asked", || place.file("asked").exists());
    place.answer(&format!("break lead --fence {}", fences(&place, "one")[0]));
    until("it leads again", || fences(&place, "one").len() == 2);
    assert_eq!(kinds(&place, "one"), "standby leader lost standby leader");
}
