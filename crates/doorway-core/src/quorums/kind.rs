//! The constructions of quorums by name, and the best one for a group.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use super::Quorums;

/// A construction of quorums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The lines of a finite projective plane: the smallest quorums possible, for N = q² + q + 1
    /// with a prime power q.
    ProjectivePlane,
    /// The lines of the next larger plane, with other nodes in the places of the missing ones: any
    /// N.
    DegeneratePlane,
    /// A node's row and column in a square: any N; the last row may be short.
    Grid,
    /// A row and a column of a triangle, by two schemes used in turn: any N.
    Triangle,
    /// One block of nodes, rotated for each node: any N, and all nodes have the same load.
    Cyclic,
    /// Majorities as fixed sets: each node and its ⌊N/2⌋ successors.
    Majority,
    /// Majorities of weighted votes, as fixed sets.
    Weighted,
}

impl Kind {
    /// Every construction of quorums, in the order of the help.
    pub const ALL: [Self; 7] = [
        Self::ProjectivePlane,
        Self::DegeneratePlane,
        Self::Grid,
        Self::Triangle,
        Self::Cyclic,
        Self::Majority,
        Self::Weighted,
    ];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ProjectivePlane => "projective-plane",
            Self::DegeneratePlane => "degenerate-plane",
            Self::Grid => "grid",
            Self::Triangle => "triangle",
            Self::Cyclic => "cyclic",
            Self::Majority => "majority",
            Self::Weighted => "weighted",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|kind| kind.name() == text).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.into_iter().map(Self::name).collect();
            format!("'{text}' is not a kind of quorums; choose one of {}", names.join(", "))
        })
    }
}

/// The construction with the smallest mean quorum size for `size` nodes. Of equals, a construction
/// that gives all nodes the same load is preferred.
pub fn best_kind(size: u32) -> Kind {
    if size < 3 {
        // Both nodes of two: no construction is smaller without loading one node more.
        return Kind::Majority;
    }
    // Constructions with equal load come first. A projective plane, where one exists, is never
    // beaten.
    let candidates =
        [Kind::ProjectivePlane, Kind::Cyclic, Kind::Grid, Kind::Triangle, Kind::DegeneratePlane];
    let mut best = (f64::INFINITY, Kind::DegeneratePlane);
    for kind in candidates {
        if let Ok(quorums) = Quorums::build(kind, size, None)
            && quorums.mean_size() < best.0
        {
            best = (quorums.mean_size(), kind);
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn a_name_is_parsed_back_to_its_kind() {
        for kind in Kind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        let error = "planes".parse::<Kind>().unwrap_err();
        assert!(Kind::ALL.iter().all(|kind| error.contains(kind.name())), "{error}");
    }

    #[test]
    fn the_best_kind_is_never_beaten() {
        for size in 3..=200 {
            let best = Quorums::build(best_kind(size), size, None).unwrap();
            for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Weighted) {
                if let Ok(other) = Quorums::build(kind, size, None) {
                    assert!(best.mean_size() <= other.mean_size(), "{kind} for {size}");
                }
            }
        }
        for size in [3, 7, 13, 21, 31, 57, 10_303] {
            assert_eq!(best_kind(size), Kind::ProjectivePlane);
        }
        assert_eq!(best_kind(10_000), Kind::DegeneratePlane);
        assert_eq!([best_kind(1), best_kind(2)], [Kind::Majority; 2]);
        assert_eq!(best_kind(u32::MAX), Kind::DegeneratePlane, "whose error says what is wrong");
    }
}
