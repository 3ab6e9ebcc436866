//! What must always be true of every lock.

use std::collections::{BTreeMap, BTreeSet};

use doorway_protocol::Fence;

use crate::client::{Client, HeldGrant};
use crate::context::Context;
use crate::settings::Kind;

/// The grants of one lock, as the clients of the lock know them.
#[derive(Debug)]
pub(crate) struct Book {
    kind: Kind,
    /// The clients that entered and have not left. Each believes that it is inside, unless its
    /// clock says otherwise.
    inside: Vec<(usize, HeldGrant)>,
    /// The highest fences of exclusive and of shared grants.
    exclusive: Option<Fence>,
    shared: Option<Fence>,
    /// The fences of a lock with permits.
    fences: BTreeSet<Fence>,
    /// The fence of the last write to the store that the lock protects. The store refuses writes
    /// with a lower one.
    written: Option<Fence>,
    /// The grants that were broken, each with its client, and when. Clients that share a lock at
    /// several nodes may have the same fence, and a node breaks only the grants of its own clients.
    broken: BTreeMap<(usize, Fence), u64>,
    /// The grants without end of which clients were told, until the clients give them up or they
    /// are broken. They are held even if their clients do not exist any more.
    endless: BTreeMap<(usize, Fence), HeldGrant>,
    /// The grants without end of which somebody was told that they have ended, each with the last
    /// member of the group at that time.
    ended: BTreeMap<(usize, Fence), u64>,
}

impl Book {
    pub(crate) fn new(kind: Kind) -> Self {
        Self {
            kind,
            inside: Vec::new(),
            exclusive: None,
            shared: None,
            fences: BTreeSet::new(),
            written: None,
            broken: BTreeMap::new(),
            endless: BTreeMap::new(),
            ended: BTreeMap::new(),
        }
    }

    /// A client is told that it holds the lock.
    pub(crate) fn enter(&mut self, context: &mut Context, client: usize, held: HeldGrant) {
        let fence = held.fence;
        // A client that keeps a lock enters again by itself, until it is told that it was broken.
        // An operator may break a lock without end while its client is being told of it.
        let late = fence != held.first || held.endless;
        let broken = late && self.broken(client, held.first).is_some();
        let grows = match self.kind {
            Kind::Permits(_) => self.fences.insert(fence),
            _ if broken => true,
            _ if held.shared => self.exclusive.is_none_or(|last| fence > last),
            _ => self.exclusive.max(self.shared).is_none_or(|last| fence > last),
        };
        if !grows {
            let name = context.settings.locks[held.lock].name.clone();
            let last = self.exclusive.max(self.shared).or(self.fences.last().copied());
            let last = last.map_or_else(String::new, |last| format!(", after {last:?}"));
            let what = format!("a fence does not grow: c{client} got {fence:?} of {name}{last}");
            context.violate_lock(&name, what);
        }
        if held.shared {
            self.shared = self.shared.max(Some(fence));
        } else {
            self.exclusive = self.exclusive.max(Some(fence));
        }
        self.inside.push((client, held));
        if held.endless && self.broken(client, fence).is_none() {
            context.counts.endless += 1;
            self.endless.insert((client, fence), held);
        }
        // A holder writes as soon as it has entered, so that earlier holders cannot write any more.
        self.write(held);
    }

    /// A client writes to the store that the lock protects. False if the store refuses that. Locks
    /// with permits protect no store, and shared holders only read.
    pub(crate) fn write(&mut self, held: HeldGrant) -> bool {
        if matches!(self.kind, Kind::Permits(_)) || held.shared {
            return true;
        }
        let accepted = self.written <= Some(held.fence);
        self.written = self.written.max(Some(held.fence));
        accepted
    }

    /// A grant is taken from its holder, which will learn of it.
    pub(crate) fn break_grant(&mut self, now: u64, client: usize, fence: Fence) {
        self.broken.insert((client, fence), now);
        self.endless.remove(&(client, fence));
    }

