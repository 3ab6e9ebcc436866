//! The well-known message counts of the algorithms, entry by entry.

use doorway_core::quorums::Kind;
use doorway_core::{NodeId, Shape};
use doorway_lab::simulate::{self, Arrival, Delay, Distribution, Report, Workload};

fn run(name: &str, size: usize, shape: &Shape, workload: Workload, entries: u64) -> Report {
    let run = simulate::run(name, size, shape, |options| {
        options.workload = workload;
        options.entries = entries;
        options.delay = Delay::Distribution(Distribution::Exponential(1.0));
    });
    let (report, _) = run.expect("a run");
    assert_eq!(report.violation, None);
    report
}

fn busy(name: &str, size: usize, shape: &Shape) -> Report {
    run(name, size, shape, Workload::Closed { think: Distribution::Exponential(2.0) }, 2_000)
}

/// Let these nodes enter one after the other without contention. Returns the cost of each entry.
fn quietly(name: &str, size: usize, shape: &Shape, nodes: &[u32]) -> Vec<u32> {
    let arrival = |(at, node): (usize, &u32)| Arrival::new(200.0 * at as f64, NodeId(node - 1));
    let cost = |count: usize| {
        let arrivals = nodes[..count].iter().enumerate().map(arrival).collect();
        let report = run(name, size, shape, Workload::Scripted(arrivals), count as u64);
        (report.messages_per_entry * count as f64).round() as u32
    };
    let sums: Vec<u32> =
        (0..=nodes.len()).map(|count| if count == 0 { 0 } else { cost(count) }).collect();
    sums.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

#[test]
fn ricart_agrawala_costs_exactly_2_n_minus_1_and_lamport_3_n_minus_1() {
    for size in [2, 3, 10, 33] {
        let others = size as u32 - 1;
        let report = busy("ricart-agrawala", size, &Shape::default());
        assert_eq!((report.messages_min, report.messages_max), (2 * others, 2 * others));
        let report = busy("lamport", size, &Shape::default());
        assert_eq!((report.messages_min, report.messages_max), (3 * others, 3 * others));
    }
}

#[test]
fn carvalho_roucairol_costs_nothing_on_re_entry() {
    let costs = quietly("carvalho-roucairol", 7, &Shape::default(), &[3, 3, 3, 5, 5, 3]);
    assert_eq!(costs, [12, 0, 0, 12, 0, 2]);
    assert!(busy("carvalho-roucairol", 7, &Shape::default()).messages_max <= 12);
}

#[test]
fn token_broadcasts_cost_nothing_or_n() {
    for name in ["ricart-agrawala-token", "suzuki-kasami"] {
        assert_eq!(quietly(name, 9, &Shape::default(), &[1, 4, 4, 9, 1]), [0, 9, 0, 9, 9]);
        let report = busy(name, 9, &Shape::default());
        assert_eq!((report.messages_min, report.messages_max), (9, 9), "{name}, all waiting");
    }
}

#[test]
fn the_central_coordinator_costs_3_and_its_own_entries_nothing() {
    assert_eq!(quietly("central", 5, &Shape::default(), &[2, 2, 1, 5]), [3, 3, 0, 3]);
    assert_eq!(busy("central", 5, &Shape::default()).messages_max, 3);
}

#[test]
fn maekawa_costs_3_k_minus_1_alone_and_up_to_6_k_minus_1_under_load() {
    for (size, k) in [(3, 2), (7, 3), (13, 4), (21, 5), (31, 6)] {
        let plane = Shape { quorums: Some(Kind::ProjectivePlane.into()), ..Shape::default() };
        assert_eq!(quietly("maekawa", size, &plane, &[1, 2, 1]), [3 * (k - 1); 3]);
        let mean = busy("maekawa", size, &plane).messages_per_entry;
        let bounds = 3.0 * f64::from(k - 1)..=6.0 * f64::from(k - 1);
        assert!(bounds.contains(&mean), "N={size}: {mean}");
    }
}

#[test]
fn the_variants_of_maekawa_section_10_cost_what_the_paper_says() {
    let plane = Shape { quorums: Some(Kind::ProjectivePlane.into()), ..Shape::default() };
    assert_eq!(quietly("maekawa-sequential", 13, &plane, &[1, 7, 13]), [9; 3]);
    // K passes if the node is the first or the last of its quorum, else K + 1; then K - 1 RELEASEs.
    assert_eq!(quietly("maekawa-cyclic", 13, &plane, &[1, 7, 13]), [7, 8, 7]);
}
