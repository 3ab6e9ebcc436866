//! Worlds a second of our own explorer, beside Stateright searching the same worlds breadth first
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
fn rate<A: Algorithm>(search: fn(World<A>) -> Opinion, world: World<A>) -> (usize, f64) {
    let begin = Instant::now();
    let opinion = search(world);
    let seconds = begin.elapsed().as_secs_f64();
    let Opinion::Holds(worlds) = opinion else { panic!("a sound algorithm: {opinion:?}") };
    (worlds, worlds as f64 / seconds)
}

/// A group in which every node asks once, over the channels that the algorithm is made for.
fn row<A>(size: usize)
where
    A: Algorithm + Send + Sync + 'static,
    A::Message: Send + Sync,
{
    let group = Arc::new(A::INFO.group(size, &Shape::default()).expect("small groups exist"));
    let limits = Limits::reliable(&group, 1);
    let world = World::<A>::new(group, &Start::default(), A::INFO.channel, limits);
    let (theirs, their_rate) = rate(opinions::stateright, world.clone());
    let (ours, our_rate) = rate(opinions::ours, world);
    assert_eq!(ours, theirs, "{}: as many worlds", A::INFO.name);
    println!(
        "{:<16} {size:>2} {ours:>10} {:>9.0} k/s {:>7.0} k/s {:>6.2}",
        A::INFO.name,
        their_rate / 1e3,
        our_rate / 1e3,
        our_rate / their_rate,
    );
}

fn main() {
    let smoke = std::env::args().any(|arg| arg == "--smoke" || arg == "--test");
    let size = if smoke { 3 } else { 4 };
    println!("algorithm         n     worlds    stateright        ours  ratio");
    row::<RicartAgrawala>(size);
    row::<Maekawa>(size);
}
