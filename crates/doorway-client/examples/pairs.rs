//! Measure how long a pair of acquire and release takes at a running node:
//! `cargo run --release -p doorway-client --example pairs -- [ENDPOINT [COUNT]]`.

use std::time::{Duration, Instant};

use doorway_client::blocking::Client;
use doorway_client::{Endpoint, Options};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let endpoint = Endpoint::resolve(arguments.first().map(String::as_str))?;
    let count: usize = arguments.get(1).map_or(Ok(10_000), |text| text.parse())?;
    let client = Client::connect(&endpoint, &Options::default())?;
    let mut times: Vec<Duration> = Vec::with_capacity(count);
    for _ in 0..count.max(1) {
        let start = Instant::now();
        client.acquire("pairs").enter()?.release()?;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    let at = |part: usize| times[(times.len() - 1) * part / 100];
    println!("{count} pairs: p50 {:?}, p99 {:?}, longest {:?}", at(50), at(99), at(100));
    Ok(())
}
