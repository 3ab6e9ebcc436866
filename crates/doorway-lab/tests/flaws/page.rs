//! The page docs/flaws.md and its pictures.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use doorway_lab::Trace;
use doorway_lab::diagram::{Format, render};

use crate::{Finding, Flaw};

const HEAD: &str = "\
# Flaws, and the shortest stories that show them

Written by `cargo xtask docs`, from the table in `crates/doorway-lab/tests/flaws`.

Each of these is a mistake that stands in a text, that a reader can make of one, or that a network
makes when it does not keep what an algorithm assumes. The checker (`doorway_lab::check`) runs the
code that ships, with that one thing wrong, through every world that can be reached, breadth first:
so no story is longer than it must be. Then it goes through every world of the version without the
flaw, looks into waiting as well, and finds nothing: that it holds, and in how many worlds, is in
the last column.

A step is one thing that happens at one node: a client asks or leaves, or a message arrives or is
lost. What a node tells itself happens in the same step. *Expected* is the length of the shortest
story in an independent model of the texts; where it differs, the story
says why.

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
    let Flaw { name, what, breaks, steps, listed, cure, .. } = flaw;
    let (algorithm, worlds) = (&wrong.trace.title, right.report.progress.states);
    format!(
        "| [{name}](#{name}) | `{algorithm}` | {what} | {breaks} | {steps} | {listed} \
         | {cure}: {worlds} |\n"
    )
}

fn section(flaw: &Flaw, wrong: &Finding) -> String {
    let Flaw { name, what, story, steps, remark, .. } = flaw;
    let violation = wrong.violation().map_or_else(String::new, ToString::to_string);
    let mut text = format!("\n## {name}\n\n*{what}.* {}.\n\n{story}", wrong.setting);
    let _ = write!(text, " After {steps} steps {violation}.");
    if !remark.is_empty() {
        let _ = write!(text, "\n\nExpected were {}: {remark}", flaw.listed);
    }
    text + &format!("\n\n![The {steps} steps of {name}](flaws/{name}.svg)\n")
}

/// Write the page and its pictures, or return those that are stale.
pub(crate) fn stale(found: &[(Flaw, Finding, Finding)]) -> Vec<String> {
    let mut stale = Vec::new();
    let mut table = "| name | algorithm | what is wrong | breaks | steps | expected \
                     | holds without it: worlds |\n|---|---|---|---|---|---|---|\n"
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
