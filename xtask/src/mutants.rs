//! `cargo xtask mutants`: an algorithm that is changed in any small way must fail a test.
//!
//! cargo-mutants makes the changes, module by module, in a copy of the tree that is pared down so
//! that a build takes seconds. What survives is listed in `xtask/mutants.toml` with the reason why
//! no test can tell it from the original; anything else that survives is a failure.

use std::fs;

use anyhow::{Context as _, ensure};

use crate::files;
use crate::test::have;

mod module;
mod summary;
mod survivors;
mod tree;
mod trial;

use module::Module;
use summary::Summary;
use survivors::Survivor;

/// Where the copy and the records of unfinished trials are.
const DIRECTORY: &str = "target/mutants";

/// Try every module that has changed since it was last tried, the small ones first; or the one that
/// is named, in any case. A trial that was interrupted goes on where it stopped.
pub(crate) fn run(only: Option<&str>) -> anyhow::Result<()> {
    ensure!(have("mutants"), "`cargo install cargo-mutants --locked` brings what it needs");
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
        // Read only now, for a reason may be found while the trial runs.
        let listed = survivors::read()?;
        let found = survivors::compare(module, &result.survivors, &listed);
        println!("{}: {} mutants, {} complaints", module.name, result.mutants(), found.len());
        for complaint in &found {
            println!("{complaint}");
        }
        if found.is_empty() {
            summary.record(module, &result);
            fs::write(summary::PATH, summary.text(&listed))?;
        }
        complaints += found.len();
    }
    ensure!(complaints == 0, "{complaints} complaints about mutants");
    Ok(())
}

/// The summary, with the reasons as they are now.
pub(crate) fn document() -> anyhow::Result<String> {
    Ok(Summary::read()?.text(&survivors::read()?))
}

/// The module that a person means: by its name or by the path of its file.
fn named<'a, 'b>(modules: &'a [Module<'b>], name: &str) -> anyhow::Result<&'a Module<'b>> {
    let is = |path: &str| path == name || path.ends_with(&format!("/{name}"));
    let found = modules
        .iter()
        .find(|module| module.name == name || module.files.iter().any(|file| is(&file.path)));
    found.with_context(|| format!("no algorithm is in a file {name}"))
}
