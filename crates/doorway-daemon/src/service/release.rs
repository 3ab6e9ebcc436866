//! How grants and requests end: released, withdrawn, broken.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use doorway_node::LockClient;
use doorway_protocol::{Code, Fence, Name, Refusal, Reply};

use super::events::EventKind;
use super::permits::{visible, visible_name};
use super::refusals::{check_name, refusal, stopping, withdrawn};
use super::session::{Grant, Session, State};
use super::{Inner, Service, allowed};
use crate::principal::{Principal, Right};

/// So many fences are named to one who had another: thousands may share a lock.
const NAMED: usize = 8;

impl Service {
    /// Release the grant with this fence: of this session, or of one without a connection that the
    /// same client made. Was it held until now? Asking again changes nothing, and a newer grant of
    /// the same lock has another fence.
    pub fn release(&self, session: &Session, lock: &Name, fence: Fence) -> bool {
        self.0.release_own(session, lock, fence)
            || self.release_loose(&session.principal, lock, fence)
    }

    /// Release a grant of a session without a connection that the same client made.
    pub fn release_loose(&self, principal: &Principal, lock: &Name, fence: Fence) -> bool {
        let session = self.0.loose(principal, lock, fence);
        let released =
            session.as_ref().is_some_and(|session| self.0.release_own(session, lock, fence));
        // Nobody could use it any more: it was opened for this.
        session.filter(|_| released).inspect(|session| self.0.end_if_idle(session));
        released
    }

    /// A sign of life for the session without a connection that holds this and that the same client
    /// made.
    pub fn renew(&self, principal: &Principal, lock: &Name, fence: Fence) -> Result<(), Refusal> {
        check_name(lock)?;
        self.renewed(principal, lock, fence).map(drop)
    }

    /// The same, and the session.
    pub(super) fn renewed(
        &self,
        principal: &Principal,
        lock: &Name,
        fence: Fence,
    ) -> Result<Arc<Session>, Refusal> {
        let session = self.0.loose(principal, lock, fence);
        let live = session.filter(|session| self.alive(session).is_ok());
        live.ok_or_else(|| self.not_held(lock, fence))
    }

    /// Why a grant cannot be renewed.
    pub(super) fn not_held(&self, lock: &Name, fence: Fence) -> Refusal {
        if self.is_stopping() {
            return stopping(); // It may have been left to the next process.
        }
        refusal(Code::Gone, format!("`{lock}` is not held any more with fence {fence}"))
    }

    /// An answer is not wanted any more. If the lock was granted before, it is released.
    pub fn withdraw(&self, session: &Session, request: u64) -> Result<(), Refusal> {
        let inner = &*self.0;
        let mut state = session.state();
        if let Some(waiting) = state.waiting.remove(&request) {
            inner.waits.fetch_sub(1, Ordering::Relaxed);
            waiting.task.abort();
            drop(state);
            for told in waiting.told {
                let _ = told.send(Err(withdrawn())); // Who has gone away knows.
            }
            return Err(withdrawn());
        }
        let granted = state.grants.iter().find(|grant| grant.request == request);
        let Some((lock, fence)) = granted.map(|grant| (grant.lock().to_owned(), grant.fence()))
        else {
            return Err(withdrawn());
        };
        if let Some(grant) = state.grants.remove(&inner.hasher, &lock, fence) {
            inner.let_go(session, &mut state, grant, EventKind::Released);
        }
        Ok(())
    }

