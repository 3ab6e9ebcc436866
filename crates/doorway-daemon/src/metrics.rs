//! The metrics of a service, in the text format of `OpenMetrics`.
//!
//! Nothing is counted for the metrics alone: a request for them reads counters that exist anyway.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use doorway_node::members::BUCKETS;
use doorway_node::{MembershipReport, NodeCounters};
use doorway_protocol::{MembersReport, SeatRole, SeatState};
use doorway_sessions::{Counters, WAITS};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabelSet, EncodeMetric as _, NoLabelSet, text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

use crate::service::Service;
use crate::tls::{Certificates, TlsFile};

/// The metrics of a service.
pub(crate) struct Metrics(Registry);

impl Metrics {
    pub(crate) fn new(service: &Service, certificates: Option<Arc<Certificates>>) -> Self {
        let mut registry = Registry::with_prefix("doorway");
        registry.register_collector(Box::new(ServiceCollector {
            service: service.clone(),
            certificates,
        }));
        Self(registry)
    }

    /// All metrics, as they are now.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        text::encode(&mut text, &self.0).expect("writing to a string cannot fail");
        text
    }
}

struct ServiceCollector {
    service: Service,
    certificates: Option<Arc<Certificates>>,
}

impl fmt::Debug for ServiceCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceCollector").finish_non_exhaustive()
    }
}

impl Collector for ServiceCollector {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut page = MetricsWriter(encoder);
        self.sessions(&mut page)?;
        let node = self.service.node().counters();
        algorithms(&mut page, &node)?;
        links(&mut page, &node)?;
        if let Some(report) = self.service.members_report() {
            members(&mut page, &report)?;
        }
        if let Some(membership) = self.service.node().membership() {
            membership_history(&mut page, &membership)?;
        }
        self.certificates(&mut page)
    }
}

impl ServiceCollector {
    fn sessions(&self, page: &mut MetricsWriter<'_>) -> fmt::Result {
        let status = self.service.status();
        let counts = self.service.counters();
        let info = [
            ("node", status.node.as_str()),
            ("group", &status.group),
            ("version", &status.version),
        ];
        page.gauges("node_info", "The name, group and version of the node.", [(info, 1)])?;
        let serving = self.service.serving().is_ok();
        page.gauge("serving", "1 if the node serves, otherwise 0.", u64::from(serving))?;
        let ledger = self.service.ledger_trouble();
        page.gauge(
            "ledger_writable",
            "1 if the node can write its ledger, 0 if it cannot, as on a full disk.",
            u64::from(ledger.is_none()),
        )?;
        page.gauge(
            "view",
            "The number of the current view, 0 if there is none.",
            status.view.unwrap_or(0),
        )?;
        page.gauge("up_seconds", "Seconds since the node started.", status.up_ms / 1000)?;
        page.gauge("members_away", "Members that cannot be reached.", status.away.len() as u64)?;
        page.gauge("sessions", "Open sessions.", status.sessions)?;
        let connections = self.service.connections() as u64;
        page.gauge("connections", "Open connections.", connections)?;
        page.gauge("held", "Grants held by clients of this node.", status.held)?;
        page.gauge("waiting", "Requests that wait for a lock.", status.waiting)?;
        page.counter("grants", "Grants made.", status.grants)?;
        page.counter("releases", "Grants released by their clients.", counts.released)?;
        page.counter("losses", "Grants taken from their clients.", counts.lost)?;
        waits(page, &counts, status.grants)
    }

    fn certificates(&self, page: &mut MetricsWriter<'_>) -> fmt::Result {
        let ends = self.certificates.as_ref().map(|certificates| certificates.ends());
        let ends = ends.iter().flatten().map(|end| {
            let which = if end.which == TlsFile::Ca { "authority" } else { "node" };
            ([("certificate", which)], end.at.unix_timestamp().try_into().unwrap_or(0))
        });
        let name = "certificate_expiry_timestamp_seconds";
        page.gauges(name, "When a certificate ends, in seconds since 1970.", ends)
    }
}

/// The histogram of waiting times. Grants without waiting count in the first bucket.
fn waits(page: &mut MetricsWriter<'_>, counts: &Counters, grants: u64) -> fmt::Result {
    let mut spans = counts.waited;
    let waited: u64 = spans.iter().sum();
    spans[0] += grants.saturating_sub(waited);
    let sum = Duration::from_micros(counts.waited_us);
    page.histogram("wait", "Time from request to grant.", &WAITS, &spans, sum)
}

/// The messages of each algorithm, summed over all rules that use it.
fn algorithms(page: &mut MetricsWriter<'_>, node: &NodeCounters) -> fmt::Result {
    let mut all: BTreeMap<&str, [u64; 3]> = BTreeMap::new();
    for rule in node.rules.iter().chain(&node.former) {
        let sums = all.entry(rule.algorithm).or_default();
        for (sum, more) in
            sums.iter_mut().zip([rule.counts.sent, rule.counts.received, rule.counts.bytes])
        {
            *sum += more;
        }
    }
    let one =
        |which: usize| all.iter().map(move |(name, sums)| ([("algorithm", *name)], sums[which]));
    page.counters("messages_sent", "Messages that the algorithm sent.", one(0))?;
    page.counters("messages_received", "Messages that the algorithm received.", one(1))?;
    page.counters("message_bytes_sent", "Bytes of the messages that the algorithm sent.", one(2))
}

