//! The figures of a report are consistent with each other in every run.

use doorway_core::algorithms::ALL;
use doorway_core::{NodeId, Shape};
use doorway_lab::simulate::{
    self, Arrival, Delay, Distribution, Options, Partition, Report, Workload,
};

fn run(name: &str, size: usize, change: impl FnOnce(&mut Options)) -> Report {
    simulate::run(name, size, &Shape::default(), change).expect("a possible run").0
}

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-9 * one.abs().max(other.abs()).max(1.0)
}

#[test]
fn figures_are_within_their_possible_range() {
    for entry in ALL.iter().filter(|entry| entry.info.refuted.is_none()) {
        for (size, entries, think) in [(1, 5, 0.0), (10, 1, 0.0), (10, 100, 5.0), (9, 50, 200.0)] {
            let report = run(entry.info.name, size, |options| {
                options.workload = Workload::Closed { think: Distribution::Exponential(think) };
                options.entries = entries;
            });
            let label = format!("{report:?}");
            assert_eq!((report.entries, report.violations), (entries, 0), "{label}");
            assert!((0.0..=size as f64).contains(&report.queue_mean), "{label}");
            assert!((1.0 / size as f64 - 1e-9..=1.0).contains(&report.jain), "{label}");
            assert!(report.load_mean <= report.load_max, "{label}");
            let mean = report.messages_per_entry;
            assert!(f64::from(report.messages_min) <= mean + 1e-9, "{label}");
            let response = report.response_time.unwrap_or(0.0);
            assert!(response <= report.longest_wait + 1e-9, "{label}");
        }
    }
}

#[test]
fn one_entry_has_the_lowest_fairness_index() {
    for name in ["central", "le-lann", "maekawa"] {
        let report = run(name, 10, |options| options.entries = 1);
        assert!(near(report.jain, 0.1), "{name}: {}", report.jain);
    }
}

/// Times are in units of the mean message delay, so the delay only changes the scale.
#[test]
fn the_mean_delay_does_not_change_the_figures() {
    let with = |mean: f64| {
        run("maekawa", 13, |options| {
            options.delay = Delay::Distribution(Distribution::Constant(mean));
        })
    };
    for mean in [1e-9, 1e-6, 0.5, 7.0, 1e9] {
        assert_eq!(with(mean), with(1.0), "{mean}");
    }
}

/// Nothing that happens before the end of the warm-up is in any figure.
#[test]
fn the_warm_up_is_not_counted() {
    let with = |warmup, entries| {
        run("raymond-echo", 10, |options| {
            (options.warmup, options.entries) = (warmup, entries);
        })
    };
    let (all, tail) = (with(0, 1_000), with(400, 600));
    assert_eq!((all.entries, tail.entries), (1_000, 600));
    assert_eq!(all.events, tail.events, "it is the same run");
    assert!(tail.time < all.time && tail.messages_per_entry < all.messages_per_entry);
    assert!(near(tail.throughput, 600.0 / tail.time) || tail.throughput > 600.0 / tail.time);
}

/// Node 1 is inside from time 1 to 11. In the meantime clients arrive at nodes 2 and 3.
#[test]
fn a_scripted_run_has_the_expected_figures() {
    let come =
        |at, node: u32, stay| Arrival { stay: Some(stay), ..Arrival::new(at, NodeId(node - 1)) };
    let report = run("central", 4, |options| {
        let clients = vec![come(1.0, 1, 10.0), come(3.0, 2, 2.0), come(4.0, 3, 2.0)];
        options.workload = Workload::Scripted(clients);
    });
    // Node 2 is granted the lock at 11, enters at 12 and leaves at 14. Its release arrives at 15,
    // and node 3 enters at 16, 12 units after its client arrived.
    assert_eq!(report.entries, 3);
    assert!(near(report.response_time.unwrap(), (0.0 + 9.0 + 12.0) / 3.0));
    assert!(near(report.longest_wait, 12.0));
    assert!(near(report.sync_delay.unwrap(), f64::midpoint(1.0, 2.0)));
    assert!(near(report.time, 18.0));
    assert!(near(report.queue_mean, (9.0 + 12.0) / 18.0));
    assert_eq!((report.messages_min, report.messages_max), (0, 3));
    assert_eq!(report.overtakes_max, 0);
}

