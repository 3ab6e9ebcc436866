//! The service: a node with sessions, which clients reach through doors.
//!
//! All decisions about sessions are made by [`Sessions`], a state machine without IO. The service
//! is its shell: it owns the node, the guards of held locks, the tasks that wait, the ledger and
//! the clock, and does what the sessions say.
//!
//! One mutex guards the sessions. While it is held, shards of the node and outboxes of connections
//! may be locked, but not the other way round.

mod acquire;
mod alarm;
mod breaking;
mod calling;
mod connection;
mod description;
mod disk;
mod events;
mod group;
mod health;
mod holder;
mod holding;
mod leaving;
mod once;
mod passed_client;
mod passing;
mod perform;
mod process;
mod report;
mod standing;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, SystemTime};

use doorway_node::members::{AgreedRules, BoxedFuture};
use doorway_node::{
    AnswerMembers, Config, EndReason, Node, OnLost, OnWanted, OwnedGuard, RuleConfig,
    SessionDescriber, StartError,
};
use doorway_protocol::{
    Claims, Code, Fence, Hello, Life, Moment, Name, Refusal, Request, Scope, Secret,
};
use doorway_sessions::clock::ms;
use doorway_sessions::identity;
use doorway_sessions::ledger::{Ledger, LedgerContents};
use doorway_sessions::outbox::Outbox;
use doorway_sessions::principal::Principal;
use doorway_sessions::refusals::{refusal, stopping, unwritten};
use doorway_sessions::{
    Answer, AskId, Connection, Input, Opening, Output, ProcessId, Sessions, Setup, common_version,
    names,
};
use hashbrown::HashMap;
use parking_lot::Mutex;
use rustc_hash::FxBuildHasher;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::{Notify, Semaphore, broadcast, oneshot, watch};
use tokio::task::AbortHandle;

use crate::members::Members;
use crate::members::rules::permits;
use crate::settings::{ClientSettings, Limits, Settings};
use crate::task::boxed;

use alarm::Alarm;
use description::Description;

pub(crate) use calling::ASKING;
pub use connection::Peer;
pub(crate) use connection::{Entry, OpenConnection, REJECTED};
pub(crate) use events::Listener;
pub use events::{Event, EventKind};
pub use group::{GroupLine, GroupLocks, GroupStatus, ListOrder, LockState};
pub(crate) use health::half_away;
pub(crate) use holding::OwnLease;
pub(crate) use once::{OnceAsk, TakenWindow};
pub(crate) use passed_client::PassedClient;
pub(crate) use passing::CallDoor;
pub use process::Process;
pub use report::FullStatus;

/// A node with sessions for its clients. Clones are the same service.
#[derive(Clone)]
pub struct Service(pub(crate) Arc<ServiceShell>);

/// The shell around the sessions of a [`Service`], which all its clones share.
pub(crate) struct ServiceShell {
    pub(crate) node: Node,
    /// The store of a group that agrees on its members.
    members: Option<Members>,
    scope: Scope,
    drain: Duration,
    /// The clock by which windows of time begin and end.
    wall_clock: fn() -> SystemTime,
    began: Moment,
    core: Mutex<Core>,
    /// Where tasks run, also if a connection ends while the runtime shuts down.
    runtime: Handle,
    ledger: Option<Ledger>,
    events: broadcast::Sender<Event>,
    listeners: events::Listeners,
    /// The descriptions of the clients of open sessions, for the reports of the node.
    clients: Arc<Descriptions>,
    /// Whether the disk answers.
    disk: disk::DiskProbe,
    /// Locked while the ledger is being synced to disk.
    syncing: Arc<tokio::sync::Mutex<()>>,
    /// Whether the node grants locks: former holders are back, or their time is over.
    serving: watch::Sender<bool>,
    /// How many connections that are turned away may be told so at a time.
    rejected: Arc<Semaphore>,
    /// How long a lease of the node lasts, in a group that agrees on its members.
    lease_ms: AtomicU32,
    /// Notified when a session or a connection was opened or has ended.
    changed: Notify,
    /// Notified when nothing is held any more after [`Input::Drain`].
    drained: Notify,
    /// Notified when the service was drained, and is to end because nothing is held any more.
    leaving: Notify,
    /// Calls between the services of the group.
    passed: passing::PassedCalls,
    /// Locks that other members want to be broken.
    breaking: breaking::PendingBreaks,
}

