//! How the quorums of a group are to be made: by a construction, or by hand.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use super::{Kind, Quorums, Scheme};
use crate::{GroupError, MAX_NODES, NodeId};

/// How the quorums of a group are to be made.
///
/// As text, a plan is the name of a construction (`grid`), a triangle with one of its schemes
/// (`triangle:1`, `triangle:2`), or the quorum of every node in order (`1,2,3;2,3;3`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Plan {
    /// A construction.
    Kind(Kind),
    /// The triangle with this scheme.
    Triangle(Scheme),
    /// Quorums made by hand, the first for node 1.
    Sets(Vec<Vec<NodeId>>),
}

/// An example of quorums by hand, for error messages.
const EXAMPLE: &str = "1,2,3;2,3;3";

impl Plan {
    /// Build the quorums for `size` nodes. Only [`Kind::Weighted`] takes `weights`.
    pub fn build(&self, size: u32, weights: Option<&[u32]>) -> Result<Quorums, GroupError> {
        if weights.is_some() && !self.takes_weights() {
            let reason = format!("{self} quorums take no weights; only weighted quorums do");
            return Err(GroupError::new(reason));
        }
        match self {
            Self::Kind(kind) => Quorums::build(*kind, size, weights),
            Self::Triangle(scheme) => Quorums::triangle(size, *scheme),
            Self::Sets(sets) if sets.len() != size as usize => {
                let reason = format!(
                    "there are {} quorums for {size} nodes; give one for each node, in order",
                    sets.len()
                );
                Err(GroupError::new(reason))
            }
            Self::Sets(sets) => Quorums::from_sets(sets.clone()),
        }
    }

    /// Whether the quorums depend on the weights of votes.
    pub fn takes_weights(&self) -> bool {
        *self == Self::Kind(Kind::Weighted)
    }

    /// The only number of nodes that this plan suits, if there is just one.
    pub fn size(&self) -> Option<usize> {
        match self {
            Self::Sets(sets) => Some(sets.len()),
            Self::Kind(_) | Self::Triangle(_) => None,
        }
    }

    /// Whether the text is meant as quorums made by hand: no construction begins with a digit.
    pub fn is_by_hand(text: &str) -> bool {
        text.contains([';', ',']) || text.starts_with(|c: char| c.is_ascii_digit())
    }
}

impl From<Kind> for Plan {
    fn from(kind: Kind) -> Self {
        Self::Kind(kind)
    }
}

impl FromStr for Plan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(scheme) = text.strip_prefix("triangle:") {
            return match scheme {
                "1" => Ok(Self::Triangle(Scheme::First)),
                "2" => Ok(Self::Triangle(Scheme::Second)),
                _ => Err(format!(
                    "the triangle has no scheme '{scheme}'; say triangle:1, triangle:2, or \
                     triangle for both in turn"
                )),
            };
        }
        if !Self::is_by_hand(text) {
            let more = |error: String| {
                format!("{error}, triangle:1, triangle:2, or quorums by hand, as in {EXAMPLE}")
            };
            return text.parse().map(Self::Kind).map_err(more);
        }
        let sets = text.split(';').map(set).collect::<Result<_, _>>()?;
        Ok(Self::Sets(sets))
    }
}

/// Parse one quorum, as in `1,2,3`.
fn set(text: &str) -> Result<Vec<NodeId>, String> {
    let node = |word: &str| {
        let number = word.trim().parse::<usize>().ok();
        number
            .filter(|number| (1..=MAX_NODES).contains(number))
            .map(|number| NodeId::at(number - 1))
    };
    text.split(',').map(node).collect::<Option<_>>().ok_or_else(|| {
        format!(
            "'{text}' is not a quorum; write the numbers of its nodes, counted from 1, with commas \
             between them and a semicolon after each quorum, as in {EXAMPLE}"
        )
    })
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind(kind) => kind.fmt(f),
            Self::Triangle(Scheme::Both) => Kind::Triangle.fmt(f),
            Self::Triangle(Scheme::First) => f.pad("triangle:1"),
            Self::Triangle(Scheme::Second) => f.pad("triangle:2"),
            Self::Sets(sets) => {
                let set = |set: &Vec<NodeId>| {
                    let members: Vec<_> = set.iter().map(ToString::to_string).collect();
                    members.join(",")
                };
                f.pad(&sets.iter().map(set).collect::<Vec<_>>().join(";"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_read_back_from_its_text() {
        for text in ["grid", "triangle", "triangle:1", "triangle:2", "1", "1,2;2", "1,2,3;2,3;3"] {
            let plan: Plan = text.parse().unwrap();
            assert_eq!(plan.to_string(), text);
            assert_eq!(plan.to_string().parse(), Ok(plan));
        }
        assert_eq!(" 1, 2;2 ".parse::<Plan>().unwrap().to_string(), "1,2;2");
    }

    #[test]
    fn a_text_that_is_no_plan_is_answered_with_one_that_is() {
        for (text, hint) in [
            ("gird", "grid"),
            ("grid:3", "triangle:1, triangle:2, or quorums by hand, as in 1,2,3;2,3;3"),
            ("triangle:3", "triangle:1"),
            ("1,2;x", EXAMPLE),
            ("1,2;", EXAMPLE),
            ("0,1;1", EXAMPLE),
            ("1,,2", EXAMPLE),
            ("99999999999999999999;1", EXAMPLE),
        ] {
            let error = text.parse::<Plan>().unwrap_err();
            assert!(error.contains(hint), "{text}: {error}");
        }
    }

    #[test]
    fn sets_by_hand_are_checked() {
        let build = |text: &str, size| {
            let plan: Plan = text.parse().unwrap();
            plan.build(size, None).map_err(|error| error.to_string())
        };
        assert_eq!(build("1,2,3;2,3;3", 3).unwrap().quorum(NodeId(1), 0), [NodeId(1), NodeId(2)]);
        for (text, size, hint) in [
            ("1,2;2", 3, "2 quorums for 3 nodes; give one for each node"),
            ("1,2;2;3", 3, "{1,2} of node 1 and {3} of node 3"),
            ("1,4;1;1", 3, "there are 3 nodes"),
        ] {
            let error = build(text, size).unwrap_err();
            assert!(error.contains(hint), "{text}: {error}");
        }
        let plan: Plan = "1;1".parse().unwrap();
        assert!(plan.build(2, Some(&[1, 1])).is_err(), "weights");
        assert_eq!((plan.size(), Plan::from(Kind::Grid).size()), (Some(2), None));
    }
}
