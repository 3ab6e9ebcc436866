//! State machines know no clock, no network, no disk, no threads, no log, no randomness and nothing
//! of their environment. So they can be searched and simulated as they are shipped. The laboratory,
//! which does that, opens no socket.

use crate::files::File;

/// Where the state machines are.
const PURE: [&str; 7] = [
    "crates/doorway-client/src/machine/",
    "crates/doorway-core/src/",
    "crates/doorway-node/src/link/",
    "crates/doorway-node/src/locks/",
    "crates/doorway-node/src/members/",
    "crates/doorway-node/src/views/",
    "crates/doorway-sessions/src/",
];
/// Files and directories among them that are not part of a machine.
const NOT_PURE: [&str; 3] = [
    "crates/doorway-node/src/members/store.rs",
    "crates/doorway-node/src/views/store.rs",
    "crates/doorway-sessions/src/shell/",
];
/// What a machine must not use.
const FORBIDDEN: [&str; 26] = [
    "rustix",
    "tokio",
    "parking_lot",
    "tracing",
    "Instant",
    "SystemTime",
    "Moment::now",
    "Moment::now_at_node",
    "Moment::boot",
    "Moment::raw",
    "ClockReading::now",
    "Timer",
    "std::env",
    "std::fs",
    "std::net",
    "std::os",
    "std::process",
    "std::thread",
    "Mutex",
    "RandomState",
    "DefaultHasher",
    "HashMap",
    "HashSet",
    "getrandom",
    "RwLock",
    "Condvar",
];
/// Where the laboratory is.
const LABORATORY: &str = "crates/doorway-lab/src/";
/// What the laboratory must not use.
const SOCKETS: [&str; 3] = ["std::net", "os::unix::net", "tokio"];
/// How a `use` begins that names several modules at once, which the words above would not find.
const SEVERAL: &str = "use std::{";

/// What a state machine or the laboratory uses and must not, as `path:line: what`.
pub(crate) fn complaints(file: &File) -> Vec<String> {
    let in_any = |paths: &[&str]| paths.iter().any(|path| file.path.starts_with(path));
    if in_any(&PURE) && !in_any(&NOT_PURE) {
        return uses_of(file, "a state machine", &FORBIDDEN);
    }
    if in_any(&[LABORATORY]) {
        return uses_of(file, "a laboratory", &SOCKETS);
    }
    Vec::new()
}

/// Where `what` uses one of these words.
fn uses_of(file: &File, what: &str, forbidden: &[&str]) -> Vec<String> {
    let mut complaints = Vec::new();
    for (line, number) in file.text.lines().zip(1..) {
        let code = line.split("//").next().unwrap_or_default();
        let attribute = code.trim_start().starts_with("#[");
        let found = forbidden.iter().find(|word| !attribute && uses(code, word));
        complaints
            .extend(found.map(|word| format!("{}:{number}: {what} that uses {word}", file.path)));
        if code.contains(SEVERAL) {
            let remedy = "write one `use` for each module";
            complaints.push(format!("{}:{number}: {what} with `use std::{{`; {remedy}", file.path));
        }
    }
    complaints
}

/// Does the code have this path in it, and not only as a part of a longer word?
fn uses(code: &str, path: &str) -> bool {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(path).any(|(at, _)| {
        let (before, after) = (&code[..at], &code[at + path.len()..]);
        !before.ends_with(part_of_word) && !after.starts_with(part_of_word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        complaints(&File { path: path.to_owned(), text: text.to_owned() })
    }

    #[test]
    fn a_machine_that_reads_a_clock_is_found() {
        let machine = "crates/doorway-node/src/views/change.rs";
        let complaint = format!("{machine}:2: a state machine that uses Instant");
        assert_eq!(found(machine, "//! No Instant.\nuse std::time::Instant;\n"), [complaint]);
        assert_eq!(found(machine, "let instant = Instants::tokio_like; // tokio\n"), [""; 0]);
        assert_eq!(found(machine, "#[cfg(feature = \"tokio\")]\n"), [""; 0]);
        assert_eq!(found("crates/doorway-node/src/shell.rs", "use tokio::x;\n"), [""; 0]);
        let complaint = format!("{machine}:1: a state machine that uses RandomState");
        assert_eq!(found(machine, "use std::hash::{Hash, RandomState};\n"), [complaint]);
        for text in ["use std::{fs, io};\n", "    use std::{\n        fs::File,\n    };\n"] {
            let complaint = format!(
                "{machine}:1: a state machine with `use std::{{`; write one `use` for each module"
            );
            assert_eq!(found(machine, text), [complaint]);
        }
        for (text, word) in [
            ("use std::collections::HashMap;\n", "HashMap"),
            ("use std::collections::{BTreeMap, HashSet};\n", "HashSet"),
            ("let home = std::env::var_os(\"HOME\");\n", "std::env"),
            ("use std::os::fd::OwnedFd;\n", "std::os"),
            ("getrandom::fill(&mut bytes)?;\n", "getrandom"),
        ] {
            let complaint = format!("{machine}:1: a state machine that uses {word}");
            assert_eq!(found(machine, text), [complaint]);
        }
        // Its hasher has no seed, so its order is the same in every process.
        assert_eq!(found(machine, "use rustc_hash::FxHashMap;\n"), [""; 0]);
        let text = "let now = Moment::now_at_node();\n";
        let complaint = format!("{machine}:1: a state machine that uses Moment::now_at_node");
        assert_eq!(found(machine, text), [complaint]);
        assert_eq!(found(NOT_PURE[0], "use std::fs;\n"), [""; 0]);
        let shell = "crates/doorway-sessions/src/shell/ledger.rs";
        assert_eq!(found(shell, "use std::fs;\n"), [""; 0]);
    }

    #[test]
    fn a_laboratory_that_opens_a_socket_is_found() {
        let file = "crates/doorway-lab/src/story/mod.rs";
        for (line, word) in [
            ("use std::net::TcpStream;", "std::net"),
            ("use std::os::unix::net::UnixStream;", "os::unix::net"),
            ("    let socket = std::net::UdpSocket::bind(at);", "std::net"),
        ] {
            let complaint = format!("{file}:1: a laboratory that uses {word}");
            assert_eq!(found(file, line), [complaint]);
        }
        assert_eq!(found(file, "use std::sync::Mutex; // std::net\n"), [""; 0]);
        assert_eq!(found("crates/doorway-page/src/server.rs", "use std::net::X;\n"), [""; 0]);
    }

    /// Functions without arguments that return a moment must read it from a clock.
    #[test]
    fn every_function_that_reads_a_clock_is_forbidden() {
        let clocks = include_str!("../../crates/doorway-protocol/src/timer.rs");
        let mut owner = "";
        let mut functions = Vec::new();
        for line in clocks.lines() {
            if let Some(begin) = line.strip_prefix("impl ") {
                owner = begin.trim_end_matches(" {");
            }
            let function = line.trim().strip_prefix("pub fn ");
            if let Some((name, _)) = function.and_then(|it| it.split_once("() -> Self {")) {
                functions.push(format!("{owner}::{name}"));
            }
        }
        assert!(functions.len() >= 5, "{functions:?}");
        for function in functions {
            assert!(FORBIDDEN.contains(&function.as_str()), "{function}");
        }
    }
}
