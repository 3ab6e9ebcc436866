//! The first words of a connection: which session it is for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use doorway_protocol::{
    Claim, Claims, ClientInfo, Code, Hello, Life, Name, Opening, Refusal, Reply, Secret, SessionId,
    VERSIONS, Welcome,
};

use super::acquire::answered;
use super::connected::Peer;
use super::events::EventKind;
use super::open::SHORTEST;
use super::outbox::Outbox;
use super::refusals::{gone, refusal, stopping, withdrawn};
use super::release::same_client;
use super::session::{Grant, Session};
use super::{Inner, Service};
use crate::principal::Principal;
use crate::secret;

/// How many lost claims fit into a welcome.
const TOLD: usize = Claims::MAX;

/// How a connection goes on.
pub(crate) struct Greeted {
    pub(crate) welcome: Welcome,
    pub(crate) session: Option<Arc<Session>>,
    /// What is told after the welcome.
    pub(crate) then: Vec<Reply>,
}

/// What a client says of the session that it had.
pub(crate) struct Resumed {
    pub(crate) id: SessionId,
    pub(crate) secret: Secret,
    pub(crate) ttl_ms: u32,
    pub(crate) life: Life,
    pub(crate) held: Vec<Claim>,
    pub(crate) waiting: BTreeSet<u64>,
}

impl Service {
    /// Answer the first words of a client. `claims` came after them, if they said so.
    pub(crate) fn greet(
        &self,
        peer: &mut Peer,
        principal: &Principal,
        hello: Hello,
        claims: Vec<Claims>,
        outbox: &Arc<Outbox>,
    ) -> Result<Greeted, Refusal> {
        let version = version(hello.versions)?;
        if self.is_stopping() {
            return Err(stopping());
        }
        let (mut lost, mut then) = (Vec::new(), Vec::new());
        let session = match hello.opening {
            Opening::Visit => None,
            Opening::New { ttl_ms, life } => {
                self.keeps(ttl_ms, life)?;
                let session = self.open(peer, principal, &hello.who, ttl_ms, life)?;
                session.state().outbox = Some(Arc::clone(outbox));
                Some(session)
            }
            Opening::Resume { session: id, secret, ttl_ms, life, mut held, waiting, .. } => {
                let mut waiting: BTreeSet<u64> = waiting.into_iter().collect();
                for more in claims {
                    held.extend(more.held);
                    waiting.extend(more.waiting);
                }
                let resumed = Resumed { id, secret, ttl_ms, life, held, waiting };
                let session;
                (session, lost) =
                    self.resume(peer, principal, &hello.who, &resumed, outbox, &mut then)?;
                Some(session)
            }
        };
        let rest = lost.split_off(lost.len().min(TOLD));
        let why = "it was not held any more when the session went on";
        then.extend(rest.into_iter().map(|claim| Reply::Lost(claim.lock, claim.fence, why.into())));
        let welcome = Welcome {
            version,
            node: self.0.node.name().to_owned(),
            scope: self.0.scope,
            ttl_ms: session.as_ref().map_or(0, |session| session.ttl().as_millis() as u32),
            session: session.as_ref().map(|session| (session.id(), session.secret)),
            lost,
        };
        Ok(Greeted { welcome, session, then })
    }

    /// A lease that nobody renews ends with its time, so it must have the time that was asked for;
    /// every other session may live for less than that, for its client speaks before.
    fn keeps(&self, ttl_ms: u32, life: Life) -> Result<(), Refusal> {
        let (asked, most) = (Duration::from_millis(ttl_ms.into()), self.0.limits.ttl);
        if life != Life::Lease || asked <= most.max(SHORTEST) {
            return Ok(());
        }
        let text = format!(
            "this node keeps a lease for at most {} s (`limits.ttl`): ask for less and renew it in \
             time, or tie the lock to a process (--pid)",
            most.as_secs_f64()
        );
        Err(refusal(Code::Invalid, text))
    }

    /// Go on with a session: the claims that are lost, and in `then` what it waited for and got.
    fn resume(
        &self,
        peer: &mut Peer,
        principal: &Principal,
        who: &ClientInfo,
        resumed: &Resumed,
        outbox: &Arc<Outbox>,
        then: &mut Vec<Reply>,
    ) -> Result<(Arc<Session>, Vec<Claim>), Refusal> {
        let mut lost = Vec::new();
        let session = match self.find(principal, resumed.id, &resumed.secret) {
            Ok(session) => session,
            Err(gone) => self.revive(peer, principal, who, resumed, &mut lost).ok_or(gone)??,
        };
        let inner = &*self.0;
        let mut state = session.state();
        if state.over {
            return Err(gone());
        }
        if let Some(old) = state.outbox.replace(Arc::clone(outbox)) {
            old.close();
        }
        let mut told = BTreeMap::new();
        let claimed: BTreeSet<(&str, _)> =
            resumed.held.iter().map(|claim| (claim.lock.as_str(), claim.fence)).collect();
        let keep = |grant: &Grant| {
            resumed.waiting.contains(&grant.request)
                || claimed.contains(&(grant.lock(), grant.fence()))
        };
        // What the client does not speak of it has given up: its release was not heard.
        for grant in state.grants.extract(keep) {
            inner.let_go(&session, &mut state, grant, EventKind::Released);
        }
        let again = state.grants.iter().filter(|grant| resumed.waiting.contains(&grant.request));
        for grant in again {
            if let Ok(lock) = Name::new(grant.lock()) {
                told.insert(grant.request, (lock, grant.fence()));
            }
        }
        then.extend(told.iter().map(|(request, (_, fence))| answered(*request, Ok(*fence))));
        let unwanted: Vec<u64> = state
            .waiting
            .keys()
            .filter(|request| !resumed.waiting.contains(request))
            .copied()
            .collect();
        for request in unwanted {
            if let Some(waiting) = state.waiting.remove(&request) {
                inner.waits.fetch_sub(1, Ordering::Relaxed);
                waiting.task.abort();
                waiting.told.into_iter().for_each(|told| drop(told.send(Err(withdrawn()))));
            }
        }
        // Those requests may be on their way once more.
        state.answered.get_or_insert_default().extend(told);
        let held =
            |claim: &Claim| state.grants.contains(&inner.hasher, claim.lock.as_str(), claim.fence);
        lost.extend(resumed.held.iter().filter(|claim| !held(claim)).cloned());
        lost.sort_unstable_by(|one, other| (&one.lock, one.fence).cmp(&(&other.lock, other.fence)));
        lost.dedup();
        drop(state);
        Ok((session, lost))
    }
}

impl Inner {
    /// Is that the secret of this session, and the same client?
    pub(crate) fn proves(
        &self,
        record: &crate::ledger::SessionRecord,
        secret: &Secret,
        by: &Principal,
    ) -> bool {
        same_client(&self.known(record), by) && secret::same(&record.secret.0, &secret.0)
    }
}

/// The highest version that both speak.
fn version((lowest, highest): (u16, u16)) -> Result<u16, Refusal> {
    let (ours, our_highest) = VERSIONS;
    let version = highest.min(our_highest);
    if version >= lowest.max(ours) {
        return Ok(version);
    }
    let text = format!(
        "the client speaks versions {lowest} to {highest} of the protocol, the node {ours} to \
         {our_highest}: update the older one"
    );
    Err(refusal(Code::Invalid, text))
}
