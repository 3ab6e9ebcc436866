//! The hello of a client, and how its session begins or goes on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use doorway_protocol::text::cut;
use doorway_protocol::{
    Claim, Claims, ClientInfo, Code, Fence, Life, Mode, Moment, Name, NodeIdentity, Refusal, Reply,
    Scope, SessionId, VERSIONS, Welcome,
};

use super::event::{EventKind, Opening, Output, ProcessId};
use super::open::NewSession;
use super::refusals::{drained, gone, refusal, stopping, unnamed};
use super::session::{Session, UNLIMITED, ttl_ms};
use super::{Sessions, Stage, same_client};
use crate::principal::Principal;
use crate::secret;

/// The shortest time to live of a session.
pub(super) const SHORTEST: Duration = Duration::from_millis(500);

/// How many bytes of a client's description are kept.
pub(super) const DESCRIPTION: usize = 200;

/// What a client says about the session that it had.
struct ResumeClaim {
    number: u64,
    held: Vec<Claim>,
    waiting: BTreeSet<u64>,
    /// What the session will hold again if the node agrees.
    reclaimed: BTreeSet<(Name, Fence)>,
}

impl Sessions {
    pub(super) fn hello(&mut self, now: Moment, opening: Opening, out: &mut Vec<Output>) {
        let connection = opening.connection;
        let (mut lost, mut then) = (Vec::new(), Vec::new());
        match self.greet(now, opening, &mut lost, &mut then, out) {
            Ok((version, session)) => {
                let rest = lost.split_off(lost.len().min(Claims::MAX));
                let why = "it was not held any more when the session was resumed";
                let told = |claim: Claim| Reply::Lost(claim.lock, claim.fence, why.into());
                then.extend(rest.into_iter().map(told));
                let session = session.and_then(|number| self.open.get(&number));
                let welcome = Welcome {
                    version,
                    node: self.setup.node.clone(),
                    scope: self.setup.scope,
                    // If the membership of the node can end, its lease decides: see `promise.rs`.
                    ttl_ms: session.map_or(0, |session| ttl_ms(session.told_ttl())),
                    session: session.map(|session| (SessionId(session.number), session.secret)),
                    lost,
                    directory: Some(self.setup.directory),
                };
                // The outbox puts this before everything that the client was told meanwhile.
                let greet = Output::Greet(connection, Box::new(Ok(welcome)), then);
                out.push(greet);
            }
            Err(refusal) => {
                out.push(Output::Greet(connection, Box::new(Err(refusal)), Vec::new()));
                out.push(Output::Close(connection));
            }
        }
    }

    fn greet(
        &mut self,
        now: Moment,
        opening: Opening,
        lost: &mut Vec<Claim>,
        then: &mut Vec<Reply>,
        out: &mut Vec<Output>,
    ) -> Result<(u16, Option<u64>), Refusal> {
        let version = common_version(opening.hello.versions)?;
        self.check_stage(&opening.hello.opening, opening.remote)?;
        let connection = opening.connection;
        self.identify(connection, &opening.principal)?;
        let Opening { principal, remote, process, hello, claims, secret, .. } = opening;
        let mut who = hello.who;
        if let doorway_protocol::Opening::New { life: Life::Process { pid }, .. } = hello.opening {
            who.pid = pid; // The process that holds the lock, not the one that asked for it.
        }
        let client = describe(&who, &principal, self.setup.scope).into();
        let new = |number, secret, ttl, life| {
            let principal = Arc::clone(&principal);
            NewSession { number, secret, principal, client, ttl, life, remote, process }
        };
        let number = match hello.opening {
            doorway_protocol::Opening::Visit => return Ok((version, None)),
            doorway_protocol::Opening::New { ttl_ms, life } => {
                self.check_member(now)?;
                self.check_lease(ttl_ms, life)?;
                let ttl = self.ttl(ttl_ms, life, remote, process)?;
                let number = self.next_session();
                self.open_session(now, new(number, secret, ttl, life), out)?;
                number
            }
            doorway_protocol::Opening::Resume {
                node,
                session: id,
                secret,
                ttl_ms,
                life,
                held,
                waiting,
                ..
            } => {
                let (held, waiting) = all_claims(held, waiting, claims);
                let known = self.open.get(&id.0);
                let proven = |session: &Session| {
                    same_client(&session.principal, &principal)
                        && secret::same(&session.secret.0, &secret.0)
                };
                // The secret of a session that we have proves that it is ours.
                if !known.is_some_and(proven) {
                    self.check_own(node.as_ref())?;
                }
                if known.is_some_and(|session| !proven(session)) {
                    return Err(gone());
                }
                // The network may hold up a hello until its client has given up that connection and
                // goes on over another one. What such a hello does not claim is not given up.
                if known.is_some_and(|session| session.newest > Some(connection)) {
                    let text = "the session goes on over a newer connection";
                    return Err(refusal(Code::Unavailable, text));
                }
                if known.is_none() {
                    // The former process may have had it: a session that holds nothing is not in
                    // the ledger.
                    if id.0 > self.former.last {
                        return Err(gone());
                    }
                    // A claim that nothing but the client vouches for is believed only if the
                    // session was one of ours.
                    if node.is_none() && !held.is_empty() && self.former.believes(id.0, remote) {
                        return Err(unnamed());
                    }
                    self.check_lease_known()?;
                    let ttl = self.ttl(ttl_ms, life, remote, process)?;
                    self.open_session(now, new(id.0, secret, ttl, life), out)?;
                }
                let reclaimed = self.reclaim(id.0, &held, (node.is_some(), remote), out);
                let resumed = ResumeClaim { number: id.0, held, waiting, reclaimed };
                self.resume(now, &resumed, lost, then, out);
                id.0
            }
        };
        self.attach(number, connection, out);
        self.look_after(number, out);
        Ok((version, Some(number)))
    }

