//! The settings of the node of one user, which needs no file and listens on no port.

use std::path::PathBuf;
use std::time::Duration;

use doorway_node::Config;
use doorway_protocol::Scope;

use super::{Mistakes, Overrides, Settings, default_limits, read};

/// The node of a user stops after this time without sessions.
pub const IDLE_STOP: Duration = Duration::from_mins(10);

/// How long `doorway drain` waits for holders, as in a configuration without the key `drain`.
const DRAIN: Duration = Duration::from_secs(10);

/// The user who runs this process, by the effective uid and never by the environment.
pub fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The directory of the node of a user, for what must survive a restart.
pub fn data(user: u32) -> PathBuf {
    PathBuf::from(format!("/var/tmp/doorway-{user}"))
}

/// The socket of the node of a user.
pub fn socket(user: u32) -> String {
    format!("@doorway-{user}")
}

impl Settings {
    /// The settings of the node of this user.
    pub fn local(overrides: &Overrides) -> Result<Self, Mistakes> {
        let user = user();
        let own = socket(user);
        let name = overrides.socket.as_deref().unwrap_or(&own);
        let socket = read::socket(name, 0o600).map_err(|(what, remedy)| {
            Mistakes::one(format!("`--socket {name}`: {what}"), remedy)
        })?;
        let data = overrides.data.clone().unwrap_or_else(|| data(user));
        // It supports both modes, and a node without members sends no messages with any algorithm.
        let algorithm = "readers-writers".to_owned();
        Ok(Self {
            source: None,
            node: Config { data: Some(data), algorithm, ..Config::default() },
            members: None,
            scope: Scope::User,
            socket: Some(socket),
            sessions: None,
            http: None,
            redis: None,
            redlock: false,
            etcd: None,
            hosts: Vec::new(),
            page: false,
            clients: Vec::new(),
            tls: None,
            limits: default_limits(),
            drain: DRAIN,
            idle_stop: Some(overrides.idle_stop.unwrap_or(IDLE_STOP)),
            wall_clock: std::time::SystemTime::now,
        })
    }
}
