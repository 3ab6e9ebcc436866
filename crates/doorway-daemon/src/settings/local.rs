//! The node of one user: no file, no port, nothing to set up.

use std::path::PathBuf;
use std::time::Duration;

use doorway_node::Config;
use doorway_protocol::Scope;

use super::{Limits, Mistakes, Overrides, Settings, read};

/// After how long without sessions such a node ends.
pub const IDLE_STOP: Duration = Duration::from_mins(10);

/// The user whose node it is. It is never taken from the environment.
pub fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Where the node of a user keeps what must survive it.
pub fn data(user: u32) -> PathBuf {
    PathBuf::from(format!("/var/tmp/doorway-{user}"))
}

/// The socket of the node of a user.
pub fn socket(user: u32) -> String {
    format!("@doorway-{user}")
}

impl Settings {
    /// The node of this user.
    pub fn local(overrides: &Overrides) -> Result<Self, Mistakes> {
        let user = user();
        let own = socket(user);
        let name = overrides.socket.as_deref().unwrap_or(&own);
        let socket = read::socket(name, 0o600).map_err(|(what, remedy)| {
            Mistakes::one(format!("`--socket {name}`: {what}"), remedy)
        })?;
        let data = overrides.data.clone().unwrap_or_else(|| data(user));
        // Both modes work, and a node alone sends no message whichever it is.
        let algorithm = "readers-writers".to_owned();
        Ok(Self {
            node: Config { data: Some(data), algorithm, ..Config::default() },
            scope: Scope::User,
            socket: Some(socket),
            sessions: None,
            http: None,
            hosts: Vec::new(),
            clients: Vec::new(),
            tls: None,
            limits: Limits::default(),
            drain: Duration::ZERO,
            idle_stop: Some(overrides.idle_stop.unwrap_or(IDLE_STOP)),
        })
    }
}
