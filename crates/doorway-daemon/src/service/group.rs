//! Reports about the whole group, for which the services at the other members are asked.
//!
//! The question and the answer are JSON inside a message between nodes. Fields may be added later:
//! readers ignore those that they do not know.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use doorway_node::RecordError;
use doorway_protocol::{
    Absent, Code, Fence, LastHolder, LockLine, LockReport, Moment, Name, NamePattern, Refusal,
    Waiter, Window,
};
use doorway_sessions::allowed;
use doorway_sessions::clock::ms;
use doorway_sessions::principal::{Principal, Right, Rights};
use doorway_sessions::refusals::refusal;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::Service;
use super::passing::CallMessage;
use super::report::{FullStatus, PAGE, here, line};

/// A question of a service to the services at other members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Question {
    /// How are you?
    Status,
    /// Which locks do your clients hold or wait for?
    Locks {
        /// Only those whose names begin with this.
        prefix: String,
        /// Only those after this name.
        after: Option<String>,
        /// Those with the longest waits first.
        by_wait: bool,
        /// Only those that one of these patterns matches.
        visible: Vec<String>,
    },
    /// How long do the leases of the lock's holders last, and why do its clients wait?
    Lock(String),
    /// What does your wall clock show, in milliseconds since 1970?
    Clock,
    /// Take a lock from your clients that hold it with this fence. The answer says from how many;
    /// `null` means that this is not durable yet, and that the question is to be asked again.
    Break {
        lock: String,
        fence: Fence,
        /// Who asks for that and at which node, for the holder and for the log.
        by: String,
    },
    /// What a door of this member wants of the same door of yours.
    Pass(CallMessage),
}

/// The order of a list of locks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListOrder {
    /// By name, one page at a time.
    #[default]
    Name,
    /// The longest wait first, then the longest hold; the first page alone.
    Wait,
}

/// A lock with its clients at all members that answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupLine {
    /// The lock. Its counts are those of all members.
    pub line: LockLine,
    /// How much longer the lease of its holder lasts, in milliseconds.
    pub expires_in_ms: Option<u64>,
}

/// One page of the locks of a group.
#[derive(Clone, Debug, Default)]
pub struct GroupLocks {
    /// The locks.
    pub locks: Vec<GroupLine>,
    /// Whether there are more.
    pub more: bool,
    /// The members that cannot be reached.
    pub away: Vec<Absent>,
    /// The members that did not answer in time.
    pub silent: Vec<String>,
}

/// The state of a group.
#[derive(Clone, Debug)]
pub struct GroupStatus {
    /// What each member that answered says about itself; this node comes first.
    pub nodes: Vec<FullStatus>,
    /// The members that cannot be reached.
    pub away: Vec<Absent>,
    /// The members that did not answer in time.
    pub silent: Vec<String>,
}

/// A lock with the time that is left of its leases.
#[derive(Clone, Debug)]
pub struct LockState {
    /// The report.
    pub report: LockReport,
    /// How much longer the lease of each holder lasts, in milliseconds, where that is known.
    pub expires_in_ms: Vec<Option<u64>>,
    /// The last known holders at members that are away.
    pub last_known: Vec<LastHolder>,
    /// Whether the lock is being recorded, at this node and at the members that have answered.
    pub recording: bool,
}

/// What one member says about its locks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct NodeLocks {
    locks: Vec<NodeLine>,
    more: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct NodeLine {
    #[serde(flatten)]
    line: LockLine,
    expires_in_ms: Option<u64>,
}

/// What one member says about one lock.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct NodeLock {
    /// The leases of sessions that hold the lock, in milliseconds.
    leases: Vec<(u64, u64)>,
    waiters: Vec<Waiter>,
}