    /// The grants with this fence are taken from all their holders.
    pub(crate) fn break_all(&mut self, now: u64, fence: Fence) {
        let clients =
            self.endless.keys().filter(|(_, its)| *its == fence).map(|(client, _)| *client);
        for client in clients.collect::<Vec<_>>() {
            self.break_grant(now, client, fence);
        }
    }

    /// The client of a grant without end gives it up.
    pub(crate) fn give_up(&mut self, client: usize, fence: Fence) {
        self.endless.remove(&(client, fence));
    }

    /// Somebody was told that a grant without end has ended. This is the last member of the group.
    pub(crate) fn end(&mut self, client: usize, fence: Fence, last: u64) {
        self.ended.insert((client, fence), last);
    }

    /// Whether somebody was told that a grant without end has ended.
    pub(crate) fn has_ended(&self, client: usize, fence: Fence) -> bool {
        self.ended.contains_key(&(client, fence))
    }

    /// Whether somebody was told that the last grant without end with this fence has ended, before
    /// this member joined the group.
    pub(crate) fn ended_before(&self, fence: Fence, member: u64) -> bool {
        let is_held = self.endless.keys().any(|(_, its)| *its == fence);
        let ended = |((_, its), last): (&(usize, Fence), &u64)| *its == fence && *last < member;
        self.ended.iter().any(ended) && !is_held
    }

    /// Whether a client was told of a grant without end, and it has not ended.
    pub(crate) fn is_endless(&self, client: usize, fence: Fence) -> bool {
        self.endless.contains_key(&(client, fence))
    }

    /// The fences of such grants.
    pub(crate) fn endless(&self) -> impl Iterator<Item = Fence> {
        self.endless.keys().map(|(_, fence)| *fence)
    }

    /// The ledger of the node may have lost what happened: a broken grant may be held again.
    pub(crate) fn forget_breaks(&mut self) {
        self.broken.values_mut().for_each(|broken| *broken = u64::MAX);
    }

    /// When a grant was broken.
    pub(crate) fn broken(&self, client: usize, fence: Fence) -> Option<u64> {
        self.broken.get(&(client, fence)).copied()
    }

    /// The clients that believe that they are inside.
    pub(crate) fn inside(&self) -> &[(usize, HeldGrant)] {
        &self.inside
    }

    /// The grants without end whose clients do not exist any more.
    pub(crate) fn left_behind(&self) -> impl Iterator<Item = (usize, HeldGrant)> {
        let endless = self.endless.iter().map(|((client, _), held)| (*client, *held));
        endless.filter(|it| !self.inside.contains(it))
    }

    /// A client does not hold the lock any more, and knows it.
    pub(crate) fn leave(&mut self, client: usize, fence: Fence) {
        self.inside.retain(|(other, held)| (*other, held.fence) != (client, fence));
    }

    /// Check that all clients that believe that they are inside may be inside together. A lock
    /// without end is held even if its client was killed.
    pub(crate) fn check(&self, context: &mut Context, clients: &[Client], lock: usize) {
        if self.inside.len() + self.endless.len() < 2 {
            return;
        }
        let left: Vec<_> = self.left_behind().collect();
        let name = context.settings.locks[lock].name.clone();
        // A client that runs has noticed what its clock says. A suspended one will notice it when
        // it runs again, so its clock is read here. A client whose grant was broken will be told.
        let believes = |(client, held): &&(usize, HeldGrant)| {
            let broken = self.broken.contains_key(&(*client, held.first));
            let client = &clients[*client];
            let noticed = client.paused < context.now || client.believes(context.now, &name, *held);
            noticed && !broken
        };
        let inside: Vec<_> = self.inside.iter().filter(believes).chain(&left).collect();
        let fine = match self.kind {
            Kind::Exclusive => inside.len() < 2,
            Kind::Shared => inside.len() < 2 || inside.iter().all(|(_, held)| held.shared),
            Kind::Permits(permits) => inside.len() <= permits as usize,
        };
        if !fine {
            let inside: Vec<_> =
                inside.iter().map(|(client, held)| format!("c{client} {:?}", held.fence)).collect();
            let what = format!("too many are inside {name}: {}", inside.join(", "));
            context.violate_lock(&name, what);
        }
    }
}
