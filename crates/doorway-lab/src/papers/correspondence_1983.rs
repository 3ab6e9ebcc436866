//! The correspondence of 1983: Carvalho & Roucairol, and Ricart & Agrawala's answer with Table I.

use doorway_core::NodeId;

use super::{Paper, Printed, Run, Table, between, cases, waits};
use crate::simulate::{Arrival, Distribution, Workload};
use crate::trace::EventKind;

/// The printed table: algorithm, then the delays of notes 1 to 4 in round trips.
const ROWS: [(&str, [f64; 3]); 3] = [
    ("ricart-agrawala", [0.5, 1.0, 1.0]),
    ("carvalho-roucairol", [0.5, 0.0, 1.0]),
    ("ricart-agrawala-token", [0.5, 0.0, 1.0]),
];

pub(super) const RICART_TABLE_1: Paper = Paper {
    name: "ricart-table-1",
    title: "delays of three algorithms in round trips (Ricart & Agrawala 1983, Table I)",
    measure: |asked| {
        let mut table = Table::default();
        let size = between(asked.unwrap_or(10), 2, 200)?;
        for (name, [after_release, least, typical]) in ROWS {
            let case = |note| format!("{name}, note {note}");
            // Clients do not think, so every request is known everywhere when its turn comes.
            let mut busy = Run::heavy(name, size, 5_000);
            busy.warmup = 100;
            busy.workload = Workload::Closed { think: Distribution::Constant(0.0) };
            let (report, _) = busy.go()?;
            let measured = report.sync_delay.unwrap_or(f64::NAN) / 2.0;
            let printed = match name {
                "carvalho-roucairol" => Printed::between(after_release, f64::INFINITY),
                _ => Printed::exactly(after_release),
            };
            table.add(case(1), "after the previous one leaves", printed, measured);
            // Node 1 enters twice, then node 2, with no requests in between.
            let quiet = [(0.0, 0), (100.0, 0), (200.0, 1)];
            let arrivals = quiet.map(|(at, node)| Arrival::new(at, NodeId(node)));
            let (_, trace) = Run::scripted(name, size, arrivals.into()).go()?;
            let waits = waits(&trace);
            table.add(case(2), "least, from quiet", Printed::exactly(least), waits[1] / 2.0);
            table.add(case(3), "typical, from quiet", Printed::exactly(typical), waits[2] / 2.0);
        }
        // The search over all histories takes too long for more than four nodes.
        let searched = asked.map_or(vec![3, 4], |size| vec![size.min(4)]);
        for size in searched.into_iter().filter(|size| *size > 2) {
            let most = |name| Ok::<_, String>(slowest_first_entry(name, size)? / 2.0);
            let case = |name| format!("{name}, N={size}, note 4");
            let quantity = "most, to any first entry";
            let n = size as f64;
            table.add(
                case("ricart-agrawala"),
                quantity,
                Printed::exactly(1.5),
                most("ricart-agrawala")?,
            );
            let printed = Printed::Wrong { value: (n - 1.0) / 2.0, really: n / 2.0 };
            table.add(case("carvalho-roucairol"), quantity, printed, most("carvalho-roucairol")?);
            let token = "ricart-agrawala-token";
            table.add(case(token), quantity, Printed::exactly(1.0), most(token)?);
        }
        table.notes.push(
            "note 4 searches all histories in which each node entered once, and all request times \
             on whole message delays: the printed (N-1)/2 of Carvalho & Roucairol is too small, \
             N/2 is reached; (N+1)/2 would need permissions that form a cycle through all nodes, \
             but in a quiet group the last node to enter holds all of its own",
        );
        Ok(table)
    },
};

/// The longest time from the first request after a pause to the first entry: the maximum over all
/// orders in which the nodes entered before it, and all request times on whole message delays.
fn slowest_first_entry(name: &'static str, size: usize) -> Result<f64, String> {
    const QUIET: f64 = 1_000.0;
    let mut slowest: f64 = 0.0;
    for order in orders(size) {
        for times in grid(size) {
            let before = order.iter().enumerate();
            let before = before.map(|(at, node)| Arrival::new(50.0 * at as f64, NodeId::at(*node)));
            let after = times.iter().enumerate();
            let after =
                after.filter_map(|(node, at)| Some(Arrival::new(QUIET + (*at)?, NodeId::at(node))));
            let (_, trace) = Run::scripted(name, size, before.chain(after).collect()).go()?;
            let events = trace.events.iter().filter(|event| event.at >= QUIET);
            let first = |wanted: fn(&EventKind) -> bool| {
                events.clone().find(|event| wanted(&event.what)).map(|event| event.at)
            };
            let asked = first(|what| matches!(what, EventKind::Acquire(_)));
            let entered = first(|what| matches!(what, EventKind::Enter));
            if let (Some(asked), Some(entered)) = (asked, entered) {
                slowest = slowest.max(entered - asked);
            }
        }
    }
    Ok(slowest)
}

