//! Connections that are cut at any byte.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use doorway_node::messages::Message;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng as _, SeedableRng as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::support::{Authority, Node, Recorder, listen, stop, until};

/// Forward this many bytes in both directions together, and then cut the connection.
async fn hand_on(mut near: TcpStream, target: String, mut bytes: usize) {
    let Ok(mut far) = TcpStream::connect(target).await else { return };
    let (mut there, mut back) = ([0; 512], [0; 512]);
    while bytes > 0 {
        let (read, from, to) = tokio::select! {
            read = near.read(&mut there) => (read, &there, &mut far),
            read = far.read(&mut back) => (read, &back, &mut near),
        };
        let Ok(read @ 1..) = read else { return };
        if to.write_all(&from[..read.min(bytes)]).await.is_err() {
            return;
        }
        bytes = bytes.saturating_sub(read);
    }
}

/// How many connections are cut.
const CUTS: usize = 400;

/// A proxy between two nodes that cuts each connection after some bytes, and in the end lets one
/// live.
async fn cutter(listener: TcpListener, target: String, cuts: Arc<AtomicUsize>, seed: u64) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    while let Ok((near, _)) = listener.accept().await {
        let cut = cuts.load(Ordering::SeqCst) < CUTS;
        let bytes = if cut { random.next_u32() as usize % 12_000 } else { usize::MAX };
        hand_on(near, target.clone(), bytes).await;
        cuts.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn nothing_is_lost_or_doubled_over_hundreds_of_cuts() {
    let authority = Authority::new();
    let ((first, a), (second, b), (middle, through)) =
        (listen().await, listen().await, listen().await);
    let cuts = Arc::new(AtomicUsize::new(0));
    let cutter = tokio::spawn(cutter(middle, b.clone(), Arc::clone(&cuts), 1));
    let start = |me, name: &str, listener, addresses: &[String]| {
        let handler = Recorder::new(name, 100 + u64::from(me));
        Node::start(me, authority.identity(name), handler, listener, addresses)
    };
    let nodes = vec![start(0, "n1", first, &[a.clone(), through]), start(1, "n2", second, &[a, b])];
    // Before the first connection, messages would be dropped.
    until("they have met", || nodes.iter().all(|node| node.handler.ups() > 0)).await;
    let mut sent = 0;
    while cuts.load(Ordering::SeqCst) < CUTS {
        // Keep something under way at all times that could be lost.
        while nodes.iter().any(|node| node.peers[0].report().unacknowledged < 200) {
            sent += 1;
            nodes[0].send(0, sent);
            nodes[1].send(0, sent);
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let all: Vec<u64> = (1..=sent).collect();
    until("all has arrived", || {
        nodes[0].handler.from(1).len() >= all.len() && nodes[1].handler.from(0).len() >= all.len()
    })
    .await;
    assert!(nodes[0].handler.from(1) == all && nodes[1].handler.from(0) == all, "lost or doubled");
    let ups = nodes[0].handler.ups();
    assert!(ups > 100 && sent > 1000, "{ups} connections came up, and {sent} messages were sent");
    cutter.abort();
    stop(nodes).await;
}

/// A proxy that forwards while the gate is open, and cuts everything when it is shut.
async fn gate(listener: TcpListener, target: String, mut open: watch::Receiver<bool>) {
    while let Ok((mut near, _)) = listener.accept().await {
        let Ok(mut far) = TcpStream::connect(&target).await else { continue };
        tokio::select! {
            _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
            _ = open.wait_for(|open| !open) => {}
        }
    }
}

/// A message that is sent while the connection is down is the first on the next connection, however
/// long it is.
#[tokio::test]
async fn a_long_message_is_the_first_on_a_new_connection() {
    let authority = Authority::new();
    let ((first, a), (second, b), (middle, through)) =
        (listen().await, listen().await, listen().await);
    let open = watch::Sender::new(true);
    let gate = tokio::spawn(gate(middle, b.clone(), open.subscribe()));
    let start = |me, name: &str, listener, addresses: &[String]| {
        let handler = Recorder::new(name, 100 + u64::from(me));
        Node::start(me, authority.identity(name), handler, listener, addresses)
    };
    let nodes = vec![start(0, "n1", first, &[a.clone(), through]), start(1, "n2", second, &[a, b])];
    until("they have met", || nodes.iter().all(|node| node.handler.ups() > 0)).await;
    open.send_replace(false);
    until("it is cut", || !nodes[0].handler.downs.lock().is_empty()).await;
    nodes[0].peers[0].send(&Message::Epochs(vec![1; 500_000])).expect("it fits into a frame");
    open.send_replace(true);
    until("it has arrived", || nodes[1].handler.from(0) == [1]).await;
    gate.abort();
    stop(nodes).await;
}
