//! The arguments that describe a simulated run.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use doorway_core::{Channel, Group, Info, NodeId};
use doorway_lab::simulate::{
    Arrival, Delay, Distribution, MAX_ENTRIES, Options, Partition, Workload,
};

use crate::failure::Usage;
use crate::files;
use crate::group_args::{parse_node, parse_nodes};
use crate::numbers::whole;

/// How clients arrive, how messages travel, and what fails.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Run")]
pub(crate) struct RunArgs {
    /// Random seed; the same seed gives the same run
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = whole(0..=u64::MAX))]
    pub(crate) seed: u64,
    /// Set the time between two visits of a client, in message delays; a bare number is the mean of
    /// an exponential distribution [default: 10]
    #[arg(long, value_name = "T|LAW", value_parser = parse_think)]
    #[arg(conflicts_with_all = ["open", "requests"])]
    think: Option<Distribution>,
    /// Set the time that a client stays inside, in message delays; a bare number is constant
    #[arg(long, value_name = "T|LAW", default_value = "1", value_parser = parse_inside)]
    inside: Distribution,
    /// Set the delay of messages: constant:1, uniform:0.5..1.5, exponential:1, or matrix:FILE with
    /// a row of delays for each node
    #[arg(long, value_name = "LAW", default_value = "constant:1")]
    delay: String,
    /// Let clients arrive at each node at this rate per message delay, whether or not earlier
    /// clients have finished
    #[arg(long, value_name = "RATE", group = "load", value_parser = parse_number)]
    open: Option<f64>,
    /// Serve one client at a time: at a random node, one think time after the last one left
    #[arg(long, group = "load")]
    serial: bool,
    /// Read the requests from FILE, one in each line: `TIME NODE [shared] [stay TIME]`
    #[arg(long, value_name = "FILE", group = "load")]
    requests: Option<PathBuf>,
    /// Make the first K nodes hot: clients arrive there F times as often
    #[arg(long, value_name = "K:F", value_parser = parse_hot, conflicts_with = "requests")]
    hot: Option<(u32, f64)>,
    /// Set the share of clients that ask for shared mode, from 0 to 1 [default: 0.5 where the
    /// algorithm has shared mode]
    #[arg(long, value_name = "P", value_parser = parse_number)]
    shared: Option<f64>,
    /// Let clients give up this share of their requests, from 0 to 1, if they wait longer than a
    /// random time with a mean of 5 message delays
    #[arg(long, value_name = "P", default_value_t = 0.0, value_parser = parse_number)]
    withdraw: f64,
    /// Choose whether messages keep their order [default: as the algorithm assumes]
    #[arg(long, value_name = "CHANNEL")]
    channel: Option<ChannelName>,
    /// Lose each message with this probability
    #[arg(long, value_name = "P", default_value_t = 0.0, value_parser = parse_number)]
    loss: f64,
    /// Deliver each message twice with this probability
    #[arg(long, value_name = "P", default_value_t = 0.0, value_parser = parse_number)]
    duplicate: f64,
    /// Crash a node at a time, as in 3@25.5; may be repeated
    #[arg(long, value_name = "NODE@TIME", value_parser = parse_crash)]
    crash: Vec<(f64, NodeId)>,
    /// Tell the survivors of a crash this many message delays after it [default: never]
    #[arg(long, value_name = "T", value_parser = parse_time)]
    detect: Option<f64>,
    /// Cut some nodes off from the others for a time, as in 1,2@10..20; may be repeated
    #[arg(long, value_name = "NODES@FROM..UNTIL", value_parser = parse_partition)]
    partition: Vec<Partition>,
    /// Count nothing during the first W entries
    #[arg(long, value_name = "W", default_value_t = 0, value_parser = parse_entries)]
    warmup: u64,
}

/// The channels by name.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ChannelName {
    Fifo,
    Unordered,
}

impl ChannelName {
    pub(crate) fn channel(self) -> Channel {
        match self {
            Self::Fifo => Channel::Fifo,
            Self::Unordered => Channel::Unordered,
        }
    }
}

/// The parts of a run that may come from files. They are read once, however many runs there are.
pub(crate) struct Traffic {
    /// How clients arrive.
    pub(crate) workload: Workload,
    /// How long messages travel.
    delay: Delay,
}

impl Traffic {
    /// The number of entries of a run: as many as a file has requests, else `usual`.
    pub(crate) fn entries(&self, usual: u64) -> u64 {
        match &self.workload {
            Workload::Scripted(clients) => clients.len() as u64,
            _ => usual,
        }
    }
}

impl RunArgs {
    /// Read how clients arrive and how messages travel.
    pub(crate) fn traffic(&self) -> anyhow::Result<Traffic> {
        Ok(Traffic { workload: self.workload()?, delay: self.delay()? })
    }

