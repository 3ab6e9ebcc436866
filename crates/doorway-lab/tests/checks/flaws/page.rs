//! The page about the flaws, and the pictures of the counterexamples.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use doorway_lab::Trace;
use doorway_lab::diagram::{Format, render};

use doorway_lab::flaws::{Finding, Flaw};

const HEAD: &str = "\
# Flaws, and the shortest counterexamples that show them

Written by `cargo xtask docs`, from the table in `crates/doorway-lab/src/flaws`.

Each flaw on this page is a mistake in a published text, a mistake that a reader of a text can make,
or a network that does not keep what an algorithm assumes. For each flaw, the checker
(`doorway_lab::check`) runs the algorithm of the library with only this one thing wrong (for
cr-split-wakeup, a copy of it), and searches all worlds that can be reached. It searches breadth
first, so no counterexample is longer than necessary. Then it visits every world of the version
without the flaw, and finds no violation, starvation included. The last column names that version
and the number of its worlds; if it names a property, only that property was checked.
`doorway story NAME` runs the search and plays the counterexample.

The number of steps is that of a shortest counterexample. A step is one event at one node: a client
asks or leaves, or a message arrives (perhaps a second time) or is lost. Messages of a node to
itself are handled in the same step. *Stuck* means that a node waits and nothing can happen any more
but new requests. The counterexample ends there, even if other nodes could still ask.

";

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// Write the file if `UPDATE` is set. Otherwise add it to `stale` if its content would change.
fn keep(path: &Path, text: &str, stale: &mut Vec<String>) {
    if std::env::var_os("UPDATE").is_some() {
        fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("it can be made");
        fs::write(path, text).expect("documents can be written");
    }
    if fs::read_to_string(path).ok().as_deref() != Some(text) {
        stale.push(path.display().to_string());
    }
}

fn row(flaw: &Flaw, wrong: &Finding, right: &Finding) -> String {
    let Flaw { name, what, breaks, steps, cure, .. } = flaw;
    let (algorithm, worlds) = (&wrong.trace.title, right.report.progress.states);
    format!(
        "| [{name}](#{name}) | `{algorithm}` | {what} | {breaks} | {steps} | {cure}: {worlds} |\n"
    )
}

fn section(flaw: &Flaw, wrong: &Finding) -> String {
    let Flaw { name, what, story, steps, .. } = flaw;
    let violation = wrong.violation().map_or_else(String::new, ToString::to_string);
    let mut text = format!("\n## {name}\n\n*{what}.* {}.\n\n{story}", wrong.setting);
    let _ = write!(text, " After {steps} steps {violation}.");
    text + &format!("\n\n![The {steps} steps of {name}](flaws/{name}.svg)\n")
}

/// Write the page and its pictures, or return those that are stale.
pub(crate) fn stale(found: &[(Flaw, Finding, Finding)]) -> Vec<String> {
    let mut stale = Vec::new();
    let mut table = "| name | algorithm | what is wrong | violates | steps \
                     | holds without it: worlds |\n|---|---|---|---|---|---|\n"
        .to_owned();
    let mut sections = String::new();
    for (flaw, wrong, right) in found {
        table += &row(flaw, wrong, right);
        sections += &section(flaw, wrong);
        let trace = Trace { title: flaw.name.to_owned(), ..wrong.trace.clone() };
        let path = docs().join("flaws").join(flaw.name).with_extension("svg");
        keep(&path, &render(&trace, Format::Svg), &mut stale);
    }
    keep(&docs().join("flaws.md"), &(HEAD.to_owned() + &table + &sections), &mut stale);
    stale
}
