//! The blocking and the async client against the sessions of a node, over real sockets.

mod asynchronous;
mod blocking;
mod host;
mod kept;
mod tls;

use std::time::Duration;

use doorway_client::Options;

use crate::wait::{until, until_async};

/// A test that waits for longer than this counts as hanging.
const LONG: Duration = Duration::from_secs(30);

/// The options of the clients in these tests.
fn options() -> Options {
    Options::default().label("test").ttl(Duration::from_secs(10)).patience(LONG)
}
