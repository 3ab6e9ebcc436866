//! What the README tells its readers to type.

use std::fs;
use std::path::Path;
use std::process::{Child, Command};

const README: &str = include_str!("../../../../README.md");

/// Its lines of commands, without what is said about them.
fn commands() -> impl Iterator<Item = &'static str> {
    let blocks = README.split("```console\n").skip(1);
    let lines = blocks.flat_map(|block| block.split("```").next().unwrap_or("").lines());
    lines.map(|line| line.split(" #").next().unwrap_or(line).trim())
}

/// A node of the test's own, so that one of the user who runs it is not disturbed.
struct Node {
    process: Child,
    socket: String,
}

impl Node {
    fn start(name: &str) -> Self {
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

    fn tell<'a>(&self, command: &'a mut Command) -> &'a mut Command {
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

#[test]
fn every_command_of_doorway_works_as_written() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("readme");
    fs::create_dir_all(&folder).unwrap();
    let node = Node::start("each");
    let mut tried = 0;
    for line in commands().filter_map(|line| line.strip_prefix("doorway ")) {
        let mut command = doorway();
        let command = node.tell(&mut command).args(line.split_whitespace());
        let done = command.current_dir(&folder).output().unwrap();
        let errors = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success() && errors.is_empty(), "doorway {line}: {errors}");
        tried += 1;
    }
    assert!(tried >= 8, "the README shows what the command can do");
    assert!(folder.join("out.svg").exists());
}

/// The first command installs, which a test does not do, and then shows two processes taking turns.
#[test]
fn two_processes_take_turns_as_the_first_command_says() {
    let (install, show) = commands().next().unwrap().split_once(" && ").unwrap();
    assert_eq!(install, "cargo install --locked --path crates/doorway");
    let node = Node::start("turns");
    let folder = Path::new(env!("CARGO_BIN_EXE_doorway")).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    let shell = node.tell(&mut shell).args(["-c", show]).env("PATH", path);
    let done = shell.output().unwrap();
    let said = String::from_utf8(done.stdout).unwrap();
    let turns: Vec<&str> = said.lines().collect();
    let one = ["one enters", "one leaves", "two enters", "two leaves"];
    let two = ["two enters", "two leaves", "one enters", "one leaves"];
    assert!(turns == one || turns == two, "{turns:?}, {:?}", String::from_utf8(done.stderr));
}

#[test]
fn the_test_command_is_the_one_of_ci_and_the_picture_is_drawn_as_it_says() {
    let command = commands().nth(1).unwrap();
    assert_eq!(command, "cargo xtask test");
    assert!(include_str!("../../../../.ci/run").contains(command));
    let picture = README.split("`doorway ").find_map(|rest| rest.split_once(" compare.svg`"));
    let docs = include_str!("../../../../xtask/src/docs.rs");
    assert!(docs.contains(&format!("\"{}\"", picture.unwrap().0)));
}
