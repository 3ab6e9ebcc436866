//! `cargo xtask mutants`: any small change of an algorithm must make a test fail.
//!
//! cargo-mutants makes the changes, module by module, in a copy of the tree that contains only the
//! algorithms concerned, so that a build takes seconds. `xtask/mutants.toml` lists the mutants that
//! no test can tell from the original, with the reason. Any other survivor is a failure.

use std::fs;

use anyhow::{Context as _, ensure};

use crate::files;
use crate::test::have;

pub(crate) mod module;
mod summary;
mod survivors;
mod tree;
mod trial;

use module::Module;
use summary::Summary;
use survivors::Survivor;

/// The directory of the copy and of the records of unfinished trials.
const DIRECTORY: &str = "target/mutants";

/// Try the mutants of the module named `only`. Without a name, try every module that has changed
/// since it was last tried, the small ones first. An interrupted trial continues where it stopped.
pub(crate) fn run(only: Option<&str>) -> anyhow::Result<()> {
    ensure!(
        have("mutants"),
        "cargo-mutants is not installed: run `cargo install cargo-mutants --locked`"
    );
    let files = files::all()?;
    let modules = Module::all(&files);
    let mut summary = Summary::read()?;
    let chosen: Vec<&Module<'_>> = match only {
        Some(name) => vec![named(&modules, name)?],
        None => modules.iter().filter(|module| !summary.knows(module)).collect(),
    };
    let mut complaints = 0;
    for module in chosen {
        let result = trial::run(module, &modules, &files)?;
        // Read after the trial, because a person may add a reason while it runs.
        let listed = survivors::read()?;
        let found = survivors::compare(module, &result.survivors, &listed);
        println!("{}: {} mutants, {} complaints", module.name, result.mutants(), found.len());
        for complaint in &found {
            println!("{complaint}");
        }
        if found.is_empty() {
            summary.record(module, &result);
            fs::write(summary::PATH, summary.text(&modules, &listed))?;
        }
        complaints += found.len();
    }
    ensure!(complaints == 0, "{complaints} complaints about mutants");
    Ok(())
}

/// The text of `docs/mutants.md`, with the reasons that are listed now.
pub(crate) fn document() -> anyhow::Result<String> {
    Ok(Summary::read()?.text(&Module::all(&files::all()?), &survivors::read()?))
}

/// The module of this name, or the one that contains a file of this path.
fn named<'a, 'b>(modules: &'a [Module<'b>], name: &str) -> anyhow::Result<&'a Module<'b>> {
    let is = |path: &str| path == name || path.ends_with(&format!("/{name}"));
    let found = modules
        .iter()
        .find(|module| module.name == name || module.files.iter().any(|file| is(&file.path)));
    found.with_context(|| format!("no algorithm has the module or file {name}"))
}
