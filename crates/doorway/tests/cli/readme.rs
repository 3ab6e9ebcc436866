//! What the README tells its readers to type, and what it says that they will see.

#![expect(clippy::unwrap_used, reason = "a test that cannot run its command fails")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

const README: &str = include_str!("../../../../README.md");

/// Words of a line whose numbers differ from run to run.
const VARIES: [&str; 3] = ["pid", "fence", "took"];

/// Its blocks of this kind, in order.
fn blocks(kind: &str) -> impl Iterator<Item = &'static str> {
    let opening = format!("```{kind}\n");
    let starts = README.match_indices(&opening).map(|(at, opening)| at + opening.len());
    let starts: Vec<usize> = starts.collect();
    starts.into_iter().map(|start| README[start..].split("```").next().unwrap_or(""))
}

/// The commands of the blocks that show no output, without what is said about them.
fn commands() -> impl Iterator<Item = &'static str> {
    let lines = blocks("console").filter(|block| !block.starts_with("$ ")).flat_map(str::lines);
    lines.map(|line| line.split(" #").next().unwrap_or(line).trim())
}

/// The commands of the blocks that show output, each with its output.
fn transcripts() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    let shown = blocks("console").filter_map(|block| block.strip_prefix("$ "));
    shown.flat_map(|block| block.split("\n$ ")).map(|part| {
        let mut lines = part.lines();
        (lines.next().unwrap_or_default(), lines.collect())
    })
}

/// A line without the numbers that differ from run to run.
fn constant_part(line: &str) -> String {
    if !VARIES.iter().any(|word| line.contains(word)) {
        return line.to_owned();
    }
    line.chars().filter(|c| !c.is_ascii_digit() && !",.".contains(*c)).collect()
}

/// Is this what a document shows? There, a line `...` stands for any lines that are left out.
pub(crate) fn is_shown(shown: &[&str], printed: &[&str]) -> bool {
    match (shown, printed) {
        ([], _) => printed.is_empty(),
        (["..."], _) => true,
        (["...", rest @ ..], _) => (0..=printed.len()).any(|at| is_shown(rest, &printed[at..])),
        ([line, shown @ ..], [first, printed @ ..]) => {
            constant_part(line) == constant_part(first) && is_shown(shown, printed)
        }
        (_, []) => false,
    }
}

/// A node of the test's own, so that one of the user who runs it is not disturbed.
pub(crate) struct Node {
    process: Child,
    socket: String,
}

impl Node {
    pub(crate) fn start(name: &str) -> Self {
        let socket = format!("@doorway-readme-{name}-{}", std::process::id());
        let data = Path::new(env!("CARGO_TARGET_TMPDIR")).join(&socket[1..]);
        let mut serve = doorway();
        serve.args(["serve", "--local", "--socket", &socket, "--data"]).arg(data);
        let process = serve.spawn().expect("the node starts");
        let node = Self { process, socket };
        let answers = || {
            let asked = node.tell(&mut doorway()).arg("status").output();
            asked.is_ok_and(|asked| asked.status.success())
        };
        assert!((0..200).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(50));
            answers()
        }));
        node
    }

    pub(crate) fn tell<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env("DOORWAY_SOCKET", &self.socket)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.process.kill(); // However it ended, it has.
        let _ = self.process.wait();
    }
}

fn doorway() -> Command {
    Command::new(env!("CARGO_BIN_EXE_doorway"))
}

/// An empty directory in which a test runs commands.
pub(crate) fn directory(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if directory.exists() {
        fs::remove_dir_all(&directory).unwrap();
    }
    fs::create_dir_all(&directory).unwrap();
    directory
}

/// A shell that finds the command under test and runs this line.
fn shell(line: &str) -> Command {
    let programs = Path::new(env!("CARGO_BIN_EXE_doorway")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).env("PATH", path);
    shell
}

#[test]
fn every_command_of_doorway_works_as_written() {
    let directory = directory("readme");
    let node = Node::start("each");
    let mut tried = 0;
    for line in commands().filter_map(|line| line.strip_prefix("doorway ")) {
        if line.starts_with("run ") {
            continue; // A part of the first command, which has a test of its own.
        }
        let mut command = doorway();
        let command = node.tell(&mut command).args(line.split_whitespace());
        let done = command.current_dir(&directory).output().unwrap();
        let errors = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success() && errors.is_empty(), "doorway {line}: {errors}");
        tried += 1;
    }
    assert!(tried >= 6, "the README shows what the command can do");
    assert!(directory.join("out.svg").exists());
}

#[test]
fn every_command_with_output_prints_what_is_shown() {
    let directory = directory("readme-shown");
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let host = format!(" on {} ", host.trim());
    let node = Node::start("shown");
    let mut tried = 0;
    for (line, shown) in transcripts() {
        let mut shell = shell(&format!("{{ {line}; }} 2>&1"));
        let done = node.tell(&mut shell).current_dir(&directory).output().unwrap();
        // A space at the end of each line, so that a host at the end of one is found too.
        let printed = String::from_utf8(done.stdout).unwrap().replace('\n', " \n");
        let printed = printed.replace(&host, " on laptop ");
        let printed: Vec<&str> = printed.lines().map(str::trim_end).collect();
        assert!(done.status.success() && is_shown(&shown, &printed), "$ {line}\n{printed:#?}");
        tried += 1;
    }
    assert!(tried >= 7, "the README shows what commands print");
}

#[test]
fn what_is_shown_is_compared() {
    let printed = ["holds: x", "  took  0.01 s, 3 a second", "  worlds  21"];
    assert!(is_shown(&["holds: x", "  took  1.5 s, 1,000 a second", "..."], &printed));
    assert!(is_shown(&["...", "  worlds  21"], &printed));
    assert!(!is_shown(&["...", "  worlds  22"], &printed));
    assert!(!is_shown(&["holds: x"], &printed));
    assert!(!is_shown(&["holds: x", "  took  1.5 ms, 1,000 a second", "..."], &printed));
}

/// The first command installs, which a test does not do, and then shows two processes taking turns.
#[test]
fn two_processes_take_turns_as_the_first_command_says() {
    let (install, show) = blocks("console").next().unwrap().split_once(" && ").unwrap();
    assert_eq!(install, "cargo install --locked --path crates/doorway");
    let node = Node::start("turns");
    let done = node.tell(&mut shell(show)).output().unwrap();
    let printed = String::from_utf8(done.stdout).unwrap();
    let turns: Vec<&str> = printed.lines().collect();
    let one: Vec<&str> = blocks("text").next().unwrap().lines().collect();
    let two = [&one[2..], &one[..2]].concat();
    assert_eq!(one, ["one enters", "one leaves", "two enters", "two leaves"]);
    assert!(turns == one || turns == two, "{turns:?}, {:?}", String::from_utf8(done.stderr));
}

#[test]
fn the_test_command_is_the_one_of_ci_and_the_picture_is_drawn_as_it_says() {
    let command = blocks("console").nth(1).unwrap().trim();
    assert_eq!(command, "cargo xtask test");
    assert!(include_str!("../../../../.ci/run").contains(command));
    let picture = README.split("`doorway ").find_map(|rest| rest.split_once(" compare.svg`"));
    let docs = include_str!("../../../../xtask/src/docs.rs");
    assert!(docs.contains(&format!("\"{}\"", picture.unwrap().0)));
}
