//! What the tasks of a store share, and how a command is agreed on.

use std::sync::Arc;

use doorway_node::members::{Answer, Command, Record, Unsure};
use openraft::ServerState;
use openraft::error::{ClientWriteError, RaftError};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, sleep};

use crate::bond::Bond;
use crate::ending::Ending;
use crate::error::AskError;
use crate::guards::Guards;
use crate::health::Health;
use crate::peers::{Peers, unexpected};
use crate::rpc::frame::{Ask, Tell};
use crate::timings::Timings;
use crate::types::{Peer, Raft};

/// How many questions of others may be in the core of openraft at a time. While its disk stalls, the
/// core answers nobody, and the others ask again and again.
pub(crate) const IN_CORE: usize = 64;

/// What the tasks of a store share.
pub(crate) struct Core {
    pub(crate) seat: u64,
    pub(crate) name: String,
    pub(crate) address: String,
    pub(crate) group: String,
    pub(crate) raft: Raft,
    pub(crate) records: watch::Receiver<Option<Arc<Record>>>,
    pub(crate) bond: Arc<Bond>,
    pub(crate) peers: Arc<Peers>,
    pub(crate) timings: Timings,
    pub(crate) guards: Arc<Guards>,
    pub(crate) health: Health,
    pub(crate) ending: Ending,
    pub(crate) in_core: Arc<Semaphore>,
}

impl Core {
    /// Whether this node leads, and has a quorum.
    pub(crate) fn leads(&self) -> bool {
        self.raft.metrics().borrow().state == ServerState::Leader && self.guards.accepts()
    }

    /// Agree on a command.
    pub(crate) async fn put(&self, command: Command) -> Result<Answer, Unsure> {
        let limit = self.timings.put();
        let deadline = Instant::now() + limit;
        loop {
            if let Some(why) = self.ending.reason() {
                return Err(Unsure(format!("the store has ended: {why}")));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let told = match self.leader() {
                Some((seat, _)) if seat == self.seat => self.put_here(command.clone()).await,
                Some((seat, peer)) if self.guards.switches.message => {
                    let told = self.peers.ask(seat, &peer, Ask::Put(command.clone()), left).await;
                    told.unwrap_or_else(|error| not_told(&peer, &error))
                }
                Some(_) => self.put_through_core(command.clone()).await,
                None => Tell::NotLeader,
            };
            match told {
                Tell::Answer(answer) => return Ok(answer),
                Tell::Unsure(why) => return Err(Unsure(why)),
                // Nobody has tried the command, so it can be sent again.
                Tell::NotLeader => {}
                told => return Err(Unsure(unexpected(&told).to_string())),
            }
            if Instant::now() + self.timings.heartbeat() >= deadline {
                let limit = limit.as_millis();
                return Err(Unsure(format!("no leader with a majority for {limit} ms")));
            }
            sleep(self.timings.heartbeat() / 4).await;
        }
    }

    /// Agree on a command, if this node leads.
    pub(crate) async fn put_here(&self, command: Command) -> Tell {
        if self.leads() { self.put_through_core(command).await } else { Tell::NotLeader }
    }

    async fn put_through_core(&self, command: Command) -> Tell {
        let limit = self.timings.put();
        let written = self.guards.limit(limit, self.raft.client_write(command)).await;
        match written {
            Some(Ok(response)) => Tell::Answer(response.data),
            // The entry may have been written and removed here, and still be in another log.
            Some(Err(RaftError::APIError(ClientWriteError::ForwardToLeader(_)))) => {
                Tell::Unsure("the leader has changed".to_owned())
            }
            Some(Err(error)) => Tell::Unsure(error.to_string()),
            None => Tell::Unsure(format!("not committed within {} ms", limit.as_millis())),
        }
    }

    /// The leader, as far as this node knows. This does not ask the core, which may be waiting for
    /// the disk.
    fn leader(&self) -> Option<(u64, Peer)> {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow();
        let leader = metrics.current_leader?;
        let peer = metrics.membership_config.membership().get_node(&leader)?;
        Some((leader, peer.clone()))
    }
}

/// What to make of a command that got no answer.
fn not_told(leader: &Peer, error: &AskError) -> Tell {
    let Peer { name, address, .. } = leader;
    Tell::Unsure(format!("the leader, `{name}` at {address}: {error}"))
}
