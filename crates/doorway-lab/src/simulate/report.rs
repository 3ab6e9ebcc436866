//! What came of a run.

use serde::Serialize;

use super::accounts::Accounts;

/// The figures of a run. Times are in units of the mean message delay.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The algorithm.
    pub algorithm: &'static str,
    /// How many nodes.
    pub n: u32,
    /// How many entries were done and counted.
    pub entries: u64,
    /// The seed.
    pub seed: u64,
    /// The mean number of messages charged to an entry.
    pub messages_per_entry: f64,
    /// Half the width of its 95 % confidence interval, from batch means.
    pub messages_ci: f64,
    /// The fewest messages of an entry.
    pub messages_min: u32,
    /// The most messages of an entry.
    pub messages_max: u32,
    /// The mean number of bytes charged to an entry, as the daemon would encode the messages.
    pub bytes_per_entry: f64,
    /// From an exit to the next entry, where that node was waiting already.
    pub sync_delay: Option<f64>,
    /// From the client's coming to its entry.
    pub response_time: Option<f64>,
    /// Entries per unit of time.
    pub throughput: f64,
    /// Jain's index of how evenly entries are spread over the nodes: 1 is even, 1/N one node's.
    pub jain: f64,
    /// The most entries of later requests that one request had to see before its own.
    pub overtakes_max: u64,
    /// How many waited, on average over time.
    pub queue_mean: f64,
    /// Messages received by a node, on average over the nodes.
    pub load_mean: f64,
    /// Messages received by the busiest node.
    pub load_max: u64,
    /// How long the run was.
    pub time: f64,
    /// How many items were taken from the event queue.
    pub events: u64,
    /// How often something happened that must never happen: a run ends at the first time.
    pub violations: u32,
    /// What it was.
    pub violation: Option<String>,
}

/// The counted part of the accounts, as a report without its heading.
pub(super) struct Figures {
    pub(super) messages: Summary,
    pub(super) bytes_per_entry: f64,
    pub(super) jain: f64,
    pub(super) load_mean: f64,
    pub(super) load_max: u64,
}

/// Mean, confidence and range of a sample.
pub(super) struct Summary {
    pub(super) count: u64,
    pub(super) mean: f64,
    pub(super) ci: f64,
    pub(super) min: u32,
    pub(super) max: u32,
}

impl Figures {
    /// The figures of what was done after the first `warmup` entries.
    pub(super) fn of(accounts: &Accounts, warmup: u64) -> Self {
        let counted = accounts.counted().get(warmup as usize..).unwrap_or(&[]);
        let bills: Vec<u32> =
            counted.iter().map(|id| accounts.requests[*id as usize].messages).collect();
        let bytes: u64 =
            counted.iter().map(|id| u64::from(accounts.requests[*id as usize].bytes)).sum();
        let mut messages = Summary::of(&bills);
        // What no request caused, such as a token that circulates, is shared by all entries.
        let all = accounts.done.len().max(1) as f64;
        messages.mean += accounts.unclaimed.0 as f64 / all;
        let each = |value: f64| value / counted.len().max(1) as f64;
        let entries = accounts.entries_of.iter().map(|count| f64::from(*count));
        let (sum, squares) = entries.fold((0.0, 0.0), |(s, q), x| (s + x, q + x * x));
        let nodes = accounts.entries_of.len() as f64;
        Self {
            messages,
            bytes_per_entry: each(bytes as f64) + accounts.unclaimed.1 as f64 / all,
            jain: if squares > 0.0 { sum * sum / (nodes * squares) } else { 1.0 },
            load_mean: accounts.handled.iter().sum::<u64>() as f64 / nodes,
            load_max: accounts.handled.iter().copied().max().unwrap_or(0),
        }
    }
}

impl Summary {
    fn of(sample: &[u32]) -> Self {
        let sum: u64 = sample.iter().map(|value| u64::from(*value)).sum();
        Self {
            count: sample.len() as u64,
            mean: sum as f64 / sample.len().max(1) as f64,
            ci: confidence(sample),
            min: sample.iter().copied().min().unwrap_or(0),
            max: sample.iter().copied().max().unwrap_or(0),
        }
    }
}

/// Half the 95 % confidence interval of the mean, by thirty batch means: entries close to each
/// other are not independent, batches nearly are. Fewer than sixty values: each is its own batch.
fn confidence(sample: &[u32]) -> f64 {
    const BATCHES: usize = 30;
    let size = if sample.len() < 2 * BATCHES { 1 } else { sample.len() / BATCHES };
    let mean = |batch: &[u32]| {
        batch.iter().map(|value| f64::from(*value)).sum::<f64>() / batch.len() as f64
    };
    let means: Vec<f64> = sample.chunks_exact(size).map(mean).collect();
    if means.len() < 2 {
        return 0.0;
    }
    let count = means.len() as f64;
    let centre = means.iter().sum::<f64>() / count;
    let variance = means.iter().map(|m| (m - centre) * (m - centre)).sum::<f64>() / (count - 1.0);
    student(means.len() - 1) * (variance / count).sqrt()
}

/// The 97.5 % quantile of Student's distribution, by the Cornish-Fisher expansion: within 1 % from
/// four degrees of freedom on, and tabled below.
fn student(freedom: usize) -> f64 {
    let z: f64 = 1.959_964;
    let v = freedom as f64;
    match freedom {
        1 => 12.706,
        2 => 4.303,
        3 => 3.182,
        _ => {
            let first = (z.powi(3) + z) / (4.0 * v);
            let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * v * v);
            let third = 3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z;
            z + first + second + third / (384.0 * v.powi(3))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn student_agrees_with_the_tables() {
        for (freedom, table) in [(4, 2.776), (10, 2.228), (29, 2.045), (1000, 1.962)] {
            assert!((student(freedom) - table).abs() < 0.03, "{freedom}: {}", student(freedom));
        }
    }

    #[test]
    fn equal_values_leave_no_doubt() {
        assert!(confidence(&[4; 1000]).abs() < 1e-12);
        assert!(confidence(&[1, 2, 3, 4, 5, 6, 7, 8]) > 1.0);
    }
}
