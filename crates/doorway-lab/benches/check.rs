//! The speed of our checker in worlds per second, compared with Stateright, which searches the same
//! worlds breadth first on one thread.
//!
//! `cargo xtask bench check` takes a minute. `--smoke` runs everything at toy size, and `--json`
//! prints our rates for programs, without Stateright. `--before REVISION` compares two builds.

use std::sync::Arc;
use std::time::Instant;

use doorway_core::algorithms::carvalho_roucairol::CarvalhoRoucairol;
use doorway_core::algorithms::maekawa::Maekawa;
use doorway_core::algorithms::ricart_agrawala::RicartAgrawala;
use doorway_core::algorithms::suzuki_kasami::SuzukiKasami;
use doorway_core::{Algorithm, Shape, Start};
use doorway_lab::check::{Check, Verdict};
use doorway_lab::{AnyAlgorithm, FOREVER, Limits, World};

#[path = "../tests/checks/opinions.rs"]
mod opinions;
use opinions::Opinion;

#[path = "shared/rates.rs"]
mod rates;
use rates::Rates;

/// Search all worlds. Returns how many there are, and how many were searched per second.
fn rate(search: impl FnOnce() -> Opinion) -> (usize, f64) {
    let begin = Instant::now();
    let opinion = search();
    let seconds = begin.elapsed().as_secs_f64();
    let Opinion::Holds(worlds) = opinion else { panic!("a sound algorithm: {opinion:?}") };
    (worlds, worlds as f64 / seconds / 1e3)
}

/// The fastest of several runs, because another program may disturb any of them.
fn best(runs: usize, search: impl Fn() -> Opinion) -> (usize, f64) {
    let rates = (0..runs).map(|_| rate(&search));
    rates.max_by(|one, other| one.1.total_cmp(&other.1)).expect("at least one run")
}

/// Measure a group whose nodes never stop asking. Each world is replaced by its settled form, so
/// that there are finitely many. The rate is compared with that of the worlds as they are, up to a
/// limit.
fn settled_row<A: Algorithm + 'static>(rates: &mut Rates, runs: usize, size: usize, limit: u64) {
    let group = Arc::new(A::INFO.group(size, &Shape::default()).expect("small groups exist"));
    let world = |acquires| {
        let limits = Limits::reliable(&group, acquires);
        let start = Start::default();
        World::new(AnyAlgorithm::of::<A>(), group.clone(), &start, A::INFO.channel, limits)
    };
    let (endless, once) = (world(FOREVER), world(1));
    let search = |world: &World| {
        let report = Check { threads: 1, ..Check::safety(world, limit) }.run();
        assert!(!matches!(report.verdict, Verdict::Violated { .. }), "a sound algorithm");
        Opinion::Holds(report.progress.states as usize)
    };
    let (worlds, settled) = best(runs, || search(&endless));
    let (_, plain) = best(runs, || search(&once));
    let ratio = settled / plain;
    let name = A::INFO.name;
    rates.line(&format!(
        "{name:<22} {size:>5} {worlds:>10} {plain:>10.0} {settled:>10.0} {ratio:>6.2}"
    ));
    rates.add(&format!("{name} {size}, plain"), plain * 1e3);
    rates.add(&format!("{name} {size}, settled"), settled * 1e3);
}

/// Measure a group in which node i makes `times[i]` requests over the channels that the algorithm
/// assumes.
fn row<A: Algorithm + 'static>(rates: &mut Rates, runs: usize, times: &[u32]) {
    let size = times.len();
    let group = Arc::new(A::INFO.group(size, &Shape::default()).expect("small groups exist"));
    let mut limits = Limits::reliable(&group, 1);
    for (acquire, times) in limits.acquires.iter_mut().zip(times) {
        acquire.0 = *times;
    }
    let world =
        World::new(AnyAlgorithm::of::<A>(), group, &Start::default(), A::INFO.channel, limits);
    let bytes = opinions::ours_on(1, &world).1;
    let (worlds, alone) = best(runs, || opinions::ours_on(1, &world).0);
    let (_, both) = best(runs, || opinions::ours_on(2, &world).0);
    let asked: Vec<_> = times.iter().map(ToString::to_string).collect();
    let (name, asked) = (A::INFO.name, asked.join(" "));
    rates.add(&format!("{name} {asked}, one thread"), alone * 1e3);
    rates.add(&format!("{name} {asked}, two threads"), both * 1e3);
    if rates.is_json() {
        return;
    }
    let (theirs, other) = rate(|| opinions::stateright(world.clone()));
    assert_eq!(worlds, theirs, "{name}: as many worlds");
    rates.line(&format!(
        "{name:<16} {asked:<7} {worlds:>10} {other:>10.0} {alone:>8.0} {:>6.2} {both:>8.0} \
         {:>6.2} {:>6.1}",
        alone / other,
        both / alone,
        bytes as f64 / worlds as f64,
    ));
}

fn main() {
    let smoke = std::env::args().any(|arg| arg == "--smoke" || arg == "--test");
    let (runs, size) = if smoke { (1, 3) } else { (5, 4) };
    let mut rates = Rates::new();
    rates.line(
        "Thousand worlds per second: Stateright on one thread, our checker on one and on two.",
    );
    rates.line(&format!(
        "Our figure is the best of {runs} runs. Column `asks`: requests of each node."
    ));
    rates.line(
        "algorithm        asks        worlds stateright      one  ratio      two  ratio  bytes",
    );
    row::<RicartAgrawala>(&mut rates, runs, &[1, 1, 1, 1][..size]);
    row::<Maekawa>(&mut rates, runs, &[1, 1, 1, 1][..size]);
    row::<Maekawa>(&mut rates, runs, &[2, 1, 1, 1][..size]);

    let limit = if smoke { 10_000 } else { 1_000_000 };
    rates.line("\nThousand worlds per second on one thread: worlds as they are, and settled ones.");
    rates.line("algorithm              nodes     worlds      plain    settled  ratio");
    settled_row::<RicartAgrawala>(&mut rates, runs, size, limit);
    settled_row::<CarvalhoRoucairol>(&mut rates, runs, size, limit);
    settled_row::<SuzukiKasami>(&mut rates, runs, size, limit);
    settled_row::<Maekawa>(&mut rates, runs, size, limit);
    rates.finish();
}
