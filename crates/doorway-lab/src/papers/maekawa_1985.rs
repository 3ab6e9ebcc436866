//! The three tables of Maekawa's paper of 1985.

use std::collections::BTreeSet;

use doorway_core::quorums::{Kind, Quorums};
use doorway_core::{NodeId, Shape};

use super::{Paper, Printed, Run, Table, between, cases, sends};
use crate::simulate::{Arrival, Distribution, Workload};
use crate::trace::{EventKind, Trace, kind};

/// N and K of the planes in Tables I and III.
const PLANES: [(usize, f64); 6] =
    [(3, 2.0), (7, 3.0), (13, 4.0), (21, 5.0), (133, 12.0), (381, 20.0)];

/// N and K of the plane with this number of nodes.
fn plane(size: usize) -> Result<(usize, f64), String> {
    let size = between(size, 3, 1_000)?;
    let quorums = Quorums::build(Kind::ProjectivePlane, size as u32, None);
    let quorums = quorums.map_err(|error| error.to_string())?;
    Ok((size, quorums.mean_size()))
}

/// N, and three messages for each member of a quorum but the node itself, on the mean.
fn degenerate(size: usize) -> Result<(usize, f64), String> {
    let size = between(size, 2, 1_000)?;
    let quorums = Quorums::build(Kind::DegeneratePlane, size as u32, None);
    let quorums = quorums.map_err(|error| error.to_string())?;
    let outside = |node: u32| {
        let node = NodeId(node);
        quorums.quorum(node, 0).iter().filter(|member| **member != node).count() as f64
    };
    Ok((size, 3.0 * (0..size as u32).map(outside).sum::<f64>() / size as f64))
}

