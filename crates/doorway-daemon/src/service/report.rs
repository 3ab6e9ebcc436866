//! Reports about locks and about the service.

use std::time::Duration;

use doorway_node::{ClosedLock, LockClient, LockClients};
use doorway_protocol::{
    Absent, Code, Fence, Holder, LastHolder, LedgerTrouble, LockLine, LockReport, Locks, Mode,
    Moment, Name, NodeStatus, Refusal, Waiter,
};
use doorway_sessions::clock::ms;
use doorway_sessions::names::{RESERVED, visible, visible_name};
use doorway_sessions::principal::{Principal, Right};
use doorway_sessions::refusals::refusal;
use doorway_sessions::{Counters, Input, allowed};
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast::error::RecvError;
use tokio::time::sleep;
use utoipa::ToSchema;

use super::group::ListOrder;
use super::perform::REMEDY;
use super::{Service, ServiceShell};

/// How many clients of a lock are reported at most, and how many locks in a page: with the longest
/// of names and texts these fit into a frame.
const INSIDE: usize = 256;
const WAITING: usize = 128;
pub(super) const PAGE: usize = 200;

/// How many fences a refusal names if the lock is held with other fences.
const NAMED: usize = 8;

/// The state of a node and of its ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FullStatus {
    /// The state of the node.
    #[serde(flatten)]
    pub node: NodeStatus,
    /// Why the node cannot write its ledger. Absent if it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<LedgerTrouble>,
}

impl Service {
    /// Report about one lock, as far as the node can find out. In a group the other members are
    /// asked, which takes half a second if one of them does not answer.
    pub async fn inspect(&self, principal: &Principal, lock: &Name) -> Result<LockReport, Refusal> {
        allowed(principal, Right::Inspect, lock)?;
        Ok(self.report(lock).await)
    }

    /// Report about one lock, for a door that decides itself what its client may see.
    pub(crate) async fn report(&self, lock: &Name) -> LockReport {
        let shell = &*self.0;
        let (name, permits) = shell.core.lock().sessions.behind(lock);
        let handle = shell.node.open_name(name);
        let why = handle.why().await;
        let me = shell.node.name();
        let here = why.waiters.iter().take(WAITING).map(|waiter| here(me, waiter));
        let elsewhere = why.elsewhere.iter().map(elsewhere);
        let holders = why.holders.iter().filter_map(holder).chain(why.closed.iter().map(kept));
        LockReport {
            lock: lock.to_string(),
            algorithm: handle.arrangement(),
            permits,
            view: why.view,
            holders: holders.take(INSIDE).collect(),
            waiters: here.chain(elsewhere).take(WAITING).collect(),
            away: absent(why.away),
            silent: why.silent,
        }
    }

    /// The last known holders of a lock at members that are away.
    pub fn last_holders(
        &self,
        principal: &Principal,
        lock: &Name,
    ) -> Result<Vec<LastHolder>, Refusal> {
        allowed(principal, Right::Inspect, lock)?;
        let (name, _) = self.0.core.lock().sessions.behind(lock);
        let holders = self.0.node.last_holders(&name).into_iter().take(WAITING);
        Ok(holders.map(last_holder).collect())
    }

    /// List the locks that clients of this node hold or wait for and that this client may inspect,
    /// in the order of their names: those that begin with `prefix` and come after `after`.
    pub fn list(&self, principal: &Principal, prefix: &str, after: Option<&Name>) -> Locks {
        let may = |name: &Name| principal.rights.may(Right::Inspect, name);
        let page = self.0.page(prefix, after, ListOrder::Name, may);
        let locks = page.iter().take(PAGE).map(|(name, clients)| line(name, clients)).collect();
        Locks { locks, more: page.len() > PAGE }
    }

    /// Report about the node, as it is now.
    pub fn status(&self) -> NodeStatus {
        let shell = &*self.0;
        let now = Moment::now_at_node();
        let core = shell.core.lock();
        let (sessions, counters) = (core.sessions.len() as u64, core.sessions.counters().clone());
        let reclaiming = core.sessions.reclaiming();
        drop(core);
        NodeStatus {
            node: shell.node.name().to_owned(),
            group: shell.node.group().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            scope: shell.scope,
            pid: std::process::id(),
            up_ms: ms(now.since(shell.began)),
            view: shell.node.counters().view,
            members: shell.node.members(),
            away: absent(shell.node.away()),
            reclaiming_ms: reclaiming.map(|until| ms(until.since(now))),
            sessions,
            held: counters.held,
            waiting: counters.waiting,
            grants: counters.grants,
        }
    }

