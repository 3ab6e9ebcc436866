//! Leases that are longer than the lease of the node.
//!
//! In a group that agrees on its members, a node can promise a lock only for a part of its own
//! lease: see `promise`. A client with heartbeats needs no more. But a lease has no heartbeats. If
//! its time to live is longer than what the node can promise, the group keeps it (a *hold*): the
//! group agrees on it before the client is told, and keeps the lock closed if the node dies.
//!
//! - A grant of such a lease is told only after [`Input::Held`](super::Input::Held).
//! - A lease that was restored from the ledger goes on at once. Its node enters the view only after
//!   the group has agreed that the new process keeps it.
//! - When the client releases the lock, or an operator breaks it, the answer waits until the group
//!   does not keep it any more, and the ledger was synced. Otherwise the lock could stay closed
//!   after its end if the node dies in that moment, or be held again after a crash.
//! - If the node loses the grant because its membership has ended, the client may not know that. So
//!   the group keeps the lock closed until the time of the client has passed.
//!
//! A lease without end is kept by the group as well, however long a lease of the node is. Where no
//! group keeps it, the ledger of the node does. Then [`Output::Hold`] comes after the grant was
//! written, and means that the ledger has to be on disk before the client is told.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use doorway_protocol::{Code, Fence, Life, Moment, Name, Refusal, Reply};

use super::acquire::{PendingAcquire, Progress};
use super::event::{Answer, AskId, Connection, EventKind, LeaseAnswer, Output};
use super::refusals::{gone, refusal};
use super::rewrite::SessionChange;
use super::session::{Session, UNLIMITED};
use super::{Sessions, same_client};
use crate::principal::Principal;

/// How long a request may wait until the group has agreed to keep its grant. Electing a leader
/// takes up to three seconds.
pub(super) const AGREEMENT: Duration = Duration::from_secs(5);

/// What the group is asked to keep, and what waits for that.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct HeldLeases {
    /// Requests whose grants the group is asked to keep, or keeps.
    pub(super) asked: BTreeSet<AskId>,
    /// Requests whose grants the group has agreed to keep, and that are being written.
    pub(super) kept: BTreeSet<AskId>,
    /// Leases that are to become longer, by their grants.
    extended: BTreeMap<AskId, Vec<Extension>>,
    /// What is to be answered when the group does not keep a grant any more, and the ledger is on
    /// disk without it.
    released: BTreeMap<(Name, Fence), Vec<PendingAnswer>>,
    /// Grants that have ended, until that is durable. A crash may bring them back before.
    dropping: BTreeSet<(Name, Fence)>,
    /// Grants that the node has lost with its membership, and in which their clients may believe.
    lost: BTreeMap<(Name, Fence), Believer>,
}

/// A client, and until when it may believe in a grant that the node has lost.
type Believer = (Arc<Principal>, Moment);

/// A lease that is to become longer.
#[derive(Clone, Debug, Hash)]
struct Extension {
    session: u64,
    call: Connection,
    name: Name,
    fence: Fence,
    ttl: Duration,
}

/// An answer that waits until the end of a grant is durable: to the client that has released it, or
/// to the operator who has broken it.
#[derive(Clone, Debug, Hash)]
enum PendingAnswer {
    Reply(Connection, u64, bool),
    Released(Connection, bool),
    Withdrawn(Connection, bool),
    Broken(Connection, usize),
}

impl HeldLeases {
    /// Whether the group is asked not to keep a grant any more, and has not agreed yet.
    pub(super) fn drops(&self) -> bool {
        !self.dropping.is_empty()
    }
}

impl PendingAnswer {
    fn of(output: &Output) -> Option<Self> {
        Some(match output {
            Output::Tell(connection, Reply::Released(number, held)) => {
                Self::Reply(*connection, *number, *held)
            }
            Output::Answer(connection, Answer::Released(held)) => {
                Self::Released(*connection, *held)
            }
            Output::Answer(connection, Answer::Withdrawn(held)) => {
                Self::Withdrawn(*connection, *held)
            }
            Output::Answer(connection, Answer::Broken(count)) => Self::Broken(*connection, *count),
            _ => return None,
        })
    }

