//! The store, as a node sees it.

use std::fmt;
use std::sync::Arc;

use doorway_node::members::{
    Answer, AuditLog, BoxedFuture, BoxedStream, Caller, Command, GroupState, Holds, Record,
    RuleTables, SeatId, StoreHealth, UnknownOutcome, ViewStore,
};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::Instant;

use super::address::EtcdAddress;
use super::core::{Contact, Core, LatestState};
use super::layout::Keys;
use super::line::Access;
use super::proposer::{self, Proposer};
use super::pulse::Pulse;
use super::tls::EtcdCertificates;
use super::watcher;
use crate::bond::Bond;
use crate::disk::Disk;
use crate::ending::Ending;
use crate::error::{AskError, FoundError, OpenError};
use crate::group_store::GroupStore;
use crate::peers::Peers;
use crate::published_state::PublishedState;
use crate::rpc::client::Dialer;
use crate::rpc::frame::{Ask, Head, Hello, ReplyBody};
use crate::rpc::serve::{Answers, introduce, serve};
use crate::store::{Options, Threads};
use crate::thread::{in_own_thread, serve_in, start_disk_thread};
use crate::timings::Timings;
use crate::writer::{self, Writer};

/// How etcd is reached.
#[derive(Clone, PartialEq, Eq)]
pub struct EtcdAccess {
    /// Its servers, at least one.
    pub addresses: Vec<EtcdAddress>,
    /// The certificates for servers with https.
    pub certificates: Option<EtcdCertificates>,
    /// The name and the password of a user, if etcd asks for one.
    pub login: Option<(String, String)>,
}

/// Without the password.
impl fmt::Debug for EtcdAccess {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { addresses, certificates, login } = self;
        let user = login.as_ref().map(|(user, _)| user);
        formatter
            .debug_struct("EtcdAccess")
            .field("addresses", addresses)
            .field("certificates", certificates)
            .field("user", &user)
            .finish_non_exhaustive()
    }
}

/// The record of a group, kept in etcd.
pub struct EtcdStore {
    pub(super) core: Arc<Core>,
    proposer: Proposer,
    runtime: Handle,
}

impl EtcdStore {
    /// Open the store of this node, or make one. A node with a new data directory has a new seat.
    /// etcd need not be reachable yet.
    pub fn open(
        options: Options,
        access: EtcdAccess,
    ) -> BoxedFuture<'static, Result<Arc<Self>, OpenError>> {
        Box::pin(Self::start(options, access))
    }

    async fn start(options: Options, access: EtcdAccess) -> Result<Arc<Self>, OpenError> {
        match options.threads {
            Threads::Caller => Self::build(options, access).map(Arc::new),
            Threads::Own => {
                let build = move || async move {
                    let store = Self::build(options, access)?;
                    let (ending, writer) = (store.core.ending.clone(), store.core.writer.clone());
                    let closing = async move {
                        ending.ended().await;
                        close(&ending, &writer).await;
                    };
                    Ok((store, closing))
                };
                in_own_thread(build).await.map(Arc::new)
            }
        }
    }

    fn build(options: Options, access: EtcdAccess) -> Result<Self, OpenError> {
        let Options { data, group, name, address, former, connect, lease_ms, seed, threads } =
            options;
        let EtcdAccess { addresses, certificates, login } = access;
        let certificates = certificates.unwrap_or_default();
        let tls = if addresses.iter().any(EtcdAddress::is_https) {
            Some(certificates.config().map_err(OpenError::Certificates)?)
        } else {
            None
        };
        let mut rng = seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed);
        let (disk, content) = Disk::open(data, || rng.u64(1..))?;
        if content.cluster.is_some() && !content.by_etcd {
            let path = disk.path();
            return Err(OpenError::OtherAgreement { path, found: "Raft", wanted: "etcd" });
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
        let runtime = Handle::current();
        let patience = Timings::new(lease_ms).connect();
        let dialer = Dialer { connect, runtime: runtime.clone(), patience };
        let core = Arc::new(Core {
            seat,
            name,
            address,
            former,
            peers: Peers::new(seat, Arc::clone(&bond), dialer),
            bond,
            ending,
            writer,
            keys: Keys::new(&group),
            group,
            access: Arc::new(Access::new(addresses, tls, login)),
            shown: PublishedState::new(None),
            lease_ms,
            begin: Instant::now(),
            known: Mutex::new(LatestState { view: content.etcd_view, ..LatestState::default() }),
            pulse: Mutex::new(Pulse::default()),
            contact: Mutex::new(Contact::default()),
        });
        core.ending.spawn(Box::pin(watcher::follow(Arc::clone(&core))));
        core.ending.spawn(Box::pin(watcher::ping(Arc::clone(&core))));
        let proposer = proposer::start(&core);
        Ok(Self { core, proposer, runtime })
    }
}

