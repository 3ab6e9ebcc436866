//! Clients that are paused beyond their time to live, and connections that are cut.

#![expect(clippy::unwrap_used, reason = "a process that cannot be talked to ends the test")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdout};
use std::time::Duration;

use doorway_client::blocking::Client;
use doorway_client::{Code, Endpoint, Fence, FileGate, GateError, Options, State};
use rustix::process::Signal;

use crate::common::daemon::{Daemon, again, signal, tcp};
use crate::common::group::remote;
use crate::common::network::Network;
use crate::common::{code, until};

/// The variable with the socket, the gate and the time to live of a client in a process of its own.
const HOLDER: &str = "DOORWAY_TEST_HOLDER";

/// Not a test: a client that holds a lock and reports its state on command.
#[test]
#[ignore = "it is a client, which other tests start as a process"]
fn a_holder() {
    let Ok(what) = std::env::var(HOLDER) else { return };
    let [socket, gate, ttl] = what.split('|').collect::<Vec<_>>()[..] else { return };
    let options = Options::default().ttl(Duration::from_millis(ttl.parse().unwrap()));
    let client = Client::connect(socket.parse::<Endpoint>().unwrap(), &options).unwrap();
    client.on_lost(|lost| println!("told {}", lost.fence));
    let (gate, grant) = (FileGate::new(gate), client.acquire("a").enter().unwrap());
    drop(gate.pass(grant.fence()).unwrap());
    println!("\nfence {}", grant.fence());
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let passed = match gate.pass(grant.fence()) {
            Ok(_) => "passed",
            Err(GateError::Stale(_)) => "stale",
            Err(error) => panic!("{error}"),
        };
        println!("{line} {:?} {passed} {:?}", grant.state(), client.release("a", grant.fence()));
    }
}

/// A client in a process of its own that holds a lock. It is killed when this value is dropped.
pub(crate) struct Holder {
    pub(crate) process: Child,
    stdout: BufReader<ChildStdout>,
    pub(crate) fence: Fence,
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Holder {
    fn start(daemon: &Daemon, ttl_ms: u64) -> Self {
        let gate = daemon.place.file("gate");
        let what = format!("{}|{}|{ttl_ms}", daemon.endpoint(), gate.display());
        Self::run("clients::pauses::a_holder", HOLDER, &what)
    }

    /// Start such a client, which prints its fence first.
    pub(crate) fn run(test: &str, variable: &str, value: &str) -> Self {
        let mut process = again(test, variable, value).spawn().unwrap();
        let stdout = BufReader::new(process.stdout.take().unwrap());
        let mut holder = Self { process, stdout, fence: Fence::new(1, 1) };
        holder.fence = holder.line("fence ").parse().unwrap();
        holder
    }

    /// Send it a command.
    pub(crate) fn tell(&mut self, line: &str) {
        writeln!(self.process.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// The rest of the next line that begins like this.
    pub(crate) fn line(&mut self, beginning: &str) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.stdout.read_line(&mut line).unwrap(), 0, "the client ended");
            if let Some(rest) = line.trim_end().strip_prefix(beginning) {
                return rest.to_owned();
            }
        }
    }
}

#[test]
fn a_client_paused_beyond_its_timeout_finds_the_lock_lost_and_is_refused_at_the_resource() {
    let daemon = Daemon::alone("");
    let mut holder = Holder::start(&daemon, 600);
    let other = daemon.client();
    signal(&holder.process, Signal::STOP);
    let grant = other.acquire("a").enter().unwrap();
    assert!(grant.fence() > holder.fence);
    let gate = FileGate::new(daemon.place.file("gate"));
    drop(gate.pass(grant.fence()).unwrap());
    signal(&holder.process, Signal::CONT);
    holder.tell("now");
    // The client knows by its own clock, whatever arrives first; and its release frees nothing.
    assert_eq!(holder.line("now "), "Lost stale Ok(false)");
    assert_eq!(grant.state(), State::Held);
    assert_eq!(code(&daemon.client().acquire("a").try_now().enter().unwrap_err()), Code::NotFree);
    grant.release().unwrap();
}

#[test]
fn a_client_that_is_killed_loses_its_lock_to_the_next_at_once() {
    let daemon = Daemon::alone("");
    let mut holder = Holder::start(&daemon, 30_000);
    let other = daemon.client();
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| other.acquire("a").enter().unwrap().fence());
        let visitor = daemon.client();
        until("it waits", || visitor.status().unwrap().waiting == 1);
        holder.process.kill().unwrap();
        assert!(waits.join().unwrap() > holder.fence);
    });
}

/// A pause shorter than the time to live changes nothing for anyone.
#[test]
fn a_client_paused_for_a_moment_keeps_its_lock() {
    let daemon = Daemon::alone("");
    let mut holder = Holder::start(&daemon, 30_000);
    signal(&holder.process, Signal::STOP);
    let stat = format!("/proc/{}/stat", holder.process.id());
    until("it is stopped", || std::fs::read_to_string(&stat).unwrap().contains(") T "));
    signal(&holder.process, Signal::CONT);
    holder.tell("now");
    assert_eq!(holder.line("now "), "Held passed Ok(true)");
}