pub(super) const TABLE_1: Paper = Paper {
    name: "maekawa-table-1",
    title: "messages under light demand on projective planes (Maekawa 1985, Table I)",
    measure: |asked| {
        let mut table = Table::default();
        for (size, k) in cases(asked, &PLANES, plane)? {
            let plane = Shape { quorums: Some(Kind::ProjectivePlane.into()), ..Shape::default() };
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
    measure: |asked| {
        let mut table = Table::default();
        let printed = [(5, 4.8), (6, 5.5), (10, 8.1), (18, 11.7)];
        for (size, average) in cases(asked, &printed, degenerate)? {
            let plane = Shape { quorums: Some(Kind::DegeneratePlane.into()), ..Shape::default() };
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
    measure: |asked| {
        let mut table = Table::default();
        for (size, k) in cases(asked, &[(13, 4.0), (133, 12.0)], plane)? {
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
                table.add(case.clone(), quantity, Printed::exactly(known), known_now);
                // A node that sends requests must know from the beginning to whom. The control node
                // learns of the others by their requests.
                let asked = requests().filter(|(from, ..)| *from == NodeId(0));
                let asked: BTreeSet<_> = asked.map(|(_, to, _)| to).collect();
                let knows = if asked.is_empty() { 0.0 } else { asked.len() as f64 + 1.0 };
                let printed = if name == "central" { 0.0 } else { known };
                let quantity = "nodes of which a (control) node keeps static information";
                table.add(case.clone(), quantity, Printed::exactly(printed), knows);
                if name != "maekawa" {
                    // Of the nodes that node 1 knows something about, those whose requests reached
                    // no other node, and node 1 itself.
                    let elsewhere = |node: &NodeId| {
                        requests().any(|(from, to, _)| from == *node && to != NodeId(0))
                    };
                    let lost = senders.iter().filter(|node| !elsewhere(node)).count() as f64 + 1.0;
                    let printed = Printed::exactly(if name == "central" { n } else { 1.0 });
                    let quantity = "nodes of which information is lost by a crash";
                    table.add(case, quantity, printed, lost);
                }
            }
            let removals = [
                ("central", 0.0, 0.0, Removal::by_crash("central", size, NodeId(0))?),
                ("maekawa-heir", n - 1.0, 1.0, Removal::by_crash("maekawa-heir", size, NodeId(2))?),
                ("ricart-agrawala", n - 1.0, 0.0, Removal::by_view("ricart-agrawala", size)?),
            ];
            for (name, enter, take_over, removal) in removals {
                let case = format!("{name}, N={size}");
                let quantity = "removal of a (control) node: nodes that enter after it";
                table.add(case.clone(), quantity, Printed::exactly(enter), removal.enter);
                let quantity = "overtaking: nodes that get REQUESTs in its place";
                table.add(case, quantity, Printed::exactly(take_over), removal.take_over);
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
            "removal and overtaking: the central algorithm 'needs a back-up control node', and \
             without one no node enters any more; in Maekawa's both are 'dynamically possible', \
             and another node gets the REQUESTs of the failed one; in Ricart-Agrawala removal is \
             'dynamically possible' and overtaking 'not necessary'",
        );
        table.notes.push(
            "Ricart-Agrawala's nodes strike the failed one from their lists, which is a change of \
             view here: a group without it begins; the O(N) messages of that are not part of the \
             algorithm, so they are not modelled",
        );
        table.notes.push(
            "section 9 says that information about √N-1 nodes is lost in Maekawa's, and Table III \
             says √N: the table counts the failed node itself",
        );
        table.notes.push(
            "information that is lost: Ricart-Agrawala's requests are known to all nodes, so only \
             that about the failed node itself is lost; a member's lock in Maekawa's is known to \
             no other node",
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

/// What becomes of a group without one of its nodes, which fails while no node asks. Then every
/// other node asks once.
struct Removal {
    /// How many nodes enter.
    enter: f64,
    /// How many nodes get a REQUEST from a node that would not have asked them before.
    take_over: f64,
}

impl Removal {
    /// The node crashes, and the algorithm has to deal with it.
    fn by_crash(name: &'static str, size: usize, failed: NodeId) -> Result<Self, String> {
        let mut run = others_ask(name, size, failed);
        run.crashes = vec![(10.0, failed)];
        // Where no node takes over, those that ask wait for ever.
        let (_, trace) = run.play()?;
        Ok(Self::between(&others_ask(name, size, failed).play()?.1, &trace))
    }

    /// All others strike the node, which is the last one, from their lists: a group without it
    /// begins, as after a change of view.
    fn by_view(name: &'static str, size: usize) -> Result<Self, String> {
        let failed = NodeId::at(size - 1);
        let after = others_ask(name, size - 1, failed).play()?.1;
        Ok(Self::between(&others_ask(name, size, failed).play()?.1, &after))
    }

    /// What differs between a run with the node and one without it.
    fn between(before: &Trace, after: &Trace) -> Self {
        let asked = |trace: &Trace| -> BTreeSet<(NodeId, NodeId)> {
            let requests = sends(trace).filter(|(_, _, text)| kind(text) == "Request");
            requests.map(|(from, to, _)| (from, to)).collect()
        };
        let known = asked(before);
        let new = asked(after).into_iter().filter(|pair| !known.contains(pair));
        let take_over: BTreeSet<NodeId> = new.map(|(_, to)| to).collect();
        let enter = after.events.iter().filter(|event| event.what == EventKind::Enter).count();
        Self { enter: enter as f64, take_over: take_over.len() as f64 }
    }
}

/// A run in which every node but one asks once, one after the other.
fn others_ask(name: &'static str, size: usize, silent: NodeId) -> Run {
    let others = (0..size).map(NodeId::at).filter(|node| *node != silent);
    let arrivals = others.map(|node| Arrival::new(100.0 + 100.0 * f64::from(node.0), node));
    let mut run = Run::scripted(name, size, arrivals.collect());
    run.entries += 1; // One more than there are requests, so that the run is not cut short.
    run
}

pub(super) const SECTION_8_2: Paper = Paper {
    name: "maekawa-section-8-2",
    title: "messages under heavy demand: 4(K-1), at most 5(K-1), 'c between 3 and 5' (Maekawa 1985)",
    measure: |asked| {
        let mut table = Table::default();
        let printed = [(7, 3.0), (13, 4.0), (21, 5.0), (31, 6.0), (57, 8.0)];
        for (size, k) in cases(asked, &printed, plane)? {
            let members = k - 1.0;
            let shape = Shape { quorums: Some(Kind::ProjectivePlane.into()), ..Shape::default() };
            let mut run = Run::heavy("maekawa", size, 20_000).shaped(shape.clone());
            run.workload = Workload::Closed { think: Distribution::Exponential(size as f64 / 2.0) };
            let mean = run.messages()?;
            let case = format!("N={size} K={k}");
            let quantity = "mean, saturated, 4(K-1)";
            table.add(case.clone(), quantity, Printed::about(4.0 * members, 0.03), mean);
            let range = Printed::between(3.0 * members, 5.0 * members);
            table.add(case.clone(), "mean, saturated, c of 3 to 5", range, mean);
            // With a little less demand and unequal delays, old requests often arrive late.
            let mut run = Run::heavy("maekawa", size, 40_000).shaped(shape);
            run.workload = Workload::Closed { think: Distribution::Exponential(size as f64 * 1.5) };
            run.delay = Some(Distribution::Exponential(1.0));
            let most = f64::from(run.go()?.0.messages_max);
            let bound = Printed::Exceeded { at_most: 5.0 * members };
            table.add(case, "dearest single entry, worst case 5(K-1)", bound, most);
        }
        table.notes.push(
            "the worst case of the paper counts one INQUIRE and one RELINQUISH for each member; a \
             request that gives way more than once, or that is both told FAILED and inquired, \
             costs more",
        );
        Ok(table)
    },
};
