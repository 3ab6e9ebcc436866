//! Who has a vote, and what asking for votes costs.

use crate::algorithms::prelude::*;

/// Those whose vote weighs something.
pub(super) fn voters(group: &Group) -> impl Iterator<Item = NodeId> + '_ {
    group.nodes().filter(|node| group.weight(*node) > 0)
}

/// How many they are.
fn count(group: &Group) -> f64 {
    voters(group).count() as f64
}

/// A voter asks one fewer than a node without a vote; calling a vote back costs up to three more.
/// A REQUEST that comes after the next one of its node is not answered at all.
pub(super) const fn claim(least: &'static str, most: &'static str, light: &'static str) -> Claim {
    let light = Formula { text: light, of: |g| 3.0 * count(g) * (1.0 - 1.0 / f64::from(g.size())) };
    Claim {
        least: Formula { text: least, of: |g| count(g) - 1.0 },
        most: Formula { text: most, of: |g| 6.0 * count(g).min(f64::from(g.size()) - 1.0) },
        per: Per::Run,
        light: Some(light),
        heavy: None,
    }
}
