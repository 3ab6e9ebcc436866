//! Which rule applies to which lock name.

use doorway_protocol::{Name, NamePattern};

/// Finds the rule for a lock name: the first pattern that matches decides. Names that no pattern
/// matches use the last rule, which has no pattern.
#[derive(Clone, Debug)]
pub(crate) struct Patterns {
    all: Vec<NamePattern>,
    /// The bytes with which a name can begin that any pattern matches. Most names begin with
    /// another byte, and a node may have many patterns of which hardly any is used.
    firsts: [bool; 256],
}

impl Patterns {
    /// Rules with these patterns, in this order.
    pub(crate) fn new(all: Vec<NamePattern>) -> Self {
        let mut firsts = [false; 256];
        for pattern in &all {
            match pattern.text().bytes().next() {
                Some(first) => firsts[usize::from(first)] = true,
                None => firsts = [true; 256], // An empty prefix matches every name.
            }
        }
        Self { all, firsts }
    }

    /// The index of the rule for a name.
    pub(crate) fn rule(&self, name: &Name) -> usize {
        let first = name.as_str().bytes().next();
        let known = first.is_some_and(|first| self.firsts[usize::from(first)]);
        let matching = |pattern: &NamePattern| pattern.matches(name);
        let found = if known { self.all.iter().position(matching) } else { None };
        found.unwrap_or(self.all.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(patterns: &[&str], names: &[&str]) -> Vec<usize> {
        let patterns = patterns.iter().map(|pattern| NamePattern::new(pattern)).collect();
        let patterns = Patterns::new(patterns);
        names.iter().map(|name| patterns.rule(&Name::new(name).unwrap())).collect()
    }

    #[test]
    fn the_first_pattern_that_matches_decides() {
        let names = ["a", "ab", "b", "bc", "ü", "üb", "c"];
        assert_eq!(rules(&["ab", "a*", "b", "ü*"], &names), [1, 0, 2, 4, 3, 3, 4]);
        assert_eq!(rules(&["ab", "a*", "b", "ü*", "*"], &names), [1, 0, 2, 4, 3, 3, 4]);
        assert_eq!(rules(&["*"], &names), [0; 7]);
        assert_eq!(rules(&[], &names), [0; 7]);
    }
}
