//! The mutants that survive for a reason: `xtask/mutants.toml`.

use std::fs;

use anyhow::Context as _;
use serde::Deserialize;

use super::module::Module;
use crate::files::File;
use crate::tidy::ALGORITHMS;

/// The path of the list.
const LIST: &str = "xtask/mutants.toml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(default)]
    survivor: Vec<Survivor>,
}

/// A mutant that no test can tell from the original. Its code identifies it, not its line number,
/// so that an edit elsewhere in the file does not matter.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Survivor {
    /// The path of its file, relative to the folder of the algorithms.
    pub(super) file: String,
    /// The change, in the words of cargo-mutants.
    pub(super) mutation: String,
    /// The line that it changes, from the column of the change to the end.
    pub(super) code: String,
    /// Why it survives.
    pub(super) reason: String,
}

impl Survivor {
    /// Is it a mutant of this module?
    pub(super) fn is_of(&self, module: &Module<'_>) -> bool {
        module.files.iter().any(|file| self.is_in(file))
    }

    fn is_in(&self, file: &File) -> bool {
        file.path.strip_prefix(ALGORITHMS) == Some(&self.file)
    }

    /// The mutant of this name, `path:line:column: mutation`. A name of another form becomes the
    /// mutation, without a file.
    fn named(name: &str, module: &Module<'_>) -> Self {
        Self::placed(name, module).unwrap_or_else(|| Self {
            file: String::new(),
            mutation: name.to_owned(),
            code: String::new(),
            reason: String::new(),
        })
    }

    fn placed(name: &str, module: &Module<'_>) -> Option<Self> {
        let (place, mutation) = name.split_once(": ")?;
        let mut parts = place.split(':');
        let (path, line, column) = (parts.next()?, parts.next()?, parts.next()?);
        let file = module.files.iter().find(|file| file.path == path)?;
        let line = file.text.lines().nth(line.parse::<usize>().ok()?.checked_sub(1)?)?;
        let code = line.chars().skip(column.parse::<usize>().ok()?.checked_sub(1)?);
        Some(Self {
            file: path.strip_prefix(ALGORITHMS)?.to_owned(),
            mutation: mutation.to_owned(),
            code: code.collect(),
            reason: String::new(),
        })
    }

    fn is(&self, other: &Self) -> bool {
        (&self.file, &self.mutation, &self.code) == (&other.file, &other.mutation, &other.code)
    }
}

/// Read the list.
pub(super) fn read() -> anyhow::Result<Vec<Survivor>> {
    let text = fs::read_to_string(LIST).context(LIST)?;
    let list: List = toml::from_str(&text).context(LIST)?;
    Ok(list.survivor)
}

/// Complaints about the survivors of a trial: a survivor that is not listed, or a listed one that a
/// test has caught.
pub(super) fn compare(module: &Module<'_>, found: &[String], listed: &[Survivor]) -> Vec<String> {
    let found: Vec<_> = found.iter().map(|name| Survivor::named(name, module)).collect();
    let unlisted = found.iter().filter(|one| !listed.iter().any(|other| one.is(other)));
    let unlisted = unlisted.map(|Survivor { file, mutation, code, .. }| {
        // An entry ready to be added to the list, in case there is a good reason.
        let entry = format!("file = {file:?}\nmutation = {mutation:?}\ncode = {code:?}");
        format!("survives:\n[[survivor]]\n{entry}\nreason = \"\"\n")
    });
    let mine = listed.iter().filter(|one| one.is_of(module));
    let gone = mine.filter(|one| !found.iter().any(|other| one.is(other)));
    let gone = gone.map(|Survivor { file, mutation, code, .. }| {
        format!("{LIST}: {file}: {mutation}, at `{code}`: a test catches it now")
    });
    unlisted.chain(gone).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files;

    #[test]
    fn survivors_are_known_by_their_code() {
        let path = format!("{ALGORITHMS}a.rs");
        let file = File { path: path.clone(), text: "one\nif a || b {\n".to_owned() };
        let module = Module { name: "a", files: vec![&file] };
        let found = [format!("{path}:2:6: replace || with && in f")];
        let survivor = |code: &str| Survivor {
            file: "a.rs".to_owned(),
            mutation: "replace || with && in f".to_owned(),
            code: code.to_owned(),
            reason: "a and b are the same".to_owned(),
        };
        assert_eq!(compare(&module, &found, &[survivor("|| b {")]), [""; 0]);
        let complaints = compare(&module, &found, &[survivor("|| c {")]);
        assert!(complaints[0].contains("code = \"|| b {\""), "{complaints:?}");
        assert!(complaints[1].contains("`|| c {`: a test catches it now"), "{complaints:?}");
        assert_eq!(complaints.len(), 2);
        assert_eq!(compare(&module, &["odd".to_owned()], &[]).len(), 1);
    }

    /// Only a trial can tell whether they survive, but the code that they change must exist.
    #[test]
    fn every_listed_survivor_is_about_code_that_exists_and_has_a_reason() {
        // Tasks run at the root of the repository, tests in their package.
        std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).unwrap();
        let files = files::all().unwrap();
        let listed = read().unwrap();
        for (at, one) in listed.iter().enumerate() {
            let file = files.iter().find(|file| one.is_in(file)).expect(&one.file);
            let there = file.text.lines().any(|line| line.ends_with(&one.code));
            assert!(there && !one.code.trim().is_empty(), "{}: no `{}`", one.file, one.code);
            assert!(one.mutation.contains(' '), "{}: {}", one.file, one.mutation);
            assert!(one.reason.split_whitespace().count() > 3, "{}: {}", one.file, one.reason);
            assert!(!listed[..at].iter().any(|other| one.is(other)), "twice: {one:?}");
        }
    }
}