/// Answer a question of the service at another member; `None` if it cannot be understood.
pub(super) fn answer(service: &Service, question: &[u8]) -> Option<Vec<u8>> {
    let answer = match serde_json::from_slice(question).ok()? {
        Question::Status => {
            let asked = service.clone();
            service.0.runtime.spawn(async move { asked.try_disk().await }); // For the next time.
            serde_json::to_vec(&service.full_status())
        }
        Question::Locks { prefix, after, by_wait, visible } => {
            let after = after.as_deref().map(Name::new).transpose().ok()?;
            let order = if by_wait { ListOrder::Wait } else { ListOrder::Name };
            let visible: Vec<_> = visible.iter().map(|text| NamePattern::new(text)).collect();
            let matches = |name: &Name| visible.iter().any(|pattern| pattern.matches(name));
            let may = |name: &Name| {
                matches(name) || Window::of(name).is_some_and(|(name, _)| matches(&name))
            };
            serde_json::to_vec(&service.own_locks(&prefix, after.as_ref(), order, may))
        }
        Question::Clock => serde_json::to_vec(&service.wall_ms()),
        Question::Lock(name) => serde_json::to_vec(&service.own_lock(&Name::new(&name).ok()?)),
        Question::Break { lock, fence, by } => {
            let principal = Principal { name: by, uid: None, rights: Rights::default() };
            let lock = Name::new(&lock).ok()?;
            // Without an answer, the other member says that it is not known.
            let broken = service.break_for_member(&Arc::new(principal), &lock, fence).ok()?;
            serde_json::to_vec(&broken)
        }
        Question::Pass(what) => serde_json::to_vec(&service.hear(what)),
    };
    answer.ok()
}

/// The patterns of the locks that a client may inspect, as text.
fn visible(rights: &Rights) -> Vec<String> {
    let seen = rights.0.iter().filter(|allowed| allowed.may.contains(&Right::Inspect));
    seen.map(|allowed| match &allowed.pattern {
        NamePattern::Exact(name) => name.clone(),
        NamePattern::Prefix(prefix) => format!("{prefix}*"),
    })
    .collect()
}

impl Service {
    /// The locks of this node's clients.
    fn own_locks(
        &self,
        prefix: &str,
        after: Option<&Name>,
        order: ListOrder,
        may: impl Fn(&Name) -> bool,
    ) -> NodeLocks {
        let page = self.0.page(prefix, after, order, may);
        let mut lines: Vec<LockLine> =
            page.iter().map(|(name, clients)| line(name, clients)).collect();
        if order == ListOrder::Wait {
            lines.sort_by_key(longest);
        }
        let more = lines.len() > PAGE;
        lines.truncate(PAGE);
        let now = Moment::now_at_node();
        let core = self.0.core.lock();
        let expires = |line: &LockLine| core.sessions.expires(now, line.holder.as_ref()?.session?);
        let line = |line: LockLine| NodeLine { expires_in_ms: expires(&line), line };
        NodeLocks { locks: lines.into_iter().map(line).collect(), more }
    }

    /// What this node knows about one lock and its own clients.
    fn own_lock(&self, lock: &Name) -> NodeLock {
        let (behind, _) = self.0.core.lock().sessions.behind(lock);
        let Some(clients) = self.0.node.clients_of(&behind) else { return NodeLock::default() };
        let now = Moment::now_at_node();
        let core = self.0.core.lock();
        let lease = |session| Some((session, core.sessions.expires(now, session)?));
        let leases = clients.inside.iter().filter_map(|it| lease(it.session?)).take(PAGE).collect();
        let me = self.0.node.name();
        let waiters = clients.waiting.iter().take(PAGE).map(|waiter| here(me, waiter)).collect();
        NodeLock { leases, waiters }
    }

    /// Ask the services at the other members. Returns their answers by their names, each with its
    /// age, and the names of those that did not answer.
    pub(super) async fn ask<T: DeserializeOwned>(
        &self,
        question: &Question,
    ) -> (Vec<(String, T, Instant)>, Vec<String>) {
        let bytes = serde_json::to_vec(question).expect("a question can be written as JSON");
        let mut heard = self.0.node.ask_members(bytes).await;
        let mut answers = Vec::new();
        for (node, bytes, at) in heard.answers {
            match serde_json::from_slice(&bytes) {
                Ok(answer) => answers.push((node, answer, at)),
                Err(_) => heard.silent.push(node),
            }
        }
        answers.sort_by(|one, other| one.0.cmp(&other.0));
        heard.silent.sort_unstable();
        (answers, heard.silent)
    }

