//! The rules for locks in a form that does not depend on which keys a rule can have.
//!
//! A group that agrees on its members also agrees on the rules for locks. They are stored, sent and
//! compared as tables of texts. So a node can carry rules with keys that it does not know, show
//! them, and say that it does not know them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::fnv::fnv1a;

/// The key of the pattern of a rule.
pub const NAMES: &str = "names";

/// The most bytes that all rules of a group may have.
pub const RULES_LIMIT: usize = 32 * 1024;

/// The keys of one rule, and their values as texts.
pub type RuleTable = BTreeMap<String, String>;

/// The rules for locks, in their order. The first rule whose pattern ([`NAMES`]) matches the name
/// of a lock counts. The last rule has no pattern, and counts for all other names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RuleTables(pub Vec<RuleTable>);

/// A difference between two lists of rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "change", rename_all = "kebab-case")]
pub enum RuleChange {
    /// A rule was added.
    Added {
        /// The rule.
        rule: RuleTable,
    },
    /// A rule was removed.
    Removed {
        /// The rule.
        rule: RuleTable,
    },
    /// A rule has other values than before.
    Changed {
        /// The pattern of the rule; none if it is the rule for all other names.
        names: Option<String>,
        /// The keys with other values.
        keys: Vec<KeyChange>,
    },
    /// Rules have changed their places. The first rule that matches counts.
    Reordered {
        /// The patterns of the rules, in their new order.
        order: Vec<String>,
    },
}

/// A key of a rule with another value than before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeyChange {
    /// The key.
    pub key: String,
    /// The value of the key before, if it had one.
    pub before: Option<String>,
    /// The value of the key now, if it has one.
    pub after: Option<String>,
}

/// Which rule of a list is meant: its pattern, and how many rules before it have the same one.
type Identity<'a> = (Option<&'a str>, usize);

impl RuleTables {
    /// A hash of the rules. Members that have agreed on this hash have agreed on the rules. It is
    /// part of the protocol: FNV-1a over texts, each followed by a byte that occurs in none of
    /// them.
    pub fn digest(&self) -> u64 {
        let text = |text: &str, end: u8| text.bytes().chain([end]).collect::<Vec<u8>>();
        let tables = self.0.iter().flat_map(|table| {
            let keys = table.iter().flat_map(|(key, value)| [text(key, 0xff), text(value, 0xff)]);
            keys.flatten().chain([0xfe]).collect::<Vec<u8>>()
        });
        fnv1a(tables)
    }

    /// How many bytes the rules have, as [`RULES_LIMIT`] counts them.
    pub fn bytes(&self) -> usize {
        let texts = self.0.iter().flatten();
        texts.map(|(key, value)| key.len() + value.len() + 2).sum()
    }

