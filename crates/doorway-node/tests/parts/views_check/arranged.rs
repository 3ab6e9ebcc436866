//! Rules that arrange the members n0, n1 and n2, as the settings can have them.

use doorway_node::RuleConfig;
use doorway_node::locks::Rule;

/// A rule of the settings with one key of an arrangement.
#[derive(Clone, Copy)]
pub(crate) struct ArrangedRule {
    pub(crate) algorithm: &'static str,
    key: &'static str,
    value: &'static str,
}

/// Rules that depend on n2: without it, members have to be arranged in another way.
pub(crate) const ARRANGED: [ArrangedRule; 6] = [
    ArrangedRule { algorithm: "central", key: "coordinator", value: "n2" },
    ArrangedRule { algorithm: "maekawa", key: "quorums", value: "n0=n0,n2; n1=n1,n2; n2=n2" },
    ArrangedRule { algorithm: "maekawa", key: "quorums", value: "grid" },
    ArrangedRule { algorithm: "raymond-tree", key: "tree", value: "n0=n2, n1=n0" },
    ArrangedRule { algorithm: "weighted-majority", key: "weights", value: "n0=0, n1=1, n2=2" },
    ArrangedRule { algorithm: "weighted-majority", key: "weights", value: "n0=0, n1=0, n2=1" },
];

impl ArrangedRule {
    /// The rule in a view of the members with these names. Locks do not linger.
    pub(crate) fn rule(self, members: &[String]) -> Rule {
        let mut config = RuleConfig::new("*", self.algorithm, 1);
        config.arrangement.set(self.key, self.value).expect("a value of this key");
        let mut rule = Rule::arranged(&config, members, 1).expect("a rule of the settings");
        rule.patience = None;
        rule
    }

    /// The first cells of a row: the algorithm and the arrangement.
    pub(crate) fn cells(self) -> String {
        format!("| `{}` | `{} = \"{}\"`", self.algorithm, self.key, self.value)
    }
}

/// The names of `size` members.
pub(crate) fn names(size: usize) -> Vec<String> {
    (0..size).map(|node| format!("n{node}")).collect()
}
