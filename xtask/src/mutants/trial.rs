//! A trial: cargo-mutants runs the tests against the mutants of one module.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::ensure;

use super::module::Module;
use super::{DIRECTORY, tree};
use crate::files::File;
use crate::run::{cargo, shown, succeed};

/// The test program that goes through the list of algorithms.
const ALGORITHMS: &str = "algorithms";
/// Its modules that find most mutants in the least time. None takes longer than a second to run.
const FIRST: [&str; 4] = ["answers", "declared", "refusals", "scripts"];
/// Its other modules.
const SECOND: [&str; 5] = ["claims", "random", "settle", "small", "starts"];
/// The test program whose modules are about single algorithms. It is built only for the mutants
/// that survive all others, because that takes longest.
const CHECKS: &str = "checks";
/// The files in which cargo-mutants lists the mutants that need not be tried again.
const SETTLED: [&str; 3] = ["caught.txt", "timeout.txt", "unviable.txt"];
/// The exit codes of cargo-mutants for a complete run: all caught, some missed, some timed out.
const FINE: [i32; 3] = [0, 2, 3];
/// The smallest timeout of a test run in seconds, for a machine that is busy with something else.
const PATIENCE: u64 = 20;

/// The results of a trial.
pub(super) struct Outcome {
    pub(super) caught: usize,
    pub(super) timeouts: usize,
    pub(super) unviable: usize,
    pub(super) survivors: Vec<String>,
}

impl Outcome {
    pub(super) fn mutants(&self) -> usize {
        self.caught + self.timeouts + self.unviable + self.survivors.len()
    }
}

/// Try the mutants of a module: all of them with the first tests, the survivors with the second
/// tests, and what is left with the tests that mention the module.
pub(super) fn run(
    module: &Module<'_>,
    modules: &[Module<'_>],
    files: &[File],
) -> anyhow::Result<Outcome> {
    let names = module.with_users(modules);
    let kept: Vec<_> = modules.iter().filter(|module| names.contains(&module.name)).collect();
    tree::lay_out(files, &kept)?;
    // One folder for each state of the code, because the names of mutants contain line numbers.
    let folder = format!("{}-{}", module.name, module.fingerprint());
    let record = Record(env::current_dir()?.join(DIRECTORY).join(folder));
    let own = module.own_tests(files);
    let mut survivors = record.pass(module, ALGORITHMS, &FIRST)?;
    for (program, tests) in [(ALGORITHMS, &SECOND[..]), (CHECKS, &own)] {
        if !survivors.is_empty() && !tests.is_empty() {
            survivors = record.pass(module, program, tests)?;
        }
    }
    let [caught, timeouts, unviable] = SETTLED.map(|list| record.settled(list).len());
    Ok(Outcome { caught, timeouts, unviable, survivors })
}

/// The folder in which the results for one state of a module are kept.
struct Record(PathBuf);

impl Record {
    /// Try all mutants that are not settled with these modules of a test program, and return the
    /// names of the survivors.
    fn pass(
        &self,
        module: &Module<'_>,
        program: &str,
        tests: &[&str],
    ) -> anyhow::Result<Vec<String>> {
        let filters: Vec<String> = tests.iter().map(|test| format!("{test}::")).collect();
        let test = format!("test --quiet --profile mutants -p doorway-lab --test {program}");
        succeed(in_tree(&mut cargo(&format!("{test} --no-run"))))?;
        let begin = Instant::now();
        succeed(in_tree(cargo(&test).arg("--").args(&filters)))?;
        let timeout = PATIENCE.max(5 * begin.elapsed().as_secs());

        self.absorb()?;
        let out = self.0.join("mutants.out");
        fs::create_dir_all(&out)?;
        let settled: Vec<String> = SETTLED.iter().flat_map(|list| self.settled(list)).collect();
        fs::write(out.join("caught.txt"), settled.join("\n"))?;
        let mut command = cargo(
            "mutants --in-place --baseline=skip --iterate --cap-lints=false \
             --package doorway-core --test-package doorway-lab --profile mutants",
        );
        command.arg(format!("--timeout={timeout}")).arg("--output").arg(&self.0);
        command.args(module.files.iter().map(|file| format!("--file={}", file.path)));
        // The second `--` is for cargo test: what follows it selects tests by their names.
        command.arg(format!("--cargo-arg=--test={program}")).args(["--", "--"]).args(&filters);
        let shown = shown(&command);
        println!("$ {shown}");
        let status = in_tree(&mut command).status()?;
        ensure!(status.code().is_some_and(|code| FINE.contains(&code)), "`{shown}` failed");
        let missed = lines(&out.join("missed.txt"));
        self.absorb()?;
        Ok(missed.into_iter().collect())
    }

    /// Record what the last run of cargo-mutants settled, also if it was interrupted.
    fn absorb(&self) -> anyhow::Result<()> {
        let out = self.0.join("mutants.out");
        if !out.exists() {
            return Ok(());
        }
        // Before cargo-mutants tries its first mutant, only our own list is there.
        if out.join("mutants.json").exists() {
            for list in SETTLED {
                let mut settled = self.settled(list);
                settled.extend(lines(&out.join(list)));
                let text = settled.into_iter().collect::<Vec<_>>().join("\n");
                fs::write(self.0.join(list), text)?;
            }
        }
        fs::remove_dir_all(out)?;
        Ok(())
    }

    fn settled(&self, list: &str) -> BTreeSet<String> {
        lines(&self.0.join(list))
    }
}

/// The lines of a file, or none if it is not there.
fn lines(path: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Run the command in the copy, with a target directory of its own. `PARED` tells the tests that
/// algorithms are missing on purpose.
fn in_tree(command: &mut Command) -> &mut Command {
    command.current_dir(tree::root()).env_remove("CARGO_TARGET_DIR").env("PARED", "1")
}
