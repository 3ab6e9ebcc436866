//! A lock that the client keeps. docs/clients.md shows this file, and a test runs it.

use doorway_client::{Endpoint, Options, blocking::Client};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::connect(&Endpoint::resolve(None)?, &Options::default().keep())?;
    let mut last = None;
    for _ in 0..1000 {
        let grant = client.acquire("counter").enter()?; // Only the first entry asks the node.
        assert!(last < Some(grant.fence()));
        last = Some(grant.fence());
        grant.release()?;
    }
    println!("inside, with fence {}, for the last time", last.ok_or("never inside")?);
    Ok(())
}