    fn away(&self) -> Vec<Absent> {
        let away = self.0.node.away().into_iter();
        away.map(|(node, time)| Absent { node, for_ms: ms(time) }).collect()
    }

    /// Report about every member of the group. This takes half a second if one of them does not
    /// answer.
    pub async fn group(&self) -> GroupStatus {
        let question = Question::Status;
        let ((answers, silent), ()) =
            tokio::join!(self.ask::<FullStatus>(&question), self.try_disk());
        let mut nodes = vec![self.full_status()];
        nodes.extend(answers.into_iter().map(|(_, status, _)| status));
        GroupStatus { nodes, away: self.away(), silent }
    }

    /// List the locks of this node's clients, or of those of the whole group, that a client may
    /// inspect.
    pub async fn list_ordered(
        &self,
        principal: &Principal,
        prefix: &str,
        after: Option<&Name>,
        order: ListOrder,
        group: bool,
    ) -> GroupLocks {
        let may = |name: &Name| principal.rights.may(Right::Inspect, name);
        let question = Question::Locks {
            prefix: prefix.to_owned(),
            after: after.map(Name::to_string),
            by_wait: order == ListOrder::Wait,
            visible: visible(&principal.rights),
        };
        let (answers, silent) =
            if group { self.ask::<NodeLocks>(&question).await } else { Default::default() };
        let mut lists = vec![self.own_locks(prefix, after, order, may)];
        lists.extend(answers.into_iter().map(|(_, list, _)| list));
        let away = if group { self.away() } else { Vec::new() };
        merge(lists, order, away, silent)
    }

    /// Report about one lock as [`Service::inspect`] does, and how long its leases last. Clients
    /// that wait at other members are reported with their place and the answers that they miss.
    pub async fn lock_state(
        &self,
        principal: &Principal,
        lock: &Name,
    ) -> Result<LockState, Refusal> {
        allowed(principal, Right::Inspect, lock)?;
        let (behind, _) = self.0.core.lock().sessions.behind(lock);
        // Before the members are asked: those that answer have begun too.
        let recording = self.0.node.records(&behind);
        let question = Question::Lock(lock.to_string());
        let (report, (answers, _)) =
            tokio::join!(self.inspect(principal, lock), self.ask::<NodeLock>(&question));
        let mut report = report?;
        let mut known: BTreeMap<String, (NodeLock, u64)> = answers
            .into_iter()
            .map(|(node, answer, at)| (node, (answer, ms(at.elapsed()))))
            .collect();
        known.insert(self.0.node.name().to_owned(), (self.own_lock(lock), 0));
        let lease = |node: &str, session: Option<u64>| {
            let (answer, age) = known.get(node)?;
            let (_, left) = answer.leases.iter().find(|(it, _)| Some(*it) == session)?;
            Some(left.saturating_sub(*age))
        };
        let expires_in_ms = report.holders.iter().map(|it| lease(&it.node, it.session)).collect();
        for waiter in report.waiters.iter_mut().filter(|waiter| waiter.place.is_none()) {
            let there = known.get(&waiter.node).map(|(answer, _)| &answer.waiters);
            let same = there.into_iter().flatten().find(|it| it.session == waiter.session);
            if let Some(same) = same {
                (waiter.place, waiter.missing) = (same.place, same.missing.clone());
            }
        }
        let last_known = if report.may_be_held_elsewhere() {
            self.last_holders(principal, lock)?
        } else {
            Vec::new()
        };
        Ok(LockState { report, expires_in_ms, last_known, recording })
    }

