//! Reports the mistakes that the node finds in its configuration, each with its line.

use std::collections::BTreeSet;

use doorway_node::locks::{RuleError, served};
use doorway_node::{Config, ConfigError, Mistake};
use doorway_protocol::LABEL;
use doorway_protocol::nearest::nearest;

use super::document::Diagnostics;

/// The lines of the parts of a node's configuration.
#[derive(Default)]
pub(super) struct Lines {
    pub(super) group: Option<usize>,
    pub(super) node: Option<usize>,
    pub(super) algorithm: Option<usize>,
    pub(super) links: Option<usize>,
    /// The members, and the line of each.
    pub(super) members: Vec<(String, usize)>,
    /// The rules for locks.
    pub(super) locks: Vec<LockLine>,
    /// Whether the file has a `[tls]`, right or wrong.
    pub(super) tls: bool,
}

/// A rule for locks, with its lines.
pub(super) struct LockLine {
    pub(super) pattern: String,
    /// The line of its `names`.
    pub(super) line: Option<usize>,
    /// The line of its algorithm.
    pub(super) algorithm: Option<usize>,
    /// The keys that arrange the members, and the line of each.
    pub(super) arrangement: Vec<(&'static str, Option<usize>)>,
    /// Whether its algorithm is that of all other locks, whose mistakes are reported once.
    pub(super) inherited: bool,
}

impl LockLine {
    /// The line on which a rule is wrong, as far as the mistake tells.
    fn of(&self, error: &RuleError) -> Option<usize> {
        let wrong = match (error, self.arrangement.as_slice()) {
            (RuleError::Unknown(_) | RuleError::NotServed(_), _) => self.algorithm,
            (RuleError::Arrangement(error), all) => {
                all.iter().find(|(key, _)| *key == error.key).and_then(|(_, line)| *line)
            }
            (_, [(_, only)]) => *only,
            _ => None,
        };
        wrong.or(self.line)
    }
}

impl Lines {
    fn member(&self, name: &str, nth: usize) -> Option<usize> {
        self.members.iter().filter(|(other, _)| other == name).nth(nth).map(|(_, line)| *line)
    }
}

/// Check the node's part of the settings.
pub(super) fn node(diagnostics: &Diagnostics, config: &Config, is_agreed: bool, lines: &Lines) {
    let checked = if is_agreed { config.validate_agreed() } else { config.validate() };
    let Err(ConfigError(mistakes)) = checked else { return };
    // If two rules have the same pattern, the second mistake is that of the second rule.
    let mut seen: Vec<&str> = Vec::new();
    for mistake in &mistakes {
        match mistake {
            Mistake::BadRule { pattern, .. } => {
                let nth = seen.iter().filter(|other| **other == pattern).count();
                seen.push(pattern);
                one(diagnostics, config, lines, mistake, nth);
            }
            _ => one(diagnostics, config, lines, mistake, 0),
        }
    }
}

fn one(diagnostics: &Diagnostics, config: &Config, lines: &Lines, mistake: &Mistake, nth: usize) {
    let what = mistake.to_string();
    let (what, remedy) = match what.split_once("; ") {
        Some((what, remedy)) => (what.to_owned(), remedy.to_owned()),
        None => (what, String::new()),
    };
    let first_member = lines.members.first().map(|(_, line)| *line);
    match mistake {
        Mistake::BadLabel { what: "group", name } => {
            let remedy = format!("use {LABEL}");
            let what = format!("`{name}` cannot be the name of a group");
            diagnostics.wrong(lines.group, what, remedy);
        }
        Mistake::BadLabel { name, .. } => {
            let remedy = format!("use {LABEL}");
            let line = lines.member(name, 0).or(lines.node);
            diagnostics.wrong(line, format!("`{name}` cannot be the name of a node"), remedy);
        }
        Mistake::Twice(name) => {
            diagnostics.wrong(lines.member(name, 1), what, "remove one of the two");
        }
        Mistake::NotAMember(name) => {
            let names: BTreeSet<&str> =
                config.members.iter().map(|member| member.name.as_str()).collect();
            let remedy = match nearest(name, names.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None if lines.node.is_some() => {
                    format!("`node` has to be one of {}", Vec::from_iter(names).join(", "))
                }
                None => "add `node = \"NAME\"` with the name of this member".to_owned(),
            };
            let what = match lines.node {
                Some(_) => format!("`{name}` is not among the members"),
                None => "the file does not say which of the members this node is".to_owned(),
            };
            diagnostics.wrong(lines.node.or(first_member), what, remedy);
        }
        Mistake::BadPattern { pattern, reason } => {
            let what = format!("`{pattern}` matches no names: {reason}");
            let remedy = "write a whole name, or a prefix followed by `*`";
            diagnostics.wrong(lock(lines, pattern, 0).and_then(|lock| lock.line), what, remedy);
        }
        Mistake::BadRule { pattern, error } => {
            let lock = lock(lines, pattern, nth);
            if lock.is_some_and(|lock| lock.inherited) {
                return;
            }
            let line = lock.map_or(lines.algorithm, |lock| lock.of(error));
            let what = lock.map_or_else(|| error.to_string(), |_| what);
            let what = what.split_once("; ").map_or(what.as_str(), |(what, _)| what);
            diagnostics.wrong(line, what, rule_remedy(error, remedy));
        }
        // If there is a [tls], its own mistakes are reported.
        Mistake::NoCertificates if lines.tls => {}
        Mistake::NoCertificates => {
            let remedy = "add [tls] with `ca`, `certificate` and `key`; `doorway ca` makes them";
            diagnostics.wrong(first_member, "a node with peers needs certificates", remedy);
        }
        Mistake::NoData => {
            let what = "a node with peers needs a directory that survives restarts";
            diagnostics.wrong(first_member, what, "add data = \"/var/lib/doorway\"");
        }
        Mistake::Zero(_) => diagnostics.wrong(None, what, "write a number from 1"),
        Mistake::Impatient => {
            let what = "a link would be given up before its first heartbeat";
            let remedy = "make `silence` several times as long as `heartbeat`";
            diagnostics.wrong(lines.links, what, remedy);
        }
        // A kind of mistake that was added to the node later.
        _ => diagnostics.wrong(None, what, remedy),
    }
}

/// The remedy for a rule that cannot be served.
fn rule_remedy(error: &RuleError, otherwise: String) -> String {
    let near = match error {
        RuleError::Unknown(name) => nearest(name, served()),
        _ => None,
    };
    match near {
        Some(near) => format!("did you mean `{near}`?"),
        None if otherwise.is_empty() => {
            "`doorway list` shows what each algorithm can do".to_owned()
        }
        None => otherwise,
    }
}

fn lock<'l>(lines: &'l Lines, pattern: &str, nth: usize) -> Option<&'l LockLine> {
    lines.locks.iter().filter(|lock| lock.pattern == pattern).nth(nth)
}
