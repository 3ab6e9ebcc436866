//! The members of a group that agrees on them: how the service opens their store, reports them,
//! and changes them for an operator.

pub(crate) mod audit;
mod change;
mod former;
mod recover;
mod report;
mod restore;
pub(crate) mod rules;
mod voters;
mod wait_out;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use doorway_members::{
    DataPlace, EtcdStore, FormerGroup, GroupStore, OpenError, Options, RaftStore, Threads,
};
use doorway_node::members::{Record, RuleTables, ViewStore};
use doorway_node::net::{Identity, StoreDialer, Tcp};
use doorway_node::views::last_epoch;
use doorway_node::{Config, Node, StartError};
use doorway_sessions::ledger::LedgerContents;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use crate::serve::ServeError;
use crate::settings::{MembersSettings, Settings};

pub use doorway_members::VIEW_STEP;
pub use doorway_node::members::full_wait;
pub use recover::{NoRecovery, Recovery};
pub use rules::deviations;
pub use wait_out::wait_out;

/// How often a node without a group looks whether there is one.
const LOOK: Duration = Duration::from_secs(2);

/// How long a store may take to show what it has on disk.
const ON_DISK: Duration = Duration::from_secs(1);

/// The store by which the members of the group agree, and what operators need besides.
pub struct Members {
    store: Arc<dyn GroupStore>,
    identity: Identity,
    settings: MembersSettings,
    /// The name of this node.
    name: String,
    /// The name of the group.
    group: String,
    /// What the data directory shows of a group to which this node belonged before.
    former: Option<FormerGroup>,
    /// The rules for locks in the settings of this node. A group begins with them.
    rules: RuleTables,
    /// What this node has found out about its group as long as it does not belong to it.
    outside: Mutex<FoundingState>,
    /// How many more locks may be broken at the same time.
    noting: Arc<Semaphore>,
    /// Operators change the members one after the other.
    changing: tokio::sync::Mutex<()>,
}

/// What is known about the group of a node that does not belong to it yet.
#[derive(Clone, Debug, PartialEq, Eq)]
enum FoundingState {
    /// No member that answers belongs to a group.
    NotFounded,
    /// The member at this address belongs to a group.
    Founded(String),
    /// etcd has the record of the group.
    InEtcd,
}

impl Members {
    /// Open the store of a node whose group agrees on its members; none in any other group.
    /// `ledger` is what the former process left.
    pub(crate) async fn open(
        settings: &Settings,
        ledger: Option<&LedgerContents>,
    ) -> Result<Option<Self>, ServeError> {
        let node = &settings.node;
        let (Some(members), Some(tls), Some(data)) = (&settings.members, &node.tls, &node.data)
        else {
            return Ok(None);
        };
        let identity = Identity::from_pem(&tls.ca, &tls.certificate, &tls.key);
        let identity = identity.map_err(StartError::from)?;
        let (name, group) = (node.me.clone(), node.group.clone());
        let former = former_group(data, ledger)?;
        let options = Options {
            data: DataPlace::Directory(data.clone()),
            group: group.clone(),
            name: name.clone(),
            address: members.address.clone(),
            former,
            // Clones of an identity share it, so a renewed certificate reaches the store too.
            connect: Arc::new(StoreDialer::new(Tcp, identity.clone(), group.clone())),
            lease_ms: members.lease.as_millis() as u32,
            seed: None,
            threads: Threads::Own,
        };
        let failed = |error: OpenError| ServeError::Members(error.to_string());
        let store: Arc<dyn GroupStore> = match &members.etcd {
            Some(access) => EtcdStore::open(options, access.clone()).await.map_err(failed)?,
            None => RaftStore::open(options).await.map_err(failed)?,
        };
        Ok(Some(Self {
            store,
            identity,
            settings: members.clone(),
            name,
            group,
            former,
            rules: node.lock_rules().tables(),
            outside: Mutex::new(FoundingState::NotFounded),
            noting: Arc::new(Semaphore::new(audit::NOTES)),
            changing: tokio::sync::Mutex::default(),
        }))
    }

    /// Start the node.
    pub(crate) async fn start(&self, config: Config, reclaiming: bool) -> Result<Node, StartError> {
        if reclaiming && self.store.cluster().is_some() {
            // Former holders are to be judged by the rules of the group, which are on disk.
            let mut records = self.records();
            let _ = timeout(ON_DISK, records.wait_for(Option::is_some)).await;
        }
        let store: Arc<dyn ViewStore> = Arc::clone(&self.store) as _;
        Node::start_agreed(config, self.identity.clone(), store, reclaiming).await
    }

    /// Wait until the store has ended by itself, and learn why.
    pub(crate) async fn ended(&self) -> String {
        self.store.ended().await
    }

    /// Close the store, after the node has stopped.
    pub(crate) async fn close(&self) {
        self.store.close().await;
    }

    /// The newest record that this node has seen.
    pub(crate) fn record(&self) -> Option<Arc<Record>> {
        self.records().borrow().clone()
    }

    fn records(&self) -> watch::Receiver<Option<Arc<Record>>> {
        self.store.watch()
    }

    /// Until this node belongs to a group, look whether there is one, and log what to do.
    pub(crate) async fn look_for_group(&self) {
        let mut records = self.records();
        let mut logged = None;
        while records.borrow().is_none() {
            let outside = self.look_outside().await;
            self.outside.lock().clone_from(&outside);
            if logged.as_ref() != Some(&outside) {
                tracing::info!("{}", outside.text(&self.name, &self.settings.address));
                logged = Some(outside);
            }
            if let Ok(Err(_)) = timeout(LOOK, records.changed()).await {
                return; // The store has ended.
            }
        }
    }

    async fn look_outside(&self) -> FoundingState {
        if self.store.is_founded_elsewhere() {
            return FoundingState::InEtcd;
        }
        for address in self.others() {
            if let Ok(hello) = self.store.ask(address).await
                && hello.cluster.is_some()
            {
                return FoundingState::Founded(address.clone());
            }
        }
        FoundingState::NotFounded
    }

    /// The addresses in `join`, without that of this node.
    fn others(&self) -> impl Iterator<Item = &String> {
        self.settings.join.iter().filter(|address| **address != self.settings.address)
    }
}

/// What a data directory shows of the group to which its node belonged before.
fn former_group(
    data: &Path,
    ledger: Option<&LedgerContents>,
) -> Result<Option<FormerGroup>, ServeError> {
    let epoch = last_epoch(data).map_err(|error| ServeError::Members(error.to_string()))?;
    let views = ledger.into_iter().flat_map(LedgerContents::grants);
    let view = views.map(|(_, _, fence)| fence.view()).max().unwrap_or(0);
    let leases = ledger.map_or(0, |ledger| ledger.leases() as u64);
    Ok((epoch > 0 || view > 0).then_some(FormerGroup { epoch, view, leases }))
}

impl FoundingState {
    /// What an operator has to know.
    fn text(&self, name: &str, address: &str) -> String {
        match self {
            Self::NotFounded => {
                "the group is not founded yet: run `doorway members init` at one node".to_owned()
            }
            Self::Founded(member) => {
                Self::remedy(&format!("the node at {member} belongs to it"), name, address)
            }
            Self::InEtcd => Self::remedy("etcd has its record", name, address),
        }
    }

    fn remedy(evidence: &str, name: &str, address: &str) -> String {
        format!(
            "the group is founded ({evidence}), but not with the data directory of this node: at a \
             member run `doorway members add {name} {address}`, or `doorway members replace \
             {name}` if `{name}` belonged to it with another disk"
        )
    }
}
