//! A group of stores in one process, with a network between them that can be cut.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use doorway_node::members::{
    Answer, BoxedFuture, BoxedStream, Caller, Command, Connect, GroupState, Record, RuleTables,
    Seat, SeatId,
};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::{Instant, sleep};

use crate::guards::Switches;
use crate::{
    DataPlace, EtcdAccess, EtcdStore, GroupStore, MemoryDisk, Options, RaftStore, Threads,
};

pub(crate) const LEASE_MS: u32 = 10_000;
pub(crate) const LEASE: Duration = Duration::from_millis(LEASE_MS as u64);
pub(crate) fn rules() -> RuleTables {
    RuleTables::default()
}

/// The state of a group that begins with this record.
pub(crate) fn begin(record: Record) -> GroupState {
    GroupState::new(record).with_rules(rules())
}

pub(crate) const CLUSTER: u128 = 0xc1;
/// How long a message is under way.
const DELAY: Duration = Duration::from_millis(1);

/// The network between the stores.
pub(crate) struct Net<S> {
    stores: Mutex<BTreeMap<String, Arc<S>>>,
    /// The ways on which nothing arrives.
    cut: Mutex<BTreeSet<(String, String)>>,
}

impl<S> Default for Net<S> {
    fn default() -> Self {
        Self { stores: Mutex::default(), cut: Mutex::default() }
    }
}

impl<S> Net<S> {
    fn is_cut(&self, from: &str, to: &str) -> bool {
        self.cut.lock().contains(&(from.to_owned(), to.to_owned()))
    }
}

/// The network as one node sees it.
struct Wire<S> {
    net: Arc<Net<S>>,
    me: String,
}

impl<S: GroupStore> Connect for Wire<S> {
    fn connect<'a>(
        &'a self,
        address: &'a str,
    ) -> BoxedFuture<'a, io::Result<(BoxedStream, Caller)>> {
        Box::pin(async move {
            sleep(DELAY).await;
            let to = address.strip_prefix("at-").unwrap_or(address).to_owned();
            if self.net.is_cut(&self.me, &to) || self.net.is_cut(&to, &self.me) {
                return std::future::pending().await;
            }
            let store = self.net.stores.lock().get(&to).cloned();
            let store = store.ok_or(io::ErrorKind::ConnectionRefused)?;
            let (ours, near) = tokio::io::duplex(1 << 16);
            let (far, theirs) = tokio::io::duplex(1 << 16);
            let (near_read, near_write) = tokio::io::split(near);
            let (far_read, far_write) = tokio::io::split(far);
            let (net, me) = (&self.net, &self.me);
            tokio::spawn(carry(Arc::clone(net), (me.clone(), to.clone()), near_read, far_write));
            tokio::spawn(carry(Arc::clone(net), (to.clone(), me.clone()), far_read, near_write));
            tokio::spawn(store.serve(Box::new(theirs), Caller { name: me.clone() }));
            let stream: BoxedStream = Box::new(ours);
            Ok((stream, Caller { name: to }))
        })
    }
}

