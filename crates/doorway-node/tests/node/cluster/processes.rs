//! A group of nodes, each in a process of its own.

#![expect(clippy::unwrap_used, reason = "a process that cannot be talked to ends the test")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::common::{Authority, Scratch, addresses};

pub(crate) const GROUP: &str = "test";

/// The arguments of every node.
pub(crate) struct Plan {
    /// `PATTERN,ALGORITHM,PERMITS`.
    pub(crate) rules: Vec<String>,
    pub(crate) names: Vec<String>,
    pub(crate) clients: u64,
    pub(crate) entries: u64,
}

pub(crate) struct Processes {
    scratch: Scratch,
    plan: Plan,
    members: Vec<(String, String)>,
    nodes: Vec<Option<RunningProcess>>,
    starts: u64,
}

struct RunningProcess {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Processes {
    /// A group of `size` nodes with certificates and addresses, none of which runs yet.
    pub(crate) fn new(size: usize, plan: Plan) -> Self {
        let scratch = Scratch::new();
        let authority = Authority::new();
        fs::write(scratch.path().join("ca.pem"), authority.pem()).unwrap();
        let names = (0..size).map(|node| format!("n{node}"));
        let members: Vec<_> = names.zip(addresses(size)).collect();
        for (name, _) in &members {
            let (certificate, key) = authority.issue(name, GROUP);
            fs::write(scratch.path().join(format!("{name}.pem")), certificate).unwrap();
            fs::write(scratch.path().join(format!("{name}.key")), key).unwrap();
        }
        let nodes = (0..size).map(|_| None).collect();
        Self { scratch, plan, members, nodes, starts: 0 }
    }

    pub(crate) fn directory(&self) -> &Path {
        self.scratch.path()
    }

    pub(crate) fn name(&self, node: usize) -> &str {
        &self.members[node].0
    }

    pub(crate) fn size(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn start(&mut self, node: usize) {
        self.starts += 1;
        let path = self.directory().display().to_string();
        let me = &self.members[node].0;
        let mut command = Command::new(worker());
        command.arg(format!("me={me}")).arg(format!("group={GROUP}"));
        command.args(self.members.iter().map(|(name, address)| format!("member={name}@{address}")));
        command.args(self.plan.rules.iter().map(|rule| format!("rule={rule}")));
        command.args(self.plan.names.iter().map(|name| format!("name={name}")));
        command.arg(format!("data={path}/{me}.data")).arg(format!("certificates={path}"));
        command.arg(format!("referee={path}/referee"));
        command.arg(format!("clients={}", self.plan.clients));
        command.arg(format!("entries={}", self.plan.entries));
        command.arg(format!("seed={}", self.starts));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        self.nodes[node] = Some(RunningProcess { child, stdout });
    }

    pub(crate) fn start_all(&mut self) {
        (0..self.size()).for_each(|node| self.start(node));
    }

    /// Kill a node, as a power failure would.
    pub(crate) fn kill(&mut self, node: usize) {
        let mut running = self.nodes[node].take().unwrap();
        running.child.kill().unwrap();
        running.child.wait().unwrap();
    }

    /// Wait until a node has made all its entries.
    pub(crate) fn await_done(&mut self, node: usize) {
        let mut line = String::new();
        let running = self.nodes[node].as_mut().unwrap();
        running.stdout.read_line(&mut line).unwrap();
        assert_eq!(line, "done\n", "node {node} ended early");
    }

    /// Tell all nodes to stop, and check that they do.
    pub(crate) fn stop_all(&mut self) {
        for running in self.nodes.iter_mut().flatten() {
            drop(running.child.stdin.take());
        }
        for running in self.nodes.iter_mut().filter_map(Option::take) {
            let status = { running }.child.wait().unwrap();
            assert!(status.success(), "a node ended with {status}");
        }
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for running in self.nodes.iter_mut().flatten() {
            let _ = running.child.kill();
            let _ = running.child.wait();
        }
    }
}

/// The example beside this test, which is built with it.
fn worker() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let worker = test.parent().unwrap().parent().unwrap().join("examples/worker");
    assert!(
        worker.exists(),
        "`cargo build -p doorway-node --example worker` builds what is missing"
    );
    worker
}
