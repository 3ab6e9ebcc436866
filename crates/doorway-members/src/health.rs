//! Which voters can be reached, whether they are a majority, and how often the leader changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use doorway_node::members::{SeatId, StoreHealth};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use crate::core::Core;
use crate::rpc::frame::Ask;
use crate::types::Peer;

/// What was noticed about the group so far.
#[derive(Debug, Default)]
pub(crate) struct Health {
    /// Since when no majority of the voters can be reached.
    without_quorum: Mutex<Option<Instant>>,
    /// The seat that was seen to lead last.
    leader: Mutex<Option<u64>>,
    /// How often another seat was seen to lead than before.
    elections: AtomicU64,
}

impl Health {
    /// Note which seat leads, if one does.
    pub(crate) fn led_by(&self, leader: Option<u64>) {
        if leader.is_some() && std::mem::replace(&mut *self.leader.lock(), leader) != leader {
            self.elections.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Go on asking the voters whether they are there.
pub(crate) async fn run(core: Arc<Core>) {
    loop {
        let timings = core.engine().timings;
        let pause = timings.ping();
        for (seat, peer) in voters(&core) {
            let heard = core.peers.heard(seat);
            if seat != core.seat && heard.is_none_or(|heard| heard.elapsed() >= pause / 2) {
                let core = Arc::clone(&core);
                tokio::spawn(async move {
                    // What matters is that there was an answer, and the client notes that.
                    let _ = core.peers.ask(seat, &peer, Ask::Ping, timings.silence()).await;
                });
            }
        }
        sleep(pause).await;
        let state = state(&core);
        let lost = state.voters > 0 && state.reachable.len() <= state.voters / 2;
        let mut since = core.health.without_quorum.lock();
        *since = lost.then(|| since.unwrap_or_else(Instant::now));
    }
}

/// The state of the store, for people.
pub(crate) fn state(core: &Core) -> StoreHealth {
    let engine = core.engine();
    let silence = engine.timings.silence();
    let voters = voters(core);
    let is_here = |seat: u64| {
        let heard = core.peers.heard(seat);
        seat == core.seat || heard.is_some_and(|heard| heard.elapsed() <= silence)
    };
    let mut health = StoreHealth::default();
    health.leader = engine.raft.metrics().borrow().current_leader.map(SeatId);
    health.elections = core.health.elections.load(Ordering::Relaxed);
    health.voters = voters.len();
    health.reachable =
        voters.iter().filter(|(seat, _)| is_here(*seat)).map(|(seat, _)| SeatId(*seat)).collect();
    health.without_quorum = core.health.without_quorum.lock().map(|since| since.elapsed());
    health
}

/// All voters of the record.
fn voters(core: &Core) -> Vec<(u64, Peer)> {
    let record = core.records.borrow();
    let seats = record.iter().flat_map(|record| &record.seats);
    seats.filter(|seat| seat.voter).map(|seat| (seat.id.0, Peer::of(seat))).collect()
}
