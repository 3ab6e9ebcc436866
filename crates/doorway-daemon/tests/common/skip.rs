//! Tests that cannot run on every machine.

use std::fs::File;
use std::io::Write as _;

/// Tell that this test, or a part of it, does not run on this machine, and why. With `CI=true` that
/// is a failure. Otherwise `cargo xtask test` shows the test as skipped: it names a file in a
/// variable, and this adds a line to it.
pub(crate) fn skip(why: &str) {
    let thread = std::thread::current();
    // On a machine with one core a test runs in the main thread. Nextest names the test in the
    // arguments.
    let argument = std::env::args().skip(1).find(|word| !word.starts_with('-'));
    let test = match thread.name().filter(|name| *name != "main") {
        Some(name) => name.to_owned(),
        None => argument.unwrap_or_default(),
    };
    let all = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(!all, "with CI=true every test must run, but {why}");
    eprintln!("SKIPPED: {test}: {why}");
    if let Some(file) = std::env::var_os("DOORWAY_SKIPPED") {
        let mut file = File::options().create(true).append(true).open(file).expect("a file");
        // In one call, because other tests write to the same file.
        file.write_all(format!("{test}\t{why}\n").as_bytes()).expect("a line");
    }
}
