//! Both faces of the client at the model of a node, over real sockets.

#[cfg(feature = "tokio")]
mod asynchronous;
mod blocking;
mod host;
#[path = "../machine/server.rs"]
mod server;
#[cfg(feature = "tls")]
mod tls;

use std::thread;
use std::time::{Duration, Instant};

use doorway_client::Options;

/// A time after which something is taken to hang.
const LONG: Duration = Duration::from_secs(30);

/// How a client of these tests connects.
fn options() -> Options {
    Options::default().label("test").patience(LONG)
}

/// Wait until something is so.
fn until(what: &str, is: impl Fn() -> bool) {
    let start = Instant::now();
    while !is() {
        assert!(start.elapsed() < LONG, "{what} took too long");
        thread::sleep(Duration::from_millis(1));
    }
}
