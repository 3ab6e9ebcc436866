//! The options of a run.

use std::sync::Arc;

use doorway_core::{Channel, Group, Info, Mode, Needs, NodeId, NodeSet};

use super::distribution::{Delay, Distribution, LONGEST};

/// The most entries of a run. All its requests are kept in memory.
pub const MAX_ENTRIES: u64 = 50_000_000;

/// How long a client waits before it gives up, in mean message delays, if it is one that does.
pub const PATIENCE: Distribution = Distribution::Exponential(5.0);

/// When clients arrive. Times are in units of the mean message delay.
#[derive(Clone, Debug, PartialEq)]
pub enum Workload {
    /// A closed load: each seat of each node has one client, which thinks, asks, is inside, leaves,
    /// and thinks again.
    Closed {
        /// How long it thinks.
        think: Distribution,
    },
    /// An open load: clients arrive at each node as a Poisson stream, regardless of earlier
    /// clients.
    Open {
        /// How many clients arrive at one node per unit of time.
        rate: f64,
    },
    /// One client at a time, each at a randomly drawn node, so that there is no contention.
    Serial {
        /// How long after a client has left the next one arrives.
        pause: Distribution,
    },
    /// Exactly these clients.
    Scripted(Vec<Arrival>),
}

/// A client that arrives at a given time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrival {
    /// The time.
    pub at: f64,
    /// The node.
    pub node: NodeId,
    /// The mode that it requests.
    pub mode: Mode,
    /// How long it stays inside; `None` to draw that from [`Options::inside`].
    pub stay: Option<f64>,
}

impl Arrival {
    /// A client that requests exclusive mode and stays inside for a time drawn from
    /// [`Options::inside`].
    pub fn new(at: f64, node: NodeId) -> Self {
        Self { at, node, mode: Mode::Exclusive, stay: None }
    }

    /// Parse clients from text: one per line, `TIME NODE [shared] [stay TIME]`, with `#` comments.
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

/// A network partition: for some time, no message passes between the nodes of one side and the
/// others.
#[derive(Clone, Debug, PartialEq)]
pub struct Partition {
    /// When it begins.
    pub from: f64,
    /// When it ends.
    pub until: f64,
    /// The nodes of one side.
    pub side: NodeSet,
}

/// Everything that determines a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The group.
    pub group: Arc<Group>,
    /// Do channels keep messages in order?
    pub channel: Channel,
    /// How long messages travel. The mean is the unit of all other times.
    pub delay: Delay,
    /// When clients arrive.
    pub workload: Workload,
    /// How long clients stay inside, in mean message delays.
    pub inside: Distribution,
    /// The fraction of clients that request shared mode.
    pub shared: f64,
    /// The fraction of requests that a client gives up if they wait for longer than a time drawn
    /// from [`PATIENCE`].
    pub withdraw: f64,
    /// The first `.0` nodes are hot: their clients arrive `.1` times as often.
    pub hot: (u32, f64),
    /// The probability that a message is lost.
    pub loss: f64,
    /// The probability that a message arrives twice.
    pub duplicate: f64,
    /// Which nodes crash, and when.
    pub crashes: Vec<(f64, NodeId)>,
    /// How long after a crash the surviving nodes learn of it; `None` if they never do.
    pub detect: Option<f64>,
    /// The network partitions.
    pub partitions: Vec<Partition>,
    /// The random seed. The same seed gives the same run.
    pub seed: u64,
    /// How many entries are counted before the run ends.
    pub entries: u64,
    /// How many entries are done before counting begins.
    pub warmup: u64,
    /// How many events of the trace are kept.
    pub trace: usize,
}

