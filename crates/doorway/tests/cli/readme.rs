//! What the README tells its readers to type.

use std::fs;
use std::path::Path;
use std::process::Command;

const README: &str = include_str!("../../../../README.md");

/// Its lines of commands, without what is said about them.
fn commands() -> impl Iterator<Item = &'static str> {
    let blocks = README.split("```console\n").skip(1);
    let lines = blocks.flat_map(|block| block.split("```").next().unwrap_or("").lines());
    lines.map(|line| line.split(" #").next().unwrap_or(line).trim())
}

#[test]
fn every_command_of_doorway_works_as_written() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("readme");
    fs::create_dir_all(&folder).unwrap();
    let mut tried = 0;
    for line in commands().filter_map(|line| line.strip_prefix("doorway ")) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_doorway"));
        let done = command.args(line.split_whitespace()).current_dir(&folder).output().unwrap();
        let errors = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success() && errors.is_empty(), "doorway {line}: {errors}");
        tried += 1;
    }
    assert!(tried >= 5, "the README shows what the command can do");
    assert!(folder.join("out.svg").exists() && folder.join("out.csv").exists());
}

/// The first command is the one that `cargo xtask docs` draws the second picture with; the other
/// one is what runs this.
#[test]
fn the_two_first_commands_are_those_that_are_run_elsewhere() {
    let docs = include_str!("../../../../xtask/src/docs.rs");
    let first: Vec<&str> = commands().take(2).collect();
    let picture = first[0].split_once("--bin doorway -- ").unwrap().1;
    let picture = picture.strip_suffix(" compare.svg").unwrap();
    assert!(docs.contains(&format!("\"{picture}\"")), "{picture}");
    assert_eq!(first[1], "cargo xtask test");
    assert!(include_str!("../../../../.ci/run").contains(first[1]));
}
