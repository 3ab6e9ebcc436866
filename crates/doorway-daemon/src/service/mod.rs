//! The service itself: sessions and what they hold, without a word of how clients come in.
//!
//! Whoever needs several of its locks takes them in this order: the state of a session, a shard of
//! the node, the outbox of a connection or the shares of clients; while the table of sessions is
//! held, no other is taken.
//! Guards may be dropped under the state of a session: whom that wakes runs later.

mod acquire;
mod connected;
mod counts;
mod events;
mod expire;
mod grant;
mod hello;
mod lease;
mod lose;
mod open;
pub(crate) mod outbox;
mod permits;
mod process;
mod queue;
mod reclaim;
mod refusals;
mod release;
mod report;
mod session;
mod shares;
mod stop;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::hash::RandomState;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::SystemTime;

use doorway_node::{Config, Describe, Node, StartError};
use doorway_protocol::{Fence, Name, NamePattern, Scope};
use hashbrown::HashMap;
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore, broadcast, watch};

use crate::clock::Moment;
use crate::ledger::{Ledger, LedgerContents};
use crate::principal::Principal;
use crate::settings::{ClientSettings, Limits, Settings};
use outbox::Outbox;
use permits::Permits;
use shares::Shares;

pub use connected::Peer;
pub(crate) use connected::{Connected, Entry, TURNED};
pub(crate) use counts::{Counts, WAITS};
pub(crate) use events::Listener;
pub use events::{Event, EventKind};
pub(crate) use lease::Standing;
pub use process::Process;
pub(crate) use refusals::{refusal, stopping};
pub use session::Session;

/// A node with sessions for its clients. Copies are the same service.
#[derive(Clone)]
pub struct Service(pub(crate) Arc<Inner>);

/// All open sessions, by their numbers.
pub(crate) type Sessions = Mutex<HashMap<u64, Arc<Session>, RandomState>>;

pub(crate) struct Inner {
    pub(crate) node: Node,
    pub(crate) scope: Scope,
    pub(crate) limits: Limits,
    /// The patterns of the configuration, each with the number of permits of its locks.
    pub(crate) rules: Vec<(NamePattern, u32)>,
    pub(crate) clients: Vec<ClientSettings>,
    pub(crate) began: Moment,
    pub(crate) sessions: Arc<Sessions>,
    /// The number of the last session.
    pub(crate) last: AtomicU64,
    pub(crate) permits: Arc<Permits>,
    /// What sessions without a connection hold: others may release or renew it for their client.
    pub(crate) loose: Mutex<BTreeMap<(Name, Fence), u64>>,
    pub(crate) events: broadcast::Sender<Event>,
    /// Keys of the tables of grants, random so that nobody can aim at them.
    pub(crate) hasher: RandomState,
    pub(crate) held: AtomicU64,
    pub(crate) grants: AtomicU64,
    pub(crate) counts: Counts,
    /// Requests that wait.
    pub(crate) waits: AtomicU64,
    /// Nothing is granted any more.
    pub(crate) stopping: AtomicBool,
    /// Until when former holders may claim what they held; nothing is granted meanwhile.
    pub(crate) reclaiming: watch::Sender<Option<Moment>>,
    /// Former sessions for which the node waits, until they are back.
    pub(crate) former: Mutex<reclaim::Awaited>,
    pub(crate) ledger: Option<Ledger>,
    /// All connections, to tell them when the node stops.
    pub(crate) connections: Mutex<BTreeMap<u64, Arc<Outbox>>>,
    pub(crate) connected: AtomicU64,
    /// Those who cannot come in and are told so.
    pub(crate) turned: Arc<Semaphore>,
    pub(crate) shares: Arc<Shares>,
    /// How many requests may wait at the node.
    pub(crate) outstanding: usize,
    /// A session was opened, or one ended.
    pub(crate) changed: Notify,
}

