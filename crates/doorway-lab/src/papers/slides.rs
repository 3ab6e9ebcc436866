//! The table that closes Mühl's lecture on distributed mutual exclusion.

use doorway_core::quorums::Kind;
use doorway_core::{Shape, Wiring};

use super::{Paper, Printed, Run, Table, between};

/// The entries of a run.
const ENTRIES: u32 = 20_000;

/// Sixteen nodes, unless another number is asked for: a square for the grid, and a power of two for
/// the tree.
const SIZE: usize = 16;

pub(super) const COMPLEXITY: Paper = Paper {
    name: "slides-complexity",
    title: "messages per access of seven algorithms (Mühl, Distributed Algorithms)",
    measure: |asked| {
        let size = between(asked.unwrap_or(SIZE), 2, 1_000)?;
        let n = size as f64;
        let side = n.sqrt();
        let ring = Shape { wiring: Some(Wiring::Ring), ..Shape::default() };
        let grid = Shape { quorums: Some(Kind::Grid.into()), ..Shape::default() };
        let none = Shape::default();
        let (simple, improved) = (3.0 * (n - 1.0), 2.0 * (n - 1.0));
        // The last row of the grid may be short, and its quorums smaller.
        let columns = side.ceil();
        let least = if columns > side { 3.0 * (columns - 1.0) } else { 6.0 * (side - 1.0) };
        let mesh = Printed::between(least, 5.0 * (2.0 * columns - 1.0));
        // An entry costs 3 messages, or none if it is the manager's own. So the mean of many
        // entries has a standard error, and the measured mean may be off by five of these.
        let error = 1.0 / ((n - 1.0) * f64::from(ENTRIES)).sqrt();
        let manager = Printed::about(3.0 * (n - 1.0) / n, f64::max(5.0 * error, 0.01));
        let rows = [
            ("token ring, 1 to unbounded", "le-lann", &none, Printed::between(1.0, f64::INFINITY)),
            ("simple broadcast, 3(n-1)", "lamport", &none, Printed::exactly(simple)),
            ("improved broadcast, 2(n-1)", "ricart-agrawala", &none, Printed::exactly(improved)),
            (
                "improved token ring, 0 to 2n-1",
                "suzuki-kasami",
                &ring,
                Printed::between(0.0, 2.0 * n - 1.0),
            ),
            ("mesh, 3(2√n-1) to 5(2√n-1)", "maekawa", &grid, mesh),
            ("lift, O(log n)", "raymond-tree", &none, Printed::between(0.0, 4.0 * n.log2())),
            ("central manager, 3", "central", &none, manager),
        ];
        let mut table = Table::default();
        for (case, name, shape, printed) in rows {
            let light = Run::light(name, size, ENTRIES.into()).shaped(shape.clone()).messages()?;
            table.add(format!("{case}, n={size}"), "mean, light load", printed, light);
            let heavy = Run::heavy(name, size, ENTRIES.into()).shaped(shape.clone()).messages()?;
            table.add(format!("{case}, n={size}"), "mean, heavy load", printed, heavy);
        }
        table.notes.push(
            "the central manager is one of the nodes here and its own entries cost nothing: 3(n-1)/n",
        );
        table.notes.push("the slides count messages to the own node in the mesh; only those of the network are counted here");
        Ok(table)
    },
};
