//! The rules of all locks of a view.

use std::ops::Index;

use doorway_protocol::{Name, NamePattern};

use super::returns::Patience;
use super::rule::Rule;
use crate::patterns::Patterns;

/// The rules of all locks of a view, and which of them counts for which name.
#[derive(Clone, Debug)]
pub struct RuleBook {
    pub(crate) patterns: Patterns,
    pub(crate) rules: Vec<Rule>,
    /// In a group that agrees on its rules: the hash of the rules. The next view may have others.
    pub(crate) agreed: Option<u64>,
}

impl RuleBook {
    /// One rule for each of these patterns, in this order, and a last rule for all other names.
    /// They are the rules of every view.
    ///
    /// # Panics
    ///
    /// If the numbers of patterns and rules do not fit.
    pub fn new(patterns: Vec<NamePattern>, rules: Vec<Rule>) -> Self {
        assert_eq!(
            patterns.len() + 1,
            rules.len(),
            "one rule for each pattern, and one for others"
        );
        Self { patterns: Patterns::new(patterns), rules, agreed: None }
    }

    /// One rule for all names. It is the rule of every view.
    pub fn of_all(rule: Rule) -> Self {
        Self::new(Vec::new(), vec![rule])
    }

    /// The rules of a view of a group that has agreed on rules with this hash.
    pub fn agreed(self, digest: u64) -> Self {
        Self { agreed: Some(digest), ..self }
    }

    /// Give all rules this patience, for simulations whose clients are slow.
    #[doc(hidden)]
    pub fn with_patience(mut self, patience: Patience) -> Self {
        self.rules.iter_mut().for_each(|rule| rule.patience = Some(patience));
        self
    }

    /// The index of the rule for a name.
    pub fn index_of(&self, name: &Name) -> usize {
        self.patterns.rule(name)
    }

    /// The rule for a name.
    pub fn rule_of(&self, name: &Name) -> &Rule {
        &self.rules[self.index_of(name)]
    }

    /// All rules. The last one has no pattern.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter()
    }

    /// Whether all names have the rules and algorithms that they have in `other`.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let name = |rule: &Rule| rule.info.name;
        self.agreed == other.agreed && self.iter().map(name).eq(other.iter().map(name))
    }
}

impl Index<usize> for RuleBook {
    type Output = Rule;

    fn index(&self, index: usize) -> &Rule {
        &self.rules[index]
    }
}
