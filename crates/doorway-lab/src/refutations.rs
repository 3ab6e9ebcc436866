//! For each refuted algorithm, a run that shows its flaw.

/// How the flaw of a refuted algorithm can be seen.
#[derive(Clone, Copy, Debug)]
pub struct Refutation {
    /// The name of the algorithm.
    pub algorithm: &'static str,
    /// A script that ends with the violation.
    pub script: &'static str,
    /// A group in which it fails, in words.
    pub fails: &'static str,
    /// Options with which `doorway check` finds a violation of that group within seconds.
    pub check: &'static str,
}

impl Refutation {
    /// The command that finds a violation.
    pub fn command(&self) -> String {
        format!("doorway check {} {}", self.algorithm, self.check)
    }
}

/// Every refutation, in the order of the list of algorithms.
pub const ALL: [Refutation; 5] = [
    Refutation {
        algorithm: "maekawa-printed",
        script: include_str!("../tests/scripts/maekawa-printed/displaced-3.txt"),
        fails: "3 nodes with the quorums 1,2,3;2,3;3",
        check: "--quorums '1,2,3;2,3;3' --acquires 1",
    },
    Refutation {
        algorithm: "maekawa-textbook",
        script: include_str!("../tests/scripts/maekawa-textbook/queued-older.txt"),
        fails: "4 nodes with the quorums 1,2,3;2,3,4;1,3,4;1,2,4",
        check: "--quorums '1,2,3;2,3,4;1,3,4;1,2,4' --acquires 1 --requesters 1,2,3",
    },
    Refutation {
        algorithm: "maekawa-slides-printed",
        script: include_str!("../tests/scripts/maekawa-slides-printed/two-inquiries.txt"),
        fails: "4 nodes",
        check: "-n 4",
    },
    Refutation {
        algorithm: "maekawa-sequential-self-first",
        script: include_str!("../tests/scripts/maekawa-sequential-self-first/circle.txt"),
        fails: "3 nodes",
        check: "-n 3",
    },
    Refutation {
        algorithm: "raymond-k-scanned",
        script: include_str!("../tests/scripts/raymond-k-scanned/waits-for-ever.txt"),
        fails: "3 nodes with 2 permits",
        check: "-n 3 --permits 2 --seats 1",
    },
];

/// The refutation of the algorithm of this name.
pub fn of(algorithm: &str) -> Option<&'static Refutation> {
    ALL.iter().find(|refutation| refutation.algorithm == algorithm)
}

#[cfg(test)]
mod tests {
    use doorway_core::algorithms;

    use super::*;
    use crate::script;

    #[test]
    fn every_refuted_algorithm_has_a_run_that_shows_why() {
        let refuted = algorithms::ALL.iter().filter(|entry| entry.info.refuted.is_some());
        let names: Vec<_> = refuted.map(|entry| entry.info.name).collect();
        assert_eq!(names, ALL.map(|refutation| refutation.algorithm));
        for Refutation { algorithm, script, .. } in ALL {
            let played = script::run(script).unwrap();
            assert!(played.trace.title.starts_with(&format!("{algorithm} n=")), "{algorithm}");
            assert!(played.violation.is_some(), "{algorithm}");
        }
    }
}
