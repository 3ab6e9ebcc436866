//! Raymond's tree and K entries (1989), and Naimi and Trehel's path reversal.

use doorway_core::tree::{Tree, TreeShape};
use doorway_core::{NodeId, Shape};

use super::{Paper, Printed, Run, Table, sends};
use crate::simulate::{Arrival, Distribution, Workload};

pub(super) const RAYMOND_K_SECTION_7: Paper = Paper {
    name: "raymond-k-section-7",
    title: "messages of K simultaneous entries (Raymond 1989, section 7)",
    measure: || {
        let mut table = Table::default();
        for (size, permits) in [(5, 2), (10, 3), (20, 5), (50, 25)] {
            let upper = 2.0 * (size as f64 - 1.0);
            let lower = 2.0 * size as f64 - f64::from(permits) - 1.0;
            let shape = Shape { permits: Some(permits), ..Shape::default() };
            let case = format!("N={size} K={permits}");
            let heavy = Run::heavy("raymond-k", size, 20_000).shaped(shape.clone()).messages()?;
            table.add(case.clone(), "mean, heavy load, 2(N-1)", Printed::about(upper, 0.02), heavy);
            let bounds = Printed::between(lower, upper);
            table.add(case.clone(), "mean, heavy load, bounds", bounds, heavy);
            // Clients that stay for very different times, so that a deferred reply often stands for
            // several.
            let mut contrived = Run::heavy("raymond-k", size, 20_000).shaped(shape);
            contrived.workload = Workload::Closed { think: Distribution::Constant(0.0) };
            contrived.inside = Distribution::Exponential(100.0);
            let spread = contrived.messages()?;
            let rarely_below = 2.0 * size as f64 - 1.0 - f64::from(permits) / 2.0;
            let quantity = "mean, very unequal stays";
            table.add(case.clone(), quantity, Printed::between(lower, upper), spread);
            let printed = Printed::about(rarely_below, 0.1);
            table.add(case, "mean, very unequal stays, against 2N-1-K/2", printed, spread);
        }
        for again in [1, 2, 4, 8] {
            let printed = Printed::exactly(3.0 * f64::from(again) + 5.0);
            let case = format!("N=3 K=2, m={again}");
            table.add(case, "X inside while Y enters m times", printed, story(again)?);
        }
        table.notes.push(
            "the lower bound 2N-K-1 is not attainable, as the paper says; typical is the upper one",
        );
        Ok(table)
    },
};

/// The number of messages of the group while node 1 stays inside and node 2 enters `again` times.
fn story(again: u32) -> Result<f64, String> {
    let mut arrivals = vec![Arrival { stay: Some(1_000.0), ..Arrival::new(0.0, NodeId(0)) }];
    let visit = |time| Arrival::new(10.0 + 10.0 * f64::from(time), NodeId(1));
    arrivals.extend((0..again).map(visit));
    let shape = Shape { permits: Some(2), ..Shape::default() };
    let (_, trace) = Run::scripted("raymond-k", 3, arrivals).shaped(shape).go()?;
    Ok(sends(&trace).count() as f64)
}

pub(super) const NAIMI_TREHEL_LOG: Paper = Paper {
    name: "naimi-trehel-log",
    title: "path reversal costs the harmonic number H(N-1) (Naimi, Trehel & Arnold 1996)",
    measure: || {
        let mut table = Table::default();
        for (size, entries) in [(10, 400_000), (100, 400_000), (1_000, 200_000), (10_000, 200_000)]
        {
            let harmonic: f64 = (1..size).map(|i| 1.0 / i as f64).sum();
            let mut run = Run::light("naimi-trehel", size, entries);
            // At first all pointers lead to one node, which is cheap; the warm-up removes this.
            run.warmup = 10 * size as u64;
            let measured = run.messages()?;
            let printed = Printed::about(harmonic, 0.005);
            table.add(format!("N={size}"), "messages per entry, light load", printed, measured);
        }
        Ok(table)
    },
};

pub(super) const RAYMOND_SATURATED: Paper = Paper {
    name: "raymond-saturated",
    title: "the lift costs 4(1-1/N) saturated and twice the mean distance at light load (Raymond 1989)",
    measure: || {
        let mut table = Table::default();
        for size in [15, 100] {
            for tree in
                [TreeShape::Balanced(2), TreeShape::Balanced(4), TreeShape::Star, TreeShape::Chain]
            {
                let shape = Shape { tree: Some(tree), ..Shape::default() };
                let case = format!("N={size} {tree}");
                let heavy = Run::heavy("raymond-tree", size, 40_000).shaped(shape.clone());
                let saturated = Printed::about(4.0 * (1.0 - 1.0 / size as f64), 0.01);
                table.add(case.clone(), "saturated", saturated, heavy.messages()?);
                let tree = Tree::new(tree, size).map_err(|error| error.to_string())?;
                let light = Run::light("raymond-tree", size, 40_000).shaped(shape).messages()?;
                let printed = Printed::about(2.0 * tree.mean_distance(), 0.02);
                table.add(case, "light load", printed, light);
            }
        }
        table.notes.push(
            "saturated: clients think for just half as many message delays as there are nodes; \
             with no think time inner nodes re-enter before the token moves on, and an entry costs \
             less",
        );
        Ok(table)
    },
};
