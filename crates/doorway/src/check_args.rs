//! The arguments that describe a check.

use clap::{Args, ValueEnum};
use doorway_core::{Fault, Group, Mode, NodeId};
use doorway_lab::AnyAlgorithm;
use doorway_lab::FOREVER;
use doorway_lab::check::{Case, History, MAX_NODES, SearchTargets};

use crate::checking::cores;
use crate::failure::Usage;
use crate::group_args::parse_node;
use crate::names;
use crate::run_args::ChannelName;

/// Which nodes ask and how often, how messages travel, what fails, and how far to search.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Case")]
pub(crate) struct CaseArgs {
    /// Let each node ask K times, or 'forever', which shows more and takes longer
    #[arg(long, value_name = "K|forever", default_value = "2", value_parser = parse_acquires)]
    acquires: u32,
    /// Let only these nodes ask, as in 1,3 [default: all]
    #[arg(long, value_name = "NODES", value_delimiter = ',', value_parser = parse_node)]
    requesters: Option<Vec<NodeId>>,
    /// Let these nodes ask for shared mode, if the algorithm has it [default: none]
    #[arg(long, value_name = "NODES", value_delimiter = ',', value_parser = parse_node)]
    readers: Option<Vec<NodeId>>,
    /// Choose whether messages keep their order [default: as the algorithm assumes]
    #[arg(long, value_name = "CHANNEL")]
    channel: Option<ChannelName>,
    /// Allow one message to be lost
    #[arg(long)]
    loss: bool,
    /// Allow one message to arrive twice
    #[arg(long)]
    duplicate: bool,
    /// Allow one node to crash: one that is outside, one that is inside, or any; the others are
    /// told of it
    #[arg(long, value_name = "WHERE", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "any")]
    crash: Option<Victim>,
    /// Let clients that wait give up and ask again, if the algorithm can withdraw a request
    #[arg(long)]
    withdraw: bool,
    /// Search for violations of this property alone, and ignore others
    #[arg(long, value_name = "WHAT", conflicts_with = "history")]
    property: Option<LoneProperty>,
    /// Record a history and check one property more: that fences grow, that requests are served in
    /// the order in which they happened, or that they cost as many messages as claimed
    #[arg(long, value_name = "WHAT", value_parser = names::histories())]
    history: Option<History>,
    /// Stop after this many different states (worlds); a check that stops has shown nothing
    #[arg(long, value_name = "WORLDS", default_value_t = 20_000_000, value_parser = parse_limit)]
    pub(crate) limit: u64,
    /// Stop when the states take more memory than this, in gigabytes
    #[arg(long, value_name = "GB", default_value_t = 4, value_parser = parse_memory)]
    pub(crate) memory: u64,
    /// Set the number of threads [default: one for each core]
    #[arg(long, value_name = "T", value_parser = parse_threads)]
    threads: Option<usize>,
}

/// A property that can be searched for alone.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum LoneProperty {
    Exclusion,
    Refusal,
    Stuck,
}

/// Which nodes may crash.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Victim {
    Outside,
    Inside,
    Any,
}

/// The largest number of requests of each node. Beyond it a check would never end, unless the
/// requests are endless, which is checked in another way.
const MOST_ACQUIRES: u32 = 1000;

/// The largest limit: worlds are numbered in 32 bits.
pub(crate) const MOST_WORLDS: u64 = 4_000_000_000;

