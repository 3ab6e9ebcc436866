//! Locks of Terraform and `OpenTofu`, whose backend `http` locks a state before it is changed.
//!
//! Such a client describes its lock in JSON, and unlocks it by the ID in that. It sends no
//! heartbeats, so its lease is as long as `limits.terraform_ttl` says. The description of the
//! session has what others are told about the lock. It is in the ledger, and the other members can
//! ask for it. So this module keeps nothing.

use axum::extract::{Extension, State};
use axum::http::{Method, Request, StatusCode};
use axum::response::{IntoResponse as _, Response};
use doorway_protocol::text::cut;
use doorway_protocol::{Ask, Code, Fence, Holder, LockReport, Mode, Name, Wait};
use doorway_sessions::principal::Right;
use doorway_sessions::{Answer, Call, LeaseAsk, allowed};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use utoipa::ToSchema;

use super::api::{Api, Problems};
use super::extract::{Json, JsonOrNothing, Lock};
use super::gate::Caller;
use super::locks::{ask_for, unexpected};
use super::problem::{Kind, Problem};
use super::schemas::LockPath;
use crate::service::{ASKING, secret};

/// What the paths of these locks begin with.
const PREFIX: &str = "/v1/terraform/";

/// What the description of a client begins with if it is Terraform.
const MARK: &str = "terraform ";

/// How many characters an ID may have. Terraform makes UUIDs, which have 36.
const ID: usize = 64;

/// Terraform calls POST and DELETE by the names LOCK and UNLOCK, unless its configuration says
/// otherwise. `OpenAPI` does not have those two methods, so the routes do not either.
pub(crate) fn translate_method<T>(request: &mut Request<T>) {
    if request.uri().path().starts_with(PREFIX) {
        match request.method().as_str() {
            "LOCK" => *request.method_mut() = Method::POST,
            "UNLOCK" => *request.method_mut() = Method::DELETE,
            _ => {}
        }
    }
}

/// A lock as Terraform describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct TerraformLock {
    /// The ID that Terraform has chosen for this lock.
    #[serde(rename = "ID")]
    #[schema(min_length = 1, max_length = 64, pattern = "^[!-+\\--~]{1,64}$")]
    id: String,
    /// What Terraform does.
    #[serde(default)]
    operation: String,
    /// More about the lock, for people. The node does not keep what Terraform says here.
    #[serde(default)]
    info: String,
    /// The user and the machine.
    #[serde(default)]
    who: String,
    /// The version of Terraform.
    #[serde(default)]
    version: String,
    /// When Terraform made the lock, in the format of RFC 3339.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    created: String,
    /// In a response this is the name of the lock. The node does not keep what Terraform says here.
    #[serde(default)]
    path: String,
}

impl TerraformLock {
    /// Refuse an ID that the description of a session cannot have.
    fn check(&self) -> Result<(), Problem> {
        let fits = |byte: u8| byte.is_ascii_graphic() && byte != b',';
        if (1..=ID).contains(&self.id.len()) && self.id.bytes().all(fits) {
            return Ok(());
        }
        let text = format!(
            "the ID of a Terraform lock has 1 to {ID} ASCII characters, without spaces and commas"
        );
        Err(Problem::invalid(text))
    }

    /// The lock in the description of a session. A description that is too long is cut at its end,
    /// where the least important field is.
    fn label(&self) -> String {
        let part = |text: &str, most| cut(text, most).replace([',', '(', ')'], " ");
        format!(
            "{MARK}{}, {}, {}, {}, {}",
            self.id,
            part(&self.created, 30),
            part(&self.version, 12),
            part(&self.who, 60),
            part(&self.operation, 30),
        )
    }

    /// The lock that a description shows, if it is the description of Terraform.
    fn read(description: &str, lock: &Name) -> Option<Self> {
        let fields = description.strip_prefix(MARK)?;
        let fields = fields.split(" (").next()?; // The node may have added the user.
        let mut fields = fields.split(", ").map(str::to_owned);
        let (id, created) = (fields.next()?, fields.next()?);
        let (version, who, operation) = (fields.next()?, fields.next()?, fields.next()?);
        let is_time = OffsetDateTime::parse(&created, &Rfc3339).is_ok();
        // Terraform does not read a lock with a malformed time.
        let created = if is_time { created } else { String::new() };
        let (info, path) = (String::new(), lock.to_string());
        Some(Self { id, operation, info, who, version, created, path })
    }

    /// The lock that a client holds, which need not be Terraform.
    fn of(holder: &Holder, lock: &Name) -> Self {
        Self::read(&holder.client, lock).unwrap_or_else(|| Self {
            id: holder.fence.to_string(),
            info: format!(
                "held by a client that is not Terraform; the ID is its fence: see `doorway who \
                 {lock}`"
            ),
            who: holder.client.clone(),
            path: lock.to_string(),
            ..Self::default()
        })
    }

