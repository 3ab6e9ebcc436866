//! Reports of a shard: its clients and its counters.

use std::time::Duration;

use doorway_core::{Mode, NodeId};
use doorway_protocol::Name;

use super::counters::LockCounters;
use super::lock::ClientId;
use super::machine::AlgorithmMachine;
use super::rule::Rule;
use super::shard::Shard;
use super::table::{Entry, Slot};
use crate::messages::{ClientReport, ClientStatus};

/// A lock that has clients at this node.
pub struct BusyLock<'a> {
    shard: &'a Shard,
    entry: &'a Entry,
}

impl<'a> BusyLock<'a> {
    /// The name of the lock.
    pub fn name(&self) -> &'a Name {
        &self.entry.name
    }

    /// The place of the lock in a list that begins with the longest wait. Locks for which no client
    /// waits come after the others, beginning with the one that was entered first.
    pub fn urgency(&self) -> (bool, Duration) {
        let first = |clients: &mut dyn Iterator<Item = (ClientId, Mode)>| {
            clients.filter_map(|(client, _)| Some(self.shard.clients.get(client)?.since())).min()
        };
        match first(&mut self.entry.lock.queue()) {
            Some(since) => (false, since),
            None => (true, first(&mut self.entry.lock.inside()).unwrap_or(Duration::MAX)),
        }
    }
}

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

    /// The locks that have clients at this node.
    pub fn busy(&self) -> impl Iterator<Item = BusyLock<'_>> {
        let busy = self.table.iter().filter(|entry| !entry.lock.is_idle());
        busy.map(|entry| BusyLock { shard: self, entry })
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
    let wanted = || entry.lock.machine().is_some_and(AlgorithmMachine::wanted);
    entry.lock.waiters() > 0 || entry.lock.inside().next().is_some() && wanted()
}