    /// The answer, if the end of the grant is durable. If that is not known, an operator must not
    /// believe that the lock is free. A client that has released it has no more to do with it.
    fn output(self, done: &Result<(), Refusal>) -> Output {
        match self {
            Self::Reply(connection, number, held) => {
                Output::Tell(connection, Reply::Released(number, held))
            }
            Self::Released(connection, held) => Output::Answer(connection, Answer::Released(held)),
            Self::Withdrawn(connection, held) => {
                Output::Answer(connection, Answer::Withdrawn(held))
            }
            Self::Broken(connection, count) => {
                let answer = match done {
                    Ok(()) => Answer::Broken(count),
                    Err(refusal) => Answer::Refused(refusal.clone()),
                };
                Output::Answer(connection, answer)
            }
        }
    }
}

impl Sessions {
    /// For how long the grants of a session have to outlive the node; none if the lease of the node
    /// covers them, or if the node waits for their time after a crash of its machine.
    pub(super) fn hold_length(&self, session: &Session) -> Option<Duration> {
        if session.is_endless() {
            return Some(UNLIMITED);
        }
        let most = self.longest_lease()?;
        let length = session.ttl + session.grace();
        (session.life == Life::Lease && length > most).then_some(length)
    }

    /// The group keeps a grant for this long, or does not, for this reason.
    pub(super) fn held_by_group(
        &mut self,
        now: Moment,
        ask: AskId,
        length: Duration,
        kept: Result<(), Refusal>,
        out: &mut Vec<Output>,
    ) {
        if let Some(asking) = self.asks.get(&ask) {
            let Progress::Holding(fence, _, place) = asking.state else { return };
            let number = asking.session;
            match kept {
                Ok(()) => {
                    self.held.kept.insert(ask);
                    // The lease of a call begins when its client is told.
                    let called = |session: &&mut Session| session.begins_with_answer();
                    if let Some(session) = self.open.get_mut(&number).filter(called) {
                        session.heard = now;
                    }
                    self.keep_grant(ask, fence, place, true, out);
                }
                Err(refusal) => {
                    self.drop_asked(ask, fence, out);
                    self.give_back(ask, place, out);
                    self.settle(ask, Err(refusal), out);
                }
            }
            return;
        }
        let extensions = self.held.extended.remove(&ask).unwrap_or_default();
        let (due, rest): (Vec<_>, Vec<_>) =
            extensions.into_iter().partition(|extension| extension.ttl <= length);
        if !rest.is_empty() {
            self.held.extended.insert(ask, rest);
        }
        if due.is_empty() {
            match kept {
                Ok(()) => self.keep_restored(ask),
                Err(refusal) => self.lose_unkept(ask, &refusal, out),
            }
            return;
        }
        for Extension { session, call, name, fence, ttl } in due {
            match &kept {
                Ok(()) => self.set_ttl(session, call, &name, fence, ttl, out),
                Err(refusal) => {
                    out.push(Output::Answer(call, Answer::Refused(refusal.clone())));
                }
            }
        }
    }

