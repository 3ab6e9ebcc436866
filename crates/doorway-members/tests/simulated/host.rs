//! A machine of the simulation: its store, its node, and the clients that work there.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use doorway_members::{DataPlace, MemoryDisk, Options, RaftStore, Threads};
use doorway_node::members::{Command, RuleTables, Seat, SeatId, ViewStore as _};
use doorway_node::net::{Identity, Network, StoreDialer};
use doorway_node::{AcquireError, Config, MemberConfig, Mode, Node, OwnedGuard, TlsConfig};
use parking_lot::Mutex;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use turmoil::net::{TcpListener, TcpStream};

use super::plan::{Dice, LEASE, Plan};
use super::referee::{Entry, Orphan, Referee};

const GROUP: &str = "simulated";
const PORT: u16 = 7400;
const LOCKS: [&str; 3] = ["one", "two", "three"];

/// The most machines of a group.
const MOST: usize = 6;

/// The network of the simulation that runs on this thread.
struct SimulatedNetwork;

impl Network for SimulatedNetwork {
    type Stream = TcpStream;
    type Listener = TcpListener;

    async fn bind(&self, _address: &str) -> io::Result<TcpListener> {
        // A simulated host has only one address, which it does not know.
        TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT)).await
    }

    async fn accept(&self, listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
        listener.accept().await
    }

    async fn connect(&self, address: &str) -> io::Result<TcpStream> {
        TcpStream::connect(address).await
    }
}

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

/// The name of a node, and of its host.
pub(crate) fn name(node: usize) -> String {
    format!("n{node}")
}

fn address(node: usize) -> String {
    format!("n{node}:{PORT}")
}

/// What all hosts of a simulation share.
pub(crate) struct Stage {
    pub(crate) plan: Plan,
    pub(crate) disks: Vec<MemoryDisk>,
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
        Self { plan, disks, now: Mutex::new(now) }
    }

    pub(crate) fn note(&self, what: std::fmt::Arguments<'_>) {
        let time = turmoil::sim_elapsed().unwrap_or_default().as_millis();
        self.now.lock().trace.push(format!("{time} {what}"));
    }

    pub(crate) fn is_over(&self) -> bool {
        let now = self.now.lock();
        !now.referee.faults.is_empty() || now.finished.iter().all(|finished| *finished)
    }

    fn is_calm(&self) -> bool {
        self.now.lock().calm
    }
}

fn elapsed() -> Duration {
    turmoil::sim_elapsed().unwrap_or_default()
}

