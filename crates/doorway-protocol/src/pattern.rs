//! Patterns that select locks by name.

use crate::name::{Name, NameError};

/// A pattern that selects locks by name: a whole name, or the beginning of names followed by `*`.
///
/// ```
/// use doorway_protocol::{Name, NamePattern};
///
/// let pattern = NamePattern::new("deploy/*");
/// assert!(pattern.matches(&Name::new("deploy/web").unwrap()));
/// assert!(!pattern.matches(&Name::new("backup").unwrap()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum NamePattern {
    /// Matches the lock of this name and no other.
    Exact(String),
    /// Matches every lock whose name begins with this text; every lock, if the text is empty.
    Prefix(String),
}

/// Why a text is not accepted as a pattern in a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// A `*` that is not the last character.
    #[error("`*` may only stand at the end")]
    Star,
    /// The text before the `*`, or the whole text, is not part of any valid name.
    #[error(transparent)]
    Name(#[from] NameError),
}

impl NamePattern {
    /// Read any text as a pattern. A text without `*` at its end is the name that it matches, so a
    /// text that is not a valid name matches nothing.
    pub fn new(text: &str) -> Self {
        match text.strip_suffix('*') {
            Some(prefix) => Self::Prefix(prefix.to_owned()),
            None => Self::Exact(text.to_owned()),
        }
    }

    /// Read a pattern of a configuration. Patterns that cannot match any name, or that use `*` as a
    /// wildcard anywhere but at the end, are mistakes and are refused.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let pattern = Self::new(text);
        if pattern.text().contains('*') {
            return Err(PatternError::Star);
        }
        if pattern != Self::Prefix(String::new()) {
            Name::new(pattern.text())?;
        }
        Ok(pattern)
    }

    /// The name, or the beginning of names, without the `*`.
    pub fn text(&self) -> &str {
        let (Self::Exact(text) | Self::Prefix(text)) = self;
        text
    }

    /// Does the pattern select the lock of this name?
    pub fn matches(&self, name: &Name) -> bool {
        match self {
            Self::Exact(text) => name.as_str() == text,
            Self::Prefix(text) => name.as_str().starts_with(text.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        NamePattern::new(pattern).matches(&Name::new(name).unwrap())
    }

    #[test]
    fn a_pattern_without_a_star_matches_one_name() {
        assert!(matches("deploy", "deploy"));
        assert!(!matches("deploy", "deploy/web"));
        assert!(!matches("deploy/web", "deploy"));
        assert!(!matches("", "deploy"));
    }

    #[test]
    fn a_star_at_the_end_matches_all_names_that_begin_so() {
        assert!(matches("deploy/*", "deploy/web"));
        assert!(matches("deploy/*", "deploy/"));
        assert!(!matches("deploy/*", "deploy"));
        assert!(matches("*", "deploy"));
    }

    #[test]
    fn a_star_elsewhere_is_an_ordinary_character() {
        assert!(matches("a*b", "a*b"));
        assert!(!matches("a*b", "axb"));
        assert!(matches("a**", "a*b"));
    }

    #[test]
    fn a_configuration_gets_no_pattern_that_cannot_be_meant() {
        for good in ["*", "a", "a*", "deploy/*"] {
            assert_eq!(NamePattern::parse(good), Ok(NamePattern::new(good)));
        }
        for star in ["a*b", "**", "a**", "*a"] {
            assert_eq!(NamePattern::parse(star), Err(PatternError::Star));
        }
        assert_eq!(NamePattern::parse(""), Err(PatternError::Name(NameError::Empty)));
        assert_eq!(NamePattern::parse("a\n*"), Err(PatternError::Name(NameError::Control('\n'))));
    }
}
