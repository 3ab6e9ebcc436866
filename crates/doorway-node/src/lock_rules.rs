//! The rules for locks: which algorithm serves which names.

use doorway_protocol::{NAMES, NamePattern, RuleTable, RuleTables};

use crate::arrangement::{Arrangement, check_fixed};
use crate::config::Mistake;
use crate::locks::{Rule, RuleBook};
use crate::members::SEATS_LIMIT;
use crate::patterns::Patterns;

/// Which algorithm serves the lock names that match a pattern.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RuleConfig {
    /// A lock name, or the beginning of lock names followed by `*`.
    pub pattern: String,
    /// The algorithm.
    pub algorithm: String,
    /// How many clients may be inside at once.
    pub permits: u32,
    /// How the members are arranged for these locks.
    pub arrangement: Arrangement,
}

/// The rules for all locks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LockRules {
    /// Which algorithm serves which lock names; the first pattern that matches counts.
    pub rules: Vec<RuleConfig>,
    /// The algorithm of all other names.
    pub algorithm: String,
}

const ALGORITHM: &str = "algorithm";
const PERMITS: &str = "permits";

impl RuleConfig {
    /// A rule that leaves the arrangement of the members to the algorithm.
    pub fn new(pattern: impl Into<String>, algorithm: impl Into<String>, permits: u32) -> Self {
        let (pattern, algorithm) = (pattern.into(), algorithm.into());
        Self { pattern, algorithm, permits, arrangement: Arrangement::default() }
    }

    /// The rule for all names that no pattern matches.
    fn of_others(algorithm: &str) -> Self {
        Self::new("*", algorithm, 1)
    }

    fn table(&self) -> RuleTable {
        let Self { pattern, algorithm, permits, arrangement } = self;
        let keys = [
            (NAMES, pattern.clone()),
            (ALGORITHM, algorithm.clone()),
            (PERMITS, permits.to_string()),
        ];
        let keys = keys.into_iter().chain(arrangement.keys());
        keys.map(|(key, value)| (key.to_owned(), value)).collect()
    }

    fn read(table: &RuleTable) -> Result<Self, String> {
        let pattern = table.get(NAMES).ok_or("a rule has no names")?.clone();
        let mut rule = Self::new(pattern, "", 1);
        for (key, value) in table.iter().filter(|(key, _)| *key != NAMES) {
            let names = &rule.pattern;
            match key.as_str() {
                ALGORITHM => rule.algorithm.clone_from(value),
                PERMITS => {
                    let permits = value.parse();
                    let wrong = |_| format!("the rule for `{names}` has `{value}` permits");
                    rule.permits = permits.map_err(wrong)?;
                }
                key if Arrangement::KEYS.contains(&key) => {
                    let wrong = |why| format!("`{key}` of the rule for `{names}`: {why}");
                    rule.arrangement.set(key, value).map_err(wrong)?;
                }
                other => return Err(unknown(&format!("for `{names}`"), other)),
            }
        }
        Ok(rule)
    }
}

/// A key that a newer version of the program has written.
fn unknown(rule: &str, key: &str) -> String {
    format!("the rule {rule} has the key `{key}`, which this version of doorway does not know")
}

impl LockRules {
    /// The rules as tables, on which a group can agree.
    pub fn tables(&self) -> RuleTables {
        let others = RuleTable::from([(ALGORITHM.to_owned(), self.algorithm.clone())]);
        RuleTables(self.rules.iter().map(RuleConfig::table).chain([others]).collect())
    }

    /// Read the rules on which a group has agreed. The error says what this version does not know.
    pub fn read(tables: &RuleTables) -> Result<Self, String> {
        let (others, rules) = tables.0.split_last().ok_or("there are no rules")?;
        if let Some(key) = others.keys().find(|key| *key != ALGORITHM) {
            return Err(unknown("for all other locks", key));
        }
        let algorithm = others.get(ALGORITHM).ok_or("the last rule has no algorithm")?.clone();
        let rules = rules.iter().map(RuleConfig::read).collect::<Result<_, _>>()?;
        Ok(Self { rules, algorithm })
    }

