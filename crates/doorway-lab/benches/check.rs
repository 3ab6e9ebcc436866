//! Worlds a second of our own checker, beside Stateright searching the same worlds breadth first
//! on one thread, in one run.
//!
//! `cargo bench --bench check` takes a minute; `-- --smoke` runs everything at toy size.

use std::sync::Arc;
use std::time::Instant;

use doorway_core::algorithms::maekawa::Maekawa;
use doorway_core::algorithms::ricart_agrawala::RicartAgrawala;
use doorway_core::{Algorithm, Shape, Start};
use doorway_lab::{Limits, World};

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

/// A group in which every node asks `times`, over the channels that the algorithm is made for.
fn row<A: Algorithm + 'static>(size: usize, times: u32) {
    let group = Arc::new(A::INFO.group(size, &Shape::default()).expect("small groups exist"));
    let limits = Limits::reliable(&group, times);
    let world = World::<A>::new(group, &Start::default(), A::INFO.channel, limits);
    let mut bytes = 0;
    let mut ours = |threads| {
        rate(|| {
            let (opinion, kept) = opinions::ours_on(threads, &world);
            bytes = kept;
            opinion
        })
    };
    let (worlds, alone) = ours(1);
    let (_, both) = ours(2);
    let (theirs, other) = rate(|| opinions::stateright(world.clone()));
    assert_eq!(worlds, theirs, "{}: as many worlds", A::INFO.name);
    println!(
        "{:<16} {size:>2} {times:>2} {worlds:>10} {other:>10.0} {alone:>8.0} {:>6.2} {both:>8.0} {:>6.2} {:>6.1}",
        A::INFO.name,
        alone / other,
        both / alone,
        bytes as f64 / worlds as f64,
    );
}

fn main() {
    let smoke = std::env::args().any(|arg| arg == "--smoke" || arg == "--test");
    let size = if smoke { 3 } else { 4 };
    println!("Thousand worlds a second: Stateright on one thread, ours on one and on two.");
    println!("algorithm         n  k     worlds stateright      one  ratio      two  ratio  bytes");
    row::<RicartAgrawala>(size, 1);
    row::<Maekawa>(size, 1);
}
