//! What docs/operators.md and packaging/ tell operators to use.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::skip::skip;

const PAGE: &str = include_str!("../../../../docs/operators.md");

fn blocks(kind: &str) -> Vec<&'static str> {
    let opening = match kind {
        "console" => "```console\n",
        _ => "```toml\n",
    };
    PAGE.split(opening).skip(1).filter_map(|block| block.split("```").next()).collect()
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder for the test");
    folder
}

fn succeeds(folder: &Path, line: &str) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_doorway"));
    let done = command.args(line.split_whitespace()).current_dir(folder).output();
    let done = done.expect("the command starts");
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && errors.is_empty(), "doorway {line}: {errors}");
}

/// Transcripts, whose commands have a prompt, need a service of the machine and are left out.
#[test]
fn every_command_of_the_page_works_as_written() {
    let folder = folder("operators");
    let lines = blocks("console").into_iter().flat_map(str::lines);
    let commands: Vec<_> = lines.filter_map(|line| line.strip_prefix("doorway ")).collect();
    let (renew, make): (Vec<_>, Vec<_>) =
        commands.into_iter().partition(|line| line.contains("--renew"));
    assert_eq!((make.len(), renew.len()), (6, 1), "certificates are made, shown and renewed");
    for line in make {
        succeeds(&folder, line);
    }
    fs::copy(folder.join("ca/ca.crt"), folder.join("a/ca.crt")).unwrap();
    let find = |part: &str| {
        let found = blocks("toml").into_iter().find(|text| text.contains(part));
        found.unwrap_or_else(|| panic!("the page has an example with {part}"))
    };
    let arranged = find("quorums = ");
    for group in [find("[members]"), find("[[member]]")] {
        for settings in [group.to_owned(), format!("{group}{arranged}")] {
            fs::write(folder.join("a/doorway.toml"), settings).unwrap();
            succeeds(&folder, "serve --config a/doorway.toml --check");
        }
    }
    for line in renew {
        succeeds(&folder, line);
    }
}

#[test]
fn systemd_understands_the_unit() {
    let folder = folder("unit");
    let unit = include_str!("../../../../packaging/doorway.service");
    let unit = unit.replace("/usr/bin/doorway", env!("CARGO_BIN_EXE_doorway"));
    let file = folder.join("doorway.service");
    fs::write(&file, unit).unwrap();
    let mut verify = Command::new("systemd-analyze");
    let Ok(done) = verify.args(["verify", "--man=no"]).arg(&file).output() else {
        return skip("there is no systemd-analyze");
    };
    let said = String::from_utf8_lossy(&done.stderr);
    // It also looks at what the machine has around the unit, which is not ours to judge.
    let ours: Vec<&str> = said.lines().filter(|line| line.contains("doorway.service")).collect();
    assert!(ours.is_empty(), "{ours:#?}");
}
