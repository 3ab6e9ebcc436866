//! The routes of locks.

use std::pin::pin;
use std::time::Duration;

use axum::extract::{Extension, State};
use doorway_protocol::{Fence, LockReport, Locks, Name, Refusal, Wait};
use tokio::time::{Instant, sleep, sleep_until};

use super::api::{Api, Problems};
use super::extract::{Json, Lock, UrlQuery};
use super::gate::Caller;
use super::leases::{LeaseRequest, ended_unused};
use super::problem::{Kind, Problem};
use super::schemas::{
    AcquireRequest, BreakResponse, FenceRequest, LONGEST_MS, Lease, ListQuery, LockPath,
    ReleaseResponse, RenewRequest, WithdrawRequest, WithdrawResponse,
};
use crate::clock::ms;
use crate::service::{Session, Standing};

/// How long a request that does not wait for the lock may wait for the answers of other nodes.
const ASKING: Duration = Duration::from_secs(5);

/// How often a request is tried again whose lease ends just when the request is repeated.
const TRIES: u32 = 3;

type Answer<T> = Result<axum::Json<T>, Problem>;

/// Acquire a lock.
///
/// The response comes when the lock is granted, or with 409 after `wait_ms`. The lease does not end
/// while the request waits; after the grant it has to be renewed within `ttl_ms`. A client that
/// disconnects keeps its place in the queue for `ttl_ms` and finds it again by its `request_id`.
#[utoipa::path(
    post, path = "/v1/locks/{name}/acquire", operation_id = "acquire", tag = "locks",
    params(LockPath),
    request_body = AcquireRequest,
    responses((status = 200, description = "The lock is held.", body = Lease), Problems),
)]
pub(crate) async fn acquire(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    Lock(lock): Lock,
    Json(body): Json<AcquireRequest>,
) -> Answer<Lease> {
    if body.wait_ms > LONGEST_MS {
        let text = format!(
            "wait_ms may be {LONGEST_MS} at most; to wait longer, repeat the request with its \
             request_id"
        );
        return Err(Problem::invalid(text));
    }
    let until = Instant::now() + Duration::from_millis(body.wait_ms.into());
    let mut tries = TRIES;
    loop {
        let made = api.leases.request(&caller, &lock, &body)?;
        let mut leaving = Leaving { api: &api, made: &made, done: false };
        tries -= 1;
        match wait(&api, &made, body.wait_ms > 0, until).await {
            Some(Ok(fence)) => {
                // The client is connected, so the time to live begins now.
                api.service.alive(&made.session)?;
                leaving.done = true;
                return Ok(lease(&lock, fence, &made.session));
            }
            Some(Err(refusal)) if tries > 0 && ended_unused(&made, &refusal) => {}
            Some(Err(refusal)) => {
                api.leases.drop_idle(&made);
                return Err(refusal.into());
            }
            // A grant of the last moment is returned, also if a copy of this request was granted.
            None => match made.standing() {
                Standing::Granted if made.may_come_again() => {}
                standing => return Err(not_in_time(&api, &made, body.wait_ms > 0, standing)),
            },
        }
    }
}

/// Withdraws a request without a `request_id` when its client disconnects: nobody could find it
/// again.
struct Leaving<'a> {
    api: &'a Api,
    made: &'a LeaseRequest,
    done: bool,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if !self.done && !self.made.may_come_again() {
            self.api.leases.withdraw(self.made);
        }
    }
}

/// Wait for the answer; `None` if it does not come in time.
async fn wait(
    api: &Api,
    made: &LeaseRequest,
    patient: bool,
    until: Instant,
) -> Option<Result<Fence, Refusal>> {
    let fresh = !patient && !made.is_waiting();
    let until = if fresh { Instant::now() + ASKING } else { until };
    let wait = if patient { Wait::Forever } else { Wait::No };
    let mut answer = pin!(api.service.acquire_wait(&made.session, made.number, made.ask(wait)));
    loop {
        let pause = made.session.ttl() / 4;
        tokio::select! {
            biased;
            answer = &mut answer => return Some(answer),
            () = sleep_until(until) => return None,
            // A client that waits here is alive; if it disconnects, the lease runs out.
            () = sleep(pause) => drop(api.service.alive(&made.session)),
        }
    }
}

/// The answer to a request that was not granted in time. One that can be repeated keeps its place
/// in the queue for a while.
fn not_in_time(api: &Api, made: &LeaseRequest, patient: bool, standing: Standing) -> Problem {
    let lock = &made.lock;
    if !made.may_come_again() || standing != Standing::Waiting {
        // Only the lease of this request: a copy of it may arrive at this moment.
        api.leases.drop_idle(made);
        let when = if patient { "was not free in time" } else { "is not free" };
        return Problem::new(Kind::NotFree, format!("`{lock}` {when}"));
    }
    let _ = api.service.alive(&made.session); // Its time to live begins now.
    let text = format!(
        "`{lock}` was not free in time; the request keeps its place for {} ms: ask again with the \
         same request_id, or withdraw it",
        ms(made.session.ttl())
    );
    Problem::new(Kind::NotFree, text)
}

