//! The routes that look at locks, at this node or at all members of the group.

use std::time::Duration;

use axum::extract::{Extension, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use doorway_node::LONGEST_RECORDING;
use doorway_protocol::{Absent, Holder, LastHolder, LockLine, Name, Waiter};
use serde::Serialize;
use utoipa::ToSchema;

use super::api::{Api, Problems};
use super::extract::{Json, Lock, UrlQuery};
use super::gate::Caller;
use super::problem::Problem;
use super::schemas::{ListQuery, LockPath, OrderText, RecordRequest};
use crate::service::{FullStatus, GroupLine, GroupLocks, GroupStatus, ListOrder, LockState};

/// The content type of a recording: one JSON object a line.
const LINES: &str = "application/x-ndjson";

/// The header that names the members from which nothing was recorded.
const MISSING: &str = "doorway-missing";

type Answer<T> = Result<axum::Json<T>, Problem>;

/// A client that holds a lock, and the time that is left of its lease.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct LeaseHolder {
    #[serde(flatten)]
    holder: Holder,
    /// How much longer the holder's session lives if its client is not heard any more, in
    /// milliseconds. Absent if the session lives as long as its process, or if the time is not
    /// known.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_in_ms: Option<u64>,
}

/// The state of a lock, as this node sees it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct LockView {
    /// The name of the lock.
    lock: String,
    /// The algorithm by which the nodes agree on who holds the lock.
    algorithm: String,
    /// How many clients may hold the lock at once.
    permits: u32,
    /// The number of the current view; none while the members agree on the next view.
    view: Option<u64>,
    /// The clients that hold the lock.
    holders: Vec<LeaseHolder>,
    /// The clients that wait for the lock. Those of this node come first, in the order of its
    /// queue.
    waiters: Vec<Waiter>,
    /// The members that cannot be reached.
    away: Vec<Absent>,
    /// The names of the members that did not answer in time.
    silent: Vec<String>,
    /// The clients that held the lock at members that cannot be reached, when this node heard of it
    /// last.
    last_known: Vec<LastHolder>,
    /// True while `record` records the lock at this node and at all members that are neither away
    /// nor silent.
    recording: bool,
}

impl From<LockState> for LockView {
    fn from(LockState { report, expires_in_ms, last_known, recording }: LockState) -> Self {
        let holders = report.holders.into_iter().zip(expires_in_ms);
        Self {
            lock: report.lock,
            algorithm: report.algorithm,
            permits: report.permits,
            view: report.view,
            holders: holders
                .map(|(holder, expires_in_ms)| LeaseHolder { holder, expires_in_ms })
                .collect(),
            waiters: report.waiters,
            away: report.away,
            silent: report.silent,
            last_known,
            recording,
        }
    }
}

/// A lock in one line of a list.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct LockRow {
    /// The name of the lock.
    lock: String,
    /// How many clients hold the lock.
    inside: u32,
    /// How many clients wait for the lock.
    waiting: u32,
    /// One of the clients that hold the lock.
    holder: Option<LeaseHolder>,
    /// For how long the longest waiting client has waited, in milliseconds.
    longest_wait_ms: u64,
}

impl From<GroupLine> for LockRow {
    fn from(GroupLine { line, expires_in_ms }: GroupLine) -> Self {
        let LockLine { lock, inside, waiting, holder, longest_wait_ms } = line;
        let holder = holder.map(|holder| LeaseHolder { holder, expires_in_ms });
        Self { lock, inside, waiting, holder, longest_wait_ms }
    }
}

/// One page of a list of locks.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct LockList {
    /// The locks, in the order that was asked for.
    locks: Vec<LockRow>,
    /// True if there are more locks. In the order of names, ask for the locks after the last one of
    /// this page.
    more: bool,
    /// The members that cannot be reached, and whose locks may be missing. Empty for a list of one
    /// node.
    away: Vec<Absent>,
    /// The names of the members that did not answer in time, and whose locks may be missing.
    silent: Vec<String>,
}

impl From<GroupLocks> for LockList {
    fn from(GroupLocks { locks, more, away, silent }: GroupLocks) -> Self {
        Self { locks: locks.into_iter().map(LockRow::from).collect(), more, away, silent }
    }
}

