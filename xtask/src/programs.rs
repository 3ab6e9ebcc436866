//! The programs with the tests, which cargo builds once.
//!
//! Later stages start these programs themselves. Cargo would wait for its lock while another stage
//! builds something.

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context as _, ensure};
use serde::Deserialize;

use crate::run::{cargo, output, shown, target};

/// A program with the tests of one target.
#[derive(Debug)]
struct Program {
    /// The name of the target, such as `daemon`; for the tests inside of a library, the name of the
    /// library, such as `doorway_members`.
    name: String,
    path: PathBuf,
    /// The directory of its package, in which cargo would start it.
    directory: PathBuf,
}

/// A line of what `cargo test --message-format json` prints, if it is about a program.
#[derive(Deserialize)]
struct Message {
    executable: Option<PathBuf>,
    manifest_path: Option<PathBuf>,
    target: Option<Target>,
    profile: Option<Profile>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// Build all tests, unless this process has done so.
pub(crate) fn build() -> anyhow::Result<()> {
    programs().map(drop)
}

fn programs() -> anyhow::Result<&'static [Program]> {
    static PROGRAMS: OnceLock<Vec<Program>> = OnceLock::new();
    if let Some(programs) = PROGRAMS.get() {
        return Ok(programs);
    }
    let lines = match env::var_os(LIST) {
        Some(list) => fs::read_to_string(list)?,
        None => build_all()?,
    };
    Ok(PROGRAMS.get_or_init(|| lines.lines().filter_map(program).collect()))
}

/// Names the file with what cargo told about the programs, for a process to which they were handed
/// over.
const LIST: &str = "TEST_PROGRAMS";

/// Let this process know the programs that were built. It need not ask cargo, which would let it
/// wait while another process builds something.
pub(crate) fn hand_over(process: &mut Command) -> &mut Command {
    let list = list();
    if list.exists() { process.env(LIST, list) } else { process }
}

fn list() -> PathBuf {
    target().join("test-programs.json")
}

/// Build all tests, and return what cargo tells about them, which is also written to a file.
fn build_all() -> anyhow::Result<String> {
    let mut build = cargo("test --no-run --workspace --all-features --message-format json");
    let shown = shown(&build);
    println!("$ {shown}");
    // If the build fails, nobody shall run what an earlier one has built.
    fs::remove_file(list()).or_else(|error| match error.kind() {
        ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    })?;
    // What cargo tells about its progress and about mistakes goes to standard error.
    let done = build.stderr(Stdio::inherit()).output();
    let done = done.with_context(|| format!("cannot run `{shown}`"))?;
    ensure!(done.status.success(), "`{shown}` failed");
    let lines = String::from_utf8(done.stdout)?;
    fs::write(list(), &lines)?;
    Ok(lines)
}

/// The program that this line of cargo is about.
fn program(line: &str) -> Option<Program> {
    let message: Message = serde_json::from_str(line).ok()?;
    let target = message.target.filter(|_| message.profile.is_some_and(|profile| profile.test))?;
    // The tests of a program have the name of the program, and so may the tests of a target.
    let is_tests = target.kind.iter().any(|kind| kind == "test" || kind == "lib");
    let directory = message.manifest_path?.parent()?.to_owned();
    let path = message.executable.filter(|_| is_tests)?;
    Some(Program { name: target.name, path, directory })
}

/// Run the tests of the targets `name` that are ignored elsewhere because they need a tool, if
/// `filter` is in their names. `prepare` may add arguments and variables. Fails if there are none.
pub(crate) fn run_ignored(
    name: &str,
    filter: &str,
    prepare: impl Fn(&mut Command),
) -> anyhow::Result<()> {
    let mut ran = false;
    for program in programs()?.iter().filter(|program| program.name == name) {
        let mut tests = Command::new(&program.path);
        tests.current_dir(&program.directory).args([filter, "--ignored"]);
        prepare(&mut tests);
        println!("$ {}", shown(&tests));
        let said = output(&mut tests)?;
        print!("{said}");
        let first = |line: &str| line.starts_with("running ") && line != "running 0 tests";
        ran |= said.lines().any(first);
    }
    ensure!(ran, "there are no tests `{filter}` in `{name}`");
    Ok(())
}

/// A program that is not a test, such as `doorway`, built with the features of the tests, so that
/// nothing is built twice.
pub(crate) fn built(name: &str) -> anyhow::Result<PathBuf> {
    build()?;
    Ok(env::current_dir()?.join(target()).join("debug").join(name))
}

#[cfg(test)]
mod tests {
    use super::program;

    /// A line of cargo, shortened to what is read of it.
    fn line(kind: &str, test: bool, executable: &str) -> String {
        format!(
            r#"{{"reason":"compiler-artifact","manifest_path":"/x/crate/Cargo.toml","target":
            {{"kind":["{kind}"],"name":"daemon"}},"profile":{{"test":{test}}},
            "executable":{executable}}}"#
        )
        .replace('\n', "")
    }

    #[test]
    fn programs_with_tests_are_found_in_what_cargo_prints() {
        let found = program(&line("test", true, r#""/x/target/daemon-1""#)).expect("a program");
        assert_eq!(found.name, "daemon");
        assert_eq!(found.path.to_str(), Some("/x/target/daemon-1"));
        assert_eq!(found.directory.to_str(), Some("/x/crate"));
        assert!(program(&line("lib", false, "null")).is_none(), "a library is not a program");
        assert!(program(&line("bin", true, r#""/x/t""#)).is_none(), "tests inside of a program");
        assert!(program(r#"{"reason":"build-finished","success":true}"#).is_none());
    }
}