fn lease(lock: &Name, fence: Fence, session: &Session) -> axum::Json<Lease> {
    let ttl_ms = ms(session.ttl());
    axum::Json(Lease {
        lock: lock.to_string(),
        fence,
        view: fence.view(),
        session: session.id().0,
        ttl_ms,
        expires_in_ms: ttl_ms,
    })
}

/// Renew the lease of a grant.
///
/// The lease then ends after `ttl_ms`, unless it is renewed again. This also works after a crash of
/// the node. 404 means that the grant does not exist any more: the client must stop using what the
/// lock protects.
#[utoipa::path(
    post, path = "/v1/locks/{name}/renew", operation_id = "renew", tag = "locks",
    params(LockPath),
    request_body = RenewRequest,
    responses((status = 200, description = "The lock is still held.", body = Lease), Problems),
)]
pub(crate) async fn renew(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    Lock(lock): Lock,
    Json(body): Json<RenewRequest>,
) -> Answer<Lease> {
    let ttl = body.ttl_ms.map(|ttl| Duration::from_millis(ttl.into()));
    let session = api.service.renew_for(&caller.principal, &lock, body.fence, ttl)?;
    Ok(lease(&lock, body.fence, &session))
}

/// Release a grant.
///
/// This may be repeated any number of times, and never releases a grant with another fence.
#[utoipa::path(
    post, path = "/v1/locks/{name}/release", operation_id = "release", tag = "locks",
    params(LockPath),
    request_body = FenceRequest,
    responses(
        (status = 200, description = "The grant is not held any more.", body = ReleaseResponse),
        Problems,
    ),
)]
pub(crate) async fn release(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    Lock(lock): Lock,
    Json(body): Json<FenceRequest>,
) -> Answer<ReleaseResponse> {
    let released = api.service.release_loose(&caller.principal, &lock, body.fence);
    Ok(axum::Json(ReleaseResponse { released }))
}

/// Withdraw a request.
///
/// The request leaves the queue, or releases the lock if it was granted.
#[utoipa::path(
    post, path = "/v1/locks/{name}/withdraw", operation_id = "withdraw", tag = "locks",
    params(LockPath),
    request_body = WithdrawRequest,
    responses(
        (status = 200, description = "The request does not wait and holds nothing.",
         body = WithdrawResponse),
        Problems,
    ),
)]
pub(crate) async fn withdraw(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    Lock(lock): Lock,
    Json(body): Json<WithdrawRequest>,
) -> Answer<WithdrawResponse> {
    let withdrawn = api.leases.withdraw_id(&caller, &lock, &body.request_id)?;
    Ok(axum::Json(WithdrawResponse { withdrawn }))
}

/// Take a lock from its holder.
///
/// The fence confirms which grant is meant: it has to be the one with which a client of this node
/// holds the lock now.
#[utoipa::path(
    post, path = "/v1/locks/{name}/break", operation_id = "break", tag = "locks",
    params(LockPath),
    request_body = FenceRequest,
    responses(
        (status = 200, description = "The lock was taken from its holder.", body = BreakResponse),
        Problems,
    ),
)]
pub(crate) async fn break_lock(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    Lock(lock): Lock,
    Json(body): Json<FenceRequest>,
) -> Answer<BreakResponse> {
    api.service.break_lock(&caller.principal, &lock, body.fence).await?;
    Ok(axum::Json(BreakResponse { broken: true }))
}

/// Get the state of one lock.
///
/// The response lists who holds the lock and since when, and who waits for it, at all nodes that
/// answer.
#[utoipa::path(
    get, path = "/v1/locks/{name}", operation_id = "inspect", tag = "locks",
    params(LockPath),
    responses((status = 200, description = "The state of the lock.", body = LockReport), Problems),
)]
pub(crate) async fn inspect(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    Lock(lock): Lock,
) -> Answer<LockReport> {
    Ok(axum::Json(api.service.inspect(&caller.principal, &lock).await?))
}

/// List the locks that clients of this node hold or wait for.
///
/// The list is in the order of names, one page at a time, and has only locks that the client may
/// inspect.
#[utoipa::path(
    get, path = "/v1/locks", operation_id = "list", tag = "locks",
    params(ListQuery),
    responses((status = 200, description = "A page of locks.", body = Locks), Problems),
)]
pub(crate) async fn list(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    UrlQuery(query): UrlQuery<ListQuery>,
) -> Answer<Locks> {
    let after = match query.after.as_str() {
        "" => None,
        text => Some(Name::new(text).map_err(|error| {
            Problem::invalid(format!("`after` has to be a name of the previous page: {error}"))
        })?),
    };
    Ok(axum::Json(api.service.list(&caller.principal, &query.prefix, after.as_ref())))
}
