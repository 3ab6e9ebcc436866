//! The nemesis, which kills and pauses clients, links and nodes.

#![expect(clippy::unwrap_used, reason = "where no process can be started nothing can be tested")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::history::value;
use super::{TTL, worker};
use crate::common::daemon::signal;
use crate::common::group::Group;
use crate::common::until;

/// How many clients every node has; the last of them uses TCP.
const CLIENTS: usize = 2;

/// A fault to be undone, and when.
struct PendingUndo {
    at: Instant,
    what: Undo,
}

#[derive(Clone, Copy)]
enum Undo {
    WakeClient(usize),
    WakeNode(usize),
    StartNode(usize),
    OpenLink(usize),
}

/// How often each fault was injected.
#[derive(Default)]
struct Tally {
    killed: usize,
    paused: usize,
    nodes_killed: usize,
    nodes_paused: usize,
    cut: usize,
    held_up: usize,
}

/// Injects faults.
pub(crate) struct Nemesis<'a> {
    group: &'a mut Group,
    clients: Vec<Option<Child>>,
    shared: PathBuf,
    fenced: bool,
    due: Vec<PendingUndo>,
    random: u64,
    tally: Tally,
}

impl Drop for Nemesis<'_> {
    fn drop(&mut self) {
        for client in self.clients.iter_mut().flatten() {
            let _ = client.kill();
            let _ = client.wait();
        }
    }
}

impl<'a> Nemesis<'a> {
    pub(crate) fn new(group: &'a mut Group, shared: &Path, fenced: bool, seed: u64) -> Self {
        let count = group.nodes.len() * CLIENTS;
        let clients = (0..count).map(|_| None).collect();
        let (shared, random) = (shared.to_owned(), seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let (due, tally) = (Vec::new(), Tally::default());
        let mut nemesis = Self { group, clients, shared, fenced, due, random, tally };
        (0..count).for_each(|client| nemesis.start(client));
        nemesis.await_progress(20);
        nemesis
    }

    fn start(&mut self, client: usize) {
        let node = &self.group.nodes[client / CLIENTS];
        let remote = client % CLIENTS == CLIENTS - 1;
        let child = worker::start(node, remote, &self.shared, client, self.fenced);
        self.clients[client] = Some(child);
    }

    /// Wait until this many more updates have been made.
    fn await_progress(&self, updates: u64) {
        let file = self.shared.join("value");
        let wanted = value(&file).unwrap_or_default() + updates;
        until("the clients go on", || value(&file).is_some_and(|value| value >= wanted));
    }

    fn roll(&mut self, sides: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 20) as usize % sides
    }

    /// Inject faults for this time.
    pub(crate) fn rage(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.strike();
            // In real time, because real processes are killed and stopped.
            let pause = 50 + self.roll(100) as u64;
            sleep(Duration::from_millis(pause));
            self.undo(Instant::now());
        }
    }

    fn strike(&mut self) {
        let (client, node) = (self.roll(self.clients.len()), self.roll(self.group.nodes.len()));
        let link = self.roll(self.group.links.len());
        let beyond = TTL + Duration::from_millis(50 + self.roll(400) as u64);
        match self.roll(16) {
            0..=2 if !self.is_paused(client) => {
                self.tally.killed += 1;
                let mut killed = self.clients[client].take().unwrap();
                killed.kill().unwrap();
                killed.wait().unwrap();
                self.start(client);
            }
            3..=10 => {
                let client = self.victim();
                if self.is_paused(client) {
                    return;
                }
                self.tally.paused += 1;
                signal(self.clients[client].as_ref().unwrap(), Signal::STOP);
                self.after(beyond, Undo::WakeClient(client));
            }
            11 | 12 if !self.node_suffers() => {
                self.tally.nodes_killed += 1;
                self.group.nodes[node].kill();
                self.after(Duration::from_millis(100), Undo::StartNode(node));
            }
            13 if !self.node_suffers() => {
                self.tally.nodes_paused += 1;
                self.group.nodes[node].signal(Signal::STOP);
                self.after(beyond, Undo::WakeNode(node));
            }
            14 => {
                self.tally.cut += 1;
                self.group.links[link].cut();
            }
            15 => {
                self.tally.held_up += 1;
                self.group.links[link].hold(true);
                self.after(Duration::from_millis(400), Undo::OpenLink(link));
            }
            _ => {}
        }
    }

    /// Pick a client: the holder if there is one soon, because a fault does most harm there.
    fn victim(&mut self) -> usize {
        for _ in 0..100 {
            let inside = fs::read_to_string(self.shared.join("inside")).ok();
            if let Some(inside) = inside.and_then(|text| text.parse().ok()) {
                return inside;
            }
            sleep(Duration::from_micros(500)); // Nothing tells when a client enters.
        }
        self.roll(self.clients.len())
    }

    /// Fault one node at a time: while one is away there is little progress.
    fn node_suffers(&self) -> bool {
        self.is_due(|undo| matches!(undo, Undo::WakeNode(_) | Undo::StartNode(_)))
    }

    fn is_paused(&self, client: usize) -> bool {
        self.is_due(|undo| matches!(undo, Undo::WakeClient(it) if it == client))
    }

    fn is_due(&self, which: impl Fn(Undo) -> bool) -> bool {
        self.due.iter().any(|due| which(due.what))
    }

    fn after(&mut self, time: Duration, what: Undo) {
        self.due.push(PendingUndo { at: Instant::now() + time, what });
    }

    /// Undo what is due.
    fn undo(&mut self, now: Instant) {
        let due: Vec<PendingUndo> = self.due.extract_if(.., |due| due.at <= now).collect();
        for PendingUndo { what, .. } in due {
            match what {
                // It may have been killed meanwhile, and then another one runs.
                Undo::WakeClient(client) => {
                    signal(self.clients[client].as_ref().unwrap(), Signal::CONT);
                }
                Undo::WakeNode(node) => self.group.nodes[node].signal(Signal::CONT),
                Undo::StartNode(node) => self.group.nodes[node].spawn(),
                Undo::OpenLink(link) => self.group.links[link].hold(false),
            }
        }
    }

    /// Undo all faults, and check that all clients make progress.
    pub(crate) fn make_peace(&mut self) {
        while let Some(last) = self.due.iter().map(|due| due.at).max() {
            self.undo(last);
        }
        self.await_progress(30);
        for client in self.clients.iter_mut().flatten() {
            drop(client.stdin.take());
            let mut status = None;
            until("the client ends", || {
                status = client.try_wait().unwrap();
                status.is_some()
            });
            assert!(status.unwrap().success(), "{status:?}");
        }
        self.clients.clear();
    }

    pub(crate) fn told(&self) -> String {
        let Tally { killed, paused, nodes_killed, nodes_paused, cut, held_up } = &self.tally;
        format!(
            "clients killed {killed} and paused {paused} times, nodes {nodes_killed} and \
             {nodes_paused}, links cut {cut} and held up {held_up}"
        )
    }
}
