//! A lock around some work. docs/clients.md shows this file, and a test runs it.

use std::time::Duration;

use doorway_client::{Endpoint, Options, blocking::Client};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::connect(&Endpoint::resolve(None)?, &Options::default())?;
    client.on_lost(|lost| eprintln!("stop: {lost}"));
    let grant = client.acquire("report").within(Duration::from_secs(5)).enter()?;
    println!("inside, with fence {}", grant.fence());
    grant.release()?; // An error if the lock was lost before.
    Ok(())
}
