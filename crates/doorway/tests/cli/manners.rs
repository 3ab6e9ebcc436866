//! What users expect of every command: help, completions, manual pages, and exit codes.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::Stdio;

use crate::{answer, doorway, failing};

#[test]
fn help_and_version_are_answers() {
    for words in ["--help", "-h", "help"] {
        let help = answer(words);
        assert!(help.starts_with("Run a command while holding a lock"), "{help}");
        assert!(help.contains("Usage: doorway <COMMAND>"), "{help}");
        let headings = help.lines().filter(|line| line.ends_with("ommands:"));
        let expected =
            ["Lock commands:", "Node commands:", "Laboratory commands:", "Other commands:"];
        assert_eq!(headings.collect::<Vec<_>>(), expected);
        let (_, commands) = help.split_once("Lock commands:\n").unwrap();
        assert!(commands.starts_with("  run  "), "{help}");
    }
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
    let pages = ["doorway", "doorway-run", "doorway-list", "doorway-ca", "doorway-ca-init"];
    for page in pages {
        let text = fs::read_to_string(directory.join(format!("{page}.1"))).expect("the page");
        assert!(text.contains(".SH NAME") && !text.contains("EXTRA"), "{page}");
        // The footer names the program and its version.
        let title = text.lines().find(|line| line.starts_with(".TH")).expect("a title");
        let version = format!("\"doorway {}\"", env!("CARGO_PKG_VERSION"));
        assert!(title.contains(&version) && title.contains(&page.to_uppercase()), "{title}");
    }
    let text = fs::read_to_string(directory.join("doorway-run.1")).expect("the page");
    let (_, examples) = text.split_once(".SH EXAMPLES\n.nf\n").expect("examples keep their lines");
    let (examples, rest) = examples.split_once(".fi\n").expect("examples end");
    assert!(examples.lines().all(|line| line.starts_with("doorway run ")), "{examples}");
    assert!(rest.contains(".SH \"ENVIRONMENT OF THE COMMAND\""), "{rest}");
    let (_, reason) = failing(&format!("man {}", directory.join("doorway.1").display()), 1);
    assert!(reason.starts_with("doorway: cannot write"), "a file is not a directory: {reason}");
}

#[test]
fn a_closed_standard_output_is_an_error() {
    for words in ["list", "list --json", "--help"] {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &format!("exec \"$0\" {words} >&-"), env!("CARGO_BIN_EXE_doorway")]);
        let done = shell.output().expect("the command runs");
        assert_eq!(done.status.code(), Some(1), "{words}: {done:?}");
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(said, "doorway: cannot print the result: standard output is closed\n");
    }
}

#[test]
fn a_reader_that_closes_the_pipe_is_not_an_error() {
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
#[cfg(target_os = "linux")]
fn a_full_disk_is_an_error() {
    let full = fs::File::options().write(true).open("/dev/full").expect("Linux has it");
    let done = doorway("list").stdout(full).output().expect("the command runs");
    assert_eq!(done.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&done.stderr).starts_with("doorway: "));
}
