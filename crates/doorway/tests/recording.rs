//! The laboratory reads what real nodes record, and finds nothing wrong with it.
//!
//! `UPDATE=1 cargo test -p doorway --test recording` writes the recordings that the tests of
//! the command draw: three nodes over TLS on this machine. Each takes a lock in turn, two of them
//! at once; then the second node is stopped and started again while the first is inside.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use doorway_lab::recording::{self, File, Recording};
use doorway_lab::trace::EventKind;
use doorway_node::{Config, Node};
use proptest::prelude::*;
use proptest::sample::Index;

#[path = "../../doorway-node/tests/common/mod.rs"]
mod common;

use common::{group, rule, start};

const WAIT: Duration = Duration::from_mins(1);

/// Let the nodes of a group record into this directory.
fn recorded(configs: &mut [Config], directory: &Path) {
    for config in configs {
        config.record = Some(directory.join(format!("{}.jsonl", config.me)));
    }
}

fn files(configs: &[Config]) -> Vec<File> {
    let path = |config: &Config| config.record.clone().expect("it records");
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("the node has written");
        File { name: path.display().to_string(), text }
    };
    configs.iter().map(path).map(read).collect()
}

fn read(configs: &[Config], lock: &str) -> Recording {
    recording::read(&files(configs), Some(lock)).expect("a recording")
}

fn count(recording: &Recording, what: impl Fn(&EventKind) -> bool) -> u64 {
    recording.trace.events.iter().filter(|event| what(&event.what)).count() as u64
}

async fn visit(node: &Node, lock: &str) {
    let guard = node.lock(lock).within(WAIT).await.expect("a lock");
    tokio::task::yield_now().await; // Let others ask meanwhile.
    drop(guard);
}

/// Wait until every message has arrived.
async fn settle(nodes: &[Node]) {
    let total = |sent: bool| -> u64 {
        let rules = nodes.iter().flat_map(|node| node.counters().rules);
        rules.map(|rule| if sent { rule.counts.sent } else { rule.counts.received }).sum()
    };
    while total(true) != total(false) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn what_is_recorded_is_what_was_counted() {
    let algorithms = ["ricart-agrawala", "suzuki-kasami", "raymond-k", "readers-writers"];
    let (scratch, mut configs) = group(3, &algorithms.map(|name| rule(name, 1)));
    recorded(&mut configs, scratch.path());
    let nodes = start(&configs).await;
    for algorithm in algorithms {
        let lock = format!("{algorithm}/x");
        for round in 0..20 {
            let (one, other) = (&nodes[round % 3], &nodes[(round + 1) % 3]);
            tokio::join!(visit(one, &lock), visit(other, &lock));
        }
    }
    settle(&nodes).await;
    for node in &nodes {
        node.stop().await;
    }
    for algorithm in algorithms {
        let recording = read(&configs, &format!("{algorithm}/x"));
        assert_eq!(recording.violation, None, "{algorithm}");
        let counts = nodes.iter().flat_map(|node| node.counters().rules);
        let counts = counts.filter(|rule| rule.algorithm == algorithm).map(|rule| rule.counts);
        let (mut sent, mut received, mut grants) = (0, 0, 0);
        for counts in counts {
            sent += counts.sent;
            received += counts.received;
            grants += counts.grants - counts.handovers;
        }
        assert_eq!(count(&recording, |what| matches!(what, EventKind::Send { .. })), sent);
        assert_eq!(count(&recording, |what| matches!(what, EventKind::Receive { .. })), received);
        assert_eq!(count(&recording, |what| *what == EventKind::Enter), grants, "{algorithm}");
        assert_eq!(count(&recording, |what| *what == EventKind::Release), grants);
    }
}

/// The run that the tests of the command draw.
async fn story(configs: &[Config]) {
    let mut nodes = start(configs).await;
    while nodes.iter().any(|node| node.counters().view.is_none()) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    visit(&nodes[0], "orders").await;
    tokio::join!(visit(&nodes[1], "orders"), visit(&nodes[2], "orders"));
    visit(&nodes[2], "stock").await;
    let guard = nodes[0].lock("orders").within(WAIT).await.expect("a lock");
    let before = nodes[0].counters().view;
    let second = nodes.remove(1);
    second.stop().await;
    drop(second); // So that the next start can use its directory.
    nodes.insert(1, Node::start(configs[1].clone()).await.expect("it starts again"));
    tokio::join!(visit(&nodes[1], "orders"), async {
        // In the next view the guard is still good.
        while nodes[0].counters().view.is_none_or(|view| Some(view) == before) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        drop(guard);
    });
    for node in &nodes {
        node.stop().await;
    }
}

#[tokio::test]
async fn a_recording_goes_on_across_views_and_restarts() {
    let (scratch, mut configs) = group(3, &[]);
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings");
    let update = std::env::var_os("UPDATE").is_some();
    recorded(&mut configs, if update { &kept } else { scratch.path() });
    if update {
        let _ = fs::remove_dir_all(&kept); // It may not be there yet.
        fs::create_dir_all(&kept).expect("a directory");
    }
    story(&configs).await;
    let recording = read(&configs, "orders");
    assert_eq!(recording.violation, None);
    let inside = |what: &EventKind| matches!(what, EventKind::View { held: 1, .. });
    assert_eq!(count(&recording, inside), 1, "the first node keeps its lock");
    assert_eq!(count(&recording, |what| *what == EventKind::Enter), 5);
    let several = recording::read(&files(&configs), None).expect_err("there are two locks");
    assert!(several.to_string().contains("orders, stock"), "{several}");
}

#[tokio::test]
async fn a_node_runs_on_if_its_recording_cannot_be_written() {
    let record = Some(PathBuf::from("/no/such/directory/node.jsonl"));
    let node = Node::start(Config { record, ..Config::default() }).await.expect("it starts");
    visit(&node, "orders").await;
    node.stop().await;
}

/// Writing to this device fails as on a disk that is full.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_node_runs_on_if_the_disk_of_its_recording_is_full() {
    let record = Some(PathBuf::from("/dev/full"));
    let node = Node::start(Config { record, ..Config::default() }).await.expect("it starts");
    for _ in 0..10_000 {
        visit(&node, "orders").await;
    }
    node.stop().await;
}

