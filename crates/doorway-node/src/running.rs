//! A node while it runs: itself, and the task that keeps its links up.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::task::JoinHandle;

use crate::config::{Config, TlsConfig};
use crate::error::StartError;
use crate::inner::Inner;
use crate::net::{Identity, Mesh, Network, Timing};

/// What everything that belongs to a node keeps alive. The task of the links has the node too, so
/// it is not part of the node itself: neither would ever end.
pub(crate) struct Running {
    pub(crate) inner: Arc<Inner>,
    pub(crate) links: Links,
}

/// The task that keeps the links of a node up; it ends with this.
#[derive(Default)]
pub(crate) struct Links(Mutex<Option<JoinHandle<()>>>);

impl Links {
    pub(crate) async fn start<N: Network>(
        network: N,
        config: &Config,
        tls: &TlsConfig,
        node: &Arc<Inner>,
        seed: u64,
    ) -> Result<Self, StartError> {
        let identity = Identity::from_pem(&tls.ca, &tls.certificate, &tls.key)?;
        let address = config.members[node.setup.me.index()].address.clone();
        let listener = network.bind(&address).await;
        let listener = listener.map_err(|error| StartError::Listen { address, error })?;
        let peers = node.peers().cloned().collect();
        let Config { heartbeat, silence, .. } = *config;
        let timing = Timing { heartbeat, silence, ..Timing::default() };
        let upper = Arc::clone(node);
        let mesh = Mesh::new(network, identity, node.setup.me, peers, upper, timing, seed);
        Ok(Self(Mutex::new(Some(tokio::spawn(Arc::new(mesh).run(listener))))))
    }

    pub(crate) async fn stop(&self) {
        let task = self.0.lock().take();
        if let Some(task) = task {
            task.abort();
            let _ = task.await; // It was told to end, and has.
        }
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        if let Some(task) = self.0.get_mut() {
            task.abort();
        }
    }
}