    /// Report about the node, as it is now, with what is wrong with its ledger.
    pub fn full_status(&self) -> FullStatus {
        FullStatus { ledger: self.ledger_trouble(), node: self.status() }
    }

    /// Why the ledger cannot be written, as far as the node knows.
    pub fn ledger_trouble(&self) -> Option<LedgerTrouble> {
        let now = Moment::now_at_node();
        let known = self.0.core.lock().sessions.ledger_trouble().map(|(since, error)| {
            let for_ms = ms(now.since(since));
            LedgerTrouble { error: error.to_owned(), remedy: REMEDY.to_owned(), for_ms }
        });
        known.or_else(|| self.0.disk.trouble(now))
    }

    /// What the sessions have counted.
    pub(crate) fn counters(&self) -> Counters {
        self.0.core.lock().sessions.counters().clone()
    }

    /// Wait until no client holds a lock or waits for it any more. While a member does not answer,
    /// that is not known, and this goes on waiting.
    pub async fn await_free(&self, principal: &Principal, lock: &Name) -> Result<(), Refusal> {
        allowed(principal, Right::Inspect, lock)?;
        let shell = &*self.0;
        // Listen before the first look, so that nothing happens unseen in between.
        let mut listener = self.listen(principal)?;
        loop {
            let (name, _) = shell.core.lock().sessions.behind(lock);
            // A client that keeps the lock and does not use it gives it back.
            self.0.input(Input::Wanted(name.clone()));
            let why = shell.node.open_name(name).why().await;
            let unused = why.holders.is_empty()
                && why.closed.is_empty()
                && why.waiters.is_empty()
                && why.elsewhere.is_empty();
            // A member that does not answer may have a client that holds the lock.
            if unused && why.away.is_empty() && why.silent.is_empty() {
                return Ok(());
            }
            // Other nodes do not report what happens there, and a request that is given up is not
            // reported either.
            let pause = Duration::from_millis(if shell.is_alone() { 100 } else { 250 });
            let happened = async {
                loop {
                    match listener.events.recv().await {
                        Ok(event) if event.lock != *lock => {}
                        Ok(_) | Err(RecvError::Lagged(_)) => return,
                        Err(RecvError::Closed) => std::future::pending().await,
                    }
                }
            };
            tokio::select! {
                () = happened => {}
                () = sleep(pause) => {}
            }
        }
    }

    /// Why a lock was not broken: no member says that it had a client with this fence.
    pub(super) async fn not_broken(&self, lock: &Name, fence: Fence) -> Refusal {
        let (name, _) = self.0.core.lock().sessions.behind(lock);
        let why = self.0.node.open_name(name.clone()).why().await;
        let (holders, last) = (why.holders, self.0.node.last_holders(&name));
        if let Some(holder) = holders.iter().find(|holder| holder.fence == Some(fence)) {
            let text = format!(
                "`{lock}` is held at the node {}, which did not take it from its holder: break it \
                 there",
                holder.node
            );
            return refusal(Code::NotServed, text);
        }
        let fences: Vec<String> =
            holders.iter().filter_map(|who| who.fence).map(|fence| fence.to_string()).collect();
        let now = match fences.split_at_checked(NAMED) {
            _ if fences.is_empty() => "no client holds it".to_owned(),
            Some((some, more)) if !more.is_empty() => {
                format!("it is held with {} and {} more", some.join(", "), more.len())
            }
            _ => format!("it is held with {}", fences.join(", ")),
        };
        let away: Vec<String> = why.away.into_iter().map(|(node, _)| node).collect();
        if away.is_empty() {
            let text = format!("`{lock}` is not held with fence {fence}: {now}");
            return refusal(Code::Gone, text);
        }
        let mut text = format!(
            "no member that answers holds `{lock}` with fence {fence}: {now}; {} cannot be reached \
             and may hold it",
            away.join(", ")
        );
        if let Some(last) = last.iter().find(|last| last.fence == Some(fence)) {
            let (node, seconds) = (&last.node, last.age.as_secs());
            let known =
                format!("; {node} held it with this fence when last heard of, {seconds} s ago");
            text.push_str(&known);
        }
        refusal(Code::Unavailable, text)
    }
}