    /// Go on with a session. What its client claims and the session does not hold is added to
    /// `lost`. Requests that the client still waits for, and that were granted, are answered again
    /// in `then`.
    fn resume(
        &mut self,
        now: Moment,
        resumed: &ResumeClaim,
        lost: &mut Vec<Claim>,
        then: &mut Vec<Reply>,
        out: &mut Vec<Output>,
    ) {
        let number = resumed.number;
        let Self { open, asks, kept, .. } = self;
        let Some(session) = open.get_mut(&number) else { return };
        session.heard = now;
        // A client keeps nothing across connections.
        let former = kept.extract_if(.., |_, keeper| keeper.session == number);
        let former: Vec<Name> = former.map(|(lock, _)| lock).collect();
        let claimed: BTreeSet<_> =
            resumed.held.iter().map(|claim| (&claim.lock, claim.fence)).collect();
        // The client has released what it does not claim, but the release has not arrived.
        let given_up: Vec<_> = session
            .grants
            .iter()
            .filter(|((lock, fence, _), grant)| {
                !resumed.waiting.contains(&grant.request) && !claimed.contains(&(lock, *fence))
            })
            .map(|(held, _)| held.clone())
            .collect();
        let answered: BTreeMap<u64, _> = session
            .grants
            .iter()
            .filter(|(_, grant)| resumed.waiting.contains(&grant.request))
            .map(|((lock, fence, _), grant)| (grant.request, (lock.clone(), *fence)))
            .collect();
        then.extend(answered.iter().map(|(request, (_, fence))| Reply::Granted(*request, *fence)));
        // The client may have sent these requests again already.
        session.answered.get_or_insert_default().extend(answered);
        let unwanted: Vec<_> = session
            .waiting
            .iter()
            .filter(|(request, _)| !resumed.waiting.contains(request))
            .map(|(_, ask)| *ask)
            .filter(|ask| asks.get(ask).is_some_and(|asking| !asking.is_reclaiming()))
            .collect();
        let held = |claim: &&Claim| {
            let reclaimed = resumed.reclaimed.contains(&(claim.lock.clone(), claim.fence));
            reclaimed || session.find(&claim.lock, claim.fence).is_some()
        };
        lost.extend(resumed.held.iter().filter(|claim| !held(claim)).cloned());
        lost.sort_unstable_by(|one, other| (&one.lock, one.fence).cmp(&(&other.lock, other.fence)));
        lost.dedup();
        for held in given_up {
            self.let_go(number, &held, EventKind::Released, None, out);
        }
        for ask in unwanted {
            self.abandon(ask, out);
        }
        // What the client claims, it is inside of.
        for lock in former {
            let holds = |session: &Session| session.grants.keys().any(|(held, ..)| *held == lock);
            if self.open.get(&number).is_some_and(holds) {
                self.refuse_tries(&lock, Mode::Exclusive, out);
            }
        }
    }

    /// Refuse to go on with the session of another node. If that has our name, it was this node
    /// before its directory was lost, and keeps nothing any more.
    fn check_own(&self, node: Option<&NodeIdentity>) -> Result<(), Refusal> {
        let Some(node) = node else { return Ok(()) };
        let ours = &self.setup;
        if node.name != ours.node {
            let (name, its) = (cut(&node.name, DESCRIPTION), &ours.node);
            let text = format!("the session is one of node {name}, and this is node {its}");
            return Err(refusal(Code::Elsewhere, text));
        }
        if node.directory != ours.directory {
            let text = "the node has another data directory than when it opened the session, so \
                        nothing is left of the session; open a new one";
            return Err(refusal(Code::Gone, text));
        }
        Ok(())
    }

