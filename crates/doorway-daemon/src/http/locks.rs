//! The routes by which locks are acquired, released and broken.

use std::time::Duration;

use axum::extract::{Extension, State};
use axum::http::StatusCode;
use doorway_protocol::{Ask, Mode, Name, Wait};
use doorway_sessions::clock::ms;
use doorway_sessions::{Answer as CallAnswer, Call, LeaseAnswer, LeaseAsk, LeaseKey, UNLIMITED};

use super::api::{Api, Problems};
use super::extract::{Json, Lock};
use super::gate::Caller;
use super::problem::{Kind, Problem};
use super::schemas::{
    AcquireRequest, BreakResponse, FenceRequest, LONGEST_MS, Lease, LockPath, ReleaseResponse,
    RenewRequest, WithdrawRequest, WithdrawResponse,
};
use crate::service::{ASKING, secret};

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
    let patient = body.wait_ms > 0;
    let mode = if body.shared { Mode::Shared } else { Mode::Exclusive };
    let wait = if patient { Wait::Forever } else { Wait::No };
    let ask = Ask { lock: lock.clone(), mode, permits: body.permits, wait };
    let lease = LeaseAsk {
        ask,
        key: body.request_id.map(check_id).transpose()?.map(LeaseKey::Request),
        ttl_ms: body.ttl_ms,
        unattended: false,
        label: body.label,
        remote: caller.remote,
        secret: secret(),
    };
    let time = if patient { Duration::from_millis(body.wait_ms.into()) } else { ASKING };
    match ask_for(&api, &caller, lease, time).await {
        CallAnswer::Refused(refusal) => Err(api.service.explained(&lock, refusal).await.into()),
        answer => lease_of(&lock, answer),
    }
}

/// Ask for a lock, and wait for the answer for this long.
pub(crate) async fn ask_for(
    api: &Api,
    caller: &Caller,
    lease: LeaseAsk,
    time: Duration,
) -> CallAnswer {
    let call = Call::Acquire(Box::new(lease));
    api.service.call(&caller.principal, call).answer_within(time).await
}

/// The response to a call that acquires or renews a lease.
fn lease_of(lock: &Name, answer: CallAnswer) -> Answer<Lease> {
    let LeaseAnswer { fence, session, ttl, .. } = match answer {
        CallAnswer::Leased(lease) => lease,
        CallAnswer::Refused(refusal) => return Err(refusal.into()),
        CallAnswer::Different(refusal) => {
            return Err(Problem::invalid(refusal.text).with(StatusCode::UNPROCESSABLE_ENTITY));
        }
        _ => return Err(unexpected()),
    };
    let ttl_ms = (ttl != UNLIMITED).then(|| ms(ttl));
    Ok(axum::Json(Lease {
        lock: lock.to_string(),
        fence,
        view: fence.view(),
        session,
        ttl_ms,
        expires_in_ms: ttl_ms,
    }))
}

/// An answer that does not fit its call, which never comes.
pub(crate) fn unexpected() -> Problem {
    Problem::new(Kind::Unavailable, "the node gave an answer that does not fit the request")
}

fn check_id(id: String) -> Result<String, Problem> {
    if (1..=200).contains(&id.chars().count()) {
        return Ok(id);
    }
    Err(Problem::invalid("a request_id has 1 to 200 characters"))
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
    let call = Call::Renew(lock.clone(), body.fence, ttl);
    lease_of(&lock, api.service.call(&caller.principal, call).answer().await)
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
    let call = Call::Release(lock, body.fence);
    match api.service.call(&caller.principal, call).answer().await {
        CallAnswer::Released(released) => Ok(axum::Json(ReleaseResponse { released })),
        CallAnswer::Refused(refusal) => Err(refusal.into()),
        _ => Err(unexpected()),
    }
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
    let call = Call::Withdraw(lock, check_id(body.request_id)?);
    match api.service.call(&caller.principal, call).answer().await {
        CallAnswer::Withdrawn(withdrawn) => Ok(axum::Json(WithdrawResponse { withdrawn })),
        CallAnswer::Refused(refusal) => Err(refusal.into()),
        _ => Err(unexpected()),
    }
}

/// Take a lock from its holder.
///
/// The fence confirms which grant is meant: it has to be the one with which a client holds the lock
/// now. The holder may be a client of another member, to which the request is passed on. The right
/// to break the lock is checked at the node that gets the request.
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
    api.service.break_for(&caller.operator(), &lock, body.fence).await?;
    Ok(axum::Json(BreakResponse { broken: true }))
}
