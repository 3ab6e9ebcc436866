//! The store, as a node sees it.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use doorway_node::members::{
    Answer, AuditLog, BoxedFuture, BoxedStream, Caller, Command, Connect, GroupState, Holds,
    Record, RuleTables, SeatId, StoreHealth, UnknownOutcome, ViewStore,
};
use parking_lot::RwLock;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};

use crate::bond::Bond;
use crate::core::{Core, IN_CORE};
use crate::disk::{DataPlace, Disk};
use crate::ending::Ending;
use crate::engine::{self, Parts};
use crate::error::{AskError, FoundError, OpenError};
use crate::group_store::GroupStore;
use crate::guards::Switches;
use crate::health::{self, Health};
use crate::log::Log;
use crate::peers::Peers;
use crate::rpc::client::Dialer;
use crate::rpc::frame::{Agreement, FormerGroup, Hello};
use crate::rpc::serve::serve;
use crate::state_machine::StateMachine;
use crate::thread::{in_own_thread, serve_in, start_disk_thread};
use crate::timings::Timings;
use crate::writer::{self, Writer};

/// How a store is opened.
#[derive(Clone)]
pub struct Options {
    /// Where it keeps its data.
    pub data: DataPlace,
    /// The name of the group.
    pub group: String,
    /// The name of this node.
    pub name: String,
    /// The address at which other members reach this node.
    pub address: String,
    /// What the data directory shows of a group to which this node belonged before.
    pub former: Option<FormerGroup>,
    /// Makes connections to other members.
    pub connect: Arc<dyn Connect>,
    /// The lease from which all times are taken until the group has one, in milliseconds.
    pub lease_ms: u32,
    /// Random seed, for simulations. Without one, numbers are drawn from the system.
    pub seed: Option<u64>,
    /// Where the store runs.
    pub threads: Threads,
}

/// Where a store runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// In two threads of its own, `members` and `members-disk`.
    Own,
    /// In tasks of the runtime in which it was opened, the disk included. This is for tests and
    /// simulations, whose clock does not wait for threads.
    Caller,
}

/// The record of a group, replicated by Raft among the voters of the group.
pub struct RaftStore {
    core: Arc<Core>,
    machine: StateMachine,
    writer: Writer,
    runtime: Handle,
}

impl RaftStore {
    /// Open the store of this node, or make one. A node with a new store has a new seat.
    pub fn open(options: Options) -> BoxedFuture<'static, Result<Arc<Self>, OpenError>> {
        Box::pin(Self::open_with(options, Switches::default()))
    }

    pub(crate) async fn open_with(
        options: Options,
        switches: Switches,
    ) -> Result<Arc<Self>, OpenError> {
        match options.threads {
            Threads::Caller => Self::build(options, switches).await.map(Arc::new),
            Threads::Own => {
                let build = move || async move {
                    let store = Self::build(options, switches).await?;
                    let (core, writer) = (Arc::clone(&store.core), store.writer.clone());
                    let closing = async move {
                        core.ending.ended().await;
                        close(&core, &writer).await;
                    };
                    Ok((store, closing))
                };
                in_own_thread(build).await.map(Arc::new)
            }
        }
    }

    async fn build(options: Options, switches: Switches) -> Result<Self, OpenError> {
        let Options { data, group, name, address, former, connect, lease_ms, seed, threads } =
            options;
        let mut rng = seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed);
        let (disk, mut content) = Disk::open(data, || rng.u64(1..))?;
        if content.by_etcd {
            let path = disk.path();
            return Err(OpenError::OtherAgreement { path, found: "etcd", wanted: "raft" });
        }
        let ending = Ending::new();
        let (writer, queue) = writer::queue(ending.clone());
        let writing = queue.run(disk);
        match threads {
            Threads::Own => start_disk_thread(writing)?,
            Threads::Caller => drop(tokio::spawn(writing)),
        }
        let seat = content.seat;
        let bond = Arc::new(Bond::new(content.cluster, writer.clone()));
        let machine = StateMachine::new(&mut content, writer.clone());
        let log = Log::new(&mut content, writer.clone());
        let (records, holds) = (machine.shown().records(), machine.shown().holds());
        let lease_ms = records.borrow().as_ref().map_or(lease_ms, |record| record.lease_ms);
        let patience = Timings::new(lease_ms).connect();
        let runtime = Handle::current();
        let dialer = Dialer { connect, runtime: runtime.clone(), patience };
        let peers = Arc::new(Peers::new(seat, Arc::clone(&bond), dialer));
        let parts = Parts { seat, group, peers, log, machine, switches, seed: rng.u64(..) };
        let engine = parts.start(lease_ms).await?;
        let core = Arc::new(Core {
            seat,
            name,
            address,
            group: parts.group.clone(),
            former,
            records,
            holds,
            bond,
            peers: Arc::clone(&parts.peers),
            health: Health::default(),
            ending,
            permits: Arc::new(Semaphore::new(IN_CORE)),
            engine: RwLock::new(Arc::new(engine)),
            turns: AtomicUsize::new(0),
        });
        let machine = parts.machine.clone();
        core.ending.spawn(Box::pin(health::run(Arc::clone(&core))));
        core.ending.spawn(Box::pin(engine::run(Arc::clone(&core), parts)));
        Ok(Self { core, machine, writer, runtime })
    }

    /// Ask the store at an address who it is.
    pub async fn ask(&self, address: &str) -> Result<Hello, AskError> {
        self.core.peers.hello(&self.core.group, address, Agreement::Raft).await
    }

    /// The group to which this node belongs; none until it was founded or the node was added.
    pub fn cluster(&self) -> Option<u128> {
        self.core.bond.cluster()
    }

    /// What operators did to the group, as far as this node knows.
    pub fn audit(&self) -> Arc<AuditLog> {
        self.machine.audit()
    }

    /// Wait until the store has ended: it was closed, or its disk or Raft has failed. Returns the
    /// reason. A node cannot go on without its store.
    pub async fn ended(&self) -> String {
        self.core.ending.ended().await
    }

    /// End the store, and close its file.
    pub async fn close(&self) {
        close(&self.core, &self.writer).await;
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    #[cfg(test)]
    pub(crate) fn machine(&self) -> &StateMachine {
        &self.machine
    }
}

