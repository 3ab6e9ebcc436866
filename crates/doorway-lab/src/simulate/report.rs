//! The report on a run.

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
    /// The random seed.
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
    /// The synchronization delay: the mean time from an exit to the next entry, if the entering
    /// node was waiting already.
    pub sync_delay: Option<f64>,
    /// The mean time from the arrival of a client to its entry.
    pub response_time: Option<f64>,
    /// The longest time that a client waited, or has been waiting.
    pub longest_wait: f64,
    /// Entries per unit of time.
    pub throughput: f64,
    /// Jain's fairness index of the entries per node: 1 if all nodes have equally many, 1/N if one
    /// node has all of them.
    pub jain: f64,
    /// The most later requests that were granted before one request.
    pub overtakes_max: u64,
    /// The mean number of waiting clients over time.
    pub queue_mean: f64,
    /// Messages received per entry and node, on average over the nodes.
    pub load_mean: f64,
    /// Messages received by the busiest node per entry.
    pub load_max: f64,
    /// The length of the measurement.
    pub time: f64,
    /// How many requests were given up.
    pub withdrawn: u64,
    /// How many events were handled.
    pub events: u64,
    /// The number of violations: 0 or 1, because the first one ends the run.
    pub violations: u32,
    /// The violation, in words.
    pub violation: Option<String>,
}

/// The part of a report that the accounts do not know.
pub(super) struct Heading {
    pub(super) algorithm: &'static str,
    pub(super) n: u32,
    pub(super) seed: u64,
    pub(super) events: u64,
    pub(super) withdrawn: u64,
    pub(super) violation: Option<String>,
}

impl Report {
    /// The figures of the accounts, with times in units of `unit` ticks.
    pub(super) fn new(heading: Heading, accounts: &Accounts, unit: f64) -> Self {
        let measured = &accounts.measured;
        let bills = accounts.counted().iter().map(|id| &accounts.requests[*id as usize]);
        let messages = Summary::of(&bills.clone().map(|bill| bill.messages).collect::<Vec<_>>());
        let bytes: u64 = bills.map(|bill| u64::from(bill.bytes)).sum();
        let per_entry = |value: u64| value as f64 / messages.count.max(1) as f64;
        let time = measured.time() as f64 / unit;
        let over_time = |value: f64| if time > 0.0 { value / time } else { 0.0 };
        let entries = measured.entries_of.iter().map(|count| f64::from(*count));
        let (sum, squares) = entries.fold((0.0, 0.0), |(s, q), x| (s + x, q + x * x));
        let nodes = f64::from(heading.n);
        Self {
            algorithm: heading.algorithm,
            n: heading.n,
            entries: messages.count,
            seed: heading.seed,
            // Messages that no request caused, such as a circulating token, are shared by all
            // entries.
            messages_per_entry: messages.mean + per_entry(measured.unclaimed.0),
            messages_ci: messages.ci,
            messages_min: messages.min,
            messages_max: messages.max,
            bytes_per_entry: per_entry(bytes + measured.unclaimed.1),
            sync_delay: measured.sync_delay.mean(unit),
            response_time: measured.response.mean(unit),
            longest_wait: accounts.longest_wait() as f64 / unit,
            throughput: over_time(measured.entries as f64),
            jain: if squares > 0.0 { sum * sum / (nodes * squares) } else { 1.0 },
            overtakes_max: measured.overtakes_max,
            queue_mean: over_time(measured.waiting_time as f64 / unit),
            load_mean: per_entry(measured.handled.iter().sum()) / nodes,
            load_max: per_entry(measured.handled.iter().copied().max().unwrap_or(0)),
            time,
            withdrawn: heading.withdrawn,
            events: heading.events,
            violations: u32::from(heading.violation.is_some()),
            violation: heading.violation,
        }
    }
}

/// Mean, confidence and range of a sample.
pub(super) struct Summary {
    pub(super) count: u64,
    pub(super) mean: f64,
    pub(super) ci: f64,
    pub(super) min: u32,
    pub(super) max: u32,
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

/// Half the width of the 95 % confidence interval of the mean, by thirty batch means.
///
/// Entries close to each other are not independent, but batches nearly are. With fewer than sixty
/// values, each value is its own batch.
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

/// The 97.5 % quantile of Student's distribution, by the Cornish-Fisher expansion, which is within
/// 1 % from four degrees of freedom on; tabled below.
fn student(freedom: usize) -> f64 {
    let v = freedom as f64;
    match freedom {
        1 => 12.706,
        2 => 4.303,
        3 => 3.182,
        // The quantile of the normal distribution, and the terms in 1/v, 1/v² and 1/v³.
        _ => 1.959_964 + (2.372_274 + (2.822_502 + 2.555_869 / v) / v) / v,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn student_agrees_with_the_tables() {
        for (freedom, table) in [(4, 2.776), (10, 2.228), (29, 2.045), (1000, 1.962)] {
            assert!((student(freedom) - table).abs() < 0.02, "{freedom}: {}", student(freedom));
        }
    }

    #[test]
    fn equal_values_have_a_confidence_interval_of_zero() {
        assert!(confidence(&[4; 1000]).abs() < 1e-12);
        assert!(confidence(&[1, 2, 3, 4, 5, 6, 7, 8]) > 1.0);
    }
}
