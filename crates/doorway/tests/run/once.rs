//! `doorway run --once-per`: one of all that start a command runs it in each period.
//!
//! Most tests use the longest period, of 31 days, so that none of them meets the end of one.

use std::fs;
use std::process::Output;

use crate::members::group::{Group, Pace};
use crate::network::Network;
use crate::place::{Place, Process, line_of, until};

/// Run `line` once per 31 days, under the lock `job`, with these options.
fn once(place: &Place, options: &str, line: &str) -> Output {
    let mut command = place.run(&format!("--once-per 31d {options} job"), line);
    command.current_dir(&place.directory).output().expect("it runs")
}

/// Nothing was printed, and the exit code is 0.
fn is_quiet(done: &Output) -> bool {
    done.status.code() == Some(0) && done.stdout.is_empty() && done.stderr.is_empty()
}

fn stderr(done: &Output) -> String {
    String::from_utf8(done.stderr.clone()).expect("text")
}

#[test]
fn one_of_all_runs_the_command_and_the_others_are_quiet() {
    let place = Place::new();
    let line = "echo ran >> runs; echo $DOORWAY_WINDOW $DOORWAY_LOCK > said";
    let mut commands: Vec<_> = (0..5).map(|_| place.run("--once-per 31d job", line)).collect();
    let all = commands.iter_mut().map(|it| Process::spawn(it.current_dir(&place.directory)));
    let all: Vec<_> = all.collect();
    for one in all {
        assert_eq!(one.end().code(), Some(0));
    }
    assert_eq!(fs::read_to_string(place.file("runs")).unwrap(), "ran\n");
    let said = line_of(&place.file("said"));
    let (window, lock) = said.split_once(' ').unwrap();
    let (start, end) = window.split_once('/').unwrap();
    assert!(start.ends_with("T00:00:00Z") && end.ends_with("T00:00:00Z"), "{window}");
    assert_eq!(lock, "job");
    assert!(is_quiet(&once(&place, "", "echo again")));
    let told = once(&place, "--verbose --skip-exit-code 75", "echo again");
    assert_eq!((told.status.code(), &*told.stdout), (Some(75), &b""[..]));
    let told = stderr(&told);
    assert!(
        told.contains("not run: the window ") && told.contains("taken before: sh -c"),
        "{told}"
    );
    assert!(place.inside("job", 0), "the lock itself is free");
}

#[test]
fn every_period_has_its_run() {
    let place = Place::new();
    let ran = || fs::read_to_string(place.file("runs")).unwrap_or_default();
    until("three windows had their run", || {
        let mut command = place.run("--once-per 2s job", "echo $DOORWAY_WINDOW >> runs");
        assert!(is_quiet(&command.current_dir(&place.directory).output().unwrap()));
        ran().lines().count() >= 3
    });
    let ran = ran();
    let mut windows: Vec<&str> = ran.lines().collect();
    assert!(windows.is_sorted(), "{ran}");
    windows.dedup();
    assert_eq!(windows.len(), ran.lines().count(), "no window twice: {ran}");
}

#[test]
fn a_command_that_is_killed_is_not_run_again() {
    let place = Place::new();
    assert_eq!(once(&place, "", "kill -9 $$").status.code(), Some(137));
    assert!(is_quiet(&once(&place, "", "echo again")));
    // Nor is one whose wrapper is killed.
    let place = Place::new();
    let mut command = place.run("--once-per 31d job", "echo > inside; exec sleep 100");
    let wrapper = Process::spawn(command.current_dir(&place.directory));
    until("it runs", || place.file("inside").exists());
    wrapper.signal("KILL");
    wrapper.end();
    assert!(is_quiet(&once(&place, "", "echo again")));
}

#[test]
fn a_restart_of_the_node_forgets_no_window() {
    let mut place = Place::new();
    assert_eq!(once(&place, "", "echo ran").stdout, b"ran\n");
    place.kill_node();
    place.start();
    assert!(is_quiet(&once(&place, "", "echo again")), "after a crash");
    place.end_node("TERM");
    place.start();
    assert!(is_quiet(&once(&place, "", "echo again")), "after a stop");
}

