//! The opening comment of an algorithm's file, taken apart: paper, idea, and sections.

use doorway_core::algorithms::{ALL, Entry};
use serde::Serialize;

/// The parts of the comment.
#[derive(Debug, PartialEq)]
pub(crate) struct Header {
    /// Authors, title and place.
    pub(crate) paper: String,
    /// The idea in a few lines.
    pub(crate) idea: String,
    /// The rules, the proof that they are right, and further sections.
    pub(crate) sections: Vec<Section>,
}

/// A part with a title.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(crate) struct Section {
    /// The title.
    pub(crate) title: String,
    /// The text, in lines as written.
    pub(crate) text: String,
}

/// A section with this title and the name of a refuted algorithm says how that one differs from the
/// right algorithm of the same file.
const VARIANT: &str = "Variant ";

const RULES: &str = "Rules";
const PROOF: &str = "Why it is right";

impl Header {
    /// What the file of an algorithm says about it.
    ///
    /// A file may also describe refuted variants. Of such a variant this is: the rules of the right
    /// algorithm, the difference, and the flaws, without the proof.
    pub(crate) fn about(entry: &Entry) -> Self {
        let Self { paper, idea, sections } = Self::of(entry.source);
        let own = format!("{VARIANT}{}", entry.info.name);
        let refuted = entry.info.refuted.is_some();
        let mut same_file = ALL.iter().filter(|other| other.source == entry.source);
        let right = same_file.find(|other| other.info.refuted.is_none());
        let section = |Section { title, text }: Section| {
            let title = match title.as_str() {
                PROOF if refuted => return None,
                RULES if refuted => format!("Rules of {}", right?.info.name),
                _ if title == own => format!("What differs in {}", entry.info.name),
                _ if title.starts_with(VARIANT) => return None,
                _ => title,
            };
            Some(Section { title, text })
        };
        let mut sections: Vec<Section> = sections.into_iter().filter_map(section).collect();
        // The difference comes after the rules that it changes.
        sections.sort_by_key(|section| match section.title.as_str() {
            title if title.starts_with(RULES) => 0,
            title if title.starts_with("What differs") => 1,
            _ => 2,
        });
        Self { paper, idea, sections }
    }

    /// The opening comment of this file.
    pub(crate) fn of(source: &str) -> Self {
        let comment = source.lines().map_while(|line| line.strip_prefix("//!"));
        let mut opening = Vec::new();
        let mut sections: Vec<(&str, Vec<&str>)> = Vec::new();
        for line in comment {
            let line = line.strip_prefix(' ').unwrap_or(line);
            match (line.strip_prefix("# "), sections.last_mut()) {
                (Some(title), _) => sections.push((title, Vec::new())),
                (None, Some((_, text))) => text.push(line),
                (None, None) => opening.push(line),
            }
        }
        let end = opening.iter().position(|line| line.is_empty()).unwrap_or(opening.len());
        let sections = sections
            .into_iter()
            .map(|(title, text)| Section { title: plain(title), text: joined(&text) });
        Self {
            paper: joined(&opening[..end]),
            idea: joined(&opening[end..]),
            sections: sections.collect(),
        }
    }
}

/// The lines as one plain text, without empty lines before and after.
fn joined(lines: &[&str]) -> String {
    plain(lines.join("\n").trim_matches('\n'))
}

/// The text without the marks of rustdoc: code is unquoted, and a link becomes the text it shows.
fn plain(text: &str) -> String {
    let text = text.replace("[`", "").replace("`]", "").replace('`', "");
    let mut shown = String::new();
    let mut rest = text.as_str();
    // `[shown](target)`; any other bracket stands for itself.
    while let Some(middle) = rest.find("](") {
        let Some(open) = rest[..middle].rfind('[') else {
            break;
        };
        let Some(close) = rest[middle..].find(')') else {
            break;
        };
        shown.push_str(&rest[..open]);
        shown.push_str(&rest[open + 1..middle]);
        rest = &rest[middle + close + 1..];
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_is_taken_apart() {
        let source = "//! Author, \"Title\",\n//! Place.\n//!\n//! The `idea`.\n//!\n\
                      //! More.\n//!\n//! # Rules\n//!\n\
                      //! 1. See [`Foo`].\n//!    And [this](a::b).\n\nuse x;\n";
        let rules = Section { title: "Rules".into(), text: "1. See Foo.\n   And this.".into() };
        let header = Header {
            paper: "Author, \"Title\",\nPlace.".into(),
            idea: "The idea.\n\nMore.".into(),
            sections: vec![rules],
        };
        assert_eq!(Header::of(source), header);
        assert_eq!(plain("S[i] is (1](2"), "S[i] is (1](2");
    }

    #[test]
    fn every_algorithm_explains_itself() {
        for entry in ALL {
            let (name, header) = (entry.info.name, Header::about(entry));
            assert!(!header.paper.is_empty() && !header.idea.is_empty(), "{name}");
            let titles: Vec<_> = header.sections.iter().map(|part| part.title.as_str()).collect();
            if entry.info.refuted.is_some() {
                assert!(titles[0].starts_with("Rules of "), "{name}: {titles:?}");
                assert_eq!(titles[1], format!("What differs in {name}"), "{titles:?}");
                assert!(!titles.contains(&"Why it is right"), "{name}: {titles:?}");
            } else {
                assert!(titles.starts_with(&["Rules", "Why it is right"]), "{name}: {titles:?}");
                assert!(!titles.iter().any(|title| title.contains("Variant")), "{titles:?}");
            }
            assert!(header.sections.iter().all(|part| !part.text.is_empty()), "{name}");
        }
    }
}
