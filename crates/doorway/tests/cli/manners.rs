//! What every command line tool owes its users: help, completions, pages, and exit codes.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;
use std::process::Stdio;

use crate::{answer, doorway, failing};

#[test]
fn help_and_version_are_answers() {
    assert!(answer("--help").contains("Usage: doorway <COMMAND>"));
    assert!(answer("help quorums").contains("projective-plane"));
    assert_eq!(answer("--version"), format!("doorway {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn completions_know_the_algorithms() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(answer(&format!("completions {shell}")).contains("explain"), "{shell}");
    }
    assert!(answer("completions bash").contains("ricart-agrawala"));
}

#[test]
fn manual_pages_are_printed_or_written() {
    assert!(answer("man").contains(".SH NAME"), "roff");
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("man");
    assert_eq!(answer(&format!("man {}", directory.display())), "");
    for page in ["doorway.1", "doorway-list.1", "doorway-quorums.1"] {
        let text = fs::read_to_string(directory.join(page)).expect("the page is there");
        assert!(text.contains(".SH NAME"), "{page}");
    }
    let (_, reason) = failing(&format!("man {}", directory.join("doorway.1").display()), 1);
    assert!(reason.starts_with("doorway: cannot write"), "a file is no directory: {reason}");
}

#[test]
fn a_reader_who_has_seen_enough_is_no_error() {
    for line in ["quorums grid -n 2000", "quorums grid -n 2000 --json"] {
        let mut command = doorway(line);
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the command runs");
        let mut stdout = child.stdout.take().expect("stdout is piped");
        stdout.read_exact(&mut [0; 1]).expect("something is printed");
        drop(stdout);
        let done = child.wait_with_output().expect("it ends");
        assert!(done.status.success() && done.stderr.is_empty(), "{done:?}");
    }
}

#[test]
fn a_full_disk_is_an_error() {
    let Ok(full) = File::options().write(true).open("/dev/full") else {
        return; // Only some systems have one.
    };
    let done = doorway("list").stdout(full).output().expect("the command runs");
    assert_eq!(done.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&done.stderr).starts_with("doorway: "));
}
