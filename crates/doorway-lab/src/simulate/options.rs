//! What a run is made of.

use std::sync::Arc;

use doorway_core::{Channel, Group, Info, Mode, Needs, NodeId, NodeSet};

use super::law::{Delay, LONGEST, Law};

/// The most entries of a run, for all its requests are kept.
pub const MAX_ENTRIES: u64 = 50_000_000;

/// When clients come. Times are in units of the mean message delay.
#[derive(Clone, Debug, PartialEq)]
pub enum Workload {
    /// Each seat of each node has one client, which thinks, asks, is inside, leaves, and thinks
    /// again.
    Closed {
        /// How long it thinks.
        think: Law,
    },
    /// Clients come to each node as a Poisson stream, whatever became of the earlier ones.
    Open {
        /// How many a unit of time come to one node.
        rate: f64,
    },
    /// One client at a time, at a node drawn evenly each time: load so light that nobody contends.
    Serial {
        /// How long after one has left the next comes.
        pause: Law,
    },
    /// Exactly these clients.
    Scripted(Vec<Arrival>),
}

/// A client that comes at a given time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrival {
    /// When.
    pub at: f64,
    /// To which node.
    pub node: NodeId,
    /// What it wants.
    pub mode: Mode,
    /// How long it stays inside, if not by the common law.
    pub stay: Option<f64>,
}

impl Arrival {
    /// A client that wants in alone and stays as long as all do.
    pub fn new(at: f64, node: NodeId) -> Self {
        Self { at, node, mode: Mode::Exclusive, stay: None }
    }

    /// Clients from text: a line each, `TIME NODE [shared] [stay TIME]`, with `#` comments.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, String> {
        let mut arrivals = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or("").trim();
            if !line.is_empty() {
                let complain = || {
                    let form = "TIME NODE [shared] [stay TIME], as in '2.5 1 stay 3'";
                    format!("line {}: '{line}' is not of the form {form}", at + 1)
                };
                arrivals.push(Self::parse(line).ok_or_else(complain)?);
            }
        }
        Ok(arrivals)
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let at = words.next()?.parse().ok()?;
        let node: u32 = words.next()?.parse().ok()?;
        let mut arrival = Self::new(at, NodeId(node.checked_sub(1)?));
        while let Some(word) = words.next() {
            match word {
                "shared" => arrival.mode = Mode::Shared,
                "stay" => arrival.stay = Some(words.next()?.parse().ok()?),
                _ => return None,
            }
        }
        Some(arrival)
    }
}

/// A stretch of time in which the nodes of one side cannot reach the others, either way.
#[derive(Clone, Debug, PartialEq)]
pub struct Partition {
    /// From when.
    pub from: f64,
    /// Until when.
    pub until: f64,
    /// One side.
    pub side: NodeSet,
}

/// Everything that rules a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The group.
    pub group: Arc<Group>,
    /// Do messages keep their order?
    pub channel: Channel,
    /// How long messages travel, in units of time.
    pub delay: Delay,
    /// When clients come.
    pub workload: Workload,
    /// How long they stay inside, in mean message delays.
    pub inside: Law,
    /// Which share of the clients wants shared mode.
    pub shared: f64,
    /// The first `.0` nodes are hot: their clients come `.1` times as often.
    pub hot: (u32, f64),
    /// The chance that a message is lost.
    pub loss: f64,
    /// The chance that a message arrives twice.
    pub duplicate: f64,
    /// Which nodes crash, and when.
    pub crashes: Vec<(f64, NodeId)>,
    /// How long after a crash the survivors are told, if ever.
    pub detect: Option<f64>,
    /// When the network is split.
    pub partitions: Vec<Partition>,
    /// What rules all chance.
    pub seed: u64,
    /// After how many entries done the run ends.
    pub entries: u64,
    /// How many entries are done before the counting begins.
    pub warmup: u64,
    /// How many events of the trace are kept.
    pub trace: usize,
}

impl Options {
    /// A run of the algorithm with `info` on `group` with the usual choices: unit delays, clients
    /// that think for ten message delays and stay inside for one, nothing fails.
    pub fn new(info: &Info, group: Group) -> Self {
        Self {
            group: Arc::new(group),
            channel: info.channel,
            delay: Delay::Law(Law::Constant(1.0)),
            workload: Workload::Closed { think: Law::Exponential(10.0) },
            inside: Law::Constant(1.0),
            shared: if info.shared { 0.5 } else { 0.0 },
            hot: (0, 1.0),
            loss: 0.0,
            duplicate: 0.0,
            crashes: Vec::new(),
            detect: None,
            partitions: Vec::new(),
            seed: 1,
            entries: 1000,
            warmup: 0,
            trace: 0,
        }
    }

