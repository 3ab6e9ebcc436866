//! Reports of a shard: its clients and its counters.

use std::time::Duration;

use doorway_core::{Mode, NodeId};
use doorway_protocol::Name;

use super::counters::LockCounters;
use super::lock::ClientId;
use super::machine::Machine;
use super::rule::Rule;
use super::shard::Shard;
use super::table::{Entry, Slot};
use crate::messages::{ClientReport, ClientStatus};

impl Shard {
    /// The clients of one lock; or the clients of all locks for which any client waits, at this
    /// node or another.
    pub fn reports(&self, only: Option<&Name>, now: Duration) -> Vec<ClientReport> {
        let mut reports = Vec::new();
        match only {
            Some(name) => {
                if let Some(entry) = self.table.find(name) {
                    self.report(entry, now, &mut reports);
                }
            }
            None => {
                for entry in self.table.iter().filter(|entry| disputed(entry)) {
                    self.report(entry, now, &mut reports);
                }
            }
        }
        reports
    }

    /// The names of all locks that have clients at this node.
    pub fn busy(&self) -> impl Iterator<Item = &Name> {
        self.table.iter().filter(|entry| !entry.lock.is_idle()).map(|entry| &entry.name)
    }

    /// How many clients wait for one lock.
    pub fn waiters(&self, slot: Slot) -> usize {
        self.table.get(slot.0).lock.waiters()
    }

    fn report(&self, entry: &Entry, now: Duration, reports: &mut Vec<ClientReport>) {
        let mut push = |client: ClientId, mode: Mode, place: u32| {
            let Some(client) = self.clients.get(client) else { return };
            let since = now.saturating_sub(client.since()).as_millis();
            reports.push(ClientReport {
                lock: entry.name.clone(),
                session: client.session,
                mode,
                status: client.fence().map_or(ClientStatus::Waiting(place), ClientStatus::Inside),
                since_ms: u64::try_from(since).unwrap_or(u64::MAX),
                client: None, // A shard knows only the numbers of sessions.
            });
        };
        entry.lock.inside().for_each(|(client, mode)| push(client, mode, 0));
        entry.lock.queue().zip(0..).for_each(|((client, mode), place)| push(client, mode, place));
    }

    /// The nodes to which something was sent for this node's request, and from which nothing was
    /// heard since.
    pub fn unheard(&self, name: &Name) -> Vec<NodeId> {
        let entry = self.table.find(name);
        entry.into_iter().flat_map(|entry| entry.lock.unheard()).collect()
    }

    /// The counters of each rule, with the name of its algorithm.
    pub fn counters(&self) -> Vec<(&'static str, LockCounters)> {
        let mut counters = self.counters.clone();
        for entry in self.table.iter() {
            counters[entry.rule as usize].kept += 1;
        }
        self.seating.rules.iter().map(|rule| rule.info.name).zip(counters).collect()
    }

    /// The counters of rules that are not in force any more, by the names of their algorithms.
    pub fn former_counters(&self) -> impl Iterator<Item = (&'static str, LockCounters)> {
        self.former_counters.iter().map(|(algorithm, counters)| (*algorithm, *counters))
    }

    /// The rule of a lock.
    pub fn rule(&self, slot: Slot) -> &Rule {
        &self.seating.rules[self.table.get(slot.0).rule as usize]
    }
}

fn disputed(entry: &Entry) -> bool {
    let wanted = || entry.lock.machine().is_some_and(Machine::wanted);
    entry.lock.waiters() > 0 || entry.lock.inside().next().is_some() && wanted()
}
