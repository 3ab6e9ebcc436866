//! Arrangements as texts: the values of the keys of `[[lock]]`, and of the rules on which a group
//! agrees.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use doorway_core::Wiring;
use doorway_core::quorums::Plan;
use doorway_protocol::{LABEL, is_label};

use super::{Arrangement, QuorumChoice, TreeChoice};

pub(super) const QUORUMS: &str = "quorums";
pub(super) const WEIGHTS: &str = "weights";
pub(super) const TREE: &str = "tree";
pub(super) const TOPOLOGY: &str = "topology";
pub(super) const PERMITS_PER_NODE: &str = "permits_per_node";
pub(super) const COORDINATOR: &str = "coordinator";

impl Arrangement {
    /// The keys of a rule that arrange the members.
    pub const KEYS: [&str; 6] = [QUORUMS, WEIGHTS, TREE, TOPOLOGY, PERMITS_PER_NODE, COORDINATOR];

    /// Set one of [`Arrangement::KEYS`] to a value. The error says what is wrong with the value,
    /// and after a semicolon what would be right.
    ///
    /// # Panics
    ///
    /// If there is no such key.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            QUORUMS => self.quorums = Some(quorums(value)?),
            WEIGHTS => self.weights = Some(weights(value)?),
            TREE => self.tree = Some(tree(value)?),
            TOPOLOGY => self.topology = Some(topology(value)?),
            PERMITS_PER_NODE => self.permits_per_node = Some(number(value)?),
            COORDINATOR => self.coordinator = Some(name(value)?),
            _ => panic!("`{key}` is not a key of an arrangement"),
        }
        Ok(())
    }

    /// The keys that are set, with their values as texts.
    pub fn keys(&self) -> Vec<(&'static str, String)> {
        let keys = [
            (QUORUMS, self.quorums.as_ref().map(show_quorums)),
            (WEIGHTS, self.weights.as_ref().map(show_pairs)),
            (TREE, self.tree.as_ref().map(show_tree)),
            (TOPOLOGY, self.topology.map(|topology| show_topology(topology).to_owned())),
            (PERMITS_PER_NODE, self.permits_per_node.map(|permits| permits.to_string())),
            (COORDINATOR, self.coordinator.clone()),
        ];
        keys.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
    }
}

fn name(text: &str) -> Result<String, String> {
    let text = text.trim();
    if is_label(text) {
        return Ok(text.to_owned());
    }
    Err(format!("`{text}` cannot be the name of a member; use {LABEL}"))
}

fn number(text: &str) -> Result<u32, String> {
    text.trim().parse().map_err(|_| {
        format!("`{text}` is not a number; write a whole number from 0 to {}", u32::MAX)
    })
}

/// Parse `NAME=VALUE` with a mark between several of them. No name may come twice.
fn pairs<T>(
    text: &str,
    mark: char,
    example: &str,
    value: impl Fn(&str) -> Result<T, String>,
) -> Result<BTreeMap<String, T>, String> {
    let mut pairs = BTreeMap::new();
    for pair in text.split(mark) {
        let Some((member, of_member)) = pair.split_once('=') else {
            return Err(format!("`{}` does not name a member; write {example}", pair.trim()));
        };
        let member = name(member)?;
        let of_member = value(of_member)?;
        if pairs.insert(member.clone(), of_member).is_some() {
            return Err(format!("`{member}` is there twice; remove one of the two"));
        }
    }
    Ok(pairs)
}

fn quorums(text: &str) -> Result<QuorumChoice, String> {
    const EXAMPLE: &str = "the quorum of each member by name, as in \"a=a,b; b=b,c; c=c,a\"";
    if text.contains('=') {
        let set = |set: &str| set.split(',').map(name).collect::<Result<BTreeSet<_>, _>>();
        return pairs(text, ';', EXAMPLE, set).map(QuorumChoice::Sets);
    }
    if Plan::is_by_hand(text) {
        return Err(format!("`{text}` has no names of members; write {EXAMPLE}"));
    }
    text.parse().map(QuorumChoice::Made)
}

