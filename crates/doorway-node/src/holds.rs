//! Promises to clients that are longer than the lease of the node, as a program asks for them.

use std::sync::Arc;
use std::time::Duration;

use doorway_protocol::{Fence, Name};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::members::{self, Answer, Command, Orphan, RecordError, UnknownOutcome};
use crate::shell::{Membership, NodeShell};

/// Why the group does not keep a lock for longer than the lease of its node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HoldError {
    /// The group has refused.
    #[error("{0}")]
    Refused(RecordError),
    /// The node has ended.
    #[error("the node has ended")]
    Ended,
}

/// Why a closed lock may not be open.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BreakError {
    /// The group has refused to open it.
    #[error("the group has refused to open it: {0}")]
    Refused(RecordError),
    /// It is not known whether the group has agreed to open it.
    #[error(transparent)]
    Unknown(#[from] UnknownOutcome),
}

/// A lock that is closed because a member that is gone has promised it to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClosedLock {
    /// The lock.
    pub lock: Name,
    /// The fence of the grant.
    pub fence: Fence,
    /// The node that made the promise.
    pub node: String,
    /// For how long this node has kept the lock closed.
    pub since: Duration,
    /// For how long the lock stays closed at most; none if without end.
    pub left: Option<Duration>,
}

/// The requests of the program to which the keeper has not answered yet.
#[derive(Debug, Default)]
pub(crate) struct Promises {
    holds: Mutex<Waiters<Result<(), HoldError>>>,
    drops: Mutex<Waiters<()>>,
}

type Waiters<T> = Vec<(Name, Fence, oneshot::Sender<T>)>;

impl Promises {
    pub(crate) fn held(&self, name: &Name, fence: Fence, refused: Option<RecordError>) {
        let held = refused.map_or(Ok(()), |why| Err(HoldError::Refused(why)));
        answer(&self.holds, name, fence, &held);
    }

    pub(crate) fn dropped(&self, name: &Name, fence: Fence) {
        answer(&self.drops, name, fence, &());
    }
}

/// Answer all requests about one grant. A request whose future was dropped needs no answer.
fn answer<T: Clone>(waiting: &Mutex<Waiters<T>>, name: &Name, fence: Fence, answer: &T) {
    let of = |it: &mut (Name, Fence, _)| it.0 == *name && it.1 == fence;
    let answered: Vec<_> = waiting.lock().extract_if(.., of).collect();
    for (.., sender) in answered {
        let _ = sender.send(answer.clone());
    }
}

impl NodeShell {
    /// Let the group keep a lock for a client of this node.
    pub(crate) fn hold(
        self: &Arc<Self>,
        name: Name,
        fence: Fence,
        length: Option<Duration>,
    ) -> impl Future<Output = Result<(), HoldError>> + Send + use<> {
        let shell = Arc::clone(self);
        let (sender, answered) = oneshot::channel();
        if let Membership::Agreed(group) = &self.membership {
            group.promises.holds.lock().push((name.clone(), fence, sender));
            let length_ms = length.map(|it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX));
            group.tell_keeper(members::Event::Hold { name, fence, length_ms });
        } else {
            let _ = sender.send(Ok(())); // The ledger of this node keeps it.
        }
        async move {
            tokio::select! {
                held = answered => held.unwrap_or(Err(HoldError::Ended)),
                _ = shell.ended() => Err(HoldError::Ended),
            }
        }
    }

    /// Let the group know that a client of this node does not hold a lock any more, and wait until
    /// the group has agreed.
    pub(crate) fn drop_hold(
        self: &Arc<Self>,
        name: Name,
        fence: Fence,
    ) -> impl Future<Output = Result<(), HoldError>> + Send + use<> {
        let shell = Arc::clone(self);
        let (sender, answered) = oneshot::channel();
        if let Membership::Agreed(group) = &self.membership {
            group.promises.drops.lock().push((name.clone(), fence, sender));
            group.tell_keeper(members::Event::Drop { name, fence });
        } else {
            let _ = sender.send(());
        }
        async move {
            tokio::select! {
                dropped = answered => dropped.map_err(|_| HoldError::Ended),
                _ = shell.ended() => Err(HoldError::Ended),
            }
        }
    }

    /// The locks that are closed because of promises of members that are gone.
    pub(crate) fn closed_locks(&self) -> Vec<ClosedLock> {
        let now = self.both_clocks();
        let seats = self.membership_report().and_then(|report| report.record);
        let closed = |Orphan { id, hold, since }: &Orphan| {
            let seat = seats.as_ref().and_then(|record| record.seat(hold.seat));
            ClosedLock {
                lock: id.name.clone(),
                fence: id.fence,
                node: seat.map_or_else(|| "a former member".to_owned(), |it| it.name.clone()),
                since: now.boot.saturating_sub(since.boot),
                left: hold.length().map(|length| now.left(*since, length)),
            }
        };
        self.orphans().iter().map(closed).collect()
    }

    /// End the promises of members that are gone, of this lock and this fence. Returns how many
    /// there were.
    pub(crate) async fn break_closed(
        &self,
        name: &Name,
        fence: Fence,
    ) -> Result<usize, BreakError> {
        let Membership::Agreed(group) = &self.membership else { return Ok(0) };
        let mut broken = 0;
        let orphans = self.orphans();
        for orphan in orphans.iter().filter(|it| it.id.name == *name && it.id.fence == fence) {
            if let Answer::Refused(why) = group.store.put(Command::Drop(orphan.id.clone())).await? {
                return Err(BreakError::Refused(why));
            }
            broken += 1;
        }
        Ok(broken)
    }
}