impl ViewStore for EtcdStore {
    fn seat(&self) -> SeatId {
        SeatId(self.core.seat)
    }

    fn watch(&self) -> watch::Receiver<Option<Arc<Record>>> {
        self.core.shown.records()
    }

    fn holds(&self) -> watch::Receiver<Arc<Holds>> {
        self.core.shown.holds()
    }

    fn rules(&self) -> watch::Receiver<Arc<RuleTables>> {
        self.core.shown.rules()
    }

    fn put(&self, command: Command) -> BoxedFuture<'_, Result<Answer, UnknownOutcome>> {
        let limit = self.core.timings().put();
        Box::pin(self.proposer.put(command, limit))
    }

    fn leads(&self) -> bool {
        let Some((_, kept)) = self.core.newest() else { return false };
        let now = self.core.begin.elapsed();
        self.core.pulse.lock().leads(&kept.state.record, self.seat(), now)
    }

    fn serve(&self, stream: BoxedStream, caller: Caller) -> BoxedFuture<'static, ()> {
        serve_in(&self.runtime, Box::pin(serve(Arc::clone(&self.core), stream, caller)))
    }

    fn health(&self) -> StoreHealth {
        self.core.health()
    }
}

impl GroupStore for EtcdStore {
    fn ask<'a>(&'a self, address: &'a str) -> BoxedFuture<'a, Result<Hello, AskError>> {
        let Core { peers, group, .. } = &*self.core;
        Box::pin(peers.hello(group, address, self.core.agreement()))
    }

    fn found_with(&self, state: GroupState) -> BoxedFuture<'_, Result<(), FoundError>> {
        Box::pin(self.found(state))
    }

    fn cluster(&self) -> Option<u128> {
        self.core.bond.cluster()
    }

    fn audit(&self) -> Arc<AuditLog> {
        let newest = self.core.newest();
        newest.map(|(_, kept)| Arc::clone(&kept.state.audit)).unwrap_or_default()
    }

    fn is_founded_elsewhere(&self) -> bool {
        self.cluster().is_none() && self.core.newest().is_some()
    }

    fn ended(&self) -> BoxedFuture<'_, String> {
        Box::pin(self.core.ending.ended())
    }

    fn close(&self) -> BoxedFuture<'_, ()> {
        Box::pin(close(&self.core.ending, &self.core.writer))
    }
}

impl Answers for Core {
    fn ending(&self) -> &Ending {
        &self.ending
    }

    async fn answer(&self, _caller: &Caller, _head: Head, ask: Ask) -> ReplyBody {
        let Ask::Hello(group) = ask else {
            return ReplyBody::Refused("this node agrees by etcd, not by Raft".to_owned());
        };
        let (name, address) = (self.name.clone(), self.address.clone());
        let (seat, cluster, former) = (self.seat, self.bond.cluster(), self.former);
        let agreement = self.agreement();
        let hello = Hello { name, seat, cluster, address, former, agreement };
        introduce(&self.group, hello, &group)
    }
}

impl Drop for EtcdStore {
    fn drop(&mut self) {
        if self.core.ending.reason().is_none() {
            let (ending, writer) = (self.core.ending.clone(), self.core.writer.clone());
            ending.close();
            self.runtime.spawn(async move { close(&ending, &writer).await });
        }
    }
}

async fn close(ending: &Ending, writer: &Writer) {
    ending.close();
    writer.close().await;
}
