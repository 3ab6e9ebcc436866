//! A node while it runs: itself, and the task that keeps its links up.

use std::sync::Arc;
use std::task::Waker;

use parking_lot::Mutex;
use tokio::task::JoinHandle;

use crate::config::{Config, TlsConfig};
use crate::error::StartError;
use crate::inner::Inner;
use crate::locks::Out;
use crate::net::{Identity, Mesh, Network, Timing};

/// What everything that belongs to a node keeps alive. The task of the links has the node too, so
/// it is not part of the node itself: neither would ever end.
pub(crate) struct Running {
    pub(crate) inner: Arc<Inner>,
    pub(crate) links: Links,
}

impl Drop for Running {
    fn drop(&mut self) {
        // Nobody is left who could hold a lock; the links end by themselves.
        self.inner.end(&mut Out::default());
    }
}

/// The task that keeps the links of a node up.
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
        let (over, ending) = (node.over(), Ending(Arc::clone(node)));
        Ok(Self(Mutex::new(Some(tokio::spawn(async move {
            let _ending = ending;
            Arc::new(mesh).run(listener, over).await;
        })))))
    }

    /// Wait until the links of a node that was told to stop are gone.
    pub(crate) async fn stopped(&self) {
        let task = self.0.lock().take();
        if let Some(task) = task {
            let _ = task.await; // However it ended, it has.
        }
    }
}

/// Ends the node with its links: also when the runtime in which they run is gone, without which the
/// node can do nothing more.
struct Ending(Arc<Inner>);

impl Drop for Ending {
    fn drop(&mut self) {
        let mut out = Out::default();
        self.0.end(&mut out);
        out.wakers.drain(..).for_each(Waker::wake);
    }
}