impl Options {
    /// The defaults for the algorithm with `info` on `group`: unit delays, clients that think for
    /// ten message delays and stay inside for one, and no faults.
    pub fn new(info: &Info, group: Group) -> Self {
        Self {
            group: Arc::new(group),
            channel: info.channel,
            delay: Delay::Distribution(Distribution::Constant(1.0)),
            workload: Workload::Closed { think: Distribution::Exponential(10.0) },
            inside: Distribution::Constant(1.0),
            shared: if info.shared { 0.5 } else { 0.0 },
            withdraw: 0.0,
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

    /// Check that these options are possible for the algorithm with `info`.
    pub fn check(&self, info: &Info) -> Result<(), String> {
        let size = self.group.size();
        let probability = |name: &str, p: f64| {
            let fine = (0.0..=1.0).contains(&p);
            if fine { Ok(()) } else { Err(format!("{name} must be a number from 0 to 1, not {p}")) }
        };
        probability("the probability of loss", self.loss)?;
        probability("the probability of duplication", self.duplicate)?;
        probability("the fraction of shared requests", self.shared)?;
        if self.shared > 0.0 && !info.shared {
            return Err(format!("{} has no shared mode", info.name));
        }
        probability("the fraction of requests that are given up", self.withdraw)?;
        if self.withdraw > 0.0 && !info.withdraws {
            return Err(format!("{} cannot withdraw a request", info.name));
        }
        if let Delay::Matrix { size: rows, .. } = self.delay
            && rows != size as usize
        {
            return Err(format!(
                "the delay matrix has {rows} rows, but the group has {size} nodes"
            ));
        }
        if size > 1 && self.delay.mean() <= 0.0 {
            return Err(
                "the mean message delay must be above 0, because it is the unit of all times"
                    .into(),
            );
        }
        let (entries, warmup) = (self.entries, self.warmup);
        let most = MAX_ENTRIES;
        if entries == 0 || entries > most || warmup > most {
            return Err(if warmup > most {
                format!("the warm-up must be at most {most} entries, not {warmup}")
            } else {
                format!("a run must have 1 to {most} entries, not {entries}")
            });
        }
        let sensible = 1e-6..=1e6;
        if self.hot.0 > size || !sensible.contains(&self.hot.1) {
            let (hot, factor) = self.hot;
            return Err(format!(
                "{hot} hot nodes with a factor of {factor}: use at most {size} nodes, \
                 and a factor of 1e-6 to 1e6"
            ));
        }
        if let Workload::Open { rate } = self.workload
            && !sensible.contains(&rate)
        {
            return Err(format!(
                "clients must arrive at a rate of 1e-6 to 1e6 per node, not {rate}"
            ));
        }
        self.check_memory(info)?;
        self.check_nodes(info)
    }

    /// Refuse a run that would not fit into the memory of a common computer. If an entry involves
    /// all nodes, each node keeps something about every other node; and all nodes that ask at once
    /// have messages under way.
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
            return Err(format!(
                "{} can be simulated with at most {most} nodes, not {size}",
                info.name
            ));
        }
        let at_once = match &self.workload {
            Workload::Closed { .. } | Workload::Open { .. } => size,
            Workload::Serial { .. } => 1.0,
            Workload::Scripted(arrivals) => size.min(arrivals.len() as f64),
        };
        // In other algorithms a request is one message that travels from node to node.
        let broadcast = acquainted || info.needs == Needs::Quorums;
        if broadcast && each * at_once > MOST_MESSAGES {
            let reason =
                format!("{at_once} nodes that ask at once have {each} messages each under way");
            return Err(format!(
                "{reason}, too many to keep in memory; use fewer nodes or a serial load"
            ));
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
            return Err(format!("{} has no shared mode", info.name));
        }
        let crashes = self.crashes.iter().copied();
        let stays = arrivals.iter().filter_map(|a| Some((a.stay?, a.node)));
        let times = arrivals.iter().map(|a| (a.at, a.node)).chain(stays).chain(crashes);
        for (at, node) in times {
            if !self.group.contains(node) {
                return Err(format!("there is no node {node}; nodes are numbered 1 to {size}"));
            }
            if !(0.0..=LONGEST).contains(&at) {
                return Err(format!("{at} is not a time from 0 to {LONGEST:e}"));
            }
        }
        let spans = self.partitions.iter().flat_map(|split| [split.from, split.until]);
        if let Some(time) = spans.chain(self.detect).find(|time| !(0.0..=LONGEST).contains(time)) {
            return Err(format!("{time} is not a time from 0 to {LONGEST:e}"));
        }
        let sides = self.partitions.iter().flat_map(|partition| partition.side.iter());
        match sides.into_iter().find(|node| !self.group.contains(*node)) {
            Some(node) => Err(format!("there is no node {node}; nodes are numbered 1 to {size}")),
            None => Ok(()),
        }
    }
}
