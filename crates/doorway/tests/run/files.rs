//! A node that may open only few files.

use std::fs;

use crate::place::Place;

/// The line of the log about the limit of open files.
fn warnings(place: &Place) -> Vec<String> {
    let log = |name: &str| fs::read_to_string(place.file(name)).unwrap_or_default();
    let log = log("stderr") + &log("data/log");
    let is_it = |line: &&str| line.contains("the system allows fewer open files than");
    log.lines().filter(is_it).map(str::to_owned).collect()
}

#[test]
fn a_node_that_may_open_few_files_warns_and_serves() {
    let place = Place::with_files(300);
    let lines = warnings(&place);
    let [line] = &lines[..] else { panic!("{lines:?}") };
    assert!(line.contains("WARN") && line.contains("most=") && line.contains("asked="), "{line}");
    assert_eq!(place.code("run -n x -- true"), (Some(0), String::new()));
}
