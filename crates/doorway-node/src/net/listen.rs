//! The listening side of links: a caller that proves to be a peer is served, all others are
//! refused.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::dial::serve;
use super::handshake::{Failure, accepted};
use super::notices::About;
use super::{LinkHandler, Mesh, Network};

/// How many callers may be in their handshake at a time. Further connections wait to be accepted.
const UNPROVED: usize = 64;

/// Accept connections forever, each in a task of its own.
pub(super) async fn accept_all<N: Network, U: LinkHandler>(
    mesh: &Arc<Mesh<N, U>>,
    listener: &N::Listener,
    tasks: &mut JoinSet<()>,
) {
    let unproved = Arc::new(Semaphore::new(UNPROVED));
    loop {
        while tasks.try_join_next().is_some() {}
        let Ok(permit) = Arc::clone(&unproved).acquire_owned().await else { return };
        let (stream, from) = match mesh.network.accept(listener).await {
            Ok(accepted) => accepted,
            Err(error) => {
                // Possibly out of file descriptors. Some may be free in a moment.
                tracing::debug!("cannot accept a connection: {error}");
                sleep(mesh.timing.pause).await;
                continue;
            }
        };
        let mesh = Arc::clone(mesh);
        tasks.spawn(async move {
            let greeting = timeout(mesh.timing.handshake, accepted(&mesh, stream)).await;
            drop(permit);
            match greeting.unwrap_or(Err(Failure::Late)) {
                Ok(greeted) => {
                    mesh.notices.clear(greeted.peer.name());
                    serve(&mesh, greeted).await;
                }
                Err(failure) => {
                    tracing::debug!(%from, "no link: {failure}");
                    if let Some(why) = failure.notice() {
                        let named = failure.node().map(|node| About::Node(node.to_owned()));
                        mesh.notices.refused(named.unwrap_or(About::Address(from.ip())), &why);
                    }
                }
            }
        });
    }
}