    /// Refuse requests to which the group has not agreed in time. If it agrees after all, the node
    /// drops the hold. Grants that were restored from the ledger have no such limit.
    pub(super) fn refuse_unkept(&mut self, now: Moment, out: &mut Vec<Output>) {
        let late = |asking: &PendingAcquire| match asking.state {
            Progress::Holding(_, since, _) => now.since(since) >= AGREEMENT,
            _ => false,
        };
        let late: Vec<AskId> =
            self.asks.iter().filter(|(_, it)| late(it)).map(|(ask, _)| *ask).collect();
        for ask in late {
            let Some(asking) = self.asks.get(&ask) else { continue };
            let (lock, time) = (&asking.lock, AGREEMENT.as_secs());
            let text = if self.promise.is_some() {
                format!(
                    "the group did not agree within {time} s that it keeps `{lock}` for longer \
                     than a lease of its members: try again; `doorway members` tells more"
                )
            } else {
                format!(
                    "the node could not write `{lock}` to its disk within {time} s, so it was not \
                     granted: try again"
                )
            };
            let refused = Err(refusal(Code::Unavailable, text));
            self.held_by_group(now, ask, Duration::ZERO, refused, out);
        }
    }

    /// The group keeps a grant that was restored from the ledger.
    fn keep_restored(&mut self, ask: AskId) {
        let grants = self.open.values_mut().flat_map(|session| &mut session.grants);
        for ((.., its), grant) in grants {
            grant.kept |= *its == ask;
        }
    }

    /// The group does not keep a grant that was restored from the ledger: the group has removed the
    /// former process, and its client may not know that.
    fn lose_unkept(&mut self, ask: AskId, refusal: &Refusal, out: &mut Vec<Output>) {
        let of = |(number, session): (&u64, &Session)| {
            let held = session.grants.keys().find(|(.., its)| *its == ask)?;
            Some((*number, held.clone()))
        };
        let Some((number, held)) = self.open.iter().find_map(of) else { return };
        let why = format!("it could not be held again: {}", refusal.text);
        self.tell(number, Reply::Lost(held.0.clone(), held.1, why.clone()), out);
        self.remember_lost(number, &held.0, held.1);
        self.let_go(number, &held, EventKind::Lost, Some(&why), out);
        self.end_if_idle(number, out);
    }

    /// Change the time to live of a lease of a call. If the group has to keep it for longer than
    /// before, the call is answered later; then the result is true.
    pub(super) fn extend(
        &mut self,
        number: u64,
        call: Connection,
        lock: &Name,
        fence: Fence,
        ttl: Duration,
        out: &mut Vec<Output>,
    ) -> bool {
        let Some(session) = self.open.get(&number) else { return false };
        let longer = self.longest_lease().is_some_and(|most| ttl > most) && ttl > session.ttl;
        let Some(ask) = session.find(lock, fence).filter(|_| longer) else { return false };
        let name = lock.clone();
        let extension = Extension { session: number, call, name: name.clone(), fence, ttl };
        self.held.extended.entry(ask).or_default().push(extension);
        out.push(Output::Hold { ask, name, fence, length: ttl });
        true
    }

    /// The group keeps a lease for as long as its client has asked for.
    fn set_ttl(
        &mut self,
        number: u64,
        call: Connection,
        name: &Name,
        fence: Fence,
        ttl: Duration,
        out: &mut Vec<Output>,
    ) {
        let holds = |session: &&mut Session| session.grants.keys().any(|(_, its, _)| *its == fence);
        let Some(session) = self.open.get_mut(&number).filter(holds) else {
            // The client has released it meanwhile.
            self.drop_hold(name, fence, out);
            return out.push(Output::Answer(call, Answer::Refused(gone())));
        };
        for ((_, its, _), grant) in &mut session.grants {
            grant.held |= *its == fence;
            grant.kept |= *its == fence;
        }
        let before = std::mem::replace(&mut session.ttl, ttl);
        if !self.rewrite(number, SessionChange::Ttl { call, fence, before }, out) {
            let lease = LeaseAnswer { fence, session: number, ttl, renewed: true };
            out.push(Output::Answer(call, Answer::Leased(lease)));
        }
    }

    /// If the group was asked to keep the grant of a request, it need not do so any more.
    pub(super) fn drop_asked(&mut self, ask: AskId, fence: Fence, out: &mut Vec<Output>) {
        if let Some(asking) = self.asks.get(&ask)
            && self.held.asked.remove(&ask)
        {
            let lock = asking.lock.clone();
            self.drop_hold(&lock, fence, out);
        }
    }

