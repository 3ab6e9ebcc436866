//! How locks are taken from their holders, here and at other members.
//!
//! A break is answered only when the end of the grant is durable: if the group kept the grant, the
//! group has agreed; if the ledger kept it without end, the ledger was synced. Otherwise a crash
//! could bring back a lock that an operator was told is free.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use doorway_node::BreakError;
use doorway_protocol::{Code, Fence, Name, Refusal};
use doorway_sessions::principal::{Principal, Right};
use doorway_sessions::refusals::refusal;
use doorway_sessions::{Answer, Call, allowed};
use hashbrown::HashMap;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use super::Service;
use super::calling::PendingCall;
use super::group::Question;
use super::perform::DROPPING;

/// How often a member is asked again that has broken a lock and waits until that is durable.
const AGAIN: Duration = Duration::from_millis(50);

/// How long a node keeps the result of a break for the member that asked.
const REMEMBERED: Duration = Duration::from_mins(1);

/// The breaks that other members have asked for and whose answers they do not know, each with the
/// moment at which it was first asked for.
pub(super) type PendingBreaks =
    Mutex<HashMap<(Name, Fence), (Instant, PendingCall), std::hash::RandomState>>;

impl Service {
    /// Take a lock from the session that holds it with this fence, at any member that answers. A
    /// lock that is closed because its node is gone is opened.
    pub async fn break_lock(
        &self,
        principal: &Arc<Principal>,
        lock: &Name,
        fence: Fence,
    ) -> Result<(), Refusal> {
        allowed(principal, Right::Break, lock)?;
        match self.call(principal, Call::Break(lock.clone(), fence)).answer().await {
            Answer::Broken(0) => {}
            Answer::Refused(refusal) => return Err(not_known(lock, &refusal.text)),
            _ => return Ok(()),
        }
        match self.0.node.break_closed(lock, fence).await {
            Ok(0) => {}
            Ok(_) => return Ok(()),
            Err(BreakError::Refused(why)) => {
                let text = format!("`{lock}` stays closed, because the group has refused: {why}");
                return Err(refusal(Code::Unavailable, text));
            }
            Err(unsure) => return Err(not_known(lock, &unsure.to_string())),
        }
        let (broken, silent) = self.break_elsewhere(principal, lock, fence).await;
        if broken > 0 {
            return Ok(());
        }
        let why = self.not_broken(lock, fence).await;
        // A member that answers too late may break it all the same.
        let unknown = !silent.is_empty() && why.code != Code::Unavailable;
        let late = || not_known(lock, &format!("{} did not answer in time", silent.join(", ")));
        Err(if unknown { late() } else { why })
    }

    /// Let the other members take a lock from their clients that hold it with this fence. Returns
    /// from how many it was taken, and which members have not answered. The right to do so was
    /// checked at this node.
    async fn break_elsewhere(
        &self,
        principal: &Principal,
        lock: &Name,
        fence: Fence,
    ) -> (usize, Vec<String>) {
        let by = format!("{} at the node {}", principal.name, self.0.node.name());
        let question = Question::Break { lock: lock.to_string(), fence, by };
        let (began, mut broken) = (Instant::now(), 0);
        // The members that have broken the lock and have not said since that this is durable. A
        // member stays in this set if the connection to it is lost.
        let mut waiting = BTreeSet::new();
        loop {
            let (answers, silent) = self.ask::<Option<usize>>(&question).await;
            for (node, count, _) in answers {
                if let Some(count) = count {
                    broken += count;
                    waiting.remove(&node);
                } else {
                    waiting.insert(node);
                }
            }
            let all_silent = waiting.iter().all(|node| silent.contains(node));
            if all_silent || began.elapsed() > DROPPING {
                waiting.extend(silent);
                return (broken, waiting.into_iter().collect());
            }
            sleep(AGAIN).await;
        }
    }

    /// Take a lock from clients of this node, for another member. Returns from how many it was
    /// taken, or none until that is durable: the other member asks again.
    pub(super) fn break_for_member(
        &self,
        principal: &Arc<Principal>,
        lock: &Name,
        fence: Fence,
    ) -> Result<Option<usize>, Refusal> {
        let mut breaking = self.0.breaking.lock();
        breaking.retain(|_, (since, _)| since.elapsed() < REMEMBERED);
        let key = (lock.clone(), fence);
        let (since, mut call) = breaking.remove(&key).unwrap_or_else(|| {
            (Instant::now(), self.call(principal, Call::Break(lock.clone(), fence)))
        });
        match call.answer_now() {
            Some(Answer::Broken(count)) => Ok(Some(count)),
            Some(Answer::Refused(refusal)) => Err(refusal),
            Some(_) => Ok(Some(0)),
            None => {
                breaking.insert(key, (since, call));
                Ok(None)
            }
        }
    }
}

fn not_known(lock: &Name, why: &str) -> Refusal {
    refusal(Code::Unavailable, format!("it is not known whether `{lock}` was broken: {why}"))
}