    /// Check that the rules work for every number of members. One example for each mistake is
    /// enough.
    pub(crate) fn check_all_sizes(&self) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        self.patterns(&mut mistakes);
        let sizes = (1..=SEATS_LIMIT).rev();
        let of_size = sizes.map(|size| {
            let mut mistakes = Vec::new();
            let names: Vec<String> = (0..size).map(|node| node.to_string()).collect();
            self.all_rules(&names, Members::Agreed, 0, &mut mistakes);
            mistakes
        });
        mistakes
            .extend(of_size.into_iter().find(|of_size| !of_size.is_empty()).unwrap_or_default());
        mistakes
    }

    /// The rules of a view with these members, whose clients may pass a lock on this many times in
    /// a row. `agreed` is the hash of rules on which a group has agreed. The caller must have
    /// checked the rules.
    pub fn arrange(&self, members: &[String], handovers: u32, agreed: Option<u64>) -> RuleBook {
        let mut mistakes = Vec::new();
        let book = self.try_arrange(members, Members::Agreed, handovers, &mut mistakes);
        debug_assert!(mistakes.is_empty(), "rules that work for every number of members");
        RuleBook { agreed, ..book }
    }

    /// The rules of a view with these members. All mistakes in them are added to `mistakes`.
    pub(crate) fn try_arrange(
        &self,
        members: &[String],
        kind: Members,
        handovers: u32,
        mistakes: &mut Vec<Mistake>,
    ) -> RuleBook {
        let patterns = self.patterns(mistakes);
        let rules = self.all_rules(members, kind, handovers, mistakes);
        RuleBook { patterns, rules, agreed: None }
    }

    fn patterns(&self, mistakes: &mut Vec<Mistake>) -> Patterns {
        let mut patterns = Vec::new();
        for RuleConfig { pattern, .. } in &self.rules {
            match NamePattern::parse(pattern) {
                Ok(pattern) => patterns.push(pattern),
                Err(error) => {
                    let (pattern, reason) = (pattern.clone(), error.to_string());
                    mistakes.push(Mistake::BadPattern { pattern, reason });
                }
            }
        }
        Patterns::new(patterns)
    }

    fn all_rules(
        &self,
        members: &[String],
        kind: Members,
        handovers: u32,
        mistakes: &mut Vec<Mistake>,
    ) -> Vec<Rule> {
        let others = RuleConfig::of_others(&self.algorithm);
        let mut rules = Vec::new();
        for config in self.rules.iter().chain([&others]) {
            let made = Rule::arranged(config, members, handovers).and_then(|rule| {
                if kind == Members::Fixed {
                    check_fixed(config, members, rule.deviation.as_ref())?;
                }
                Ok(rule)
            });
            match made {
                Ok(rule) => rules.push(rule),
                Err(error) => {
                    mistakes.push(Mistake::BadRule { pattern: config.pattern.clone(), error });
                }
            }
        }
        rules
    }

    /// Which rules serve their locks otherwise than they say if the group has these members, each
    /// in one line.
    pub fn deviations(&self, members: &[String]) -> Vec<String> {
        let mut lines = Vec::new();
        for config in &self.rules {
            let Ok(rule) = Rule::arranged(config, members, 0) else { continue };
            if let Some(deviation) = rule.deviation {
                lines.push(format!("locks `{}`: {deviation}", config.pattern));
            }
        }
        lines
    }
}

/// Whether the members of a group can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Members {
    /// The members are fixed, so rules that do not fit them are mistakes.
    Fixed,
    /// The group agrees on them, so rules have to work for whatever members there are.
    Agreed,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> LockRules {
        let mut grid = RuleConfig::new("g*", "maekawa", 1);
        grid.arrangement.set("quorums", "grid").unwrap();
        let slots = RuleConfig::new("slots", "raymond-k", 3);
        let rules = vec![slots, RuleConfig::new("x*", "lamport", 1), grid];
        LockRules { rules, algorithm: "maekawa".into() }
    }

    #[test]
    fn rules_are_the_same_after_a_group_has_agreed_on_them() {
        let rules = rules();
        let tables = rules.tables();
        assert_eq!(LockRules::read(&tables), Ok(rules));
        assert_eq!(tables.0.len(), 4);
        assert_eq!(tables.0[2]["quorums"], "grid");
        assert_eq!(tables.0[0]["permits"], "3");
    }

    #[test]
    fn a_version_that_does_not_know_a_key_says_so() {
        let mut tables = rules().tables();
        tables.0[1].insert("colour".into(), "blue".into());
        let why = LockRules::read(&tables).unwrap_err();
        assert!(why.contains("`x*`") && why.contains("`colour`"), "{why}");
        for (at, key, value) in [(0, "permits", "many"), (2, "tree", "bush"), (3, "names", "x")] {
            let mut tables = rules().tables();
            tables.0[at].insert(key.into(), value.into());
            LockRules::read(&tables).unwrap_err();
        }
        LockRules::read(&RuleTables::default()).unwrap_err();
    }

    #[test]
    fn rules_are_checked_for_every_number_of_members() {
        assert_eq!(rules().check_all_sizes(), []);
        let unknown = LockRules { algorithm: "lampard".into(), ..rules() };
        assert_eq!(unknown.check_all_sizes().len(), 1);
    }
}
