//! Locks without end: what must be true of them, and the operators that break them at last.

use std::collections::BTreeSet;

use doorway_node::members::{Command, HoldId};
use doorway_protocol::{Fence, Name};
use doorway_sessions::ledger::LedgerContents;

use super::World;
use crate::book::Book;
use crate::client::{Client, Report};
use crate::clock::SECOND;
use crate::context::{Event, log};
use crate::node::Node;

/// How often operators look for locks without end whose clients have forgotten them.
const OFTEN: u64 = 2 * SECOND;

impl World {
    /// Something has happened at a node or to a client: note which locks without end have ended,
    /// and check that the others have not. True if somebody was told that one has ended.
    pub(super) fn check_endless(&mut self) -> bool {
        for (lock, fence, client) in std::mem::take(&mut self.context.expired) {
            if self.book(&lock).is_some_and(|book| book.is_endless(client, fence)) {
                let what = format!("{lock} {fence:?} of c{client} has no end, and has expired");
                self.context.violate_lock(&lock, what);
            }
        }
        let agreed = self.context.register.is_some();
        for (lock, fence, client) in std::mem::take(&mut self.context.granted) {
            // In a group with agreed members, a node holds nothing again before the group agrees.
            if !agreed && self.book(&lock).is_some_and(|book| book.has_ended(client, fence)) {
                let what = format!("{lock} {fence:?} of c{client} is held again after its end");
                self.context.violate_lock(&lock, what);
            }
        }
        let ended = std::mem::take(&mut self.context.ended);
        let told = !ended.is_empty();
        for (lock, fence, client) in ended {
            log!(self.context, "{lock} {fence:?} of c{client} has ended, and that was told");
            let last = self.context.register.as_ref().map_or(0, |it| it.state.record.last);
            if let Some(book) = self.book(&lock) {
                book.end(client, fence, last);
            }
        }
        told
    }

    /// Check that every lock without end of which a client was told outlives the nodes: the group
    /// keeps it or, if there is no such group, the disk of a node has it.
    pub(super) fn check_kept(&mut self) {
        let endless = self.books.iter().zip(&self.context.settings.locks);
        let endless: BTreeSet<(Name, Fence)> = endless
            .flat_map(|(book, lock)| book.endless().map(|fence| (lock.name.clone(), fence)))
            .collect();
        if endless.is_empty() {
            return;
        }
        let kept: BTreeSet<(Name, Fence)> = if let Some(register) = &self.context.register {
            let holds = register.state.holds.iter().map(|(id, _)| id);
            holds.map(|id| (id.name.clone(), id.fence)).collect()
        } else {
            let ledgers: Vec<_> = self.nodes.iter().map(Node::ledger).collect();
            let grants = ledgers.iter().flat_map(LedgerContents::grants);
            grants.map(|(_, lock, fence)| (lock.clone(), fence)).collect()
        };
        if let Some((lock, fence)) = endless.difference(&kept).next() {
            let what = format!("nothing keeps {lock} {fence:?}, which has no end");
            self.context.violate_lock(lock, what);
        }
    }

    /// Check that no later process lets the group keep a lock that has ended. A command of the same
    /// process may be late: then the process drops the hold once more.
    pub(super) fn check_hold(&mut self, HoldId { name, fence, member }: &HoldId) {
        if self.book(name).is_some_and(|book| book.ended_before(*fence, member.0)) {
            let what = format!("the group keeps {name} {fence:?} again after its end");
            self.context.violate_lock(name, what);
        }
    }

    /// Operators break the locks without end in which no client believes: the client was killed, or
    /// never got the answer. Before that, nobody else may have such a lock.
    pub(super) fn sweep(&mut self) {
        let now = self.context.now;
        self.context.queue.push(now + OFTEN, Event::Sweep);
        let forgotten = |clients: &[Client], lock: &Name, fence: Fence| {
            let knows = |client: &Client| client.knows(lock, fence, &self.context.settings);
            !clients.iter().any(knows)
        };
        let there = |node: &&Node| node.paused <= now && self.away != Some(node.id);
        let held = self.nodes.iter().filter(there).flat_map(|node| {
            let grants = node.process.iter().flat_map(|process| process.sessions.endless_grants());
            grants.map(|(lock, fence)| (node.id, lock.clone(), fence))
        });
        let held: Vec<_> =
            held.filter(|(_, lock, fence)| forgotten(&self.clients, lock, *fence)).collect();
        let orphans = self.context.register.iter().flat_map(|register| {
            let orphans = register.state.holds.orphans(&register.state.record);
            orphans.filter(|(_, hold)| hold.length_ms.is_none()).map(|(id, _)| id.clone())
        });
        let orphans: Vec<HoldId> =
            orphans.filter(|id| forgotten(&self.clients, &id.name, id.fence)).collect();
        for (node, lock, fence) in held {
            self.nodes[node].break_by_operator(&mut self.context, &lock, fence);
            self.after_node(node);
        }
        for id in orphans {
            self.break_orphan(id);
        }
    }

    /// An operator opens a lock that is closed because the node of its client is gone.
    pub(super) fn break_orphan(&mut self, id: HoldId) {
        log!(self.context, "an operator breaks {} {:?}", id.name, id.fence);
        let (now, lock, fence) = (self.context.now, id.name.clone(), id.fence);
        if let Some(book) = self.book(&lock) {
            book.break_all(now, fence);
        }
        self.agree(&Command::Drop(id));
    }

    /// Whether a client has lost a lock without end that nobody broke. In a group with agreed
    /// members, a lock is lost with the membership of its node.
    pub(super) fn is_lost_without_cause(&self, client: usize, report: &Report) -> bool {
        let Report::Left { lock, fence, lost: true } = *report else { return false };
        self.context.register.is_none() && self.books[lock].is_endless(client, fence)
    }

    fn book(&mut self, lock: &Name) -> Option<&mut Book> {
        let at = self.context.settings.locks.iter().position(|known| known.name == *lock)?;
        Some(&mut self.books[at])
    }
}
