//! Which names have which rule.

use doorway_protocol::Name;

/// Names to rules: the patterns in order, and the rule of all other names last.
#[derive(Clone, Debug)]
pub(crate) struct Patterns {
    all: Vec<Pattern>,
    /// The bytes with which a name may begin that any pattern fits. Most names begin otherwise, and
    /// a node may have many patterns of which hardly any is used.
    firsts: [bool; 256],
}

#[derive(Clone, Debug)]
pub(crate) enum Pattern {
    Exactly(String),
    Beginning(String),
}

impl Pattern {
    fn text(&self) -> &str {
        let (Self::Exactly(text) | Self::Beginning(text)) = self;
        text
    }
}

impl Patterns {
    /// These, in this order.
    pub(crate) fn new(all: Vec<Pattern>) -> Self {
        let mut firsts = [false; 256];
        for pattern in &all {
            match pattern.text().bytes().next() {
                Some(first) => firsts[usize::from(first)] = true,
                None => firsts = [true; 256], // All names begin like this.
            }
        }
        Self { all, firsts }
    }

    /// The index of the rule for a name.
    pub(crate) fn rule(&self, name: &Name) -> usize {
        let name = name.as_str();
        let known = name.bytes().next().is_some_and(|first| self.firsts[usize::from(first)]);
        let fits = |pattern: &Pattern| match pattern {
            Pattern::Exactly(text) => name == text,
            Pattern::Beginning(text) => name.starts_with(text.as_str()),
        };
        let found = if known { self.all.iter().position(fits) } else { None };
        found.unwrap_or(self.all.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(patterns: Vec<Pattern>, names: &[&str]) -> Vec<usize> {
        let patterns = Patterns::new(patterns);
        names.iter().map(|name| patterns.rule(&Name::new(name).unwrap())).collect()
    }

    #[test]
    fn the_first_pattern_that_fits_decides() {
        let exactly = |text: &str| Pattern::Exactly(text.to_owned());
        let beginning = |text: &str| Pattern::Beginning(text.to_owned());
        let names = ["a", "ab", "b", "bc", "ü", "üb", "c"];
        let patterns = vec![exactly("ab"), beginning("a"), exactly("b"), beginning("ü")];
        assert_eq!(rules(patterns.clone(), &names), [1, 0, 2, 4, 3, 3, 4]);
        let with_all = [patterns, vec![beginning("")]].concat();
        assert_eq!(rules(with_all, &names), [1, 0, 2, 4, 3, 3, 4]);
        assert_eq!(rules(vec![beginning("")], &names), [0; 7]);
        assert_eq!(rules(Vec::new(), &names), [0; 7]);
    }
}
