//! What all hosts of a simulation share: the referee's record, the trace, and their progress.

use std::fmt;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use doorway_node::{Config, MemberConfig, NodeCounters, OwnedGuard, TlsConfig};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::network::PORT;
use super::plan::Plan;
use crate::common::book::Book;
use crate::common::{Authority, Scratch};

const GROUP: &str = "simulated";

/// The most nodes of a group.
const MOST: usize = 5;

/// The certificates of all nodes, made once for all simulations.
static CERTIFICATES: LazyLock<Vec<TlsConfig>> = LazyLock::new(|| {
    let authority = Authority::new();
    let issue = |node| {
        let (certificate, key) = authority.issue(&name(node), GROUP);
        let (certificate, key) = (certificate.into_bytes(), key.into_bytes());
        TlsConfig { ca: authority.pem().into_bytes(), certificate, key }
    };
    (0..MOST).map(issue).collect()
});

/// The name of a node, and of its host.
pub(crate) fn name(node: usize) -> String {
    format!("n{node}")
}

pub(crate) struct Stage {
    pub(crate) plan: Plan,
    scratch: Scratch,
    /// Tell a node to stop.
    stops: Vec<Notify>,
    now: Mutex<StageProgress>,
}

/// The progress of a simulation.
#[derive(Default)]
struct StageProgress {
    book: Book,
    /// Everything that happened, with its time.
    trace: Vec<String>,
    /// How often each node has started.
    starts: Vec<u64>,
    /// The nodes whose clients have nothing left to do.
    finished: Vec<bool>,
    /// The nodes that have been told to stop.
    stopping: Vec<bool>,
    calm: bool,
}

impl Stage {
    pub(crate) fn new(plan: Plan) -> Self {
        let none = vec![false; plan.size];
        let (starts, finished, stopping) = (vec![0; plan.size], none.clone(), none);
        let now = StageProgress { starts, finished, stopping, ..StageProgress::default() };
        let stops = (0..plan.size).map(|_| Notify::new()).collect();
        Self { plan, scratch: Scratch::in_memory(), stops, now: Mutex::new(now) }
    }

    /// Count a start of a node.
    pub(crate) fn starts(&self, node: usize) -> u64 {
        self.note(format_args!("{} starts", name(node)));
        let mut now = self.now.lock();
        now.stopping[node] = false;
        now.starts[node] += 1;
        now.starts[node]
    }

    pub(crate) fn config(&self, me: usize, start: u64) -> Config {
        let member = |node| MemberConfig { name: name(node), address: format!("n{node}:{PORT}") };
        Config {
            group: GROUP.into(),
            me: name(me),
            members: (0..self.plan.size).map(member).collect(),
            rules: self.plan.rules.clone(),
            handovers: self.plan.handovers,
            keep_idle: self.plan.keep_idle,
            data: Some(self.data(me)),
            tls: Some(CERTIFICATES[me].clone()),
            heartbeat: Duration::from_millis(40),
            silence: Duration::from_millis(160),
            seed: Some(self.plan.seed << 16 ^ (me as u64) << 8 ^ start),
            ..Config::default()
        }
    }

    fn data(&self, node: usize) -> PathBuf {
        self.scratch.path().join(name(node))
    }

    /// Record something that should not have happened.
    pub(crate) fn fault(&self, fault: String) {
        self.now.lock().book.faults.push(fault);
    }

    /// Record an event at the current time.
    pub(crate) fn note(&self, what: fmt::Arguments<'_>) {
        let time = turmoil::sim_elapsed().unwrap_or_default().as_micros();
        self.now.lock().trace.push(format!("{time} {what}"));
    }

    pub(crate) fn enter(&self, node: usize, guard: &OwnedGuard, shares: bool) {
        let name = guard.handle().name().as_str();
        let permits = self.plan.permits(name);
        self.now.lock().book.enter(node as u64, name, shares, guard.fence().get(), permits);
    }

    pub(crate) fn leave(&self, node: usize, guard: &OwnedGuard) {
        let name = guard.handle().name().as_str();
        let lost = guard.is_lost();
        let now = &mut *self.now.lock();
        if !lost {
            now.book.leave(node as u64, name);
        } else if !now.stopping[node] {
            now.book.faults.push(format!("{name}: lost by a node that is well"));
        }
    }

    /// Tell a node to stop.
    pub(crate) fn stop(&self, node: usize) {
        self.stops[node].notify_one();
    }

    /// Wait until this node is told to stop.
    pub(crate) async fn is_stopped(&self, node: usize) {
        self.stops[node].notified().await;
        self.now.lock().stopping[node] = true;
        self.gone(node);
    }

    /// Record that a node has ended, and that its clients are not inside any more.
    pub(crate) fn gone(&self, node: usize) {
        self.now.lock().book.gone(node as u64);
    }

    pub(crate) fn calm_down(&self) {
        self.now.lock().calm = true;
    }

    pub(crate) fn is_calm(&self) -> bool {
        self.now.lock().calm
    }

    /// Record that the clients of a node have nothing left to do.
    pub(crate) fn finish(&self, node: usize) {
        self.note(format_args!("{} has finished", name(node)));
        self.now.lock().finished[node] = true;
    }

    /// Have the clients of all nodes nothing left to do?
    pub(crate) fn is_over(&self) -> bool {
        self.now.lock().finished.iter().all(|finished| *finished)
    }

    /// Record the counters of a node at its end.
    pub(crate) fn account(&self, node: usize, counters: &NodeCounters) {
        let NodeCounters { view, waiting, rules, links, .. } = counters;
        let links: Vec<_> = links.iter().map(|(_, link)| link.traffic).collect();
        self.note(format_args!("{} counts {view:?} {rules:?} {links:?}", name(node)));
        if *waiting > 0 {
            self.fault(format!("{waiting} still wait at {}", name(node)));
        }
    }

    /// The trace; or what should not have happened.
    pub(crate) fn verdict(&self) -> Result<Vec<String>, String> {
        let mut now = self.now.lock();
        let finished = now.finished.iter().all(|finished| *finished);
        let held = now.book.held().join(", ");
        let trouble = if let Some(fault) = now.book.faults.first() {
            fault.clone()
        } else if !finished {
            format!("not all have finished: {:?}", now.finished)
        } else if !held.is_empty() {
            format!("still held: {held}")
        } else {
            return Ok(std::mem::take(&mut now.trace));
        };
        let last = now.trace.len().saturating_sub(60);
        Err(format!("{trouble}\nThe last that happened:\n{}", now.trace[last..].join("\n")))
    }
}