/// The state of every member of the group.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct GroupReport {
    /// The status of each member that answered. The node that was asked comes first.
    nodes: Vec<FullStatus>,
    /// How the members are arranged for the locks of each rule that arranges them, as the asked
    /// node has it: one line for each rule.
    arranged: Vec<String>,
    /// The members that the asked node cannot reach, and for how long.
    away: Vec<Absent>,
    /// The names of the members that did not answer in time.
    silent: Vec<String>,
}

/// Get the state of one lock.
///
/// The response lists who holds the lock and since when, and who waits for it, at all nodes that
/// answer.
#[utoipa::path(
    get, path = "/v1/locks/{name}", operation_id = "inspect", tag = "locks",
    params(LockPath),
    responses((status = 200, description = "The state of the lock.", body = LockView), Problems),
)]
pub(crate) async fn inspect(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    Lock(lock): Lock,
) -> Answer<LockView> {
    Ok(axum::Json(api.service.lock_state(&caller.principal, &lock).await?.into()))
}

/// List locks that are held or waited for.
///
/// The list has the locks of this node's clients, or with `group=true` those of all members, and
/// only locks that the client may inspect. It comes in the order of names, one page at a time, or
/// with `order=wait` beginning with the longest wait.
#[utoipa::path(
    get, path = "/v1/locks", operation_id = "list", tag = "locks",
    params(ListQuery),
    responses((status = 200, description = "A page of locks.", body = LockList), Problems),
)]
pub(crate) async fn list(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    UrlQuery(query): UrlQuery<ListQuery>,
) -> Answer<LockList> {
    let order = match query.order {
        OrderText::Name => ListOrder::Name,
        OrderText::Wait => ListOrder::Wait,
    };
    let after = match query.after.as_str() {
        "" => None,
        _ if order == ListOrder::Wait => {
            return Err(Problem::invalid(
                "`after` needs `order=name`: the order changes all the time",
            ));
        }
        text => Some(Name::new(text).map_err(|error| {
            Problem::invalid(format!("`after` has to be a name of the previous page: {error}"))
        })?),
    };
    let ListQuery { prefix, group, .. } = query;
    let list =
        api.service.list_ordered(&caller.principal, &prefix, after.as_ref(), order, group).await;
    Ok(axum::Json(list.into()))
}

/// Record what one lock does.
///
/// The response comes after `for_ms`: the messages that the members send each other about the lock,
/// and who enters and leaves, in the format that `doorway diagram --recorded` reads. It has no
/// names of clients. Each member records 256 kB at most. The header `doorway-missing` names the
/// members from which nothing came.
#[utoipa::path(
    post, path = "/v1/locks/{name}/record", operation_id = "record", tag = "locks",
    params(LockPath),
    request_body = RecordRequest,
    responses(
        (status = 200, description = "The recording, one JSON object a line.",
         content_type = "application/x-ndjson", body = String),
        Problems,
    ),
)]
pub(crate) async fn record(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    Lock(lock): Lock,
    Json(body): Json<RecordRequest>,
) -> Result<impl IntoResponse, Problem> {
    let time = Duration::from_millis(body.for_ms.into());
    if time > LONGEST_RECORDING {
        let most = LONGEST_RECORDING.as_millis();
        return Err(Problem::invalid(format!("for_ms may be {most} at most")));
    }
    let (text, missing) = api.service.record(&caller.principal, &lock, time).await?;
    let head = [(CONTENT_TYPE.as_str(), LINES.to_owned()), (MISSING, missing.join(", "))];
    Ok((head.map(|(name, value)| (name.to_owned(), value)), text))
}

/// Get the status of all members of the group.
///
/// The other members have half a second to answer. The response says which of them did not, and
/// which cannot be reached and for how long.
#[utoipa::path(
    get, path = "/v1/group", operation_id = "group", tag = "node",
    responses(
        (status = 200, description = "The state of the group.", body = GroupReport),
        Problems,
    ),
)]
pub(crate) async fn group(State(api): State<Api>) -> axum::Json<GroupReport> {
    let GroupStatus { nodes, away, silent } = api.service.group().await;
    let arranged = api.service.node().arrangements();
    axum::Json(GroupReport { nodes, arranged, away, silent })
}
