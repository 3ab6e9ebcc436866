//! The listening side of links: a caller that proves to be a peer is served, all others are
//! refused.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

use super::dial::serve;
use super::handshake::{Accepted, Failure, accepted};
use super::notices::About;
use super::{LinkHandler, Mesh, Network};

/// How many callers may be in their handshake at a time. A further one takes the place of the
/// oldest: a member needs a moment for its handshake, and must not have to wait for callers that
/// say nothing.
const UNPROVED: usize = 64;

/// The callers that are in their handshake, the oldest first.
#[derive(Default)]
struct Unproved {
    last: u64,
    handshakes: VecDeque<(u64, AbortHandle)>,
}

/// Accept connections forever, each in a task of its own.
pub(super) async fn accept_all<N: Network, U: LinkHandler>(
    mesh: &Arc<Mesh<N, U>>,
    listener: &N::Listener,
    tasks: &mut JoinSet<()>,
) {
    let unproved = Arc::new(Mutex::new(Unproved::default()));
    loop {
        while tasks.try_join_next().is_some() {}
        let (stream, from) = match mesh.network.accept(listener).await {
            Ok(accepted) => accepted,
            Err(error) => {
                // Possibly out of file descriptors. Some may be free in a moment.
                tracing::debug!("cannot accept a connection: {error}");
                sleep(mesh.timing.pause).await;
                continue;
            }
        };
        let (mesh, proved) = (Arc::clone(mesh), Arc::clone(&unproved));
        // Locked until the task is in the list, so that the task cannot leave the list before.
        let mut unproved = unproved.lock();
        unproved.last += 1;
        let number = unproved.last;
        let task = tasks.spawn(async move {
            let greeting = timeout(mesh.timing.handshake, accepted(&mesh, stream)).await;
            proved.lock().handshakes.retain(|(other, _)| *other != number);
            match greeting.unwrap_or(Err(Failure::Late)) {
                Ok(Accepted::Store(stream, caller)) => {
                    mesh.handler.store(Box::new(stream), caller).await;
                }
                Ok(Accepted::Link(greeted)) => {
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
        unproved.handshakes.push_back((number, task));
        if unproved.handshakes.len() > UNPROVED
            && let Some((_, oldest)) = unproved.handshakes.pop_front()
        {
            oldest.abort();
        }
    }
}
