//! The table that closes Mühl's lecture on distributed mutual exclusion.

use doorway_core::quorums::Kind;
use doorway_core::{Shape, Wiring};

use super::{Paper, Printed, Run, Table};

/// Sixteen nodes: a square for the grid, and a power of two for the tree.
const SIZE: usize = 16;

pub(super) const COMPLEXITY: Paper = Paper {
    name: "slides-complexity",
    title: "messages per access of seven algorithms, N = 16 (Mühl, Distributed Algorithms)",
    measure: || {
        let n = SIZE as f64;
        let side = n.sqrt();
        let ring = Shape { wiring: Some(Wiring::Ring), ..Shape::default() };
        let grid = Shape { quorums: Some(Kind::Grid), ..Shape::default() };
        let none = Shape::default();
        let rows = [
            ("token ring", "le-lann", &none, 0.0, f64::INFINITY),
            ("simple broadcast, 3(n-1)", "lamport", &none, 3.0 * (n - 1.0), 3.0 * (n - 1.0)),
            (
                "improved broadcast, 2(n-1)",
                "ricart-agrawala",
                &none,
                2.0 * (n - 1.0),
                2.0 * (n - 1.0),
            ),
            ("improved token ring, 0..2n-1", "suzuki-kasami", &ring, 0.0, 2.0 * n - 1.0),
            (
                "mesh arrangement, 3(2√n-1) to 5(2√n-1) with the own node",
                "maekawa",
                &grid,
                3.0 * (2.0 * side - 2.0),
                5.0 * (2.0 * side - 1.0),
            ),
            ("lift on a binary tree, O(log n)", "raymond-tree", &none, 0.0, 4.0 * n.log2()),
            ("central manager, 3", "central", &none, 0.0, 3.0),
        ];
        let mut table = Table::default();
        for (case, name, shape, least, most) in rows {
            let printed = Printed::between(least, most);
            let light = Run::light(name, SIZE, 5_000).shaped(shape.clone()).messages()?;
            table.add(case, "mean, light load", printed, light);
            let heavy = Run::heavy(name, SIZE, 20_000).shaped(shape.clone()).messages()?;
            table.add(case, "mean, heavy load", printed, heavy);
        }
        table.notes.push(
            "the central manager is itself one of the nodes, and its own entries cost nothing",
        );
        table.notes.push("the slides count messages to the own node in the mesh; only those of the network are counted here");
        Ok(table)
    },
};
