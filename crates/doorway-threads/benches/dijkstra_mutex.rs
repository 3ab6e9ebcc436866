//! Measures the search: different states per second on the specification of Dijkstra's algorithm,
//! counted as TLC counts.
//!
//! `cargo bench -p doorway-threads --bench dijkstra_mutex` goes through the 33,288,512 states of
//! four processes, on one thread and on all; `-- --smoke` does with three.

#[path = "../tests/explorer/dijkstra_mutex.rs"]
mod dijkstra_mutex;

use std::time::Instant;

use dijkstra_mutex::DijkstraMutex;
use doorway_search::{End, Scope, search};

fn main() {
    let smoke = std::env::args().any(|arg| arg == "--smoke" || arg == "--test");
    let (n, distinct) = if smoke { (3, 90_882) } else { (4, 33_288_512) };
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    println!(" n threads   distinct   generated depth      time  distinct");
    for threads in [1, all] {
        let begin = Instant::now();
        let scope = Scope { limit: 100_000_000, threads, record: false };
        let (end, progress) = search(&DijkstraMutex::new(n), scope);
        let seconds = begin.elapsed().as_secs_f64();
        assert_eq!((end, progress.states - 1), (End::Exhausted, distinct));
        println!(
            "{n:>2} {threads:>7} {distinct:>10} {:>11} {:>5} {seconds:>7.2} s {:>5.2} M/s",
            progress.steps,
            progress.depth,
            distinct as f64 / seconds / 1e6,
        );
    }
}
