//! Raymond's tree and K entries (1989), and Naimi and Trehel's path reversal.

use doorway_core::tree::{Tree, TreeShape};
use doorway_core::{NodeId, Shape};

use super::{Paper, Printed, Run, Table, between, cases, sends};
use crate::simulate::{Arrival, Distribution, Workload};

pub(super) const RAYMOND_K_SECTION_7: Paper = Paper {
    name: "raymond-k-section-7",
    title: "messages of K simultaneous entries (Raymond 1989, section 7)",
    measure: |asked| {
        let mut table = Table::default();
        // A quarter of the nodes may be inside, if another number of nodes is asked for.
        let case = |size| Ok((between(size, 3, 500)?, (size as u32 / 4).max(2)));
        for (size, permits) in cases(asked, &[(5, 2), (10, 3), (20, 5), (50, 25)], case)? {
            let (n, k) = (size as f64, f64::from(permits));
            let (lower, upper) = (2.0 * n - k - 1.0, 2.0 * (n - 1.0));
            let shape = Shape { permits: Some(permits), ..Shape::default() };
            let case = format!("N={size} K={permits}");
            let heavy = Run::heavy("raymond-k", size, 20_000).shaped(shape.clone()).messages()?;
            table.add(case.clone(), "mean, heavy load, 2(N-1)", Printed::about(upper, 0.02), heavy);
            let bounds = Printed::between(lower, upper);
            table.add(case.clone(), "mean, heavy load, bounds", bounds, heavy);
            // Clients that stay for very different times, so that a deferred reply often stands for
            // several.
            let mut contrived = Run::heavy("raymond-k", size, 20_000).shaped(shape.clone());
            contrived.workload = Workload::Closed { think: Distribution::Constant(0.0) };
            contrived.inside = Distribution::Exponential(100.0);
            let quantity = "mean, very unequal stays, bounds";
            table.add(case.clone(), quantity, bounds, contrived.messages()?);
            let (mean, least) = while_others_stay(size, permits, shape)?;
            let rarely = Printed::Undercut { at_least: 2.0 * n - 1.0 - k / 2.0 };
            let quantity = "mean while K-1 nodes stay, rarely below 2N-1-K/2";
            table.add(case.clone(), quantity, rarely, mean);
            let quantity = "cheapest entry meanwhile, 2N-K-1 'not achievable'";
            table.add(case, quantity, Printed::exactly(lower), least);
        }
        for again in [1, 2, 4, 8] {
            let printed = Printed::exactly(3.0 * f64::from(again) + 5.0);
            let case = format!("N=3 K=2, m={again}");
            table.add(case, "X inside while Y enters m times", printed, story(again)?);
        }
        table.notes.push(
            "the paper calls the lower bound 2N-K-1 not achievable, and says that even contrived \
             runs rarely cost less than 2N-1-K/2 on the mean; both are wrong: while K-1 nodes stay \
             inside, every entry of another node costs exactly 2N-K-1, because the deferred \
             replies of the nodes that stay are sent once, at the end; the paper's own story of \
             section 3, with K=2, is such a run",
        );
        Ok(table)
    },
};

/// The mean number of messages of an entry, and the smallest one, while K-1 nodes stay inside and
/// another node enters a thousand times.
fn while_others_stay(size: usize, permits: u32, shape: Shape) -> Result<(f64, f64), String> {
    const TIMES: u32 = 1_000;
    let (apart, end) = (10.0, 1e6);
    let stays = |node: u32| Arrival { stay: Some(end), ..Arrival::new(0.0, NodeId(node)) };
    let visit = |time| Arrival::new(apart * f64::from(time + 1), NodeId::at(size - 1));
    let arrivals = (0..permits - 1).map(stays).chain((0..TIMES).map(visit)).collect();
    let mut run = Run::scripted("raymond-k", size, arrivals).shaped(shape);
    run.trace = 0;
    let (report, _) = run.go()?;
    Ok((report.messages_per_entry, f64::from(report.messages_min)))
}

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
    measure: |asked| {
        let mut table = Table::default();
        let printed = [(10, 400_000), (100, 400_000), (1_000, 200_000), (10_000, 200_000)];
        let case = |size| Ok((between(size, 2, 10_000)?, 400_000));
        for (size, entries) in cases(asked, &printed, case)? {
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
    measure: |asked| {
        let mut table = Table::default();
        for size in cases(asked, &[15, 100], |size| between(size, 2, 1_000))? {
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