/// Carry bytes one way, until the way is cut.
async fn carry<S: GroupStore>(
    net: Arc<Net<S>>,
    way: (String, String),
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
) {
    let mut bytes = vec![0; 1 << 14];
    while let Ok(count) = from.read(&mut bytes).await
        && count > 0
    {
        sleep(DELAY).await;
        if net.cut.lock().contains(&way) {
            // Nobody is told that the bytes are lost, until the other end gives up.
            while from.read(&mut bytes).await.is_ok_and(|count| count > 0) {}
            return;
        }
        if to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}

/// A store of any kind, as the tests open it.
pub(crate) trait TestStore: GroupStore + Sized {
    fn open_in(
        options: Options,
        world: &Group<Self>,
    ) -> impl Future<Output = Result<Arc<Self>, crate::OpenError>>;
}

impl TestStore for RaftStore {
    async fn open_in(options: Options, world: &Group<Self>) -> Result<Arc<Self>, crate::OpenError> {
        Self::open_with(options, world.switches).await
    }
}

impl TestStore for EtcdStore {
    async fn open_in(options: Options, world: &Group<Self>) -> Result<Arc<Self>, crate::OpenError> {
        Self::open(options, world.etcd.clone().expect("an etcd")).await
    }
}

/// A group of stores that agree by Raft.
pub(crate) type World = Group<RaftStore>;

/// A group of stores.
pub(crate) struct Group<S> {
    pub(crate) net: Arc<Net<S>>,
    pub(crate) disks: BTreeMap<String, MemoryDisk>,
    pub(crate) switches: Switches,
    /// How etcd is reached, if the group agrees by it.
    pub(crate) etcd: Option<EtcdAccess>,
    pub(crate) seed: u64,
}

impl<S: TestStore> Group<S> {
    pub(crate) fn new(seed: u64) -> Self {
        let switches = Switches::default();
        Self { net: Arc::default(), disks: BTreeMap::new(), switches, etcd: None, seed }
    }

    /// A group of these nodes, all voters, that works.
    pub(crate) async fn founded(names: &[&str]) -> Self {
        let mut world = Self::new(1);
        world.found(names).await;
        world
    }

    pub(crate) async fn found(&mut self, names: &[&str]) {
        for name in names {
            self.start(name).await;
        }
        self.found_started(names).await;
    }

    /// Found a group of nodes that were started.
    pub(crate) async fn found_started(&mut self, names: &[&str]) {
        let seats = names.iter().map(|name| self.seat(name, true)).collect();
        let record = Record::new(CLUSTER, LEASE_MS, 0, seats);
        self.store(names[0]).found_with(begin(record)).await.unwrap();
        self.settle(Duration::from_secs(30), |world| {
            names.iter().all(|name| world.record(name).is_some())
        })
        .await;
    }

    pub(crate) fn options(&mut self, name: &str) -> Options {
        let disk = self.disks.entry(name.to_owned()).or_default().clone();
        self.seed += 1;
        Options {
            data: DataPlace::Memory(disk),
            group: "shop".to_owned(),
            name: name.to_owned(),
            address: format!("at-{name}"),
            former: None,
            connect: Arc::new(Wire { net: Arc::clone(&self.net), me: name.to_owned() }),
            lease_ms: LEASE_MS,
            seed: Some(self.seed),
            threads: Threads::Caller,
        }
    }

    /// Start a node, with the disk that it had before if there is one.
    pub(crate) async fn start(&mut self, name: &str) {
        let options = self.options(name);
        let store = S::open_in(options, self).await.unwrap();
        self.net.stores.lock().insert(name.to_owned(), store);
    }

    /// Cut the power of a node.
    pub(crate) async fn kill(&mut self, name: &str) {
        let store = self.net.stores.lock().remove(name);
        if let Some(store) = store {
            self.disks[name].lose_power();
            store.close().await;
        }
    }

    pub(crate) fn store(&self, name: &str) -> Arc<S> {
        Arc::clone(&self.net.stores.lock()[name])
    }

    pub(crate) fn running(&self) -> Vec<String> {
        self.net.stores.lock().keys().cloned().collect()
    }

    pub(crate) fn seat(&self, name: &str, voter: bool) -> Seat {
        let (id, name) = (self.store(name).seat(), name.to_owned());
        Seat { id, address: format!("at-{name}"), name, voter }
    }

    pub(crate) fn record(&self, name: &str) -> Option<Arc<Record>> {
        self.store(name).watch().borrow().clone()
    }

    /// A command through one node.
    pub(crate) async fn put(&self, name: &str, command: Command) -> Result<Answer, String> {
        self.store(name).put(command).await.map_err(|unsure| unsure.0)
    }

    /// A command through one node, again and again until it is answered.
    pub(crate) async fn insist(&self, name: &str, command: Command) -> Answer {
        let begin = Instant::now();
        loop {
            match self.put(name, command.clone()).await {
                Ok(answer) => return answer,
                Err(why) => {
                    assert!(begin.elapsed() < Duration::from_mins(1), "{name}: {why}");
                    sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    /// The node that leads, if all running nodes agree on it.
    pub(crate) fn leader(&self) -> Option<String> {
        let stores = self.net.stores.lock();
        let leaders: BTreeSet<Option<SeatId>> =
            stores.values().map(|store| store.health().leader).collect();
        let mut leaders = leaders.into_iter();
        let leader = leaders.next().flatten().filter(|_| leaders.next().is_none())?;
        stores.iter().find(|(_, store)| store.seat() == leader).map(|(name, _)| name.clone())
    }

    pub(crate) async fn wait_for_leader(&self) -> String {
        self.settle(Duration::from_mins(1), |world| world.leader().is_some()).await;
        self.leader().unwrap()
    }

    /// All nodes but these.
    pub(crate) fn others(&self, but: &[&str]) -> Vec<String> {
        self.running().into_iter().filter(|name| !but.contains(&name.as_str())).collect()
    }

    pub(crate) fn cut_way(&self, from: &str, to: &str) {
        self.net.cut.lock().insert((from.to_owned(), to.to_owned()));
    }

    /// Cut the network between two nodes.
    pub(crate) fn cut(&self, one: &str, other: &str) {
        self.cut_way(one, other);
        self.cut_way(other, one);
    }

    /// Cut a node off from all others.
    pub(crate) fn isolate(&self, name: &str) {
        for other in self.others(&[name]) {
            self.cut(name, &other);
        }
    }

    pub(crate) fn heal(&self) {
        self.net.cut.lock().clear();
    }

    /// Wait until something holds.
    pub(crate) async fn settle(&self, limit: Duration, holds: impl Fn(&Self) -> bool) {
        let begin = Instant::now();
        while !holds(self) {
            if begin.elapsed() > limit {
                for (name, store) in &*self.net.stores.lock() {
                    println!("{name}: {:?}", store.health());
                }
                panic!("does not hold within {limit:?}");
            }
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Wait until all running nodes have the same record.
    pub(crate) async fn agree(&self) {
        self.settle(Duration::from_mins(1), |world| {
            let records: BTreeSet<_> = world
                .running()
                .iter()
                .map(|name| world.record(name).map(|record| record.revision))
                .collect();
            records.len() == 1
        })
        .await;
        let names = self.running();
        let first = self.record(&names[0]);
        assert!(names.iter().all(|name| self.record(name) == first));
    }
}

/// A command that is always answered, and changes the record.
pub(crate) fn join(seat: SeatId, nonce: u128) -> Command {
    Command::Join { seat, nonce, rules: rules().digest() }
}
