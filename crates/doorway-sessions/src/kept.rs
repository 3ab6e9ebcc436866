//! Grants that clients keep after they have left the lock, until somebody else wants it.
//!
//! A client that keeps a grant leaves and enters again without a message, each time with the next
//! of the numbers that the node has reserved after the fence. So the node does not know whether the
//! client is inside. When somebody else asks for the lock, the client is told once. If it is
//! outside, it releases the grant. If it is inside, it says so and releases the grant when it
//! leaves; from then on the grant is like any other.
//!
//! A client forgets that it keeps a grant when its connection ends, and so does the node when the
//! session goes on. The grant itself ends as all others do: it is in the ledger, and it is lost
//! with its session. A session without a TTL keeps nothing, because the node could not take the
//! lock back from a process that is stopped.

use doorway_protocol::{Ask, Code, Fence, Life, Mode, Name, Reply, Wait};

use super::acquire::Progress;
use super::event::{AskId, Output};
use super::refusals::refusal;
use super::{Sessions, Stage};

/// How many numbers are reserved after the fence of a grant that is kept. With them a client enters
/// a thousand times for one request, and the clock of a view lasts for five hundred million such
/// grants.
const NUMBERS: u32 = 1000;

/// How long a request that does not wait for its lock waits for a client that keeps the lock and
/// does not answer, in milliseconds.
const ANSWER_MS: u64 = 2000;

/// The client that keeps a lock, and has not said that it is inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Keeper {
    pub(super) session: u64,
    pub(super) fence: Fence,
    /// Whether the client was told that the lock is wanted.
    told: bool,
}

impl Keeper {
    pub(super) fn new(session: u64, fence: Fence) -> Self {
        Self { session, fence, told: false }
    }
}

impl Sessions {
    /// How many numbers to reserve for a client that wants to keep what it asks for. None if the
    /// lock can be held by several clients, or if the session has no TTL or can live without its
    /// process or its connection. None either if the session has half of what the limits allow: a
    /// client has no use for locks that keep it from getting others.
    pub(super) fn numbers_for(&self, session: u64, ask: &Ask) -> u32 {
        let Some(session) = self.open.get(&session) else { return 0 };
        let room = 2 * (session.grants.len() + session.waiting.len()) < self.setup.limits.grants;
        let keeps = room
            && self.stage == Stage::Serving
            && self.former.awaited_until.is_none()
            && session.life == (Life::Connection { inherited: false })
            && !session.is_bound()
            && ask.mode == Mode::Exclusive
            && ask.permits.is_none()
            && self.configured(&ask.lock) == 1;
        if keeps { NUMBERS } else { 0 }
    }

    /// Somebody else wants a lock. If a client keeps it, the client is told once.
    pub(super) fn wanted(&mut self, lock: &Name, out: &mut Vec<Output>) {
        let Some(keeper) = self.kept.get_mut(lock) else { return };
        if !std::mem::replace(&mut keeper.told, true) {
            let Keeper { session, fence, .. } = *keeper;
            self.tell(session, Reply::Wanted(lock.clone(), fence), out);
        }
    }

    /// How long a request for a lock waits at the node. A request that does not wait for its lock
    /// has to wait for the answer of the client that keeps it.
    pub(super) fn wait_for_keeper(&mut self, ask: AskId, lock: &Name, wait: Wait) -> Wait {
        if wait != Wait::No || !self.kept.contains_key(lock) {
            return wait;
        }
        self.tries.insert(ask);
        Wait::Ms(ANSWER_MS)
    }

    /// A client is inside with a grant that it was told is wanted, and will release it.
    pub(super) fn in_use(
        &mut self,
        session: u64,
        lock: &Name,
        fence: Fence,
        out: &mut Vec<Output>,
    ) {
        self.forget_keeper(session, lock, fence);
        if self.open.get(&session).is_some_and(|session| session.find(lock, fence).is_some()) {
            self.refuse_tries(lock, Mode::Exclusive, out);
        }
    }

    /// A client keeps this grant no longer.
    pub(super) fn forget_keeper(&mut self, session: u64, lock: &Name, fence: Fence) {
        let same = |keeper: &Keeper| (keeper.session, keeper.fence) == (session, fence);
        if self.kept.get(lock).is_some_and(same) {
            self.kept.remove(lock);
        }
    }

    /// A client is inside in this mode: the requests that do not wait for it are refused.
    pub(super) fn refuse_tries(&mut self, lock: &Name, mode: Mode, out: &mut Vec<Output>) {
        let refused = |ask: &&AskId| {
            self.asks.get(ask).is_some_and(|asking| {
                let waits = matches!(asking.state, Progress::Asked | Progress::Queued(_));
                let beside = mode == Mode::Shared && asking.mode == Mode::Shared;
                asking.lock == *lock && waits && !beside
            })
        };
        let tries: Vec<AskId> = self.tries.iter().filter(refused).copied().collect();
        for ask in tries {
            out.push(Output::Abandon(ask));
            let text = format!("`{lock}` is not free");
            self.settle(ask, Err(refusal(Code::NotFree, text)), out);
        }
    }
}