    /// What a client is told about the holders of a lock.
    fn shown(caller: &Caller, lock: &Name, report: &LockReport) -> Self {
        let unknown = |id: &str, info: &str| Self {
            id: id.to_owned(),
            info: info.to_owned(),
            path: lock.to_string(),
            ..Self::default()
        };
        if !caller.principal.rights.may(Right::Inspect, lock) {
            return unknown("hidden", "this client does not have the right to inspect the lock");
        }
        match report.holders.first() {
            Some(holder) => Self::of(holder, lock),
            None => unknown("unknown", "the lock was not free, but it may be free now"),
        }
    }

    /// The fence of this lock, if one of these holders has it.
    fn fence(&self, lock: &Name, report: &LockReport) -> Option<Fence> {
        let same = |holder: &&Holder| {
            Self::read(&holder.client, lock).is_some_and(|held| held.id == self.id)
        };
        report.holders.iter().find(same).map(|holder| holder.fence)
    }
}

/// Lock a state for Terraform.
///
/// This is the `lock_address` of the backend `http`. The method LOCK, which Terraform uses unless
/// its configuration says otherwise, does the same as POST. The request does not wait. The lock is
/// held until it is unlocked, at most for `limits.terraform_ttl`. If Terraform repeats the request
/// with the same ID, it still has the lock.
#[utoipa::path(
    post, path = "/v1/terraform/{name}", operation_id = "terraform-lock", tag = "terraform",
    params(LockPath),
    request_body = TerraformLock,
    responses(
        Problems,
        (status = 200, description = "The lock is held.", body = TerraformLock),
        (status = 423, description = "Another client holds the lock, which is described.",
         body = TerraformLock),
    ),
)]
pub(crate) async fn lock(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    Lock(lock): Lock,
    Json(body): Json<TerraformLock>,
) -> Result<Response, Problem> {
    body.check()?;
    let ask = Ask { lock: lock.clone(), mode: Mode::Exclusive, permits: Some(1), wait: Wait::No };
    let lease = LeaseAsk {
        ask,
        // A repeated request finds its lock by the ID in the description. A key would keep a place
        // in the queue for a Terraform that has given up.
        key: None,
        ttl_ms: Some(u32::MAX),
        unattended: true,
        label: body.label(),
        remote: caller.remote,
        secret: secret(),
    };
    let mut answer = ask_for(&api, &caller, lease, ASKING).await;
    if let Answer::Refused(refusal) = answer {
        let refusal = api.service.explained(&lock, refusal).await;
        if refusal.code != Code::NotFree {
            return Err(refusal.into());
        }
        let report = api.service.report(&lock).await;
        let Some(fence) = body.fence(&lock, &report) else {
            return Ok(locked(&caller, &lock, &report));
        };
        answer = renew(&api, &caller, &lock, fence).await;
        if is_gone(&answer) {
            // It belongs to another client, or to a client of another member.
            return Ok(locked(&caller, &lock, &report));
        }
    }
    let lease = match answer {
        Answer::Leased(lease) => lease,
        Answer::Refused(refusal) => return Err(refusal.into()),
        _ => return Err(unexpected()),
    };
    let fence = (!lease.renewed).then_some(lease.fence);
    let mut unknown = UnknownLock { api: &api, caller: &caller, lock: &lock, fence };
    api.service.sync_ledger().await?;
    // Somebody may have released or broken the lock meanwhile.
    match renew(&api, &caller, &lock, lease.fence).await {
        Answer::Leased(_) => {}
        answer if is_gone(&answer) => {
            let report = api.service.report(&lock).await;
            return Ok(locked(&caller, &lock, &report));
        }
        Answer::Refused(refusal) => return Err(refusal.into()),
        _ => return Err(unexpected()),
    }
    unknown.fence = None;
    let held = TerraformLock { path: lock.to_string(), ..body };
    Ok(axum::Json(held).into_response())
}

/// Renew the lease of a lock with this fence.
async fn renew(api: &Api, caller: &Caller, lock: &Name, fence: Fence) -> Answer {
    let renew = Call::Renew(lock.clone(), fence, None);
    api.service.call(&caller.principal, renew).answer().await
}

fn is_gone(answer: &Answer) -> bool {
    matches!(answer, Answer::Refused(refusal) if refusal.code == Code::Gone)
}

/// The answer that another client holds the lock.
fn locked(caller: &Caller, lock: &Name, report: &LockReport) -> Response {
    let held = TerraformLock::shown(caller, lock, report);
    (StatusCode::LOCKED, axum::Json(held)).into_response()
}

/// A lock that Terraform does not know of yet. It is released if Terraform never learns of it,
/// because it has gone or because of an error.
struct UnknownLock<'a> {
    api: &'a Api,
    caller: &'a Caller,
    lock: &'a Name,
    fence: Option<Fence>,
}

