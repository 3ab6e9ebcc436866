//! A client in a process of its own: it enters, reads, pauses and writes, again and again.

#![expect(clippy::unwrap_used, reason = "where the disk refuses, nothing can be tested")]

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::Duration;

use doorway_client::blocking::{Client, Grant};
use doorway_client::{Endpoint, Error, FileGate, GateError, Options, Passage};
use doorway_protocol::ClockReading;

use super::TTL;
use crate::common::daemon::{Daemon, again, over_tcp, tcp};

/// The variable that says what such a process does.
const WORKER: &str = "DOORWAY_TEST_WORKER";

/// The separator of values in the variable; no path or name contains it.
const BETWEEN: char = '|';

/// The lock that protects the file.
const LOCK: &str = "orders/42";

/// A number as it stands in the file, always of the same length, so that a write replaces it whole.
pub(crate) fn shown(value: u64) -> String {
    format!("{value:020}")
}

/// Not a test: the client itself.
#[test]
#[ignore = "it is a client, which other tests start as a process"]
fn a_worker() {
    let Ok(what) = std::env::var(WORKER) else { return };
    let [endpoint, node, certificates, shared, number, fenced] =
        what.split(BETWEEN).collect::<Vec<_>>()[..]
    else {
        return;
    };
    let shared = PathBuf::from(shared);
    let log = shared.join(format!("{number}.log"));
    let mut worker = Worker {
        endpoint: endpoint.parse().unwrap(),
        options: if endpoint.starts_with("tcp:") {
            over_tcp(Path::new(certificates), node)
        } else {
            Options::default()
        },
        value: OpenOptions::new().read(true).write(true).open(shared.join("value")).unwrap(),
        gate: (fenced == "true").then(|| FileGate::new(shared.join("fence"))),
        log: OpenOptions::new().append(true).create(true).open(log).unwrap(),
        inside: OpenOptions::new().write(true).open(shared.join("inside")).unwrap(),
        number: number.to_owned(),
        random: number.parse::<u64>().unwrap() << 32 | u64::from(std::process::id()),
    };
    worker.options = worker.options.ttl(TTL).label("worker").patience(Duration::from_secs(5));
    // The process that started this one closes its end of the pipe to stop it.
    std::thread::spawn(|| {
        std::io::stdin().lines().for_each(drop);
        std::process::exit(0);
    });
    worker.run();
}

/// Start such a process, at a node and through its Unix socket or over TCP.
pub(crate) fn start(
    daemon: &Daemon,
    remote: bool,
    shared: &Path,
    number: usize,
    fenced: bool,
) -> Child {
    let endpoint = match &daemon.tcp {
        Some((sessions, _)) if remote => tcp(sessions),
        _ => daemon.endpoint(),
    };
    let what = [
        endpoint.to_string(),
        daemon.node.clone(),
        daemon.place.path().display().to_string(),
        shared.display().to_string(),
        number.to_string(),
        fenced.to_string(),
    ];
    let mut command: Command =
        again("workload::worker::a_worker", WORKER, &what.join(&BETWEEN.to_string()));
    command.stdout(std::process::Stdio::null()).spawn().unwrap()
}

struct Worker {
    endpoint: Endpoint,
    options: Options,
    value: File,
    /// The highest fence that the resource has seen, if it checks fences.
    gate: Option<FileGate>,
    log: File,
    /// Here the nemesis finds the holder.
    inside: File,
    number: String,
    random: u64,
}

impl Worker {
    fn run(&mut self) {
        loop {
            // Whatever error a faulted node returns, the client tries again.
            if let Ok(client) = Client::connect(&self.endpoint, &self.options) {
                while self.turn(&client).is_ok() {}
            }
            sleep(Duration::from_millis(20)); // So that it does not spin while its node is away.
        }
    }

    fn turn(&mut self, client: &Client) -> Result<(), Error> {
        let grant = client.acquire(LOCK).enter()?;
        self.note(&format!("e {} {}", grant.fence(), ClockReading::now().boot));
        self.inside.write_all_at(self.number.as_bytes(), 0).unwrap();
        let value = self.increase(&grant);
        if let Some(value) = value {
            self.note(&format!("w {} {value}", grant.fence()));
        }
        self.inside.write_all_at(b"-", 0).unwrap();
        let _ = grant.release(); // If it was lost, there is nothing to do about it.
        self.pause(4);
        Ok(())
    }

    /// Read, pause and write. Returns what was written, unless the lock was lost or the resource
    /// refused the fence.
    fn increase(&mut self, grant: &Grant) -> Option<u64> {
        let value = {
            let _passage = self.pass(grant)?;
            let mut text = [0; 20];
            self.value.read_exact_at(&mut text, 0).unwrap();
            std::str::from_utf8(&text).unwrap().parse::<u64>().unwrap() + 1
        };
        self.pause(8);
        if !self.is_ours(grant) {
            return None;
        }
        // A write may be delayed on its way to the resource.
        self.pause(4);
        let _passage = self.pass(grant)?;
        self.value.write_all_at(shown(value).as_bytes(), 0).unwrap();
        Some(value)
    }

    /// Whether the client still holds the lock. If so, it held it at the moment before.
    fn is_ours(&mut self, grant: &Grant) -> bool {
        let before = ClockReading::now().boot;
        if grant.is_lost() {
            self.note(&format!("l {} {before}", grant.fence()));
            return false;
        }
        self.note(&format!("h {} {before}", grant.fence()));
        true
    }

    /// Pass the gate, if there is one.
    #[expect(clippy::option_option, reason = "no passage is needed where there is no gate")]
    fn pass(&mut self, grant: &Grant) -> Option<Option<Passage>> {
        let Some(gate) = &self.gate else { return Some(None) };
        match gate.pass(grant.fence()) {
            Ok(passage) => Some(Some(passage)),
            Err(GateError::Stale(_)) => {
                self.note(&format!("s {}", grant.fence()));
                None
            }
            Err(other) => panic!("{other}"),
        }
    }

    /// Wait for a random time up to this many milliseconds, in real time: this is the work of the
    /// client, and it may lose its lock meanwhile.
    fn pause(&mut self, most: u64) {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        sleep(Duration::from_micros(self.random % (most * 1000)));
    }

    /// Append one line atomically.
    fn note(&mut self, line: &str) {
        self.log.write_all(format!("{line}\n").as_bytes()).unwrap();
    }
}
