//! The dialling side of a link: it connects again and again, with back-off.

use std::sync::Arc;

use doorway_protocol::Backoff;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep, timeout};

use super::handshake::{Failure, NewConnection, dialled};
use super::notices::About;
use super::peer::{End, Peer};
use super::{LinkHandler, Mesh, Network};

/// Keep the link to a peer up, forever.
pub(super) async fn keep_up<N: Network, U: LinkHandler>(mesh: Arc<Mesh<N, U>>, peer: Arc<Peer>) {
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
                // A connection that broke at once must not reset the back-off.
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

/// Run a connection until it ends, or until this future is dropped.
pub(super) async fn serve<N: Network, U: LinkHandler, S>(
    mesh: &Mesh<N, U>,
    greeted: NewConnection<S>,
) where
    S: AsyncRead + AsyncWrite + Send + Unpin,
{
    let NewConnection { connection, peer, number, decoder } = greeted;
    let mut closing = Closing { mesh, peer, number, why: End::Closed };
    closing.why = connection.run(&*mesh.handler, &mesh.timing, decoder).await;
}

/// Tells the node that a connection is closed, also when its task is cancelled.
struct Closing<'m, N, U: LinkHandler> {
    mesh: &'m Mesh<N, U>,
    peer: Arc<Peer>,
    number: u64,
    why: End,
}

impl<N, U: LinkHandler> Drop for Closing<'_, N, U> {
    fn drop(&mut self) {
        self.peer.close(&*self.mesh.handler, self.number, &self.why);
    }
}