fn links(page: &mut MetricsWriter<'_>, node: &NodeCounters) -> fmt::Result {
    let all = |number: fn(&doorway_node::net::LinkReport) -> u64| {
        node.links.iter().map(move |(peer, link)| ([("peer", peer.as_str())], number(link)))
    };
    page.gauges(
        "link_up",
        "1 if the member is connected, otherwise 0.",
        all(|link| u64::from(link.up)),
    )?;
    let help = "Messages that the member has not acknowledged.";
    page.gauges("link_unacknowledged", help, all(|link| link.unacknowledged as u64))?;
    page.counters(
        "link_connections",
        "Connections made to the member or accepted from it.",
        all(|link| link.traffic.connections),
    )?;
    page.counters(
        "link_bytes_sent",
        "Bytes sent to the member.",
        all(|link| link.traffic.bytes_out),
    )?;
    page.counters(
        "link_bytes_received",
        "Bytes received from the member.",
        all(|link| link.traffic.bytes_in),
    )
}

/// The members of a group that agrees on them.
fn members(page: &mut MetricsWriter<'_>, report: &MembersReport) -> fmt::Result {
    let count = |is: &dyn Fn(&doorway_protocol::SeatReport) -> bool| {
        report.seats.iter().filter(|seat| is(seat)).count() as u64
    };
    let leads = count(&|seat| seat.role == SeatRole::Leader && seat.name == report.node);
    page.gauge("members_view", "The newest view that the members agreed on.", report.view)?;
    page.gauge("members_seats", "Machines that belong to the group.", report.seats.len() as u64)?;
    let seated = count(&|seat| seat.state == SeatState::InView);
    page.gauge("members_seated", "Machines that this node sees in the view.", seated)?;
    if let Some(etcd) = &report.etcd {
        let answers = u64::from(etcd.unreachable_ms.is_none());
        let help = "1 if the etcd by which the members agree answers this node, otherwise 0.";
        page.gauge("members_etcd_reachable", help, answers)?;
    } else {
        page.gauge("members_voters", "Machines that vote.", report.voters.into())?;
        let help = "Machines that vote and that this node can reach, itself included.";
        page.gauge("members_votes_reachable", help, report.reachable.into())?;
        page.gauge("members_leader", "1 if this node leads the others, otherwise 0.", leads)?;
    }
    let help = "The lease of the members, in seconds.";
    page.seconds("members_lease_seconds", help, f64::from(report.lease_ms) / 1000.0)?;
    let help = "Seconds for which this node may grant locks without renewing its membership.";
    page.seconds("members_lease_left_seconds", help, report.lease_left_ms as f64 / 1000.0)
}

/// What has happened to the membership of this node.
fn membership_history(page: &mut MetricsWriter<'_>, membership: &MembershipReport) -> fmt::Result {
    if let Some(renewed) = membership.renewed {
        let help = "Seconds since the group renewed the membership of this node.";
        page.seconds("members_beat_age_seconds", help, renewed.as_secs_f64())?;
    }
    let (health, counts) = (&membership.health, membership.counts);
    if health.service.is_none() {
        let help = "How often the leader changed, as this node saw it. The first leader counts.";
        page.counter("members_elections", help, health.elections)?;
    }
    let help = "Silent machines that the group removed from the view as this node proposed.";
    page.counter("members_removals", help, counts.removals)?;
    let help = "Processes without connections that the group evicted as this node proposed.";
    page.counter("members_evictions", help, counts.evictions)?;
    let help = "How often this node lost its membership, and its clients their locks.";
    page.counter("members_lapses", help, counts.lapses)?;
    let times = [
        ("members_renewal", "Time that the group took to renew the membership.", counts.renewals),
        ("members_sync", "Time to write changes of the members' store to the disk.", health.syncs),
        (
            "members_view_change",
            "Time for which no lock was granted here when a view followed another one.",
            counts.view_changes,
        ),
    ];
    times.iter().try_for_each(|(name, help, times)| {
        page.histogram(name, help, &BUCKETS, &times.buckets, times.sum)
    })
}

/// Writes single metrics.
struct MetricsWriter<'a>(DescriptorEncoder<'a>);

impl MetricsWriter<'_> {
    fn gauge(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        let gauge = ConstGauge::new(value);
        gauge.encode(self.0.encode_descriptor(name, help, None, MetricType::Gauge)?)
    }

    fn seconds(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        let gauge = ConstGauge::new(value);
        gauge.encode(self.0.encode_descriptor(name, help, None, MetricType::Gauge)?)
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        let counter = ConstCounter::new(value);
        counter.encode(self.0.encode_descriptor(name, help, None, MetricType::Counter)?)
    }

    /// A histogram of times. `counts` has one more element than `ends`.
    fn histogram(
        &mut self,
        name: &str,
        help: &str,
        ends: &[f64],
        counts: &[u64],
        sum: Duration,
    ) -> fmt::Result {
        let ends = ends.iter().copied().chain([f64::INFINITY]);
        let buckets: Vec<(f64, u64)> = ends.zip(counts.iter().copied()).collect();
        let (unit, kind) = (Unit::Seconds, MetricType::Histogram);
        let mut encoder = self.0.encode_descriptor(name, help, Some(&unit), kind)?;
        let total = counts.iter().sum();
        encoder.encode_histogram::<NoLabelSet>(sum.as_secs_f64(), total, &buckets, None)
    }

    fn gauges<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (L, u64)>,
    ) -> fmt::Result {
        let mut encoder = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        values.into_iter().try_for_each(|(labels, value)| {
            ConstGauge::new(value).encode(encoder.encode_family(&labels)?)
        })
    }

    fn counters<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (L, u64)>,
    ) -> fmt::Result {
        let mut encoder = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        values.into_iter().try_for_each(|(labels, value)| {
            ConstCounter::new(value).encode(encoder.encode_family(&labels)?)
        })
    }
}
