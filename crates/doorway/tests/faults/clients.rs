//! The clients of one node, in a process of their own on its machine. Each of them enters a lock,
//! writes with its fence, leaves, and begins again. What it does, it tells the referee.

use std::path::PathBuf;
use std::thread::{self, sleep};
use std::time::Duration;

use doorway_client::blocking::Client;
use doorway_client::{Endpoint, Life, Options, State};
use doorway_protocol::ClockReading;

use crate::judge::{Line, Verb};
use crate::referee::Ear;

/// The variable that makes a process the clients of a node: its name and its socket.
pub(crate) const ROLE: &str = "DOORWAY_FAULTS_CLIENTS";

/// The test that is the clients of a node.
pub(crate) const TEST: &str = "clients::the_clients";

/// A lock that one client or another is inside of nearly all the time. Its clients are bound to
/// their processes, as `doorway run` is.
pub(crate) const JOB: &str = "job";

/// A lock that one client of a node enters once and never leaves.
const KEEP: &str = "keep";

/// A lock as a long lease.
const LEASED: &str = "long";

/// What the clients of a node do. Each is a client.
pub(crate) const KINDS: [&str; 5] = [JOB, "hot", "own", KEEP, LEASED];

/// The kinds of clients that enter again and again, within less than a second if all is well.
pub(crate) const BUSY: [&str; 3] = [JOB, "hot", "own"];

/// The file that makes a client stay inside for as long as it exists.
pub(crate) fn stay(node: &str, kind: &str) -> String {
    format!("stay-{node}-{kind}")
}

/// The longest TTL of a session, for a lease of 2 s.
const TTL: Duration = Duration::from_millis(1400);

/// A lease that is longer than the lease of a node, so that the group has to keep it.
const LONG: Duration = Duration::from_secs(4);

/// How often a client that is inside looks whether it still is.
const STEP: Duration = Duration::from_millis(5);

/// A client that could not look for this long was stopped.
const STOPPED: Duration = Duration::from_millis(300);

/// How long a client that was not stopped goes on being sure without an answer, in nanoseconds: as
/// long as its lock is not lost. Beyond this it must have been stopped.
const SOON: u64 = STOPPED.as_nanos() as u64;

/// How long a client waits before it tries again after an error.
const REST: Duration = Duration::from_millis(20);

/// Now, in nanoseconds of a clock that all processes of the machine share.
pub(crate) fn now() -> u64 {
    ClockReading::now().boot
}

/// Not a test: the clients of a node.
#[test]
#[ignore = "it is a client, which another test starts as a process"]
fn the_clients() {
    let Ok(what) = std::env::var(ROLE) else { return };
    let (node, socket) = what.split_once(' ').expect("a name and a socket");
    let directory = PathBuf::from(".");
    let threads: Vec<_> = KINDS
        .into_iter()
        .map(|kind| {
            let is_shared = [JOB, "hot", LEASED].contains(&kind);
            let lock = if is_shared { kind.to_owned() } else { format!("{kind}/{node}") };
            let mut client = Visitor {
                name: format!("{node}/{kind}"),
                stay: stay(node, kind).into(),
                lock,
                endpoint: socket.parse().expect("an endpoint"),
                ear: Ear::connect(&directory).expect("the referee listens"),
            };
            thread::spawn(move || client.run(kind))
        })
        .collect();
    // The process that started this one closes its end of the pipe to stop it, or dies.
    std::io::stdin().lines().for_each(drop);
    drop(threads);
    std::process::exit(0);
}

/// One client.
struct Visitor {
    name: String,
    /// While this file exists, the client stays inside.
    stay: PathBuf,
    lock: String,
    endpoint: Endpoint,
    ear: Ear,
}

/// The client has lost its lock, or could not get it, and has said so.
struct ClientFailure;