#[test]
fn a_window_in_which_the_command_could_not_start_is_given_back() {
    let place = Place::new();
    let (code, text) = place.code("run --once-per 31d job -- no-such-command");
    assert_eq!(code, Some(127), "{text}");
    let mut holder = place.run("job", "echo > inside; exec sleep 100");
    let holder = Process::spawn(holder.current_dir(&place.directory));
    until("the lock is held", || place.file("inside").exists());
    let refused = once(&place, "-n", "echo again");
    assert_eq!((refused.status.code(), refused.stdout.is_empty()), (Some(1), true));
    let text = stderr(&refused);
    assert!(text.contains("`job` is not free: held by sh -c"), "{text}");
    assert!(text.contains("; not run in the window "), "{text}");
    // Without -n it waits, but not beyond the end of the window.
    let mut brief = place.run("--once-per 1s -E 9 job", "echo again");
    let late = brief.output().unwrap();
    assert_eq!((late.status.code(), late.stdout.is_empty()), (Some(9), true), "{late:?}");
    drop(holder);
    assert_eq!(once(&place, "", "echo ran").stdout, b"ran\n");
}

#[test]
fn a_window_is_shown_and_can_be_broken() {
    let place = Place::new();
    assert_eq!(once(&place, "--label nightly", "echo ran").stdout, b"ran\n");
    let shown = place.answer("who job");
    assert!(shown.contains("nobody holds it"), "{shown}");
    assert!(shown.contains("ran      nightly (pid "), "{shown}");
    assert!(shown.contains("once per 31d, in "), "{shown}");
    let report = place.who("job");
    let line = &report["windows"][0];
    let (lock, fence) = (&line["lock"].as_str().unwrap(), &line["holder"]["fence"]);
    let fence = fence.as_str().unwrap();
    let words = format!("break {lock} --fence {fence}");
    assert!(shown.contains(&format!("to let it run again: doorway {words}")), "{shown}");
    assert!(is_quiet(&once(&place, "", "echo again")));
    place.answer(&words);
    assert!(place.who("job").get("windows").is_none());
    assert_eq!(once(&place, "", "echo again").stdout, b"again\n");
}

#[test]
fn a_wrong_command_line_is_refused_before_anything_runs() {
    let place = Place::new();
    for (words, why) in [
        ("--once-per 0.5 job", "a period has 1 s to 31 d"),
        ("--once-per 32d job", "a period has 1 s to 31 d"),
        ("--once-per daily job", "'daily' is not a time"),
        ("--once-per 1h job other", "--once-per is for one NAME"),
        ("--once-per 1h -s job", "cannot be used with"),
        ("--once-per 1h -k 2 job", "cannot be used with"),
        ("--skip-exit-code 3 job", "--once-per <PERIOD>"),
        (&format!("--once-per 1h {}", "x".repeat(190)), "at most 176 bytes, not 190"),
    ] {
        let (code, text) = place.code(&format!("run {words} -- echo ran"));
        assert_eq!(code, Some(64), "{words}: {text}");
        assert!(text.contains(why), "{words}: {text}");
    }
}

#[test]
fn without_a_node_it_ends_in_time() {
    let place = Place::empty();
    for options in ["-n", "-w 1", ""] {
        let done = once(&place, options, "echo ran");
        assert_eq!((done.status.code(), done.stdout.is_empty()), (Some(69), true), "{done:?}");
        assert_eq!(stderr(&done).lines().count(), 1, "{done:?}");
    }
}

#[test]
fn the_right_to_the_lock_is_the_right_to_its_windows() {
    let network = Network::new();
    let run = |words: &str| network.command(words).output().unwrap();
    assert_eq!(run("run --once-per 31d x -- echo ran").stdout, b"ran\n");
    assert!(is_quiet(&run("run --once-per 31d x -- echo again")));
    let refused = run("run --once-per 31d y -- echo again");
    assert_eq!(refused.status.code(), Some(77));
    assert!(stderr(&refused).contains("client tester may not acquire `y`"), "{refused:?}");
}

#[test]
fn of_three_members_one_runs_it_even_if_its_node_dies() {
    let mut group = Group::founded_at(Pace::QUICK);
    let line = "echo $DOORWAY_HOLDER >> runs";
    let all: Vec<_> = (0..3).map(|node| group.run(node, "--once-per 31d job", line)).collect();
    for one in all {
        assert_eq!(one.end().code(), Some(0));
    }
    let ran = line_of(&group.place.file("runs"));
    assert_eq!(ran.lines().count(), 1, "{ran}");
    let node = (0..3).find(|node| ran.starts_with(&format!("{}/", group.name(*node)))).unwrap();
    let other = (node + 1) % 3;
    assert!(group.answer(other, "who job").contains("once per 31d, in "));
    group.kill(node);
    group.seated(other, 2);
    for survivor in (0..3).filter(|it| *it != node) {
        let done = group.output(survivor, "run -w 60 --once-per 31d job -- echo again");
        assert!(is_quiet(&done), "{done:?}");
    }
    // A node of this group has no part in the windows of other names.
    let done = group.output(other, "run -w 60 --once-per 31d other -- echo ran");
    assert_eq!(done.stdout, b"ran\n", "{done:?}");
}
