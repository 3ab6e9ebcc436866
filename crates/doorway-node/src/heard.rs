//! What this node last heard of the clients that hold locks at other members.
//!
//! Nobody asks for that: it comes with answers to questions about a lock, and with the snapshots of
//! a new view. It is told when a member is away and nobody can ask it any more.

use std::collections::BTreeMap;
use std::time::Duration;

use doorway_core::Mode;
use doorway_protocol::Name;

use crate::messages::{ClientReport, ClientStatus, HeldLock};
use crate::net::PeerId;

/// How many locks are remembered, counted once for each member that holds them. If there are more,
/// the older half is forgotten.
const LIMIT: usize = 10_000;

/// How many holders of one lock at one member are remembered.
const HOLDERS: usize = 16;

/// The last known holders of locks at other members.
#[derive(Debug, Default)]
pub(crate) struct LastHeard {
    locks: BTreeMap<(PeerId, Name), HeardLock>,
    /// How many times something was noted.
    notes: u64,
}

/// What was heard of one lock at one member.
#[derive(Clone, Debug)]
pub(crate) struct HeardLock {
    /// When the member told it.
    pub(crate) at: Duration,
    /// The place of this note among all notes.
    order: u64,
    /// How the lock was held.
    pub(crate) mode: Mode,
    /// The clients that held it; none if the member told only that it is held.
    pub(crate) holders: Vec<ClientReport>,
}

impl LastHeard {
    /// A member has told which clients it has for a lock.
    pub(crate) fn note_clients(
        &mut self,
        now: Duration,
        node: PeerId,
        lock: &Name,
        clients: &[ClientReport],
    ) {
        let inside = |client: &&ClientReport| {
            client.lock == *lock && matches!(client.status, ClientStatus::Inside(_))
        };
        let holders: Vec<_> = clients.iter().filter(inside).take(HOLDERS).cloned().collect();
        let key = (node, lock.clone());
        if let Some(mode) = holders.first().map(|holder| holder.mode) {
            let order = self.next_order();
            self.locks.insert(key, HeardLock { at: now, order, mode, holders });
            self.forget();
        } else {
            self.locks.remove(&key);
        }
    }

    /// A member has told which locks it holds, and that it holds no others.
    pub(crate) fn note_snapshot(&mut self, now: Duration, node: PeerId, held: &[HeldLock]) {
        let holds = |lock: &Name| held.binary_search_by(|held| held.lock.cmp(lock)).is_ok();
        self.locks.retain(|(of, lock), _| *of != node || holds(lock));
        for HeldLock { lock, mode, .. } in held.iter().take(LIMIT / 2) {
            let order = self.next_order();
            // What is known of its clients may still be true.
            self.locks.entry((node, lock.clone())).or_insert_with(|| HeardLock {
                at: now,
                order,
                mode: *mode,
                holders: Vec::new(),
            });
            self.forget();
        }
    }

    /// What was heard last about a lock at a member.
    pub(crate) fn get(&self, node: PeerId, lock: &Name) -> Option<&HeardLock> {
        self.locks.get(&(node, lock.clone()))
    }

    fn next_order(&mut self) -> u64 {
        self.notes += 1;
        self.notes
    }

    fn forget(&mut self) {
        if self.locks.len() > LIMIT {
            let mut orders: Vec<u64> = self.locks.values().map(|heard| heard.order).collect();
            let (_, middle, _) = orders.select_nth_unstable(LIMIT / 2);
            let middle = *middle;
            self.locks.retain(|_, heard| heard.order > middle);
        }
    }
}

#[cfg(test)]
mod tests {
    use doorway_protocol::Fence;

    use super::*;

    const C: PeerId = PeerId(2);

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn client(lock: &str, status: ClientStatus) -> ClientReport {
        let (lock, mode) = (name(lock), Mode::Exclusive);
        ClientReport { lock, session: 5, mode, status, since_ms: 0, client: None }
    }

    fn held(lock: &str) -> HeldLock {
        HeldLock { lock: name(lock), mode: Mode::Exclusive, permits: 1 }
    }

    #[test]
    fn the_newest_answer_of_a_member_about_a_lock_counts() {
        let mut heard = LastHeard::default();
        let inside = |clock| client("x", ClientStatus::Inside(Fence::new(1, clock)));
        let others = [client("x", ClientStatus::Waiting(0)), client("y", inside(1).status)];
        heard.note_clients(at(1), C, &name("x"), &others);
        assert!(heard.get(C, &name("x")).is_none(), "nobody holds it there");
        heard.note_clients(at(2), C, &name("x"), &[inside(7)]);
        heard.note_clients(at(3), C, &name("x"), &[inside(8)]);
        let known = heard.get(C, &name("x")).unwrap();
        assert_eq!((known.at, &known.holders[..]), (at(3), &[inside(8)][..]));
        assert!(heard.get(PeerId(1), &name("x")).is_none());
        heard.note_clients(at(4), C, &name("x"), &[]);
        assert!(heard.get(C, &name("x")).is_none());
    }

    #[test]
    fn a_snapshot_tells_what_a_member_holds_and_that_it_holds_nothing_else() {
        let mut heard = LastHeard::default();
        let inside = |lock| client(lock, ClientStatus::Inside(Fence::new(1, 1)));
        for lock in ["gone", "kept"] {
            heard.note_clients(at(1), C, &name(lock), &[inside(lock)]);
        }
        heard.note_clients(at(1), PeerId(1), &name("gone"), &[inside("gone")]);
        heard.note_snapshot(at(2), C, &[held("kept"), held("new")]);
        assert!(heard.get(C, &name("gone")).is_none());
        assert!(heard.get(PeerId(1), &name("gone")).is_some(), "of another member");
        assert_eq!(heard.get(C, &name("kept")).unwrap().holders.len(), 1);
        let new = heard.get(C, &name("new")).unwrap();
        assert!(new.holders.is_empty() && new.at == at(2));
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_is_forgotten() {
        let mut heard = LastHeard::default();
        for number in 0..=LIMIT {
            let lock = number.to_string();
            let inside = client(&lock, ClientStatus::Inside(Fence::new(1, 1)));
            heard.note_clients(at(number as u64), C, &name(&lock), &[inside]);
        }
        assert_eq!(heard.locks.len(), LIMIT / 2);
        assert!(heard.get(C, &name(&LIMIT.to_string())).is_some());
        assert!(heard.get(C, &name("0")).is_none());
    }
}
