//! Who holds a lock at this moment, for clients that ask by the Redis protocol.

use std::time::Duration;

use doorway_protocol::{Absent, Code, Fence, Holder, Moment, Name, Refusal};
use doorway_sessions::allowed;
use doorway_sessions::principal::{Principal, Right};
use doorway_sessions::refusals::refusal;

use super::Service;
use super::report::holder;

/// A lease by which a client holds a lock at this node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnLease {
    pub(crate) fence: Fence,
    /// How much longer it lasts, in milliseconds.
    pub(crate) left_ms: u64,
}

/// A client that holds a lock, at any member.
#[derive(Clone, Debug)]
pub(crate) struct Holding {
    pub(crate) holder: Holder,
    /// How much longer its lease lasts, in milliseconds; `None` if it has no such time.
    pub(crate) left_ms: Option<u64>,
}

impl Service {
    /// The longest time to live that a client may ask for.
    pub(crate) fn longest_ttl(&self) -> Duration {
        self.0.core.lock().sessions.longest_ttl()
    }

    /// The lease by which this owner holds a lock at this node.
    pub(crate) fn own_lease(
        &self,
        principal: &Principal,
        lock: &Name,
        owner: &str,
    ) -> Option<OwnLease> {
        let now = Moment::now_at_node();
        let core = self.0.core.lock();
        let (session, fence) = core.sessions.owned_lease(principal, lock, owner)?;
        let left_ms = core.sessions.expires(now, session).unwrap_or_default();
        Some(OwnLease { fence, left_ms })
    }

    /// All leases by which this client holds a lock at this node, each with its description.
    pub(crate) fn own_leases(&self, principal: &Principal, lock: &Name) -> Vec<(OwnLease, String)> {
        let now = Moment::now_at_node();
        let core = self.0.core.lock();
        let leases = core.sessions.client_leases(principal, lock);
        let times = leases.map(|(session, fence)| {
            let left_ms = core.sessions.expires(now, session).unwrap_or_default();
            (session, OwnLease { fence, left_ms })
        });
        let times: Vec<_> = times.collect();
        drop(core);
        let described = |session| self.described(session).unwrap_or_default();
        times.into_iter().map(|(session, own)| (own, described(session))).collect()
    }

    /// Whether a client holds a lock, at any member. This says nothing about the client, so no
    /// right to inspect the lock is needed. An error if a member that does not answer may have a
    /// client that holds it.
    pub(crate) async fn is_held(&self, lock: &Name) -> Result<bool, Refusal> {
        let report = self.report(lock).await;
        if !report.holders.is_empty() {
            return Ok(true);
        }
        all_heard(lock, report.away, report.silent).map(|()| false)
    }

    /// The client that holds a lock, or the first one of several. The other members are asked only
    /// if no client of this node holds it. An error if a member that does not answer may have a
    /// client that holds it.
    pub(crate) async fn holding(
        &self,
        principal: &Principal,
        lock: &Name,
    ) -> Result<Option<Holding>, Refusal> {
        allowed(principal, Right::Inspect, lock)?;
        let (behind, _) = self.0.core.lock().sessions.behind(lock);
        let here = self.0.node.clients_of(&behind);
        if let Some(holder) = here.and_then(|clients| clients.inside.first().and_then(holder)) {
            let now = Moment::now_at_node();
            let core = self.0.core.lock();
            let left_ms = holder.session.and_then(|session| core.sessions.expires(now, session));
            return Ok(Some(Holding { holder, left_ms }));
        }
        let state = self.lock_state(principal, lock).await?;
        let (report, left) = (state.report, state.expires_in_ms);
        if let Some(holder) = report.holders.into_iter().next() {
            return Ok(Some(Holding { holder, left_ms: left.first().copied().flatten() }));
        }
        let (away, silent) = (report.away, report.silent);
        all_heard(lock, away, silent).map(|()| None)
    }
}

/// An error if members do not answer, which may have clients that hold a lock.
fn all_heard(lock: &Name, away: Vec<Absent>, silent: Vec<String>) -> Result<(), Refusal> {
    let mut unheard: Vec<String> = away.into_iter().map(|member| member.node).collect();
    unheard.extend(silent);
    if unheard.is_empty() {
        return Ok(());
    }
    unheard.sort_unstable();
    unheard.dedup();
    let text = format!(
        "it is not known whether `{lock}` is held: {} does not answer; ask again later",
        unheard.join(", ")
    );
    Err(refusal(Code::Unavailable, text))
}