    /// A grant has ended that the group or the ledger was asked to keep.
    pub(super) fn drop_hold(&mut self, lock: &Name, fence: Fence, out: &mut Vec<Output>) {
        self.held.dropping.insert((lock.clone(), fence));
        out.push(Output::DropHold { name: lock.clone(), fence });
    }

    /// If a grant has ended and that is not durable yet, try again to make it durable. Then the
    /// result is true, and the answer of this step waits for that.
    pub(super) fn drop_again(&mut self, lock: &Name, fence: Fence, out: &mut Vec<Output>) -> bool {
        let ended = self.held.dropping.contains(&(lock.clone(), fence));
        if ended {
            self.drop_hold(lock, fence, out);
        }
        ended
    }

    /// The node has lost a grant that the group keeps. Its client may believe in it for a while.
    pub(super) fn remember_lost(&mut self, number: u64, lock: &Name, fence: Fence) {
        let Some(session) = self.open.get_mut(&number).filter(|_| self.promise.is_some()) else {
            return; // No group keeps it.
        };
        let until = if session.is_endless() {
            Moment::NEVER
        } else {
            session.heard.after(session.ttl + session.grace())
        };
        let mut kept = false;
        for ((name, its, _), grant) in &mut session.grants {
            if (name, *its) == (lock, fence) {
                kept |= std::mem::take(&mut grant.held);
            }
        }
        if kept {
            let believer = (Arc::clone(&session.principal), until);
            self.held.lost.insert((lock.clone(), fence), believer);
        }
    }

    /// A client does not believe any more that it holds what the node has lost. False if it did not
    /// believe so.
    pub(super) fn give_up_lost(
        &mut self,
        client: &Principal,
        lock: &Name,
        fence: Fence,
        out: &mut Vec<Output>,
    ) -> bool {
        let key = (lock.clone(), fence);
        let own = self.held.lost.get(&key).is_some_and(|(owner, _)| same_client(owner, client));
        if own {
            self.held.lost.remove(&key);
            self.drop_hold(lock, fence, out);
        }
        own
    }

    /// Give up lost grants in which no client can believe any more.
    pub(super) fn forget_lost(&mut self, now: Moment, out: &mut Vec<Output>) {
        let over = self.held.lost.extract_if(.., |_, (_, until)| *until <= now);
        let over: Vec<_> = over.map(|(grant, _)| grant).collect();
        for (name, fence) in over {
            self.drop_hold(&name, fence, out);
        }
    }

    /// Hold back the answers to releases and breaks among the outputs from `first` on until the
    /// group does not keep the grants any more, and the ledger is on disk without them.
    pub(super) fn await_drops(&mut self, first: usize, out: &mut Vec<Output>) {
        let dropped = out[first..].iter().rev().find_map(|output| match output {
            Output::DropHold { name, fence } => Some((name.clone(), *fence)),
            _ => None,
        });
        let Some(dropped) = dropped else { return };
        let answers = out.extract_if(first.., |output| PendingAnswer::of(output).is_some());
        let answers: Vec<_> = answers.filter_map(|output| PendingAnswer::of(&output)).collect();
        if !answers.is_empty() {
            self.held.released.entry(dropped).or_default().extend(answers);
        }
    }

    /// The group does not keep a grant any more, and neither does the ledger on disk. If that is
    /// not known, the reason is given.
    pub(super) fn dropped(
        &mut self,
        name: Name,
        fence: Fence,
        done: &Result<(), Refusal>,
        out: &mut Vec<Output>,
    ) {
        let grant = (name, fence);
        if done.is_ok() {
            self.held.dropping.remove(&grant);
        }
        let answers = self.held.released.remove(&grant).unwrap_or_default();
        out.extend(answers.into_iter().map(|answer| answer.output(done)));
    }
}