impl Drop for UnknownLock<'_> {
    fn drop(&mut self) {
        if let Some(fence) = self.fence {
            let release = Call::Release(self.lock.clone(), fence);
            // Nobody waits for the answer.
            drop(self.api.service.call(&self.caller.principal, release));
        }
    }
}

/// Unlock a state for Terraform.
///
/// This is the `unlock_address` of the backend `http`. The method UNLOCK does the same as DELETE.
/// Only the ID of the body counts. The client that has locked the state may unlock it, and so may a
/// client with the right to break the lock.
#[utoipa::path(
    delete, path = "/v1/terraform/{name}", operation_id = "terraform-unlock", tag = "terraform",
    params(LockPath),
    request_body = TerraformLock,
    responses(
        Problems,
        (status = 200, description = "The lock is free.", body = TerraformLock),
        (status = 409, description = "The lock is held with another ID, and is described.",
         body = TerraformLock),
    ),
)]
pub(crate) async fn unlock(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    Lock(lock): Lock,
    JsonOrNothing(body): JsonOrNothing<TerraformLock>,
) -> Result<Response, Problem> {
    let report = api.service.report(&lock).await;
    let (fence, released) = match &body {
        Some(body) => {
            body.check()?;
            let fence = body.fence(&lock, &report);
            (fence, release(&api, &caller, &lock, fence).await?)
        }
        // With `force-unlock` some versions send no ID. That breaks whatever lock there is.
        None => (report.holders.first().map(|holder| holder.fence), false),
    };
    if !released {
        let Some(fence) = fence else {
            allowed(&caller.principal, Right::Acquire, &lock)?;
            if report.holders.is_empty() {
                return Err(not_held(&lock, &report));
            }
            let held = TerraformLock::shown(&caller, &lock, &report);
            return Ok((StatusCode::CONFLICT, axum::Json(held)).into_response());
        };
        // It belongs to another client, or to a client of another member.
        api.service.break_for(&caller.operator(), &lock, fence).await?;
    }
    // Otherwise the lock could be held again after a crash of the machine.
    api.service.sync_ledger().await?;
    let free = TerraformLock { path: lock.to_string(), ..body.unwrap_or_default() };
    Ok(axum::Json(free).into_response())
}

/// Release a lock with this fence. False if this client does not hold it at this node.
async fn release(
    api: &Api,
    caller: &Caller,
    lock: &Name,
    fence: Option<Fence>,
) -> Result<bool, Problem> {
    let Some(fence) = fence else { return Ok(false) };
    let release = Call::Release(lock.clone(), fence);
    match api.service.call(&caller.principal, release).answer().await {
        Answer::Released(released) => Ok(released),
        Answer::Refused(refusal) => Err(refusal.into()),
        _ => Err(unexpected()),
    }
}

/// Why a lock that nobody is known to hold cannot be unlocked.
fn not_held(lock: &Name, report: &LockReport) -> Problem {
    let away = report.away.iter().map(|absent| &absent.node);
    let missing: Vec<_> = away.chain(&report.silent).map(String::as_str).collect();
    if missing.is_empty() {
        let text = format!(
            "`{lock}` is not held: it was unlocked or broken, or was held for longer than \
             `limits.terraform_ttl`"
        );
        return Problem::new(Kind::Gone, text);
    }
    let missing = missing.join(", ");
    let text = format!("it is not known who holds `{lock}`: no answer from {missing}; try again");
    Problem::new(Kind::Unavailable, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock() -> TerraformLock {
        TerraformLock {
            id: "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9".to_owned(),
            operation: "OperationTypeApply".to_owned(),
            info: String::new(),
            who: "alice@build-7".to_owned(),
            version: "1.11.4".to_owned(),
            created: "2026-11-17T15:49:57.123456789Z".to_owned(),
            path: "a/b".to_owned(),
        }
    }

    #[test]
    fn a_description_shows_the_lock() {
        let name = Name::new("a/b").unwrap();
        let label = lock().label();
        for description in [label.clone(), format!("{label} (uid 1000)")] {
            assert_eq!(TerraformLock::read(&description, &name), Some(lock()));
        }
        let strange = TerraformLock {
            who: "a, b (uid 0), c".to_owned(),
            created: "yesterday, or so".to_owned(),
            ..lock()
        };
        let read = TerraformLock::read(&strange.label(), &name).unwrap();
        let expected =
            TerraformLock { who: "a  b  uid 0   c".to_owned(), created: String::new(), ..lock() };
        assert_eq!(read, expected);
        for other in ["", "terraform", "terraform apply", "nightly, a, b, c, d, e"] {
            assert_eq!(TerraformLock::read(other, &name), None);
        }
    }

    #[test]
    fn an_id_is_one_word() {
        for id in ["", "a b", "a,b", "ä", "a\n", &"x".repeat(65)] {
            let lock = TerraformLock { id: id.to_owned(), ..lock() };
            assert!(lock.check().is_err(), "{id:?}");
        }
        assert!(TerraformLock { id: "x".repeat(64), ..lock() }.check().is_ok());
    }
}