/// Little's law: the mean number of waiting clients is the arrival rate times the mean waiting
/// time. It also holds for an open load above the group's capacity.
#[test]
fn the_number_of_waiting_clients_obeys_littles_law() {
    for workload in [Workload::Open { rate: 1.0 }, Workload::Open { rate: 0.05 }] {
        let report = run("central", 3, |options| {
            options.workload = workload.clone();
            (options.entries, options.warmup) = (20_000, 1_000);
        });
        let waited = report.response_time.unwrap() * report.throughput;
        // Above capacity the line keeps growing, and clients that still wait are not in the mean.
        assert!(report.queue_mean > 0.9 * waited, "{report:?}");
        if report.queue_mean < 10.0 {
            assert!((report.queue_mean - waited).abs() < 0.05 * waited, "{report:?}");
        }
    }
}

#[test]
fn hot_nodes_are_visited_more_often() {
    let loads = [
        Workload::Closed { think: Distribution::Exponential(500.0) },
        Workload::Serial { pause: Distribution::Constant(10.0) },
        Workload::Open { rate: 0.001 },
    ];
    for workload in loads {
        let report = run("central", 4, |options| {
            options.workload = workload.clone();
            (options.hot, options.entries) = ((1, 9.0), 12_000);
        });
        // Node 1 gets nine of twelve parts, each other node one.
        assert!((report.jain - 144.0 / (4.0 * 84.0)).abs() < 0.03, "{workload:?}: {}", report.jain);
    }
}

#[test]
fn runs_end_under_every_fault() {
    let crash = |options: &mut Options| options.crashes = vec![(5.0, NodeId(0))];
    let stuck = run("ricart-agrawala", 5, |options| {
        options.workload = Workload::Open { rate: 0.01 };
        crash(options);
    });
    assert!(stuck.violation.is_some_and(|violation| violation.contains("nothing can happen")));
    let few = run("le-lann", 5, |options| {
        options.workload = Workload::Scripted(vec![Arrival::new(1.0, NodeId(2))]);
    });
    assert_eq!((few.entries, few.violation), (1, None));
    let none = run("le-lann", 5, |options| options.workload = Workload::Scripted(Vec::new()));
    assert_eq!((none.entries, none.violation), (0, None));
    let dead = run("raymond-k", 1, |options| {
        options.workload = Workload::Serial { pause: Distribution::Constant(1.0) };
        crash(options);
    });
    assert_eq!(dead.violation, None);
    let split = run("lamport", 3, |options| {
        let side = [NodeId(0)].into_iter().collect();
        options.partitions = vec![Partition { from: 5.0, until: 9.0, side }];
    });
    assert!(split.violation.is_some());
    let survivors = run("maekawa-heir", 7, |options| {
        crash(options);
        options.detect = Some(2.0);
    });
    assert_eq!((survivors.violation, survivors.entries), (None, 1_000));
}

#[test]
fn impossible_options_are_refused() {
    type Case = (fn(&mut Options), &'static str);
    let refused = |name: &str, size: usize, change: fn(&mut Options)| {
        simulate::run(name, size, &Shape::default(), change).expect_err("the options are refused")
    };
    let cases: [Case; 9] = [
        (|o| o.entries = 0, "entries"),
        (|o| o.entries = u64::MAX, "entries"),
        (|o| o.warmup = u64::MAX, "warm-up"),
        (|o| o.loss = f64::NAN, "probability"),
        (|o| o.detect = Some(f64::NAN), "not a time"),
        (|o| o.crashes = vec![(1.0, NodeId(7))], "node 8"),
        (|o| o.hot = (1, 1e-300), "hot"),
        (|o| o.workload = Workload::Open { rate: 1e-300 }, "rate"),
        (|o| o.delay = Delay::Distribution(Distribution::Constant(0.0)), "above 0"),
    ];
    for (change, word) in cases {
        let error = refused("lamport", 3, change);
        assert!(error.contains(word), "{word}: {error}");
    }
    assert!(refused("ricart-agrawala", 10_000, |_| {}).contains("too many to keep"));
    assert!(refused("suzuki-kasami", 1_000_000, |_| {}).contains("at most 20000 nodes"));
}