    /// Refuse what the node does not do any more. While it drains, sessions go on until they hold
    /// nothing, also those of former holders that it waits for, and questions are answered.
    fn check_stage(
        &self,
        opening: &doorway_protocol::Opening,
        remote: bool,
    ) -> Result<(), Refusal> {
        let goes_on = match opening {
            doorway_protocol::Opening::Visit => true,
            doorway_protocol::Opening::New { .. } => false,
            doorway_protocol::Opening::Resume { session, .. } => {
                self.open.contains_key(&session.0) || self.former.believes(session.0, remote)
            }
        };
        match self.stage {
            Stage::Stopped => Err(stopping()),
            Stage::Draining { .. } if !goes_on => Err(drained()),
            _ => Ok(()),
        }
    }

    /// The time to live that a session gets. A session of a process that the node can see lives as
    /// long as that process, if its client asks for no limit.
    fn ttl(
        &self,
        ttl_ms: u32,
        life: Life,
        remote: bool,
        process: Option<ProcessId>,
    ) -> Result<Duration, Refusal> {
        let asked = Duration::from_millis(ttl_ms.into());
        let seen = process.is_some() && !remote;
        if asked == UNLIMITED && seen && matches!(life, Life::Connection { .. }) {
            return Ok(UNLIMITED);
        }
        Ok(match life {
            Life::Lease if asked == UNLIMITED => self.check_endless().map(|()| UNLIMITED)?,
            // The group keeps a lease that is longer than the node can promise.
            Life::Lease => self.limited_lease(asked),
            _ => self.limited(asked),
        })
    }

    /// The time to live that a session gets if its client asks for this one and sends heartbeats.
    fn limited(&self, asked: Duration) -> Duration {
        let most = self.setup.limits.ttl.max(SHORTEST);
        asked.clamp(
            SHORTEST,
            self.longest_heartbeat_ttl().map_or(most, |lease| lease.clamp(SHORTEST, most)),
        )
    }

    /// The time to live that a lease gets if its client asks for this one.
    pub(super) fn limited_lease(&self, asked: Duration) -> Duration {
        asked.clamp(SHORTEST, self.setup.limits.ttl.max(SHORTEST))
    }

    /// Refuse a lease that is longer than the node allows. Every other session may get less time
    /// than its client asked for, because the client sends heartbeats.
    fn check_lease(&self, ttl_ms: u32, life: Life) -> Result<(), Refusal> {
        let asked = Duration::from_millis(ttl_ms.into());
        let most = self.setup.limits.ttl.max(SHORTEST);
        if life != Life::Lease || asked <= most || asked == UNLIMITED {
            return Ok(());
        }
        let text = format!(
            "this node keeps a lease for at most {} s (`limits.ttl`): ask for less and renew it in \
             time, or tie the lock to a process (--pid)",
            most.as_secs_f64()
        );
        Err(refusal(Code::Invalid, text))
    }

    /// Refuse a lease without end, unless the settings allow it and the next process will know of
    /// it.
    pub(super) fn check_endless(&self) -> Result<(), Refusal> {
        let text = if !self.setup.limits.endless {
            "this node keeps no lease without end: ask for a time to live, or set `endless = true` \
             under [limits] in its settings"
        } else if !self.setup.ledger {
            "this node keeps no lease without end, because it has no data directory and would \
             forget the lease when it stops: ask for a time to live, or set `data` in its settings"
        } else {
            return Ok(());
        };
        Err(refusal(Code::Forbidden, text))
    }
}

/// The description of a client, for people who ask who holds a lock. If several users share the
/// node, it names the user, as the system knows it.
pub(super) fn describe(who: &ClientInfo, principal: &Principal, scope: Scope) -> String {
    let user = match (principal.uid, scope) {
        (Some(user), Scope::Machine | Scope::Cluster) => format!("uid {user}"),
        _ => String::new(),
    };
    let process = if who.pid == 0 { String::new() } else { format!("pid {}", who.pid) };
    let details = [process, user].into_iter().filter(|detail| !detail.is_empty());
    let details = details.collect::<Vec<_>>().join(", ");
    let mut text = match (who.label.as_str(), details.as_str()) {
        ("", "") => principal.name.clone(),
        ("", details) => details.to_owned(),
        (label, "") => label.to_owned(),
        (label, details) => format!("{label} ({details})"),
    };
    if !who.host.is_empty() {
        text = format!("{} on {}", text, cut(&who.host, 64));
    }
    // A control character would garble whatever the description is shown on.
    let clean: String = text.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    cut(&clean, DESCRIPTION).to_owned()
}

/// The highest version of the protocol that both sides speak, if a client speaks these, the lowest
/// and the highest.
pub fn common_version((lowest, highest): (u16, u16)) -> Result<u16, Refusal> {
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

/// The claims of a hello together with those that were too many for its frame.
fn all_claims(
    mut held: Vec<Claim>,
    waiting: Vec<u64>,
    further: Vec<Claims>,
) -> (Vec<Claim>, BTreeSet<u64>) {
    let mut waiting: BTreeSet<u64> = waiting.into_iter().collect();
    for more in further {
        held.extend(more.held);
        waiting.extend(more.waiting);
    }
    (held, waiting)
}