type Descriptions = Mutex<HashMap<u64, Description, FxBuildHasher>>;

/// The sessions, and what the shell keeps for them.
struct Core {
    sessions: Sessions,
    /// What happened and has not been passed on yet.
    inputs: VecDeque<Input>,
    outputs: Vec<Output>,
    outboxes: HashMap<Connection, Arc<Outbox>, FxBuildHasher>,
    calls: HashMap<Connection, oneshot::Sender<Answer>, FxBuildHasher>,
    guards: HashMap<AskId, OwnedGuard, FxBuildHasher>,
    tasks: HashMap<AskId, AbortHandle, FxBuildHasher>,
    watchers: HashMap<u64, AbortHandle, FxBuildHasher>,
    /// The process of the client whose hello is being answered.
    proven: Option<Process>,
    last_connection: u64,
    /// Why the connection that was just made cannot be admitted.
    turned_away: Option<Refusal>,
    /// The node is to grant locks from now on.
    serve: bool,
}

impl Service {
    /// Start a node and the service around it, on the runtime of the caller. The caller opens the
    /// doors. `ledger` is what the former process left in the directory.
    pub fn start(
        settings: &Settings,
        ledger: Option<(Ledger, LedgerContents)>,
    ) -> BoxedFuture<'_, Result<Self, StartError>> {
        Box::pin(Self::start_with(settings, ledger, None))
    }

    /// Start a service as [`Service::start`] does, in a group that agrees on its members by this
    /// store.
    pub(crate) async fn start_with(
        settings: &Settings,
        ledger: Option<(Ledger, LedgerContents)>,
        members: Option<Members>,
    ) -> Result<Self, StartError> {
        let clients: Arc<Descriptions> = Arc::default();
        let alone = members.is_none() && settings.node.members.len() == 1;
        let mut config = if alone { node_config(&settings.node) } else { settings.node.clone() };
        config.describe = Some(describe(Arc::downgrade(&clients)));
        let (send, losses) = unbounded_channel();
        // Sending fails only at the end.
        let lose =
            move |session, lock: &Name, fence| drop(send.send((session, lock.clone(), fence)));
        config.on_lost = Some(OnLost::new(lose));
        let (send, wanted) = unbounded_channel();
        config.on_wanted = Some(OnWanted::new(move |lock| drop(send.send(lock))));
        let answering: Arc<OnceLock<Weak<ServiceShell>>> = Arc::default();
        config.answer = Some(answer_members(Arc::clone(&answering)));
        if alone {
            // What idle locks have learnt saves messages, and a node alone sends none.
            config.keep_idle = 0;
        }
        let (ledger, former) = ledger.unzip();
        let reclaims =
            former.as_ref().is_some_and(|former| former.lacking || !former.records.is_empty());
        let node = match &members {
            Some(members) => members.start(config, reclaims).await?,
            None if reclaims => Node::start_reclaiming(config).await?,
            None => Node::start(config).await?,
        };
        let setup = Setup {
            node: node.name().to_owned(),
            directory: ledger.as_ref().map_or_else(identity::draw, Ledger::directory),
            scope: settings.scope,
            limits: settings.limits.clone(),
            outstanding: settings.node.outstanding,
            rules: permits(&settings.node.rules),
            clients: settings.clients.clone(),
            alone,
            ledger: ledger.is_some(),
            agreed: node.membership().is_some(),
        };
        let now = Moment::now_at_node();
        // Which leases of the former process the group has to keep depends on it.
        let lease_ms = members.as_ref().and_then(Members::record).map_or(0, |it| it.lease_ms);
        let service = Self(Arc::new(ServiceShell {
            node,
            members,
            scope: settings.scope,
            drain: settings.drain,
            wall_clock: settings.wall_clock,
            began: now,
            core: Mutex::new(Core::new(Sessions::new(setup, now))),
            runtime: Handle::current(),
            ledger,
            events: broadcast::Sender::new(1024),
            listeners: events::Listeners::default(),
            clients,
            disk: disk::DiskProbe::default(),
            syncing: Arc::default(),
            serving: watch::Sender::new(!reclaims),
            rejected: Arc::new(Semaphore::new(REJECTED)),
            lease_ms: AtomicU32::new(lease_ms),
            changed: Notify::new(),
            drained: Notify::new(),
            leaving: Notify::new(),
            passed: passing::PassedCalls::default(),
            breaking: breaking::PendingBreaks::default(),
        }));
        let _ = answering.set(Arc::downgrade(&service.0)); // It is set here alone.
        if let Some(former) = former {
            service.0.restore(former);
        }
        service.spawn_tasks(losses, wanted);
        Ok(service)
    }

    /// Start the tasks that tell the sessions of losses, of locks that are wanted, of time and of
    /// changes in the group.
    fn spawn_tasks(
        &self,
        losses: UnboundedReceiver<(u64, Name, Fence)>,
        wanted: UnboundedReceiver<Name>,
    ) {
        tokio::spawn(boxed(losing(Arc::downgrade(&self.0), losses)));
        tokio::spawn(boxed(revoking(Arc::downgrade(&self.0), wanted)));
        tokio::spawn(boxed(ticking(Arc::downgrade(&self.0))));
        if let Some(rules) = self.0.node.agreed_rules() {
            tokio::spawn(boxed(ruling(Arc::downgrade(&self.0), rules)));
        }
        if let Some(changes) = self.0.node.lease_changes() {
            tokio::spawn(boxed(leasing(Arc::downgrade(&self.0), changes)));
        }
    }

    /// The node.
    pub fn node(&self) -> &Node {
        &self.0.node
    }

    /// The store of the members, if the group agrees on them.
    pub(crate) fn store(&self) -> Option<&Members> {
        self.0.members.as_ref()
    }

    /// How many claims and waiting requests a client may send as it resumes its session.
    pub(crate) fn claims_limit(&self) -> usize {
        self.0.core.lock().sessions.claims_limit()
    }

    /// Receive news of grants, releases and losses from now on. A receiver that is too slow misses
    /// some and is told so.
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.0.events.subscribe()
    }

    /// How many sessions are open.
    pub fn sessions(&self) -> usize {
        self.0.core.lock().sessions.len()
    }

    /// How many connections are open.
    pub fn connections(&self) -> usize {
        self.0.core.lock().sessions.connections()
    }

    /// How many grants are held.
    pub fn held(&self) -> u64 {
        self.0.core.lock().sessions.held()
    }

    /// Wait until a session or a connection was opened or has ended.
    pub fn changed(&self) -> impl Future<Output = ()> {
        self.0.changed.notified()
    }

    /// Who shares the locks of the node.
    pub fn scope(&self) -> Scope {
        self.0.scope
    }

    /// Wait until the node ends by itself, as when another process takes its place.
    pub async fn ended(&self) -> EndReason {
        self.0.node.ended().await
    }

    /// Apply the limits and clients of settings that were reloaded. Returns the limits that count
    /// from now on: a longer time to live that the ledger cannot take is not allowed.
    pub(crate) fn configure(&self, mut limits: Limits, clients: Vec<ClientSettings>) -> Limits {
        let allowed = self.0.ledger.as_ref().map_or(Ok(()), |it| it.allow_ttl(limits.ttl));
        if let Err(error) = allowed {
            limits.ttl = self.0.core.lock().sessions.longest_ttl();
            tracing::error!("`limits.ttl` stays as it was: {error}");
        }
        self.0.input(Input::Configure(Box::new(limits.clone()), clients));
        limits
    }

    /// Wait until all that is in the ledger is on disk, where it survives a crash of the machine.
    pub(crate) async fn sync_ledger(&self) -> Result<(), Refusal> {
        // One after another: however many clients ask and hang up, the disk has one thing to do at
        // a time.
        let turn = Arc::clone(&self.0.syncing).lock_owned().await;
        let shell = Arc::clone(&self.0);
        let sync = move || {
            let _turn = turn;
            shell.in_ledger(Ledger::sync)
        };
        let synced = self.0.runtime.spawn_blocking(sync).await;
        let synced = synced.map_err(|_| stopping())?;
        synced.map_err(|error| {
            self.0.input(Input::LedgerFailed(error.clone()));
            unwritten(&error)
        })
    }

    /// Whether the service grants nothing any more.
    pub fn is_stopping(&self) -> bool {
        self.0.core.lock().sessions.is_stopping()
    }

    /// Answer the hello of a client. `claims` are those that followed the hello.
    pub(crate) fn greet(
        &self,
        connected: &OpenConnection,
        peer: Peer,
        principal: &Arc<Principal>,
        hello: Hello,
        claims: Vec<Claims>,
    ) -> Result<(), Refusal> {
        let remote = peer.remote;
        let (process, id) = evidence(&hello, peer)?.unzip();
        let mut core = self.0.core.lock();
        core.proven = process;
        core.inputs.push_back(Input::Hello(Box::new(Opening {
            connection: connected.number,
            principal: Arc::clone(principal),
            remote,
            process: id,
            hello,
            claims,
            secret: secret(),
        })));
        self.0.run(&mut core);
        core.proven = None;
        Ok(())
    }

    /// Pass on a request of a connection.
    pub(crate) fn request(&self, connected: &OpenConnection, request: Request) {
        self.0.input(Input::Request(connected.number, request));
    }

    /// Look for the socket that the processes of a session hold, and note that it was seen. The
    /// sessions then answer the request with this number.
    pub(crate) fn look_for_holder(
        &self,
        connected: &OpenConnection,
        request: u64,
    ) -> Result<(), Refusal> {
        let session = self.0.core.lock().sessions.secret_of(connected.number);
        let seen = session.is_some_and(|(secret, uid)| holder::is_held(&secret, uid));
        if !seen {
            let text = "the node cannot see the socket of the session's processes; do they run in \
                        another network namespace?";
            return Err(refusal(Code::Gone, text));
        }
        self.0.input(Input::HolderSeen(connected.number, request));
        Ok(())
    }

    /// Bytes have come from a client.
    pub(crate) fn heard(&self, connected: &OpenConnection) {
        self.0.input(Input::Heard(connected.number));
    }
}