/// A pipe that nobody reads acts like a disk that is too slow.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_recording_that_is_too_slow_ends_and_holds_up_nothing() {
    let scratch = common::Scratch::new();
    let pipe = scratch.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs");
    assert!(made.success());
    let config = Config { record: Some(pipe.clone()), ..Config::default() };
    let node = Node::start(config).await.expect("it starts");
    // Each visit is recorded in two steps, of which a queue holds 65,536.
    let visits = 40_000;
    for _ in 0..visits {
        visit(&node, "orders").await;
    }
    let reader = std::thread::spawn(move || fs::read_to_string(pipe).expect("text"));
    node.stop().await;
    let text = reader.join().expect("it reads");
    assert_eq!(text.lines().last(), Some("{\"end\":\"overflow\"}"));
    let files = [File { name: "pipe".to_owned(), text }];
    let recording = recording::read(&files, None).expect("what there is can be read");
    assert_eq!(recording.violation, None);
    let entries = count(&recording, |what| *what == EventKind::Enter);
    assert!((1..visits).contains(&entries), "{entries}");
}

/// Damage to a file: a line is missing, duplicated or moved, a byte is changed, or the end is cut.
#[derive(Clone, Debug)]
enum Damage {
    Gone(Index),
    Twice(Index, Index),
    Moved(Index, Index),
    Byte(Index, u8),
    Cut(Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<Index>;
    prop_oneof![
        at().prop_map(Damage::Gone),
        (at(), at()).prop_map(|(from, to)| Damage::Twice(from, to)),
        (at(), at()).prop_map(|(from, to)| Damage::Moved(from, to)),
        (at(), prop_oneof![any::<u8>(), b'0'..=b'9']).prop_map(|(at, byte)| Damage::Byte(at, byte)),
        at().prop_map(Damage::Cut),
    ]
}

/// The text of a file after damage.
fn damaged(text: &str, damage: &Damage) -> String {
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut bytes = text.as_bytes().to_vec();
    if bytes.is_empty() {
        return String::new();
    }
    let last = lines.len();
    match damage {
        Damage::Gone(at) => drop(lines.remove(at.index(last))),
        Damage::Twice(from, to) => lines.insert(to.index(last), lines[from.index(last)]),
        Damage::Moved(from, to) => lines.swap(from.index(last), to.index(last)),
        Damage::Byte(at, byte) => {
            let at = at.index(bytes.len());
            bytes[at] = *byte;
            return String::from_utf8_lossy(&bytes).into_owned();
        }
        Damage::Cut(at) => {
            bytes.truncate(at.index(bytes.len()));
            return String::from_utf8_lossy(&bytes).into_owned();
        }
    }
    lines.concat()
}

/// The recordings that are kept for the tests.
fn kept() -> Vec<File> {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings");
    let file = |node| {
        let name = format!("n{node}.jsonl");
        let text = fs::read_to_string(kept.join(&name)).expect("it is kept");
        File { name, text }
    };
    (1..=3).map(file).collect()
}

/// Is something wrong with these files, as far as the laboratory can tell?
fn is_found_wrong(files: &[File]) -> bool {
    recording::read(files, Some("orders")).map_or(true, |found| found.violation.is_some())
}

/// Every line about the lock that says one of these things, as file and line.
fn lines_that_say(files: &[File], said: &[&str]) -> Vec<(usize, usize)> {
    let says = |line: &str| said.iter().any(|what| line.contains(&format!("\"did\":\"{what}\"")));
    let of = |(file, File { text, .. }): (usize, &File)| -> Vec<(usize, usize)> {
        let lines = text.lines().enumerate();
        let about = lines.filter(|(_, line)| line.contains("\"lock\":\"orders\"") && says(line));
        about.map(|(line, _)| (file, line)).collect()
    };
    files.iter().enumerate().flat_map(of).collect()
}

/// The files with one line replaced by these.
fn with_line(files: &[File], (file, line): (usize, usize), new: &[&str]) -> Vec<File> {
    let mut files = files.to_vec();
    let mut lines: Vec<&str> = files[file].text.lines().collect();
    lines.splice(line..=line, new.iter().copied());
    files[file].text = lines.join("\n") + "\n";
    files
}

#[test]
fn every_line_counts() {
    let files = kept();
    assert!(!is_found_wrong(&files));
    let line = |(file, line): (usize, usize)| files[file].text.lines().nth(line).expect("a line");
    let mut seen = 0;
    for place in lines_that_say(&files, &["acquire", "enter", "send", "receive", "release"]) {
        seen += 1;
        let (text, name) = (line(place), &files[place.0].name);
        let twice = with_line(&files, place, &[text, text]);
        assert!(is_found_wrong(&twice), "{name}, line {} is there twice", place.1 + 1);
        let gone = with_line(&files, place, &[]);
        // The last node to leave may as well have stopped inside.
        let last = text.contains("\"release\"")
            && !files[place.0].text.lines().skip(place.1 + 1).any(|line| line.contains("orders"));
        assert!(last || is_found_wrong(&gone), "{name}, line {} is gone: {text}", place.1 + 1);
    }
    for place in lines_that_say(&files, &["send"]) {
        let text = line(place);
        let other = text.replace("Request(", "Request(9").replace("\"Reply\"", "\"Request(1)\"");
        assert_ne!(text, other, "a message that is changed");
        let changed = with_line(&files, place, &[&other]);
        assert!(is_found_wrong(&changed), "line {} has another message", place.1 + 1);
    }
    assert!(seen > 20, "only {seen} lines were tried");
}

/// The entries and exits of each node, in order.
fn visits(recording: &Recording) -> Vec<Vec<&EventKind>> {
    let node = |node| {
        let own = recording.trace.events.iter().filter(move |event| event.node.0 == node);
        own.map(|event| &event.what)
            .filter(|what| matches!(what, EventKind::Enter | EventKind::Release))
    };
    (0..recording.trace.size).map(|number| node(number).collect()).collect()
}

/// Does `part` have nothing that `whole` has not, in the same order?
fn is_within(part: &[&EventKind], whole: &[&EventKind]) -> bool {
    let mut rest = whole.iter();
    part.iter().all(|what| rest.any(|other| other == what))
}

proptest! {
    #[test]
    fn a_damaged_recording_is_refused_or_found_wrong_or_tells_of_no_other_visit(
        place in 0_usize..3,
        damage in damage(),
    ) {
        let mut files = kept();
        let whole = recording::read(&files, Some("orders")).expect("it is undamaged");
        files[place].text = damaged(&files[place].text, &damage);
        if let Ok(found) = recording::read(&files, Some("orders")) && found.violation.is_none() {
            let (part, whole) = (visits(&found), visits(&whole));
            let within = part.iter().zip(&whole).all(|(part, whole)| is_within(part, whole));
            prop_assert!(within, "{damage:?}: {part:?} is not within {whole:?}");
        }
    }

    #[test]
    fn no_damage_makes_the_reader_panic(
        damages in prop::collection::vec((0_usize..3, damage()), 1..6),
        garbage in any::<String>(),
    ) {
        let mut files = kept();
        for (file, damage) in damages {
            files[file].text = damaged(&files[file].text, &damage);
        }
        let _ = recording::read(&files, Some("orders"));
        let garbage = [File { name: "garbage".to_owned(), text: garbage }];
        prop_assert!(recording::read(&garbage, None).is_err());
    }
}
