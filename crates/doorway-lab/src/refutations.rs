//! For each refuted algorithm, a run that shows its flaw.

/// How the flaw of a refuted algorithm can be seen.
#[derive(Clone, Copy, Debug)]
pub struct Refutation {
    /// The name of the algorithm.
    pub algorithm: &'static str,
    /// A script that ends with the violation.
    pub script: &'static str,
    /// Options with which `doorway check` finds a violation within seconds.
    pub check: &'static str,
}

/// Every refutation, in the order of the list of algorithms.
pub const ALL: [Refutation; 5] = [
    Refutation {
        algorithm: "maekawa-printed",
        script: include_str!("../tests/scripts/maekawa-printed/displaced-3.txt"),
        check: "-n 7 --acquires 1 --requesters 2,3,4,5",
    },
    Refutation {
        algorithm: "maekawa-textbook",
        script: include_str!("../tests/scripts/maekawa-textbook/queued-older.txt"),
        check: "-n 7 --acquires 1 --requesters 2,3,4,5",
    },
    Refutation {
        algorithm: "maekawa-slides-printed",
        script: include_str!("../tests/scripts/maekawa-slides-printed/two-inquiries.txt"),
        check: "-n 4",
    },
    Refutation {
        algorithm: "maekawa-sequential-self-first",
        script: include_str!("../tests/scripts/maekawa-sequential-self-first/circle.txt"),
        check: "-n 3",
    },
    Refutation {
        algorithm: "raymond-k-scanned",
        script: include_str!("../tests/scripts/raymond-k-scanned/waits-for-ever.txt"),
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
