//! The blocking and the async client against the sessions of a node, over real sockets.

mod asynchronous;
mod blocking;
mod host;
mod tls;

use std::thread;
use std::time::{Duration, Instant};

use doorway_client::Options;

/// A test that waits for longer than this counts as hanging.
const LONG: Duration = Duration::from_secs(30);

/// The options of the clients in these tests.
fn options() -> Options {
    Options::default().label("test").ttl(Duration::from_secs(10)).patience(LONG)
}

/// Wait until a condition is true.
fn until(what: &str, is: impl Fn() -> bool) {
    let start = Instant::now();
    while !is() {
        assert!(start.elapsed() < LONG, "{what} took too long");
        thread::sleep(Duration::from_millis(1));
    }
}
