//! The settings of a service that runs in the process of a test.

use std::time::Duration;

use doorway_daemon::settings::{Overrides, Settings};
use doorway_node::Config;

/// A node without members, directory and listeners, whose locks support shared mode.
pub(crate) fn settings() -> Settings {
    Settings {
        node: Config { algorithm: "readers-writers".into(), ..Config::default() },
        socket: None,
        drain: Duration::from_millis(100),
        idle_stop: None,
        ..Settings::local(&Overrides::default()).expect("it asks for nothing")
    }
}
