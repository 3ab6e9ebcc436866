//! A machine of the simulation: its store, its node, and the clients that work there.

use std::convert::Infallible;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use doorway_members::{DataPlace, MemoryDisk, Options, RaftStore, Threads};
use doorway_node::members::{RuleTables, Seat, SeatId, ViewStore as _};
use doorway_node::net::{Identity, StoreDialer};
use doorway_node::{AcquireError, Config, MemberConfig, Mode, Node, TlsConfig};
use parking_lot::Mutex;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::answers::ObservedStore;
use super::client::{Client, Visit, keep};
use super::machine::MachineClock;
use super::network::{Port, SimulatedNetwork, address, name};
use super::plan::{Dice, Plan};
use super::referee::{Orphan, Promise, Referee};

const GROUP: &str = "simulated";

/// The most machines of a group.
const MOST: usize = 6;

/// The certificates of all nodes, made once for all simulations.
static CERTIFICATES: LazyLock<Vec<TlsConfig>> = LazyLock::new(|| {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = || KeyPair::generate().expect("a key");
    let authority = CertifiedIssuer::self_signed(params, key()).expect("an authority");
    let issue = |node| {
        let (key, own) = (key(), format!("{}.{GROUP}.doorway", name(node)));
        let certificate = CertificateParams::new(vec![own]).expect("a name");
        let certificate = certificate.signed_by(&key, &authority).expect("a certificate");
        let (ca, key) = (authority.pem().into_bytes(), key.serialize_pem().into_bytes());
        TlsConfig { ca, certificate: certificate.pem().into_bytes(), key }
    };
    (0..MOST).map(issue).collect()
});

/// What all hosts of a simulation share.
pub(crate) struct Stage {
    pub(crate) plan: Plan,
    pub(crate) disks: Vec<MemoryDisk>,
    pub(crate) network: Arc<SimulatedNetwork>,
    pub(crate) now: Mutex<StageProgress>,
}

/// The progress of a simulation.
#[derive(Default)]
pub(crate) struct StageProgress {
    pub(crate) referee: Referee,
    /// The process of each machine that runs.
    pub(crate) nodes: Vec<Option<(Node, Arc<RaftStore>)>>,
    pub(crate) trace: Vec<String>,
    pub(crate) calm: bool,
    pub(crate) finished: Vec<bool>,
    founded: bool,
}

impl Stage {
    pub(crate) fn new(plan: Plan) -> Self {
        let size = plan.size();
        let disks = (0..size).map(|_| MemoryDisk::default()).collect();
        let mut finished = vec![false; size];
        // A guest is gone before the end.
        if let Some(guest) = finished.get_mut(plan.seats) {
            *guest = true;
        }
        let nodes = (0..size).map(|_| None).collect();
        let now = StageProgress { nodes, finished, ..StageProgress::default() };
        let network = SimulatedNetwork::new(size, Dice::new(plan.seed ^ 1 << 63));
        Self { plan, disks, network, now: Mutex::new(now) }
    }

    pub(crate) fn note(&self, time: Duration, what: std::fmt::Arguments<'_>) {
        self.now.lock().trace.push(format!("{} {what}", time.as_millis()));
    }

    pub(crate) fn is_over(&self) -> bool {
        let now = self.now.lock();
        !now.referee.faults.is_empty() || now.finished.iter().all(|finished| *finished)
    }

    pub(crate) fn is_calm(&self) -> bool {
        self.now.lock().calm
    }
}

/// A process of a machine.
#[derive(Clone)]
pub(crate) struct Host {
    pub(crate) stage: Arc<Stage>,
    pub(crate) me: usize,
    pub(crate) clock: MachineClock,
}

impl Host {
    pub(crate) fn note(&self, what: std::fmt::Arguments<'_>) {
        self.stage.note(self.clock.elapsed(), what);
    }

