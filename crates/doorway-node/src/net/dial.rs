//! The dialling side of a link: it connects again and again, with back-off.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep, timeout};

use super::handshake::{Failure, NewConnection, dialled};
use super::notices::About;
use super::peer::{End, Peer};
use super::{LinkHandler, Mesh, Network, Timing};

/// Keep the link to a peer up, forever.
pub(super) async fn keep_up<N: Network, U: LinkHandler>(mesh: Arc<Mesh<N, U>>, peer: Arc<Peer>) {
    let mut pauses = Pauses::new(&mesh.timing, mesh.seed ^ u64::from(peer.id().0) << 32);
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
                    pauses.reset();
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
        sleep(pauses.next()).await;
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

/// The pauses between dials: each about twice as long as the one before, and never quite as long
/// as another node's, lest all come back in the same moment.
struct Pauses {
    first: Duration,
    longest: Duration,
    next: Duration,
    random: u64,
}

impl Pauses {
    fn new(timing: &Timing, seed: u64) -> Self {
        let (first, longest) = (timing.pause, timing.longest_pause);
        Self { first, longest, next: first, random: seed }
    }

    fn reset(&mut self) {
        self.next = self.first;
    }

    /// Between half of the pause and all of it.
    fn next(&mut self) -> Duration {
        // The generator splitmix64.
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.random;
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        let share = f64::from((bits >> 32) as u32) / f64::from(u32::MAX);
        let pause = self.next.mul_f64(0.5 + share / 2.0);
        self.next = (self.next * 2).min(self.longest);
        pause
    }
}
