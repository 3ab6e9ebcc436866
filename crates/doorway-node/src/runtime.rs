//! A running node: its state, and the task that keeps its links up.

use std::sync::Arc;

use tokio::sync::watch;

use crate::config::Config;
use crate::error::StartError;
use crate::net::{Identity, Mesh, Network, Timing};
use crate::shell::NodeShell;
use crate::views::EndReason;

/// The owner of a running node. Every clone, handle, request and guard of the node keeps it alive.
/// The task of the links shares the state of the node, but not this owner: otherwise neither of
/// them would ever end.
pub(crate) struct NodeRuntime {
    pub(crate) shell: Arc<NodeShell>,
    pub(crate) links: LinkTask,
}

impl Drop for NodeRuntime {
    fn drop(&mut self) {
        // No guard is left that could hold a lock. The links end by themselves.
        self.shell.end(EndReason::Stopped);
    }
}

/// The task that keeps the links of a node up, if it has any.
#[derive(Default)]
pub(crate) struct LinkTask {
    /// Closed when the task has ended.
    ended: Option<watch::Receiver<()>>,
    /// The certificate of the node, if it has peers.
    pub(crate) identity: Option<Identity>,
}

impl LinkTask {
    pub(crate) async fn start<N: Network>(
        network: N,
        config: &Config,
        identity: Identity,
        node: &Arc<NodeShell>,
        seed: u64,
    ) -> Result<Self, StartError> {
        let address = config.address_of(&config.me).to_owned();
        let listener = network.bind(&address).await;
        let listener = listener.map_err(|error| StartError::Listen { address, error })?;
        let peers = node.peers.subscribe();
        let Config { heartbeat, silence, .. } = *config;
        let timing = Timing { heartbeat, silence, ..Timing::default() };
        let handler = Arc::clone(node);
        let shown = identity.clone();
        let mesh = Mesh::new(network, shown, peers, handler, timing, seed);
        let (over, ending) = (node.ended(), StopOnDrop(Arc::clone(node)));
        let lingering = Arc::clone(node);
        let (running, ended) = watch::channel(());
        tokio::spawn(async move {
            // The channel is dropped last, also when the runtime ends, so that waiters hear of it
            // only after the node has stopped.
            let _running = running;
            let _ending = ending;
            // One task for both: the order in which several tasks hear of the end is random.
            tokio::select! {
                biased;
                () = Arc::new(mesh).run(listener, async { _ = over.await }) => {}
                () = lingering.end_lingers() => {}
            }
        });
        Ok(Self { ended: Some(ended), identity: Some(identity) })
    }

    /// Wait until the links of a node that was told to stop are closed. Any number of callers may
    /// wait.
    pub(crate) async fn stopped(&self) {
        if let Some(mut ended) = self.ended.clone() {
            while ended.changed().await.is_ok() {}
        }
    }
}

/// Stops the node when its links end, which also happens when their runtime is dropped. Without a
/// runtime the node could do nothing more.
struct StopOnDrop(Arc<NodeShell>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.end(EndReason::RuntimeEnded);
    }
}
