//! A script that was played: printed for a reader, and compared with the effects written in it.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;

use anyhow::anyhow;
use doorway_lab::Violation;
use doorway_lab::check::Property;
use doorway_lab::script::{self, Outcome, ScriptStep};
use serde::Serialize;

use crate::failure::Usage;
use crate::files;
use crate::wrap::print_beside;

/// The largest script, in bytes: a person writes it, or `doorway check --save`.
const MAX_SCRIPT: u64 = 16 << 20;

/// The text of a script, and what happens when it is played.
pub(crate) fn play(path: &Path) -> anyhow::Result<(String, Outcome)> {
    let named = |error| Usage(format!("{}, {error}", path.display()));
    let text = files::read(path, MAX_SCRIPT)?;
    let outcome = script::run(&text).map_err(named)?;
    Ok((text, outcome))
}

/// The first place where a script says something else than what happened.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Difference {
    /// The line of the script, counted from 1.
    pub(crate) line: usize,
    /// What the script says; `None` if it says nothing there.
    pub(crate) recorded: Option<String>,
    /// What happened; `None` if nothing happened.
    pub(crate) happened: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        match (&self.recorded, &self.happened) {
            (Some(recorded), Some(happened)) => {
                write!(f, "the script says '{recorded}', but what happens is '{happened}'")
            }
            (Some(recorded), None) => {
                write!(f, "the script says '{recorded}', but nothing more happens")
            }
            (None, Some(happened)) => write!(f, "'{happened}' happens, which is not in the script"),
            (None, None) => f.write_str("no difference"),
        }
    }
}

/// Compare the effects written in a script with those that it had. Commands below which no effects
/// are written are not compared.
pub(crate) fn difference(written: &str, outcome: &Outcome) -> Option<Difference> {
    let (written, happened) = (effects(written), effects(&outcome.text));
    written.iter().zip(&happened).find_map(|(written, happened)| {
        let (line, recorded) = written.as_ref()?;
        let (_, happened) = happened.as_ref()?;
        let longest = recorded.len().max(happened.len());
        let at = (0..longest).find(|at| recorded.get(*at) != happened.get(*at))?;
        let effect = |effects: &[&str]| effects.get(at).map(|effect| (*effect).to_owned());
        let line = line + 1 + at.min(recorded.len());
        Some(Difference { line, recorded: effect(recorded), happened: effect(happened) })
    })
}

/// For each group of commands in a script, the line of its `----` and the effects below it, if
/// there is such a line.
fn effects(text: &str) -> Vec<Option<(usize, Vec<&str>)>> {
    let mut groups: Vec<Option<(usize, Vec<&str>)>> = Vec::new();
    // Are there commands whose group is not closed yet, and are we below a `----`?
    let (mut open, mut below) = (false, false);
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
        if line.is_empty() {
            groups.extend(open.then_some(None));
            (open, below) = (false, false);
        } else if below {
            if let Some(Some((_, effects))) = groups.last_mut() {
                effects.push(line);
            }
        } else if line == "----" {
            groups.push(Some((number, Vec::new())));
            (open, below) = (false, true);
        } else if !line.starts_with('#') {
            open = true;
        }
    }
    groups
}

/// The error of a script that ends with a violation.
pub(crate) fn failure(path: &Path, violation: &Violation) -> anyhow::Error {
    anyhow!("{} ends with a violation: {violation}", path.display())
}

/// The name of the property that the script violates.
pub(crate) fn property(played: &Outcome) -> Option<String> {
    let violation = played.violation.as_ref()?;
    Some(Property::violated_by(violation).name_with(played.history))
}

/// The property that the script violates, and how it is violated.
pub(crate) fn violated(played: &Outcome) -> Option<String> {
    Some(format!("{}: {}", property(played)?, played.violation.as_ref()?))
}

fn verb(told: &ScriptStep) -> &str {
    told.command.split(' ').next().unwrap_or_default()
}

/// Stands for the command where nodes act by themselves, before the first command.
const START: &str = "at the start";

/// Print what happened: a numbered line for each command.
pub(crate) fn print(out: &mut dyn Write, steps: &[ScriptStep]) -> io::Result<()> {
    let acts = steps.iter().filter(|told| !["run", "quorum"].contains(&verb(told)));
    let widest = acts.map(|told| told.command.len()).max().unwrap_or(0).max(START.len());
    let mut number = 0;
    for told in steps {
        let effects = told.effects.join("; ");
        match verb(told) {
            "run" | "quorum" if effects.is_empty() => {}
            "run" | "quorum" => {
                print_beside(out, &format!("{:6}  {START:widest$}  ", ""), &effects)?;
            }
            "round" => writeln!(out, "and again and again:")?,
            "again" => writeln!(out, "{effects}")?,
            _ => {
                number += 1;
                let command = format!("  {number:>4}  {:widest$}  ", told.command);
                print_beside(out, &command, &effects)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "# Source.\nrun le-lann n=2\n\nacquire 2\ndeliver 1 2\n----\n2 waits\n\
                          2 <- 1 Token\n2 enters\n\nrelease 2\n";

    fn differs(text: &str) -> Option<(usize, String)> {
        let found = difference(text, &script::run(text).unwrap())?;
        Some((found.line, found.to_string()))
    }

    #[test]
    fn effects_that_did_not_happen_are_found_with_their_line() {
        assert_eq!(differs(SCRIPT), None);
        let (line, text) = differs(&SCRIPT.replace("2 <- 1 Token", "2 <- 1 Reply")).unwrap();
        assert_eq!(line, 8);
        assert!(text.contains("says '2 <- 1 Reply', but what happens is '2 <- 1 Token'"), "{text}");
        let (line, text) = differs(&SCRIPT.replace("2 enters\n", "")).unwrap();
        assert_eq!(line, 9);
        assert!(text.contains("'2 enters' happens, which is not in the script"), "{text}");
        let (line, text) = differs(&SCRIPT.replace("2 enters", "2 enters\n2 leaves")).unwrap();
        assert_eq!(line, 10);
        assert!(text.contains("'2 leaves', but nothing more happens"), "{text}");
    }

    #[test]
    fn a_script_without_effects_says_nothing_that_could_differ() {
        assert_eq!(differs("run le-lann n=2\nacquire 2\ndeliver 1 2\n"), None);
    }
}