    /// The options of a run of `entries` entries.
    pub(crate) fn options(
        &self,
        traffic: &Traffic,
        info: &Info,
        group: Group,
        entries: u64,
    ) -> Options {
        let mut options = Options::new(info, group);
        options.delay = traffic.delay.clone();
        options.workload = traffic.workload.clone();
        options.inside = self.inside.clone();
        options.shared = self.shared.unwrap_or(options.shared);
        options.withdraw = self.withdraw;
        options.hot = self.hot.unwrap_or(options.hot);
        options.channel = self.channel.map_or(options.channel, ChannelName::channel);
        (options.loss, options.duplicate) = (self.loss, self.duplicate);
        options.crashes.clone_from(&self.crash);
        options.detect = self.detect;
        options.partitions.clone_from(&self.partition);
        (options.seed, options.entries, options.warmup) = (self.seed, entries, self.warmup);
        options
    }

    /// Do the arguments say how clients arrive?
    pub(crate) fn describes_load(&self) -> bool {
        let load = self.open.is_some() || self.serial || self.requests.is_some();
        load || self.think.is_some()
    }

    /// Do the arguments say anything that makes sense only with a load?
    pub(crate) fn implies_load(&self) -> bool {
        let clients = self.hot.is_some() || self.shared.is_some() || self.warmup > 0;
        self.describes_load() || clients
    }

    fn think(&self) -> Distribution {
        self.think.clone().unwrap_or(Distribution::Exponential(10.0))
    }

    fn workload(&self) -> anyhow::Result<Workload> {
        if let Some(rate) = self.open {
            return Ok(Workload::Open { rate });
        }
        if self.serial {
            return Ok(Workload::Serial { pause: self.think() });
        }
        if let Some(file) = &self.requests {
            let arrivals = Arrival::parse_all(&files::read(file, files::MAX_DATA)?)
                .map_err(|error| Usage(format!("{}, {error}", file.display())))?;
            if arrivals.is_empty() {
                let format = "each line is: TIME NODE [shared] [stay TIME]";
                return Err(Usage(format!("{} has no requests; {format}", file.display())).into());
            }
            return Ok(Workload::Scripted(arrivals));
        }
        Ok(Workload::Closed { think: self.think() })
    }

    fn delay(&self) -> anyhow::Result<Delay> {
        let Some(file) = self.delay.strip_prefix("matrix:") else {
            let distribution = self
                .delay
                .parse()
                .map_err(|error: String| Usage(format!("{error}; or matrix:FILE")))?;
            return Ok(Delay::Distribution(distribution));
        };
        let text = files::read(Path::new(file), files::MAX_DATA)?;
        Ok(Delay::matrix(&text).map_err(|error| Usage(format!("{file}, {error}")))?)
    }
}

/// Parse a number of entries that a run can have.
pub(crate) fn parse_entries(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| *number <= MAX_ENTRIES);
    number.ok_or_else(|| format!("say a number up to {MAX_ENTRIES}"))
}

/// Parse a number; the simulator checks its range.
fn parse_number(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| "say a number, as in 0.5".to_owned())
}

/// Parse a time at which, or after which, something happens.
fn parse_time(text: &str) -> Result<f64, String> {
    let time = text.parse().ok().filter(|time| (0.0..=1e9).contains(time));
    time.ok_or_else(|| "say a time from 0 to 1e9, in message delays".to_owned())
}

fn parse_think(text: &str) -> Result<Distribution, String> {
    parse_distribution(text, "exponential")
}

fn parse_inside(text: &str) -> Result<Distribution, String> {
    parse_distribution(text, "constant")
}

/// Parse a distribution, or a bare number for the usual one.
fn parse_distribution(text: &str, usual: &str) -> Result<Distribution, String> {
    if text.contains(':') { text.parse() } else { format!("{usual}:{text}").parse() }.map_err(
        |_| "say a number from 0 to 1e9, constant:1, uniform:0.5..1.5 or exponential:1".to_owned(),
    )
}

fn parse_hot(text: &str) -> Result<(u32, f64), String> {
    let parts = text.split_once(':');
    let parsed = parts.and_then(|(k, factor)| Some((k.parse().ok()?, factor.parse().ok()?)));
    parsed.ok_or_else(|| "say how many nodes and how often, as in 2:10".to_owned())
}

fn parse_crash(text: &str) -> Result<(f64, NodeId), String> {
    let parts = text.split_once('@');
    let parsed = parts.and_then(|(node, at)| Some((at.parse().ok()?, parse_node(node).ok()?)));
    parsed.ok_or_else(|| "say node and time, as in 3@25.5".to_owned())
}

fn parse_partition(text: &str) -> Result<Partition, String> {
    let parsed = text.split_once('@').and_then(|(nodes, times)| {
        let (from, until) = times.split_once("..")?;
        let (from, until) = (parse_time(from).ok()?, parse_time(until).ok()?);
        let side = parse_nodes(nodes).ok()?.into_iter().collect();
        (from < until).then_some(Partition { from, until, side })
    });
    parsed.ok_or_else(|| "say nodes and times, as in 1,2@10..20".to_owned())
}
