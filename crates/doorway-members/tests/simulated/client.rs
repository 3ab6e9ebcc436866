//! The clients of a node, watched by the referee.

use std::time::Duration;

use doorway_node::{AcquireError, Fence, HoldError, Name, Node, OwnedGuard};
use tokio::time::{sleep, timeout};

use super::host::Host;
use super::plan::Dice;
use super::referee::{Entry, Promise};

const LOCKS: [&str; 4] = ["one", "two", "three", "four"];

/// How long a client waits until the group has agreed on its hold, or on the end of it.
const AGREEMENT: Duration = Duration::from_secs(5);

pub(crate) struct Client {
    pub(crate) host: Host,
    pub(crate) node: Node,
    pub(crate) number: u64,
    pub(crate) dice: Dice,
}

/// Let the group keep a lock for as long as was promised.
pub(crate) fn keep(
    node: &Node,
    lock: &Name,
    fence: Fence,
    promise: Promise,
) -> impl Future<Output = Result<(), HoldError>> + Send + use<> {
    let length = match promise {
        Promise::Lease => None,
        Promise::Hold(length) => Some(Some(length)),
        Promise::Endless => Some(None),
    };
    let held = length.map(|length| node.hold(lock, fence, length));
    async move {
        match held {
            Some(held) => held.await,
            None => Ok(()), // The lease of the node is enough.
        }
    }
}

impl Client {
    /// Acquire locks at random until no more faults come, and then every lock once more.
    pub(crate) async fn work(mut self) -> Result<(), AcquireError> {
        while !self.host.stage.is_calm() {
            sleep(self.part(0, 50)).await;
            let lock = LOCKS[self.dice.below(LOCKS.len() as u64) as usize];
            let patience = self.part(50, 1500);
            match self.node.lock(lock).within(patience).await {
                Ok(guard) => self.enter(guard).await,
                Err(AcquireError::TimedOut) => {}
                Err(error) => return Err(error),
            }
        }
        for lock in LOCKS {
            let guard = self.node.lock(lock).await?;
            self.stay_inside(guard, Promise::Lease).await;
        }
        Ok(())
    }

    /// A time between two parts of a lease, in thousandths.
    fn part(&mut self, from: u64, to: u64) -> Duration {
        self.dice.part(self.host.stage.plan.lease, from, to)
    }

    /// Enter with a lock, or first let the group keep it.
    async fn enter(&mut self, guard: OwnedGuard) {
        let promise = match self.dice.below(16) {
            0..=2 => Promise::Hold(self.part(750, 3000)),
            3 => Promise::Endless,
            _ => Promise::Lease,
        };
        let (lock, fence) = (guard.handle().name().clone(), guard.fence());
        let agreed = keep(&self.node, &lock, fence, promise);
        match timeout(AGREEMENT, agreed).await {
            Ok(Ok(())) => self.stay_inside(guard, promise).await,
            refused => {
                let (me, number) = (self.host.me, self.number);
                let what = format_args!("n{me}/{number} does not get {lock}: {refused:?}");
                self.host.note(what);
                drop(guard);
                // The group may have agreed, or may still agree. The node sees to it.
                drop(self.node.drop_hold(&lock, fence));
            }
        }
    }

    /// Stay inside for a while, watched by the referee.
    async fn stay_inside(&mut self, guard: OwnedGuard, promise: Promise) {
        let (lock, fence) = (guard.handle().name().clone(), guard.fence());
        let (me, number) = (self.host.me, self.number);
        if guard.is_lost() {
            // The lease ended before the client was told of its grant.
            drop(self.node.drop_hold(&lock, fence));
            return;
        }
        self.host.note(format_args!("n{me}/{number} is inside {lock} with {fence}, {promise:?}"));
        let now = self.host.clock.elapsed();
        let entry = {
            let referee = &mut self.host.stage.now.lock().referee;
            referee.enter(now, me, lock.as_str(), fence, promise)
        };
        let long = self.dice.below(8) == 0 || promise != Promise::Lease && self.dice.below(2) == 0;
        let time = if long { self.part(250, 2000) } else { self.part(0, 30) };
        let visit = Visit { entry: Some(entry), promise, time };
        self.host.stay(&self.node, guard, visit, &mut self.dice).await;
    }
}

/// The stay of a client inside.
pub(crate) struct Visit {
    /// None if the client does not believe that it has the lock.
    pub(crate) entry: Option<Entry>,
    pub(crate) promise: Promise,
    /// For how long it stays, if it does not lose the lock.
    pub(crate) time: Duration,
}

impl Host {
    /// Stay inside for a time, or until the lock is lost, and then let go of the lock.
    pub(crate) async fn stay(&self, node: &Node, guard: OwnedGuard, visit: Visit, dice: &mut Dice) {
        let Visit { entry, promise, time } = visit;
        let (lock, fence) = (guard.handle().name().clone(), guard.fence());
        let told = timeout(time, guard.lost()).await.is_ok();
        let lost = told || guard.is_lost();
        let held = promise != Promise::Lease;
        let me = self.me;
        if let Some(entry) = entry {
            // A client without a connection does not learn of the loss.
            let believes = lost && held && dice.below(2) == 0;
            let now = self.clock.elapsed();
            let referee = &mut self.stage.now.lock().referee;
            if believes {
                referee.believe(now, entry);
            } else {
                referee.leave(entry, lost);
            }
            if believes {
                return;
            }
        }
        self.note(format_args!("n{me} lets go of {lock} with {fence}, lost: {lost}"));
        if !held {
            return;
        }
        let dropped = node.drop_hold(&lock, fence);
        let guard = Some(guard).filter(|_| dice.below(2) == 0);
        let agreed = timeout(AGREEMENT, dropped).await;
        self.note(format_args!("n{me}: the hold of {lock} with {fence} ends: {agreed:?}"));
        drop(guard);
    }
}