fn weights(text: &str) -> Result<BTreeMap<String, u32>, String> {
    pairs(text, ',', "the weight of each member, as in \"a=2, b=1, c=1\"", number)
}

fn tree(text: &str) -> Result<TreeChoice, String> {
    if text.contains('=') {
        let example = "the parent of each member but the root, as in \"b=a, c=a, d=b\"";
        return pairs(text, ',', example, name).map(TreeChoice::Parents);
    }
    text.parse().map(TreeChoice::Shape).map_err(|_| {
        format!(
            "`{text}` is not a tree; write chain, star, balanced:K, or the parent of each member \
             but the root, as in \"b=a, c=a, d=b\""
        )
    })
}

fn topology(text: &str) -> Result<Wiring, String> {
    let all = [Wiring::Mesh, Wiring::Ring, Wiring::Tree];
    let found = all.into_iter().find(|wiring| show_topology(*wiring) == text);
    found.ok_or_else(|| format!("`{text}` is not a topology; write mesh, ring or tree"))
}

fn show_pairs<T: Display>(pairs: &BTreeMap<String, T>) -> String {
    let pair = |(name, value): (&String, &T)| format!("{name}={value}");
    pairs.iter().map(pair).collect::<Vec<_>>().join(", ")
}

fn show_quorums(quorums: &QuorumChoice) -> String {
    match quorums {
        QuorumChoice::Made(plan) => plan.to_string(),
        QuorumChoice::Sets(sets) => {
            let set = |(owner, set): (&String, &BTreeSet<String>)| {
                let members: Vec<&str> = set.iter().map(String::as_str).collect();
                format!("{owner}={}", members.join(","))
            };
            sets.iter().map(set).collect::<Vec<_>>().join("; ")
        }
    }
}

fn show_tree(tree: &TreeChoice) -> String {
    match tree {
        TreeChoice::Shape(shape) => shape.to_string(),
        TreeChoice::Parents(parents) => show_pairs(parents),
    }
}

fn show_topology(topology: Wiring) -> &'static str {
    match topology {
        Wiring::Mesh => "mesh",
        Wiring::Ring => "ring",
        Wiring::Tree => "tree",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arrangement_is_read_back_from_its_texts() {
        for (key, value) in [
            ("quorums", "grid"),
            ("quorums", "triangle:2"),
            ("quorums", "a=a,b; b=b,c; c=a,c"),
            ("weights", "a=2, b=0"),
            ("tree", "balanced:3"),
            ("tree", "b=a, c=a"),
            ("topology", "ring"),
            ("permits_per_node", "2"),
            ("coordinator", "b"),
        ] {
            let mut one = Arrangement::default();
            one.set(key, value).unwrap();
            assert!(!one.is_default());
            assert_eq!(one.keys(), [(key, value.to_owned())]);
        }
        let mut spaced = Arrangement::default();
        spaced.set("quorums", "b = b,c ;a= a , b;c=c,a").unwrap();
        assert_eq!(spaced.keys()[0].1, "a=a,b; b=b,c; c=a,c");
    }

    #[test]
    fn a_wrong_value_is_answered_with_a_right_one() {
        for (key, value, hint) in [
            ("quorums", "gird", "; choose one of projective-plane"),
            ("quorums", "1,2;2", "as in \"a=a,b; b=b,c; c=c,a\""),
            ("quorums", "a=a; b", "`b` does not name a member; write the quorum"),
            ("quorums", "a=", "`` cannot be the name of a member; use 1 to 63"),
            ("quorums", "a=a;a=a", "`a` is there twice"),
            ("weights", "2,1,1", "as in \"a=2, b=1, c=1\""),
            ("weights", "a=-1", "; write a whole number"),
            ("tree", "bush", "; write chain, star, balanced:K"),
            ("tree", "b=a, c", "as in \"b=a, c=a, d=b\""),
            ("topology", "torus", "; write mesh, ring or tree"),
            ("permits_per_node", "x", "; write a whole number"),
            ("coordinator", "B", "; use 1 to 63"),
        ] {
            let why = Arrangement::default().set(key, value).unwrap_err();
            assert!(why.contains(hint), "{key} = {value}: {why}");
        }
    }
}