impl ServiceShell {
    /// Pass on what happened, and do what the sessions say.
    pub(crate) fn input(self: &Arc<Self>, input: Input) {
        let mut core = self.core.lock();
        core.inputs.push_back(input);
        self.run(&mut core);
    }

    /// Go on with what the former process left.
    fn restore(self: &Arc<Self>, former: LedgerContents) {
        let records = former.records.len();
        self.input(Input::Restored(Box::new(former)));
        let core = self.core.lock();
        let held = core.sessions.held();
        if let Some(until) = core.sessions.reclaiming() {
            let at_most_ms = ms(until.since(Moment::now_at_node()));
            tracing::info!(
                held,
                at_most_ms,
                "waiting for the clients that held locks before the restart"
            );
        } else if records > 0 {
            tracing::info!(held, "sessions of the former process go on with their locks");
        }
    }

    /// Whether the node has no peers.
    fn is_alone(&self) -> bool {
        self.members.is_none() && self.node.members().len() == 1
    }
}

impl Core {
    fn new(sessions: Sessions) -> Self {
        Self {
            sessions,
            inputs: VecDeque::new(),
            outputs: Vec::new(),
            outboxes: HashMap::default(),
            calls: HashMap::default(),
            guards: HashMap::default(),
            tasks: HashMap::default(),
            watchers: HashMap::default(),
            proven: None,
            last_connection: 0,
            turned_away: None,
            serve: false,
        }
    }

