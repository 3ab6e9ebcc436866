//! The settings of a service that runs in the process of a test.

use std::time::Duration;

use doorway_daemon::settings::{Limits, Settings};
use doorway_node::Config;
use doorway_protocol::Scope;

/// A node alone whose locks can be shared, without a directory and without doors.
pub(crate) fn settings() -> Settings {
    Settings {
        node: Config { algorithm: "readers-writers".into(), ..Config::default() },
        scope: Scope::User,
        socket: None,
        sessions: None,
        http: None,
        hosts: Vec::new(),
        clients: Vec::new(),
        tls: None,
        limits: Limits::default(),
        drain: Duration::from_millis(100),
        idle_stop: None,
    }
}
