//! The three tables of Maekawa's paper of 1985.

use std::collections::BTreeSet;

use doorway_core::quorums::Kind;
use doorway_core::{NodeId, Shape};

use super::{Paper, Printed, Run, Table, sends};
use crate::simulate::Arrival;
use crate::trace::kind;

/// N and K of the planes in Tables I and III.
const PLANES: [(usize, f64); 6] =
    [(3, 2.0), (7, 3.0), (13, 4.0), (21, 5.0), (133, 12.0), (381, 20.0)];

pub(super) const TABLE_1: Paper = Paper {
    name: "maekawa-table-1",
    title: "messages under light demand on projective planes (Maekawa 1985, Table I)",
    measure: || {
        let mut table = Table::default();
        for (size, k) in PLANES {
            let plane = Shape { quorums: Some(Kind::ProjectivePlane), ..Shape::default() };
            let maekawa = Run::light("maekawa", size, 200).shaped(plane).messages()?;
            let printed = Printed::exactly(3.0 * (k - 1.0));
            table.add(format!("N={size} K={k}"), "maekawa, 3(K-1)", printed, maekawa);
            let printed = Printed::exactly(2.0 * (size as f64 - 1.0));
            let ricart = Run::light("ricart-agrawala", size, 200).messages()?;
            table.add(format!("N={size} K={k}"), "ricart-agrawala, 2(N-1)", printed, ricart);
        }
        Ok(table)
    },
};

pub(super) const TABLE_2: Paper = Paper {
    name: "maekawa-table-2",
    title: "messages under light demand on degenerate planes (Maekawa 1985, Table II)",
    measure: || {
        let mut table = Table::default();
        for (size, average) in [(5, 4.8), (6, 5.5), (10, 8.1), (18, 11.7)] {
            let plane = Shape { quorums: Some(Kind::DegeneratePlane), ..Shape::default() };
            let maekawa = Run::each_once("maekawa", size).shaped(plane).messages()?;
            // Printed with one decimal.
            let printed = Printed::about(average, 0.05 / average);
            table.add(format!("N={size}"), "maekawa, average", printed, maekawa);
            let printed = Printed::exactly(2.0 * (size as f64 - 1.0));
            let ricart = Run::each_once("ricart-agrawala", size).messages()?;
            table.add(format!("N={size}"), "ricart-agrawala, 2(N-1)", printed, ricart);
        }
        table.notes.push(
            "every node enters once; the plane is the paper's own of Figure 1, and each node x \
             beyond N is replaced by x-(M-N) everywhere",
        );
        Ok(table)
    },
};

pub(super) const TABLE_3: Paper = Paper {
    name: "maekawa-table-3",
    title: "nodes that a node asks and knows, and the cost of a crash (Maekawa 1985, Table III)",
    measure: || {
        let mut table = Table::default();
        for (size, k) in [(13, 4.0), (133, 12.0)] {
            let n = size as f64;
            let rows =
                [("central", 1.0, n), ("maekawa", k - 1.0, k), ("ricart-agrawala", n - 1.0, n)];
            for (name, fan_out, known) in rows {
                let case = format!("{name}, N={size}");
                let (_, trace) = Run::each_once(name, size).go()?;
                let requests = || sends(&trace).filter(|(_, _, text)| kind(text) == "Request");
                let of_two = requests().filter(|(from, ..)| *from == NodeId(1)).count();
                let quantity = "nodes to which a REQUEST is sent";
                table.add(case.clone(), quantity, Printed::exactly(fan_out), of_two as f64);
                let senders = requests().filter(|(_, to, _)| *to == NodeId(0));
                let senders: BTreeSet<_> = senders.map(|(from, ..)| from).collect();
                let quantity = "nodes of which a (control) node keeps dynamic information";
                let known_now = senders.len() as f64 + 1.0;
                table.add(case, quantity, Printed::exactly(known), known_now);
            }
            let (recover, known) = take_over(size)?;
            let case = format!("maekawa-heir, N={size}");
            let quantity = "nodes of which information is lost by a crash";
            table.add(case.clone(), quantity, Printed::exactly(k), known);
            let quantity = "messages to regain it, O(√N)";
            table.add(case, quantity, Printed::between(k - 2.0, k - 1.0), recover);
        }
        table.notes.push("the paper's √N stands for K, the size of a quorum");
        table.notes.push(
            "the central coordinator and Ricart-Agrawala survive a crash by a change of view, not \
             by a rule of their own: their last two rows are not measured",
        );
        Ok(table)
    },
};

/// Crash node 3 while no node asks. Returns how many RECOVER messages its heir gets, and about how
/// many nodes node 3 knew something.
fn take_over(size: usize) -> Result<(f64, f64), String> {
    let failed = NodeId(2);
    let arrivals = (0..size).map(|node| Arrival::new(100.0 * node as f64, NodeId::at(node)));
    let mut run = Run::scripted("maekawa-heir", size, arrivals.collect());
    run.crashes = vec![(100.0 * size as f64 + 50.0, failed)];
    run.entries += 1; // One more than there are requests, so that the run goes on to the crash.
    let (_, trace) = run.go()?;
    let recover = sends(&trace).filter(|(_, _, text)| kind(text) == "Recover").count();
    let asked = sends(&trace).filter(|(_, to, text)| *to == failed && kind(text) == "Request");
    let known: BTreeSet<_> = asked.map(|(from, ..)| from).chain([failed]).collect();
    Ok((recover as f64, known.len() as f64))
}