    /// Record what one lock does at all members that can be reached, for this long. Returns the
    /// recording, and the members that are missing from it.
    pub async fn record(
        &self,
        principal: &Principal,
        lock: &Name,
        time: Duration,
    ) -> Result<(String, Vec<String>), Refusal> {
        allowed(principal, Right::Inspect, lock)?;
        let (behind, _) = self.0.core.lock().sessions.behind(lock);
        let recorded = self.0.node.record_lock(&behind, time).await;
        let recorded =
            recorded.map_err(|error: RecordError| refusal(Code::Busy, error.to_string()))?;
        Ok((recorded.text, recorded.missing))
    }
}

/// The key by which the lock with the longest wait comes first, then the one held longest.
fn longest(line: &LockLine) -> impl Ord + use<> {
    let held = line.holder.as_ref().map_or(0, |holder| holder.held_ms);
    (std::cmp::Reverse((line.waiting > 0, line.longest_wait_ms, held)), line.lock.clone())
}

/// Put the lists of several members together.
fn merge(
    lists: Vec<NodeLocks>,
    order: ListOrder,
    away: Vec<Absent>,
    silent: Vec<String>,
) -> GroupLocks {
    // What comes after the end of a list that was cut is not known.
    let cut = lists.iter().filter(|list| list.more && order == ListOrder::Name);
    let end = cut.filter_map(|list| list.locks.last()).map(|it| it.line.lock.clone()).min();
    let mut more = lists.iter().any(|list| list.more);
    let mut all: BTreeMap<String, GroupLine> = BTreeMap::new();
    for NodeLine { line, expires_in_ms } in lists.into_iter().flat_map(|list| list.locks) {
        if end.as_ref().is_some_and(|end| line.lock > *end) {
            more = true;
            continue;
        }
        match all.get_mut(&line.lock) {
            None => {
                all.insert(line.lock.clone(), GroupLine { line, expires_in_ms });
            }
            Some(known) => {
                known.line.inside += line.inside;
                known.line.waiting += line.waiting;
                known.line.longest_wait_ms = known.line.longest_wait_ms.max(line.longest_wait_ms);
                if known.line.holder.is_none() {
                    (known.line.holder, known.expires_in_ms) = (line.holder, expires_in_ms);
                }
            }
        }
    }
    let mut locks: Vec<GroupLine> = all.into_values().collect();
    if order == ListOrder::Wait {
        locks.sort_by_key(|it| longest(&it.line));
    }
    more |= locks.len() > PAGE;
    locks.truncate(PAGE);
    GroupLocks { locks, more, away, silent }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(names: &[(&str, u64)], more: bool) -> NodeLocks {
        let line = |(lock, wait): &(&str, u64)| NodeLine {
            line: LockLine {
                lock: (*lock).to_owned(),
                inside: 1,
                waiting: u32::from(*wait > 0),
                holder: None,
                longest_wait_ms: *wait,
            },
            expires_in_ms: None,
        };
        NodeLocks { locks: names.iter().map(line).collect(), more }
    }

    fn names(locks: &GroupLocks) -> Vec<&str> {
        locks.locks.iter().map(|it| it.line.lock.as_str()).collect()
    }

    #[test]
    fn a_list_ends_where_the_first_cut_list_of_a_member_ends() {
        let lists = || vec![list(&[("a", 0), ("c", 0)], true), list(&[("b", 0), ("d", 0)], false)];
        let merged = merge(lists(), ListOrder::Name, Vec::new(), Vec::new());
        assert_eq!((names(&merged), merged.more), (vec!["a", "b", "c"], true));
    }

    #[test]
    fn the_longest_wait_of_any_member_comes_first_and_counts_are_added() {
        let lists = vec![list(&[("a", 5), ("b", 0)], false), list(&[("a", 9), ("c", 7)], false)];
        let merged = merge(lists, ListOrder::Wait, Vec::new(), Vec::new());
        assert_eq!((names(&merged), merged.more), (vec!["a", "c", "b"], false));
        let first = &merged.locks[0].line;
        assert_eq!((first.inside, first.waiting, first.longest_wait_ms), (2, 2, 9));
    }
}
