//! The side that dials: again and again, with growing pauses.

use std::sync::Arc;

use doorway_protocol::Backoff;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep, timeout};

use super::handshake::{Failure, Greeted, dialled};
use super::notices::About;
use super::peer::{End, Peer};
use super::{Mesh, Network, Upper};

/// Keep the link to a peer up for ever.
pub(super) async fn keep_up<N: Network, U: Upper>(mesh: Arc<Mesh<N, U>>, peer: Arc<Peer>) {
    let seed = mesh.seed ^ u64::from(peer.id().0) << 32;
    let mut backoff = Backoff::with_seed(mesh.timing.pause, mesh.timing.longest_pause, seed);
    loop {
        let dialled = async {
            let stream = mesh.network.connect(peer.address()).await?;
            dialled(&mesh, &peer, stream).await
        };
        match timeout(mesh.timing.handshake, dialled).await.unwrap_or(Err(Failure::Late)) {
            Ok(greeted) => {
                mesh.notices.clear(peer.name());
                let begin = Instant::now();
                serve(&mesh, greeted).await;
                // One that broke at once is no better than one that never came up.
                if begin.elapsed() >= mesh.timing.heartbeat {
                    backoff.reset();
                }
            }
            Err(failure) => {
                tracing::debug!(peer = %peer.id(), "no link: {failure}");
                match failure.notice() {
                    Some(why) => mesh.notices.refused(About::Node(peer.name().to_owned()), &why),
                    None => mesh.notices.unreached(peer.name(), peer.address(), &failure),
                }
            }
        }
        sleep(backoff.next_delay()).await;
    }
}

/// Run a connection to its end, or until this future is dropped.
pub(super) async fn serve<N: Network, U: Upper, S>(mesh: &Mesh<N, U>, greeted: Greeted<S>)
where
    S: AsyncRead + AsyncWrite + Send + Unpin,
{
    let Greeted { connection, peer, number, decoder } = greeted;
    let mut closing = Closing { mesh, peer, number, why: End::Closed };
    closing.why = connection.run(&*mesh.upper, &mesh.timing, decoder).await;
}

/// Tells the node that a connection is gone, however it went.
struct Closing<'m, N, U: Upper> {
    mesh: &'m Mesh<N, U>,
    peer: Arc<Peer>,
    number: u64,
    why: End,
}

impl<N, U: Upper> Drop for Closing<'_, N, U> {
    fn drop(&mut self) {
        self.peer.close(&*self.mesh.upper, self.number, &self.why);
    }
}
