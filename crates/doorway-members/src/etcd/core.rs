//! What the tasks of a store share: what is known of the group, and whether etcd answers.

use std::sync::Arc;
use std::time::Duration;

use doorway_node::members::{SeatId, ServiceHealth, StoreHealth};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::layout::{EtcdState, Keys};
use super::line::{Access, Line};
use super::pulse::Pulse;
use super::wire::{self, Header, KeyValue, Range};
use crate::bond::Bond;
use crate::disk::Change;
use crate::ending::Ending;
use crate::peers::Peers;
use crate::published_state::PublishedState;
use crate::rpc::frame::{Agreement, FormerGroup};
use crate::timings::Timings;
use crate::writer::Writer;

/// Where ranges are read.
pub(super) const RANGE: &str = "/v3/kv/range";

/// What the tasks of a store share.
pub(super) struct Core {
    pub(super) seat: u64,
    pub(super) name: String,
    pub(super) address: String,
    pub(super) group: String,
    pub(super) former: Option<FormerGroup>,
    pub(super) bond: Arc<Bond>,
    pub(super) peers: Peers,
    pub(super) ending: Ending,
    pub(super) writer: Writer,
    pub(super) keys: Keys,
    pub(super) access: Arc<Access>,
    pub(super) shown: PublishedState,
    /// The lease until the group has one, in milliseconds.
    pub(super) lease_ms: u32,
    pub(super) begin: Instant,
    pub(super) known: Mutex<LatestState>,
    pub(super) pulse: Mutex<Pulse>,
    pub(super) contact: Mutex<Contact>,
}

/// The newest state that was seen.
#[derive(Debug, Default)]
pub(super) struct LatestState {
    /// When the record was changed last, as etcd counts.
    pub(super) revision: u64,
    pub(super) kept: Option<Arc<EtcdState>>,
    /// Which etcd this is.
    pub(super) etcd: Option<u64>,
    /// The newest view of which the disk of this node knows.
    pub(super) view: u64,
}

/// Whether etcd answers.
#[derive(Debug, Default)]
pub(super) struct Contact {
    /// Why nothing can be read.
    reading: Option<Trouble>,
    /// Why nothing can be written.
    writing: Option<Trouble>,
    /// When etcd has answered for the last time.
    heard: Option<Instant>,
    warning: Option<String>,
}

/// What has failed, again and again.
#[derive(Clone, Debug)]
struct Trouble {
    first: Instant,
    last: Instant,
    why: String,
}

/// What was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    Read,
    Write,
}

impl Core {
    pub(super) fn timings(&self) -> Timings {
        let known = self.known.lock();
        let lease_ms = known.kept.as_ref().map(|kept| kept.state.record.lease_ms);
        Timings::new(lease_ms.unwrap_or(self.lease_ms))
    }

    /// The newest state, and when it was changed.
    pub(super) fn newest(&self) -> Option<(u64, Arc<EtcdState>)> {
        let known = self.known.lock();
        Some((known.revision, Arc::clone(known.kept.as_ref()?)))
    }

    pub(super) fn agreement(&self) -> Agreement {
        Agreement::Etcd(self.known.lock().etcd)
    }

    /// Take a state that etcd had at this revision. An older one than before is ignored.
    pub(super) fn learn(&self, revision: u64, kept: &Arc<EtcdState>) {
        let mut known = self.known.lock();
        if revision <= known.revision {
            return;
        }
        if let Err(why) = self.check_successor(&known, kept) {
            drop(known);
            self.ending.end(&why);
            return;
        }
        known.revision = revision;
        known.kept = Some(Arc::clone(kept));
        let record = &kept.state.record;
        let cluster = record.cluster;
        if self.bond.cluster().is_none() {
            if record.seat(SeatId(self.seat)).is_none() {
                return; // The group has no place for this node yet.
            }
            let _ = self.bond.join(cluster);
            self.writer.write(Change::EtcdCluster(cluster));
        }
        if record.number > known.view {
            known.view = record.number;
            self.writer.write(Change::EtcdView(record.number));
        }
        self.pulse.lock().learn(record, self.begin.elapsed());
        self.shown.show(Some(&kept.state));
    }

    /// Check that a state can follow what this node knows. If etcd goes back to an older state, for
    /// example because it was restored from a backup, fences could come again.
    fn check_successor(&self, known: &LatestState, kept: &EtcdState) -> Result<(), String> {
        let new = &kept.state.record;
        if let Some(ours) = self.bond.cluster()
            && ours != new.cluster
        {
            return Err(format!(
                "etcd has group {:032x} under the name `{}`, but this node belongs to group \
                 {ours:032x}: correct `etcd`, or start the node with an empty data directory",
                new.cluster, self.group
            ));
        }
        let same = known.kept.as_ref().filter(|it| it.state.record.cluster == new.cluster);
        let is_older = same.is_some_and(|it| it.state.record.revision > new.revision)
            || self.bond.cluster().is_some() && new.number < known.view;
        if is_older { Err(self.older(new.number, known.view)) } else { Ok(()) }
    }

