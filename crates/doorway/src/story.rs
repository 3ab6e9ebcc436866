//! A script that was played, for a person.

use std::io::{self, Write};
use std::path::Path;

use anyhow::anyhow;
use doorway_lab::Violation;
use doorway_lab::check::Property;
use doorway_lab::script::{self, Outcome, Told};

use crate::failure::Usage;
use crate::files;

/// Play the script of a file.
pub(crate) fn play(path: &Path) -> anyhow::Result<Outcome> {
    let named = |error| Usage(format!("{}, {error}", path.display()));
    Ok(script::run(&files::read(path)?).map_err(named)?)
}

/// The failure of a script that ends where something is wrong.
pub(crate) fn failure(path: &Path, violation: &Violation) -> anyhow::Error {
    anyhow!("{} ends with a violation: {violation}", path.display())
}

/// Which property is violated, and how.
pub(crate) fn violated(violation: &Violation) -> String {
    format!("{}: {violation}", Property::violated_by(violation))
}

fn verb(told: &Told) -> &str {
    told.command.split(' ').next().unwrap_or_default()
}

/// What the nodes do by themselves.
const START: &str = "at the start";

/// Print what happened, a numbered line for each command.
pub(crate) fn print(out: &mut dyn Write, steps: &[Told]) -> io::Result<()> {
    let acts = steps.iter().filter(|told| !["run", "quorum"].contains(&verb(told)));
    let widest = acts.map(|told| told.command.len()).max().unwrap_or(0).max(START.len());
    let mut number = 0;
    for told in steps {
        let effects = told.effects.join("; ");
        match verb(told) {
            "run" | "quorum" if effects.is_empty() => {}
            "run" | "quorum" => writeln!(out, "  {:>4}  {START:widest$}  {effects}", "")?,
            "round" => writeln!(out, "and again and again:")?,
            "again" => writeln!(out, "{effects}")?,
            _ => {
                number += 1;
                let line = format!("  {number:>4}  {:widest$}  {effects}", told.command);
                writeln!(out, "{}", line.trim_end())?;
            }
        }
    }
    Ok(())
}
