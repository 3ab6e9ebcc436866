//! How grants and requests end: released, withdrawn, broken, lost.

use doorway_protocol::{Fence, Moment, Name, Refusal, Reply};

use super::acquire::Progress;
use super::event::{AskId, EventKind, Output};
use super::names::visible_name;
use super::refusals::{check_name, not_held, stopping, withdrawn};
use super::{Sessions, Stage, same_client};
use crate::principal::Principal;

impl Sessions {
    /// Release the grant with this fence. It may be held by this session, or by another session of
    /// the same client that can live without a connection. True if it was held until now.
    pub(super) fn release(
        &mut self,
        principal: &Principal,
        session: Option<u64>,
        lock: &Name,
        fence: Fence,
        out: &mut Vec<Output>,
    ) -> bool {
        if let Some(number) = session
            && self.release_one(number, lock, fence, out)
        {
            return true;
        }
        let Some(number) = self.detached_holder(principal, lock, fence) else {
            // A client that releases what the node has lost does not believe in it any more.
            if !self.give_up_lost(principal, lock, fence, out) {
                // A client that asks again is told only when the end of its grant is durable.
                self.drop_again(lock, fence, out);
            }
            return false;
        };
        let released = self.release_one(number, lock, fence, out);
        self.end_if_idle(number, out);
        released
    }

    fn release_one(
        &mut self,
        number: u64,
        lock: &Name,
        fence: Fence,
        out: &mut Vec<Output>,
    ) -> bool {
        let held = self.open.get(&number).and_then(|session| session.find(lock, fence));
        held.inspect(|ask| {
            let held = (lock.clone(), fence, *ask);
            self.let_go(number, &held, EventKind::Released, None, out);
        })
        .is_some()
    }

    /// The session of this client that holds this grant and can live without a connection.
    pub(super) fn detached_holder(
        &self,
        principal: &Principal,
        lock: &Name,
        fence: Fence,
    ) -> Option<u64> {
        let numbers = self.detached.get(&(lock.clone(), fence))?;
        let own = |number: &&u64| {
            let session = self.open.get(number);
            session.is_some_and(|session| same_client(&session.principal, principal))
        };
        numbers.iter().find(own).copied()
    }

    /// Extend the life of the session that holds this grant and can live without a connection.
    /// Returns the number of the session.
    pub(super) fn renew(
        &mut self,
        now: Moment,
        principal: &Principal,
        lock: &Name,
        fence: Fence,
    ) -> Result<u64, Refusal> {
        check_name(lock)?;
        let holder = self.detached_holder(principal, lock, fence);
        let Some(number) = holder.filter(|_| self.stage != Stage::Stopped) else {
            // A grant that was left to the next process may still be held.
            let left = self.is_stopping();
            return Err(if left { stopping() } else { not_held(lock, fence) });
        };
        let Some(session) = self.open.get_mut(&number) else { return Err(not_held(lock, fence)) };
        session.heard = now;
        // A client that names the fence knows of the grant.
        session.inform(|(name, its, _), _| (name, *its) == (lock, fence));
        Ok(number)
    }

    /// A client does not want the answer to a request any more. If the lock was granted, it is
    /// released.
    pub(super) fn withdraw(
        &mut self,
        number: u64,
        request: u64,
        out: &mut Vec<Output>,
    ) -> Result<(), Refusal> {
        let Some(session) = self.open.get(&number) else { return Err(withdrawn()) };
        if let Some(ask) = session.waiting.get(&request).copied() {
            self.abandon(ask, out);
            return Err(withdrawn());
        }
        let granted = session.grants.iter().find(|(_, grant)| grant.request == request);
        let Some(held) = granted.map(|(held, _)| held.clone()) else { return Err(withdrawn()) };
        self.let_go(number, &held, EventKind::Released, None, out);
        Ok(())
    }

    /// Withdraw a request at the node. The client gets no answer.
    pub(super) fn abandon(&mut self, ask: AskId, out: &mut Vec<Output>) {
        let Some(asking) = self.asks.get(&ask) else { return };
        match asking.state {
            Progress::Asked | Progress::Queued(_) => out.push(Output::Abandon(ask)),
            Progress::Holding(fence, _, place) => {
                self.drop_asked(ask, fence, out);
                self.give_back(ask, place, out);
            }
            Progress::Reclaiming(..) | Progress::Writing { .. } => out.push(Output::Release(ask)),
        }
        self.forget_ask(ask, out);
    }

    /// End a grant: erase it from the ledger, report its end, and give it back to the node.
    pub(super) fn let_go(
        &mut self,
        number: u64,
        held: &(Name, Fence, AskId),
        kind: EventKind,
        why: Option<&str>,
        out: &mut Vec<Output>,
    ) {
        let (lock, fence, ask) = held.clone();
        self.forget_keeper(number, &lock, fence);
        let Some(session) = self.open.get_mut(&number) else { return };
        let Some(grant) = session.grants.remove(held) else { return };
        session.doomed |= session.standing && kind == EventKind::Lost;
        if session.is_detached() && session.find(&lock, fence).is_none() {
            let key = (lock.clone(), fence);
            if let Some(numbers) = self.detached.get_mut(&key) {
                numbers.remove(&number);
                if numbers.is_empty() {
                    self.detached.remove(&key);
                }
            }
        }
        // First from the ledger: after a crash nobody must hold what another was granted.
        self.give_back(ask, grant.place, out);
        if grant.held {
            self.drop_hold(&lock, fence, out);
        }
        self.leave(&lock, grant.permits);
        self.counters.ended(&lock, kind);
        self.announce(number, kind, lock, fence, why, out);
    }

    /// The node has lost a grant: another member broke the rules, or what was reclaimed after a
    /// crash turned out to be impossible.
    pub(super) fn lose(&mut self, number: u64, name: &Name, fence: Fence, out: &mut Vec<Output>) {
        if self.stage == Stage::Stopped {
            return; // The node stops, and its locks are left to the next process.
        }
        let lock = visible_name(name);
        let Some(session) = self.open.get(&number) else { return };
        let Some(ask) = session.find(&lock, fence) else { return };
        let why = "the node has lost it, see its log";
        self.remember_lost(number, &lock, fence);
        self.tell(number, Reply::Lost(lock, fence, why.to_owned()), out);
        self.let_go(number, &(visible_name(name), fence, ask), EventKind::Lost, Some(why), out);
        self.end_if_idle(number, out);
    }

    /// Take a lock from all sessions that hold it with this fence. Returns how many grants have
    /// ended, which includes one that ended before if that is not durable yet.
    pub(super) fn break_lock(
        &mut self,
        principal: &Principal,
        lock: &Name,
        fence: Fence,
        out: &mut Vec<Output>,
    ) -> usize {
        let holders: Vec<_> = self
            .open
            .iter()
            .filter_map(|(number, session)| Some((*number, session.find_entry(lock, fence)?)))
            .collect();
        let mut broken = 0;
        for (number, (fence, mut ask)) in holders {
            let why = format!("broken by {}", principal.name);
            self.tell(number, Reply::Lost(lock.clone(), fence, why.clone()), out);
            loop {
                self.let_go(number, &(lock.clone(), fence, ask), EventKind::Lost, Some(&why), out);
                broken += 1;
                let next = self.open.get(&number).and_then(|session| session.find(lock, fence));
                let Some(next) = next else { break };
                ask = next;
            }
            if self.former.awaited_until.is_some() {
                self.former.broken.insert((lock.clone(), fence));
            }
            self.end_if_idle(number, out);
        }
        if broken == 0 && self.drop_again(lock, fence, out) {
            broken = 1;
        }
        broken
    }
}
