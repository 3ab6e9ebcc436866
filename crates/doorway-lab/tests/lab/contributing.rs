//! The walk-through of CONTRIBUTING.md, followed exactly in a copy of the workspace: one file, one
//! line and one script. Then the tests that loop over all algorithms run with the new algorithm.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The block of CONTRIBUTING.md that comes after the words `after`.
fn block<'a>(guide: &'a str, after: &str) -> &'a str {
    let (_, rest) = guide.split_once(after).expect("CONTRIBUTING.md names the file");
    let (_, fenced) = rest.split_once("\n```").expect("a block follows");
    let (_, body) = fenced.split_once('\n').expect("the fence ends its line");
    body.split_once("\n```").expect("the block ends").0
}

/// Copy a file with its modification time, so that unchanged files are not compiled again.
fn copy(from: &Path, to: &Path) {
    fs::copy(from, to).expect("a file can be copied");
    keep_time(from, to);
}

fn keep_time(of: &Path, on: &Path) {
    let time = fs::metadata(of).and_then(|data| data.modified()).expect("files have times");
    let file = File::options().write(true).open(on).expect("the copy can be written");
    file.set_modified(time).expect("its time can be set");
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder can be made");
    for entry in fs::read_dir(from).expect("a folder can be listed") {
        let path = entry.expect("its entries can be read").path();
        let target = to.join(path.file_name().expect("an entry has a name"));
        if path.is_dir() { copy_folder(&path, &target) } else { copy(&path, &target) }
    }
}

/// A copy of the workspace in which the walk-through has been done.
fn workspace_with_newcomer() -> PathBuf {
    let (root, copied) = (Path::new(ROOT), Path::new(env!("CARGO_TARGET_TMPDIR")).join("newcomer"));
    if copied.exists() {
        fs::remove_dir_all(&copied).expect("the last copy can be removed");
    }
    for folder in ["crates", "xtask"] {
        copy_folder(&root.join(folder), &copied.join(folder));
    }
    for file in ["Cargo.toml", "Cargo.lock"] {
        copy(&root.join(file), &copied.join(file));
    }
    let guide_path = root.join("CONTRIBUTING.md");
    let guide = fs::read_to_string(&guide_path).expect("the guide is there");

    let file = "crates/doorway-core/src/algorithms/relay.rs";
    fs::write(copied.join(file), block(&guide, file)).expect("the file is written");
    keep_time(&guide_path, &copied.join(file));

    let list = "crates/doorway-core/src/algorithms/mod.rs";
    let text = fs::read_to_string(copied.join(list)).expect("the list is there");
    let end = text.rfind('}').expect("the list ends");
    let text = format!("{}{}\n{}", &text[..end], block(&guide, list), &text[end..]);
    fs::write(copied.join(list), text).expect("the line is added");
    keep_time(&guide_path, &copied.join(list));

    let story = "crates/doorway-lab/tests/scripts/relay/handover.txt";
    fs::create_dir_all(copied.join(story).parent().expect("a folder")).expect("it can be made");
    fs::write(copied.join(story), block(&guide, story)).expect("the story is written");
    copied
}

#[test]
#[ignore = "builds a copy of the laboratory; `cargo xtask test walk-through` runs it"]
fn the_walk_through_works_as_written() {
    let copied = workspace_with_newcomer();
    let run = |test: &str, update: bool| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.current_dir(&copied).args(["test", "--offline", "-p", "doorway-lab"]);
        cargo.args(["--test", "algorithms", test, "--", "--nocapture"]);
        // The copy has a target directory of its own, because cargo cannot tell a copy of a
        // workspace from the workspace.
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("newcomer-target");
        cargo.env("CARGO_TARGET_DIR", target);
        // There is one algorithm and a few scripts, so fast compilation matters more than fast
        // code.
        cargo.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_PROFILE_DEV_OPT_LEVEL", "0");
        if update {
            cargo.env("UPDATE", "1");
        } else {
            cargo.env("ONLY", "relay");
        }
        let output = cargo.output().expect("cargo runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{test} fails with the new algorithm:\n{text}{errors}");
        text
    };
    let small = run("small::", false);
    assert!(small.contains("relay Exhaust"), "the new algorithm is checked:\n{small}");
    run("scripts::", true);
    let story = copied.join("crates/doorway-lab/tests/scripts/relay/handover.txt");
    let story = fs::read_to_string(story).expect("the story is there");
    assert!(story.contains("2 leaves\n2 -> 3 Token\n3 <- 2 Token\n3 enters\n"), "{story}");
}