    fn next_connection(&mut self) -> Connection {
        self.last_connection += 1;
        Connection(self.last_connection)
    }
}

/// Tell the sessions which grants the node has lost. The node must not be called while it reports a
/// loss, so this task passes the report on.
async fn losing(shell: Weak<ServiceShell>, mut losses: UnboundedReceiver<(u64, Name, Fence)>) {
    while let Some((session, name, fence)) = losses.recv().await {
        let Some(shell) = shell.upgrade() else { return };
        shell.input(Input::Lost { session, name, fence });
    }
}

/// Tell the sessions which locks are wanted that a client keeps. The sessions know of the requests
/// of their own clients before, so this is about those of other members.
async fn revoking(shell: Weak<ServiceShell>, mut wanted: UnboundedReceiver<Name>) {
    while let Some(name) = wanted.recv().await {
        let Some(shell) = shell.upgrade() else { return };
        shell.input(Input::Wanted(name));
    }
}

/// Let the sessions know of the rules for locks, as long as the service lives.
async fn ruling(service: Weak<ServiceShell>, mut rules: watch::Receiver<Arc<AgreedRules>>) {
    loop {
        let Some(service) = service.upgrade() else { return };
        let known = Arc::clone(&rules.borrow_and_update());
        service.input(Input::Rules(permits(&known.rules.rules)));
        drop(service);
        if rules.changed().await.is_err() {
            return;
        }
    }
}

