//! The listening side of links: a caller that proves to be a peer is served, all others are
//! refused.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

use super::dial::serve;
use super::handshake::{Failure, IncomingCall, accepted};
use super::notices::NoticeSubject;
use super::{LinkHandler, Mesh, Network};

/// How many callers may be in their handshake at a time. A further one takes the place of the
/// oldest: a member needs a moment for its handshake, and must not have to wait for callers that
/// say nothing.
const HANDSHAKES: usize = 64;

/// The callers that are in their handshake, the oldest first.
#[derive(Default)]
struct PendingHandshakes {
    last: u64,
    handshakes: VecDeque<(u64, AbortHandle)>,
}

/// Accept connections forever, each in a task of its own.
pub(super) async fn accept_all<N: Network, U: LinkHandler>(
    mesh: &Arc<Mesh<N, U>>,
    listener: &N::Listener,
    tasks: &mut JoinSet<()>,
) {
    let pending = Arc::new(Mutex::new(PendingHandshakes::default()));
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
        let (mesh, proved) = (Arc::clone(mesh), Arc::clone(&pending));
        // Locked until the task is in the list, so that the task cannot leave the list before.
        let mut pending = pending.lock();
        pending.last += 1;
        let number = pending.last;
        let task = tasks.spawn(async move {
            let greeting = timeout(mesh.timing.handshake, accepted(&mesh, stream)).await;
            proved.lock().handshakes.retain(|(other, _)| *other != number);
            match greeting.unwrap_or(Err(Failure::Late)) {
                Ok(IncomingCall::Store(stream, caller)) => {
                    mesh.handler.store(Box::new(stream), caller).await;
                }
                Ok(IncomingCall::Link(greeted)) => {
                    mesh.notices.clear(greeted.peer.name());
                    serve(&mesh, greeted).await;
                }
                Err(failure) => {
                    tracing::debug!(%from, "no link: {failure}");
                    if let Some(why) = failure.notice() {
                        let named = failure.node().map(|node| NoticeSubject::Node(node.to_owned()));
                        mesh.notices
                            .refused(named.unwrap_or(NoticeSubject::Address(from.ip())), &why);
                    }
                }
            }
        });
        pending.handshakes.push_back((number, task));
        if pending.handshakes.len() > HANDSHAKES
            && let Some((_, oldest)) = pending.handshakes.pop_front()
        {
            oldest.abort();
        }
    }
}