pub(super) const CARVALHO_ROUCAIROL: Paper = Paper {
    name: "carvalho-roucairol",
    title: "permissions that last: 0 to 2(N-1) messages (Carvalho & Roucairol 1983)",
    measure: |asked| {
        let name = "carvalho-roucairol";
        let mut table = Table::default();
        for size in cases(asked, &[5, 10, 50], |size| between(size, 2, 500))? {
            let upper = 2.0 * (size as f64 - 1.0);
            let case = format!("N={size}");
            let alone = (0..10).map(|time| Arrival::new(100.0 * f64::from(time), NodeId(0)));
            let (report, _) = Run::scripted(name, size, alone.collect()).go()?;
            let first = f64::from(report.messages_max);
            table.add(case.clone(), "a node's first entry", Printed::exactly(upper), first);
            let again = f64::from(report.messages_min);
            table.add(case.clone(), "its re-entry", Printed::exactly(0.0), again);
            // Two nodes that enter in turn ask only each other, however large the group is.
            let pair = (0..40).map(|time| Arrival::new(100.0 * f64::from(time), NodeId(time % 2)));
            let mut turns = Run::scripted(name, size, pair.collect());
            turns.warmup = 2;
            turns.entries = 38;
            table.add(case.clone(), "two nodes in turn", Printed::exactly(2.0), turns.messages()?);
            for think in [0.1, 1.0, 10.0, 100.0, 1_000.0] {
                let mut run = Run::heavy(name, size, 5_000);
                run.workload = Workload::Closed { think: Distribution::Exponential(think) };
                let (report, _) = run.go()?;
                let worst = f64::from(report.messages_max);
                let case = format!("N={size}, think {think}");
                let range = Printed::between(0.0, upper);
                table.add(case.clone(), "mean", range, report.messages_per_entry);
                table.add(case, "most", range, worst);
            }
        }
        Ok(table)
    },
};

pub(super) const NODE_BY_NODE: Paper = Paper {
    name: "ricart-agrawala-ring",
    title: "a request from node to node: N messages, N delays (Ricart & Agrawala 1981, section 6.3)",
    measure: |asked| {
        let mut table = Table::default();
        for size in cases(asked, &[2, 5, 10, 50], |size| between(size, 2, 500))? {
            let n = size as f64;
            let case = |name: &str| format!("{name}, N={size}");
            for (name, messages, delays) in
                [("ricart-agrawala-ring", n, n), ("ricart-agrawala", 2.0 * (n - 1.0), 2.0)]
            {
                let quiet = (0..10).map(|time| Arrival::new(1_000.0 * f64::from(time), NodeId(0)));
                let (report, trace) = Run::scripted(name, size, quiet.collect()).go()?;
                let mean = report.messages_per_entry;
                table.add(case(name), "messages", Printed::exactly(messages), mean);
                let longest = waits(&trace).into_iter().fold(0.0, f64::max);
                table.add(case(name), "delays, from quiet", Printed::exactly(delays), longest);
            }
        }
        table.notes.push(
            "the reply of 1983 cites section 6.3 of the paper of 1981 for this version and prints \
             no numbers: N messages and N delays follow from a request that visits every node and \
             comes home",
        );
        Ok(table)
    },
};

/// All permutations of `0..size`.
fn orders(size: usize) -> Vec<Vec<usize>> {
    (0..size).fold(vec![vec![]], |orders, next| {
        let places = |order: &Vec<usize>| {
            let order = order.clone();
            (0..=order.len()).map(move |at| {
                let mut longer = order.clone();
                longer.insert(at, next);
                longer
            })
        };
        orders.iter().flat_map(places).collect()
    })
}

/// Every combination in which each node asks at a time of the grid or not at all.
fn grid(size: usize) -> Vec<Vec<Option<f64>>> {
    let times: Vec<_> =
        std::iter::once(None).chain((0..size).map(|time| Some(time as f64))).collect();
    (0..size).fold(vec![vec![]], |rows, _| {
        let extend = |row: &Vec<Option<f64>>| {
            let row = row.clone();
            times.clone().into_iter().map(move |time| [row.clone(), vec![time]].concat())
        };
        rows.iter().flat_map(extend).collect()
    })
}