/// Let the sessions know of the lease of the node, as long as the service lives.
async fn leasing(service: Weak<ServiceShell>, mut changes: watch::Receiver<u64>) {
    loop {
        let Some(service) = service.upgrade() else { return };
        let record = service.node.membership().and_then(|membership| membership.record);
        let length = record.map_or(0, |record| record.lease_ms);
        service.lease_ms.store(length, Ordering::Relaxed);
        service.run(&mut service.core.lock());
        drop(service);
        if changes.changed().await.is_err() {
            return;
        }
    }
}

/// Tell the sessions that time has passed, whenever that is due.
async fn ticking(shell: Weak<ServiceShell>) {
    let alarm = Alarm::new();
    loop {
        let Some(due) = shell.upgrade().map(|shell| shell.core.lock().sessions.due()) else {
            return;
        };
        alarm.wait(due.since(Moment::now_at_node())).await;
        let Some(shell) = shell.upgrade() else { return };
        shell.input(Input::Tick);
    }
}

/// The process that the session of a client lives with, or that connected, if the node can see it.
fn evidence(hello: &Hello, peer: Peer) -> Result<Option<(Process, ProcessId)>, Refusal> {
    use doorway_protocol::Opening::{New, Resume, Visit};
    let life = match hello.opening {
        Visit => return Ok(None),
        New { life, .. } | Resume { life, .. } => life,
    };
    match life {
        Life::Lease => Ok(None),
        Life::Process { pid } => {
            let version = common_version(hello.versions)?;
            process::to_live_with(pid, version, peer).map(Some)
        }
        Life::Connection { .. } => {
            let process = peer.process;
            Ok(process.and_then(|process| process.id().map(|id| (process, id))))
        }
    }
}

/// Answer the questions of other members, as soon as the service is there.
fn answer_members(service: Arc<OnceLock<Weak<ServiceShell>>>) -> AnswerMembers {
    AnswerMembers::new(move |question| {
        let shell = service.get()?.upgrade()?;
        group::answer(&Service(shell), question)
    })
}

/// Describe the sessions of the node by what their clients said.
fn describe(clients: Weak<Descriptions>) -> SessionDescriber {
    SessionDescriber::new(move |number| {
        let clients = clients.upgrade()?;
        let client = clients.lock().get(&number).cloned();
        client.map(|client| client.now())
    })
}

/// The configuration with which the service starts its node. It can be checked without a start.
pub fn node_config(config: &Config) -> Config {
    let mut config = config.clone();
    if config.members.len() <= 1 {
        let rule = |(pattern, permits)| RuleConfig::new(pattern, "raymond-k", permits);
        // The first rule that fits counts, and the pattern of a user may fit every name.
        config.rules.splice(..0, names::unconfigured_permits().map(rule));
    }
    config
}

/// Is this client root or the user of the node, at the Unix socket?
pub(crate) fn is_owner(client: &Principal) -> bool {
    let own = rustix::process::geteuid().as_raw();
    client.uid.is_some_and(|uid| uid == own || uid == 0)
}

pub(crate) fn secret() -> Secret {
    Secret(doorway_sessions::secret::random())
}
