//! How this process describes itself to others, and who shares the locks of a node.

use std::time::Duration;

use doorway_client::{ClientInfo, Life, Setup};
use doorway_protocol::Scope;

/// The setup of a session with this label, or of a connection for questions only. [`Link`] decides
/// about the rest.
///
/// [`Link`]: super::link::Link
pub(crate) fn setup(label: String, session: Option<(Duration, Life)>) -> Setup {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let who = ClientInfo { label, host, pid: std::process::id() };
    Setup { who, token: None, session, patience: Duration::ZERO, network: false, nodes: 1 }
}

/// The default label: the command line of this process.
pub(crate) fn label() -> String {
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    words.collect::<Vec<_>>().join(" ")
}

/// Who shares the locks of a node, in a few words.
pub(crate) fn scope(scope: Scope) -> &'static str {
    match scope {
        Scope::User => "this user only",
        Scope::Machine => "this machine",
        Scope::Cluster => "this group of nodes",
    }
}
