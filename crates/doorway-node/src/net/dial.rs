//! The dialling side of a link: it connects again and again, with back-off.

use std::collections::BTreeMap;
use std::sync::Arc;

use doorway_protocol::Backoff;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout};

use super::handshake::{Failure, NewConnection, dialled};
use super::notices::NoticeSubject;
use super::peer::{End, Peer, PeerId};
use super::{LinkHandler, Mesh, Network};

/// Keep up the links to all peers that this node dials, forever. Peers come and go.
pub(super) async fn dial_all<N: Network, U: LinkHandler>(
    mesh: &Arc<Mesh<N, U>>,
    tasks: &mut JoinSet<()>,
) {
    let mut peers = mesh.peers.clone();
    let mut dialled: BTreeMap<PeerId, AbortHandle> = BTreeMap::new();
    loop {
        while tasks.try_join_next().is_some() {}
        let now = peers.borrow_and_update().clone();
        dialled.retain(|id, task| {
            let stays = now.iter().any(|peer| peer.id() == *id);
            if !stays {
                task.abort();
            }
            stays
        });
        for peer in now.iter().filter(|peer| peer.is_dialled()) {
            dialled
                .entry(peer.id())
                .or_insert_with(|| tasks.spawn(keep_up(Arc::clone(mesh), Arc::clone(peer))));
        }
        if peers.changed().await.is_err() {
            std::future::pending::<()>().await; // The list of peers is final.
        }
    }
}

/// Keep the link to a peer up, forever.
async fn keep_up<N: Network, U: LinkHandler>(mesh: Arc<Mesh<N, U>>, peer: Arc<Peer>) {
    let seed = mesh.seed ^ peer.id().0 << 32;
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
                    Some(why) => {
                        mesh.notices.refused(NoticeSubject::Node(peer.name().to_owned()), &why);
                    }
                    None => mesh.notices.unreached(peer.name(), peer.address(), &failure),
                }
            }
        }
        tokio::select! {
            () = sleep(backoff.next_delay()) => {}
            () = peer.started() => backoff.reset(),
        }
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