impl ViewStore for RaftStore {
    fn seat(&self) -> SeatId {
        SeatId(self.core.seat)
    }

    fn watch(&self) -> watch::Receiver<Option<Arc<Record>>> {
        self.machine.shown().records()
    }

    fn holds(&self) -> watch::Receiver<Arc<Holds>> {
        self.machine.shown().holds()
    }

    fn rules(&self) -> watch::Receiver<Arc<RuleTables>> {
        self.machine.shown().rules()
    }

    fn put(&self, command: Command) -> BoxedFuture<'_, Result<Answer, UnknownOutcome>> {
        Box::pin(self.core.put(command))
    }

    fn leads(&self) -> bool {
        self.core.engine().leads()
    }

    fn serve(&self, stream: BoxedStream, caller: Caller) -> BoxedFuture<'static, ()> {
        serve_in(&self.runtime, Box::pin(serve(Arc::clone(&self.core), stream, caller)))
    }

    fn health(&self) -> StoreHealth {
        let mut health = health::state(&self.core);
        health.syncs = self.writer.syncs();
        health
    }
}

impl GroupStore for RaftStore {
    fn ask<'a>(&'a self, address: &'a str) -> BoxedFuture<'a, Result<Hello, AskError>> {
        Box::pin(self.ask(address))
    }

    fn found_with(&self, state: GroupState) -> BoxedFuture<'_, Result<(), FoundError>> {
        Box::pin(self.found_with(state))
    }

    fn cluster(&self) -> Option<u128> {
        self.cluster()
    }

    fn audit(&self) -> Arc<AuditLog> {
        self.audit()
    }

    fn is_founded_elsewhere(&self) -> bool {
        false // Only its members know.
    }

    fn ended(&self) -> BoxedFuture<'_, String> {
        Box::pin(self.ended())
    }

    fn close(&self) -> BoxedFuture<'_, ()> {
        Box::pin(self.close())
    }
}

impl Drop for RaftStore {
    fn drop(&mut self) {
        if self.core.ending.reason().is_none() {
            let (core, writer) = (Arc::clone(&self.core), self.writer.clone());
            self.core.ending.close();
            self.runtime.spawn(async move { close(&core, &writer).await });
        }
    }
}

async fn close(core: &Core, writer: &Writer) {
    core.ending.close();
    core.peers.retain(|_| false);
    let _ = core.engine().raft.shutdown().await;
    writer.close().await;
}
