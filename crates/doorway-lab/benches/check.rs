//! Worlds a second of our own checker, beside Stateright searching the same worlds breadth first
//! on one thread, in one run.
//!
//! `cargo bench --bench check` takes a minute; `-- --smoke` runs everything at toy size.

use std::sync::Arc;
use std::time::Instant;

use doorway_core::algorithms::maekawa::Maekawa;
use doorway_core::algorithms::ricart_agrawala::RicartAgrawala;
use doorway_core::{Algorithm, Shape, Start};
use doorway_lab::{AnyAlgorithm, Limits, World};

#[path = "../tests/opinions/mod.rs"]
mod opinions;
use opinions::Opinion;

/// Search a world to its end: how many there are, and how many a second.
fn rate(search: impl FnOnce() -> Opinion) -> (usize, f64) {
    let begin = Instant::now();
    let opinion = search();
    let seconds = begin.elapsed().as_secs_f64();
    let Opinion::Holds(worlds) = opinion else { panic!("a sound algorithm: {opinion:?}") };
    (worlds, worlds as f64 / seconds / 1e3)
}

/// The best of several times, for another program may disturb any of them.
fn best(runs: usize, search: impl Fn() -> Opinion) -> (usize, f64) {
    let rates = (0..runs).map(|_| rate(&search));
    rates.max_by(|one, other| one.1.total_cmp(&other.1)).expect("at least one run")
}

/// A group in which each node asks so many times, over the channels that the algorithm is made for.
fn row<A: Algorithm + 'static>(runs: usize, times: &[u32]) {
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
    let (theirs, other) = rate(|| opinions::stateright(world.clone()));
    assert_eq!(worlds, theirs, "{}: as many worlds", A::INFO.name);
    let asked: Vec<_> = times.iter().map(ToString::to_string).collect();
    println!(
        "{:<16} {:<7} {worlds:>10} {other:>10.0} {alone:>8.0} {:>6.2} {both:>8.0} {:>6.2} {:>6.1}",
        A::INFO.name,
        asked.join(" "),
        alone / other,
        both / alone,
        bytes as f64 / worlds as f64,
    );
}

fn main() {
    let smoke = std::env::args().any(|arg| arg == "--smoke" || arg == "--test");
    let (runs, size) = if smoke { (1, 3) } else { (5, 4) };
    println!("Thousand worlds a second: Stateright on one thread, ours on one and on two.");
    println!("Ours is the best of {runs}. Each node asks as often as is said.");
    println!(
        "algorithm        asks        worlds stateright      one  ratio      two  ratio  bytes"
    );
    row::<RicartAgrawala>(runs, &[1, 1, 1, 1][..size]);
    row::<Maekawa>(runs, &[1, 1, 1, 1][..size]);
    row::<Maekawa>(runs, &[2, 1, 1, 1][..size]);
}
