//! Who we are, and whom locks are for, in the words that others see.

use std::time::Duration;

use doorway_client::{ClientInfo, Life, Setup};
use doorway_protocol::Scope;

/// How long a request waits for a node that cannot be reached.
const PATIENCE: Duration = Duration::from_secs(10);

/// A session for what this label says, or only for questions.
pub(crate) fn setup(label: String, session: Option<(Duration, Life)>) -> Setup {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let who = ClientInfo { label, host, pid: std::process::id() };
    Setup { who, token: None, session, patience: PATIENCE, network: false }
}

/// What we do: our command line.
pub(crate) fn label() -> String {
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    words.collect::<Vec<_>>().join(" ")
}

/// Whom the locks of a node are for.
pub(crate) fn scope(scope: Scope) -> &'static str {
    match scope {
        Scope::User => "this user",
        Scope::Machine => "this machine",
        Scope::Cluster => "this cluster",
    }
}