impl Visitor {
    fn run(&mut self, kind: &str) {
        let label = Options::default().label(&self.name).patience(Duration::from_secs(3));
        let (options, hold, rest) = match kind {
            JOB => (label, Duration::from_millis(150), Duration::from_millis(5)),
            "hot" => (label.ttl(TTL), Duration::from_millis(4), REST),
            "own" => (label.ttl(TTL), Duration::ZERO, REST),
            KEEP => (label, Duration::MAX, REST),
            _ => (label.ttl(LONG).life(Life::Lease), LONG / 16, REST),
        };
        for count in 0.. {
            // A node that is away, or refuses: the next attempt is soon enough.
            if let Ok(client) = Client::connect(self.endpoint.clone(), &options) {
                while kind != LEASED && self.visit(&client, hold).is_ok() {
                    sleep(rest);
                }
                if kind == LEASED {
                    // Each lease is a session of its own. Some of them outlive the lease of a node.
                    let hold = if count % 3 == 0 { LONG * 7 / 8 } else { hold };
                    let _ = self.lease(&client, hold);
                }
            }
            sleep(REST);
        }
    }

    /// Tell the referee. Did it accept?
    fn say(&mut self, verb: Verb, fence: u64, at: u64) -> bool {
        self.ear.say(&Line::said(&self.name, verb, &self.lock, fence, at))
    }

    /// Enter, write and leave. The client sends heartbeats meanwhile.
    fn visit(&mut self, client: &Client, hold: Duration) -> Result<(), ClientFailure> {
        self.say(Verb::Asks, 0, now());
        let Ok(grant) = client.acquire(&self.lock).enter() else {
            self.say(Verb::Told, 0, now());
            return Err(ClientFailure);
        };
        let (fence, entered) = (grant.fence().get(), now());
        self.say(Verb::Enters, fence, entered);
        let (mut sure, mut seen) = (entered, entered);
        loop {
            let before = now();
            let (state, stopped) = (grant.state(), Duration::from_nanos(before - seen) > STOPPED);
            seen = before;
            if state == State::Lost {
                self.say(Verb::Loses, fence, before);
                return Err(ClientFailure);
            }
            // A client that was stopped itself is sure again when its node has answered.
            if state == State::Held || !stopped && sure + SOON > before {
                sure = before;
            }
            // The write may be late, as on a slow way to the resource. Then its fence counts.
            sleep(STEP);
            self.say(Verb::Writes, fence, sure);
            if Duration::from_nanos(sure - entered) >= hold && !self.stay.exists() {
                break;
            }
        }
        self.say(Verb::Leaves, fence, sure);
        // If it was lost meanwhile, there is nothing to do about it.
        grant.release().map_err(|_| ClientFailure)
    }

    /// Take a long lease, write, and give it back. There are no heartbeats: the client counts by
    /// itself, from when it sent the last request that was answered.
    fn lease(&mut self, client: &Client, hold: Duration) -> Result<(), ClientFailure> {
        self.say(Verb::Asks, 0, now());
        let Ok(grant) = client.acquire(&self.lock).enter() else {
            self.say(Verb::Told, 0, now());
            return Err(ClientFailure);
        };
        let fence = grant.keep();
        // The request may have waited for long, so it is the renewal that counts.
        let sent = now();
        if client.renew(&self.lock, fence).is_err() {
            self.say(Verb::Told, 0, now());
            return Err(ClientFailure);
        }
        let (number, entered) = (fence.get(), now());
        self.say(Verb::Enters, number, entered);
        loop {
            let sure = now();
            // As much as clients leave to the clocks of others.
            let counted = Duration::from_nanos(sure - sent);
            if counted >= LONG * 19 / 20 {
                self.say(Verb::Loses, number, sure);
                return Err(ClientFailure);
            }
            self.say(Verb::Writes, number, sure);
            if counted >= hold {
                self.say(Verb::Leaves, number, sure);
                return client.release(&self.lock, fence).map(drop).map_err(|_| ClientFailure);
            }
            sleep(STEP * 4);
        }
    }
}