impl ServiceShell {
    /// The next locks with their clients at this node, by the names that clients use. Locks that
    /// `may` refuses are left out. There is at least one more than a page has, if that many exist.
    pub(super) fn page(
        &self,
        prefix: &str,
        after: Option<&Name>,
        order: ListOrder,
        may: impl Fn(&Name) -> bool,
    ) -> Vec<(Name, LockClients)> {
        let most = PAGE + 1;
        let core = self.core.lock();
        let fits = |name: &&Name| {
            name.as_str().starts_with(prefix)
                && after.is_none_or(|after| *name > after)
                && may(name)
        };
        // How long clients have waited for these is not known here, so all of them are looked at.
        let looked_at = if order == ListOrder::Wait { usize::MAX } else { most };
        let used = core.sessions.names_with_permits().filter(fits).take(looked_at);
        let used: Vec<(Name, Name)> =
            used.map(|name| (name.clone(), core.sessions.behind(name).0)).collect();
        drop(core);
        // Among the locks of the node are those behind names with permits.
        let plain = |name: &Name| !name.as_str().starts_with(RESERVED) && may(name);
        let plain = match order {
            ListOrder::Name => self.node.locks(prefix, after, most, plain),
            ListOrder::Wait => self.node.locks_by_wait(prefix, most, plain),
        };
        let plain = plain.into_iter().map(|clients| (clients.lock.clone(), clients));
        let used = used
            .into_iter()
            .filter_map(|(name, behind)| Some((name, self.node.clients_of(&behind)?)));
        let mut page: Vec<_> = plain.chain(used).collect();
        if order == ListOrder::Name {
            page.sort_by(|one, other| one.0.cmp(&other.0));
            page.truncate(most);
        }
        page
    }
}

pub(super) fn line(name: &Name, clients: &LockClients) -> LockLine {
    let longest = clients.waiting.iter().map(|waiter| waiter.since).max();
    debug_assert_eq!(visible(&clients.lock), visible_name(name).as_str());
    LockLine {
        lock: name.to_string(),
        inside: clients.inside.len() as u32,
        waiting: clients.waiting.len() as u32,
        holder: clients.inside.first().and_then(holder),
        longest_wait_ms: longest.map_or(0, ms),
    }
}

pub(super) fn holder(who: &LockClient) -> Option<Holder> {
    Some(Holder {
        node: who.node.clone(),
        session: who.session,
        client: who.client.clone().unwrap_or_default(),
        shared: who.mode == Mode::Shared,
        fence: who.fence?,
        held_ms: ms(who.since + who.age),
    })
}

fn last_holder(who: LockClient) -> LastHolder {
    LastHolder {
        node: who.node,
        session: who.session,
        client: who.client,
        shared: who.mode == Mode::Shared,
        fence: who.fence,
        heard_ms: ms(who.age),
    }
}

/// The client to which a node that is away has promised a lock.
fn kept(closed: &ClosedLock) -> Holder {
    Holder {
        node: closed.node.clone(),
        session: None,
        client: closed_because(closed),
        shared: false,
        fence: closed.fence,
        held_ms: ms(closed.since),
    }
}

/// Why a lock is closed, for people.
pub(super) fn closed_because(closed: &ClosedLock) -> String {
    let node = &closed.node;
    match closed.left {
        Some(left) => format!(
            "kept closed for at most {} s more: promised by an earlier process of {node}",
            left.as_millis().div_ceil(1000)
        ),
        None => format!("kept closed without end: promised by an earlier process of {node}"),
    }
}

pub(super) fn here(node: &str, waiter: &doorway_node::Waiter) -> Waiter {
    let circle = waiter.circle.as_deref().map(circle_of);
    Waiter {
        node: node.to_owned(),
        session: waiter.session,
        client: waiter.client.clone().unwrap_or_default(),
        shared: waiter.mode == Mode::Shared,
        place: Some(waiter.place as u32),
        waited_ms: ms(waiter.since),
        missing: waiter.missing.iter().take(4).cloned().collect(),
        circle,
    }
}

fn elsewhere(who: &LockClient) -> Waiter {
    Waiter {
        node: who.node.clone(),
        session: who.session,
        client: who.client.clone().unwrap_or_default(),
        shared: who.mode == Mode::Shared,
        place: None,
        waited_ms: ms(who.since + who.age),
        missing: Vec::new(),
        circle: who.circle.as_deref().map(circle_of),
    }
}

/// The sessions of a circle as text. A circle may be long; its beginning is enough for a reader.
fn circle_of(circle: &[(String, u64)]) -> Vec<String> {
    circle.iter().take(8).map(|(node, session)| format!("{node}/{session}")).collect()
}

fn absent(away: Vec<(String, Duration)>) -> Vec<Absent> {
    away.into_iter().map(|(node, time)| Absent { node, for_ms: ms(time) }).collect()
}