/// Run a machine from one start to its end.
pub(crate) async fn live(stage: Arc<Stage>, me: usize) -> turmoil::Result {
    stage.note(format_args!("n{me} starts"));
    let tls = &CERTIFICATES[me];
    let identity = Identity::from_pem(&tls.ca, &tls.certificate, &tls.key)?;
    let dialer = StoreDialer::new(SimulatedNetwork, identity.clone(), GROUP.to_owned());
    let options = Options {
        data: DataPlace::Memory(stage.disks[me].clone()),
        group: GROUP.to_owned(),
        name: name(me),
        address: address(me),
        former: None,
        connect: Arc::new(dialer),
        lease_ms: LEASE.as_millis() as u32,
        seed: Some(stage.plan.seed ^ me as u64),
        threads: Threads::Caller,
    };
    // On a full disk no node starts. It is started again and again.
    let store = loop {
        match RaftStore::open(options.clone()).await {
            Ok(store) => break store,
            Err(error) => stage.note(format_args!("n{me} cannot start: {error}")),
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
        now.referee.orphans.iter().filter(|orphan| orphan.node == me).cloned().collect()
    };
    let reclaiming = !orphans.is_empty();
    let agreed = Arc::clone(&store);
    let node =
        Node::start_agreed_on(SimulatedNetwork, config, identity, agreed, reclaiming).await?;
    stage.now.lock().nodes[me] = Some((node.clone(), Arc::clone(&store)));
    tokio::spawn({
        let (stage, ended) = (Arc::clone(&stage), node.ended());
        async move { stage.note(format_args!("n{me} has ended: {}", ended.await)) }
    });
    let mut clients = JoinSet::new();
    clients.spawn(leases(Arc::clone(&stage), node.clone(), me));
    if me == 0 && !stage.now.lock().founded {
        found(&stage, &store, rules).await;
    }
    for orphan in orphans {
        let (stage, node) = (Arc::clone(&stage), node.clone());
        reclaim(&stage, &node, &orphan, &mut clients);
    }
    node.serve();
    for number in 0..2 {
        let dice = Dice::new(stage.plan.seed ^ (me as u64 + 1) << 56 ^ number << 40);
        let (stage, node) = (Arc::clone(&stage), node.clone());
        clients.spawn(Client { stage, node, me, number, dice }.work());
    }
    // The task that watches the lease does not end.
    while clients.len() > 1
        && let Some(client) = clients.join_next().await
    {
        client??;
    }
    stage.note(format_args!("n{me} has finished"));
    stage.now.lock().finished[me] = true;
    // The others may still need this node.
    std::future::pending().await
}

/// Let the referee know when the lease of a node ends, always.
async fn leases(stage: Arc<Stage>, node: Node, me: usize) -> Result<(), AcquireError> {
    let mut changes = node.lease_changes().expect("a group that agrees on its members");
    loop {
        let end = elapsed() + node.lease_left().unwrap_or_default();
        stage.now.lock().referee.lease(me, end);
        if changes.changed().await.is_err() {
            return Ok(());
        }
    }
}

/// Found the group, as soon as all machines answer.
async fn found(stage: &Stage, store: &RaftStore, rules: RuleTables) {
    loop {
        let mut seats = Vec::new();
        for node in 0..stage.plan.seats {
            let id = if node == 0 {
                store.seat()
            } else if let Ok(hello) = store.ask(&address(node)).await {
                SeatId(hello.seat)
            } else {
                break;
            };
            seats.push(Seat { id, name: name(node), address: address(node), voter: true });
        }
        let lease = LEASE.as_millis() as u32;
        if seats.len() == stage.plan.seats {
            let founded = store.found(seats, lease, rules.clone(), stage.plan.seed.into()).await;
            stage.note(format_args!("founded: {founded:?}"));
            if founded.is_ok() {
                stage.now.lock().founded = true;
                return;
            }
        }
        sleep(Duration::from_millis(100)).await;
    }
}

/// Take back the lock of a client that has outlived the process before this one.
fn reclaim(
    stage: &Arc<Stage>,
    node: &Node,
    orphan: &Orphan,
    clients: &mut JoinSet<Result<(), AcquireError>>,
) {
    let claim = node.reclaim(&orphan.lock, Mode::Exclusive, orphan.fence, node.session());
    stage.note(format_args!("n{} reclaims {}: {claim:?}", orphan.node, orphan.lock));
    let Ok(guard) = claim else {
        stage.now.lock().referee.disown(orphan);
        return;
    };
    let entry = stage.now.lock().referee.adopt(elapsed(), orphan);
    let stage = Arc::clone(stage);
    clients.spawn(async move {
        let time = Duration::from_millis(700);
        match entry {
            Some(entry) => drop(stay(&stage, entry, guard, time).await),
            None => drop(timeout(time, guard.lost()).await),
        }
        Ok(())
    });
}

/// Stay inside for this long, or until the lock is lost. Returns whether it was.
async fn stay(stage: &Stage, entry: Entry, guard: OwnedGuard, time: Duration) -> bool {
    let told = timeout(time, guard.lost()).await.is_ok();
    if told {
        stage.now.lock().referee.tell(entry);
    }
    let lost = told || guard.is_lost();
    stage.now.lock().referee.leave(entry, lost);
    lost
}

/// Let the group agree on a command, through any machine that answers.
pub(crate) async fn command(stage: &Stage, command: Command) {
    loop {
        let stores: Vec<_> = {
            let now = stage.now.lock();
            now.nodes.iter().flatten().map(|(_, store)| Arc::clone(store)).collect()
        };
        for store in stores {
            if let Ok(Ok(answer)) = timeout(LEASE, store.put(command.clone())).await {
                stage.note(format_args!("{command:?}: {answer:?}"));
                // A command that was not answered may have been applied; then it is refused now.
                return;
            }
        }
        sleep(Duration::from_millis(200)).await;
    }
}

/// Add the last machine to the group, or drop it.
pub(crate) async fn guest(stage: Arc<Stage>, comes: bool) {
    let guest = stage.plan.seats;
    let seat = stage.now.lock().nodes[guest].as_ref().map(|(_, store)| store.seat());
    let id = seat.expect("a guest is not killed");
    let seat = Seat { id, name: name(guest), address: address(guest), voter: false };
    command(&stage, if comes { Command::AddSeat(seat) } else { Command::DropSeat(id) }).await;
}

struct Client {
    stage: Arc<Stage>,
    node: Node,
    me: usize,
    number: u64,
    dice: Dice,
}

impl Client {
    /// Acquire locks at random until no more faults come, and then every lock once more.
    async fn work(mut self) -> Result<(), AcquireError> {
        while !self.stage.is_calm() {
            sleep(self.dice.millis(0, 100)).await;
            let lock = LOCKS[self.dice.below(LOCKS.len() as u64) as usize];
            let patience = self.dice.millis(100, 3000);
            match self.node.lock(lock).within(patience).await {
                Ok(guard) => self.stay_inside(guard).await,
                Err(AcquireError::TimedOut) => {}
                Err(error) => return Err(error),
            }
        }
        for lock in LOCKS {
            let guard = self.node.lock(lock).await?;
            self.stay_inside(guard).await;
        }
        Ok(())
    }

    /// Stay inside for a while, watched by the referee.
    async fn stay_inside(&mut self, guard: OwnedGuard) {
        let (lock, fence) = (guard.handle().name().to_string(), guard.fence());
        let (me, number) = (self.me, self.number);
        if guard.is_lost() {
            return; // The lease ended before the client could look.
        }
        self.stage.note(format_args!("n{me}/{number} is inside {lock} with {fence}"));
        let entry = self.stage.now.lock().referee.enter(elapsed(), me, &lock, fence);
        let time = if self.dice.below(8) == 0 { (500, 4000) } else { (0, 60) };
        let lost = stay(&self.stage, entry, guard, self.dice.millis(time.0, time.1)).await;
        self.stage.note(format_args!("n{me}/{number} leaves {lock}, lost: {lost}"));
    }
}
