//! Starts Raft, and starts it again when the group changes its lease.
//!
//! All times of Raft are fractions of the lease, and openraft cannot change them while it runs. A
//! node that was added to a group, or has waited until a group was founded, learns the lease only
//! from the record. Then Raft is stopped and started again on the same log, which takes no longer
//! than one vote.

use std::sync::Arc;

use tokio::sync::watch;

use crate::core::{Core, Engine};
use crate::error::OpenError;
use crate::guards::{Guards, Switches};
use crate::health::Health;
use crate::log::Log;
use crate::network::Network;
use crate::peers::Peers;
use crate::reconcile;
use crate::state_machine::StateMachine;
use crate::timings::Timings;
use crate::types::{Metrics, Raft};

/// What Raft is made of.
pub(crate) struct Parts {
    pub(crate) seat: u64,
    pub(crate) group: String,
    pub(crate) peers: Arc<Peers>,
    pub(crate) log: Log,
    pub(crate) machine: StateMachine,
    pub(crate) switches: Switches,
    pub(crate) seed: u64,
}

impl Parts {
    /// Start Raft.
    pub(crate) async fn start(&self, lease_ms: u32) -> Result<Engine, OpenError> {
        let timings = Timings::new(lease_ms);
        let mut config = timings.config(&self.group);
        if let Some(timeout) = self.switches.timeout {
            config.election_timeout_min = timeout.as_millis() as u64;
            config.election_timeout_max = config.election_timeout_min + 1;
        }
        let config = config.validate().map_err(|error| OpenError::Start(error.to_string()))?;
        let network = Network { peers: Arc::clone(&self.peers), pause: timings.heartbeat() };
        let (log, machine) = (self.log.clone(), self.machine.clone());
        let raft = Raft::new(self.seat, Arc::new(config), network, log, machine).await;
        let raft = raft.map_err(|error| OpenError::Start(error.to_string()))?;
        Ok(Engine { raft, timings, guards: Guards::new(self.switches) })
    }
}

/// Watch over Raft, and start it again when the lease has changed.
pub(crate) async fn run(core: Arc<Core>, parts: Parts) {
    let mut records = core.records.clone();
    loop {
        let engine = core.engine();
        let lease_ms = engine.timings.lease_ms();
        let changed = records
            .wait_for(|record| record.as_ref().is_some_and(|record| record.lease_ms != lease_ms));
        let guards = Arc::clone(&engine.guards);
        let lease_ms = tokio::select! {
            why = watch_core(engine.raft.metrics(), &core.health) => return core.ending.end(&why),
            () = guards.run(engine.raft.clone(), engine.timings, parts.seed) => return,
            () = reconcile::run(Arc::clone(&core), Arc::clone(&engine)) => return,
            record = changed => match record.as_deref() {
                Ok(Some(record)) => record.lease_ms,
                _ => return,
            },
        };
        tracing::info!("the lease of the group is {lease_ms} ms; Raft is started again with it");
        let _ = engine.raft.shutdown().await;
        match parts.start(lease_ms).await {
            Ok(engine) => *core.engine.write() = Arc::new(engine),
            Err(error) => return core.ending.end(&error.to_string()),
        }
    }
}

/// Note who leads, until the core of openraft has ended (guard 5). Returns the reason.
async fn watch_core(mut metrics: watch::Receiver<Metrics>, health: &Health) -> String {
    loop {
        let (state, leader) = {
            let metrics = metrics.borrow_and_update();
            (metrics.running_state.clone(), metrics.current_leader)
        };
        health.led_by(leader);
        if let Err(error) = state {
            return error.to_string();
        }
        if metrics.changed().await.is_err() {
            return "Raft has stopped".to_owned();
        }
    }
}