    /// What makes these options impossible for the algorithm with `info`, if anything does.
    pub fn check(&self, info: &Info) -> Result<(), String> {
        let size = self.group.size();
        let probability = |name: &str, p: f64| {
            let fine = (0.0..=1.0).contains(&p);
            if fine { Ok(()) } else { Err(format!("{name} is a chance from 0 to 1, not {p}")) }
        };
        probability("loss", self.loss)?;
        probability("duplication", self.duplicate)?;
        probability("the shared part", self.shared)?;
        if self.shared > 0.0 && !info.shared {
            return Err(format!("{} serves no shared mode", info.name));
        }
        if let Delay::Matrix { size: rows, .. } = self.delay
            && rows != size as usize
        {
            return Err(format!("a matrix of {rows} rows for {size} nodes"));
        }
        if size > 1 && self.delay.mean() <= 0.0 {
            return Err("messages must take some time: the delay is the unit of all times".into());
        }
        let (entries, warmup) = (self.entries, self.warmup);
        let most = MAX_ENTRIES;
        if entries == 0 || entries > most || warmup > most {
            let reason = format!("a run has 1 to {most} entries, not {entries}");
            return Err(if warmup > most { format!("{reason} after {warmup}") } else { reason });
        }
        let sensible = 1e-6..=1e6;
        if self.hot.0 > size || !sensible.contains(&self.hot.1) {
            return Err("hot nodes are some of the group, with a factor of 1e-6 to 1e6".into());
        }
        if let Workload::Open { rate } = self.workload
            && !sensible.contains(&rate)
        {
            return Err(format!("clients come at a rate of 1e-6 to 1e6, not {rate}"));
        }
        self.check_memory(info)?;
        self.check_nodes(info)
    }

    /// Would the run fit into a common memory? Where an entry concerns everyone, each node keeps
    /// something of every other; and all that ask at once have messages under way.
    fn check_memory(&self, info: &Info) -> Result<(), String> {
        const MOST_ACQUAINTED: f64 = 20_000.0;
        const MOST_IN_A_GRAPH: f64 = 1e6;
        const MOST_MESSAGES: f64 = 5e7;
        let size = f64::from(self.group.size());
        let claim = info.messages;
        let each = (claim.light.or(claim.heavy).unwrap_or(claim.most).of)(&self.group);
        let acquainted = each.is_finite()
            && each >= size / 2.0
            && matches!(info.needs, Needs::Nothing | Needs::Wiring | Needs::Weights);
        let most = match info.needs {
            Needs::Graph => MOST_IN_A_GRAPH,
            _ if acquainted => MOST_ACQUAINTED,
            _ => f64::INFINITY,
        };
        if size > most {
            return Err(format!("{} runs with at most {most} nodes, not {size}", info.name));
        }
        let at_once = match &self.workload {
            Workload::Closed { .. } | Workload::Open { .. } => size,
            Workload::Serial { .. } => 1.0,
            Workload::Scripted(arrivals) => size.min(arrivals.len() as f64),
        };
        // Elsewhere a request is one message that travels from node to node.
        let broadcast = acquainted || info.needs == Needs::Quorums;
        if broadcast && each * at_once > MOST_MESSAGES {
            let reason = format!("{at_once} nodes that ask at once have {each} messages each");
            return Err(format!("{reason}: too many to keep; fewer nodes, or one at a time"));
        }
        Ok(())
    }

    fn check_nodes(&self, info: &Info) -> Result<(), String> {
        let size = self.group.size();
        let arrivals = match &self.workload {
            Workload::Scripted(arrivals) => arrivals.as_slice(),
            _ => &[],
        };
        if arrivals.iter().any(|a| a.mode == Mode::Shared) && !info.shared {
            return Err(format!("{} serves no shared mode", info.name));
        }
        let crashes = self.crashes.iter().copied();
        let stays = arrivals.iter().filter_map(|a| Some((a.stay?, a.node)));
        let times = arrivals.iter().map(|a| (a.at, a.node)).chain(stays).chain(crashes);
        for (at, node) in times {
            if !self.group.contains(node) {
                return Err(format!("node {node} is not among 1 to {size}"));
            }
            if !(0.0..=LONGEST).contains(&at) {
                return Err(format!("{at} is no time"));
            }
        }
        let spans = self.partitions.iter().flat_map(|split| [split.from, split.until]);
        if let Some(time) = spans.chain(self.detect).find(|time| !(0.0..=LONGEST).contains(time)) {
            return Err(format!("{time} is no time"));
        }
        let sides = self.partitions.iter().flat_map(|partition| partition.side.iter());
        match sides.into_iter().find(|node| !self.group.contains(*node)) {
            Some(node) => Err(format!("node {node} is not among 1 to {size}")),
            None => Ok(()),
        }
    }
}
