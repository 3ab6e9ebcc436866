//! What the tasks of a store share, and how a command is agreed on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use doorway_node::members::{Answer, Command, Holds, Record, SeatId, UnknownOutcome};
use openraft::ServerState;
use openraft::error::{ClientWriteError, RaftError};
use parking_lot::RwLock;
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, sleep};

use crate::bond::Bond;
use crate::ending::Ending;
use crate::guards::Guards;
use crate::health::Health;
use crate::peers::{Peers, unexpected};
use crate::rpc::frame::{Ask, FormerGroup, ReplyBody};
use crate::timings::Timings;
use crate::types::{Peer, Raft};

/// How many questions of others may be in the core of openraft at a time. While its disk stalls,
/// the core answers nobody, and the others ask again and again.
pub(crate) const IN_CORE: usize = 64;

/// What the tasks of a store share.
pub(crate) struct Core {
    pub(crate) seat: u64,
    pub(crate) name: String,
    pub(crate) address: String,
    pub(crate) group: String,
    pub(crate) former: Option<FormerGroup>,
    pub(crate) records: watch::Receiver<Option<Arc<Record>>>,
    pub(crate) holds: watch::Receiver<Arc<Holds>>,
    pub(crate) bond: Arc<Bond>,
    pub(crate) peers: Arc<Peers>,
    pub(crate) health: Health,
    pub(crate) ending: Ending,
    pub(crate) permits: Arc<Semaphore>,
    pub(crate) engine: RwLock<Arc<Engine>>,
    /// How often another machine was asked although it was not known to lead.
    pub(crate) turns: AtomicUsize,
}

/// Raft with its times. It is replaced when the group changes its lease.
pub(crate) struct Engine {
    pub(crate) raft: Raft,
    pub(crate) timings: Timings,
    pub(crate) guards: Arc<Guards>,
}

impl Engine {
    /// Whether this node leads, and has a quorum.
    pub(crate) fn leads(&self) -> bool {
        self.raft.metrics().borrow().state == ServerState::Leader && self.guards.accepts()
    }

    /// Agree on a command, if this node leads.
    pub(crate) async fn put(&self, command: Command) -> ReplyBody {
        if self.leads() { self.put_through_core(command).await } else { ReplyBody::NotLeader }
    }

    async fn put_through_core(&self, command: Command) -> ReplyBody {
        let limit = self.timings.put();
        // The sender still has time to try again if there is no free slot by then.
        let Some(_slot) = self.guards.acquire_slot(limit / 2).await else {
            return ReplyBody::NotLeader;
        };
        let written = self.guards.limit(limit, self.raft.client_write(command)).await;
        match written {
            Some(Ok(response)) => ReplyBody::Answer(response.data),
            // The entry may have been written and removed here, and still be in another log.
            Some(Err(RaftError::APIError(ClientWriteError::ForwardToLeader(_)))) => {
                ReplyBody::Unsure("the leader has changed".to_owned())
            }
            Some(Err(error)) => ReplyBody::Unsure(error.to_string()),
            None => ReplyBody::Unsure(format!("not committed within {} ms", limit.as_millis())),
        }
    }

    /// The leader, as far as this node knows. This does not ask the core of openraft, which may be
    /// waiting for the disk.
    fn leader(&self) -> Option<(u64, Peer)> {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow();
        let leader = metrics.current_leader?;
        let peer = metrics.membership_config.membership().get_node(&leader)?;
        Some((leader, peer.clone()))
    }
}

impl Core {
    pub(crate) fn engine(&self) -> Arc<Engine> {
        Arc::clone(&self.engine.read())
    }

    /// Agree on a command.
    pub(crate) async fn put(&self, command: Command) -> Result<Answer, UnknownOutcome> {
        let timings = self.engine().timings;
        let deadline = Instant::now() + timings.put();
        loop {
            if let Some(why) = self.ending.reason() {
                return Err(UnknownOutcome(format!("the store has ended: {why}")));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let is_late = left < timings.put() / 2;
            match self.try_put(command.clone(), left, is_late).await {
                ReplyBody::Answer(answer) => return Ok(answer),
                ReplyBody::Unsure(why) => return Err(UnknownOutcome(why)),
                // Nobody has tried the command, so it can be sent again.
                ReplyBody::NotLeader => {}
                told => return Err(UnknownOutcome(unexpected(&told).to_string())),
            }
            if Instant::now() + timings.heartbeat() >= deadline {
                let limit = timings.put().as_millis();
                return Err(UnknownOutcome(format!("no leader with a majority for {limit} ms")));
            }
            sleep(timings.heartbeat() / 4).await;
        }
    }

    /// Send a command once: to the leader, as far as this node knows.
    ///
    /// A machine that was removed from the group hears of no new leader, so it asks the others in
    /// turn. So does a node that is late because it knows no leader: it may have been cut off when
    /// it was removed.
    async fn try_put(&self, command: Command, limit: Duration, is_late: bool) -> ReplyBody {
        let engine = self.engine();
        if engine.leads() {
            return engine.put(command).await;
        }
        let leader = if self.is_removed() {
            self.next_other()
        } else {
            engine.leader().or_else(|| is_late.then(|| self.next_other()).flatten())
        };
        let Some((seat, peer)) = leader else { return ReplyBody::NotLeader };
        if seat == self.seat {
            return ReplyBody::NotLeader; // Not any more, or without a quorum.
        }
        if !engine.guards.switches.message {
            return engine.put_through_core(command).await;
        }
        let told = self.peers.ask(seat, &peer, Ask::Put(command), limit).await;
        told.unwrap_or_else(|error| {
            let Peer { name, address, .. } = &peer;
            ReplyBody::Unsure(format!("`{name}` at {address}, asked as the leader: {error}"))
        })
    }

    /// Whether this machine was removed from the group, as far as it knows.
    fn is_removed(&self) -> bool {
        let record = self.records.borrow();
        record.as_ref().is_some_and(|record| record.seat(SeatId(self.seat)).is_none())
    }

    /// Another machine of the group, each time the next one.
    fn next_other(&self) -> Option<(u64, Peer)> {
        let record = self.records.borrow().clone()?;
        let others = || record.seats.iter().filter(|seat| seat.id.0 != self.seat);
        let turn = self.turns.fetch_add(1, Ordering::Relaxed).checked_rem(others().count())?;
        others().nth(turn).map(|seat| (seat.id.0, Peer::of(seat)))
    }
}