    /// Take a lock from whoever holds it with this fence at this node.
    pub async fn break_lock(
        &self,
        principal: &Principal,
        lock: &Name,
        fence: Fence,
    ) -> Result<(), Refusal> {
        allowed(principal, Right::Break, lock)?;
        let inner = &*self.0;
        let handle = inner.node.open_name(inner.permits.behind(lock));
        let holders = handle.why().await.holders;
        let mut found = holders.iter().filter(|holder| holder.fence == Some(fence));
        let Some(holder) = found.next() else { return Err(nobody(lock, fence, &holders)) };
        if holder.node != inner.node.name() {
            let text = format!(
                "`{lock}` is held at the node {}: it can be broken there alone",
                holder.node
            );
            return Err(refusal(Code::NotServed, text));
        }
        // Who shares a lock may share its fence: all of them lose it.
        let mut broken = false;
        for holder in holders.iter().filter(|holder| holder.fence == Some(fence)) {
            let session = holder.session.and_then(|number| inner.session(number));
            let Some(session) = session else { continue };
            let mut state = session.state();
            if let Some(grant) = state.grants.remove(&inner.hasher, lock.as_str(), fence) {
                let why = format!("broken by {}", principal.name);
                if let Some(outbox) = &state.outbox {
                    outbox.tell(&Reply::Lost(lock.clone(), fence, why));
                }
                let (client, by) = (&*session.client, &*principal.name);
                tracing::warn!(%lock, %fence, client, by, "broken");
                inner.let_go(&session, &mut state, grant, EventKind::Lost);
                broken = true;
                drop(state);
                self.0.end_if_idle(&session);
            }
        }
        if broken { Ok(()) } else { Err(nobody(lock, fence, &[])) }
    }
}

impl Inner {
    fn release_own(&self, session: &Session, lock: &Name, fence: Fence) -> bool {
        let mut state = session.state();
        let Some(grant) = state.grants.remove(&self.hasher, lock.as_str(), fence) else {
            return false;
        };
        self.let_go(session, &mut state, grant, EventKind::Released);
        true
    }

    /// The session without a connection that holds this and that the same client made.
    pub(super) fn loose(
        &self,
        principal: &Principal,
        lock: &Name,
        fence: Fence,
    ) -> Option<Arc<Session>> {
        let number = *self.loose.lock().get(&(lock.clone(), fence))?;
        self.session(number).filter(|session| same_client(&session.principal, principal))
    }

    /// A grant that was taken out of its table ends.
    pub(crate) fn let_go(
        &self,
        session: &Session,
        state: &mut State,
        grant: Grant,
        kind: EventKind,
    ) {
        let name = grant.guard.handle().name();
        let fence = grant.fence();
        self.held.fetch_sub(1, Ordering::Relaxed);
        self.counts.ended(kind);
        self.announce(kind, session, name, fence);
        if session.is_loose() {
            let key = (visible_name(name), fence);
            self.loose.lock().remove(&key);
            if let (Some(ledger), Some(place)) = (&self.ledger, state.written_grants.remove(&key)) {
                ledger.erase(place);
            }
        }
        if visible(name).len() < name.as_str().len() {
            let lock = visible_name(name);
            drop(grant);
            self.permits.leave(&lock);
        }
    }
}

/// Is it the same client? Over a Unix socket that is the user; root may act for everyone.
pub(crate) fn same_client(owner: &Principal, other: &Principal) -> bool {
    match (owner.uid, other.uid) {
        (Some(owner), Some(other)) => owner == other || other == 0,
        (None, None) => owner.name == other.name,
        (None, Some(other)) => other == 0,
        (Some(_), None) => false,
    }
}

fn nobody(lock: &Name, fence: Fence, holders: &[LockClient]) -> Refusal {
    let fences: Vec<String> =
        holders.iter().filter_map(|who| who.fence).map(|fence| fence.to_string()).collect();
    let now = match fences.split_at_checked(NAMED) {
        _ if fences.is_empty() => "nobody is inside".to_owned(),
        Some((some, more)) if !more.is_empty() => {
            format!("who is inside has {} and {} more", some.join(", "), more.len())
        }
        _ => format!("who is inside has {}", fences.join(", ")),
    };
    refusal(Code::Gone, format!("nobody holds `{lock}` with fence {fence}: {now}"))
}
