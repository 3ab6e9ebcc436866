//! A node while it runs: itself, and the task that keeps its links up.

use std::sync::Arc;

use tokio::sync::watch;

use crate::config::Config;
use crate::error::StartError;
use crate::inner::Inner;
use crate::net::{Identity, Mesh, Network, Timing};

/// What everything that belongs to a node keeps alive. The task of the links has the node too, so
/// it is not part of the node itself: neither would ever end.
pub(crate) struct NodeRuntime {
    pub(crate) inner: Arc<Inner>,
    pub(crate) links: LinkTask,
}

impl Drop for NodeRuntime {
    fn drop(&mut self) {
        // Nobody is left who could hold a lock; the links end by themselves.
        self.inner.stop();
    }
}

/// The task that keeps the links of a node up, if it has any: closed when the task has ended.
#[derive(Default)]
pub(crate) struct LinkTask {
    ended: Option<watch::Receiver<()>>,
    /// What the node shows to those it meets, if it meets any.
    pub(crate) identity: Option<Identity>,
}

impl LinkTask {
    pub(crate) async fn start<N: Network>(
        network: N,
        config: &Config,
        identity: Identity,
        node: &Arc<Inner>,
        seed: u64,
    ) -> Result<Self, StartError> {
        let address = config.address_of(&config.me).to_owned();
        let listener = network.bind(&address).await;
        let listener = listener.map_err(|error| StartError::Listen { address, error })?;
        let peers = node.peers().cloned().collect();
        let Config { heartbeat, silence, .. } = *config;
        let timing = Timing { heartbeat, silence, ..Timing::default() };
        let handler = Arc::clone(node);
        let shown = identity.clone();
        let mesh = Mesh::new(network, shown, node.setup.me, peers, handler, timing, seed);
        let (over, ending) = (node.over(), StopOnDrop(Arc::clone(node)));
        let (running, ended) = watch::channel(());
        tokio::spawn(async move {
            // What was made first is dropped last, also when the runtime ends.
            let _running = running;
            let _ending = ending;
            Arc::new(mesh).run(listener, over).await;
        });
        Ok(Self { ended: Some(ended), identity: Some(identity) })
    }

    /// Wait until the links of a node that was told to stop are gone. All who wait are told.
    pub(crate) async fn stopped(&self) {
        if let Some(mut ended) = self.ended.clone() {
            while ended.changed().await.is_ok() {}
        }
    }
}

/// Ends the node with its links: also when the runtime in which they run is gone, without which the
/// node can do nothing more.
struct StopOnDrop(Arc<Inner>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}
