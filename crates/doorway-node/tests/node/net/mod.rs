//! Links over real connections with TLS: cut, corrupted, impersonated and silent.

mod cuts;
mod hostile;
mod refusals;
mod support;

use support::{group, stop, until};

#[tokio::test]
async fn three_nodes_hear_each_other() {
    let (_, nodes, _) = group(3).await;
    until("all links are up", || nodes.iter().all(|node| node.handler.ups() == 2)).await;
    for number in 1..=100 {
        for node in &nodes {
            node.send(0, number);
            node.send(1, number);
        }
    }
    let all: Vec<u64> = (1..=100).collect();
    let heard = |at: usize, from: u32| at as u32 == from || nodes[at].handler.from(from) == all;
    until("all has arrived", || (0..3).all(|at| (0..3).all(|from| heard(at, from)))).await;
    let kept = || nodes.iter().flat_map(|node| &node.peers).map(|p| p.report().unacknowledged);
    until("all is acknowledged", || kept().sum::<usize>() == 0).await;
    let report = nodes[0].peers[0].report();
    assert!(report.up && report.since.is_some());
    assert_eq!((report.traffic.messages_in, report.traffic.messages_out), (100, 100));
    assert_eq!(report.traffic.connections, 1);
    stop(nodes).await;
}

#[tokio::test]
async fn messages_to_a_peer_that_was_never_met_or_restarts_are_dropped() {
    let (authority, mut nodes, addresses) = group(2).await;
    nodes[0].send(0, 1);
    until("the link is up", || nodes.iter().all(|node| node.handler.ups() == 1)).await;
    nodes[0].send(0, 2);
    until("it has arrived", || nodes[1].handler.from(0) == [2]).await;
    let second = nodes.remove(1);
    second.task.abort();
    let _ = second.task.await;
    until("it is noticed", || nodes[0].handler.downs.lock().len() == 1).await;
    assert!(!nodes[0].peers[0].report().up);
    nodes[0].send(0, 3);
    let handler = support::Recorder::new("n2", 201);
    let listener = tokio::net::TcpListener::bind(&addresses[1]).await.unwrap();
    let identity = authority.identity("n2");
    nodes.push(support::Node::start(1, identity, handler, listener, &addresses));
    until("the link is up again", || nodes[1].handler.ups() == 1).await;
    until("both know", || nodes[0].handler.ups() == 2).await;
    nodes[0].send(0, 4);
    nodes[1].send(0, 5);
    until("both have arrived", || {
        nodes[1].handler.from(0) == [4] && nodes[0].handler.from(1) == [5]
    })
    .await;
    stop(nodes).await;
}
