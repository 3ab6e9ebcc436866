//! Guards against the gaps of openraft 0.9.
//!
//! Raft is safe in all these cases. The gaps only make a group wait longer than it must, some of
//! them for ever.
//!
//! 1. *Two members stand for election at the same moment, again and again.* openraft draws the
//!    election timeout once for each process, so two members with equal timeouts would collide
//!    for ever. Guard: votes of one term are ordered by the seat of the candidate, and a member may
//!    vote again for a higher one. That is how openraft works unless its feature
//!    `single-term-leader` is on, so this crate never turns it on.
//! 2. *A leader without a quorum keeps its followers from electing another one.* A leader that
//!    reaches a few followers but no majority goes on with its heartbeats, and these followers
//!    refuse to vote for others. Guard: if no quorum has answered for two election timeouts, the
//!    leader stops its heartbeats and refuses commands. Commands alone would keep its followers
//!    loyal, too.
//! 3. *Members whose fixed timeouts fit badly chase each other.* Guard: a voter that knows no
//!    leader for a time that is drawn anew each time stands for election.
//! 4. *The core of openraft does nothing while the disk writes.* Guard: a command goes to the
//!    leader by a message, and never through the core of a member that does not lead. So a member
//!    with a slow disk can renew its lease.
//! 5. *A call may never be answered*, for example after its entry was purged. Guard: every call has
//!    a time limit, after which its result is unknown. If the core itself has ended, the store
//!    ends.
//! 6. *A leader with many commands does nothing else.* The core of openraft writes one command
//!    after the other to its disk, and meanwhile reads no answers and sends no heartbeats. If the
//!    commands that wait take longer than an election timeout, the followers elect another leader.
//!    That one gets the same commands, because all members repeat them, and so on for ever. Guard:
//!    only a few commands are in the core at a time. A command that gets no slot was not tried.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use openraft::ServerState;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep, timeout};

use crate::timings::Timings;
use crate::types::{Metrics, Raft, Vote};

/// Which guards are on. All of them are, except in tests that show what happens without one.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each guard is on or off by itself")]
pub(crate) struct Switches {
    /// Guard 1: a member may vote again in one term, for a higher seat.
    pub(crate) order: bool,
    /// The election timeout of this member. None: openraft draws one.
    pub(crate) timeout: Option<Duration>,
    /// Guard 2, its first half: a leader without quorum stops its heartbeats.
    pub(crate) silence: bool,
    /// Guard 2, its second half: a leader without quorum refuses commands.
    pub(crate) refusal: bool,
    /// Guard 3: a member that knows no leader stands for election after a time that is drawn anew.
    pub(crate) election: bool,
    /// Guard 4: a command goes to the leader by a message.
    pub(crate) message: bool,
    /// Guard 5: a call has a time limit.
    pub(crate) limit: bool,
    /// Guard 6: only a few commands are in the core at a time.
    pub(crate) slots: bool,
}

/// How many commands may be in the core at a time. Even on a disk that needs a tenth of an election
/// timeout for each, the leader then hears of its followers in time.
const SLOTS: usize = 4;

impl Default for Switches {
    fn default() -> Self {
        Self {
            order: true,
            timeout: None,
            silence: true,
            refusal: true,
            election: true,
            message: true,
            limit: true,
            slots: true,
        }
    }
}

/// The guards of one store.
#[derive(Debug)]
pub(crate) struct Guards {
    pub(crate) switches: Switches,
    /// Whether this node leads without a quorum.
    lonely: AtomicBool,
    slots: Semaphore,
}

impl Guards {
    pub(crate) fn new(switches: Switches) -> Arc<Self> {
        let slots = if switches.slots { SLOTS } else { Semaphore::MAX_PERMITS };
        Arc::new(Self { switches, lonely: AtomicBool::new(false), slots: Semaphore::new(slots) })
    }

    /// Whether a member that has voted may vote again (guard 1).
    pub(crate) fn may_vote(&self, before: Vote, now: Vote) -> bool {
        let (before, now) = (before.leader_id, now.leader_id);
        self.switches.order || before.term != now.term || before.node_id == now.node_id
    }

    /// Whether a leader may accept a command (guard 2).
    pub(crate) fn accepts(&self) -> bool {
        !(self.switches.refusal && self.lonely.load(Ordering::Relaxed))
    }

    /// Wait until a command may go to the core, but no longer than this (guard 6). None: it may
    /// not.
    pub(crate) async fn acquire_slot(&self, limit: Duration) -> Option<SemaphorePermit<'_>> {
        timeout(limit, self.slots.acquire()).await.ok()?.ok()
    }

    /// Wait for a call of openraft no longer than this (guard 5). None: its result is unknown.
    pub(crate) async fn limit<T>(
        &self,
        limit: Duration,
        call: impl Future<Output = T>,
    ) -> Option<T> {
        if self.switches.limit { timeout(limit, call).await.ok() } else { Some(call.await) }
    }

    /// Watch over a member: guards 2 and 3.
    pub(crate) async fn run(self: Arc<Self>, raft: Raft, timings: Timings, seed: u64) {
        let mut quorum = Quorum { limit: timings.election_max() * 2, leads_since: None };
        let mut election = Election {
            unit: timings.election_max(),
            rng: fastrand::Rng::with_seed(seed),
            waiting: None,
        };
        let metrics = raft.metrics();
        loop {
            sleep(timings.heartbeat() / 2).await;
            let now = Instant::now();
            let (lonely, elects) = {
                let metrics = metrics.borrow();
                (quorum.is_lost(&metrics, now), election.is_due(&metrics, now))
            };
            self.lonely.store(lonely, Ordering::Relaxed);
            if self.switches.silence {
                raft.runtime_config().heartbeat(!lonely);
            }
            if elects && self.switches.election {
                // The call only passes a message to the core. If the core has ended, the store
                // notices elsewhere.
                let _ = raft.trigger().elect().await;
            }
        }
    }
}

/// Notices that a leader has no quorum (guard 2).
struct Quorum {
    limit: Duration,
    leads_since: Option<Instant>,
}

impl Quorum {
    fn is_lost(&mut self, metrics: &Metrics, now: Instant) -> bool {
        if metrics.state != ServerState::Leader {
            self.leads_since = None;
            return false;
        }
        let leads_since = *self.leads_since.get_or_insert(now);
        match metrics.millis_since_quorum_ack {
            Some(millis) => Duration::from_millis(millis) > self.limit,
            // A new leader has not been answered yet.
            None => now - leads_since > self.limit,
        }
    }
}

/// Notices that a voter should stand for election (guard 3).
struct Election {
    unit: Duration,
    rng: fastrand::Rng,
    /// Since when no leader is known, and how long to wait.
    waiting: Option<(Instant, Duration)>,
}

impl Election {
    fn is_due(&mut self, metrics: &Metrics, now: Instant) -> bool {
        let votes = metrics.membership_config.voter_ids().any(|voter| voter == metrics.id);
        if metrics.current_leader.is_some() || !votes {
            self.waiting = None;
            return false;
        }
        let Self { unit, rng, waiting } = self;
        let (since, wait) = *waiting.get_or_insert_with(|| {
            let extra = Duration::from_millis(rng.u64(0..=2 * unit.as_millis() as u64));
            (now, *unit + extra)
        });
        let due = now - since > wait;
        if due {
            self.waiting = None;
        }
        due
    }
}