    /// What is said if etcd has gone back to an older state.
    fn older(&self, found: u64, known: u64) -> String {
        format!(
            "etcd has an older record of the group `{}` than before (view {found}, and this node \
             knows view {known}): it was restored from a backup, or its data was changed by hand. \
             Fences could come again, so this node does not go on",
            self.group
        )
    }

    /// Take the record as it is after a comparison has failed. `old` is what was compared.
    pub(super) async fn catch_up(
        &self,
        line: &mut Line,
        revision: u64,
        old: &EtcdState,
        current: Option<KeyValue>,
    ) -> Result<(), String> {
        let Some(current) = current else { return Err(self.lost()) };
        let stored = self.keys.read_record(&current.value)?;
        if current.mod_revision < revision {
            let why = self.older(stored.record.number, old.state.record.number);
            self.ending.end(&why);
            return Err(why);
        }
        match old.with_record(stored.beside, stored.record) {
            Some(kept) => {
                self.learn(current.mod_revision, &Arc::new(kept));
                Ok(())
            }
            None => self.read(line).await.map(drop),
        }
    }

    /// Read everything. Returns the revision of etcd.
    pub(super) async fn read(&self, line: &mut Line) -> Result<u64, String> {
        let limit = self.timings().put();
        let asked = line.call(RANGE, &wire::get_all(&self.keys.prefix), limit).await;
        let range: Range = asked.map_err(|error| error.why)?;
        self.check_etcd(range.header)?;
        let record = range.kvs.iter().find(|pair| pair.key == self.keys.record);
        let revision = record.map_or(0, |pair| pair.mod_revision);
        match self.keys.read(range.kvs.into_iter().map(|pair| (pair.key, pair.value)))? {
            Some(kept) => self.learn(revision, &Arc::new(kept)),
            None if self.bond.cluster().is_some() => return Err(self.lost()),
            None => {}
        }
        Ok(range.header.revision)
    }

    /// What is said if the record is gone.
    fn lost(&self) -> String {
        format!(
            "etcd has no key {}, although this node belongs to the group: the key was deleted, or \
             `etcd` names another one",
            self.keys.record
        )
    }

    /// Check that all answers come from one cluster of etcd.
    pub(super) fn check_etcd(&self, header: Header) -> Result<(), String> {
        let mut known = self.known.lock();
        match known.etcd {
            Some(etcd) if etcd != header.cluster_id => {
                let addresses: Vec<String> =
                    self.access.addresses.iter().map(ToString::to_string).collect();
                Err(format!(
                    "the addresses {} belong to different clusters of etcd, or its cluster was \
                     made anew",
                    addresses.join(", ")
                ))
            }
            _ => {
                known.etcd = Some(header.cluster_id);
                Ok(())
            }
        }
    }

    /// Note whether etcd could be used.
    pub(super) fn note(&self, attempt: Attempt, result: Result<(), &str>) {
        let patience = self.timings().put() * 2;
        let mut contact = self.contact.lock();
        let was_here = contact.trouble().is_none();
        match (attempt, result) {
            (_, Ok(())) => {
                contact.heard = Some(Instant::now());
                contact.reading = None;
                // A node that is not a member may have nothing to write for long.
                let is_over = |trouble: &mut Trouble| {
                    attempt == Attempt::Write || trouble.last.elapsed() > patience
                };
                contact.writing.take_if(is_over);
            }
            (Attempt::Read, Err(why)) => Contact::fail(&mut contact.reading, why),
            (Attempt::Write, Err(why)) => Contact::fail(&mut contact.writing, why),
        }
        match (was_here, contact.trouble()) {
            (true, Some(Trouble { why, .. })) => tracing::warn!("etcd cannot be reached: {why}"),
            (false, None) => tracing::info!("etcd answers again"),
            _ => {}
        }
    }

    pub(super) fn warn(&self, warning: Option<String>) {
        let mut contact = self.contact.lock();
        if let Some(text) = warning.as_ref().filter(|_| contact.warning != warning) {
            tracing::warn!("{text}");
        }
        contact.warning = warning;
    }

    /// For how long etcd has not answered.
    pub(super) fn silence(&self) -> Option<Duration> {
        self.contact.lock().heard.map(|heard| heard.elapsed())
    }

    pub(super) fn health(&self) -> StoreHealth {
        let silence = self.timings().silence();
        let contact = self.contact.lock();
        // A connection that is lost and made again does no harm.
        let trouble = contact.trouble().map(|it| (it.first.elapsed(), it.why.clone()));
        let unreachable = trouble.filter(|(time, _)| *time >= silence);
        let mut health = StoreHealth::default();
        health.without_quorum = unreachable.as_ref().map(|(time, _)| *time);
        health.syncs = self.writer.syncs();
        let addresses = self.access.addresses.iter().map(ToString::to_string).collect();
        let warning = contact.warning.clone();
        health.service = Some(ServiceHealth { addresses, unreachable, warning });
        health
    }
}

impl Contact {
    fn fail(known: &mut Option<Trouble>, why: &str) {
        let last = Instant::now();
        let first = known.as_ref().map_or(last, |known| known.first);
        *known = Some(Trouble { first, last, why: why.to_owned() });
    }

    /// What cannot be done. Writing needs more than reading.
    fn trouble(&self) -> Option<&Trouble> {
        self.writing.as_ref().or(self.reading.as_ref())
    }
}
