//! Notes what operators did, in the audit log of the group.

use std::net::IpAddr;
use std::sync::Arc;

use doorway_node::members::{Answer, BoxedFuture, Command};
use doorway_protocol::{AuditEntry, Code, Fence, MembersRequest, Name, Refusal};
use doorway_sessions::principal::Principal;
use doorway_sessions::refusals::refusal;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::time::sleep;

use super::Members;
use super::change::{ATTEMPTS, PAUSE, owner};
use crate::service::Service;

/// How many entries one answer has at most.
const PAGE: usize = 200;

/// How many locks may be broken at the same time.
pub(super) const NOTES: usize = 256;

/// Who asked for something, and from where.
#[derive(Clone, Debug)]
pub(crate) struct Operator {
    pub(crate) principal: Arc<Principal>,
    /// The address of a client that came over TCP.
    pub(crate) from: Option<IpAddr>,
}

impl Service {
    /// Take a lock from the session that holds it with this fence, on behalf of an operator. A
    /// group that agrees on its members notes it.
    pub(crate) async fn break_for(
        &self,
        operator: &Operator,
        lock: &Name,
        fence: Fence,
    ) -> Result<(), Refusal> {
        let Some(members) = self.store() else {
            return self.break_lock(&operator.principal, lock, fence).await;
        };
        let Ok(noting) = Arc::clone(&members.noting).try_acquire_owned() else {
            let text = format!("{NOTES} locks are being broken at this node, the limit; try again");
            return Err(refusal(Code::Busy, text));
        };
        let (service, operator, lock) = (self.clone(), operator.clone(), lock.clone());
        let broken = async move {
            let result = service.break_lock(&operator.principal, &lock, fence).await;
            // A client without the right must not fill the log.
            let forbidden = |refusal: &Refusal| refusal.code == Code::Forbidden;
            let members = service.store().filter(|_| !result.as_ref().is_err_and(forbidden));
            if let Some(members) = members {
                members.note(&operator, format!("break {lock} --fence {fence}"), &result).await;
            }
            drop(noting);
            result
        };
        to_its_end(Box::pin(broken)).await
    }

    /// What operators did to the group, after the entry with this number.
    pub(crate) fn audit(
        &self,
        principal: &Principal,
        after: u64,
    ) -> Result<Vec<AuditEntry>, Refusal> {
        let Some(members) = self.store() else {
            let text = "a group with a fixed list of members has no audit log; its nodes log what \
                        operators do";
            return Err(refusal(Code::NotServed, text));
        };
        owner(principal)?;
        Ok(members.store.audit().after(after).take(PAGE).cloned().collect())
    }
}

impl Members {
    /// Note what an operator did. If the group refuses, because this machine was removed, or does
    /// not agree on it, only the log of this node has it.
    pub(super) async fn note(
        &self,
        operator: &Operator,
        what: String,
        result: &Result<(), Refusal>,
    ) {
        if self.record().is_none() {
            return;
        }
        let from = operator.from.map_or_else(|| "unix socket".to_owned(), |from| from.to_string());
        let result = match result {
            Ok(()) => "done".to_owned(),
            Err(refusal) => refusal.text.clone(),
        };
        let (node, who) = (self.name.clone(), operator.principal.name.clone());
        let entry = AuditEntry { number: 0, at: now(), node, who, from, what, result };
        for _ in 0..ATTEMPTS {
            match self.store.put(Command::Note(entry.clone())).await {
                Ok(Answer::Refused(why)) => {
                    return tracing::warn!(?entry, "not in the audit log of the group: {why}");
                }
                Ok(_) => return,
                Err(error) => tracing::warn!(?entry, "not in the audit log yet: {error}"),
            }
            sleep(PAUSE).await;
        }
    }
}

/// Do something to its end, even if the client that asked for it does not wait for the answer:
/// otherwise it could be done without a note in the audit log.
pub(super) async fn to_its_end<T: Send + 'static>(
    work: BoxedFuture<'static, Result<T, Refusal>>,
) -> Result<T, Refusal> {
    tokio::spawn(work).await.unwrap_or_else(|error| {
        // It has panicked, or the node ends.
        let text = format!("it is not known whether it was done: {error}");
        Err(refusal(Code::Unavailable, text))
    })
}

/// What a change is called in the audit log.
pub(super) fn title(request: &MembersRequest) -> String {
    match request {
        MembersRequest::Show => "show".to_owned(),
        MembersRequest::Log(_) => "log".to_owned(),
        MembersRequest::Arranged => "arranged".to_owned(),
        MembersRequest::Init { from_fixed: None, .. } => "init".to_owned(),
        MembersRequest::Init { from_fixed: Some(_), .. } => "init --from-fixed".to_owned(),
        MembersRequest::Restore { backup, .. } => {
            format!("init --from a backup of group {}, view {}", backup.cluster, backup.view)
        }
        MembersRequest::Add { name, address } => format!("add {name} {address}"),
        MembersRequest::Remove { name, force: false } => format!("remove {name}"),
        MembersRequest::Remove { name, force: true } => format!("remove {name} --force"),
        MembersRequest::Replace { name } => format!("replace {name}"),
        MembersRequest::Lease(ms) => format!("lease {ms}ms"),
        MembersRequest::Rules { rules, replaces, force } => {
            let force = if *force { " --force" } else { "" };
            format!("rules {:016x}, in place of {replaces:016x}{force}", rules.digest())
        }
    }
}

/// The time in UTC, as the audit log writes it.
pub(super) fn now() -> String {
    OffsetDateTime::now_utc().format(&Rfc3339).unwrap_or_default()
}