impl Service {
    /// Start a node and the service around it, on the runtime of the caller. Doors are opened by
    /// whoever calls this. `ledger` is what the process before this one left in the directory.
    pub async fn start(
        settings: &Settings,
        ledger: Option<(Ledger, LedgerContents)>,
    ) -> Result<Self, StartError> {
        let sessions: Arc<Sessions> = Arc::default();
        let mut config = settings.node.clone();
        config.describe = Some(describe(Arc::downgrade(&sessions)));
        let (on_lost, losses) = lose::channel();
        config.on_lost = Some(on_lost);
        permits::prepare(&mut config);
        if config.members.len() == 1 {
            // What idle locks have learnt saves messages, and a node alone sends none.
            config.keep_idle = 0;
        }
        let (ledger, former) = ledger.unzip();
        let former = former.unwrap_or_default();
        let awaited = reclaim::Awaited::new(&former, &settings.limits);
        let node = if awaited.is_empty() {
            Node::start(config).await?
        } else {
            Node::start_reclaiming(config).await?
        };
        let first = ledger.as_ref().map_or(0, Ledger::first_session);
        let until = awaited.until();
        let service = Self(Arc::new(Inner {
            node,
            scope: settings.scope,
            limits: settings.limits.clone(),
            rules: settings
                .node
                .rules
                .iter()
                .map(|rule| (NamePattern::new(&rule.pattern), rule.permits))
                .collect(),
            clients: settings.clients.clone(),
            began: Moment::now(),
            sessions,
            last: AtomicU64::new(first),
            permits: Arc::default(),
            loose: Mutex::default(),
            events: broadcast::Sender::new(1024),
            hasher: RandomState::new(),
            held: AtomicU64::new(0),
            grants: AtomicU64::new(0),
            counts: Counts::default(),
            waits: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            reclaiming: watch::Sender::new(until),
            former: Mutex::new(awaited),
            ledger,
            connections: Mutex::default(),
            connected: AtomicU64::new(0),
            turned: Arc::new(Semaphore::new(TURNED)),
            shares: Arc::default(),
            outstanding: settings.node.outstanding,
            changed: Notify::new(),
        }));
        service.restore(former);
        tokio::spawn(lose::run(Arc::downgrade(&service.0), losses));
        tokio::spawn(expire::run(Arc::downgrade(&service.0)));
        if until.is_some() {
            tokio::spawn(reclaim::run(service.clone()));
        }
        Ok(service)
    }

    /// The node.
    pub fn node(&self) -> &Node {
        &self.0.node
    }

    /// What nobody may exceed.
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// Hear of grants, releases and losses from now on. Who is too slow misses some and is told.
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.0.events.subscribe()
    }

    /// How many sessions are open.
    pub fn sessions(&self) -> usize {
        self.0.sessions.lock().len()
    }

    /// How many connections are open.
    pub fn connections(&self) -> usize {
        self.0.connections.lock().len()
    }

    /// How many grants are held.
    pub fn held(&self) -> u64 {
        self.0.held.load(Ordering::Relaxed)
    }

    /// Wait until a session was opened or has ended.
    pub fn changed(&self) -> impl Future<Output = ()> {
        self.0.changed.notified()
    }

    /// Whom its locks are for.
    pub fn scope(&self) -> Scope {
        self.0.scope
    }

    /// Wait until the node ends by itself, as when another process takes its place.
    pub async fn ended(&self) {
        self.0.node.ended().await;
    }

    /// Has it been told to stop?
    pub fn is_stopping(&self) -> bool {
        self.0.stopping.load(Ordering::Relaxed)
    }
}

impl Inner {
    /// A node without peers needs to ask nobody.
    pub(crate) fn is_alone(&self) -> bool {
        self.node.members().len() == 1
    }

    pub(crate) fn session(&self, number: u64) -> Option<Arc<Session>> {
        self.sessions.lock().get(&number).cloned()
    }

    /// Tell whoever watches; nothing is made if nobody does.
    pub(crate) fn announce(&self, kind: EventKind, session: &Session, lock: &Name, fence: Fence) {
        if self.events.receiver_count() > 0 {
            let (lock, client) = (permits::visible_name(lock), Arc::clone(&session.client));
            let (session, at) = (session.id(), SystemTime::now());
            let _ = self.events.send(Event { kind, lock, fence, session, client, at });
        }
    }
}

/// May this client do that?
pub(crate) fn allowed(
    principal: &Principal,
    right: crate::principal::Right,
    lock: &Name,
) -> Result<(), doorway_protocol::Refusal> {
    refusals::check_name(lock)?;
    if principal.rights.may(right, lock) {
        return Ok(());
    }
    let word = match right {
        crate::principal::Right::Acquire => "acquire",
        crate::principal::Right::Inspect => "inspect",
        crate::principal::Right::Break => "break",
    };
    let text = format!("{} may not {word} `{lock}`", principal.name);
    Err(refusal(doorway_protocol::Code::Forbidden, text))
}

/// Sessions say of themselves what their clients said. The table belongs to the service, which
/// keeps the node.
fn describe(sessions: Weak<Sessions>) -> Describe {
    Describe::new(move |number| {
        let sessions = sessions.upgrade()?;
        let session = sessions.lock().get(&number).cloned();
        session.map(|session| session.client.to_string())
    })
}

/// A configuration as the service starts its node with it, to check it without starting.
pub fn node_config(config: &Config) -> Config {
    let mut config = config.clone();
    permits::prepare(&mut config);
    config
}
