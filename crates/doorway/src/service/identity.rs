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
    let (token, patience, network, keep) = (None, Duration::ZERO, false, false);
    Setup { who, token, session, patience, network, keep, nodes: 1 }
}

/// The setup of a session that a process of this user holds without a connection.
pub(crate) fn setup_for(pid: Option<u32>, label: String, session: (Duration, Life)) -> Setup {
    let mut setup = setup(label, Some(session));
    setup.who.pid = pid.unwrap_or(0);
    setup.who.host = format!("{}@{}", user(), setup.who.host);
    setup
}

/// The name of this user, or its number if it has no name here.
fn user() -> String {
    let id = rustix::process::geteuid().as_raw();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    name_of(id, &users).unwrap_or_else(|| id.to_string())
}

/// The name of the user with this number, among lines as in `/etc/passwd`.
fn name_of(id: u32, users: &str) -> Option<String> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, number) = (fields.next()?, fields.nth(1)?);
        (number.parse() == Ok(id) && !name.is_empty()).then(|| name.to_owned())
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_its_number() {
        let users = "root:x:0:0:root:/:/bin/sh\n+::::::\nann:x:1000:1000::/:/bin/sh\n";
        assert_eq!(name_of(1000, users).as_deref(), Some("ann"));
        assert_eq!(name_of(7, users), None);
    }

    #[test]
    fn a_lock_of_a_process_names_it_and_its_user() {
        let session = (Duration::from_secs(10), Life::Process { pid: 7 });
        let who = setup_for(Some(7), "job".to_owned(), session).who;
        assert_eq!((who.pid, &*who.label), (7, "job"));
        assert!(who.host.starts_with(&format!("{}@", user())), "{who:?}");
    }
}
