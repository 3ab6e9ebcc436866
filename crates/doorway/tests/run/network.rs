//! A node that is reached over TCP, with certificates as `doorway ca` makes them.

use std::process::Command;

use crate::place::{Place, Process, children, free_ports, lives, until};

/// A node that listens on TCP, and the options with which clients reach it.
pub(crate) struct Network {
    _node: Process,
    place: Place,
    /// The port for sessions.
    pub(crate) port: u16,
    /// The port for HTTP.
    pub(crate) http: u16,
}

impl Network {
    pub(crate) fn new() -> Self {
        let place = Place::empty();
        let [port, http] = free_ports();
        let node = place.serve_with_tls(&format!(
            "[sessions]\nlisten = \"127.0.0.1:{port}\"\n\
             [http]\nlisten = \"127.0.0.1:{http}\"\n\
             [[client]]\nname = \"tester\"\n\
             rights = [{{ names = \"x*\", may = [\"acquire\", \"inspect\", \"break\"] }}]\n"
        ));
        place.ca("client tester --dir ca --to files");
        Self { _node: node, place, port, http }
    }

    /// `doorway` with these words, as the client `tester`.
    pub(crate) fn command(&self, words: &str) -> Command {
        self.command_at(&format!("tcp://127.0.0.1:{}", self.port), words)
    }

    /// `doorway` with these words, at another endpoint.
    pub(crate) fn command_at(&self, endpoint: &str, words: &str) -> Command {
        let (first, rest) = words.split_once(' ').unwrap_or((words, ""));
        let options = format!(
            "--socket {endpoint} --ca ca/ca.crt --certificate files/tester.crt \
             --key files/tester.key"
        );
        let words = [first].into_iter().chain(options.split(' '));
        let mut command = self.place.command(words.chain(rest.split_whitespace()));
        command.current_dir(&self.place.directory);
        command
    }
}

#[test]
fn over_the_network_a_killed_wrapper_takes_the_command_with_it() {
    let network = Network::new();
    let done = network.command("run x -- printenv DOORWAY_LOCK").output().unwrap();
    assert_eq!((done.status.code(), &*done.stdout), (Some(0), &b"x\n"[..]), "{done:?}");

    let wrapper = Process::spawn(&mut network.command("run --ttl 3 x -- sleep 100"));
    until("the lock is held", || network.place.inside("x", 1));
    until("it runs", || children(wrapper.id()).len() == 1);
    let child = children(wrapper.id())[0];
    wrapper.signal("KILL");
    wrapper.end();
    until("the command is gone", || !lives(child));
    until("the lock is free", || network.place.inside("x", 0));
}

#[test]
fn a_client_without_the_right_is_refused_with_77() {
    let network = Network::new();
    let done = network.command("run y -- true").output().unwrap();
    assert_eq!(done.status.code(), Some(77), "{done:?}");
    let text = String::from_utf8(done.stderr).unwrap();
    assert!(text.starts_with("doorway: ") && text.lines().count() == 1, "{text}");
}
