//! Events a second of the simulator, all checks on.

use std::time::Instant;

use doorway_core::algorithms::ricart_agrawala::RicartAgrawala;
use doorway_core::{Algorithm, Shape};
use doorway_lab::simulate::{Law, Options, Simulation, Workload};

fn measure<A: Algorithm>(size: usize, entries: u64, think: f64, delay: &str) {
    let group = A::INFO.group(size, &Shape::default()).expect("a group");
    let mut options = Options::new(&A::INFO, group);
    options.workload = Workload::Closed { think: Law::Exponential(think) };
    options.delay = doorway_lab::simulate::Delay::Law(delay.parse().expect("a law"));
    options.entries = entries;
    let run = Simulation::<A>::new(options).expect("a run");
    let begin = Instant::now();
    let report = run.run();
    let seconds = begin.elapsed().as_secs_f64();
    println!(
        "{} n={size} {delay}: {:.2} million events/s ({} events, {:.3} messages an entry, sync {:?})",
        report.algorithm,
        report.events as f64 / seconds / 1e6,
        report.events,
        report.messages_per_entry,
        report.sync_delay,
    );
}

fn main() {
    for delay in ["constant:1", "uniform:0.5..1.5", "exponential:1"] {
        for (size, entries) in [(10, 1_000_000), (100, 100_000), (1000, 10_000)] {
            measure::<RicartAgrawala>(size, entries, 10.0, delay);
        }
    }
}