    /// Run a machine from one start to its end.
    pub(crate) async fn live(self, port: Port) -> Result<Infallible, String> {
        let (stage, me) = (&self.stage, self.me);
        self.note(format_args!("n{me} starts"));
        let tls = &CERTIFICATES[me];
        let identity = Identity::from_pem(&tls.ca, &tls.certificate, &tls.key);
        let identity = identity.map_err(|error| error.to_string())?;
        let dialer = StoreDialer::new(port.clone(), identity.clone(), GROUP.to_owned());
        let options = Options {
            data: DataPlace::Memory(stage.disks[me].clone()),
            group: GROUP.to_owned(),
            name: name(me),
            address: address(me),
            former: None,
            connect: Arc::new(dialer),
            lease_ms: stage.plan.lease.as_millis() as u32,
            seed: Some(stage.plan.seed ^ me as u64),
            threads: Threads::Caller,
        };
        // On a full disk no node starts. It is started again and again.
        let store = loop {
            match RaftStore::open(options.clone()).await {
                Ok(store) => break store,
                Err(error) => self.note(format_args!("n{me} cannot start: {error}")),
            }
            sleep(Duration::from_millis(200)).await;
        };
        let config = Config {
            group: GROUP.to_owned(),
            me: name(me),
            members: vec![MemberConfig { name: name(me), address: address(me) }],
            heartbeat: Duration::from_millis(100),
            silence: Duration::from_millis(500),
            ..Config::default()
        };
        let rules = config.lock_rules().tables();
        let orphans: Vec<Orphan> = {
            let now = stage.now.lock();
            let mine = |orphan: &&Orphan| orphan.node == me && orphan.claims;
            now.referee.orphans.iter().filter(mine).cloned().collect()
        };
        let reclaiming = !orphans.is_empty();
        let agreed = Arc::new(ObservedStore { store: Arc::clone(&store), host: self.clone() });
        let node = Node::start_agreed_on(port, config, identity, agreed, reclaiming).await;
        let node = node.map_err(|error| error.to_string())?;
        stage.now.lock().nodes[me] = Some((node.clone(), Arc::clone(&store)));
        tokio::spawn({
            let (host, ended) = (self.clone(), node.ended());
            async move { host.note(format_args!("n{me} has ended: {}", ended.await)) }
        });
        tokio::spawn(self.clone().watch_lease(node.clone()));
        tokio::spawn(self.clone().watch_records(Arc::clone(&store)));
        let mut clients = JoinSet::new();
        if me == 0 && !stage.now.lock().founded {
            self.found(&store, rules).await;
        }
        for orphan in &orphans {
            self.reclaim(&node, orphan, &mut clients);
        }
        node.serve();
        for number in 0..2 {
            let dice = Dice::new(stage.plan.seed ^ (me as u64 + 1) << 56 ^ number << 40);
            clients.spawn(Client { host: self.clone(), node: node.clone(), number, dice }.work());
        }
        while let Some(client) = clients.join_next().await {
            let worked = client.map_err(|error| error.to_string())?;
            worked.map_err(|error| format!("a client of n{me}: {error}"))?;
        }
        self.note(format_args!("n{me} has finished"));
        stage.now.lock().finished[me] = true;
        // The others may still need this node.
        std::future::pending().await
    }

    /// Let the referee know when the lease of a node ends, always.
    async fn watch_lease(self, node: Node) {
        let mut changes = node.lease_changes().expect("a group that agrees on its members");
        loop {
            let left = self.clock.in_simulation(node.lease_left().unwrap_or_default());
            self.stage.now.lock().referee.lease(self.clock.elapsed(), self.me, left);
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Let the referee know of the records that a node learns.
    async fn watch_records(self, store: Arc<RaftStore>) {
        let mut records = store.watch();
        drop(store);
        loop {
            if let Some(record) = &*records.borrow_and_update() {
                self.stage.now.lock().referee.record(self.me, record);
            }
            if records.changed().await.is_err() {
                return;
            }
        }
    }

    /// Found the group, as soon as all machines answer.
    async fn found(&self, store: &RaftStore, rules: RuleTables) {
        let plan = &self.stage.plan;
        loop {
            let mut seats = Vec::new();
            for node in 0..plan.seats {
                let id = if node == 0 {
                    store.seat()
                } else if let Ok(hello) = store.ask(&address(node)).await {
                    SeatId(hello.seat)
                } else {
                    break;
                };
                seats.push(Seat { id, name: name(node), address: address(node), voter: true });
            }
            let lease = plan.lease.as_millis() as u32;
            if seats.len() == plan.seats {
                let founded = store.found(seats, lease, rules.clone(), plan.seed.into()).await;
                self.note(format_args!("founded: {founded:?}"));
                if founded.is_ok() {
                    self.stage.now.lock().founded = true;
                    return;
                }
            }
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Take back the lock of a client that has outlived the process before this one.
    fn reclaim(
        &self,
        node: &Node,
        orphan: &Orphan,
        clients: &mut JoinSet<Result<(), AcquireError>>,
    ) {
        let Orphan { lock, fence, promise, .. } = orphan;
        let claim = node.reclaim(lock, Mode::Exclusive, *fence, node.session());
        self.note(format_args!("n{} reclaims {lock} with {fence}: {claim:?}", self.me));
        let Ok(guard) = claim else {
            // A client with a hold may not learn that, and the group has to keep its lock closed.
            if *promise == Promise::Lease {
                self.stage.now.lock().referee.disown(lock, *fence);
            }
            return;
        };
        // The group must agree before the node enters the view.
        let agreed = keep(node, guard.handle().name(), *fence, *promise);
        let entry = self.stage.now.lock().referee.adopt(self.clock.elapsed(), orphan);
        let visit = Visit { entry, promise: *promise, time: self.stage.plan.lease / 3 };
        let (host, node) = (self.clone(), node.clone());
        let mut dice = Dice::new(self.stage.plan.seed ^ fence.get());
        clients.spawn(async move {
            // If the group refuses, the process before this one was removed, and the lock is lost.
            tokio::select! {
                _ = agreed => {}
                () = guard.lost() => {}
            }
            host.stay(&node, guard, visit, &mut dice).await;
            Ok(())
        });
    }
}