    /// What has changed from these rules to others.
    pub fn changes_to(&self, after: &Self) -> Vec<RuleChange> {
        let (old, new) = (self.identities(), after.identities());
        let find = |list: &[(Identity<'_>, &RuleTable)], id: &Identity<'_>| {
            list.iter().find(|(other, _)| other == id).map(|(_, table)| RuleTable::clone(table))
        };
        let mut changes = Vec::new();
        for (id, table) in &old {
            match find(&new, id) {
                None => changes.push(RuleChange::Removed { rule: RuleTable::clone(table) }),
                Some(now) if now != **table => {
                    let (names, keys) = (id.0.map(str::to_owned), key_changes(table, &now));
                    changes.push(RuleChange::Changed { names, keys });
                }
                Some(_) => {}
            }
        }
        let added = new.iter().filter(|(id, _)| find(&old, id).is_none());
        changes.extend(added.map(|(_, rule)| RuleChange::Added { rule: RuleTable::clone(rule) }));
        let kept = |list: &[(Identity<'_>, &RuleTable)], other: &[(Identity<'_>, &RuleTable)]| {
            let kept = list.iter().filter(|(id, _)| find(other, id).is_some());
            kept.map(|(id, _)| (id.0.map(str::to_owned), id.1)).collect::<Vec<_>>()
        };
        if kept(&old, &new) != kept(&new, &old) {
            let order = new.iter().filter_map(|(id, _)| id.0.map(str::to_owned)).collect();
            changes.push(RuleChange::Reordered { order });
        }
        changes
    }

    fn identities(&self) -> Vec<(Identity<'_>, &RuleTable)> {
        let names = |table: &'_ RuleTable| table.get(NAMES).cloned();
        let nth = |at: usize| {
            let own = names(&self.0[at]);
            self.0[..at].iter().filter(|table| names(table) == own).count()
        };
        let tables = self.0.iter().enumerate();
        tables.map(|(at, table)| ((table.get(NAMES).map(String::as_str), nth(at)), table)).collect()
    }
}

fn key_changes(before: &RuleTable, after: &RuleTable) -> Vec<KeyChange> {
    let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let changed = keys.into_iter().filter(|key| before.get(*key) != after.get(*key));
    let change = |key: &String| KeyChange {
        key: key.clone(),
        before: before.get(key).cloned(),
        after: after.get(key).cloned(),
    };
    changed.map(change).collect()
}

/// Who is meant by a rule.
fn subject(names: Option<&str>) -> &str {
    names.unwrap_or("all other locks")
}

/// All keys of a rule but its pattern.
struct Keys<'a>(&'a RuleTable);

impl fmt::Display for Keys<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = self.0.iter().filter(|(key, _)| *key != NAMES);
        for (at, (key, value)) in keys.enumerate() {
            write!(f, "{}{key} {value}", if at == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

/// One line.
impl fmt::Display for RuleChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |rule: &RuleTable| subject(rule.get(NAMES).map(String::as_str)).to_owned();
        match self {
            Self::Added { rule } => write!(f, "added    {}: {}", names(rule), Keys(rule)),
            Self::Removed { rule } => write!(f, "removed  {}: {}", names(rule), Keys(rule)),
            Self::Changed { names, keys } => {
                write!(f, "changed  {}:", subject(names.as_deref()))?;
                for (at, KeyChange { key, before, after }) in keys.iter().enumerate() {
                    let shown = |value: &Option<String>| value.clone().unwrap_or("none".to_owned());
                    let comma = if at == 0 { "" } else { "," };
                    write!(f, "{comma} {key} {} -> {}", shown(before), shown(after))?;
                }
                Ok(())
            }
            Self::Reordered { order } => {
                write!(f, "order    the first that matches counts: {}", order.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(names: &str, algorithm: &str, permits: &str) -> RuleTable {
        let keys = [(NAMES, names), ("algorithm", algorithm), ("permits", permits)];
        let keys = keys.into_iter().filter(|(_, value)| !value.is_empty());
        keys.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    fn said(before: &[RuleTable], after: &[RuleTable]) -> Vec<String> {
        let changes = RuleTables(before.to_vec()).changes_to(&RuleTables(after.to_vec()));
        changes.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_difference_is_one_line() {
        let (jobs, slots) = (rule("jobs/*", "lamport", "1"), rule("slots", "raymond-k", "4"));
        let others = rule("", "lamport", "");
        let before = [jobs.clone(), slots.clone(), others.clone()];
        assert!(said(&before, &before).is_empty());
        let after = [rule("slots", "raymond-k", "2"), rule("x", "maekawa", "1"), jobs.clone()];
        let after = [&after[..], &[rule("", "carvalho-roucairol", "")]].concat();
        assert_eq!(
            said(&before, &after),
            [
                "changed  slots: permits 4 -> 2",
                "changed  all other locks: algorithm lamport -> carvalho-roucairol",
                "added    x: algorithm maekawa, permits 1",
                "order    the first that matches counts: slots, x, jobs/*",
            ]
        );
        assert_eq!(
            said(&before, &[slots, others]),
            ["removed  jobs/*: algorithm lamport, permits 1"]
        );
    }

    #[test]
    fn rules_with_one_pattern_are_told_apart_by_their_order() {
        let (one, two) = (rule("x", "lamport", "1"), rule("x", "maekawa", "1"));
        let lines = said(&[one.clone(), two.clone()], &[two, one]);
        assert_eq!(lines.len(), 2, "both have changed: {lines:?}");
    }

    #[test]
    fn the_digest_covers_every_key_and_the_order() {
        let (one, two) = (rule("a", "lamport", "1"), rule("b", "lamport", "1"));
        let digests = [
            RuleTables(vec![one.clone(), two.clone()]),
            RuleTables(vec![two.clone(), one.clone()]),
            RuleTables(vec![one.clone()]),
            RuleTables(vec![rule("a", "lamport", "2")]),
            RuleTables(vec![one.into_iter().chain(two).collect()]),
            RuleTables::default(),
        ]
        .map(|tables| tables.digest());
        let different: BTreeSet<u64> = digests.into_iter().collect();
        assert_eq!(different.len(), 6);
        assert_eq!(RuleTables::default().digest(), 0xcbf2_9ce4_8422_2325, "part of the protocol");
    }
}
