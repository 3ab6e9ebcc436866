//! The colour of each kind of message.
//!
//! A kind has the same colour in every picture, whatever else the picture shows and in whatever
//! order: a reader who has learned that INQUIRE is red can rely on it. A colour is a number; the
//! style sheet of the canvas gives it a light and a dark tone.

use std::collections::{BTreeMap, BTreeSet};

use doorway_protocol::fnv::fnv1a_32;

use crate::canvas::COLOURS;

/// The kinds that the algorithms of the list send. No two kinds of one algorithm share a colour.
/// Requests are blue in every algorithm, and messages that let a node in are orange.
const KNOWN: [(&str, usize); 16] = [
    ("Request", 0),
    ("Reply", 1),
    ("Ack", 1),
    ("Grant", 1),
    ("Locked", 1),
    ("Yes", 1),
    ("Privilege", 1),
    ("Token", 1),
    ("Release", 2),
    ("Failed", 3),
    ("Inquire", 4),
    ("Relinquish", 5),
    ("Recover", 6),
    ("Explore", 2),
    ("Echo", 3),
    ("Go", 4),
];

/// The colours of the known kinds.
pub(super) fn known() -> BTreeMap<String, usize> {
    KNOWN.iter().map(|(kind, colour)| ((*kind).to_owned(), *colour)).collect()
}

/// The colour of each of these kinds.
///
/// A kind that is not known takes the colour that a hash of its name gives, or the next one that no
/// other kind of this picture has.
pub(super) fn colours<'a>(kinds: &BTreeSet<&'a str>) -> BTreeMap<&'a str, usize> {
    let known =
        |kind: &str| KNOWN.iter().find(|(name, _)| *name == kind).map(|(_, colour)| *colour);
    let mut colours: BTreeMap<&str, usize> =
        kinds.iter().filter_map(|kind| Some((*kind, known(kind)?))).collect();
    for kind in kinds {
        if !colours.contains_key(kind) {
            let taken: BTreeSet<usize> = colours.values().copied().collect();
            let first = hash(kind) % COLOURS;
            let turned = (0..COLOURS).map(|step| (first + step) % COLOURS);
            // Beyond the palette, dashes tell kinds apart.
            let mut free = turned.chain(COLOURS..).filter(|colour| !taken.contains(colour));
            colours.insert(kind, free.next().unwrap_or(first));
        }
    }
    colours
}

/// A hash that is the same in every build.
fn hash(text: &str) -> usize {
    fnv1a_32(text.bytes()) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kinds: &[&'static str]) -> BTreeMap<&'static str, usize> {
        colours(&kinds.iter().copied().collect())
    }

    #[test]
    fn a_kind_keeps_its_colour_whatever_else_is_shown() {
        let all = of(&["Request", "Locked", "Failed", "Inquire", "Relinquish", "Release"]);
        for kinds in [["Inquire", "Request"], ["Locked", "Inquire"], ["Release", "Failed"]] {
            for (kind, colour) in of(&kinds) {
                assert_eq!(colour, all[kind], "{kind}");
            }
        }
        assert_eq!(hash("Ping"), 0x7fb7_f0a9, "another number would change pictures");
        assert_eq!(of(&["Ping"])["Ping"], of(&["Ping", "Request"])["Ping"], "an unknown kind");
    }

    #[test]
    fn kinds_of_one_picture_have_different_colours() {
        let names: Vec<String> = (0..20).map(|number| format!("Kind{number}")).collect();
        let kinds: BTreeSet<&str> = names.iter().map(String::as_str).chain(["Request"]).collect();
        let colours: BTreeSet<usize> = colours(&kinds).into_values().collect();
        assert_eq!(colours.len(), 21);
    }
}
