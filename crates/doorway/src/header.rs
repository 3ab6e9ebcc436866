//! The opening comment of an algorithm's file, taken apart: paper, idea, and sections.

use serde::Serialize;

/// What the comment says.
#[derive(Debug, PartialEq)]
pub(crate) struct Header {
    /// Authors, title and place.
    pub(crate) paper: String,
    /// The idea in a few lines.
    pub(crate) idea: String,
    /// Rules, why they are right, and what else there is.
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

impl Header {
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

/// The lines as one plain text, without empty ones before and after.
fn joined(lines: &[&str]) -> String {
    plain(lines.join("\n").trim_matches('\n'))
}

/// Text without the marks of rustdoc: code is unquoted, and a link is what it shows.
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
    use doorway_core::algorithms::ALL;

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
            let (name, header) = (entry.info.name, Header::of(entry.source));
            assert!(!header.paper.is_empty() && !header.idea.is_empty(), "{name}");
            let titles: Vec<_> = header.sections.iter().map(|part| part.title.as_str()).collect();
            assert!(titles.starts_with(&["Rules", "Why it is right"]), "{name}: {titles:?}");
            assert!(header.sections.iter().all(|part| !part.text.is_empty()), "{name}");
        }
    }
}
