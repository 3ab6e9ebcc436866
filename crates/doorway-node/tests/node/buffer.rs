//! The example `buffer`: two processes, either of which is killed again and again.

#![expect(clippy::unwrap_used, reason = "where nothing can be prepared, nothing can be tested")]

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The lines of the file that is sent.
const LINES: u64 = 30_000;
/// How often a process is killed.
const KILLS: u64 = 8;
/// After how long a test gives up on what hangs.
const PATIENCE: Duration = Duration::from_mins(2);

/// The example beside this test, which is built with it.
fn example() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let example = test.parent().unwrap().parent().unwrap().join("examples/buffer");
    assert!(example.exists(), "`cargo build -p doorway-node --example buffer` builds it");
    example
}

/// A process that ends with the test.
struct Process(Child);

impl Process {
    fn start(task: &str, address: &str, file: &Path, capacity: &str) -> Self {
        let mut command = Command::new(example());
        command.arg(task).arg(address).arg(file).arg(capacity);
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(quiet.spawn().unwrap())
    }
}

impl Drop for Process {
    /// Kill it (SIGKILL).
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[track_caller]
fn await_that(what: &str, mut happened: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !happened() {
        assert!(Instant::now() < end, "this does not happen: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn each_line_arrives_once_though_processes_are_killed() {
    let directory = std::env::temp_dir().join(format!("doorway-buffer-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let (input, output) = (directory.join("in.txt"), directory.join("out.txt"));
    let lines: Vec<_> = (1..=LINES).map(|line| format!("{line} lorem ipsum\n")).collect();
    let text = lines.concat();
    fs::write(&input, &text).unwrap();
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let start = |task: &str, file| Process::start(task, &address, file, "16");
    let mut consumer = start("consume", &output);
    let mut producer = start("produce", &input);
    let written = || fs::metadata(&output).map_or(0, |file| file.len());
    for kill in 1..=KILLS {
        let part = text.len() as u64 * kill / (KILLS + 1);
        await_that("the file grows", || written() >= part);
        if kill % 2 == 0 {
            drop(producer);
            producer = start("produce", &input);
        } else {
            drop(consumer);
            consumer = start("consume", &output);
        }
    }
    await_that("the producer ends", || producer.0.try_wait().unwrap().is_some());
    assert!(producer.0.wait().unwrap().success());
    assert_eq!(fs::read_to_string(&output).unwrap(), text);
    drop(consumer);

    // A consumer that has more than the producer can have sent is told in one line.
    let consumer = start("consume", &output);
    fs::write(&input, "only one\n").unwrap();
    let wrong = Command::new(example()).args(["produce", &address]).arg(&input).arg("16").output();
    let error = String::from_utf8(wrong.unwrap().stderr).unwrap();
    let expected = format!("the consumer has {LINES} lines");
    assert!(error.contains(&expected) && error.lines().count() == 1, "{error}");
    drop(consumer);
    fs::remove_dir_all(&directory).unwrap();
}