impl CaseArgs {
    /// Refuse arguments with which no algorithm can be checked.
    pub(crate) fn ensure_possible(&self, size: usize) -> Result<(), Usage> {
        let asks = |node: &NodeId| self.requesters.as_ref().is_none_or(|all| all.contains(node));
        let readers = || self.readers.iter().flatten();
        let mut named = self.requesters.iter().flatten().chain(readers());
        if let Some(node) = named.find(|node| node.index() >= size) {
            return Err(Usage(format!("there is no node {node}; nodes are numbered 1 to {size}")));
        }
        if let Some(node) = readers().find(|node| !asks(node)) {
            return Err(Usage(format!(
                "node {node} is one of --readers, but not one of --requesters"
            )));
        }
        if self.acquires == FOREVER && !self.faults().is_empty() {
            let reason = "--acquires forever cannot be combined with faults: endless runs can be \
                          checked exactly only while nothing fails; say how often nodes ask";
            return Err(Usage(reason.to_owned()));
        }
        if self.acquires == FOREVER && self.history.is_some() {
            let reason = "--history needs runs that end; say with --acquires how often nodes ask";
            return Err(Usage(reason.to_owned()));
        }
        Ok(())
    }

    /// The case to check for an algorithm, if the arguments suit it.
    pub(crate) fn case(&self, algorithm: AnyAlgorithm, group: Group) -> Result<Case, Usage> {
        let info = algorithm.info();
        if self.readers.is_some() && !info.shared {
            return Err(Usage(format!("{} has no shared mode", info.name)));
        }
        if self.withdraw && !info.withdraws {
            return Err(Usage(format!("{} cannot withdraw a request", info.name)));
        }
        let mut case = Case::new(algorithm, group, self.acquires);
        case.withdrawing = self.withdraw;
        for (node, (times, mode)) in case.group.nodes().zip(&mut case.acquires) {
            if self.requesters.as_ref().is_some_and(|all| !all.contains(&node)) {
                *times = 0;
            }
            if self.readers.iter().flatten().any(|reader| *reader == node) {
                *mode = Mode::Shared;
            }
        }
        case.channel = self.channel.map_or(case.channel, ChannelName::channel);
        case.faults = self.faults();
        case.history = self.history;
        if let Some(alone) = self.property {
            case.waiting = false;
            case.targets = SearchTargets {
                together: matches!(alone, LoneProperty::Exclusion),
                refusals: matches!(alone, LoneProperty::Refusal),
                stuck: matches!(alone, LoneProperty::Stuck),
            };
        }
        case.limit = self.limit;
        case.threads = self.threads.unwrap_or_else(cores);
        Ok(case)
    }

    fn faults(&self) -> Vec<Fault> {
        let crashes: &[Fault] = match self.crash {
            None => &[],
            Some(Victim::Outside) => &[Fault::CrashOutside],
            Some(Victim::Inside) => &[Fault::CrashInside],
            Some(Victim::Any) => &[Fault::CrashOutside, Fault::CrashInside],
        };
        let loss = self.loss.then_some(Fault::Loss);
        let double = self.duplicate.then_some(Fault::Duplication);
        loss.into_iter().chain(double).chain(crashes.iter().copied()).collect()
    }

    /// How often each requesting node asks.
    pub(crate) fn acquires(&self) -> u32 {
        self.acquires
    }
}

/// Parse a number of nodes that can be checked.
pub(crate) fn parse_checked_size(text: &str) -> Result<usize, String> {
    let size = text.parse::<usize>().ok().filter(|size| (1..=MAX_NODES).contains(size));
    size.ok_or_else(|| format!("a check has 1 to {MAX_NODES} nodes"))
}

fn parse_acquires(text: &str) -> Result<u32, String> {
    if text == "forever" {
        return Ok(FOREVER);
    }
    let number = text.parse().ok().filter(|number| (1..=MOST_ACQUIRES).contains(number));
    number.ok_or_else(|| format!("say 1 to {MOST_ACQUIRES}, or forever"))
}

fn parse_limit(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| (1..=MOST_WORLDS).contains(number));
    number.ok_or_else(|| format!("say 1 to {MOST_WORLDS} worlds"))
}

fn parse_memory(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| (1..=1_000_000).contains(number));
    number.ok_or_else(|| "say 1 to 1000000 gigabytes".to_owned())
}

pub(crate) fn parse_threads(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=1024).contains(number));
    number.ok_or_else(|| "say 1 to 1024 threads".to_owned())
}
