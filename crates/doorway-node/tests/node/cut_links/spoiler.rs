//! A proxy between two nodes that spoils their connections.

#![expect(clippy::unwrap_used, reason = "where nobody can listen, nothing can be tested")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng as _, SeedableRng as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// How often each fate befell a connection, and whether to stop.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) cut: AtomicUsize,
    pub(crate) late: AtomicUsize,
    pub(crate) mute: AtomicUsize,
    /// From now on connections are left alone.
    pub(crate) peace: AtomicBool,
}

/// The fate of a connection.
#[derive(Clone, Copy)]
enum Fate {
    /// Both sides see its end immediately.
    Cut,
    /// The side that dialled sees its end. What it has sent reaches the other side after this
    /// delay, when there may be another connection.
    Late(Duration),
    /// It stays open, but nothing arrives any more: in one direction, the other, or both.
    Mute([bool; 2]),
}

/// How many bytes are forwarded at a time.
const PIECE: usize = 512;

/// Forward connections from one address to another, as long as this future runs.
pub(crate) async fn spoil(listener: TcpListener, target: String, tally: Arc<Tally>, seed: u64) {
    let mut dice = ChaCha8Rng::seed_from_u64(seed);
    let mut connections = JoinSet::new();
    loop {
        let (near, _) = listener.accept().await.unwrap();
        let Ok(far) = TcpStream::connect(&target).await else { continue };
        near.set_nodelay(true).unwrap();
        far.set_nodelay(true).unwrap();
        let between = Forwarder { near, far, tally: Arc::clone(&tally) };
        let fate = match dice.next_u32() % 16 {
            0 => Fate::Mute([true, false]),
            1 => Fate::Mute([false, true]),
            2 => Fate::Mute([true, true]),
            3..=7 => Fate::Late(Duration::from_millis(u64::from(dice.next_u32() % 150))),
            _ => Fate::Cut,
        };
        // Most connections are left alone for a while, so that the back-off between dials stays
        // short. Some end during the handshake, but never by silence, because its timeout takes too
        // long.
        let calm = Instant::now() + Duration::from_millis(u64::from(dice.next_u32() % 80));
        let greeting = if matches!(fate, Fate::Mute(_)) { 6000 } else { 0 };
        let bytes = greeting + dice.next_u32() as usize % 6000;
        connections.spawn(between.run(calm, bytes, fate));
        while connections.try_join_next().is_some() {}
    }
}

/// The two ends of a connection: towards the node that dialled, and towards the other.
struct Forwarder {
    near: TcpStream,
    far: TcpStream,
    tally: Arc<Tally>,
}

impl Forwarder {
    /// Forward everything while it is calm, then this many bytes more; then the connection meets
    /// its fate.
    async fn run(mut self, calm: Instant, mut bytes: usize, fate: Fate) {
        while bytes > 0 {
            let quiet = Instant::now() < calm || self.tally.peace.load(Ordering::SeqCst);
            let limit = if quiet { PIECE } else { bytes };
            let Some(carried) = self.carry(limit, [false, false]).await else { return };
            bytes -= if quiet { 0 } else { carried };
        }
        match fate {
            Fate::Cut => {
                self.tally.cut.fetch_add(1, Ordering::SeqCst);
            }
            Fate::Late(delay) => {
                self.tally.late.fetch_add(1, Ordering::SeqCst);
                let Self { near, mut far, .. } = self;
                let mut under_way = vec![0; 64 << 10];
                let count = near.try_read(&mut under_way).unwrap_or(0);
                drop(near);
                sleep(delay).await;
                let _ = far.write_all(&under_way[..count]).await; // The other side may be gone.
            }
            Fate::Mute(mute) => {
                self.tally.mute.fetch_add(1, Ordering::SeqCst);
                while self.carry(PIECE, mute).await.is_some() {}
            }
        }
    }

    /// Forward one piece of at most `limit` bytes, or drop it in a muted direction. Returns `None`
    /// at the end of the connection.
    async fn carry(&mut self, limit: usize, mute: [bool; 2]) -> Option<usize> {
        let limit = limit.min(PIECE);
        let (mut there, mut back) = ([0; PIECE], [0; PIECE]);
        let (read, piece, to, mute) = tokio::select! {
            read = self.near.read(&mut there[..limit]) => (read, &there, &mut self.far, mute[0]),
            read = self.far.read(&mut back[..limit]) => (read, &back, &mut self.near, mute[1]),
        };
        let read = read.ok().filter(|read| *read > 0)?;
        if !mute {
            to.write_all(&piece[..read]).await.ok()?;
        }
        Some(read)
    }
}