/// A paused node grants nothing, and its clients find out by themselves.
#[test]
fn a_node_paused_beyond_the_timeout_loses_its_clients_and_they_know_first() {
    let daemon = Daemon::alone("");
    let client = daemon.session(Duration::from_millis(600));
    let grant = client.acquire("a").enter().unwrap();
    let fence = grant.fence();
    daemon.signal(Signal::STOP);
    let mut seen = Vec::new();
    until("it is lost", || {
        let state = grant.state();
        if seen.last() != Some(&state) {
            seen.push(state);
        }
        state == State::Lost
    });
    assert_eq!(seen.last(), Some(&State::Lost));
    assert!(seen.is_sorted(), "{seen:?}");
    daemon.signal(Signal::CONT);
    assert!(grant.release().is_err());
    // The client opens another session by itself.
    let again = client.acquire("a").enter().unwrap();
    assert!(again.fence() > fence);
}

/// A session that lives as long as its process needs no signs of life of the node. But a question
/// that a node answers at once does not wait for ever for a node that hangs.
#[test]
fn a_node_that_hangs_is_noticed_without_a_ttl() {
    let daemon = Daemon::alone("");
    let options = Options::default().patience(Duration::from_secs(1));
    let client = Client::connect(daemon.endpoint(), &options).unwrap();
    let grant = client.acquire("a").enter().unwrap();
    daemon.signal(Signal::STOP);
    let tried = client.acquire("b").try_now().enter().unwrap_err();
    assert_eq!(code(&tried), Code::Unavailable, "{tried}");
    let asked = client.inspect("a").unwrap_err();
    assert_eq!(code(&asked), Code::Unavailable, "{asked}");
    assert_eq!(grant.state(), State::Held, "the node keeps it as long as this process exists");
    grant.release().unwrap_err();
    daemon.signal(Signal::CONT);
    // What was given up meanwhile is free when the node goes on.
    let other = daemon.client();
    for lock in ["a", "b"] {
        drop(other.acquire(lock).within(Duration::from_secs(30)).enter().unwrap());
    }
}

#[test]
fn a_session_is_kept_over_a_cut_connection() {
    let daemon = remote("");
    let network = Network::new(&daemon.tcp.as_ref().unwrap().0);
    let client = Client::connect(tcp(&network.address), &daemon.over_tcp()).unwrap();
    let session = client.node().unwrap().session;
    let grant = client.acquire("a").enter().unwrap();
    let other = daemon.client();
    for _ in 0..3 {
        network.cut();
        // Every open request is sent again over the next connection.
        assert_eq!(client.inspect("a").unwrap().holders[0].fence, grant.fence());
        assert_eq!(code(&other.acquire("a").try_now().enter().unwrap_err()), Code::NotFree);
    }
    assert_eq!((client.node().unwrap().session, grant.state()), (session, State::Held));
    network.close(true);
    until("the client tries to reconnect", || network.refused() >= 2);
    network.close(false);
    grant.release().unwrap();
    other.acquire("a").within(crate::common::PATIENCE).enter().unwrap().release().unwrap();
}

/// A release whose reply was lost with the connection is sent again, and its reply is true.
#[test]
fn a_release_over_a_cut_connection_is_done_once() {
    let daemon = remote("");
    let network = Network::new(&daemon.tcp.as_ref().unwrap().0);
    let client = Client::connect(tcp(&network.address), &daemon.over_tcp()).unwrap();
    let other = daemon.client();
    for round in 0..10 {
        let grant = client.acquire("a").enter().unwrap();
        std::thread::scope(|scope| {
            let cut = scope.spawn(|| {
                // In real time: each round cuts the connection a little later.
                std::thread::sleep(Duration::from_micros(round * 40));
                network.cut();
            });
            grant.release().unwrap();
            cut.join().unwrap();
        });
        let next = other.acquire("a").within(crate::common::PATIENCE).enter().unwrap();
        assert_eq!(next.state(), State::Held);
        next.release().unwrap();
    }
}

/// If nothing arrives over a connection any more, the holder learns of the loss first.
#[test]
fn a_client_cut_off_beyond_its_timeout_knows_before_the_next_enters() {
    let daemon = remote("");
    let network = Network::new(&daemon.tcp.as_ref().unwrap().0);
    let options = daemon.over_tcp().ttl(Duration::from_millis(800));
    let client = Client::connect(tcp(&network.address), &options).unwrap();
    let grant = client.acquire("a").enter().unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    client.on_lost(move |lost| tell.send((lost.clone(), doorway_client::Moment::now())).unwrap());
    network.hold(true);
    let next = daemon.client().acquire("a").enter().unwrap();
    let entered = doorway_client::Moment::now();
    assert!(grant.is_lost());
    let (lost, at) = told.recv_timeout(crate::common::PATIENCE).unwrap();
    assert_eq!(lost.fence, grant.fence());
    println!("found lost {:?} before the next one was in", entered.since(at));
    network.hold(false);
    assert!(next.fence() > grant.fence());
}
