//! Things known by name: completed by the shell, and an unknown name is answered with the nearest.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Command, Error};
use doorway_core::algorithms::{ALL, Entry};
use doorway_core::quorums;

/// Parses one of a list of names into what it stands for.
#[derive(Clone)]
pub(crate) struct Named<T> {
    /// What the names are of, as in "no algorithm is called ...".
    what: &'static str,
    /// The command that shows them all.
    shown_by: &'static str,
    all: Vec<(&'static str, T)>,
}

/// The algorithms of the list.
pub(crate) fn algorithms() -> Named<&'static Entry> {
    let all = ALL.iter().map(|entry| (entry.info.name, entry)).collect();
    Named { what: "algorithm", shown_by: "doorway list", all }
}

/// The quorum constructions.
pub(crate) fn quorum_kinds() -> Named<quorums::Kind> {
    let all = quorums::Kind::ALL.map(|kind| (kind.name(), kind)).into();
    Named { what: "quorum construction", shown_by: "doorway help quorums", all }
}

impl<T: Clone + Send + Sync + 'static> Named<T> {
    fn find(&self, name: &str) -> Result<T, String> {
        if let Some((_, value)) = self.all.iter().find(|(known, _)| *known == name) {
            return Ok(value.clone());
        }
        let Self { what, shown_by, .. } = self;
        let nearest = nearest(name, self.all.iter().map(|(known, _)| *known));
        let nearest = nearest.unwrap_or("none");
        Err(format!("no {what} is called '{name}': the nearest is '{nearest}' (see `{shown_by}`)"))
    }
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Named<T> {
    type Value = T;

    fn parse_ref(&self, command: &Command, _: Option<&Arg>, text: &OsStr) -> Result<T, Error> {
        self.find(&text.to_string_lossy())
            .map_err(|reason| Error::raw(ErrorKind::InvalidValue, reason).with_cmd(command))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.all.iter().map(|(name, _)| PossibleValue::new(*name))))
    }
}

/// The name most like `typed`: one that contains it, else the one fewest edits away.
pub(crate) fn nearest<'a>(typed: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let typed = typed.to_lowercase();
    let far = |name: &str| {
        let part = !typed.is_empty() && name.contains(&typed);
        (!part, edits(&typed, name))
    };
    names.min_by_key(|name| far(name))
}

/// How many letters must be added, removed or changed to get from one text to the other.
fn edits(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    // The distances from what has been read of `one` to every beginning of `other`.
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (read, letter) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], read + 1);
        for (at, theirs) in other.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *theirs);
            diagonal = row[at + 1];
            row[at + 1] = changed.min(diagonal + 1).min(row[at] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        for (one, other, distance) in [
            ("", "", 0),
            ("abc", "abc", 0),
            ("kitten", "sitting", 3),
            ("", "abc", 3),
            ("ab", "ba", 2),
        ] {
            assert_eq!(edits(one, other), distance, "{one} {other}");
            assert_eq!(edits(other, one), distance, "{other} {one}");
        }
    }

    #[test]
    fn the_nearest_name_is_the_one_meant() {
        let names = ["lamport", "ricart-agrawala", "raymond-tree", "le-lann"];
        for (typed, meant) in [
            ("ricart-agrawla", "ricart-agrawala"),
            ("ricart", "ricart-agrawala"),
            ("Lamprot", "lamport"),
            ("lelann", "le-lann"),
        ] {
            assert_eq!(nearest(typed, names.into_iter()), Some(meant));
        }
        assert_eq!(nearest("x", [].into_iter()), None);
    }
}
